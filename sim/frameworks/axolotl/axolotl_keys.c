// The keys of axolotl's schema (0.19, utils/schemas and the arguments of its integrations) that the reader does not
// take one by one: those whose setting no plan holds, and those that do not affect time or memory. A key that
// is in none of them is not one of axolotl's.

#include <stddef.h>

#include "sim/frameworks/axolotl/axolotl_files.h"
#include "sim/frameworks/axolotl/ignored_words.h"

// Memory and time that the prediction leaves out.
const ImportLeftOut axolotl_left_out[] = {
    {"activation_offloading", NULL,
     "saved activations wait in host memory: your run needs less memory and, where the copies do not hide, more time"},
    {"selective_checkpointing", NULL,
     "attention's output is kept while the layer is recomputed: your run needs more memory and less time"},
    {"layer_offloading", NULL, "parameters of layers wait in host memory: your run needs less memory and more time"},
    {"ple_cpu_offload", NULL, "embeddings of layers stay in host memory: your run needs less memory"},
    {"chunked_cross_entropy", NULL, "the loss upcasts logits a chunk at a time: your run needs less memory"},
    {"liger_cross_entropy", NULL, "the loss writes its gradient over the logits: your run needs less memory"},
    {"flash_attn_cross_entropy", NULL, "a fused loss: your run needs less memory"},
    {"liger_rope", NULL, "one kernel for the rotation: your run needs less memory and time than these kernels"},
    {"liger_rms_norm", NULL, "one kernel for each norm: your run needs less memory and time than these kernels"},
    {"liger_rms_norm_gated", NULL,
     "one kernel for each gated norm: your run needs less memory and time than these kernels"},
    {"liger_layer_norm", NULL, "one kernel for each norm: your run needs less memory and time than these kernels"},
    {"liger_swiglu", NULL, "one kernel for the activation, recomputed in backward: your run needs less memory"},
    {"liger_glu_activation", NULL, "one kernel for the activation, recomputed in backward: your run needs less memory"},
    {"liger_kernel_impl", NULL, "other kernels of Liger: the figures are of none"},
    {"heads_k_stride", "1",
     "keys and values of several heads are gathered at once: your run has fewer, larger gathers"},
    {"batch_flattening", NULL,
     "rows without padding, documents that attend to themselves only: your run computes less attention"},
    {"torch_compile_mode", "default",
     "another mode of torch.compile, such as CUDA graphs: the figures are of the default"},
    {"torch_compile_options", NULL, "options of torch.compile: the figures are of its defaults"},
    {"deepcompile", NULL, "DeepSpeed's compiler gathers and prefetches by profile: your run may need less time"},
    {"fp8_config", NULL, "a recipe of fp8: predicted in bf16"},
    {"fp8_enable_fsdp_float8_all_gather", NULL, "parameters gathered in fp8: your run moves half the bytes"},
    {"torch_empty_cache_steps", NULL, "the allocator's cache is emptied now and then: those steps stall"},
    {"ddp_bucket_cap_mb", "25", "another size of the buckets of gradients: latency and overlap differ"},
    {"peft_use_dora", NULL,
     "DoRA: magnitudes of the weights are trained beside the adapters, with passes of their own"},
    {"lora_on_cpu", NULL, "a model of reference on the CPU"},
    {"embeddings_skip_upcast", "true", "embeddings in fp32"},
    {"fp32_norms", NULL, "norms in fp32: a few more bytes moved"},
    {"fp32_norm_classes", NULL, "norms in fp32: a few more bytes moved"},
    {"float32", NULL, "everything in fp32"},
    {"sdpa_varlen", NULL, "torch's kernel for packed sequences: the figures are of a flash kernel"},
    {"flash_attn_fuse_mlp", NULL, "the feed-forward half is one kernel"},
    {"fused_attn_kernel", NULL, "a fused attention kernel of its own"},
    {"flash_attn_d512", NULL, "an attention kernel for wide heads"},
    {"large_head_attention", NULL, "an attention kernel for wide heads"},
    {"flex_attn_compile_kwargs", NULL, "options of flex attention: the figures are of a flash kernel"},
    {"scaling_softmax", NULL, "attention scaled by its length, which flex attention computes"},
    {"use_kernels", NULL, "kernels of the hub in place of those of transformers"},
    {"experts_implementation", NULL, "another implementation of routed experts, which the figures have none of"},
    {"use_scattermoe", NULL, "kernels for routed experts, which the figures have none of"},
    {"use_sonicmoe", NULL, "kernels for routed experts, which the figures have none of"},
    {"use_glm_dsa_kernels", NULL, "sparse attention of its own: the figures are of full attention"},
    {"use_dsv4_kernels", NULL, "kernels for one model, which the figures do not have"},
    {"dense_mixer", NULL, "all experts run: the figures have none"},
    {"qat", NULL, "weights are quantised in forward: your run needs more time"},
    {"kd_trainer", NULL, "a teacher's logits are trained on: your run needs more memory and time"},
    {"use_eaft", NULL, "another loss"},
    {"gradient_checkpointing_kwargs.every_n_layers", "1",
     "only every n-th layer is recomputed: your run needs more memory and less time"},
    {"gradient_checkpointing_kwargs.offload", NULL,
     "inputs of recomputed layers wait in host memory: your run needs less memory and more time"},
    {"auto_find_batch_size", NULL, "the batch shrinks until it fits: the figures are of the file's"},
    {"dsv4_bf16_all", NULL, "dtypes of one model"},
    {"dsv4_fp8_nonexpert_mode", NULL, "dtypes of one model"},
    {"gemma4_fp8_nonexpert", NULL, "dtypes of one model"},
    {"gemma4_nf4_nonexpert", NULL, "dtypes of one model"},
    {"dsv4_fp4_grouped_mode", NULL, "dtypes of one model"},
    {"grokfast_alpha", NULL, "a second copy of gradients is kept: your run needs more memory"},
    {"diffusion", NULL, "a diffusion objective: its attention sees both ways"},
    {NULL, NULL, NULL}};

