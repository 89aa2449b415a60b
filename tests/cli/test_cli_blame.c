// ndtune blame as users and scripts call it, on dumps of real PyTorch jobs over gloo (tests/frameworks/blame), in each
// of which one fault was planted, or none.

#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/cli/cli.h"

static char folder[] = "/tmp/ndtune-blame-XXXXXX";

static void begin(void) {
    cr_assert_not_null(mkdtemp(folder));
    char command[512];
    snprintf(command, sizeof command, "tar -xJf %s -C %s", NDTUNE_SOURCE_DIR "/tests/cli/blame_cases.tar.xz", folder);
    cr_assert_eq(system(command), 0);
}

static void end(void) {
    char command[64];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_expect_eq(system(command), 0);
}

static bool same_ends(const json_t *place, const json_t *planted) {
    return json_equal(json_object_get(place, "from"), json_object_get(planted, "from")) &&
           json_equal(json_object_get(place, "to"), json_object_get(planted, "to"));
}

// Between whom the message was that the fault was planted in. Of a rank without a dump what others wait for it in is
// said.
static void check_message(const char *name, const json_t *planted, const json_t *said) {
    bool named = !json_object_get(planted, "from") || same_ends(json_object_get(said, "due"), planted);
    size_t index;
    const json_t *place;
    json_array_foreach(json_object_get(said, "awaited_in"), index, place) {
        named |= same_ends(place, planted);
    }
    cr_expect(named, "%s: %s", name, cli_text(said, "sentence"));
}

static void check_case(const char *name) {
    char path[512], dumps[512];
    json_error_t why;
    snprintf(path, sizeof path, "%s/%s/case.json", folder, name);
    snprintf(dumps, sizeof dumps, "%s/%s/dumps", folder, name);
    json_t *planted = json_load_file(path, 0, &why);
    cr_assert_not_null(planted, "%s: %s", path, why.text);
    const json_t *of = json_object_get(planted, "case");
    const char *kind = cli_text(of, "kind");
    const bool sound = strcmp(kind, "sound") == 0;
    char world[16];
    snprintf(world, sizeof world, "%d", (int)cli_number(of, "world"));
    json_t *said = CLI_JSON(sound ? 0 : 2, "blame", dumps, "--world", world, "--format", "json");
    cr_expect_str_eq(cli_text(said, "schema"), "ndtune.blame/1");
    cr_expect_str_eq(cli_text(said, "verdict"), sound ? "healthy" : kind, "%s: %s", name, cli_text(said, "sentence"));
    const json_t *ranks = json_object_get(said, "ranks");
    cr_assert_eq(json_array_size(ranks), sound ? 0 : 1, "%s", name);
    if (!sound) {
        cr_expect_eq(json_integer_value(json_array_get(ranks, 0)), json_integer_value(json_object_get(of, "victim")),
                     "%s: %s", name, cli_text(said, "sentence"));
    }
    check_message(name, json_object_get(planted, "planted"), said);
    json_decref(said);
    json_decref(planted);
}

Test(cli_blame, real_jobs_with_planted_faults_are_told_apart, .init = begin, .fini = end) {
    DIR *cases = opendir(folder);
    int count = 0;
    for (const struct dirent *entry = readdir(cases); entry; entry = readdir(cases)) {
        if (entry->d_name[0] != '.') {
            check_case(entry->d_name);
            count++;
        }
    }
    closedir(cases);
    cr_expect_geq(count, 22);
}

Test(cli_blame, what_is_no_folder_of_dumps_is_refused_in_words) {
    ProgramRun none = CLI("blame");
    cr_expect_eq(none.exit_code, 1);
    cr_expect_not_null(strstr(none.err, "blame reads a folder of dumps"));
    ProgramRun absent = CLI("blame", "/nowhere/at/all");
    cr_expect_eq(absent.exit_code, 3);
    cr_expect_not_null(strstr(absent.err, "cannot read the folder /nowhere/at/all"));
    ProgramRun other = CLI("blame", NDTUNE_SOURCE_DIR "/tests/golden/import/files");
    cr_expect_eq(other.exit_code, 1, "%s", other.err);
}

