// Every option once. To add one: a row here, its id in options.h, and the command that reads it; the plan's choices are
// rows of plan_fields.c.

#include "autotune/cli/options.h"

#include <stdio.h>
#include <string.h>

#include "sim/axes/mesh.h"
#include "sim/base/text.h"
#include "sim/frameworks/words.h"

#define PLAN COMMAND_BIT(COMMAND_PLAN)
#define PREDICT COMMAND_BIT(COMMAND_PREDICT)
#define EXPLAIN COMMAND_BIT(COMMAND_EXPLAIN)
#define CHECK COMMAND_BIT(COMMAND_CHECK)
#define VALIDATE COMMAND_BIT(COMMAND_VALIDATE)
#define TUNE COMMAND_BIT(COMMAND_TUNE)
#define PROBE COMMAND_BIT(COMMAND_PROBE)
#define PREFLIGHT COMMAND_BIT(COMMAND_PREFLIGHT)
#define BLAME COMMAND_BIT(COMMAND_BLAME)
#define CALIBRATE COMMAND_BIT(COMMAND_CALIBRATE)
#define EXPORT COMMAND_BIT(COMMAND_EXPORT)
#define REPORT COMMAND_BIT(COMMAND_REPORT)
#define SEARCH (PLAN | EXPLAIN | CHECK | VALIDATE | TUNE | EXPORT | REPORT)  // whatever a search takes
#define RUN COMMAND_BIT(COMMAND_RUN)
#define REAL (RUN | VALIDATE | TUNE | PROBE | PREFLIGHT)  // what starts workers
#define RUNS COMMAND_BIT(COMMAND_RUNS)
#define HELP COMMAND_BIT(COMMAND_HELP)
#define LISTS (COMMAND_BIT(COMMAND_MODELS) | COMMAND_BIT(COMMAND_CLUSTERS))
#define ACCURACY COMMAND_BIT(COMMAND_ACCURACY)
#define EVERY EVERY_COMMAND

#define BILLION 1000000000

const char *const command_names[COMMAND_COUNT] = {
    "plan",   "predict", "explain",   "check", "run",  "validate", "calibrate", "tune",     "export",
    "report", "probe",   "preflight", "blame", "runs", "models",   "clusters",  "accuracy", "help"};
const char *const option_groups[GROUP_COUNT] = {"What is trained, and on what", "Choices", "The run", "Output"};

char *command_names_of(unsigned commands, char out[COMMAND_NAMES_BYTES]) {
    out[0] = '\0';
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const size_t used = strlen(out);
        if (commands & COMMAND_BIT(i)) {
            snprintf(out + used, COMMAND_NAMES_BYTES - used, "%s%s", used > 0 ? ", " : "", command_names[i]);
        }
    }
    return out;
}

