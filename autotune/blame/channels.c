// Sends and receives as groups of two. Recorders number message batches by rank, not by pair, so a message's number is
// its position within its channel.

#include "autotune/blame/job.h"

enum { NOBODY = -1 };

typedef struct Finding {
    Job *job;
    Arena *arena;
    size_t group_capacity;
    int **rank_at;    // by process group and index in it; NULL = nobody has sent there
    int *first_from;  // by rank: the first channel that it sends on
    int *next_from;   // by channel, counted after the process groups
    size_t next_capacity;
} Finding;

// ---------------------------------------------------------------------------------------------- ranks and indices

static void place_rank(Finding *finding, int group, int index, int rank) {
    const int world = finding->job->world;
    if (index < 0 || index >= world) {
        return;
    }
    if (!finding->rank_at[group]) {
        finding->rank_at[group] = ARENA_UNCLEARED(finding->arena, int, world);
        for (int i = 0; i < world; i++) {
            finding->rank_at[group][i] = NOBODY;
        }
    }
    finding->rank_at[group][index] = rank;
}

// The members that a dump lists, in order; otherwise each rank states its own index when it sends.
static void find_indices(Finding *finding) {
    Job *job = finding->job;
    finding->rank_at = ARENA_ARRAY(finding->arena, int *, job->process_groups);
    for (int rank = 0; rank < job->world; rank++) {
        const JobRank *row = &job->ranks[rank];
        for (int e = 0; row->dump && e < row->dump->entry_count; e++) {
            const DumpEntry *entry = &row->dump->entries[e];
            const int g = row->group_of[entry->group];
            if (!dump_op_is_message(entry->op) || (job->groups[g].whole && finding->rank_at[g])) {
                continue;
            }
            for (int m = 0; m < job->groups[g].count && job->groups[g].whole; m++) {
                place_rank(finding, g, m, job->groups[g].members[m].rank);
            }
            if (!job->groups[g].whole) {
                place_rank(finding, g, entry->own, rank);
            }
        }
    }
}

static int rank_at(const Finding *finding, int group, int index) {
    return finding->rank_at[group] && index >= 0 && index < finding->job->world ? finding->rank_at[group][index]
                                                                                : NOBODY;
}

// ---------------------------------------------------------------------------------------------- the channels

static JobGroup *add_channel(Finding *finding, int parent, int from, int to) {
    Job *job = finding->job;
    const int at = job->group_count++, own = at - job->process_groups;
    job->groups = arena_grow(finding->arena, job->groups, (size_t)at, &finding->group_capacity, sizeof *job->groups);
    JobGroup *channel = &job->groups[at];
    *channel = (JobGroup){.name = job->groups[parent].name,
                          .desc = job->groups[parent].desc,
                          .members = ARENA_ARRAY(finding->arena, Member, 2),
                          .count = 2,
                          .whole = true,
                          .parent = parent,
                          .from = from,
                          .to = to};
    channel->members[from > to].rank = from;
    channel->members[from < to].rank = to;
    finding->next_from = arena_grow(finding->arena, finding->next_from, (size_t)own, &finding->next_capacity,
                                    sizeof *finding->next_from);
    finding->next_from[own] = finding->first_from[from];
    finding->first_from[from] = at;
    return channel;
}

static int take_channel(Finding *finding, int parent, const DumpEntry *entry) {
    const bool sends = entry->op == DUMP_SEND;
    const int own = rank_at(finding, parent, entry->own), peer = rank_at(finding, parent, entry->peer);
    const int from = sends ? own : peer, to = sends ? peer : own;
    if (from == NOBODY || to == NOBODY || from == to) {
        return NOBODY;
    }
    const Job *job = finding->job;
    for (int c = finding->first_from[from]; c >= 0; c = finding->next_from[c - job->process_groups]) {
        if (job->groups[c].parent == parent && job->groups[c].to == to) {
            return c;
        }
    }
    JobGroup *channel = add_channel(finding, parent, from, to);
    channel->from_index = sends ? entry->own : entry->peer;
    channel->to_index = sends ? entry->peer : entry->own;
    return (int)(channel - job->groups);
}

