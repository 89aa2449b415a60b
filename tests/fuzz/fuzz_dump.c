// Arbitrary bytes as a flight-recorder dump, of every rank of a job. An invalid dump is refused in one sentence; for a
// valid one, a verdict blames only ranks that exist.

#include <stdio.h>
#include <unistd.h>

#include "autotune/blame/verdict.h"
#include "tests/fuzz/fuzz.h"

enum { RANKS = 3 };

static void judge(const DumpValue *root, Arena *arena) {
    Error error = {0};
    Dump dumps[RANKS];
    for (int rank = 0; rank < RANKS; rank++) {
        dumps[rank] = (Dump){.rank = rank, .path = "dump"};
        if (dump_of_value(root, arena, &dumps[rank], &error) != STATUS_OK) {
            fuzz_refused(&error);
            return;
        }
        dumps[rank].entry_count -= rank < dumps[rank].entry_count ? rank : 0;  // that differ at the end
    }
    Job job = {0};
    Verdict verdict;
    if (job_of_dumps(dumps, RANKS, 0, arena, &job, &error) != STATUS_OK) {
        fuzz_refused(&error);
        return;
    }
    verdict_find(&job, 0, arena, &verdict);
    for (int i = 0; i < verdict.rank_count; i++) {
        ASSERT(verdict.ranks[i] >= 0 && verdict.ranks[i] < job.world);
    }
    ASSERT(verdict.kind != VERDICT_HEALTHY || verdict.rank_count == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char path[64];
    Arena arena = {0};
    Error error = {0};
    const DumpValue *root = NULL;
    snprintf(path, sizeof path, "/tmp/ndtune-fuzz-%d", (int)getpid());
    fuzz_write_file(path, data, size);
    if (dump_read_file(path, &arena, &root, &error) == STATUS_OK) {
        judge(root, &arena);
    } else {
        fuzz_refused(&error);
    }
    remove(path);
    arena_free(&arena);
    return 0;
}
