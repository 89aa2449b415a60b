// What a script of Megatron's sets of Muon beside its defaults, which plans have: five steps of three products in bf16
// on each matrix, q, k and v apart (core/optimizer/emerging_optimizers.py; newton_schulz of Emerging-Optimizers).

#include <string.h>

#include "sim/frameworks/megatron/megatron_read.h"

enum { STEPS_PRICED = 5, STEPS_MOST = 1000 };

static Status read_steps(Import *import, int *steps, Error *error) {
    static const char path[] = "--muon-num-ns-steps";
    *steps = STEPS_PRICED;
    TRY(import_int(import, path, 1, STEPS_MOST, steps, error));
    FIND_IF(*steps != STEPS_PRICED, import, FINDING_UNMODELLED, path,
            "%d steps of Newton and Schulz on each matrix: predicted with %d, the default, your run needs %s time",
            *steps, STEPS_PRICED, *steps > STEPS_PRICED ? "more" : "less");
    return STATUS_OK;
}

// Without c a step has no square of A (newton_schulz_step): all of cubic5, whose steps are as many as its rows.
static Status read_coefficients(Import *import, int steps, Error *error) {
    static const char path[] = "--muon-coefficient-type", cubic[] = "cubic5";
    static const char *const of_three_products[] = {"simple", "quintic", "polar_express", "cans", "aol", "deepseekv4"};
    const char *type = "quintic";
    bool known = false;
    TRY(import_word(import, path, &type, error));
    for (size_t i = 0; i < sizeof of_three_products / sizeof of_three_products[0]; i++) {
        known |= strcmp(type, of_three_products[i]) == 0;
    }
    if (strcmp(type, cubic) == 0) {
        FIND_IF(steps != STEPS_PRICED, import, FINDING_REFUSED, path,
                "cubic5 is a fixed 5-step schedule; got steps=%d. Use --muon-num-ns-steps 5", steps);
        import_find(import, FINDING_UNMODELLED, path,
                    "cubic5 has two products a step: predicted with three, as of quintic, your run needs less time");
        return STATUS_OK;
    }
    FIND_IF(!known, import, FINDING_UNMODELLED, path,
            "coefficients %s are not known: predicted with three products a step, as simple, quintic, polar_express, "
            "cans, aol and deepseekv4 have",
            type);
    return STATUS_OK;
}

static Status read_numbers(Import *import, Error *error) {
    static const char precision[] = "--muon-fp32-matmul-prec", scalars[] = "--muon-scalar-optimizer";
    enum { LOW, MEDIUM, HIGH, ADAM = 0, LION };
    static const ImportWord precisions[] = {{"low", LOW}, {"medium", MEDIUM}, {"high", HIGH}, {NULL, 0}};
    static const ImportWord optimizers[] = {{"adam", ADAM}, {"lion", LION}, {NULL, 0}};
    int level = MEDIUM, optimizer = ADAM;
    TRY(import_choice(import, precision, precisions, &level, error));
    TRY(import_choice(import, scalars, optimizers, &optimizer, error));
    FIND_IF(level != MEDIUM, import, FINDING_UNMODELLED, precision,
            "%s: products of fp32 and not of bf16; predicted with medium, your run needs more time",
            precisions[level].word);
    FIND_IF(optimizer == LION, import, FINDING_UNMODELLED, scalars,
            "lion has one state of embeddings and norms: predicted with the two of adam, your run needs less memory");
    return STATUS_OK;
}

Status megatron_read_muon(Import *import, Error *error) {
    static const struct {
        const char *path, *sentence;
        bool of_dealt;  // matters where matrices are dealt out
    } switches[] = {
        {"--muon-use-syrk", "products that are symmetric are computed by half: your run needs less time", false},
        {"--muon-no-split-qkv", "q, k and v are one matrix: predicted as three, your run's update differs", false},
        {"--no-use-layer-wise-param-layout",
         "whole gradients are reduced and one rank holds all states of the embedding: predicted with both "
         "spread over ranks, your run needs more memory and time",
         true}};
    int steps = 0;
    TRY(read_steps(import, &steps, error));
    TRY(read_coefficients(import, steps, error));
    TRY(read_numbers(import, error));
    for (size_t i = 0; i < sizeof switches / sizeof switches[0]; i++) {
        int on = 0;
        TRY(import_bool(import, switches[i].path, &on, error));
        FIND_IF(on && (!switches[i].of_dealt || import->said.choice[PLAN_ZERO] > 0), import, FINDING_UNMODELLED,
                switches[i].path, "%s", switches[i].sentence);
    }
    return STATUS_OK;
}
