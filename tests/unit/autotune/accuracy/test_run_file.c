// Reading run files: types, unknown values, and errors with their place.

#include <criterion/criterion.h>
#include <string.h>

#include "tests/support/run_program.h"
#include "tests/unit/autotune/accuracy/runs.h"

static Arena arena;

static void forget(void) {
    arena_free(&arena);
}

TestSuite(run_file, .fini = forget);

static Status read_text(const char *text, RunFile *file, Error *error) {
    char *folder = temp_dir_make();
    const Status status = run_file_read(run_text_file(&arena, folder, "runs.csv", text), &arena, file, error);
    temp_dir_remove(folder);
    return status;
}

Test(run_file, columns_are_found_by_name_in_any_order_and_extra_ones_ignored) {
    const RunFile file =
        run_file_of(&arena, "tp,cp,dp_shard,dp_replicate,mine,micro_batch,seq_len,target,cluster,vocab,"
                            "ffn,heads,hidden,layers,model,id\n"
                            "2,1,4,1,x,3,2048,accelerate,dgx-h100,32000,11008,32,4096,32,m,r1\n");
    cr_assert_eq(file.count, 1);
    cr_assert_str_eq(file.rows[0].id, "r1");
    cr_assert_eq(file.rows[0].mesh[AXIS_TP], 2);
    cr_assert_eq(file.rows[0].mesh[AXIS_DP_SHARD], 4);
    cr_assert_eq(file.rows[0].micro_batch, 3);
}

Test(run_file, columns_that_are_missing_are_named_and_unknown) {
    const RunFile file = run_file_of(&arena, "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,"
                                             "dp_shard,cp,tp,seq_len,micro_batch\n"
                                             "r1,m,32,4096,32,11008,32000,dgx-h100,accelerate,1,4,1,2,2048,3\n");
    bool zero = false;
    for (int i = 0; i < file.missing_count; i++) {
        zero = zero || strcmp(file.missing[i], "zero") == 0;
    }
    cr_assert(zero);
    cr_assert_eq(file.rows[0].plan_number[PLAN_ZERO], RUN_UNKNOWN);
    cr_assert_eq(file.rows[0].usable, 1, "a user's own rows are all meant to be scored");
}

// No stage holds no chunk: what a plan could not hold ended in a crash. A file of no other row is refused.
Test(run_file, numbers_of_a_plan_are_within_its_own_bounds) {
    RunFile file;
    Error error = {0};
    cr_assert_neq(read_text("id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,tp,pp,"
                            "seq_len,micro_batch,pp_schedule,virtual_stages\n"
                            "r1,m,32,4096,32,11008,32000,dgx-h100,ndtune,1,2,1,1,4,2048,1,zero-bubble,0\n",
                            &file, &error),
                  STATUS_OK);
    cr_assert_not_null(strstr(error.message, "virtual_stages takes a whole number from 1 to 63, not \"0\""), "%s",
                       error.message);
}

Test(run_file, a_profile_file_is_one_next_to_the_run_file) {
    char *folder = temp_dir_make();
    RunFile file;
    Error error = {0};
    const char *path = run_text_file(&arena, folder, "runs.csv",
                                     "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,"
                                     "tp,seq_len,micro_batch\n"
                                     "a,m,1,1,1,1,1,mine.json,ndtune,1,1,1,1,1,1\n"
                                     "b,m,1,1,1,1,1,/tmp/mine.json,ndtune,1,1,1,1,1,1\n"
                                     "c,m,1,1,1,1,1,dgx-h100,ndtune,1,1,1,1,1,1\n");
    cr_assert_eq(run_file_read(path, &arena, &file, &error), STATUS_OK, "%s", error.message);
    cr_assert_str_eq(file.rows[0].cluster, arena_format(&arena, "%s/mine.json", folder));
    cr_assert_str_eq(file.rows[1].cluster, "/tmp/mine.json");
    cr_assert_str_eq(file.rows[2].cluster, "dgx-h100");
    temp_dir_remove(folder);
}

Test(run_file, needed_columns_are_named_all_at_once) {
    RunFile file;
    Error error = {0};
    cr_assert_eq(
        read_text("id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,cp,tp,seq_len\n", &file, &error),
        STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "dp_shard, micro_batch"), "%s", error.message);
}

