// A file passes that runs, fits and is near the best. Where it does not, the lines blamed are those of single changes
// that make it fit, or make it faster by more than the prediction noise.

#include "autotune/check/check.h"

#include <math.h>

#include "sim/base/text.h"

const char *const check_level_names[CHECK_LEVEL_COUNT] = {"error", "warning", "notice"};

// A change that gains less is not reported as a mistake.
static const double WORTH_A_LINE = 0.01;
enum { LINES_TO_BLAME = 4 };

static void note(CheckReport *report, CheckNote what) {
    report->notes[report->note_count++] = what;
}

static CheckLevel level_of(FindingKind kind) {
    static const CheckLevel levels[FINDING_KIND_COUNT] = {[FINDING_REFUSED] = CHECK_ERROR,
                                                          [FINDING_TRAP] = CHECK_WARNING,
                                                          [FINDING_UNKNOWN] = CHECK_WARNING,
                                                          [FINDING_UNMODELLED] = CHECK_NOTICE,
                                                          [FINDING_ASSUMED] = CHECK_NOTICE};
    return levels[kind];
}

static void note_findings(CheckReport *report) {
    const Import *import = report->question->import;
    for (int i = 0; i < import->finding_count; i++) {
        const ImportFinding *finding = &import->findings[i];
        note(report,
             (CheckNote){level_of(finding->kind), finding->key, finding->line, finding->line, finding->sentence});
    }
}

const char *check_stopped(const Import *import) {
    for (int i = 0; i < import->finding_count; i++) {
        if (level_of(import->findings[i].kind) == CHECK_ERROR) {
            return import->findings[i].sentence;
        }
    }
    return NULL;
}

static bool leaves_out(const Import *import) {
    bool any = false;
    for (int i = 0; i < import->finding_count; i++) {
        any |= import->findings[i].kind == FINDING_UNMODELLED;
    }
    return any;
}

Status check_runs(const Import *import, const AdviceReport *advice, Error *error) {
    if (!import->refusal && !advice->reason) {
        return STATUS_OK;
    }
    const bool runs = !import->refusal && advice->legal;  // then the reason says that it does not fit
    error_set(error, STATUS_INFEASIBLE, "the plan of %s %s%s", import->path,
              runs                      ? ""
              : import->refusal_is_ours ? "is not predicted: "
                                        : "cannot run: ",
              import->refusal ? import->refusal : advice->reason);
    return runs && leaves_out(import) ? error_hint(error, "the file also says what the prediction leaves out "
                                                          "(above): your run may need less")
                                      : error->status;
}

static const char *change_words(const CheckReport *report, const Advice *change, Arena *arena) {
    const char *needs = text_bytes(UNIT_BUFFER, change->prediction.memory.reserved_bytes);
    return report->fits ? arena_format(arena, "%s: %.1f %% faster, with %s", change->change, 100 * change->gain, needs)
                        : arena_format(arena, "%s fits: %s, %s tokens/s", change->change, needs,
                                       text_count(UNIT_BUFFER, change->prediction.tokens_per_s));
}

// The changes are sorted, best first.
static void note_changes(CheckReport *report, Arena *arena) {
    const AdviceReport *advice = report->question->advice;
    int blamed = 0;
    for (int i = 0; i < advice->change_count && blamed < LINES_TO_BLAME; i++) {
        const Advice *change = &advice->changes[i];
        const bool helps = !change->reason && (!report->fits || change->gain >= WORTH_A_LINE);
        if (helps) {
            const ImportPlace place = import_place_of(report->question->import, change->kind);
            const char *key = place.key ? place.key : import_key_of(report->question->import, change->kind);
            note(report, (CheckNote){CHECK_WARNING, key, place.first, place.last, change_words(report, change, arena)});
            blamed++;
        }
    }
}

static void say_best(CheckReport *report, Arena *arena) {
    const Prediction *best = report->question->advice->best;
    const Prediction *own = &report->question->advice->own;
    const bool other_shape = best && report->runs && !mesh_same_shape(&best->plan.mesh, &own->plan.mesh);
    const ImportPlace place = other_shape ? import_place_of(report->question->import, ADVICE_MESH) : (ImportPlace){0};
    if (best) {
        note(report, (CheckNote){.level = CHECK_NOTICE,
                                 .key = place.key,
                                 .first = place.first,
                                 .last = place.last,
                                 .sentence = arena_format(arena,
                                                          "the best plan is %s, micro-batch %d x accumulation %d: %s "
                                                          "tokens/s, %s (ndtune explain --from says more)",
                                                          mesh_short_text(&best->plan.mesh, MESH_BUFFER),
                                                          best->plan.micro_batch, best->plan.grad_accum,
                                                          text_count(UNIT_BUFFER, best->tokens_per_s),
                                                          text_bytes(UNIT_BUFFER, best->memory.reserved_bytes))});
    }
}

