// Opening: this rank's GPU, the id that rank 0 creates, one communicator of all ranks, and one split from it for each
// lane: nothing is shared between them, so that aborting one does not affect another (sim/SOURCES.md X2). Rank 0's id
// comes through the run's segment, or through the launcher of the ranks: no MPI.

#define _GNU_SOURCE  // setenv in strict C

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exec/transport/nccl_state.h"
#include "exec/transport/shm.h"
#include "sim/base/hash.h"

static const double START_S = 60;  // all ranks have connected by then: drivers and contexts take seconds
static const Communicator START = {.name = "start", .id = -1, .axes = AXIS_ALL};

static bool share_gpu(void) {
    const char *wanted = getenv("NDTUNE_NCCL_SHARE_GPU");
    return wanted && strcmp(wanted, "1") == 0;
}

// ---------------------------------------------------------------------------------------------- the GPU

static void settings_set(int rank) {
    NcclSetting settings[NCCL_SETTINGS_MOST];
    const int count = nccl_settings(share_gpu(), settings);
    char own[32];
    snprintf(own, sizeof own, "ndtune-rank-%d", rank);
    for (int i = 0; i < count; i++) {
        setenv(settings[i].name, settings[i].value ? settings[i].value : own, 0);
    }
}

static Status gpu_take(Transport *nccl, Error *error) {
    const TransportSetup *setup = &nccl->setup;
    NcclPlace place = {.local_rank = setup->local_rank,
                       .local_ranks = setup->segment_fd >= 0 ? mesh_world(&setup->mesh) : 0,
                       .share_gpu = share_gpu()};
    int gpu;
    CUcontext context;
    TRY(nccl_cuda_try(nccl, nccl->cuda.device_get_count(&place.gpus), "counting GPUs", error));
    TRY(nccl_place(&place, &gpu, error));
    TRY(nccl_cuda_try(nccl, nccl->cuda.device_get(&nccl->gpu, gpu), "a GPU", error));
    TRY(nccl_cuda_try(nccl, nccl->cuda.primary_retain(&context, nccl->gpu), "a context on the GPU", error));
    nccl->has_context = true;
    return nccl_cuda_try(nccl, nccl->cuda.context_set(context), "a context on the GPU", error);
}

static Status memory_take(Transport *nccl, Error *error) {
    const size_t counts_bytes = (size_t)nccl->lane_count * sizeof(LaneCounts);
    nccl->start_cell = aligned_alloc(PROGRESS_LINE_BYTES, sizeof(ProgressCell));
    FAIL_IF(!nccl->start_cell, error, STATUS_INTERNAL, "no memory for a cell");
    memset(nccl->start_cell, 0, sizeof *nccl->start_cell);
    void *counts = NULL;
    CUdeviceptr at;
    TRY(nccl_cuda_try(nccl, nccl->cuda.mem_alloc(&nccl->staging, 2 * (size_t)NCCL_STAGING_BYTES), "staging memory",
                      error));
    TRY(nccl_cuda_try(nccl, nccl->cuda.host_alloc(&counts, counts_bytes, CU_MEMHOSTALLOC_DEVICEMAP), "counters",
                      error));
    nccl->counts = counts;
    TRY(nccl_cuda_try(nccl, nccl->cuda.host_device_pointer(&at, counts, 0), "counters", error));
    for (int i = 0; i < nccl->lane_count; i++) {
        nccl->lanes[i].counts_at = at + (CUdeviceptr)((size_t)i * sizeof(LaneCounts));
    }
    return STATUS_OK;
}

// With the highest priority: a collective that waits for SMs queued after a GEMM holds up every rank.
static Status stream_make(Transport *nccl, NcclLane *lane, Error *error) {
    int least = 0, greatest = 0;
    nccl->cuda.priority_range(&least, &greatest);
    return nccl_cuda_try(nccl, nccl->cuda.stream_create(&lane->stream, CU_STREAM_NON_BLOCKING, greatest), "a stream",
                         error);
}

// ---------------------------------------------------------------------------------------------- the other ranks

static Status segment_join(Transport *nccl, Arena *arena, Error *error) {
    TransportSetup setup = nccl->setup;
    setup.timeout_s = nccl->limit_s;
    setup.spins = 0;
    TRY(transport_shm.open(&setup, arena, &nccl->segment, error));
    nccl->table = *shm_table_of(nccl->segment);
    nccl->table.ordered = false;  // streams run asynchronously
    nccl->row = &nccl->table.ranks[setup.rank];
    return STATUS_OK;
}

