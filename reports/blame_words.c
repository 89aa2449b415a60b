// The sentences of ndtune blame, in the same wording as our own watchdog (exec/transport/diagnose.c).

#include "reports/blame.h"
#include "sim/base/text.h"

char *blame_ranks(const Job *job, const int *ranks, int count, Arena *arena) {
    const Dump *dump = count == 1 ? job->ranks[ranks[0]].dump : NULL;
    return dump && dump->host
               ? arena_format(arena, "rank %d on %s", ranks[0], dump->host)
               : arena_format(arena, "rank%s %s", count == 1 ? "" : "s", job_rank_list(ranks, count, arena));
}

const char *blame_group_name(const JobGroup *group) {
    return group->desc[0] ? group->desc : group->name;
}

char *blame_group(const JobGroup *group, Arena *arena) {
    if (group->parent >= 0 && group->stages) {
        return arena_format(arena, "stage %d (rank %d) to stage %d (rank %d) in %s", group->from_index, group->from,
                            group->to_index, group->to, blame_group_name(group));
    }
    if (group->parent >= 0) {
        return arena_format(arena, "rank %d to rank %d in %s", group->from, group->to, blame_group_name(group));
    }
    int *ranks = ARENA_ARRAY(arena, int, group->count);
    for (int m = 0; m < group->count; m++) {
        ranks[m] = group->members[m].rank;
    }
    const char *name = group->desc[0] ? group->desc : arena_format(arena, "group %s", group->name);
    return arena_format(arena, "%s of ranks %s", name, job_rank_list(ranks, group->count, arena));
}

// "all-reduce of 4.0 KiB (number 12 of mesh_tp; layer 3, forward, task 'attention sum')"
static char *blame_place(const Job *job, const VerdictPlace *place, Arena *arena) {
    const char *bytes =
        place->bytes > 0 ? arena_format(arena, " of %s", text_bytes(UNIT_BUFFER, (double)place->bytes)) : "";
    const char *layer = place->layer ? arena_format(arena, "; %s", place->layer) : "";
    return arena_format(arena, "%s%s (number %lld of %s%s)", dump_op_rows[place->op].words, bytes,
                        (long long)place->seq, blame_group(&job->groups[place->group], arena), layer);
}

bool blame_is_blamed(const BlameReport *report, int rank) {
    bool is = false;
    for (int i = 0; i < report->verdict->rank_count; i++) {
        is |= report->verdict->ranks[i] == rank;
    }
    return is;
}

bool blame_is_inside(const BlameReport *report, int rank, int group, int64_t seq) {
    const VerdictPlace *place = &report->verdict->stands[rank];
    return place->inside && place->group == group && place->seq == seq;
}

const char *blame_state(const BlameReport *report, int rank) {
    const VerdictPlace *place = &report->verdict->stands[rank];
    return !report->job->ranks[rank].dump ? "no dump"
           : place->group < 0             ? "nothing recorded"
           : place->inside                ? "in"
                                          : "after";
}

char *blame_heading(const BlameReport *report, Arena *arena) {
    const Verdict *verdict = report->verdict;
    const char *words = verdict->guilty_unknown ? "do not agree" : verdict_kinds[verdict->kind].words;
    return arena_format(arena, "%s%s%s",
                        verdict->rank_count > 0 ? blame_ranks(report->job, verdict->ranks, verdict->rank_count, arena)
                                                : "",
                        verdict->rank_count > 0 ? " " : "", words);
}

static const char *seconds(double waited_s, Arena *arena) {
    return waited_s >= 0 ? arena_format(arena, " %s", text_seconds(UNIT_BUFFER, waited_s)) : "";
}

static const char *called_from(const VerdictPlace *place, Arena *arena) {
    return place->caller ? arena_format(arena, ", called by %s", place->caller) : "";
}

static const char *held_words(const BlameReport *report, Arena *arena) {
    const Verdict *verdict = report->verdict;
    return verdict->held_count == 0 ? ""
                                    : arena_format(arena, "; held up as well: %s",
                                                   blame_ranks(report->job, verdict->held, verdict->held_count, arena));
}

