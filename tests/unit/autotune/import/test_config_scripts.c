// Launch scripts and recipes as trees: how bash and Python would read them, each key with its line, and syntax errors
// reported with their line.

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/import/config_load.h"

static ConfigNode *parse(const char *text, ConfigSyntax syntax, Arena *arena) {
    ConfigNode *root = NULL;
    Error error = {0};
    cr_assert_eq(config_parse(text, "file", syntax, arena, &root, &error), STATUS_OK, "%s", error.message);
    return root;
}

static const char *text_of(const ConfigNode *root, const char *key) {
    const ConfigNode *node = config_child(root, key);
    return !node ? "(absent)" : node->kind == NODE_SCALAR ? node->text : "(several)";
}

typedef struct Case {
    const char *text, *key, *value;
    int line;  // 0: not asked
} Case;

static void check(const Case *cases, size_t count, ConfigSyntax syntax) {
    for (size_t i = 0; i < count; i++) {
        Arena arena = {0};
        const ConfigNode *root = parse(cases[i].text, syntax, &arena);
        const char *dot = strchr(cases[i].key, '.');
        const ConfigNode *map =
            dot ? config_child(root, arena_format(&arena, "%.*s", (int)(dot - cases[i].key), cases[i].key)) : root;
        const char *key = dot ? dot + 1 : cases[i].key;
        cr_expect_str_eq(text_of(map, key), cases[i].value, "case %zu:\n%s", i, cases[i].text);
        if (cases[i].line) {
            cr_expect_eq(config_child(map, key)->line, cases[i].line, "case %zu", i);
        }
        arena_free(&arena);
    }
}

#define RUN "torchrun --nnodes 2 train.py "

Test(config_scripts, a_script_is_the_options_of_its_command) {
    static const Case cases[] = {
        {RUN "--a 1 --b", "--a", "1", 1},
        {RUN "--a 1 --b", "--b", "true", 1},
        {RUN "--a=1", "--a", "1", 0},
        {RUN "--a -1", "--a", "-1", 0},
        {RUN "--a x y --b 2", "--a", "(several)", 0},
        {RUN "--a 1", "launcher.--nnodes", "2", 0},
        {RUN "\\\n  --a 1 \\\n  --b 2 # c\n", "--b", "2", 3},
        {"TP=8\n" RUN "--tp $TP --pp ${PP:-4}", "--tp", "8", 2},
        {"TP=8\n" RUN "--tp $TP --pp ${PP:-4}", "--pp", "4", 2},
        {"N=2\nW=$((N * 4 + 1))\n" RUN "--w $W", "--w", "9", 0},
        {"A=(\n  --a 1  # one\n  --b 2\n)\n" RUN "${A[@]}", "--b", "2", 3},
        {"A=(--a 1)\nA+=(--b \"x y\")\n" RUN "\"${A[@]}\"", "--b", "x y", 0},
        {"A=\"--a 1\"\nA+=\" --b 2\"\n" RUN "$A", "--b", "2", 0},
        {"A=\" \\\n --a 1 \\\n --b 2\"\n" RUN "$A", "--b", "2", 3},
        {"CMD=\"python train.py --a 1\"\nsrun --nodes 4 bash -c \"$CMD\"\n", "--a", "1", 0},
        {RUN "--a ${UNSET} --b $(hostname)", "--a", "${UNSET}", 0},
        {RUN "--a ${UNSET} --b $(hostname)", "--b", "$(hostname)", 0},
        {RUN "--a ${1:-3} --b 2", "--a", "3", 0},
        {"TP=8\n" RUN "--a 1 ${TP:+--tp $TP} ${PP:+--pp $PP}", "--tp", "8", 0},
        {"TP=8\n" RUN "--a 1 ${TP:+--tp $TP} ${PP:+--pp $PP}", "--pp", "(absent)", 0},
        {"TP=\n" RUN "--a 1 ${TP:+--tp 8} ${TP+--set}", "--tp", "(absent)", 0},
        {"TP=\n" RUN "--a 1 ${TP:+--tp 8} ${TP+--set}", "--set", "true", 0},
        {"IFS=$'\\n\\t'\n" RUN "--a 1", "--a", "1", 2},
        {"D=/x/$(date +%F -u)_y\n" RUN "--a $D/z --b 2", "--a", "/x/$(date +%F -u)_y/z", 0},
        {RUN "--a 1 ${MORE} $@", "--a", "1", 0},
        {"prepare.py --x 1\n" RUN "--a 1 --b 2", "--x", "(absent)", 0},
        {"echo " RUN "--x 1 --y 2 --z 3\n" RUN "--a 1", "--x", "(absent)", 0},
        {"OPTIONS=\" \\\n --a 1 \\\n --b 2\"\n", "--b", "2", 3},
        {RUN "model.a=3", "model.a", "3", 1},
        {RUN "--a 1 > log 2>&1 &\n", "--a", "1", 0},
        {RUN "--a 1 2>&1 | tee log.txt --append\n", "--a", "1", 0},
        {RUN "--a 1 --b 2 |& tee \"$D/log\"\n", "--b", "2", 0},
        {"GA=4\ntee ds.json <<EOF\n{\"a\": \"x --y 1 --z 2 --w 3\"}\nEOF\n" RUN "--a $GA", "--a", "4", 5},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_SHELL);
}