static Status id_gather(Transport *nccl, ncclUniqueId *id, Arena *arena, Error *error) {
    const TransportSetup *setup = &nccl->setup;
    ncclUniqueId *all = ARENA_ARRAY(arena, ncclUniqueId, mesh_world(&setup->mesh));
    int world = 0;
    while (world < setup->communicator_count &&
           (setup->communicators[world].axes != AXIS_ALL || setup->communicators[world].link.step != 0)) {
        world++;
    }
    ASSERT(world < setup->communicator_count);
    const TransportCall call = {
        .communicator = world, .in = id, .out = all, .bytes = sizeof *id, .place = {.step = -1, .task = -1}};
    TRY(transport_shm.run(nccl->segment, TRANSPORT_ALL_GATHER, &call, error));
    *id = all[0];
    return STATUS_OK;
}

static Status id_exchange(Transport *nccl, ncclUniqueId *id, Arena *arena, Error *error) {
    const TransportSetup *setup = &nccl->setup;
    memset(id, 0, sizeof *id);
    if (setup->rank == 0) {
        TRY(nccl_try(nccl, NULL, nccl->nccl.get_unique_id(id), "an id for the run", error));
    }
    if (mesh_world(&setup->mesh) == 1) {
        return STATUS_OK;
    }
    if (nccl->segment) {
        return id_gather(nccl, id, arena, error);
    }
    ASSERT(setup->share);
    return setup->share(setup->share_context, id, sizeof *id, error);
}

// ---------------------------------------------------------------------------------------------- communicators

static ncclConfig_t config_of(const NcclLane *lane) {
    static const int policies[] = {[NCCL_POLICY_DEFAULT] = NCCL_CTA_POLICY_DEFAULT,
                                   [NCCL_POLICY_EFFICIENCY] = NCCL_CTA_POLICY_EFFICIENCY,
                                   [NCCL_POLICY_ZERO] = NCCL_CTA_POLICY_ZERO};
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    config.blocking = 0;
    config.splitShare = 0;
    config.commName = lane->spec->name;
    if (lane->choice.policy != NCCL_POLICY_DEFAULT) {
        config.CTAPolicy = policies[lane->choice.policy];
    }
    if (lane->choice.most_ctas > 0) {
        config.maxCTAs = lane->choice.most_ctas;
    }
    return config;
}

static Status start_open(Transport *nccl, Arena *arena, Error *error) {
    const TransportSetup *setup = &nccl->setup;
    NcclLane *start = &nccl->lanes[setup->communicator_count];
    ncclUniqueId id;
    ncclConfig_t config = config_of(start);
    TRY(id_exchange(nccl, &id, arena, error));
    TRY(nccl_try(nccl, start,
                 nccl->nccl.comm_init_rank_config(&start->comm, mesh_world(&setup->mesh), id, setup->rank, &config),
                 "to meet the other ranks", error));
    return nccl_settle(nccl, start, "to meet the other ranks", error);
}

// By host name, which all ranks exchange.
static Status hosts_find(Transport *nccl, uint64_t *hosts, Error *error) {
    NcclLane *start = &nccl->lanes[nccl->setup.communicator_count];
    Hash hash = hash_begin();
    hash_text(&hash, nccl->row->host);
    const uint64_t own = hash_end(&hash);
    return nccl_run(nccl, start, TRANSPORT_ALL_GATHER,
                    &(TransportCall){.in = &own, .out = hosts, .bytes = sizeof own, .place = {.step = -1, .task = -1}},
                    error);
}

static bool one_host(const TransportSetup *setup, const NcclLane *lane, const uint64_t *hosts) {
    const TransportGroup group = transport_group(&setup->mesh, lane->spec, setup->rank);
    bool one = true;
    for (int i = 0; i < group.size; i++) {
        one = one && hosts[group.ranks[i]] == hosts[setup->rank];
    }
    return one;
}

