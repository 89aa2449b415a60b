// Packed weights as TRL before 0.25 prepared them: peft's prepare_model_for_kbit_training (utils/other.py) turns all
// that is not packed to fp32, then peft_module_casting_to_bf16 (TRL) embedding and head back to bf16.
// A norm with fp32 weights writes fp32, a packed linear layer casts what it reads to the working dtype and its result
// back (bitsandbytes, nn/modules.py: Linear4bit.forward): the stream between layers, their gradients and all that is
// elementwise are fp32. Attention casts queries, keys and values (transformers, modeling_llama.py), and its results and
// the layer that reads them stay as they are. FSDP's sharded weights are not prepared (sft_trainer.py:
// is_sharded_qlora). The casts of a product are in its cast_bytes. Of 8-bit weights embedding and head stay in fp32:
// not modelled, and neither are copies that live within a product.

#include "sim/step/lower_ops.h"

const char *const upcast_tensors[] = {"x",
                                      "embedded",
                                      "x_mid",
                                      "attention_in",
                                      "attention_in_full",
                                      "q",
                                      "k",
                                      "v",
                                      "wq frozen out",
                                      "wk frozen out",
                                      "wv frozen out",
                                      "mlp_in",
                                      "mlp_in_full",
                                      "gate",
                                      "up",
                                      "gate_up",
                                      "wgate frozen out",
                                      "wup frozen out",
                                      "wdown frozen out",
                                      "activation_values",
                                      "activation_out",
                                      "mlp_sum",
                                      "mlp_sum_between",
                                      "head_in",
                                      "head_in_full",
                                      "dx",
                                      "dx_mid",
                                      "dx_full",
                                      "dx_aside",
                                      "dq",
                                      "dk",
                                      "dv",
                                      "dattention_in",
                                      "dattention_in_full",
                                      "dattention_in_part",
                                      "dmlp_in",
                                      "dmlp_in_full",
                                      "dmlp_in_part",
                                      "dgate",
                                      "dup",
                                      "dgate_up",
                                      "dactivation",
                                      "dattention_sum_full",
                                      "dmlp_sum_full",
                                      "dhead_in",
                                      "dhead_in_full",
                                      NULL};

static bool lowering_upcasts(const Lowering *lowering) {
    return lowering->target->upcasts_norms && weights_are_packed(lowering) && lowering->plan->zero != 3 &&
           dtype_bytes(lowering->dims.dtype) < dtype_bytes(DTYPE_FP32);
}

bool is_upcast(const Lowering *lowering, const char *tensor) {
    return lowering_upcasts(lowering) && is_named(upcast_tensors, tensor);
}

// Of what a product reads or writes in fp32 there: read in one dtype and written in the other.
void add_product_cast(const Lowering *lowering, Op *op, OpRef ref) {
    if (lowering_upcasts(lowering) && lowering->tensors[ref.tensor].dtype == DTYPE_FP32) {
        const int64_t wide = dtype_bytes(DTYPE_FP32), elements = ref.bytes / wide;
        const int64_t bytes = elements * (wide + lowering->dims.element);
        const bool apart = lowering->plan->fused != FUSED_COMPILED;
        op->task.cast_bytes += bytes;
        op->task.apart_elements += apart ? elements : 0;
        op->task.apart_bytes += apart ? bytes : 0;
    }
}

// PyTorch's kernels take elements one by one where their operands are of two dtypes (lower_apart.c); compiled ones not.
void take_elements_apart(const Lowering *lowering, Op *op) {
    if (lowering->plan->fused == FUSED_COMPILED) {
        return;
    }
    int64_t elements = 0, bytes = 0;
    unsigned dtypes = 0;
    for (int i = 0; i < op->operand_count; i++) {
        const OpRef *ref = &op->operands[i];
        const Dtype dtype = lowering->tensors[ref->tensor].dtype;
        dtypes |= 1u << dtype;
        elements = ref->bytes / dtype_bytes(dtype);
        bytes += ref->bytes;
    }
    const bool differ = dtypes & (dtypes - 1);
    op->task.apart_elements = differ ? elements : 0;
    op->task.apart_bytes = differ ? bytes : 0;
}

void cast_values(Lowering *lowering, Section section, const char *name, OpRef from, OpRef to) {
    const Dtype dtype = lowering->tensors[from.tensor].dtype;
    Op *op = op_copy(lowering, section, layer_phase(section), name, 1, from.bytes / dtype_bytes(dtype), from, to);
    op->task.dtype = dtype;
    take_elements_apart(lowering, op);
}

// What attention reads, or its gradients of that: in the working dtype.
AttentionRefs attention_halves(Lowering *lowering, const AttentionRefs *wide, const char *const names[MAX_PARTS]) {
    AttentionRefs half = *wide;
    OpRef *const refs[MAX_PARTS] = {&half.q, &half.k, &half.v};
    for (int i = 0; i < MAX_PARTS; i++) {
        if (is_upcast(lowering, lowering->tensors[refs[i]->tensor].name)) {
            const int64_t elements = refs[i]->bytes / dtype_bytes(DTYPE_FP32);
            *refs[i] = op_whole(lowering, activation(lowering, names[i], elements));
        }
    }
    return half;
}

void add_attention_casts(Lowering *lowering, Section section, const AttentionRefs *from, const AttentionRefs *to) {
    const OpRef read[MAX_PARTS] = {from->q, from->k, from->v}, made[MAX_PARTS] = {to->q, to->k, to->v};
    for (int i = 0; i < MAX_PARTS; i++) {
        if (read[i].tensor != made[i].tensor) {
            cast_values(lowering, section, "cast", read[i], made[i]);
        }
    }
}