Test(run_file, a_bad_number_leaves_its_row_out_and_is_named_with_line_column_and_value) {
    static const struct {
        const char *from, *to, *says;
    } cases[] = {
        {"4096,32,8", "4096,thirty,8", "runs.csv:3:27: heads takes a whole number from 1 to 65536, not \"thirty\""},
        {"4096,32,8", "4096,-3,8", "runs.csv:3:27: heads takes a whole number"},
        {"4096,32,8", "4096,99999999999999999999,8", "not \"99999999999999999999\""},
        {"4096,32,8", "4096,3.5,8", "not \"3.5\""},
        {",1.5,", ",nan,", "step_time_s takes a number from 0"},
        {",1.5,", ",-1,", "step_time_s takes a number from 0"},
        {",1.5,", ",1e999,", "step_time_s takes a number from 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *line = run_line(&arena, (RunLine){.id = "b", .step_time_s = 1.5});
        const char *at = strstr(line, cases[i].from);
        cr_assert_not_null(at, "%s", line);
        const char *text = arena_format(&arena, "%s%s%.*s%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.id = "a"}),
                                        (int)(at - line), line, cases[i].to, at + strlen(cases[i].from));
        RunFile file;
        Error error = {0};
        cr_assert_eq(read_text(text, &file, &error), STATUS_OK, "%s", error.message);
        cr_expect_null(file.rows[0].unreadable);
        cr_assert_not_null(file.rows[1].unreadable, "case %zu", i);
        cr_expect_not_null(strstr(file.rows[1].unreadable, cases[i].says), "case %zu: %s", i, file.rows[1].unreadable);
    }
}

Test(run_file, a_row_that_is_of_no_use_may_have_bad_numbers) {
    const RunFile file = run_file_of(&arena, "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,"
                                             "dp_shard,cp,tp,seq_len,micro_batch,usable\n"
                                             "r1,m,32,4096,32,11008,32000,dgx-h100,accelerate,0,?,1,2,2048,3,0\n");
    cr_assert_eq(file.rows[0].usable, 0);
    cr_assert_eq(file.rows[0].mesh[AXIS_DP_REPLICATE], 0, "unknown");
}

Test(run_file, an_id_twice_is_named_with_both_lines) {
    const char *text = arena_format(&arena, "%s%s%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.id = "x"}),
                                    run_line(&arena, (RunLine){.id = "y"}), run_line(&arena, (RunLine){.id = "x"}));
    RunFile file;
    Error error = {0};
    cr_assert_eq(read_text(text, &file, &error), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "runs.csv:4: the id \"x\" is that of line 2 too"), "%s", error.message);
}

