// Merges the dumps of all ranks: groups by name and members, turns by number.

#include "autotune/blame/job.h"

#include <string.h>

enum { MOST_WORLD = 1 << 20 };

typedef struct Joining {
    Job *job;
    Arena *arena;
    size_t group_capacity;
} Joining;

static char *join(Arena *arena, const char *list, const char *item) {
    return arena_format(arena, "%s%s%s", list, list[0] ? ", " : "", item);
}

const char *job_rank_list(const int *ranks, int count, Arena *arena) {
    enum { MOST_RUNS = 12 };
    const char *text = "";
    int runs = 0;
    for (int i = 0; i < count; runs++) {
        int end = i;
        while (end + 1 < count && ranks[end + 1] == ranks[end] + 1) {
            end++;
        }
        if (runs == MOST_RUNS) {
            return arena_format(arena, "%s and %d more", text, count - i);
        }
        text = join(arena, text,
                    end - i >= 2 ? arena_format(arena, "%d to %d", ranks[i], ranks[end])
                                 : arena_format(arena, "%d", ranks[i]));
        i += end - i >= 2 ? end - i + 1 : 1;
    }
    return text;
}

const Turn *member_turn(const Member *member, int64_t seq) {
    int low = 0, high = member->count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        if (member->turns[middle].seq < seq) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < member->count && member->turns[low].seq == seq ? &member->turns[low] : NULL;
}

const Member *group_member(const JobGroup *group, int rank) {
    for (int m = 0; m < group->count; m++) {
        if (group->members[m].rank == rank) {
            return &group->members[m];
        }
    }
    return NULL;
}

// ---------------------------------------------------------------------------------------------- groups

static bool same_ranks(const JobGroup *group, const DumpGroup *other) {
    bool same = group->count == other->rank_count;
    for (int i = 0; same && i < group->count; i++) {
        same = group->members[i].rank == other->ranks[i];
    }
    return same;
}

// The group of that name and, where the dump lists them, of those members: groups made by one split share a name.
static int find_group(const Joining *joining, const DumpGroup *wanted) {
    for (int g = 0; g < joining->job->group_count; g++) {
        const JobGroup *group = &joining->job->groups[g];
        if (strcmp(group->name, wanted->name) == 0 && (!wanted->ranks || !group->whole || same_ranks(group, wanted))) {
            return g;
        }
    }
    return -1;
}

static void add_member(Joining *joining, JobGroup *group, int rank) {
    if (rank >= joining->job->world || group_member(group, rank)) {
        return;
    }
    Member *members = ARENA_ARRAY(joining->arena, Member, group->count + 1);
    int at = 0;
    while (at < group->count && group->members[at].rank < rank) {
        members[at] = group->members[at];
        at++;
    }
    members[at] = (Member){.rank = rank};
    for (int i = at; i < group->count; i++) {
        members[i + 1] = group->members[i];
    }
    group->members = members;
    group->count++;
}

static void set_members(Joining *joining, JobGroup *group, const int *ranks, int count) {
    group->members = ARENA_ARRAY(joining->arena, Member, count);
    group->count = count;
    group->whole = true;
    for (int i = 0; i < count; i++) {
        group->members[i] = (Member){.rank = ranks ? ranks[i] : i};
    }
}

static int take_group(Joining *joining, const DumpGroup *wanted) {
    Job *job = joining->job;
    int at = find_group(joining, wanted);
    if (at < 0) {
        at = job->group_count++;
        job->groups =
            arena_grow(joining->arena, job->groups, (size_t)at, &joining->group_capacity, sizeof *job->groups);
        job->groups[at] = (JobGroup){.name = wanted->name, .desc = wanted->desc, .parent = -1};
    }
    JobGroup *group = &job->groups[at];
    if (!group->whole && wanted->ranks) {
        set_members(joining, group, wanted->ranks, wanted->rank_count);
    } else if (!group->whole && strcmp(wanted->desc, "default_pg") == 0) {
        set_members(joining, group, NULL, job->world);
    }
    return at;
}

