// The MLP in tiles (0.19, monkeypatch/tiled_mlp/patch.py): a switch, and a number of tiles.

#include <string.h>

#include "sim/frameworks/axolotl/axolotl_files.h"

#define SWITCH "tiled_mlp"
#define NUMBER SWITCH "_num_shards"

// Default tile size, in tokens of a sequence, when no number is given.
enum { TOKENS_OF_TILE = 32768, MOST_TILES = 1023 };

// FSDP version 1 is predicted as another framework's.
static bool is_predicted(Import *import) {
    return strcmp(import->target, "axolotl") == 0 && !import_has(import, "adapter") && import->said.size[AXIS_TP] <= 1;
}

Status axolotl_read_tiles(Import *import, Error *error) {
    const ImportChoices *said = &import->said;
    const int cp = said->size[AXIS_CP] > 1 ? said->size[AXIS_CP] : 1, local = said->seq / cp;
    int on = 0, tiles = local > TOKENS_OF_TILE ? (local + TOKENS_OF_TILE - 1) / TOKENS_OF_TILE : 1;
    import_known(import, (const char *const[]){SWITCH "_use_original_mlp", NULL});
    TRY(import_bool(import, SWITCH, &on, error));
    TRY(import_int(import, NUMBER, 1, MOST_TILES, &tiles, error));
    if (!on) {
        return STATUS_OK;
    }
    if (!is_predicted(import)) {
        import_find(import, FINDING_UNMODELLED, SWITCH,
                    "the feed-forward half runs tile by tile, which is predicted of FSDP version 2 and of replicas, "
                    "without adapters and tensor parallelism: your run needs less memory, and its forward runs twice");
        return STATUS_OK;
    }
    const int asked = tiles, tokens = said->micro_batch * local;
    while (tokens % tiles != 0) {
        tiles--;
    }
    FIND_IF(tiles != asked, import, FINDING_ASSUMED, NUMBER, "%d tiles are not equal: predicted with %d", asked, tiles);
    import->said.choice[PLAN_MLP_TILES] = tiles;
    return STATUS_OK;
}

void axolotl_write_tiles(const ConfigJob *job, FILE *out) {
    PRINT_IF(job->plan->mlp_tiles > 0, out, SWITCH ": true\n" NUMBER ": %d\n", job->plan->mlp_tiles);
}