Test(config_scripts, a_quoted_command_is_read_as_a_command) {
    static const Case cases[] = {
        {"N=4\nsrun bash -c \"A=1 train.py --a ${N} --b ${M}\"", "--a", "4", 0},
        {"N=4\nsrun bash -c \"A=1 train.py --a ${N} --b ${M}\"", "--b", "${M}", 0},
        {"bash -c '{ cd x; train.py --a 1; }'", "--a", "1", 0},
        {"bash -c 'train.py --a 1 \\\n --b 2'", "--b", "2", 2},
        {"bash -c 'train.py --a 1 >log 2>&1 | tee x'", "--a", "1", 0},
        {"bash -c \"train.py --a 1 --b $(date +%F -u)/z\"", "--b", "$(date +%F -u)/z", 0},
        {"bash -c 'train.py --a \"x'", "--a", "\"x", 0},  // as it stands, where bash would not take it
        {RUN "--a '{\"b\": \"c --d\"}'", "--a", "{\"b\": \"c --d\"}", 0},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_SHELL);
}

Test(config_scripts, eval_takes_what_quotes_a_word) {
    static const Case cases[] = {
        {"C=\"train.py --a 'E|t' --b E\\|t --c 1\"\neval $C", "--a", "E|t", 0},
        {"C=\"train.py --a 'E|t' --b E\\\\|t --c 1\"\neval $C", "--b", "E|t", 0},
        {"C=\"train.py --a 'b c' --c 1\"\neval $C", "--c", "1", 0},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_SHELL);
}

Test(config_scripts, an_array_is_one_word_where_bash_joins_it) {
    static const Case cases[] = {
        {"A=(--a 1 --b 2)\nC=\"train.py ${A[*]} --c 3\"\n$C", "--b", "2", 0},
        {"A=(--a 1 --b 2)\nC=\"train.py ${A[*]} --c 3\"\n$C", "--c", "3", 0},
        {"A=(--a 1 --b 2)\nC=\"train.py ${A[@]} --c 3\"\n$C", "--c", "3", 0},
        {"A=(--a 1 --b 2)\nbash -c \"train.py ${A[*]} --c 3\"", "--b", "2", 0},
        {"A=(1 2)\n" RUN "--a \"${A[*]}\" --b 2", "--a", "1 2", 0},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_SHELL);
}

Test(config_scripts, a_default_is_set_where_the_line_is_run) {
    static const Case cases[] = {
        {": ${N:=4}\n" RUN "--a $N", "--a", "4", 0},
        {"N=2\n: ${N:=4}\n" RUN "--a $N", "--a", "2", 0},
        {"N=\n: ${N=4} ${M:=$N}\n" RUN "--a x$N", "--a", "x", 0},
        {"if [ 1 = 2 ]; then\n: ${N:=4}\nfi\n" RUN "--a $N", "--a", "$N", 0},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_SHELL);
}

// It may hold the option of what follows.
Test(config_scripts, a_variable_that_is_not_set_begins_no_list) {
    static const Case cases[] = {
        {RUN "--bf16 ${A} x --b 2", "--bf16", "${A}", 0},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_SHELL);
}