// Listed groups first, so that names shared by several groups are known.
static void find_groups(Joining *joining) {
    Job *job = joining->job;
    for (int listed = 1; listed >= 0; listed--) {
        for (int rank = 0; rank < job->world; rank++) {
            const Dump *dump = job->ranks[rank].dump;
            for (int g = 0; dump && g < dump->group_count; g++) {
                if ((dump->groups[g].ranks != NULL) == (listed != 0)) {
                    job->ranks[rank].group_of[g] = take_group(joining, &dump->groups[g]);
                }
            }
        }
    }
}

// An entry of a rank that is not in the member list for its group's name belongs to no group.
static void find_members(Joining *joining) {
    Job *job = joining->job;
    for (int rank = 0; rank < job->world; rank++) {
        const Dump *dump = job->ranks[rank].dump;
        for (int e = 0; dump && e < dump->entry_count; e++) {
            JobGroup *group = &job->groups[job->ranks[rank].group_of[dump->entries[e].group]];
            if (!group->whole) {
                add_member(joining, group, rank);
            }
        }
    }
}

// ---------------------------------------------------------------------------------------------- unlisted members

static bool in_other_group(const Job *job, const JobGroup *own, int rank) {
    for (int g = 0; g < job->group_count; g++) {
        const JobGroup *group = &job->groups[g];
        if (group != own && strcmp(group->desc, own->desc) == 0 && group_member(group, rank)) {
            return true;
        }
    }
    return false;
}

// Can the group be the complete one's pattern, shifted so that the first known member is its member `at`?
static bool fits(const Job *job, const JobGroup *group, const JobGroup *whole, int at) {
    const int shift = group->members[0].rank - whole->members[at].rank;
    int known = 0;
    for (int m = 0; m < whole->count; m++) {
        const int rank = whole->members[m].rank + shift;
        const bool member = group_member(group, rank) != NULL;
        if (rank < 0 || rank >= job->world || (!member && in_other_group(job, group, rank))) {
            return false;
        }
        known += member;
    }
    return known == group->count;
}

static void complete_like(Joining *joining, JobGroup *group, const JobGroup *whole) {
    int found = 0, at = 0;
    for (int i = 0; i < whole->count; i++) {
        if (fits(joining->job, group, whole, i)) {
            found++;
            at = i;
        }
    }
    const int shift = found == 1 ? group->members[0].rank - whole->members[at].rank : 0;
    for (int m = 0; found == 1 && m < whole->count; m++) {
        add_member(joining, group, whole->members[m].rank + shift);
    }
}

// A rank that stopped before it used a group is still a member: groups with one description partition the ranks alike,
// so where there is only one way to complete a smaller group to the largest size, that is it.
static void complete_members(Joining *joining) {
    Job *job = joining->job;
    for (int g = 0; g < job->group_count; g++) {
        JobGroup *group = &job->groups[g];
        const JobGroup *largest = group;
        for (int other = 0; other < job->group_count && group->desc[0] && !group->whole; other++) {
            const JobGroup *candidate = &job->groups[other];
            const bool alike = strcmp(candidate->desc, group->desc) == 0;
            largest = alike && candidate->count > largest->count ? candidate : largest;
        }
        if (largest != group && group->count > 0) {
            complete_like(joining, group, largest);
        }
    }
}

static void seat_ranks(Joining *joining) {
    Job *job = joining->job;
    for (int g = 0; g < job->group_count; g++) {
        for (int m = 0; m < job->groups[g].count; m++) {
            JobRank *rank = &job->ranks[job->groups[g].members[m].rank];
            rank->group_count++;
        }
    }
    for (int rank = 0; rank < job->world; rank++) {
        job->ranks[rank].groups = ARENA_ARRAY(joining->arena, RankGroup, job->ranks[rank].group_count);
        job->ranks[rank].group_count = 0;
    }
    for (int g = 0; g < job->group_count; g++) {
        for (int m = 0; m < job->groups[g].count; m++) {
            JobRank *rank = &job->ranks[job->groups[g].members[m].rank];
            rank->groups[rank->group_count++] = (RankGroup){g, m};
        }
    }
}