static const OptionRow rows[OPTION_OF_PLAN] = {
    [OPTION_WORLD] =
        {"world", VALUE_INTS, "N[,N...]", 1, MESH_MAX_WORLD, "ranks", NULL,
         "accelerators to train on; a list gives the scaling curve; probe: ranks to measure with; blame: ranks of "
         "the job, where its dumps do not list them",
         GROUP_WHAT, SEARCH | PROBE | BLAME},
    [OPTION_NODES] = {"nodes", VALUE_INT, "N", 1, MESH_MAX_WORLD, "nodes", NULL,
                      "nodes to train on, in place of --world: each with the accelerators of --gpus-per-node or of the "
                      "cluster",
                      GROUP_WHAT, SEARCH},
    [OPTION_GPUS_PER_NODE] = {"gpus-per-node", VALUE_INT, "N", 1, MESH_MAX_WORLD, "ranks", "the cluster's",
                              "accelerators of a node, as --set node.gpus=N", GROUP_WHAT, SEARCH | PREDICT},
    [OPTION_MESH] = {"mesh", VALUE_TEXT, "AXIS=N,...", 0, 0, NULL, NULL,
                     "the shape, such as dp_shard=8,tp=4; axes not named are 1, of" AXES_SPACED, GROUP_WHAT,
                     PREDICT | RUN | PREFLIGHT | PROBE | EXPORT | CALIBRATE | BLAME},
    [OPTION_MODEL] = {"model", VALUE_TEXT, "NAME|FILE", 0, 0, NULL, NULL,
                      "a preset (ndtune models lists them) or a Hugging Face config.json", GROUP_WHAT,
                      SEARCH | PREDICT | RUN | PREFLIGHT | CALIBRATE | BLAME},
    [OPTION_CLUSTER] = {"cluster", VALUE_TEXT, "NAME|FILE", 0, 0, NULL,
                        "dgx-h100; run, validate, tune, preflight, probe: local-cpu, with --device cuda dgx-h100",
                        "a cluster profile (ndtune clusters lists them) or a profile file; probe: the built-in one "
                        "that the new one extends; calibrate: the parent of the new one",
                        GROUP_WHAT, SEARCH | PREDICT | RUN | PREFLIGHT | PROBE | CALIBRATE},
    [OPTION_SET] = {"set", VALUE_LIST, "KEY=VALUE", 0, 0, NULL, NULL,
                    "change a number of the cluster profile, such as node.gpus=4, or ask what if a rank or node were "
                    "slow: rank.3.slowdown=1.2, node.2.link_slowdown=3; may be repeated",
                    GROUP_WHAT, SEARCH | PREDICT | RUN | COMMAND_BIT(COMMAND_CLUSTERS) | PREFLIGHT},
    [OPTION_TARGET] =
        {"target", VALUE_TEXT, "NAME[@VERSION]", 0, 0, NULL,
         FRAMEWORK_DEFAULT "; run, validate, tune, preflight: ndtune",
         "the framework that trains; run: the one whose program the executor runs; calibrate: of frameworks' runs only "
         "its own",
         GROUP_WHAT, SEARCH | PREDICT | RUN | PREFLIGHT | CALIBRATE | BLAME},
    [OPTION_GLOBAL_BATCH] =
        {"global-batch", VALUE_INT, "N", 1, BILLION, "sequences",
         "about 4M tokens, one batch for all shapes; validate, tune: a sequence per rank; predict: of one accumulation",
         "sequences per optimizer step; given, every plan meets it exactly; predict: sequences per "
         "optimizer step, made by accumulation",
         GROUP_WHAT, SEARCH | PREDICT},
    [OPTION_RANK_ORDER] = {"rank-order", VALUE_TEXT, "auto|default|AXIS,...", 0, 0, NULL, "auto; one shape: default",
                           "the axes over the ranks from slow to fast, such as dp_shard,tp,cp; auto tries the orders "
                           "that the target can run and that place groups differently",
                           GROUP_CHOICES, SEARCH | PREDICT | RUN | PREFLIGHT | CALIBRATE | BLAME},
    [OPTION_MAX_TP] = {"max-tp", VALUE_INT, "N", 1, MESH_MAX_WORLD, "ranks", "none", "largest tensor-parallel size",
                       GROUP_CHOICES, SEARCH},
    [OPTION_MEMORY_LIMIT] =
        {"memory-limit", VALUE_BYTES, "BYTES|P%", 0, 0, NULL, "the accelerator's memory",
         "what a plan may reserve per accelerator, such as 70GiB, 80e9 or 90%; all of it is used then", GROUP_CHOICES,
         SEARCH | PREDICT},
    [OPTION_OBJECTIVE] = {"objective", VALUE_WORD, "throughput|memory|cost", 0, 0, NULL, "throughput",
                          "what the best plan is best in: tokens per second, least memory, least cost per token",
                          GROUP_CHOICES, SEARCH},
    [OPTION_TOKENS] = {"tokens", VALUE_COUNT, "N", 1, 0, "tokens", NULL,
                       "tokens to train on, such as 300e9 or 2T: adds the days and, with a price, the cost",
                       GROUP_OUTPUT, PLAN | PREDICT | REPORT},
    [OPTION_MEASURED] = {"measured", VALUE_TEXT, "S|LOG", 0, 0, NULL, NULL,
                         "the step time that a run of this plan had, in seconds, or the log of its framework: is it "
                         "slower than it should be, and what alone would explain it",
                         GROUP_OUTPUT, PREDICT},
    [OPTION_BASELINE] = {"baseline", VALUE_TEXT, "AXIS=N,...", 0, 0, NULL, NULL, "a shape to compare the best one with",
                         GROUP_OUTPUT, PLAN | REPORT},
    [OPTION_EFFORT] = {"effort", VALUE_WORD, "simulate|estimate|exhaustive", 0, 0, NULL, "simulate",
                       "simulate the promising plans, only estimate, or simulate all that could run", GROUP_CHOICES,
                       SEARCH | ACCURACY},
    [OPTION_FROM] =
        {"from", VALUE_TEXT, "FILE", 0, 0, NULL, NULL,
         "explain a config file that you train with, of a framework of --from-format or of LLaMA-Factory; FILE.py:NAME "
         "is one recipe of several; --micro-batch, --grad-accum, --seq, --recompute and --world then say what it does "
         "not hold",
         GROUP_WHAT, EXPLAIN},
    [OPTION_FROM_FORMAT] = {"from-format", VALUE_WORD, "auto|" FRAMEWORK_CONFIGS, 0, 0, NULL, "auto: by its keys",
                            "whose config the file is", GROUP_WHAT, EXPLAIN | CHECK},
    [OPTION_TOLERANCE] = {"tolerance", VALUE_NUMBER, "PERCENT", 0, 100, NULL, "10",
                          "how much slower than the best plan, or than the file before, a file may be", GROUP_WHAT,
                          CHECK},
    [OPTION_LAYERS] = {"layers", VALUE_INT, "N", 1, 4096, NULL, "the model's", "run with this many layers", GROUP_RUN,
                       RUN | VALIDATE | TUNE | PREFLIGHT | CALIBRATE | BLAME},
    [OPTION_STEPS] = {"steps", VALUE_INT, "N", 1, 1000000, NULL, "10", "optimizer steps", GROUP_RUN,
                      RUN | VALIDATE | TUNE},
    [OPTION_SEED] = {"seed", VALUE_INT, "N", 0, INT64_MAX, NULL, "1",
                     "of weights and data; tune: of weights and data, and of its samples", GROUP_RUN,
                     RUN | VALIDATE | TUNE},
    [OPTION_LR] = {"lr", VALUE_NUMBER, "X", 0, 1000, NULL, "0.0005", "learning rate, fixed", GROUP_RUN,
                   RUN | VALIDATE | TUNE},
    [OPTION_DATA] = {"data", VALUE_TEXT, "FILE", 0, 0, NULL, "a synthetic stream that a model can learn",
                     "train on a file of tokens: uint16 or uint32, little-endian, no header; the type follows from the "
                     "vocabulary (uint16 up to 65536) unless the name ends in .u16 or .u32",
                     GROUP_RUN, RUN | VALIDATE | TUNE},
    [OPTION_DEVICE] = {"device", VALUE_WORD, "cpu|cuda", 0, 0, NULL, "cpu",
                       "what computes: processors, or NVIDIA GPUs, of which several ranks may share one", GROUP_RUN,
                       REAL},
    [OPTION_TRANSPORT] = {"transport", VALUE_WORD, "shm|mpi|nccl", 0, 0, NULL,
                          "mpi where hosts are named, else shm; calibrate: that of the newest run",
                          "what moves bytes between ranks: shared memory of this machine, Open MPI, or NCCL with a "
                          "GPU per rank; calibrate: of the store's runs those over it",
                          GROUP_RUN, REAL | CALIBRATE},
    [OPTION_LAUNCHER] = {"launcher", VALUE_WORD, "auto|local|mpirun|srun|torchrun", 0, 0, NULL, "auto",
                         "who starts the ranks; auto says what it takes and why", GROUP_RUN, REAL},
    [OPTION_HOSTS] = {"hosts", VALUE_TEXT, "HOST[:N],...", 0, 0, NULL, "this machine",
                      "hosts for the ranks, as mpirun --host or srun --nodelist take them", GROUP_RUN, REAL},
    [OPTION_HOSTFILE] = {"hostfile", VALUE_TEXT, "FILE", 0, 0, NULL, NULL, "hosts for the ranks, as mpirun reads them",
                         GROUP_RUN, REAL},
    [OPTION_LANES] = {"lanes", VALUE_WORD, "serial|async", 0, 0, NULL, "serial",
                      "run lanes one after another or really beside each other", GROUP_RUN, RUN | VALIDATE | TUNE},
    [OPTION_BITWISE] = {"bitwise", VALUE_FLAG, NULL, 0, 0, NULL, NULL,
                        "sum exactly, so that every mesh gives the same bits: a test, 100 times slower", GROUP_RUN,
                        RUN},
    [OPTION_DETERMINISTIC] = {"deterministic", VALUE_FLAG, NULL, 0, 0, NULL, NULL,
                              "same bits in every run of one shape on one chip: device cuda then orders attention's "
                              "sums and times no products; device cpu always has them",
                              GROUP_RUN, RUN},
    [OPTION_WARM_UP] = {"warm-up", VALUE_INT, "N", 0, 1000000, "steps", "2", "steps of each run that do not count",
                        GROUP_RUN, VALIDATE | TUNE | CALIBRATE},
    [OPTION_REPEATS] = {"repeats", VALUE_INT, "N", 1, 1000, "runs", "3",
                        "runs of each shape, round after round over the shapes", GROUP_RUN, VALIDATE},
    [OPTION_SPREAD] = {"spread", VALUE_INT, "N", 0, MESH_MAX_WORLD, "shapes", "2",
                       "shapes to run besides the --top ones, spread over the rest of the ranking", GROUP_RUN,
                       VALIDATE},
    [OPTION_PROBABILITY] =
        {"probability", VALUE_NUMBER, "P", 0, 1, NULL, "0.95",
         "enough for the winner: how probable it is that nothing is faster by more than --within; 1 spends "
         "the whole budget",
         GROUP_RUN, TUNE},
    [OPTION_WITHIN] = {"within", VALUE_NUMBER, "PERCENT", 0, 100, NULL, "1",
                       "how much faster another shape may be and the winner still be as good", GROUP_RUN, TUNE},
    [OPTION_MAX_RUNS] = {"max-runs", VALUE_INT, "N", 0, 1000000, "runs", "three for each shape",
                         "runs that a session may take, those before an interrupt included; 0 is no bound", GROUP_RUN,
                         TUNE},
    [OPTION_MAX_TIME] = {"max-time", VALUE_NUMBER, "S", 0, 100000000, "seconds", "no bound",
                         "time that a session may spend in its runs; the one that passes it is the last; 0 is no bound",
                         GROUP_RUN, TUNE},
    [OPTION_WITH] = {"with", VALUE_TEXT, "TARGET", 0, 0, NULL, NULL,
                     "run the command behind -- instead of the executor, and read its step times from what it prints",
                     GROUP_RUN, VALIDATE},
    [OPTION_TIMEOUT] =
        {"timeout", VALUE_ABOVE, "S", 0, 1000000, "seconds",
         "120; of --with 3600; preflight: 20; blame: the collective's own, or ten times the longest pause before",
         "longest time that a rank may stand still, waiting or in one task, before the run is ended; of a "
         "command behind --, its longest run; blame: how long a wait is too long",
         GROUP_RUN, REAL | BLAME},
    [OPTION_TOP] = {"top", VALUE_INT, "N", 0, MESH_MAX_WORLD, "rows",
                    "10; plan: what fits on a screen; validate: 3; tune: 0",
                    "shapes that the table shows, that validate runs, or that tune considers; 0 is all", GROUP_OUTPUT,
                    PLAN | RUNS | VALIDATE | TUNE},
    [OPTION_VERBOSE] = {"verbose", VALUE_FLAG, NULL, 0, 0, NULL, NULL,
                        "everything beside the ranking: where time and memory of the best go, what cannot run and why, "
                        "the search, every assumption",
                        GROUP_OUTPUT, PLAN},
    [OPTION_EXPLAIN] = {"explain", VALUE_FLAG, NULL, 0, 0, NULL, NULL,
                        "what FSDP, tensor parallelism and the ring did in this step, in plain words", GROUP_OUTPUT,
                        RUN},
    [OPTION_FORMAT] = {"format", VALUE_WORD, "table|json|csv|github", 0, 0, NULL, "table",
                       "what goes to standard output; check: what goes to standard output, github as annotations of a "
                       "pull request",
                       GROUP_OUTPUT, SEARCH | PREDICT | REAL | RUNS | LISTS | ACCURACY | CALIBRATE | BLAME},
    [OPTION_RUNS] =
        {"runs", VALUE_REPEATED, "FILE.csv", 0, 0, NULL, NULL,
         "measured runs, a row each: id model cluster target dp_replicate dp_shard cp tp seq_len micro_batch "
         "are needed, and layers hidden heads ffn vocab where the model is no preset; step_time_s or "
         "tokens_per_s_per_gpu is what was measured; may be repeated",
         GROUP_WHAT, ACCURACY | CALIBRATE},
    [OPTION_LOG] =
        {"log", VALUE_REPEATED, "FILE[@AXIS=N,...]", 0, 0, NULL, NULL,
         "a log of a framework's run with the mesh and choices of the other options; its own mesh, micro_batch, "
         "grad_accum, global_batch and seq may follow, as in run2.log@dp_shard=8,tp=2,micro_batch=2; may be repeated",
         GROUP_WHAT, CALIBRATE},
    [OPTION_OOM] = {"oom", VALUE_REPEATED, "FILE.csv", 0, 0, NULL, NULL,
                    "runs that did not fit, with the same columns; may be repeated", GROUP_WHAT, ACCURACY},
    [OPTION_GROUPS] = {"groups", VALUE_REPEATED, "FILE.csv", 0, 0, NULL, NULL,
                       "sets of runs that differ in the plan only: columns group and ids (separated by spaces); may be "
                       "repeated",
                       GROUP_WHAT, ACCURACY},
    [OPTION_LEAVE_ONE_SOURCE_OUT] =
        {"leave-one-source-out", VALUE_FLAG, NULL, 0, 0, NULL, NULL,
         "fit what was fitted on published runs again without each source of these, and predict the source by that; "
         "what each number rests on",
         GROUP_RUN, ACCURACY},
    [OPTION_CSV] =
        {"csv", VALUE_TEXT, "FILE", 0, 0, NULL, NULL,
         "plan: every choice of every shape; accuracy: a line per run, measured beside predicted; validate: the "
         "runs, as accuracy --runs reads them",
         GROUP_OUTPUT, PLAN | ACCURACY | VALIDATE},
    [OPTION_HTML] = {"html", VALUE_TEXT, "FILE", 0, 0, NULL, "report: ndtune-report.html",
                     "one page with charts that opens from disk: the answer, why, where time and memory go, every "
                     "candidate, what was measured; blame: who stands where, and the last collectives by rank",
                     GROUP_OUTPUT, PLAN | PREDICT | VALIDATE | TUNE | REPORT | BLAME},
    [OPTION_RUN] = {"run", VALUE_INT, "ID", 1, INT64_MAX, NULL, "the last request",
                    "the page of a stored run: its plan, predicted and measured", GROUP_OUTPUT, REPORT},
    [OPTION_OPEN] = {"open", VALUE_FLAG, NULL, 0, 0, NULL, NULL, "show the page in the browser", GROUP_OUTPUT, REPORT},
    [OPTION_TRACE] = {"trace", VALUE_TEXT, "FILE", 0, 0, NULL, NULL,
                      "the step as Chrome trace events, which ui.perfetto.dev opens: simulated, and measured over it "
                      "where it ran; report: the step of the best plan as such events",
                      GROUP_OUTPUT, PREDICT | RUN | REPORT},
    [OPTION_SPANS] = {"spans", VALUE_TEXT, "FILE", 0, 0, NULL, NULL, "the same spans as CSV, a line each", GROUP_OUTPUT,
                      PREDICT | RUN | REPORT},
    [OPTION_MEMORY_SNAPSHOT] = {"memory-snapshot", VALUE_TEXT, "FILE", 0, 0, NULL, NULL,
                                "predicted live bytes over the step as a pickle that pytorch.org/memory_viz opens",
                                GROUP_OUTPUT, PREDICT | RUN | REPORT},
    [OPTION_AS] = {"as", VALUE_WORD, FRAMEWORK_FORMATS "|sbatch", 0, 0, NULL, "the target's usual one",
                   "what the file is written for", GROUP_OUTPUT, EXPORT},
    [OPTION_OUT] = {"out", VALUE_TEXT, "FILE", 0, 0, NULL,
                    "probed.json; calibrate: calibrated.json; export: standard output; tune: none",
                    "where the profile or the config file goes; tune: the profile as calibrated by its runs",
                    GROUP_OUTPUT, PROBE | EXPORT | TUNE | CALIBRATE},
    [OPTION_DB] = {"db", VALUE_TEXT, "FILE", 0, 0, NULL, "$XDG_DATA_HOME/ndtune/ndtune.db", "the store", GROUP_OUTPUT,
                   SEARCH | PREDICT | RUN | RUNS | CALIBRATE | PREFLIGHT},
    [OPTION_NO_CACHE] = {"no-cache", VALUE_FLAG, NULL, 0, 0, NULL, NULL,
                         "compute predictions, and measure runs, that the store already has; tune: begin a new session",
                         GROUP_OUTPUT, SEARCH | PREDICT},
    [OPTION_MAN] = {"man", VALUE_FLAG, NULL, 0, 0, NULL, NULL, "the manual page, in troff", GROUP_OUTPUT, HELP},
    [OPTION_MARKDOWN] = {"markdown", VALUE_FLAG, NULL, 0, 0, NULL, NULL,
                         "the table of options in autotune/cli/OPTIONS.md", GROUP_OUTPUT, HELP},
    [OPTION_COMPLETION] = {"completion", VALUE_WORD, "bash|zsh|fish", 0, 0, NULL, NULL,
                           "a completion script for that shell", GROUP_OUTPUT, HELP},
    [OPTION_HELP] = {"help", VALUE_FLAG, NULL, 0, 0, NULL, NULL, "this text", GROUP_OUTPUT, EVERY},
    [OPTION_VERSION] = {"version", VALUE_FLAG, NULL, 0, 0, NULL, NULL, "the version, and that of the numbers",
                        GROUP_OUTPUT, EVERY},
};