// Splitting is a collective over all ranks: the same lanes in the same order.
static Status lane_split(Transport *nccl, NcclLane *lane, Error *error) {
    const TransportSetup *setup = &nccl->setup;
    NcclLane *start = &nccl->lanes[setup->communicator_count];
    const int color = lane->size > 1 ? lane->first : NCCL_SPLIT_NOCOLOR;
    ncclConfig_t config = config_of(lane);
    TRY(nccl_try(nccl, start, nccl->nccl.comm_split(start->comm, color, lane->index, &lane->made, &config),
                 lane->spec->name, error));
    TRY(nccl_settle(nccl, start, lane->spec->name, error));
    if (lane->size == 1) {
        return STATUS_OK;
    }
    TRY(nccl_made(nccl, lane, "to be made", error));
    return nccl_settle(nccl, lane, "to meet its group", error);
}

static Status lanes_open(Transport *nccl, Arena *arena, Error *error) {
    const TransportSetup *setup = &nccl->setup;
    uint64_t *hosts = ARENA_ARRAY(arena, uint64_t, mesh_world(&setup->mesh));
    TRY(hosts_find(nccl, hosts, error));
    for (int i = 0; i < setup->communicator_count; i++) {
        NcclLane *lane = &nccl->lanes[i];
        lane->choice = nccl_choose(&(NcclFacts){.version = nccl->nccl.version,
                                                .driver = nccl->cuda.version,
                                                .lane = lane->spec->name,
                                                .size = lane->size,
                                                .one_host = one_host(setup, lane, hosts),
                                                .share_gpu = share_gpu()});
        if (lane->size > 1) {
            TRY(stream_make(nccl, lane, error));
        }
        if (lane->size > 1 || lane->spec->link.step != 0) {  // some ranks are in no link
            TRY(lane_split(nccl, lane, error));
        }
    }
    return STATUS_OK;
}

static void lanes_begin(Transport *nccl, Arena *arena) {
    const TransportSetup *setup = &nccl->setup;
    for (int i = 0; i < nccl->lane_count; i++) {
        NcclLane *lane = &nccl->lanes[i];
        const bool start = i == setup->communicator_count;
        lane->spec = start ? &START : &setup->communicators[i];
        const TransportGroup group = transport_group(&setup->mesh, lane->spec, setup->rank);
        lane->size = group.size;
        lane->index = group.index;
        lane->first = group.ranks[0];
        const LanePlace of = {.communicator = lane->spec,
                              .peer = group.ranks[1 - group.index % 2],
                              .row = nccl->row,
                              .cell = start ? nccl->start_cell : &nccl->row->cells[i]};
        lane_watch_begin(&lane->watch, &of, &nccl->counts[i], arena);
        lane->outbox.count = lane->spec->ahead;
        lane->outbox.ends = ARENA_ARRAY(arena, unsigned, lane->spec->ahead);
    }
}

Status nccl_open(const TransportSetup *setup, Arena *arena, Transport **transport, Error *error) {
    TRY(transport_check_setup("nccl", setup, error));
    FAIL_IF(setup->concurrent, error, STATUS_USAGE,
            "transport nccl takes calls from one thread: its lanes are streams already");
    Transport *nccl = ARENA_NEW(arena, Transport);
    *transport = nccl;
    nccl->setup = *setup;
    nccl->limit_s = fmax(setup->timeout_s, START_S);
    nccl->row = setup->row;
    nccl->table = progress_table_from(setup, NULL);
    nccl->lane_count = setup->communicator_count + 1;
    nccl->lanes = ARENA_ARRAY(arena, NcclLane, nccl->lane_count);
    if (setup->segment_fd >= 0 && mesh_world(&setup->mesh) > 1) {
        TRY(segment_join(nccl, arena, error));
    } else {
        ASSERT(nccl->row);
        progress_row_join(nccl->row);
    }
    settings_set(setup->rank);
    TRY(cuda_driver_open(&nccl->cuda, error));
    TRY(gpu_take(nccl, error));
    TRY(nccl_library_open(&nccl->nccl, error));
    TRY(memory_take(nccl, error));
    lanes_begin(nccl, arena);
    TRY(stream_make(nccl, &nccl->lanes[setup->communicator_count], error));
    TRY(start_open(nccl, arena, error));
    TRY(lanes_open(nccl, arena, error));
    nccl->limit_s = setup->timeout_s;
    return nccl_shower_start(nccl, error);
}

// ---------------------------------------------------------------------------------------------- device memory

