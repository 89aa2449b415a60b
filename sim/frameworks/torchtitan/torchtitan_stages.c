// Pipelines in torchtitan's config (distributed/pipeline_parallel.py of v0.2.2). The local batch is cut into
// micro-batches of pipeline_parallel_microbatch_size; further accumulation repeats whole schedules (pp_rounds). Stages
// are even where embedding and head count as zero layers (first and last_stage_less_layers 0). Not read: modules by
// name where the inner stages differ. A CSV of actions is read by autotune/import.

#include <string.h>

#include "sim/base/integer.h"
#include "sim/frameworks/torchtitan/torchtitan_files.h"
#include "sim/frameworks/torchtitan/torchtitan_models.h"

const ImportWord torchtitan_schedules[] = {{"1F1B", PP_1F1B},
                                           {"GPipe", PP_GPIPE},
                                           {"Interleaved1F1B", PP_INTERLEAVED},
                                           {"InterleavedZeroBubble", PP_ZERO_BUBBLE},
                                           {"ZBVZeroBubble", PP_ZBV},
                                           {"DualPipeV", PP_DUALPIPEV},
                                           {NULL, 0}};

bool torchtitan_has_stages(const ConfigJob *job) {
    return plan_has_stages(job->plan);
}

bool torchtitan_has_order(const ConfigJob *job) {
    return torchtitan_has_stages(job) && job->plan->pp_schedule == PP_FILE;
}

const char *torchtitan_order(const ConfigJob *job) {
    return job->plan->pp_order->path;
}

// With a CSV of actions it says which stages a rank has (pipeline_llm): one, several round-robin, or two, folded.
const char *torchtitan_schedule_word(const TrainPlan *plan) {
    const PpSchedule laid_out = plan_is_folded(plan) ? PP_ZBV : plan_chunks(plan) > 1 ? PP_INTERLEAVED : PP_1F1B;
    const PpSchedule schedule = plan->pp_schedule == PP_FILE ? laid_out : plan->pp_schedule;
    const ImportWord *row = torchtitan_schedules;
    while (row->value != (int)schedule) {
        row++;
    }
    return row->word;
}

const char *torchtitan_local_batch(const ConfigJob *job) {
    const int micro_steps = torchtitan_has_stages(job) ? plan_round_steps(job->plan) : 1;
    return arena_format(job->arena, "%lld", (long long)job->plan->micro_batch * micro_steps);
}

bool torchtitan_names_modules(const ConfigJob *job) {
    return torchtitan_has_stages(job) && job->plan->pp_split == SPLIT_CHUNKS;
}

bool torchtitan_counts_layers(const ConfigJob *job) {
    return torchtitan_has_stages(job) && job->plan->pp_split != SPLIT_CHUNKS;
}

static int first_less(const ConfigJob *job) {
    return job->plan->pp_split == SPLIT_WEIGHTED ? job->plan->pp_first : 0;
}

static int last_less(const ConfigJob *job) {
    return job->plan->pp_split == SPLIT_WEIGHTED ? job->plan->pp_last : 0;
}

const char *torchtitan_first_less(const ConfigJob *job) {
    return arena_format(job->arena, "%d", first_less(job));
}

const char *torchtitan_last_less(const ConfigJob *job) {
    return arena_format(job->arena, "%d", last_less(job));
}

// With the embedding and the head, as they are counted.
static int counted_layers(const TrainPlan *plan, const ModelSpec *model) {
    return model->layers + (plan->pp_split == SPLIT_WEIGHTED ? plan->pp_first + plan->pp_last : 0);
}

// Of so many in all: stages by the layers of one, or layers of one by the stages.
static int divided_up(int counted, int by) {
    return (int)(int_round_up(counted, by) / by);
}

static int layers_each(const TrainPlan *plan, const ModelSpec *model) {
    return divided_up(counted_layers(plan, model), plan_all_chunks(plan));
}

// Without layers_per_stage a rank has one stage, or two of a schedule of several.
static bool is_own_count(const TrainPlan *plan) {
    const char *word = torchtitan_schedule_word(plan);
    return plan_chunks(plan) == (strcmp(word, "1F1B") == 0 || strcmp(word, "GPipe") == 0 ? 1 : 2);
}

// With it there are as many as it takes to hold the layers.
static bool is_made_by_layers(const TrainPlan *plan, const ModelSpec *model) {
    return divided_up(counted_layers(plan, model), layers_each(plan, model)) == plan_all_chunks(plan);
}

const char *torchtitan_refuse_count(const ModelSpec *model, const TrainPlan *plan, Arena *arena) {
    REFUSE_IF(arena,
              plan_has_stages(plan) && plan->pp_split != SPLIT_CHUNKS && !is_own_count(plan) &&
                  !is_made_by_layers(plan, model),
              "torchtitan counts stages by the layers of one (pipeline_parallel_layers_per_stage), and no number of "
              "layers makes %d stages of %d: use virtual_stages 2, another number that divides, or pp_split chunks",
              plan_all_chunks(plan), counted_layers(plan, model));
    return NULL;
}