Test(config_scripts, a_script_says_what_it_starts) {
    static const Case cases[] = {
        {RUN "--a 1", SHELL_PROGRAM, "train.py", 0},
        {"N=8 swift sft --a 1", SHELL_PROGRAM, "swift sft", 0},
        {"torchrun -m tool.train --a 1", SHELL_PROGRAM, "-m tool.train", 0},
        {"swift rlhf --plugins x/reward.py --a 1", SHELL_PROGRAM, "swift rlhf", 0},
        {"bash train.py --a 1", SHELL_PROGRAM, "train.py", 0},
        {"$RUNNER x --a 1", SHELL_PROGRAM, "(absent)", 0},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_SHELL);
}

Test(config_scripts, a_script_says_which_config_it_starts_a_run_with) {
    static const Case cases[] = {
        {RUN "c.yaml --a 1", SHELL_CONFIG, "c.yaml", 0},
        {"accelerate launch --config_file f.yaml train.py c.yaml", SHELL_CONFIG, "c.yaml", 0},
        {"accelerate launch --config_file f.yaml train.py", SHELL_CONFIG, "f.yaml", 0},
        {"C=${C:-x/c.toml}\n" RUN "--job.config_file=$C", SHELL_CONFIG, "x/c.toml", 2},
        {RUN "--config $(cd \"$(dirname x)\" && pwd)/c.yaml", SHELL_CONFIG, "c.yaml", 0},
        {RUN "--config `pwd`/c.yaml", SHELL_CONFIG, "c.yaml", 0},
        {"cp a.yaml b.yaml\necho c.yaml\n" RUN "--data d.json", SHELL_CONFIG, "(absent)", 0},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_SHELL);
}

Test(config_scripts, a_branch_is_taken_where_the_script_decides_it) {
    static const Case cases[] = {
        {"D=fp8\nif [[ \"$D\" == \"fp8\" ]]; then A=1\nelse A=2\nfi\n" RUN "--a $A", "--a", "1", 0},
        {"D=bf16\nif [ $D = fp8 ]; then\n A=1\nelif [ $D = bf16 ]; then A=2\nelse A=3\nfi\n" RUN "--a $A", "--a", "2",
         0},
        {"A=1\nif [ -n \"$KEY\" ]; then A=2; fi\n" RUN "--a $A", "--a", "1", 0},
        {"A=1\nif [ -z \"$KEY\" ] && [ 3 -gt 2 ]; then A=2; fi\n" RUN "--a $A", "--a", "2", 0},
        {"A=1\nif ! [ -f x ]; then A=2; fi\n" RUN "--a $A", "--a", "2", 0},
        {"A=1\nwhile [ $# -gt 0 ]; do case $1 in\n --a) A=9;;\n esac; done\n" RUN "--a $A", "--a", "1", 0},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_SHELL);
}