// A symmetric window has the same offset on every rank: the same size everywhere.
static Status sizes_agree(Transport *nccl, int64_t bytes, Error *error) {
    int64_t all[TRANSPORT_MAX_WORLD];
    TRY(nccl_run(nccl, &nccl->lanes[nccl->setup.communicator_count], TRANSPORT_ALL_GATHER,
                 &(TransportCall){.in = &bytes, .out = all, .bytes = sizeof bytes, .place = {.step = -1, .task = -1}},
                 error));
    for (int rank = 0; rank < mesh_world(&nccl->setup.mesh); rank++) {
        FAIL_IF(all[rank] != bytes, error, STATUS_INTERNAL, "memory of rank %d has %lld bytes, that of rank %d %lld",
                rank, (long long)all[rank], nccl->setup.rank, (long long)bytes);
    }
    return STATUS_OK;
}

static Status windows_register(Transport *nccl, int number, Error *error) {
    for (int i = 0; i < nccl->lane_count; i++) {
        NcclLane *lane = &nccl->lanes[i];
        if (lane->comm && lane->choice.windows && nccl->nccl.comm_window_register) {
            const size_t bytes = (size_t)nccl->memory_bytes[number];
            TRY(nccl_try(nccl, lane,
                         nccl->nccl.comm_window_register(lane->comm, nccl->memories[number], bytes,
                                                         &lane->windows[number], NCCL_WIN_COLL_SYMMETRIC),
                         "a window", error));
            TRY(nccl_settle(nccl, lane, "a window", error));
        }
    }
    return STATUS_OK;
}

Status nccl_memory(Transport *nccl, int64_t bytes, void **memory, Error *error) {
    *memory = NULL;
    if (!nccl->nccl.mem_alloc || !nccl->nccl.mem_free) {
        return STATUS_OK;
    }
    const int number = nccl->memory_count;
    ASSERT(number < NCCL_MEMORIES_MOST);
    TRY(sizes_agree(nccl, bytes, error));
    const int64_t grain = NCCL_WIN_REQUIRED_ALIGNMENT;
    nccl->memory_bytes[number] = (bytes + grain - 1) / grain * grain;
    TRY(nccl_try(nccl, NULL, nccl->nccl.mem_alloc(&nccl->memories[number], (size_t)nccl->memory_bytes[number]),
                 "device memory", error));
    nccl->memory_count++;
    TRY(windows_register(nccl, number, error));
    *memory = nccl->memories[number];
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- close

static void lane_close(Transport *nccl, NcclLane *lane) {
    Error unread;
    if (lane->comm && !nccl->torn) {
        for (int i = 0; i < nccl->memory_count; i++) {
            if (lane->windows[i]) {
                nccl->nccl.comm_window_deregister(lane->comm, lane->windows[i]);
                nccl_settle(nccl, lane, "close", &unread);  // before the next call, as after every other
            }
        }
        const bool quiet = nccl_try(nccl, lane, nccl->nccl.comm_finalize(lane->comm), "close", &unread) == STATUS_OK &&
                           nccl_settle(nccl, lane, "close", &unread) == STATUS_OK;
        if (quiet) {
            nccl->nccl.comm_destroy(lane->comm);
        } else {
            nccl->nccl.comm_abort(lane->comm);
        }
        lane->comm = NULL;
    }
    if (lane->stream) {
        nccl->cuda.stream_destroy(lane->stream);
    }
    if (lane->outbox.places) {
        nccl->cuda.mem_free(lane->outbox.places);
    }
}

void nccl_close(Transport *nccl) {
    nccl_shower_stop(nccl);
    if (!nccl_poll(nccl)) {
        nccl_abort(nccl);
    }
    for (int i = 0; i < nccl->lane_count; i++) {
        lane_close(nccl, &nccl->lanes[i]);
    }
    for (int i = 0; i < nccl->memory_count; i++) {
        nccl->nccl.mem_free(nccl->memories[i]);
    }
    if (nccl->staging) {
        nccl->cuda.mem_free(nccl->staging);
    }
    if (nccl->counts) {
        nccl->cuda.host_free(nccl->counts);
    }
    free(nccl->start_cell);
    if (nccl->has_context) {
        nccl->cuda.primary_release(nccl->gpu);
    }
    if (nccl->segment) {
        transport_shm.close(nccl->segment);
    }
}