bool torchtitan_says_layers(const ConfigJob *job) {
    return torchtitan_counts_layers(job) && is_made_by_layers(job->plan, job->model);
}

const char *torchtitan_stage_layers(const ConfigJob *job) {
    return arena_format(job->arena, "%d", layers_each(job->plan, job->model));
}

const char *torchtitan_modules(const ConfigJob *job) {
    const TrainPlan *plan = job->plan;
    const int stages = plan_all_chunks(plan);
    const int rest = job->model->layers - plan->pp_first - plan->pp_last, inner = stages > 2 ? rest / (stages - 2) : 0;
    const char *text = "[[\"tok_embeddings\"";
    for (int stage = 0, layer = 0; stage < stages; stage++) {
        const int count = stage == 0 ? plan->pp_first : stage == stages - 1 ? plan->pp_last : inner;
        text = stage == 0 ? text : arena_format(job->arena, "%s], [", text);
        for (int i = 0; i < count; i++) {
            const char *comma = i > 0 || stage == 0 ? ", " : "";
            text = arena_format(job->arena, "%s%s\"layers.%d\"", text, comma, layer++);
        }
    }
    return arena_format(job->arena, "%s%s\"norm\", \"output\"]]", text, plan->pp_last > 0 ? ", " : "");
}

const char *torchtitan_refuse_stages(const ConfigJob *job) {
    const int pp = mesh_stages(&job->plan->mesh), stages = plan_all_chunks(job->plan);
    const PpSchedule schedule = job->plan->pp_schedule;
    const bool looped = schedule != PP_1F1B && schedule != PP_GPIPE && schedule != PP_FILE;
    REFUSE_IF(job->arena, pp > 1 && looped && stages == pp,
              "torchtitan runs %s with at least 2 stages on each rank: use --virtual-stages 2",
              torchtitan_schedule_word(job->plan));
    return NULL;
}

// "default" keeps parameters gathered in a pipeline, as the prediction does, and frees them without one.
const char *torchtitan_reshard(const ConfigJob *job) {
    const bool own = torchtitan_has_stages(job) && job->plan->reshard == RESHARD_ALWAYS;
    return own ? "default" : reshard_names[job->plan->reshard];
}

#define PIPELINE_KEY "parallelism.pipeline_parallel_"

// One sequence each unless the file says another size; all of a rank's local batch in one schedule.
static Status read_micro_batches(Import *import, Error *error) {
    ImportChoices *said = &import->said;
    const int local = said->micro_batch;
    int micro_batch = 1;
    TRY(import_int(import, PIPELINE_KEY "microbatch_size", 1, 1 << 20, &micro_batch, error));
    if (local % micro_batch != 0) {
        import_find(import, FINDING_REFUSED, PIPELINE_KEY "microbatch_size",
                    "Batch size %d must be divisible by microbatch_size %d: use a local batch of %d", local,
                    micro_batch, local - local % micro_batch + micro_batch);
        return STATUS_OK;
    }
    said->micro_batch = micro_batch;
    said->round_steps = local / micro_batch;
    said->grad_accum = said->global_batch > 0 ? 0 : said->round_steps;
    return STATUS_OK;
}

// The layers of one stage make the number of stages, and that the chunks of each rank: pipeline_llm of torchtitan 0.2
// (distributed/pipeline_parallel.py) rounds up and stops where the ranks or the schedule have no such number.
static int chunks_of_layers(Import *import, int total, int layers) {
    const int pp = import->said.size[AXIS_PP], stages = divided_up(total, layers);
    const int own = pp_own_chunks((PpSchedule)import->said.choice[PLAN_PP_SCHEDULE]);  // 0: any from 2 on
    const int usual = own == 1 ? 1 : 2, fitting = divided_up(total, usual * pp);
    const char *why = stages % pp != 0                  ? "the stages must be a multiple of the ranks"
                      : own == 1 && stages != pp        ? "its schedule takes exactly 1 stage on a rank"
                      : own > 1 && stages != own * pp   ? "its schedule takes exactly 2 stages on a rank"
                      : own == 0 && stages < usual * pp ? "its schedule takes at least 2 stages on a rank"
                                                        : NULL;
    if (!why) {
        return stages / pp;
    }
    const char *use =
        divided_up(total, fitting) == usual * pp ? arena_format(import->arena, "use %d", fitting) : "leave the key out";
    import_find(import, FINDING_REFUSED, PIPELINE_KEY "layers_per_stage",
                "torchtitan stops: %d layers, ends counted in, at %d a stage make %d stages on %d ranks, but %s: %s",
                total, layers, stages, pp, why, use);
    return usual;
}

