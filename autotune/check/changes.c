// Each change is applied to the first file alone. Axis sizes change only together: their product is the world.

#include "autotune/check/check.h"
#include "autotune/import/import.h"

typedef struct Pricing {
    CheckPair *pair;
    CheckPredict predict;
    void *context;
    Arena *arena;
} Pricing;

static Status price_tree(const Pricing *pricing, ConfigNode *root, CheckChange *effect, Error *error) {
    const Prediction *own = &pricing->pair->before.own;
    CheckSide side = {0};
    TRY(pricing->predict(pricing->context, root, &side, error));
    effect->priced = side.own.tokens_per_s > 0 && own->tokens_per_s > 0;
    if (effect->priced) {
        effect->slower = 1 - side.own.tokens_per_s / own->tokens_per_s;
        effect->more_bytes = side.own.memory.reserved_bytes - own->memory.reserved_bytes;
    }
    return STATUS_OK;
}

static Status price_rest(const Pricing *pricing, ConfigNode *root, Error *error) {
    CheckPair *pair = pricing->pair;
    CheckChange together = {0};
    for (int i = 0; i < pair->change_count; i++) {
        if (!pair->changes[i].alone) {
            root = config_with(root, &pair->changes[i].change, pricing->arena);
        }
    }
    TRY(price_tree(pricing, root, &together, error));
    for (int i = 0; i < pair->change_count; i++) {
        if (!pair->changes[i].alone) {
            together.change = pair->changes[i].change;
            pair->changes[i] = together;
        }
    }
    return STATUS_OK;
}

Status check_changes(CheckPair *pair, const char *before, const char *after, CheckPredict predict, void *context,
                     Arena *arena, Error *error) {
    const Pricing pricing = {pair, predict, context, arena};
    ConfigNode *from = NULL, *to = NULL;
    ConfigChange *changes = NULL;
    TRY(import_load_tree(before, arena, &from, error));
    TRY(import_load_tree(after, arena, &to, error));
    pair->change_count = config_changes(from, to, arena, &changes);
    pair->changes = ARENA_ARRAY(arena, CheckChange, pair->change_count);
    bool all_alone = true;
    for (int i = 0; i < pair->change_count; i++) {
        CheckChange *change = &pair->changes[i];
        change->change = changes[i];
        if (i < CHECK_PRICED_CHANGES) {
            TRY(price_tree(&pricing, config_with(from, &changes[i], arena), change, error));
        }
        change->alone = change->priced;
        all_alone &= change->alone;
    }
    return all_alone ? STATUS_OK : price_rest(&pricing, from, error);
}
