// Steps of request_resolve.

#pragma once

#include <stdarg.h>

#include "autotune/request/request.h"
#include "sim/base/arena.h"

typedef struct Builder {
    Asked *asked;
    const RequestDefaults *defaults;
    Arena *arena;
    TuneRequest *request;
    const char **assumptions, **defaults_taken;
} Builder;

// A sentence of request->assumptions.
void assume(Builder *builder, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Of what was assumed, the option that says otherwise: "seq", "4096".
void assume_default(Builder *builder, const char *option, const char *value);

// The part that an error is about: for error_set.
static inline Error *about(Asked *asked, int part, Error *error) {
    asked->about = part;
    return error;
}

// The shape of the one plan.
Status choose_mesh(Builder *builder, Error *error);

// A file of actions as the pipeline's schedule: the built-in one with the same order, else `file` and the order itself,
// along with its chunks and micro-steps.
Status choose_order_file(Builder *builder, Error *error);

// Megatron's layout string as the split that holds the same layers, with its chunks; after the model and the target.
Status choose_layout(Builder *builder, Error *error);

// What a file or a layout says of a choice: "FILE has 4 micro-batches"; whoever says something else is wrong.
Status say_number(Builder *builder, PlanFieldId id, const char *whose, const char *name, int number, Error *error);

// Precision, batch, the choices of plans and what is left open.
Status choose_precision(Builder *builder, Error *error);
void choose_batch(Builder *builder);
void choose_search(Builder *builder);
void say_without_effect(Builder *builder);
Status check_choices(Builder *builder, Error *error);
void refuse_choices(Builder *builder);
// What was asked about pipelines is what the target has, and says all that it needs.
Status check_stages(Builder *builder, Error *error);

// What is trained and on what, unless it is all parameters with fp32 masters on whole documents, and what is assumed
// about experts. `plan` has what the job specified.
void say_training(Builder *builder, const TrainPlan *plan);
void say_experts(Builder *builder, const TrainPlan *plan);
void say_loss(Builder *builder);