// Its schedule leaves open how many chunks a rank has.
static bool takes_chunks(const Import *import) {
    const PpSchedule schedule = (PpSchedule)import->said.choice[PLAN_PP_SCHEDULE];
    return schedule != PP_FILE && pp_own_chunks(schedule) == 0;
}

// 2 chunks where the file leaves them to torchtitan, as its own default is.
static Status read_chunks(Import *import, Error *error) {
    int first = 1, last = 1, layers = 0;
    TRY(import_int(import, PIPELINE_KEY "first_stage_less_layers", 0, 1024, &first, error));
    TRY(import_int(import, PIPELINE_KEY "last_stage_less_layers", 0, 1024, &last, error));
    TRY(import_int(import, PIPELINE_KEY "layers_per_stage", 1, 1024, &layers, error));
    const bool named = import_has(import, "parallelism.module_fqns_per_model_part");
    if (!named && (first > 0 || last > 0)) {
        import->said.choice[PLAN_PP_SPLIT] = SPLIT_WEIGHTED;
        import->said.choice[PLAN_PP_FIRST] = first;
        import->said.choice[PLAN_PP_LAST] = last;
    }
    const char *folder = "llama3", *flavor = "";
    TRY(import_word(import, "model.name", &folder, error));
    TRY(import_word(import, "model.flavor", &flavor, error));
    const TitanModel *model = torchtitan_model_named(folder, flavor);
    int chunks = 2;
    if (layers > 0 && model && import->said.choice[PLAN_PP_SCHEDULE] != PP_FILE) {
        chunks = chunks_of_layers(import, model->layers + first + last, layers);
    } else if (layers > 0 && takes_chunks(import)) {
        import_find(import, FINDING_UNMODELLED, PIPELINE_KEY "layers_per_stage",
                    "chunks of a model that the file does not describe: predicted with 2 on each stage");
    }
    if (takes_chunks(import)) {
        import->said.choice[PLAN_VIRTUAL_STAGES] = chunks;
    }
    return STATUS_OK;
}

// Layers of a stage by the names of its modules.
static int named_layers(const ConfigNode *stage) {
    int layers = 0;
    for (const ConfigNode *module = stage->first; module; module = module->next) {
        layers += module->kind == NODE_SCALAR && strncmp(module->text, "layers.", strlen("layers.")) == 0;
    }
    return layers;
}

// Stages by the names of their modules, in the model's order; chunks of a rank follow from how many there are.
static void read_modules(Import *import) {
    static const char key[] = "parallelism.module_fqns_per_model_part";
    const ConfigNode *list = import_has(import, key) ? import_at(import, key) : NULL;
    ImportChoices *said = &import->said;
    if (!list || list->kind != NODE_LIST) {
        return;
    }
    const int stages = (int)list->child_count;
    int inner = -1;
    for (const ConfigNode *stage = list->first; stage; stage = stage->next) {
        const bool end = stage == list->first || stage == list->last;
        if (!end && inner >= 0 && named_layers(stage) != inner) {
            import_refuse(import, key,
                          "stages between the first and the last one differ, which no plan of ndtune holds");
            return;
        }
        inner = end ? inner : named_layers(stage);
    }
    if (stages < 2 || stages % said->size[AXIS_PP] != 0) {
        import_find(import, FINDING_REFUSED, key, "torchtitan stops: %d stages on %d ranks", stages,
                    said->size[AXIS_PP]);
        return;
    }
    said->choice[PLAN_PP_SPLIT] = SPLIT_CHUNKS;
    said->choice[PLAN_PP_FIRST] = named_layers(list->first);
    said->choice[PLAN_PP_LAST] = named_layers(list->last);
    if (takes_chunks(import)) {
        said->choice[PLAN_VIRTUAL_STAGES] = stages / said->size[AXIS_PP];
    }
}

Status torchtitan_read_stages(Import *import, Error *error) {
    static const char *const of_stages[] = {PIPELINE_KEY "first_stage_less_layers",
                                            PIPELINE_KEY "last_stage_less_layers", PIPELINE_KEY "layers_per_stage",
                                            PIPELINE_KEY "microbatch_size", NULL};
    ImportChoices *said = &import->said;
    import_known(import, of_stages);
    if (said->size[AXIS_PP] <= 1) {
        said->choice[PLAN_PP_SCHEDULE] = IMPORT_UNSAID;
        return STATUS_OK;
    }
    if (import_is_on(import, PIPELINE_KEY "schedule_csv")) {
        import->order_key = PIPELINE_KEY "schedule_csv";
        TRY(import_word(import, import->order_key, &import->order_path, error));
    }
    said->choice[PLAN_PP_SCHEDULE] =
        said->choice[PLAN_PP_SCHEDULE] == IMPORT_UNSAID ? PP_1F1B : said->choice[PLAN_PP_SCHEDULE];
    TRY(read_chunks(import, error));
    read_modules(import);
    return read_micro_batches(import, error);
}
