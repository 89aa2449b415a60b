// The options of a call as what is asked, and the option that an error is about.

#include "autotune/cli/request.h"

#include "autotune/cli/executor_options.h"
#include "autotune/probe/chip_products.h"

enum { RUN_SEQ = 128 };  // judged: seconds on a processor

#define SEARCHED .cluster = "dgx-h100", .gpu_cluster = "dgx-h100"
#define EXECUTED                                                                                                       \
    .cluster = "local-cpu", .gpu_cluster = "dgx-h100", .target = TARGET_EXECUTOR, .seq = RUN_SEQ, .fp32 = true,        \
    .flash = true

const RequestDefaults search_defaults = {SEARCHED};
const RequestDefaults predict_defaults = {SEARCHED, .single_plan = true};
const RequestDefaults run_defaults = {EXECUTED, .single_plan = true};
const RequestDefaults preflight_defaults = {EXECUTED, .model = "tiny", .single_plan = true};
const RequestDefaults validate_defaults = {EXECUTED, .small_batch = true};

// What runs left in the store about a chip. A store that is missing is not made for it.
static Status learn(void *context, ClusterProfile *cluster, int *count, Error *error) {
    Cli *cli = context;
    const ChipPrice *prices;
    int price_count;
    if (cluster->accelerator.device_class != DEVICE_CLASS_GPU || !cli_store_exists(cli)) {
        return STATUS_OK;
    }
    TRY(cli_open_store_to_ask(cli, error));
    TRY(store_prices(cli->store, &cli->arena, &prices, &price_count, error));
    *count = price_count > 0 ? chip_products_add(prices, price_count, cluster, &cli->arena) : 0;
    return STATUS_OK;
}

Asked request_asked(Cli *cli) {
    const OptionValue *limit = cli_value(cli, OPTION_MEMORY_LIMIT);
    Asked asked = {.command = cli->line,
                   .model = cli_value(cli, OPTION_MODEL)->text,
                   .cluster = cli_value(cli, OPTION_CLUSTER)->text,
                   .target = cli_value(cli, OPTION_TARGET)->text,
                   .layers = (int)cli_value(cli, OPTION_LAYERS)->integer,
                   .node_size = (int)cli_value(cli, OPTION_GPUS_PER_NODE)->integer,
                   .changes = cli->options.sets,
                   .change_count = cli->options.set_count,
                   .on_gpu = cli_on_gpu(cli),
                   .async_lanes = executor_lanes(cli) == LANES_ASYNC,
                   .world = (int)cli_value(cli, OPTION_WORLD)->integer,
                   .nodes = (int)cli_value(cli, OPTION_NODES)->integer,
                   .mesh = cli_value(cli, OPTION_MESH)->text,
                   .baseline = cli_value(cli, OPTION_BASELINE)->text,
                   .seq = (int)cli_value(cli, OPTION_SEQ)->integer,
                   .micro_batch = (int)cli_value(cli, OPTION_MICRO_BATCH)->integer,  // 0 = auto
                   .grad_accum = (int)cli_value(cli, OPTION_GRAD_ACCUM)->integer,
                   .global_batch = cli_value(cli, OPTION_GLOBAL_BATCH)->integer,
                   .rank_order = cli_value(cli, OPTION_RANK_ORDER)->text,
                   .max_tp = (int)cli_value(cli, OPTION_MAX_TP)->integer,
                   .memory_limit_bytes = (double)limit->integer,
                   .memory_limit_share = limit->number,
                   .effort = (Effort)cli_value(cli, OPTION_EFFORT)->integer,
                   .objective = (Objective)cli_value(cli, OPTION_OBJECTIVE)->integer,
                   .tokens = cli_value(cli, OPTION_TOKENS)->number,
                   .learn = learn,
                   .context = cli};
    for (int i = 0; i < PLAN_FIELD_COUNT; i++) {
        asked.choices[i] = cli_value(cli, option_of((PlanFieldId)i))->text;
    }
    return asked;
}

// Points an error at the option that said what it is about, if one did.
static Status point(Cli *cli, const Asked *asked, Status status) {
    const OptionId world = cli_given(cli, OPTION_WORLD) ? OPTION_WORLD : OPTION_NODES;
    const OptionId options[ASKED_CHOICE] = {[ASKED_WORLD] = world,
                                            [ASKED_MESH] = OPTION_MESH,
                                            [ASKED_MODEL] = OPTION_MODEL,
                                            [ASKED_CLUSTER] = OPTION_CLUSTER,
                                            [ASKED_NODE_SIZE] = OPTION_GPUS_PER_NODE,
                                            [ASKED_TARGET] = OPTION_TARGET,
                                            [ASKED_RANK_ORDER] = OPTION_RANK_ORDER,
                                            [ASKED_EFFORT] = OPTION_EFFORT,
                                            [ASKED_OBJECTIVE] = OPTION_OBJECTIVE,
                                            [ASKED_BASELINE] = OPTION_BASELINE};
    if (status == STATUS_OK || asked->about == ASKED_NOTHING) {
        return status;
    }
    if (asked->about >= ASKED_CHANGE) {
        cli->blame = cli->options.set_argument[asked->about - ASKED_CHANGE];
        return status;
    }
    return cli_blame(cli,
                     asked->about < ASKED_CHOICE ? options[asked->about]
                                                 : option_of((PlanFieldId)(asked->about - ASKED_CHOICE)),
                     status);
}

Status request_of(Cli *cli, Asked *asked, const RequestDefaults *defaults, TuneRequest *request, Error *error) {
    return point(cli, asked, request_resolve(asked, defaults, &cli->arena, request, error));
}

Status request_build(Cli *cli, const RequestDefaults *defaults, TuneRequest *request, Error *error) {
    Asked asked = request_asked(cli);
    return request_of(cli, &asked, defaults, request, error);
}

Status request_executed(Cli *cli, TuneRequest *request, const Target **executed, Error *error) {
    TRY(cli_open_store(cli, error));
    TRY(executor_check_with(cli, error));
    TRY(last_request_take(cli, error));
    TRY(request_build(cli, &validate_defaults, request, error));
    FAIL_WITH(cli->options.list_count > 1, cli_refuse(cli, OPTION_WORLD, error, "%s runs one world, not a list of them",
                                                      command_names[cli->command]));
    *executed = NULL;
    return cli_given(cli, OPTION_WITH) ? STATUS_OK
                                       : measuring_takes(request, executor_lanes(cli), &cli->arena, executed, error);
}

Status request_check(Cli *cli, const TuneRequest *request, Error *error) {
    Asked asked = request_asked(cli);
    return point(cli, &asked, request_check_world(&asked, request, error));
}