// Options of the plan that have an id of their own; the others come after all of them.
static const OptionId of_plan[PLAN_REDUCE_DTYPE + 1] = {
    [PLAN_SEQ] = OPTION_SEQ,
    [PLAN_MICRO_BATCH] = OPTION_MICRO_BATCH,
    [PLAN_GRAD_ACCUM] = OPTION_GRAD_ACCUM,
    [PLAN_ZERO] = OPTION_ZERO,
    [PLAN_RESHARD] = OPTION_RESHARD,
    [PLAN_RECOMPUTE] = OPTION_RECOMPUTE,
    [PLAN_CP_ROTATE] = OPTION_CP_ROTATE,
    [PLAN_PRECISION] = OPTION_PRECISION,
    [PLAN_ATTENTION] = OPTION_ATTENTION,
    [PLAN_FUSED] = OPTION_FUSED,
    [PLAN_TP_OVERLAP] = OPTION_TP_OVERLAP,
    [PLAN_MASTER_WEIGHTS] = OPTION_MASTER_WEIGHTS,
    [PLAN_FP8_RECIPE] = OPTION_FP8_RECIPE,
    [PLAN_REDUCE_DTYPE] = OPTION_REDUCE_DTYPE,
};

OptionId option_of(PlanFieldId id) {
    return id <= PLAN_REDUCE_DTYPE ? of_plan[id] : (OptionId)(OPTION_OF_PLAN + (id - PLAN_REDUCE_DTYPE - 1));
}

