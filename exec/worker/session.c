// Opening a rank: lower independently, check the hash against the launcher's, map memory, join the transport, start
// lanes. And running one step.

#include "exec/worker/session.h"

#include <inttypes.h>

#include "exec/protocol/cores.h"
#include "exec/protocol/program_words.h"
#include "exec/transport/nccl_choice.h"
#include "exec/worker/exchange.h"
#include "exec/worker/interpreter.h"
#include "exec/worker/lanes.h"
#include "sim/base/clock.h"
#include "sim/base/json.h"

// Polls before sleeping in a gate: about 50 us, longer than a rank lags behind another in a balanced step; only if
// every waiting thread has its own core.
enum { GATE_SPINS = 2000 };

// A launcher that sees all ranks' rows knows more than a waiting rank: it reports first.
static const double LAUNCHER_FIRST_S = 1.5;

// Enough for a median, with few events; at most a fraction of the steps, since they run task by task, without graphs.
enum { TRACED_MOST = 3, TRACED_PART = 4 };

static Status program_open(Session *session, Arena *arena, Error *error) {
    const RunRequest *request = session->request;
    TRY(step_lower_stages(&request->model, &request->plan, request->target, arena, &session->programs, error));
    const int stage = mesh_stage_of(&request->plan.mesh, session->rank);
    session->program = session->programs.of[stage];
    const uint64_t hash = step_programs_hash(&session->programs);
    FAIL_IF(hash != request->template_hash, error, STATUS_INTERNAL,
            "this worker lowers to program %016" PRIx64 ", the launcher to %016" PRIx64, hash, request->template_hash);
    TRY(memory_plan(&session->program, arena, &session->memory, error));
    return communicators_find(&session->programs, stage, request, arena, &session->communicators, error);
}

// A chip that does less than this while shared with others may be taken for hung.
static const double SLOWEST_FLOP_PER_S = 1e12;  // judged: below a tenth of an A100's 1.95e13 in fp32 (data sheet)
enum { MARKS_IN_TIME = 5 };  // judged: per timeout, so that four may be late on a chip as slow as that

static void session_alive(void *context) {
    Session *session = context;
    session->transports->note(session->transport, &session->place);
}

static bool session_moved(void *context) {
    Session *session = context;
    const bool moved = session->device && session->devices->moved && session->devices->moved(session->device);
    if (moved) {
        session_alive(session);
    }
    return moved;
}

static Status transport_join(Session *session, Arena *arena, Error *error) {
    const RunRequest *request = session->request;
    const RunOptions *options = &request->options;
    const bool own_cores =
        options->lanes == LANES_SERIAL && mesh_world(&request->plan.mesh) * (long)options->threads <= cores_allowed();
    if (!session->rendezvous) {
        progress_row_begin(&session->row);
    }
    session->transports = transport_find(options->transport, error);
    if (!session->transports) {
        return error->status;
    }
    const TransportSetup setup = {.mesh = request->plan.mesh,
                                  .rank = session->rank,
                                  .local_rank = session->local_rank,
                                  .share = session->rendezvous ? rendezvous_share : NULL,
                                  .share_context = session->rendezvous,
                                  .communicators = session->communicators.entries,
                                  .communicator_count = session->communicators.count,
                                  .segment_fd = request->segment_fd,
                                  .timeout_s = options->timeout_s + (session->rendezvous ? LAUNCHER_FIRST_S : 0),
                                  .spins = own_cores ? GATE_SPINS : 0,
                                  .concurrent = options->lanes == LANES_ASYNC,
                                  .row = session->rendezvous ? &session->rendezvous->row : &session->row,
                                  .moved = session_moved,
                                  .moved_context = session,
                                  .words = program_words(&session->programs)};
    return session->transports->open(&setup, arena, &session->transport, error);
}

static Status device_begin(Session *session, Arena *arena, Error *error) {
    const RunOptions *options = &session->request->options;
    session->devices = device_find(options->device, error);
    if (!session->devices) {
        return error->status;
    }
    const TransportTable *transports = session->transports;
    void *memory = NULL;
    if (transports->memory && session->devices->own_memory &&
        session->request->job == JOB_TRAIN) {  // others: link_room.h
        TRY(transports->memory(session->transport, session->memory.arena_bytes, &memory, error));
    }
    const DeviceSetup setup = {.program = &session->program,
                               .memory = &session->memory,
                               .at = session->at,
                               .threads = options->threads > 0 ? options->threads : 1,
                               .bitwise = options->bitwise,
                               .deterministic = options->deterministic,
                               .poison = options->poison,
                               .local_rank = session->local_rank,
                               .staged = !transports->finish,
                               .singly = options->fault.action != FAULT_NONE,
                               .collective_sms = transports->finish ? NCCL_SCATTER_CTAS : 0,
                               .arena = memory,
                               .mark_work = options->timeout_s * SLOWEST_FLOP_PER_S / MARKS_IN_TIME,
                               .alive = session_alive,
                               .alive_context = session,
                               .prices = options->prices,
                               .price_count = options->price_count,
                               .data = {.seed = options->seed,
                                        .vocab = session->request->model.vocab,
                                        .path = options->data_path,
                                        .tokens = options->data_tokens},
                               .numbers = {.seed = options->seed,
                                           .lr = options->lr,
                                           .beta1 = options->beta1,
                                           .beta2 = options->beta2,
                                           .eps = options->eps,
                                           .weight_decay = options->weight_decay,
                                           .clip = options->clip}};
    return session->devices->open(&setup, arena, &session->device, error);
}

