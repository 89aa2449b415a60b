// What launch scripts start: a run of another file, a program that is none of the frameworks', scripts beside them.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"

static void expect_not_read(const char *text, const char *words) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    ConfigNode *root = NULL;
    cr_assert_eq(config_parse(text, "file", SYNTAX_SHELL, &arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(import_tree(root, "file", "auto", &arena, &import, &error), STATUS_USAGE, "%s", text);
    cr_expect(strstr(error.message, words), "%s", error.message);
    arena_free(&arena);
}

Test(import_launches, a_script_that_starts_a_run_of_a_config_names_it) {
    expect_not_read("A=1\ntorchrun --nproc_per_node=8 run_train.py --config-file x/c.yaml\n",
                    "file:2: this starts a run of x/c.yaml: give that file to --from");
}

// Whose options read as the Trainer's otherwise.
Test(import_launches, arguments_of_ms_swift_are_refused_by_its_name) {
    static const char *const starts[] = {"swift sft", "torchrun swift/cli/sft.py", "python -m swift.cli.pt"};
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        char text[256];
        snprintf(text, sizeof text, "%s --model_name_or_path x --per_device_train_batch_size 1 --max_length 2048\n",
                 starts[i]);
        expect_not_read(text, "this starts ms-swift");
    }
}

Test(import_launches, arguments_of_ms_swift_are_refused_whatever_they_are_named) {
    expect_not_read("swift sft --external_plugins x/data.py --per_device_train_batch_size 1 --max_length 2048\n",
                    "this starts ms-swift (swift sft)");
    expect_not_read("megatron sft --tensor_model_parallel_size 2 --micro_batch_size 1 --train_type full\n",
                    "this starts ms-swift (megatron sft)");
}

// DeepSpeed-Chat's.
Test(import_launches, a_program_that_makes_its_configuration_has_no_file_to_give) {
    expect_not_read("deepspeed main.py --model_name_or_path x --per_device_train_batch_size 8 --zero_stage 2 "
                    "--deepspeed\n",
                    "file:1: this trains with DeepSpeed, whose configuration the program makes itself of zero_stage 2");
}

Test(import_launches, a_sourced_script_is_said_not_to_be_read) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"source x/arguments.sh\n", "line 1 sources x/arguments.sh, which is not read"},
        {"\n. ./arguments.sh\n", "line 2 sources ./arguments.sh, which is not read"},
        {"source venv/bin/activate\n", NULL},
        {"if [ 1 = 2 ]; then source a.sh; fi\n", NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Import import;
        Error error = {0};
        ConfigNode *root = NULL;
        const char *text = arena_format(&arena, "%spython train.py --per_device_train_batch_size 1\n", cases[i].text);
        cr_assert_eq(config_parse(text, "file", SYNTAX_SHELL, &arena, &root, &error), STATUS_OK, "%s", error.message);
        cr_assert_eq(import_tree(root, "file", "auto", &arena, &import, &error), STATUS_OK, "%s", error.message);
        const char *said = NULL;
        for (int j = 0; j < import.finding_count; j++) {
            said = strstr(import.findings[j].sentence, "sources") ? import.findings[j].sentence : said;
        }
        cr_expect_eq(said != NULL, cases[i].words != NULL, "%s", text);
        cr_expect(!said || !cases[i].words || strstr(said, cases[i].words), "%s", said);
        arena_free(&arena);
    }
}

Test(import_launches, the_runtime_of_megatron_deepspeed_is_said_not_to_be_megatrons) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    ConfigNode *root = NULL;
    const char *text = "python pretrain_gpt.py --tensor-model-parallel-size 2 --micro-batch-size 1 "
                       "--deepspeed_config x.json --zero-stage 1\n";
    cr_assert_eq(config_parse(text, "file", SYNTAX_SHELL, &arena, &root, &error), STATUS_OK, "%s", error.message);
    cr_assert_eq(import_tree(root, "file", "auto", &arena, &import, &error), STATUS_OK, "%s", error.message);
    int said = 0, refused = 0;
    for (int i = 0; i < import.finding_count; i++) {
        said += import.findings[i].kind == FINDING_UNMODELLED &&
                strstr(import.findings[i].sentence, "--target megatron@bigscience") != NULL;
        refused += import.findings[i].kind == FINDING_REFUSED;
    }
    cr_expect_eq(said, 1);
    cr_expect_eq(refused, 0);
    arena_free(&arena);
}

Test(import_launches, a_file_that_a_script_writes_is_read_where_its_arguments_leave_to_it) {
    Arena arena = {0};
    Import import;
    Error error = {0};
    FILE *file = fopen("leaves.sh", "w");
    cr_assert(file);
    fputs("cat > z.json <<EOF\n{\"train_micro_batch_size_per_gpu\": 3, \"zero_optimization\": {\"stage\": 3}}\nEOF\n"
          "deepspeed run_clm.py --model_name_or_path x --per_device_train_batch_size 2 --deepspeed z.json\n",
          file);
    fclose(file);
    cr_expect_eq(import_load("leaves.sh", "auto", &arena, &import, &error), STATUS_OK, "%s", error.message);
    cr_expect_eq(import.said.micro_batch, 3);
    cr_expect_eq(import.said.choice[PLAN_ZERO], 3);
    unlink("leaves.sh");
    arena_free(&arena);
}