// Another training than that of all parameters on whole sequences.
const ImportLeftOut axolotl_other_training[] = {
    {"rl", NULL, "training on preferences or rewards is not modelled yet"},
    {"reward_model", NULL, "a reward model is not modelled yet"},
    {"process_reward_model", NULL, "a reward model of steps is not modelled yet"},
    {"ebft", NULL, "a policy that generates is not modelled yet"},
    {"nemo_gym_enabled", NULL, "a policy that generates is not modelled yet"},
    {"unfrozen_parameters", NULL, "a part of the parameters is trained, which is not modelled yet"},
    {"spectrum_top_fraction", NULL, "a part of the parameters is trained, which is not modelled yet"},
    {"lisa_n_layers", NULL, "some layers are trained at a time, which is not modelled yet"},
    {"relora", NULL, "adapters that are merged now and then are not modelled yet"},
    {"mora", NULL, "adapters are not modelled yet"},
    {"gptq", NULL, "a base in GPTQ is not modelled yet"},
    {"model_quantization_config", NULL, "a quantised base is not modelled yet"},
    {"nonexpert_quantization", NULL, "a quantised base is not modelled yet"},
    {"quantize_moe_experts", NULL, "experts of a quantised base are not modelled yet"},
    {"use_onebitllms", NULL, "weights of one bit are not modelled yet"},
    {"llmcompressor", NULL, "training of a pruned or quantised model is not modelled yet"},
    {NULL, NULL, NULL}};

// Keys that its schema has kept to stop at.
const ImportLeftOut axolotl_gone[] = {
    {"max_packed_sequence_len", NULL, "max_packed_sequence_len is no longer supported"},
    {"rope_scaling", NULL, "rope_scaling is no longer supported: it is a key under model_config"},
    {"s2_attention", NULL, "s2_attention is no longer supported"},
    {"flash_attn_rms_norm", NULL, "flash_attn_rms_norm is no longer supported"},
    {"dpo_use_logits_to_keep", NULL, "dpo_use_logits_to_keep is no longer supported"},
    {"dpo_generate_during_eval", NULL, "dpo_generate_during_eval is no longer supported"},
    {"dpo_norm_loss", NULL, "dpo_norm_loss is no longer supported"},
    {"rpo_alpha", NULL, "rpo_alpha has been deprecated in TRL >= 0.29.0"},
    {NULL, NULL, NULL}};

// Lists, whatever is in them: a value of another type stops it.
const char *const axolotl_lists[] = {"tokens", "datasets", "test_datasets", "plugins", "eot_tokens", NULL};

const char *const axolotl_of_no_matter[] = {ignored_words, NULL};
