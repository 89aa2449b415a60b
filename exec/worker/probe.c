// The sequence of a probe: which rank is where; on CPUs a few real steps for the time between tasks, all ranks at once,
// kernels of one rank alone; on a device with its own memory that device's kernels; then collectives.

#include "exec/worker/probe.h"

void probe_add(Probe *probe, const ProbeTopic *topic, const Timing *timing) {
    if (probe->samples) {
        json_array_append_new(probe->samples,
                              json_pack("{s:s, s:s, s:[f,f,f,f], s:i, s:i, s:f, s:f, s:f, s:i}", "what", topic->what,
                                        "name", topic->name, "size", topic->size[0], topic->size[1], topic->size[2],
                                        topic->size[3], "nodes", topic->nodes, "per_node", topic->per_node, "seconds",
                                        timing->seconds, "low", timing->low, "high", timing->high, "repeats",
                                        timing->repeats));
    }
}

Status probe_meet(Probe *probe, Error *error) {
    return session_meet(probe->session, error);
}

// The time between the end of one compute task and the start of the next one on the same thread.
static void add_gap(Probe *probe) {
    const Recorder *recorder = &probe->session->recorder;
    const StepProgram *program = &probe->session->program;
    const int64_t at = (probe->session->step - 1) % recorder->steps_kept * recorder->instances;
    double *gaps = ARENA_ARRAY(probe->arena, double, recorder->instances);
    int count = 0;
    StepCursor cursor = step_cursor_begin(program);
    StepInstance instance;
    bool compute_before = false;
    for (int64_t i = at; step_cursor_next(&cursor, &instance); i++) {
        const bool compute = !task_is_transfer(&program->tasks[instance.task]);
        if (compute && compute_before) {
            gaps[count++] = recorder->start_s[i] - recorder->end_s[i - 1];
        }
        compute_before = compute;
    }
    if (count > 0) {
        const Timing timing = timing_of(gaps, count);
        probe_add(probe, &(ProbeTopic){.what = "gap", .name = "between tasks", .nodes = 1, .per_node = 1}, &timing);
    }
}

static Status probe_steps(Probe *probe, Error *error) {
    for (int i = 0; i < probe->session->request->options.steps; i++) {
        StepReport report;
        TRY(session_step(probe->session, &report, error));
    }
    add_gap(probe);
    return STATUS_OK;
}

static json_t *hosts_json(const Probe *probe) {
    json_t *rows = json_array();
    for (int rank = 0; rank < probe->world; rank++) {
        const RankHost *host = &probe->hosts[rank];
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s, s:i, s:I, s:I}", "name", host->name, "boot",
                                              host->boot, "processor", host->processor, "core_type", host->core_type,
                                              "node", (int)host->node, "cores", (json_int_t)host->cores, "memory_bytes",
                                              (json_int_t)host->memory_bytes));
    }
    return rows;
}

static Status probe_save(const Probe *probe, Error *error) {
    DeviceAccount account;
    probe->session->devices->account(probe->session->device, &account);
    return session_report(probe->session,
                          json_pack("{s:s, s:o, s:s?, s:{s:i, s:i, s:I, s:I}, s:O}", "schema", "ndtune.probe-result/1",
                                    "hosts", hosts_json(probe), "chip", account.chip, "device", "divisor",
                                    probe->divisor, "processors", account.processors, "memory_bytes",
                                    (json_int_t)account.memory_bytes, "cache_bytes", (json_int_t)account.cache_bytes,
                                    "samples", probe->samples),
                          error);
}

// A device's own gaps are not those between the host's calls: steps measure them for a host only.
static Status probe_host(Probe *probe, Error *error) {
    TRY(probe_steps(probe, error));
    TRY(probe_together(probe, error));
    return probe_kernels(probe, error);
}

static Status probe_all(Probe *probe, Error *error) {
    TRY(hosts_gather(probe->session, probe->arena, &probe->hosts, error));
    TRY(probe->session->devices->own_memory ? probe_device(probe, error) : probe_host(probe, error));
    TRY(probe_collectives(probe, error));
    return probe->session->rank == 0 ? probe_save(probe, error) : STATUS_OK;
}

Status probe_run(Session *session, Arena *arena, Error *error) {
    Probe probe = {.session = session,
                   .arena = arena,
                   .world = mesh_world(&session->request->plan.mesh),
                   .samples = session->rank == 0 ? json_array() : NULL};
    probe.divisor = probe_divisor(&probe);
    const Status status = probe_all(&probe, error);
    json_decref(probe.samples);
    return status;
}