// A device that times tasks itself does so only in the last steps, and not at all if there are too many tasks.
static void recorder_open(Session *session, Arena *arena) {
    const RunOptions *options = &session->request->options;
    const DeviceTable *devices = session->devices;
    DeviceAccount account;
    devices->account(session->device, &account);
    const bool traceable = !devices->span || account.spans;
    const int part = options->steps / TRACED_PART;
    const int timed = part < 1 ? 1 : part > TRACED_MOST ? TRACED_MOST : part;
    const int steps = devices->span ? timed : options->steps;
    recorder_begin(&session->recorder, &session->program, steps, options->spans && traceable, arena);
    const int traced = session->recorder.steps_kept > 0 ? session->recorder.steps_kept : 1;
    session->traced_from = devices->span && traceable ? options->steps - traced : INT64_MAX;
}

Status session_join(const RunRequest *request, const RankPlace *place, Arena *arena, Session *session, Error *error) {
    *session = (Session){.request = request,
                         .rank = place->rank,
                         .local_rank = place->local_rank,
                         .rendezvous = place->rendezvous,
                         .at = mesh_coordinates(&request->plan.mesh, place->rank)};
    TRY(program_open(session, arena, error));
    TRY(transport_join(session, arena, error));
    TRY(device_begin(session, arena, error));
    recorder_open(session, arena);
    exchange_open(session, arena);
    return request->options.lanes == LANES_ASYNC ? lanes_open(session, arena, error) : STATUS_OK;
}

void session_close(Session *session) {
    lanes_close(session);
    if (session->device) {
        session->devices->close(session->device);
    }
    if (session->transport) {
        session->transports->close(session->transport);
    }
}

Status session_meet(Session *session, Error *error) {
    const TransportCall call = {.communicator = session->communicators.world, .place = {.step = -1, .task = -1}};
    return session->transports->run(session->transport, TRANSPORT_BARRIER, &call, error);
}

Status session_read(Session *session, const SlotBytes *from, void *out, Error *error) {
    const BufferRef ref = {.buffer = from->buffer,
                           .index = {.layer_offset = (int16_t)from->slot},
                           .rank_group = -1,
                           .offset_bytes = from->first_byte,
                           .bytes = from->bytes};
    return session->devices->read(session->device, &ref, &(StepInstance){0}, out, error);
}

// Ranks start a step together and agree on the time of the slowest.
static Status step_agree(Session *session, double own_s, double *slowest_s, Error *error) {
    float seconds = (float)own_s;
    const TransportCall call = {.communicator = session->communicators.world,
                                .in = &seconds,
                                .out = &seconds,
                                .bytes = sizeof seconds,
                                .op = REDUCE_MAX,
                                .place = {.step = (int32_t)session->step, .task = -1}};
    TRY(session->transports->run(session->transport, TRANSPORT_ALL_REDUCE, &call, error));
    *slowest_s = seconds;
    return STATUS_OK;
}

// Totals cover steps after the warm-up that were timed. True when the device times this step itself.
static bool step_recording(Session *session) {
    const bool traced = session->step >= session->traced_from;
    Recorder *recorder = &session->recorder;
    recorder->counting = session->step > 0 || session->request->options.steps == 1;
    if (session->devices->span) {
        recorder->counting = recorder->counting && traced;
    }
    recorder->counted += recorder->counting;
    return traced;
}

Status session_step(Session *session, StepReport *report, Error *error) {
    const TransportPlace begin = {.step = (int32_t)session->step, .task = -1};
    const bool traced = step_recording(session);
    session->devices->begin_step(session->device, session->step, traced);
    session->place = begin;
    session->transports->note(session->transport, &begin);
    const TransportCall meet = {.communicator = session->communicators.world, .place = begin};
    TRY(session->transports->run(session->transport, TRANSPORT_BARRIER, &meet, error));
    session->step_begin_s = clock_s();
    TRY(session->lanes ? lanes_run_step(session, error) : interpreter_run_serial(session, error));
    if (session->transports->finish) {  // first: a stream that waits for a hung rank never ends
        TRY(session->transports->finish(session->transport, error));
    }
    TRY(session->devices->synchronize(session->device, error));
    const double own_s = clock_s() - session->step_begin_s;
    if (traced) {
        TRY(interpreter_take_spans(session, error));
    }
    TRY(step_agree(session, own_s, &report->step_time_s, error));
    const StepProgram *program = &session->program;
    float loss, norm;
    TRY(session_read(session, &(SlotBytes){program->loss_buffer, 0, 0, sizeof loss}, &loss, error));
    TRY(session_read(session, &(SlotBytes){program->norm_buffer, 0, sizeof norm, sizeof norm}, &norm, error));
    report->loss = (double)loss / (double)plan_tokens_per_step(&program->plan);
    report->grad_norm = norm;
    session->step++;
    return STATUS_OK;
}

Status session_report(const Session *session, json_t *root, Error *error) {
    FAIL_IF(!root, error, STATUS_INTERNAL, "the result cannot be written as JSON");
    const Status status = session->rendezvous
                              ? rendezvous_send_json(session->rendezvous, RENDEZVOUS_RESULT, root, error)
                              : json_file_save(session->request->result_path, root, error);
    json_decref(root);
    return status;
}