Test(run_file, an_empty_id_is_refused) {
    RunFile file;
    Error error = {0};
    cr_assert_eq(
        read_text(arena_format(&arena, "%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.id = ""})), &file, &error),
        STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "runs.csv:2:1: the id is empty"), "%s", error.message);
}

static Status read_groups(const RunFile *runs, const char *text, RunGroups *groups, Error *error) {
    char *folder = temp_dir_make();
    const char *path = run_text_file(&arena, folder, "groups.csv", text);
    const Status status = run_groups_read(path, runs, &arena, groups, error);
    temp_dir_remove(folder);
    return status;
}

Test(run_file, groups_name_rows_by_id_and_count_ids_that_are_not_there) {
    const RunFile runs =
        run_file_of(&arena, arena_format(&arena, "%s%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.id = "b"}),
                                         run_line(&arena, (RunLine){.id = "a"})));
    RunGroups groups = {0};
    Error error = {0};
    cr_assert_eq(read_groups(&runs, "group,kind,ids\ng1,mesh,a  b c\n", &groups, &error), STATUS_OK, "%s",
                 error.message);
    cr_assert_eq(groups.count, 1);
    cr_assert_eq(groups.groups[0].row_count, 2);
    cr_assert_eq(groups.groups[0].rows[0], 1);
    cr_assert_eq(groups.groups[0].rows[1], 0);
    cr_assert_eq(groups.groups[0].unknown_ids, 1);
}

Test(run_file, a_row_is_of_the_half_of_its_first_group_that_says_one) {
    const char *lines = arena_format(&arena, "%s%s%s", run_line(&arena, (RunLine){.id = "a"}),
                                     run_line(&arena, (RunLine){.id = "b"}), run_line(&arena, (RunLine){.id = "c"}));
    const RunFile runs = run_file_of(&arena, arena_format(&arena, "%s%s", RUNS_HEADER, lines));
    RunGroups groups = {0};
    Error error = {0};
    const char *text = "group,half,ids\r\ng0,,a b\r\ng1,fitted,a\r\ng2,held,a b\r\n";
    cr_assert_eq(read_groups(&runs, text, &groups, &error), STATUS_OK, "%s", error.message);
    cr_assert_str_eq(runs.rows[0].half, "fitted");
    cr_assert_str_eq(runs.rows[1].half, "held");
    cr_assert_null(runs.rows[2].half);
}

Test(run_file, groups_without_their_columns_are_refused) {
    const RunFile runs = run_file_of(&arena, RUNS_HEADER);
    RunGroups groups = {0};
    Error error = {0};
    cr_assert_eq(read_groups(&runs, "name,rows\n", &groups, &error), STATUS_USAGE);
    cr_assert_not_null(strstr(error.message, "group, ids"), "%s", error.message);
}

static const char *one_row(const char *folder, const char *name, const char *id) {
    return run_text_file(&arena, folder, name,
                         arena_format(&arena, "%s%s", RUNS_HEADER, run_line(&arena, (RunLine){.id = id})));
}

Test(run_file, several_files_are_read_as_one_with_the_groups_of_all) {
    char *folder = temp_dir_make();
    const char *const paths[] = {one_row(folder, "a.csv", "a"), one_row(folder, "b.csv", "b"), NULL};
    RunFile file;
    RunGroups groups = {0};
    Error error = {0};
    cr_assert_eq(run_files_read(paths, &arena, &file, &error), STATUS_OK, "%s", error.message);
    temp_dir_remove(folder);
    cr_assert_eq(file.count, 2);
    cr_assert_str_eq(file.rows[1].id, "b");
    cr_assert_str_eq(file.path, arena_format(&arena, "%s, %s", paths[0], paths[1]));
    cr_assert_eq(read_groups(&file, "group,ids\nfirst,a\n", &groups, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(read_groups(&file, "group,ids\nsecond,a b\n", &groups, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(groups.count, 2);
    cr_assert_str_eq(groups.groups[0].name, "first");
    cr_assert_eq(groups.groups[1].row_count, 2);
}

Test(run_file, an_id_of_two_files_is_named_with_both) {
    char *folder = temp_dir_make();
    const char *const paths[] = {one_row(folder, "a.csv", "x"), one_row(folder, "b.csv", "x"), NULL};
    RunFile file;
    Error error = {0};
    cr_assert_eq(run_files_read(paths, &arena, &file, &error), STATUS_USAGE);
    temp_dir_remove(folder);
    cr_assert_not_null(strstr(error.message, "b.csv:2: the id \"x\" is that of line 2 of "), "%s", error.message);
}

// What one file lacks is unknown of some rows, whatever the others have.
Test(run_file, columns_that_one_of_the_files_lacks_are_named_once) {
    char *folder = temp_dir_make();
    static const char few[] = "id,model,layers,hidden,heads,ffn,vocab,cluster,target,dp_replicate,dp_shard,cp,tp,"
                              "seq_len,micro_batch\n";
    const char *const paths[] = {one_row(folder, "a.csv", "a"), run_text_file(&arena, folder, "b.csv", few),
                                 run_text_file(&arena, folder, "c.csv", few), NULL};
    RunFile file;
    Error error = {0};
    cr_assert_eq(run_files_read(paths, &arena, &file, &error), STATUS_OK, "%s", error.message);
    temp_dir_remove(folder);
    int zero = 0;
    for (int i = 0; i < file.missing_count; i++) {
        zero += strcmp(file.missing[i], "zero") == 0;
    }
    cr_assert_eq(zero, 1);
}
