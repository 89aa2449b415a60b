// Head and loss on all tokens, on parts of them, and fused in one kernel: the same work, in less memory.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/lowered.h"

static Arena arena;

static void clean(void) {
    arena_free(&arena);
}

TestSuite(loss_form, .fini = clean);

static double bytes_of(const StepProgram *program, const char *name) {
    double bytes = 0;
    for (int32_t i = 0; i < program->buffer_count; i++) {
        bytes += strcmp(program->buffers[i].name, name) == 0
                     ? (double)program->buffers[i].slots * (double)program->buffers[i].bytes
                     : 0;
    }
    return bytes;
}

static double flops_of(const StepProgram *program, const char *name, int *count) {
    double flops = 0;
    *count = 0;
    for (int32_t i = 0; i < program->task_count; i++) {
        const bool found = strcmp(program->tasks[i].name, name) == 0;
        flops += found ? program->tasks[i].flops : 0;
        *count += found;
    }
    return flops;
}

// 8192 tokens, 128,256 entries, hidden 4096: bf16 logits 2.1 GB, of Liger's 32 parts (entries / hidden, a power of two)
// 66 MB; torchtitan 0.3.0 has 8 parts (components/loss.py).
static StepProgram program_of(const char *target, LossForm loss) {
    return lowered(
        &arena,
        (LoweredRequest){
            .model = "llama-3-8b", .target = target, .mesh = "dp_shard=8", .seq = 8192, .bf16 = true, .loss = loss});
}

static const double LOGITS = 8192.0 * 128256;

