// What run files state and plans cannot express: one row each, named in the report with the number of rows affected, so
// that a missing switch is not mistaken for a modelling error. When support for a switch lands, its row is removed.

#include <string.h>

#include "autotune/accuracy/run_case.h"

static bool pure_bf16(const RunCase *run) {
    return strstr(run->row->precision, "weights bfloat16") != NULL &&
           run->request.target->bf16_optimizer_bytes_per_parameter <= 0;
}

static bool reduces_in_fp32(const RunCase *run) {
    return strstr(run->row->precision, "fp32 reduce") != NULL && run->plan.reduce_dtype != REDUCE_DTYPE_FP32 &&
           run->request.target->reduce_dtype_bf16 != DTYPE_FP32;
}

static bool no_batch(const RunCase *run) {
    return run->row->grad_accum == 0 && run->row->global_batch == 0;
}

static bool other_sequence(const RunCase *run) {
    return run->plan.seq != run->row->seq;
}

static bool has_tp(const RunCase *run) {
    return run->plan.mesh.size[AXIS_TP] > 1;
}

static bool sequence_parallel(const RunCase *run) {
    return has_tp(run) && run->row->sp == 1 && target_tp_flavour(run->request.target, &run->plan) != TP_SP;
}

static bool no_sequence_parallel(const RunCase *run) {
    return has_tp(run) && run->row->sp != 1 && target_tp_flavour(run->request.target, &run->plan) == TP_SP;
}

static const RunLoss losses[] = {
    {"precision", "parameters and optimizer state are bf16; the target keeps fp32 masters", pure_bf16},
    {"precision", "gradients are reduced in fp32; the target reduces in bf16", reduces_in_fp32},
    {"grad_accum", "neither accumulation nor global batch is given: taken as 1", no_batch},
    {"sp", "tensor parallelism with sequence parallelism; the target runs it without", sequence_parallel},
    {"sp", "tensor parallelism without sequence parallelism, or unknown; the target runs it with",
     no_sequence_parallel},
    {"seq_len", "step time and tokens/s say sequences of another length: those are taken", other_sequence},
};

const RunLoss *run_case_losses(int *count) {
    *count = (int)(sizeof losses / sizeof losses[0]);
    return losses;
}
