// Resolves the request once, with explanations: every default taken becomes a sentence in request->assumptions, because
// a number is only as good as its assumptions.

#include "autotune/request/request.h"

#include <string.h>
#include <strings.h>

#include "autotune/predict/handicap.h"
#include "autotune/predict/predict_serial.h"
#include "autotune/predict/target_on_cluster.h"
#include "autotune/request/request_internal.h"
#include "sim/base/text.h"
#include "sim/frameworks/framework.h"

enum { MAX_ASSUMPTIONS = 32 + PLAN_FIELD_COUNT, MAX_DEFAULTS = 8 };  // a sentence for each choice, and others

void assume(Builder *builder, const char *format, ...) {
    va_list values;
    va_start(values, format);
    ASSERT(builder->request->assumption_count < MAX_ASSUMPTIONS + builder->asked->change_count);
    builder->assumptions[builder->request->assumption_count++] = arena_vformat(builder->arena, format, values);
    va_end(values);
}

void assume_default(Builder *builder, const char *option, const char *value) {
    ASSERT(builder->request->default_count < MAX_DEFAULTS);
    builder->defaults_taken[builder->request->default_count++] = arena_format(builder->arena, "--%s %s", option, value);
}

static Status find_model(Builder *builder, Error *error) {
    const Asked *asked = builder->asked;
    TuneRequest *request = builder->request;
    ModelSpec *model = &request->model;
    request->model_asked = asked->model ? asked->model : builder->defaults->model;
    if (!request->model_asked) {
        error_set(about(builder->asked, ASKED_MODEL, error), STATUS_USAGE,
                  "--model is needed: a preset or a config.json");
        return error_hint(error, "ndtune models lists the presets");
    }
    TRY(model_find(request->model_asked, builder->arena, model, about(builder->asked, ASKED_MODEL, error)));
    if (asked->layers > 0) {
        model->layers = asked->layers;
        assume(builder, "%s with %d layers", model->name, model->layers);
    }
    char parameters[TEXT_UNIT_BYTES];
    text_count(parameters, (double)model_parameters(model));
    if (strcmp(request->model_asked, model->name) == 0) {
        assume(builder, "%s has %s parameters", model->name, parameters);
    } else {
        assume(builder, "model %s is %s, %s parameters", request->model_asked, model->name, parameters);
    }
    if (model->note) {
        assume(builder, "%s: %s", model->name, model->note);
    }
    return STATUS_OK;
}

// Only a file names its accelerator as a driver does: no measurement moves the numbers of a built-in profile.
static Status learn_chip(Builder *builder, const char *profile, Error *error) {
    const Asked *asked = builder->asked;
    ClusterProfile *cluster = &builder->request->cluster;
    int count = 0;
    if (asked->learn && cluster_is_file(profile)) {
        TRY(asked->learn(asked->context, cluster, &count, about(builder->asked, ASKED_NOTHING, error)));
    }
    if (count > 0) {
        assume(builder, "%d products take the time that runs on %s had, of the store", count,
               cluster->accelerator.name);
    }
    return STATUS_OK;
}

static Status change_cluster(Builder *builder, Error *error) {
    Asked *asked = builder->asked;
    ClusterProfile *cluster = &builder->request->cluster;
    for (int i = 0; i < asked->change_count; i++) {
        if (!handicap_named(asked->changes[i])) {
            TRY(cluster_set(cluster, asked->changes[i], builder->arena, about(asked, ASKED_CHANGE + i, error)));
            assume(builder, "cluster profile changed: %s", asked->changes[i]);
        }
    }
    const bool same = asked->node_size == cluster->node.accelerators && cluster->node.hosts == 1;
    if (asked->node_size == 0 || same) {  // of racks it says that they are whole
        return STATUS_OK;
    }
    return cluster_set(cluster, arena_format(builder->arena, "node.gpus=%d", asked->node_size), builder->arena,
                       about(asked, ASKED_NODE_SIZE, error));
}

static Status find_cluster(Builder *builder, Error *error) {
    Asked *asked = builder->asked;
    const RequestDefaults *defaults = builder->defaults;
    const bool given = asked->cluster;
    const char *name = given ? asked->cluster : asked->on_gpu ? defaults->gpu_cluster : defaults->cluster;
    ClusterProfile *cluster = &builder->request->cluster;
    TRY(cluster_find(name, builder->arena, cluster, about(asked, ASKED_CLUSTER, error)));
    TRY(learn_chip(builder, name, error));
    TRY(change_cluster(builder, error));
    const bool usual =
        given && !cluster_is_file(name) && strcasecmp(name, cluster->name) != 0 && !text_same_word(name, cluster->name);
    assume(builder, "cluster %s (%s), %d per node%s%s%s", cluster->name, cluster->accelerator.name,
           cluster->node.accelerators, usual ? ": the usual node of " : "", usual ? name : "",
           given && !usual ? "" : "; change it with --cluster");
    if (!given || usual) {
        assume_default(builder, "cluster", cluster->name);
    }
    return STATUS_OK;
}