static const char *verdict_of(const CheckReport *report, Arena *arena) {
    const CheckQuestion *question = report->question;
    const char *refusal = question->import->refusal;
    if (!report->runs) {
        const char *stopped = check_stopped(question->import);
        return arena_format(arena, "%s %s",
                            refusal && question->import->refusal_is_ours ? "is not predicted:" : "cannot run:",
                            refusal   ? refusal
                            : stopped ? stopped
                                      : question->advice->reason);
    }
    if (!report->fits) {
        return question->advice->reason;
    }
    if (!question->advice->best) {
        return "runs and fits; no other plan is left to compare it with";
    }
    const char *against = "the best plan with the same batch";
    return report->slower < WORTH_A_LINE / 2 ? arena_format(arena, "runs, fits, and is as fast as %s", against)
                                             : arena_format(arena, "%s%.1f %% slower than %s (tolerance %.3g %%)",
                                                            report->near_best ? "runs, fits, and is " : "is ",
                                                            100 * report->slower, against, 100 * question->tolerance);
}

// Errors first, each level by line; notes on one line stay in the order in which they were found.
static void sort_notes(CheckReport *report) {
    for (int i = 1; i < report->note_count; i++) {
        const CheckNote moved = report->notes[i];
        int at = i;
        for (; at > 0; at--) {
            const CheckNote *other = &report->notes[at - 1];
            if (other->level < moved.level || (other->level == moved.level && other->first <= moved.first)) {
                break;
            }
            report->notes[at] = *other;
        }
        report->notes[at] = moved;
    }
}

void check_judge(const CheckQuestion *question, Arena *arena, CheckReport *report) {
    const AdviceReport *advice = question->advice;
    enum { BESIDE_FINDINGS = LINES_TO_BLAME + 2 };
    *report = (CheckReport){.question = question};
    report->notes = ARENA_ARRAY(arena, CheckNote, question->import->finding_count + BESIDE_FINDINGS);
    report->runs = !question->import->refusal && !check_stopped(question->import) && advice->legal;
    report->fits = report->runs && !advice->reason;
    if (advice->best && advice->own.tokens_per_s > 0) {
        report->slower = fmax(0, 1 - advice->own.tokens_per_s / advice->best->tokens_per_s);
    }
    report->near_best = report->fits && report->slower <= question->tolerance;
    report->verdict = verdict_of(report, arena);
    note_findings(report);
    if (report->runs && !report->near_best) {
        note(report, (CheckNote){.level = CHECK_ERROR, .sentence = report->verdict});
        note_changes(report, arena);
    }
    if (!report->near_best) {
        say_best(report, arena);
    }
    sort_notes(report);
}

static const char *pair_verdict(const CheckPair *pair, Arena *arena) {
    const CheckSide *after = &pair->after;
    if (after->reason) {
        return arena_format(arena, "%s %s%s", after->import->path, after->legal ? "" : "cannot run: ", after->reason);
    }
    if (!pair->timed) {
        return arena_format(arena, "%s runs and fits; %s does not", after->import->path, pair->before.import->path);
    }
    if (pair->slower == 0 && pair->more_bytes == 0) {
        return "the change costs no time and no memory";
    }
    return arena_format(arena, "the change makes %.1f %% %s tokens per second and needs %s %s memory per accelerator",
                        100 * fabs(pair->slower), pair->slower > 0 ? "fewer" : "more",
                        text_bytes(UNIT_BUFFER, fabs(pair->more_bytes)), pair->more_bytes > 0 ? "more" : "less");
}

void check_compare(CheckPair *pair, Arena *arena) {
    const Prediction *before = &pair->before.own, *after = &pair->after.own;
    pair->timed = before->tokens_per_s > 0 && after->tokens_per_s > 0 && !pair->before.reason;
    pair->slower = pair->timed ? 1 - after->tokens_per_s / before->tokens_per_s : 0;
    pair->more_bytes = pair->timed ? after->memory.reserved_bytes - before->memory.reserved_bytes : 0;
    pair->passed = !pair->after.reason && pair->slower <= pair->tolerance;
    pair->verdict = pair_verdict(pair, arena);
}