// Groups of one kind: the same description, size, stage and stride between members, and, where one rank has several of
// those, the same position among them.
static bool same_kind(const Job *job, const JobGroup *a, const JobGroup *b) {
    bool same = strcmp(a->desc, b->desc) == 0 && a->count == b->count &&
                (a->count == 0 || job->ranks[a->members[0].rank].stage == job->ranks[b->members[0].rank].stage);
    for (int i = 1; same && i < a->count; i++) {
        same = a->members[i].rank - a->members[0].rank == b->members[i].rank - b->members[0].rank;
    }
    return same;
}

static void find_kinds(Joining *joining) {
    Job *job = joining->job;
    int *twins = ARENA_ARRAY(joining->arena, int, job->process_groups);
    for (int g = 0; g < job->process_groups; g++) {
        JobGroup *group = &job->groups[g];
        group->kind = -1;
        for (int other = 0; other < g && group->count > 0; other++) {
            twins[g] += same_kind(job, &job->groups[other], group) &&
                        job->groups[other].members[0].rank == group->members[0].rank;
        }
        for (int other = 0; other < g && group->kind < 0; other++) {
            if (twins[other] == twins[g] && same_kind(job, &job->groups[other], group)) {
                group->kind = job->groups[other].kind;
            }
        }
        if (group->kind < 0) {
            group->kind = job->kind_count++;
        }
    }
}

// ---------------------------------------------------------------------------------------------- turns

static int64_t sum_of(int64_t a, int64_t b) {
    int64_t sum = 0;
    return __builtin_add_overflow(a, b, &sum) ? INT64_MAX : sum;
}

static void add_turn(Member *member, const Dump *dump, int e) {
    const DumpEntry *entry = &dump->entries[e];
    Turn *last = member->count > 0 ? &member->turns[member->count - 1] : NULL;
    const int64_t seq = entry->p2p ? member->count + 1 : entry->seq;
    if (last && last->seq == seq) {  // one of a coalesced batch
        if (entry->op != DUMP_COALESCED) {
            last->in = sum_of(last->in, entry->in);
            last->out = sum_of(last->out, entry->out);
            last->bytes = last->bytes < 0 || entry->bytes < 0 ? -1 : sum_of(last->bytes, entry->bytes);
        }
        last->done |= dump_is_over(dump, entry);
        last->last_entry = e;
    } else if (!last || last->seq < seq) {
        member->turns[member->count++] = (Turn){.seq = seq,
                                                .op = entry->op,
                                                .in = entry->in,
                                                .out = entry->out,
                                                .bytes = entry->bytes,
                                                .dtype = entry->dtype,
                                                .entry = e,
                                                .last_entry = e,
                                                .done = dump_is_over(dump, entry)};
    }
}

static Member *own_member(const Job *job, const JobRank *row, int group) {
    for (int g = 0; g < row->group_count; g++) {
        if (row->groups[g].group == group) {
            return &job->groups[group].members[row->groups[g].member];
        }
    }
    return NULL;
}

static void fill_turns(Joining *joining) {
    Job *job = joining->job;
    for (int rank = 0; rank < job->world; rank++) {
        JobRank *row = &job->ranks[rank];
        for (int e = 0; row->dump && e < row->dump->entry_count; e++) {
            const DumpEntry *entry = &row->dump->entries[e];
            const int64_t created = entry->created_ns;
            const int group = entry->p2p ? channel_of(job, rank, entry) : row->group_of[entry->group];
            Member *member = own_member(job, row, group);
            row->first_ns = row->first_ns == 0 || created < row->first_ns ? created : row->first_ns;
            row->last_ns = created > row->last_ns ? created : row->last_ns;
            row->last_ns = entry->completed_ns > row->last_ns ? entry->completed_ns : row->last_ns;
            if (!member) {
                continue;
            }
            if (!member->turns) {
                member->turns = ARENA_ARRAY(joining->arena, Turn, row->dump->entry_count - e);
            }
            add_turn(member, row->dump, e);
        }
    }
}