Test(cli_blame, a_pickle_that_would_run_something_is_refused_by_its_opcode) {
    char hostile[] = "/tmp/ndtune-hostile-XXXXXX", path[128];
    cr_assert_not_null(mkdtemp(hostile));
    snprintf(path, sizeof path, "%s/rank_0", hostile);
    FILE *file = fopen(path, "w");
    fputs("cos\nsystem\n(S'touch /tmp/ndtune-was-here'\ntR.", file);
    fclose(file);
    ProgramRun run = CLI("blame", hostile);
    cr_expect_eq(run.exit_code, 1);
    cr_expect_not_null(strstr(run.err, "byte 0: opcode GLOBAL (0x63) is refused"), "%s", run.err);
    cr_expect_neq(access("/tmp/ndtune-was-here", F_OK), 0);
    remove(path);
    rmdir(hostile);
}

#define STOPPED NDTUNE_SOURCE_DIR "/tests/golden/blame/stopped"

Test(cli_blame, a_shape_of_another_world_is_refused_and_the_step_is_named_in_the_answer) {
    ProgramRun smaller = CLI("blame", STOPPED, "--mesh", "dp_shard=2", "--model", "tiny");
    cr_expect_eq(smaller.exit_code, 1);
    cr_expect_not_null(strstr(smaller.err, "the dumps are of 4 ranks, not of 2"), "%s", smaller.err);
    ProgramRun shapeless = CLI("blame", STOPPED, "--model", "tiny");
    cr_expect_not_null(strstr(shapeless.err, "--model needs the shape: --mesh"));
    json_t *said = CLI_JSON(2, "blame", STOPPED, "--mesh", "dp_shard=2,tp=2", "--model", "tiny", "--format", "json");
    const json_t *program = json_object_get(said, "program");
    cr_expect_not_null(strstr(cli_text(program, "step"), "tiny on dp_shard=2,tp=2 for "));
    cr_expect_gt(cli_number(program, "compared"), 100);
    json_decref(said);
}

Test(cli_blame, csv_has_a_line_for_every_rank_and_the_table_says_who_is_blamed, .init = begin, .fini = end) {
    char dumps[512];
    snprintf(dumps, sizeof dumps, "%s/missing/dumps", folder);
    ProgramRun table = CLI("blame", dumps), csv = CLI("blame", dumps, "--format", "csv");
    cr_expect_eq(table.exit_code, 2);
    cr_expect_not_null(strstr(table.out, "Blamed: rank "));
    cr_expect_not_null(strstr(table.out, "What these dumps do not tell"));
    cr_expect_not_null(strstr(table.err, "never arrived at"));
    cr_expect_eq(strncmp(csv.out, "rank,host,blamed,stands,", 24), 0);
    int lines = 0;
    for (const char *at = csv.out; (at = strchr(at, '\n')); at++) {
        lines++;
    }
    cr_expect_geq(lines, 5);
}

Test(cli_blame, ranks_without_a_dump_are_one_line_and_the_reason_why_nobody_is_blamed) {
    ProgramRun run = CLI("blame", STOPPED, "--world", "512");
    cr_expect_eq(run.exit_code, 0);
    cr_expect(strstr(run.out, "nobody is blamed: only 4 of 512 ranks left a dump"), "%s", run.out);
    cr_expect(strstr(run.out, "\n  no dump of ranks 4 to 511\n"), "%s", run.out);
}

Test(cli_blame, the_page_is_one_file_that_says_what_the_table_says) {
    char page[] = "/tmp/ndtune-blame-XXXXXX", text[1 << 17] = "";
    const int made = mkstemp(page);
    cr_assert_geq(made, 0);
    ProgramRun run = CLI("blame", STOPPED, "--html", page);
    cr_expect_eq(run.exit_code, 2, "%s", run.err);
    cr_expect_not_null(strstr(run.out, "Blamed: rank 1 never arrived at"));
    cr_expect_not_null(strstr(run.out, ": rank 3 waited for it; "), "not how long, by the times of a checkout's files");
    const ssize_t length = read(open(page, O_RDONLY), text, sizeof text - 1);
    cr_assert_gt(length, 10000);
    cr_expect_not_null(
        strstr(text, "rank 1 never arrived at all-gather of 16.4 KiB (number 19 of mesh_dp of ranks 1, 3)"));
    cr_expect_not_null(strstr(text, "default-src 'none'; style-src 'sha256-"));
    cr_expect_null(strstr(text, "<script"));
    cr_expect_null(strstr(text, "http:"));
    cr_expect_null(strstr(text, "{{"));
    close(made);
    remove(page);
}

Test(cli_blame, a_page_that_cannot_be_written_is_said_before_anything_is_read) {
    ProgramRun run = CLI("blame", "/nowhere/at/all", "--html", "/nowhere/page.html");
    cr_expect_eq(run.exit_code, 3);
    cr_expect_not_null(strstr(run.err, "/nowhere/page.html cannot be written"), "%s", run.err);
}