// As bash writes it: ROOT is what the running shell alone knows.
Test(config_scripts, a_file_that_a_script_writes_is_read_with_its_variables) {
    static const struct {
        const char *text, *key, *value;
        int line;
    } cases[] = {
        {"GA=4\ncat > $ROOT/ds.json <<EOF\n{\"a\": $GA,\n \"b\": $((GA * 8))}\nEOF\nrun --deepspeed ${ROOT}/ds.json\n",
         "a", "4", 3},
        {"GA=4\ncat > $ROOT/ds.json <<EOF\n{\"a\": $GA,\n \"b\": $((GA * 8))}\nEOF\nrun --deepspeed ${ROOT}/ds.json\n",
         "b", "32", 4},
        {"cat > \"${ROOT}\"/c.yaml << EOF\na: ${GA:-2}\nEOF\nrun $ROOT/c.yaml 2>&1 | tee log\n", "a", "2", 2},
        {"cat <<EOF | tee c.yaml\na: 1\nEOF\nrun c.yaml\n", "a", "1", 2},
        {"GA=4\ntee c.yaml > /dev/null <<-'EOF'\na: $GA\nEOF\nrun c.yaml\n", "a", "$GA", 3},
        {"GA=4\ncat > c.yaml <<EOF\na: \\$GA\nb: \"$GA\"\nEOF\nrun c.yaml\n", "a", "$GA", 3},
        {"GA=4\ncat > c.yaml <<EOF\na: \\$GA\nb: \"$GA\"\nEOF\nrun c.yaml\n", "b", "4", 4},
        {"cat > other.yaml <<EOF\na: 1\nEOF\ncat > c.yaml <<EOF\na: 2\nEOF\nrun c.yaml\n", "a", "2", 5},
        // a string, a name that is another's end, hosts: none of them is the config
        {"cat > h <<< \"$H\"\ncat > c.yaml <<EOF\na: 2\nEOF\nrun c.yaml\n", "a", "2", 3},
        {"cat > d/config <<EOF\nHost *\nEOF\ncat > c.yaml <<EOF\na: 2\nEOF\nrun --a_config c.yaml\n", "a", "2", 5},
        {"cat > n.txt <<EOF\n- a: [\nEOF\ncat > c.yaml <<EOF\na: 2\nEOF\nrun n.txt c.yaml\n", "a", "2", 5},
        {"cat > hosts <<EOF\nn1 slots=8\nEOF\ncat > c.yaml <<EOF\na: 2\nEOF\nrun --hosts hosts c.yaml\n", "a", "2", 5},
        {"sudo tee c.yaml > /dev/null <<EOF\na: 2\nEOF\nrun c.yaml\n", "a", "2", 2},
        {"cat > c.yaml <<EOF\na: 2\\\n3\nEOF\nrun c.yaml\n", "a", "23", 2},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Error error = {0};
        ConfigNode *root = NULL;
        FILE *file = fopen("written.sh", "w");
        cr_assert(file);
        fputs(cases[i].text, file);
        fclose(file);
        cr_expect_eq(config_load_written("written.sh", &arena, &root, &error), STATUS_OK, "%s", error.message);
        cr_assert(root, "case %zu", i);
        cr_expect_str_eq(text_of(root, cases[i].key), cases[i].value, "case %zu", i);
        cr_expect_eq(config_child(root, cases[i].key)->line, cases[i].line, "case %zu", i);
        unlink("written.sh");
        arena_free(&arena);
    }
}

// Notes that a script keeps are not its config; JSON and what ends as a config is meant as one.
Test(config_scripts, only_what_is_meant_as_a_config_is_refused_for_being_none) {
    static const struct {
        const char *text;
        Status status;
    } cases[] = {{"cat > $NOTES <<EOF\n# x\n\n> a\nEOF\nrun --log $NOTES\n", STATUS_OK},
                 {"cat > $C <<EOF\n{\"a\": \nEOF\nrun --deepspeed $C\n", STATUS_USAGE},
                 {"cat > c.yaml <<EOF\na: [\nEOF\nrun c.yaml\n", STATUS_USAGE}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        Error error = {0};
        ConfigNode *root = NULL;
        FILE *file = fopen("meant.sh", "w");
        cr_assert(file);
        fputs(cases[i].text, file);
        fclose(file);
        cr_expect_eq(config_load_written("meant.sh", &arena, &root, &error), cases[i].status, "case %zu", i);
        unlink("meant.sh");
        arena_free(&arena);
    }
}

Test(config_scripts, a_recipe_is_what_it_sets) {
    static const Case cases[] = {
        {"cfg.model.a = 8  # c\n", "model.a", "8", 1},
        {"def f():\n    cfg = base()\n    cfg.model.a = \"x\"\n    return cfg\n", "model.a", "x", 3},
        {"cfg = base()\n", "_base_._target_", "base", 1},
        {"cfg.m = name(a=1, b=\"x\")\ncfg.m.c = cfg.n.c = True\n", "m.b", "x", 1},
        {"cfg.m = name(a=1, b=\"x\")\ncfg.m.c = cfg.n.c = True\n", "m.c", "True", 2},
        {"cfg.m = name(a=1, b=\"x\")\ncfg.m.c = cfg.n.c = True\n", "n.c", "True", 2},
        {"cfg.m.a = 1\ncfg.m.a = 2\n", "m.a", "2", 2},
        {"cfg.m.a = [\"x\",\n  \"y\"]\ncfg.m.b = None\n", "m.a", "(several)", 1},
        {"cfg.m.a = [\"x\",\n  \"y\"]\ncfg.m.b = None\n", "m.b", "", 3},
        {"M = \"hub/model\"\ncfg.t.m = M\n", "t.m", "hub/model", 2},
        {"\"\"\"text\ncfg.m.a = 1\n\"\"\"\ncfg.m.b = 2\n", "m.a", "(absent)", 0},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_PYTHON);
}

