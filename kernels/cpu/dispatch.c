// One symbol per kernel, bound at load time (GNU indirect function) to the best tier this processor runs. The build
// reads the names from here: in the families of a tier each carries the tier's name. A resolver
// runs before the program is fully relocated, so it reads only the CPUID flags and has no sanitizer checks. Not
// modelled: preferences within a tier (a processor that clocks down for 512-bit vectors still gets them).

#include "kernels/half.h"
#include "kernels/kernels.h"
#include "kernels/latent.h"
#include "kernels/shared_expert.h"

#define DISPATCH(name)                                                                                                 \
    extern __typeof__(name) name##_base, name##_avx2, name##_avx512;                                                   \
    __attribute__((no_sanitize("address", "undefined", "thread"), used)) static __typeof__(name) *name##_resolve(      \
        void) {                                                                                                        \
        __builtin_cpu_init();                                                                                          \
        if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&                                 \
            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw")) {                                \
            return name##_avx512;                                                                                      \
        }                                                                                                              \
        return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? name##_avx2 : name##_base;            \
    }                                                                                                                  \
    __typeof__(name) name __attribute__((ifunc(#name "_resolve")))

DISPATCH(kernel_embed);
DISPATCH(kernel_embed_backward);
DISPATCH(kernel_norm);
DISPATCH(kernel_norm_backward);
DISPATCH(kernel_stretch_norm);
DISPATCH(kernel_stretch_norm_backward);
DISPATCH(kernel_rope);
DISPATCH(kernel_attention);
DISPATCH(kernel_attention_delta);
DISPATCH(kernel_attention_sinks);
DISPATCH(kernel_attention_sinks_backward);
DISPATCH(kernel_attention_backward);
DISPATCH(kernel_activation);
DISPATCH(kernel_activation_backward);
DISPATCH(kernel_gated);
DISPATCH(kernel_gated_backward);
DISPATCH(kernel_loss_max);
DISPATCH(kernel_loss_sum);
DISPATCH(kernel_loss_gradient);
DISPATCH(kernel_loss);
DISPATCH(kernel_loss_cap);
DISPATCH(kernel_add);
DISPATCH(kernel_add_bias);
DISPATCH(kernel_column_sum);
DISPATCH(kernel_copy_rows);
DISPATCH(kernel_zero);
DISPATCH(kernel_square_sum);
DISPATCH(kernel_route);
DISPATCH(kernel_route_backward);
DISPATCH(kernel_spread);
DISPATCH(kernel_collect);
DISPATCH(kernel_collect_backward);
DISPATCH(kernel_regroup);
DISPATCH(kernel_shared);
DISPATCH(kernel_shared_backward);
DISPATCH(kernel_join_keys);
DISPATCH(kernel_part_keys);
DISPATCH(kernel_count_visits);
DISPATCH(kernel_balance_backward);
DISPATCH(kernel_normal);
DISPATCH(kernel_adamw);
DISPATCH(kernel_widen);
DISPATCH(kernel_narrow);
