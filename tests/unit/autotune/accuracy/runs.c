// Rows as the reader and the predictor would produce them, without either.

#include "tests/unit/autotune/accuracy/runs.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "autotune/accuracy/run_case.h"
#include "tests/support/run_program.h"
#include "tests/support/sizes.h"

static const char *word(const char *given, const char *fallback) {
    return given ? given : fallback;
}

static int number(int given, int fallback) {
    return given ? given : fallback;
}

static const char *number_text(Arena *arena, double value) {
    return value > 0 ? arena_format(arena, "%.17g", value) : "";
}

const char *run_line(Arena *arena, RunLine line) {
    return arena_format(
        arena,
        "%s,%s,llama-3-8b,32,4096,32,8,14336,128256,%s,%s,%s,%s,1,%d,1,%d,%d,4096,%d,1,%s,%s,%s,%s,,%s,%s,%s,%d\n",
        word(line.id, "a"), word(line.source, "ours"), word(line.mlp, "swiglu"), word(line.cluster, "dgx-h100"),
        word(line.overrides, ""), word(line.target, "accelerate"), number(line.dp_shard, 8), number(line.tp, 1),
        number(line.pp, 1), number(line.micro_batch, 1), word(line.zero, number(line.dp_shard, 8) > 1 ? "3" : "0"),
        word(line.recompute, "full"), word(line.dtype, "bf16"), number_text(arena, line.step_time_s),
        number_text(arena, line.peak_mem_gb), word(line.mem_kind, ""), number_text(arena, line.gpu_mem_gb),
        !line.unusable);
}

const char *run_text_file(Arena *arena, const char *folder, const char *name, const char *text) {
    const char *path = arena_format(arena, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file, "%s", path);
    fputs(text, file);
    cr_assert_eq(fclose(file), 0);
    return path;
}

RunFile run_file_of(Arena *arena, const char *text) {
    char *folder = temp_dir_make();
    const char *path = run_text_file(arena, folder, "runs.csv", text);
    RunFile file;
    Error error = {0};
    cr_assert_eq(run_file_read(path, arena, &file, &error), STATUS_OK, "%s", error.message);
    temp_dir_remove(folder);
    return file;
}

RunCase text_case(Arena *arena, const char *text) {
    const RunFile file = run_file_of(arena, text);
    RunCase run;
    run_case_build(run_mapper_new(arena), &file.rows[0], &run);
    return run;
}

RunCase line_case(Arena *arena, RunLine line, const char *columns, const char *values) {
    const int header = (int)strlen(RUNS_HEADER) - 1;  // both end in a newline
    const char *text = run_line(arena, line);
    return text_case(arena, arena_format(arena, "%.*s,%s\n%.*s,%s\n", header, RUNS_HEADER, columns,
                                         (int)strlen(text) - 1, text, values));
}

RunCase *scored_rows(Arena *arena, const ScoredRow *rows, int count) {
    RunCase *cases = ARENA_ARRAY(arena, RunCase, count);
    for (int i = 0; i < count; i++) {
        RunRow *row = ARENA_NEW(arena, RunRow);
        *row = (RunRow){.id = "row",
                        .source = word(rows[i].source, "ours"),
                        .mem_kind = word(rows[i].mem_kind, ""),
                        .peak_mem_gb = rows[i].peak_mem_gb};
        RunCase *run = &cases[i];
        run->row = row;
        run->request.target = &target_table(&(int){0})[0];
        snprintf(run->request.cluster.name, sizeof run->request.cluster.name, "here");
        run->plan = (TrainPlan){.mesh = {SIZES(1, 1, 1, 1)}, .seq = 4096, .micro_batch = 1, .grad_accum = 1};
        run->measured_step_s = rows[i].measured_s;
        run->prediction = (Prediction){.step_s = rows[i].predicted_s,
                                       .step_low_s = 0.8 * rows[i].predicted_s,
                                       .step_high_s = 1.25 * rows[i].predicted_s,
                                       .mfu = rows[i].mfu,
                                       .memory = {.peak_bytes = rows[i].peak_bytes},
                                       .content_hash = (uint64_t)rows[i].plan};
    }
    return cases;
}