static char *missing_sentence(const BlameReport *report, const char *who, Arena *arena) {
    const Verdict *verdict = report->verdict;
    const char *last = verdict->did.group >= 0 && verdict->rank_count == 1
                           ? arena_format(arena, "; its last was %s%s", blame_place(report->job, &verdict->did, arena),
                                          called_from(&verdict->did, arena))
                       : report->job->ranks[verdict->ranks[0]].dump ? "; it has issued nothing that the recorder kept"
                                                                    : "; it left no dump";
    return arena_format(arena, "%s never arrived at %s%s: %s waited%s for it%s%s", who,
                        blame_place(report->job, &verdict->due, arena), called_from(&verdict->due, arena),
                        blame_ranks(report->job, verdict->waiting, verdict->waiting_count, arena),
                        seconds(verdict->due.waited_s, arena), last, held_words(report, arena));
}

// What each of the two did, for all verdicts about two collectives.
static char *differing_sentence(const BlameReport *report, const char *who, Arena *arena) {
    const Verdict *verdict = report->verdict;
    const char *did = blame_place(report->job, &verdict->did, arena);
    const char *due = blame_place(report->job, &verdict->due, arena);
    const char *from = called_from(&verdict->did, arena), *held = held_words(report, arena);
    if (verdict->guilty_unknown) {
        return arena_format(arena, "%s do not agree: one issued %s%s, the other %s%s%s", who, did, from, due,
                            called_from(&verdict->due, arena), held);
    }
    switch (verdict->kind) {
    case VERDICT_SKIPPED:
        return arena_format(arena, "%s skipped %s%s: it went on to %s%s%s", who, due, called_from(&verdict->due, arena),
                            did, from, held);
    case VERDICT_EXTRA:
        return arena_format(arena, "%s issued %s%s, which its group does not have there: the others issued %s%s", who,
                            did, from, due, held);
    case VERDICT_ORDER:
        return arena_format(arena, "%s issued %s%s before %s, which its group issues first%s", who, did, from, due,
                            held);
    case VERDICT_SIZE:
        return arena_format(arena,
                            "%s issued %s with %lld elements in and %lld out (%s)%s where its group has %lld and "
                            "%lld (%s)%s",
                            who, did, (long long)verdict->did.in, (long long)verdict->did.out, verdict->did.dtype, from,
                            (long long)verdict->due.in, (long long)verdict->due.out, verdict->due.dtype, held);
    default:
        break;
    }
    return arena_format(arena, "%s issued %s%s where its group issued %s%s", who, did, from, due, held);
}

static char *healthy_sentence(const BlameReport *report, Arena *arena) {
    const Job *job = report->job;
    const double wait_s = report->verdict->longest_wait_s;
    const char *wait =
        wait_s > 0 ? arena_format(arena, "the longest wait is%s", seconds(wait_s, arena)) : "nobody waits";
    const char *missing = 2 * job->dump_count < job->world
                              ? arena_format(arena, "only %d of %d ranks left a dump, ", job->dump_count, job->world)
                              : "";
    return arena_format(arena, "nobody is blamed: %s%s", missing, wait);
}

char *blame_sentence(const BlameReport *report, Arena *arena) {
    const Verdict *verdict = report->verdict;
    const char *who = blame_ranks(report->job, verdict->ranks, verdict->rank_count, arena);
    switch (verdict->kind) {
    case VERDICT_HEALTHY:
        return healthy_sentence(report, arena);
    case VERDICT_MISSING:
        return missing_sentence(report, who, arena);
    case VERDICT_SLOW:
        return arena_format(arena, "%s is slow: the others wait for it %.0f %% of the time, beyond the next slowest",
                            who, 100 * verdict->excess);
    case VERDICT_STUCK:
        return arena_format(arena, "all ranks are in %s since%s, and nobody comes out",
                            blame_place(report->job, &verdict->due, arena), seconds(verdict->due.waited_s, arena));
    default:
        return differing_sentence(report, who, arena);
    }
}