Test(loss_form, parts_of_the_logits_take_the_place_of_all) {
    static const struct {
        const char *target;
        LossForm loss;
        int parts;
        double fp32_copies;
    } cases[] = {
        {"accelerate", LOSS_TARGET, 1, 2},     {"accelerate", LOSS_WHOLE, 1, 2},     {"accelerate", LOSS_FUSED, 32, 0},
        {"torchtitan@0.3", LOSS_TARGET, 8, 3}, {"torchtitan@0.3", LOSS_WHOLE, 1, 3}, {"ndtune", LOSS_CHUNKED, 8, 0},
        {"deepspeed", LOSS_CHUNKED, 4, 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const StepProgram program = program_of(cases[i].target, cases[i].loss);
        int heads, input, weight;
        cr_expect_eq(bytes_of(&program, "logits"), 2 * LOGITS / cases[i].parts, "%s %s", cases[i].target,
                     loss_form_names[cases[i].loss]);
        cr_expect_eq(bytes_of(&program, "logits_fp32"), cases[i].fp32_copies > 0 ? 4 * LOGITS / cases[i].parts : 0);
        cr_expect_eq(flops_of(&program, "head", &heads), 2 * LOGITS * 4096);
        cr_expect_eq(flops_of(&program, "head dgrad", &input), 2 * LOGITS * 4096);
        cr_expect_eq(flops_of(&program, "head wgrad", &weight), 2 * LOGITS * 4096);
        cr_expect(heads == cases[i].parts && input == heads && weight == heads, "%s: %d parts", cases[i].target, heads);
    }
}

// Transformer Engine's kernel writes the gradient over the bf16 logits: 2 bytes each, where Megatron's own has two fp32
// tensors of them besides.
Test(loss_form, a_loss_in_place_keeps_the_logits_alone) {
    const StepProgram in_place = program_of("megatron", LOSS_IN_PLACE), own = program_of("megatron", LOSS_WHOLE);
    cr_expect_eq(bytes_of(&in_place, "logits"), 2 * LOGITS);
    cr_expect_eq(bytes_of(&in_place, "logits_fp32") + bytes_of(&in_place, "log_softmax"), 0);
    cr_expect_eq(bytes_of(&own, "logits_fp32") + bytes_of(&own, "log_softmax"), 8 * LOGITS);
}

// Without its fused kernel the logits' fp32 copy becomes their softmax and then their gradient
// (tensor_parallel/cross_entropy.py of Megatron-LM since 9634c0e4a3).
Test(loss_form, a_loss_in_one_copy_keeps_one_fp32_tensor_of_the_logits) {
    const StepProgram one = program_of("megatron", LOSS_ONE_COPY);
    cr_expect_eq(bytes_of(&one, "logits_fp32"), 4 * LOGITS);
    cr_expect_eq(bytes_of(&one, "log_softmax"), 0);
}

// Its gradient is fp32 until all parts are through.
Test(loss_form, torchtitan_collects_the_gradient_of_the_head_s_input_in_fp32) {
    const StepProgram chunked = program_of("torchtitan@0.3", LOSS_TARGET);
    const StepProgram whole = program_of("torchtitan@0.3", LOSS_WHOLE);
    cr_expect_eq(bytes_of(&chunked, "dhead_in_fp32"), 4.0 * 8192 * 4096);
    cr_expect_eq(bytes_of(&whole, "dhead_in_fp32"), 0);
}

// x_grad = torch.zeros_like(x) of TiledFusedLogitsLoss (ulysses_sp.py of DeepSpeed 0.19.8).
Test(loss_form, deepspeed_collects_it_as_wide_as_the_input_is) {
    const StepProgram tiled = program_of("deepspeed", LOSS_CHUNKED);
    cr_expect_eq(bytes_of(&tiled, "dhead_in_fp32"), 0);
    cr_expect_eq(bytes_of(&tiled, "dhead_in_full"), 2.0 * 8192 * 4096);
}

// kernels/chunked_logprob.py of TRL 1.16: the product of its input and the head once more in backward.
Test(loss_form, trl_keeps_no_logits_and_runs_the_head_twice) {
    const StepProgram program = program_of("trl", LOSS_TARGET);
    int heads, again;
    cr_expect_eq(bytes_of(&program, "logits"), 2 * LOGITS / 32);
    cr_expect_eq(bytes_of(&program, "logits_fp32"), 0);
    cr_expect_eq(bytes_of(&program, "dhead_in_fp32"), 4.0 * 8192 * 4096);
    cr_expect_eq(flops_of(&program, "head again", &again), flops_of(&program, "head", &heads));
    cr_expect_eq(again, heads);
}

// loss/loss_utils.py of transformers, which TRL before 1.7 leaves as it is: logits, log-softmax and a gradient of it.
Test(loss_form, older_trl_keeps_three_fp32_tensors_of_the_logits) {
    const StepProgram program = program_of("trl@1.6", LOSS_TARGET);
    cr_expect_eq(bytes_of(&program, "logits_fp32"), 4 * LOGITS);
    cr_expect_eq(bytes_of(&program, "log_softmax"), 4 * LOGITS);
    cr_expect_eq(bytes_of(&program, "log_softmax gradient"), 4 * LOGITS);
}

// A loop of one's own over Automodel's kinds of layers, whose loss is Liger's in the fp32 copy of transformers'.
Test(loss_form, automodel_s_loss_may_be_written_over_one_fp32_copy) {
    const StepProgram own = program_of("automodel", LOSS_TARGET), copy = program_of("automodel", LOSS_ONE_COPY);
    cr_expect_eq(bytes_of(&own, "log_softmax"), 4 * LOGITS);
    cr_expect_eq(bytes_of(&copy, "logits_fp32"), 4 * LOGITS);
    cr_expect_eq(bytes_of(&copy, "log_softmax"), 0);
}

// transformers 5.16.1, which axolotl 0.19 pins: the head over tp, a tied embedding with it.
Test(loss_form, axolotl_splits_the_head_and_the_embedding_only_where_it_is_the_head) {
    static const struct {
        const char *target;
        bool tied;
        double parts;
    } cases[] = {{"axolotl@0.19", false, 2}, {"axolotl@0.18", false, 1}, {"axolotl@0.19", true, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const StepProgram program = lowered(
            &arena,
            (LoweredRequest){
                .target = cases[i].target, .mesh = "dp_shard=2,tp=2", .seq = 64, .bf16 = true, .tied = cases[i].tied});
        int heads;
        cr_expect_eq(flops_of(&program, "head", &heads), 2.0 * 64 * 1024 * 256 / cases[i].parts, "case %zu", i);
        int sums;
        flops_of(&program, "embedding sum", &sums);
        cr_expect_eq(sums > 0, cases[i].tied, "case %zu", i);
    }
}

// Of 32 parts, of which the product itself adds in releases before and since.
Test(loss_form, a_fused_loss_that_casts_its_sums_takes_elements_of_the_head_one_by_one) {
    static const struct {
        const char *target;
        bool casts;
    } cases[] = {{"accelerate@1.14", true}, {"accelerate@1.15", false}, {"accelerate@1.0", false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const StepProgram program = program_of(cases[i].target, LOSS_FUSED);
        int parts = 0;
        for (int32_t k = 0; k < program.task_count; k++) {
            const Task *task = &program.tasks[k];
            if (strcmp(task->name, "head wgrad") == 0) {
                cr_expect_eq(task->apart_elements, cases[i].casts ? (int64_t)2 * 128256 * 4096 : 0);
                parts++;
            }
        }
        cr_expect_eq(parts, 32);
        const double cast = cases[i].casts ? 128256.0 * 4096 : 0;  // 5,233 MiB in all on B200 (Liger-Kernel PR 1339)
        cr_expect_float_eq(bytes_of(&program, "head_part") + bytes_of(&program, "head_part_fp32"), 6 * cast, 0.5);
    }
    const StepProgram whole = program_of("accelerate@1.14", LOSS_WHOLE);
    for (int32_t k = 0; k < whole.task_count; k++) {
        cr_expect_eq(whole.tasks[k].apart_elements, 0);
    }
}