// What is compared: numbers that every ring still has, and, since rings hold neighbours, at most two rings' worth.
static void find_range(const Job *job, JobGroup *group) {
    int longest = 0;
    group->last = -1;
    for (int m = 0; m < group->count; m++) {
        const Member *member = &group->members[m];
        const Dump *dump = job->ranks[member->rank].dump;
        longest = member->count > longest ? member->count : longest;
        if (member->count > 0) {
            group->last =
                member->turns[member->count - 1].seq > group->last ? member->turns[member->count - 1].seq : group->last;
            const int64_t first = member->turns[0].seq;
            group->first = dump->wrapped && first > group->first ? first : group->first;
        }
    }
    const int64_t oldest = group->last - 2 * (int64_t)longest;
    group->first = oldest > group->first ? oldest : group->first;
}

// Group size as inferred from gathers and scatters: the ratio of the larger side to the smaller.
static int size_by_use(const Dump *dump, int group) {
    for (int e = 0; e < dump->entry_count; e++) {
        const DumpEntry *entry = &dump->entries[e];
        const int64_t small = entry->op == DUMP_ALL_GATHER ? entry->in : entry->out;
        const int64_t large = entry->op == DUMP_ALL_GATHER ? entry->out : entry->in;
        const bool tells = entry->op == DUMP_ALL_GATHER || entry->op == DUMP_REDUCE_SCATTER;
        if (entry->group == group && tells && small > 0 && large % small == 0 && large / small <= MOST_WORLD) {
            return (int)(large / small);
        }
    }
    return 1;
}

// Where no dump lists all ranks, the groups with one description partition them: as many groups as have a name, as
// large as their collectives indicate.
static int world_by_use(const Dump *dumps, int count, const char *desc) {
    int groups = 0, size = 1;
    for (int i = 0; i < count; i++) {
        for (int g = 0; g < dumps[i].group_count; g++) {
            bool known = strcmp(dumps[i].groups[g].desc, desc) != 0 || dumps[i].groups[g].ranks;
            const int by_use = known ? 1 : size_by_use(&dumps[i], g);
            size = by_use > size ? by_use : size;
            for (int other = 0; other < i && !known; other++) {
                for (int k = 0; k < dumps[other].group_count && !known; k++) {
                    known = strcmp(dumps[other].groups[k].name, dumps[i].groups[g].name) == 0;
                }
            }
            groups += !known;
        }
    }
    return groups * size;
}

static int find_world(const Dump *dumps, int count) {
    int world = 0;
    bool listed = false;
    for (int i = 0; i < count; i++) {
        world = dumps[i].rank + 1 > world ? dumps[i].rank + 1 : world;
        for (int g = 0; g < dumps[i].group_count; g++) {
            const DumpGroup *group = &dumps[i].groups[g];
            const int highest = group->ranks ? group->ranks[group->rank_count - 1] + 1 : 0;
            world = highest > world ? highest : world;
            listed |= group->ranks != NULL;
        }
    }
    for (int g = 0; count > 0 && g < dumps[0].group_count && !listed; g++) {
        const int by_use = dumps[0].groups[g].desc[0] ? world_by_use(dumps, count, dumps[0].groups[g].desc) : 0;
        world = by_use > world ? by_use : world;
    }
    return world;
}

Status job_of_dumps(Dump *dumps, int count, int world, Arena *arena, Job *job, Error *error) {
    Joining joining = {.job = job, .arena = arena};
    job->world = find_world(dumps, count);
    job->world = world > job->world ? world : job->world;
    FAIL_IF(count == 0 || job->world > MOST_WORLD, error, STATUS_USAGE,
            "no dump of a flight recorder, or of more than %d ranks", MOST_WORLD);
    job->ranks = ARENA_ARRAY(arena, JobRank, job->world);
    job->dump_count = count;
    for (int i = 0; i < count; i++) {
        job->ranks[dumps[i].rank].dump = &dumps[i];
        job->ranks[dumps[i].rank].group_of = ARENA_ARRAY(arena, int, dumps[i].group_count);
    }
    find_groups(&joining);
    find_members(&joining);
    complete_members(&joining);
    job->process_groups = job->group_count;
    channels_find(job, arena);
    find_kinds(&joining);
    channels_find_kinds(job, arena);
    seat_ranks(&joining);
    fill_turns(&joining);
    channels_align(job);
    for (int g = 0; g < job->group_count; g++) {
        find_range(job, &job->groups[g]);
    }
    return STATUS_OK;
}
