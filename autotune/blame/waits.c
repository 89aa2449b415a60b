// A collective completes on one rank once all have issued it, so a member that has not is being waited for, unless its
// dump is older than the wait. A recorder that does not report completion (Gloo's) marks a failed collective as
// retired, too: such an end counts only where every member has issued it or the rank went on.

#include "autotune/blame/waits.h"

static const double NS = 1e9, MS = 1e3;
static const double TIMEOUT_SHARE = 0.9;  // the watchdog polls about every second (ProcessGroupNCCL's heartbeat)
static const double LEAST_HANG_S = 30;    // a checkpoint, an evaluation, a slow batch: pauses of healthy jobs
static const double TIMES_LONGER = 10;    // than any pause before

// ---------------------------------------------------------------------------------------------- one turn

static bool went_on(const Job *job, const Member *member, const Turn *turn) {
    return turn->last_entry + 1 < job->ranks[member->rank].dump->entry_count;
}

// Really completed: not ended by a timeout or a lost peer.
static bool surely_done(const Job *job, const Member *member, const Turn *turn) {
    return turn->done && (job->ranks[member->rank].dump->says_complete || went_on(job, member, turn));
}

static bool issued(const Member *member, int64_t seq) {
    return member->count > 0 && member->turns[member->count - 1].seq >= seq;
}

// Some rank has completed it, so all had arrived, whatever the dumps show.
static bool over_somewhere(const Job *job, const JobGroup *group, int64_t seq) {
    for (int m = 0; m < group->count; m++) {
        const Member *member = &group->members[m];
        for (int t = member->count - 1; t >= 0 && member->turns[t].seq >= seq; t--) {
            if (surely_done(job, member, &member->turns[t]) && !dump_op_rows[member->turns[t].op].alone) {
                return true;
            }
        }
    }
    return false;
}

static bool older_dump(const Job *job, int rank, const Wait *wait) {
    const Dump *dump = job->ranks[rank].dump;
    const int64_t created = job->ranks[wait->rank].dump->entries[wait->turn->entry].created_ns;
    return dump && dump->written_ns >= job->ranks[rank].last_ns && dump->written_ns < created;
}

bool wait_is_for(const Job *job, const Wait *wait, const Member *member) {
    return member->rank != wait->rank && !issued(member, wait->turn->seq) && !older_dump(job, member->rank, wait);
}

static bool lacks_somebody(const Job *job, const Wait *wait) {
    const JobGroup *group = &job->groups[wait->group];
    for (int m = 0; m < group->count; m++) {
        if (wait_is_for(job, wait, &group->members[m])) {
            return true;
        }
    }
    return false;
}

// ---------------------------------------------------------------------------------------------- how long

static double age_of(const Job *job, const Wait *wait) {
    const JobRank *row = &job->ranks[wait->rank];
    const int64_t created = row->dump->entries[wait->turn->entry].created_ns;
    int64_t now = row->dump->written_ns >= row->last_ns ? row->dump->written_ns : 0;
    for (int rank = 0; rank < job->world && now == 0; rank++) {
        now = job->ranks[rank].last_ns > now ? job->ranks[rank].last_ns : now;
    }
    return created > 0 && now >= created ? (double)(now - created) / NS : -1;
}

static double longest_pause(const JobRank *row) {
    int64_t longest = 0;
    for (int e = 1; e < row->dump->entry_count; e++) {
        const int64_t pause = row->dump->entries[e].created_ns - row->dump->entries[e - 1].created_ns;
        longest = pause > longest ? pause : longest;
    }
    return (double)longest / NS;
}

static double bound_of(const Job *job, const Wait *wait, double hang_s) {
    const JobRank *row = &job->ranks[wait->rank];
    const double timeout_s = TIMEOUT_SHARE * (double)row->dump->entries[wait->turn->entry].timeout_ms / MS;
    const double pause_s = TIMES_LONGER * longest_pause(row);
    const double usual_s = pause_s > LEAST_HANG_S ? pause_s : LEAST_HANG_S;
    return hang_s > 0 ? hang_s : timeout_s > 0 && timeout_s < usual_s ? timeout_s : usual_s;
}

// It ended although a member with a newer dump never arrived.
static bool failed(const Job *job, const Wait *wait) {
    const JobGroup *group = &job->groups[wait->group];
    const int64_t written = job->ranks[wait->rank].dump->written_ns;
    bool newer = wait->turn->done;
    for (int m = 0; m < group->count && newer; m++) {
        const Dump *other = job->ranks[group->members[m].rank].dump;
        newer = !wait_is_for(job, wait, &group->members[m]) || !other || other->written_ns >= written;
    }
    return newer;
}

// ---------------------------------------------------------------------------------------------- all of them

// A member's oldest turn that has not completed.
static const Turn *oldest_open(const Job *job, const JobGroup *group, const Member *member) {
    const Turn *oldest = NULL;
    for (int t = member->count - 1; t >= 0 && !surely_done(job, member, &member->turns[t]); t--) {
        oldest = over_somewhere(job, group, member->turns[t].seq) ? oldest : &member->turns[t];
    }
    return oldest;
}

static void add_wait(const Job *job, int rank, RankGroup at, double hang_s, Waits *waits) {
    const JobGroup *group = &job->groups[at.group];
    const Member *member = &group->members[at.member];
    Wait wait = {.rank = rank, .group = at.group, .turn = oldest_open(job, group, member)};
    if (!wait.turn || (wait.turn->done && dump_op_rows[wait.turn->op].alone)) {
        return;
    }
    const bool lacks = lacks_somebody(job, &wait);
    if (wait.turn->done && !lacks) {  // retired with all members present
        return;
    }
    wait.age_s = age_of(job, &wait);
    wait.too_long = wait.age_s >= bound_of(job, &wait, hang_s) || failed(job, &wait);
    waits->waits[rank] |= lacks;
    waits->hangs |= wait.too_long;
    waits->longest_s = wait.age_s > waits->longest_s ? wait.age_s : waits->longest_s;
    for (int m = 0; m < group->count; m++) {
        if (wait_is_for(job, &wait, &group->members[m])) {
            waits->awaited[group->members[m].rank] = true;
        }
    }
    waits->rows[waits->count++] = wait;
}

void waits_find(const Job *job, double hang_s, Arena *arena, Waits *waits) {
    int seats = 0;
    for (int rank = 0; rank < job->world; rank++) {
        seats += job->ranks[rank].group_count;
    }
    *waits = (Waits){.rows = ARENA_ARRAY(arena, Wait, seats),
                     .waits = ARENA_ARRAY(arena, bool, job->world),
                     .awaited = ARENA_ARRAY(arena, bool, job->world),
                     .unseen = ARENA_ARRAY(arena, bool, job->world)};
    for (int rank = 0; rank < job->world; rank++) {
        const JobRank *row = &job->ranks[rank];
        waits->unseen[rank] = !row->dump;
        waits->unseen_count += !row->dump;
        for (int g = 0; row->dump && g < row->group_count; g++) {
            add_wait(job, rank, row->groups[g], hang_s, waits);
        }
    }
}

int *waits_sinks(const Job *job, const Waits *waits, Arena *arena, int *count) {
    int *sinks = ARENA_ARRAY(arena, int, job->world);
    *count = 0;
    for (int rank = 0; rank < job->world; rank++) {
        if (waits->awaited[rank] && !waits->waits[rank]) {
            sinks[(*count)++] = rank;
        }
    }
    return *count > 0 ? sinks : NULL;
}