// Stages of a pipeline exchange activations and gradients, in both directions; a ring sends one way.
static void find_stages(Finding *finding) {
    Job *job = finding->job;
    for (int g = job->process_groups; g < job->group_count; g++) {
        JobGroup *channel = &job->groups[g];
        for (int c = finding->first_from[channel->to]; c >= 0; c = finding->next_from[c - job->process_groups]) {
            if (job->groups[c].parent == channel->parent && job->groups[c].to == channel->from) {
                job->ranks[channel->from].stage = channel->from_index;
                channel->stages = true;
            }
        }
    }
}

static void add_own(JobRank *row, const DumpEntry *entry, int channel, Arena *arena, size_t *capacity) {
    ARENA_PUSH(arena, row->channels, row->channel_count, capacity) = (RankChannel){
        .parent = row->group_of[entry->group], .peer = entry->peer, .sends = entry->op == DUMP_SEND, .group = channel};
}

int channel_of(const Job *job, int rank, const DumpEntry *message) {
    const JobRank *row = &job->ranks[rank];
    for (int c = 0; c < row->channel_count && dump_op_is_message(message->op); c++) {
        const RankChannel *channel = &row->channels[c];
        if (channel->parent == row->group_of[message->group] && channel->peer == message->peer &&
            channel->sends == (message->op == DUMP_SEND)) {
            return channel->group;
        }
    }
    return NOBODY;
}

void channels_find(Job *job, Arena *arena) {
    Finding finding = {.job = job, .arena = arena, .group_capacity = (size_t)job->group_count};
    finding.first_from = ARENA_UNCLEARED(arena, int, job->world);
    for (int rank = 0; rank < job->world; rank++) {
        finding.first_from[rank] = NOBODY;
        job->ranks[rank].stage = NOBODY;
    }
    find_indices(&finding);
    for (int rank = 0; rank < job->world; rank++) {
        JobRank *row = &job->ranks[rank];
        size_t capacity = 0;
        for (int e = 0; row->dump && e < row->dump->entry_count; e++) {
            const DumpEntry *entry = &row->dump->entries[e];
            if (!dump_op_is_message(entry->op) || channel_of(job, rank, entry) != NOBODY) {
                continue;
            }
            const int channel = take_channel(&finding, row->group_of[entry->group], entry);
            if (channel != NOBODY) {
                add_own(row, entry, channel, arena, &capacity);
            }
        }
    }
    find_stages(&finding);
}

// ---------------------------------------------------------------------------------------------- kinds

// Channels between the same two indices of groups of one kind are of one kind.
void channels_find_kinds(Job *job, Arena *arena) {
    const JobGroup **first = NULL;  // of each kind
    size_t capacity = 0;
    int kinds = 0;
    for (int g = job->process_groups; g < job->group_count; g++) {
        JobGroup *channel = &job->groups[g];
        int k = 0;
        while (k < kinds && !(job->groups[first[k]->parent].kind == job->groups[channel->parent].kind &&
                              first[k]->from_index == channel->from_index && first[k]->to_index == channel->to_index)) {
            k++;
        }
        if (k == kinds) {
            ARENA_PUSH(arena, first, kinds, &capacity) = channel;
        }
        channel->kind = job->kind_count + k;
    }
    job->kind_count += kinds;
}

// ---------------------------------------------------------------------------------------------- numbers

static int64_t last_over(const Member *member) {
    int t = member->count - 1;
    while (t >= 0 && !member->turns[t].done) {
        t--;
    }
    return t >= 0 ? member->turns[t].seq : 0;
}

void channels_align(Job *job) {
    for (int g = job->process_groups; g < job->group_count; g++) {
        JobGroup *channel = &job->groups[g];
        bool wrapped = false;
        int64_t over[2] = {0, 0};
        for (int m = 0; m < channel->count; m++) {
            const Dump *dump = job->ranks[channel->members[m].rank].dump;
            wrapped |= dump && dump->wrapped;
            over[m] = last_over(&channel->members[m]);
        }
        for (int m = 0; m < channel->count && wrapped && over[0] > 0 && over[1] > 0; m++) {
            const int64_t lost = over[1 - m] > over[m] ? over[1 - m] - over[m] : 0;
            for (int t = 0; t < channel->members[m].count; t++) {
                channel->members[m].turns[t].seq += lost;
            }
        }
    }
}