// What the changes say about ranks and nodes by their numbers.
static Status find_handicaps(Builder *builder, Error *error) {
    Asked *asked = builder->asked;
    TuneRequest *request = builder->request;
    Handicap *handicaps = ARENA_ARRAY(builder->arena, Handicap, asked->change_count);
    request->handicaps = handicaps;
    for (int i = 0; i < asked->change_count; i++) {
        if (handicap_named(asked->changes[i])) {
            Handicap *handicap = &handicaps[request->handicap_count++];
            TRY(handicap_parse(asked->changes[i], handicap, about(asked, ASKED_CHANGE + i, error)));
            assume(builder, "%s", handicap_text(handicap, builder->arena));
        }
    }
    FAIL_IF(request->handicap_count > 0 && asked->effort == EFFORT_ESTIMATE, about(asked, ASKED_EFFORT, error),
            STATUS_USAGE, "an estimate knows no slow rank, node or link: they have to be simulated");
    return STATUS_OK;
}

static Status find_target(Builder *builder, Error *error) {
    Asked *asked = builder->asked;
    TuneRequest *request = builder->request;
    const char *usual = builder->defaults->target ? builder->defaults->target : framework_list(&(int){0})[0]->name;
    TRY(target_find(asked->target ? asked->target : usual, &request->target, about(asked, ASKED_TARGET, error)));
    request->target = target_on_cluster(request->target, &request->cluster, builder->arena);
    assume(builder, "target %s@%s, evidence: %s%s", request->target->name, request->target->version,
           request->target->evidence, asked->target ? "" : "; change it with --target");
    if (!asked->target) {
        assume_default(builder, "target", request->target->name);
    }
    return STATUS_OK;
}

static void find_lanes(Builder *builder) {
    TuneRequest *request = builder->request;
    request->serial_lanes =
        target_is_executor(request->target) && predict_is_serial(request, builder->asked->async_lanes);
    if (request->serial_lanes) {
        assume(builder, "the executor on CPUs: lanes run one after another, nothing overlaps");
    }
}

static void say_no_pipeline(Builder *builder) {
    const TuneRequest *request = builder->request;
    const Framework *framework = framework_of(request->target->name);
    const bool searched = builder->defaults->single_plan || request->target->axes & AXES_STAGE;
    if (!searched && request->world > request->cluster.node.accelerators && framework && framework->has_pipelines) {
        assume(builder, "no pipeline stages: shapes with them are not in the search, and may be faster");
    }
}

static void choose_sequence(Builder *builder) {
    TuneRequest *request = builder->request;
    const int said = builder->asked->seq, longest = request->model.max_seq;
    const int most = longest < TUNE_DEFAULT_SEQ ? longest : TUNE_DEFAULT_SEQ;
    request->seq = said > 0 ? said : builder->defaults->seq > 0 ? builder->defaults->seq : most;
    if (request->seq > longest) {
        assume(builder, "sequences of %d tokens, longer than the %d that %s was made for", request->seq, longest,
               request->model.name);
    } else {
        assume(builder, "sequences of %d tokens%s", request->seq, said > 0 ? "" : "; change it with --seq");
    }
    if (said == 0) {
        assume_default(builder, "seq", arena_format(builder->arena, "%d", request->seq));
    }
}

static Status choose_order(Builder *builder, Error *error) {
    TuneRequest *request = builder->request;
    const char *text = builder->asked->rank_order ? builder->asked->rank_order : "auto";
    if (text_same_word(text, "auto")) {
        request->any_order = !builder->defaults->single_plan;
        return STATUS_OK;
    }
    TRY(axis_order_parse(text, &request->order, about(builder->asked, ASKED_RANK_ORDER, error)));
    if (!text_same_word(text, "default")) {
        assume(builder, "ranks are laid out by %s, from slow to fast", text);
    }
    return STATUS_OK;
}

static void choose_limits(Builder *builder) {
    const Asked *asked = builder->asked;
    TuneRequest *request = builder->request;
    request->max_tp = asked->max_tp;
    const bool given = asked->memory_limit_share > 0 || asked->memory_limit_bytes > 0;
    const double share = given ? asked->memory_limit_share : 1;
    request->memory_limit_bytes =
        share > 0 ? share * request->cluster.accelerator.memory_bytes : asked->memory_limit_bytes;
    assume(builder, "memory limit %s per accelerator%s", text_bytes(UNIT_BUFFER, request->memory_limit_bytes),
           given ? "" : " (all of it)");
}

static const char *price_source(const ClusterProfile *cluster) {
    const Provenance *row = cluster_provenance(cluster, "price_usd_per_accelerator_hour");
    return row ? row->source : "source unknown";
}