static unsigned takers(unsigned flags) {
    return PREDICT | CALIBRATE | BLAME | (flags & PLAN_OPTION_OF_ONE_PLAN ? EXPORT | EXPLAIN | CHECK : SEARCH) |
           (flags & PLAN_OPTION_RUN ? RUN : 0) | (flags & PLAN_OPTION_PREFLIGHT ? PREFLIGHT : 0);
}

static OptionRow row_of(const PlanField *field) {
    const PlanOption *option = &field->option;
    const bool counts = option->value[strlen(option->value) - 1] == 'N';
    return (OptionRow){.name = option->name,
                       .type = field->is_set ? VALUE_SET
                               : counts      ? VALUE_INT
                                             : VALUE_WORD,
                       .value = option->value,
                       .low = field->low,
                       .high = field->high,
                       .unit = option->unit,
                       .fallback = option->fallback,
                       .help = option->help,
                       .group = option->flags & PLAN_OPTION_SAYS_WHAT ? GROUP_WHAT : GROUP_CHOICES,
                       .commands = takers(option->flags)};
}

OptionRow option_row(OptionId id) {
    for (int field = 0; field < PLAN_FIELD_COUNT; field++) {
        if (option_of((PlanFieldId)field) == id) {
            return row_of(&plan_fields[field]);
        }
    }
    return rows[id];
}

// Who takes only the first words of a row.
static const struct {
    OptionId id;
    unsigned commands;
    const char *value;
} fewer_words[] = {{OPTION_FORMAT, EVERY & ~CHECK, "table|json|csv"}};

OptionRow option_row_of(OptionId id, CommandId command) {
    OptionRow row = option_row(id);
    for (size_t i = 0; i < sizeof fewer_words / sizeof *fewer_words; i++) {
        if (fewer_words[i].id == id && fewer_words[i].commands & COMMAND_BIT(command)) {
            row.value = fewer_words[i].value;
        }
    }
    return row;
}

bool option_find(const char *name, OptionId *id) {
    for (int i = 0; i < OPTION_COUNT; i++) {
        if (text_same_word(name, option_row((OptionId)i).name)) {
            *id = (OptionId)i;
            return true;
        }
    }
    return false;
}