Test(config_scripts, strings_side_by_side_are_one) {
    static const Case cases[] = {
        {"cfg.m = name(a=\"x \"\n    'y', b=1)\n", "m.a", "x y", 1},
        {"cfg.m = name(a=\"x \"\n    'y', b=1)\n", "m.b", "1", 2},
        {"x = name(\"a \"  # c\n    \"b) \"\n    \"c\")\ncfg.b = 2\n", "b", "2", 4},
        {"x = {\"k\": \"a \"\n    f\"b\", \"l\": 1}\ncfg.b = \"c\" \"d\"\n", "b", "cd", 3},
        {"x = name(\"%s \"\n    % \"a\", [1][\"(\"])\ncfg.b = 2\n", "b", "2", 3},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_PYTHON);
}

#define FSDP "ACCELERATE_USE_FSDP"

Test(config_scripts, variables_that_a_script_sets_are_read_however_it_sets_them) {
    static const Case cases[] = {
        {"os.environ[\"" FSDP "\"] = \"true\"\n", "environ." FSDP, "true", 1},
        {"os.environ['" FSDP "'] = 'true'\n", "environ." FSDP, "true", 1},
        {"environ[ '" FSDP "' ]='true'\n", "environ." FSDP, "true", 1},
        {"os.environ[\"" FSDP "\"] == \"true\"\n", "environ." FSDP, "(absent)", 0},
        {"if a:\n    os.environ.setdefault('" FSDP "', \"true\")\n", "environ." FSDP, "true", 2},
        {"os.environ['" FSDP "'] = 'false'\nos.environ.setdefault('" FSDP "', 'true')\n", "environ." FSDP, "false", 1},
        {"environ.update({'" FSDP "': 'true'}, FSDP_VERSION='2')\n", "environ." FSDP, "true", 1},
        {"environ.update({'" FSDP "': 'true'}, FSDP_VERSION='2')\n", "environ.FSDP_VERSION", "2", 1},
        {"arguments['dtype'] = \"auto\"\n", "model_arguments.dtype", "auto", 1},
    };
    check(cases, sizeof cases / sizeof cases[0], SYNTAX_PYTHON);
}

Test(config_scripts, what_is_malformed_is_said_with_its_line) {
    static const struct {
        const char *text, *words;
        ConfigSyntax syntax;
    } cases[] = {
        {"a\nb \"c\n", "file:2: a quote that does not end", SYNTAX_SHELL},
        {"\nA=(--a\n", "file:2: an array that does not end", SYNTAX_SHELL},
        {"x ${A\n", "file:1: a brace that does not end", SYNTAX_SHELL},
        {"x $(A\n", "file:1: a bracket that does not end", SYNTAX_SHELL},
        {"def a():\n    cfg.x = 1\ndef b():\n    cfg.x = 2\n", "file:4: a() and b() both set", SYNTAX_PYTHON},
        {"\na = SFTConfig(bf16=True,\n    fsdp=True\n\nb = 2\n", "file:2: '(' was never closed", SYNTAX_PYTHON},
        {"a = SFTConfig(bf16=True,\n    bf16=False)\n", "file:2: keyword argument repeated: bf16", SYNTAX_PYTHON},
        {"a = SFTConfig(\"out\", True)\n", "file:1: True in SFTConfig() is not read: give it the name", SYNTAX_PYTHON},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        ConfigNode *root = NULL;
        Error error = {0};
        cr_expect_eq(config_parse(cases[i].text, "file", cases[i].syntax, &arena, &root, &error), STATUS_USAGE);
        cr_expect(strstr(error.message, cases[i].words), "%s", error.message);
        arena_free(&arena);
    }
}

// Each line would double what the one before says.
Test(config_scripts, a_few_lines_cannot_ask_for_any_number_of_words) {
    Arena arena = {0};
    ConfigNode *root = NULL;
    Error error = {0};
    const char *text = "A=\"--a --b\"\n";
    for (int i = 0; i < 40; i++) {
        text = arena_format(&arena, "%sA=\"$A $A\"\n", text);
    }
    cr_expect_eq(config_parse(text, "file", SYNTAX_SHELL, &arena, &root, &error), STATUS_USAGE);
    cr_expect(strstr(error.message, "variables within variables"), "%s", error.message);
    arena_free(&arena);
}