// Where a price counts and the profile has none, a number without one would be a guess.
static Status choose_objective(Builder *builder, Error *error) {
    Asked *asked = builder->asked;
    TuneRequest *request = builder->request;
    request->objective = asked->objective;
    request->tokens = asked->tokens;
    const double price = request->cluster.price_usd_per_accelerator_hour;
    if (request->objective == OBJECTIVE_COST && price <= 0) {
        error_set(about(asked, ASKED_OBJECTIVE, error), STATUS_USAGE,
                  "--objective cost needs a price, and the profile %s has none", request->cluster.name);
        return error_hint(error, "--set price=USD_PER_ACCELERATOR_HOUR");
    }
    if (request->objective == OBJECTIVE_COST) {
        assume(builder, "one price for every shape of a world: within a world the order by cost is that by throughput");
    }
    if (price > 0 && (request->objective == OBJECTIVE_COST || request->tokens > 0)) {
        assume(builder, "$%.2f per accelerator and hour (%s); change it with --set price=", price,
               price_source(&request->cluster));
    }
    return STATUS_OK;
}

static Status choose_baseline(Builder *builder, Error *error) {
    TuneRequest *request = builder->request;
    if (!builder->asked->baseline) {
        return STATUS_OK;
    }
    about(builder->asked, ASKED_BASELINE, error);
    TRY(mesh_parse(builder->asked->baseline, &request->baseline, error));
    const int ranks = mesh_world(&request->baseline);
    FAIL_IF(ranks != request->world, error, STATUS_USAGE, "the shape of --baseline has %d ranks, the world has %d",
            ranks, request->world);
    return STATUS_OK;
}

static Status check_handicaps(Asked *asked, const TuneRequest *request, Error *error) {
    int place = 0;
    for (int i = 0; i < asked->change_count; i++) {
        if (handicap_named(asked->changes[i])) {
            TRY(handicap_check(&request->handicaps[place++], request, about(asked, ASKED_CHANGE + i, error)));
        }
    }
    return STATUS_OK;
}

Status request_check_world(Asked *asked, const TuneRequest *request, Error *error) {
    const int node = request->cluster.node.accelerators;
    if (request->cluster.fabric.nics > 0 || request->world <= node) {
        return check_handicaps(asked, request, error);
    }
    const int part = asked->world > 0 || asked->nodes > 0 ? ASKED_WORLD : ASKED_MESH;
    return error_set(about(asked, part, error), STATUS_USAGE,
                     "cluster %s is one node of %d without a network; a world of %d does not fit on it",
                     request->cluster.name, node, request->world);
}

Status choose_mesh(Builder *builder, Error *error) {
    TuneRequest *request = builder->request;
    about(builder->asked, ASKED_MESH, error);
    FAIL_IF(!builder->asked->mesh, error, STATUS_USAGE, "--mesh is needed, such as --mesh dp_shard=8,tp=4");
    return mesh_parse(builder->asked->mesh, &request->mesh, error);
}

static int asked_world(const Builder *builder) {
    const Asked *asked = builder->asked;
    const TuneRequest *request = builder->request;
    return builder->defaults->single_plan ? mesh_world(&request->mesh)
           : asked->world > 0             ? asked->world
                                          : asked->nodes * request->cluster.node.accelerators;
}

static Status choose_world(Builder *builder, Error *error) {
    TuneRequest *request = builder->request;
    const int world = asked_world(builder);
    if (world == 0) {
        error_set(about(builder->asked, ASKED_WORLD, error), STATUS_USAGE,
                  "--world is needed: how many accelerators to train on");
        return error_hint(error, "ndtune --world 32 --model 7b");
    }
    const int whole = request_set_world(request, world, builder->arena);
    if (whole > 0) {
        assume(builder, "%d accelerators of each rack's %d, so that racks are alike; --gpus-per-node %d fills them",
               request->cluster.node.accelerators, whole, whole);
    }
    return STATUS_OK;
}

Status request_resolve(Asked *asked, const RequestDefaults *defaults, Arena *arena, TuneRequest *request,
                       Error *error) {
    Builder builder = {asked,
                       defaults,
                       arena,
                       request,
                       ARENA_ARRAY(arena, const char *, MAX_ASSUMPTIONS + asked->change_count),
                       ARENA_ARRAY(arena, const char *, MAX_DEFAULTS)};
    *request = (TuneRequest){.command = asked->command,
                             .assumptions = builder.assumptions,
                             .defaults = builder.defaults_taken,
                             .effort = asked->effort};
    TRY(choose_order_file(&builder, error));
    TRY(defaults->single_plan ? choose_mesh(&builder, error) : STATUS_OK);
    TRY(find_model(&builder, error));
    TRY(find_cluster(&builder, error));
    TRY(choose_world(&builder, error));
    TRY(find_handicaps(&builder, error));
    TRY(find_target(&builder, error));
    find_lanes(&builder);
    TRY(choose_layout(&builder, error));
    TRY(request_check_world(asked, request, error));
    say_no_pipeline(&builder);
    choose_sequence(&builder);
    TRY(choose_precision(&builder, error));
    choose_batch(&builder);
    TRY(choose_order(&builder, error));
    choose_search(&builder);
    TRY(check_choices(&builder, error));
    TRY(check_stages(&builder, error));
    refuse_choices(&builder);
    choose_limits(&builder);
    say_loss(&builder);
    TRY(choose_objective(&builder, error));
    if (defaults->single_plan && !request->refusal) {
        say_without_effect(&builder);
    }
    return choose_baseline(&builder, error);
}
