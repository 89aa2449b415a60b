// Every family of kernels but gemm is compiled once per instruction-set tier (base, avx2, avx512) with
// -DKERNEL_TIER=<tier>. This header, included before anything else, gives each kernel its tier's name; dispatch.c picks
// one tier at load time, so one binary runs on any x86-64 and is fast on all. Without KERNEL_TIER (other processors)
// the kernels keep their plain names.

#pragma once

#ifdef KERNEL_TIER
#define TIER_PASTE(name, tier) name##_##tier
#define TIER_EXPAND(name, tier) TIER_PASTE(name, tier)
#define TIER_NAME(name) TIER_EXPAND(name, KERNEL_TIER)

#define kernel_embed TIER_NAME(kernel_embed)
#define kernel_embed_backward TIER_NAME(kernel_embed_backward)
#define kernel_rmsnorm TIER_NAME(kernel_rmsnorm)
#define kernel_rmsnorm_backward TIER_NAME(kernel_rmsnorm_backward)
#define kernel_layernorm TIER_NAME(kernel_layernorm)
#define kernel_layernorm_backward TIER_NAME(kernel_layernorm_backward)
#define kernel_add_norm TIER_NAME(kernel_add_norm)
#define kernel_stretch_norm TIER_NAME(kernel_stretch_norm)
#define kernel_stretch_norm_backward TIER_NAME(kernel_stretch_norm_backward)
#define kernel_rope TIER_NAME(kernel_rope)
#define kernel_attention TIER_NAME(kernel_attention)
#define kernel_attention_sinks TIER_NAME(kernel_attention_sinks)
#define kernel_attention_sinks_backward TIER_NAME(kernel_attention_sinks_backward)
#define kernel_clamped TIER_NAME(kernel_clamped)
#define kernel_clamped_backward TIER_NAME(kernel_clamped_backward)
#define kernel_attention_delta TIER_NAME(kernel_attention_delta)
#define kernel_attention_backward TIER_NAME(kernel_attention_backward)
#define kernel_activation TIER_NAME(kernel_activation)
#define kernel_activation_backward TIER_NAME(kernel_activation_backward)
#define kernel_gated TIER_NAME(kernel_gated)
#define kernel_gated_backward TIER_NAME(kernel_gated_backward)
#define kernel_route TIER_NAME(kernel_route)
#define kernel_route_backward TIER_NAME(kernel_route_backward)
#define kernel_spread TIER_NAME(kernel_spread)
#define kernel_collect TIER_NAME(kernel_collect)
#define kernel_collect_backward TIER_NAME(kernel_collect_backward)
#define kernel_regroup TIER_NAME(kernel_regroup)
#define kernel_loss_max TIER_NAME(kernel_loss_max)
#define kernel_loss_sum TIER_NAME(kernel_loss_sum)
#define kernel_loss_gradient TIER_NAME(kernel_loss_gradient)
#define kernel_loss TIER_NAME(kernel_loss)
#define kernel_add TIER_NAME(kernel_add)
#define kernel_add_bias TIER_NAME(kernel_add_bias)
#define kernel_fill_rows TIER_NAME(kernel_fill_rows)
#define kernel_column_sum TIER_NAME(kernel_column_sum)
#define kernel_copy_rows TIER_NAME(kernel_copy_rows)
#define kernel_zero TIER_NAME(kernel_zero)
#define kernel_square_sum TIER_NAME(kernel_square_sum)
#define kernel_normal TIER_NAME(kernel_normal)
#define kernel_adamw TIER_NAME(kernel_adamw)
#endif
