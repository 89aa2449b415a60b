// What to run and how sure that is: the answer in two sentences, then the numbers that people quote.

#include <math.h>

#include "autotune/predict/evidence.h"
#include "reports/format.h"
#include "reports/html/markup.h"
#include "reports/html/sections.h"
#include "sim/base/text.h"

void section_title(const HtmlReport *report, FILE *out) {
    const TuneRequest *request = report->result->request;
    markup_format(out, "%s on %d × %s", request->model.name, request->world, request->cluster.accelerator.name);
}

// The measured row of the best plan, if any.
static const ValidateRow *measured_best(const HtmlReport *report) {
    for (int i = 0; report->validation && i < report->validation->row_count; i++) {
        const ValidateRow *row = &report->validation->rows[i];
        if (row->place == 1 && row->measured_s > 0) {
            return row;
        }
    }
    return NULL;
}

static void write_badge(const HtmlReport *report, const Prediction *best, FILE *out) {
    const TuneRequest *request = report->result->request;
    fputs("<p class=\"badges\">", out);
    if (measured_best(report)) {
        fputs("<span class=\"badge good\">measured</span> ", out);
    }
    if (request->cluster.calibration) {
        fputs("<span class=\"badge good\">calibrated</span> ", out);
    }
    fprintf(out, "<span class=\"badge\">%s</span> <span class=\"badge\">",
            best->origin == ORIGIN_ESTIMATE ? "estimated" : "simulated");
    markup_text(evidence_text(request, EVIDENCE_BUFFER), out);
    fputs("</span></p>\n", out);
}

// Against the usual default configuration; nothing where it was not searched.
static void write_against_fsdp(const TuneResult *result, FILE *out) {
    Mesh fsdp = mesh_of_one();
    fsdp.size[AXIS_DP_SHARD] = result->request->world;
    const Baseline plain = baseline_rival(result, &fsdp);
    if (plain.place == 1 || plain.place == 2 || result->request->world == 1) {
        fputs(plain.place == 1 ? " It is plain FSDP." : plain.place == 2 ? " The next shape is plain FSDP." : "", out);
    } else if (plain.entry && plain.gain >= 0) {
        markup_format(out, " Against plain FSDP (dp_shard=%d) it is %.1f %% faster.", result->request->world,
                      100 * plain.gain);
    } else if (plain.entry) {  // by another objective
        markup_format(out, " Plain FSDP (dp_shard=%d) is %.1f %% faster.", result->request->world,
                      100 * (1 / (1 + plain.gain) - 1));
    } else if (plain.reason) {
        markup_format(out, " Plain FSDP (dp_shard=%d) cannot run.", result->request->world);
    }
}

static void write_lead(const HtmlReport *report, FILE *out) {
    const TuneResult *result = report->result;
    const bool measured = report->validation != NULL;
    if (report->one_plan) {
        fputs("<p>This plan alone was asked about; <code>ndtune --world N</code> searches all shapes.</p>\n", out);
        return;
    }
    if (result->entry_count == 1) {
        fputs("<p>It is the only shape that can run.", out);
        write_against_fsdp(result, out);
        fputs("</p>\n", out);
        return;
    }
    char close[FORMAT_BYTES];
    fputs("<p>", out);
    markup_format(out, "By prediction it is %s; the next is %s. ", result->best_reason,
                  format_layout(&result->entries[1].plan.mesh, FORMAT_BUFFER));
    if (*format_close_shapes(result, close)) {
        markup_format(out, "%s%s.", close, measured ? "" : ": measure them (ndtune validate)");
    } else if (report->result->request->objective != OBJECTIVE_MEMORY) {
        fputs("No other shape is within 5 %.", out);
    }
    write_against_fsdp(result, out);
    fputs("</p>\n", out);
}

// The plan measured fastest, where several ran.
static const ValidateRow *measured_fastest(const HtmlReport *report) {
    const Validation *validation = report->validation;
    return validation && validation->agreement.count > 1 ? &validation->rows[validation->agreement.best_measured]
                                                         : NULL;
}

static double per_token(const ValidateRow *row) {
    return row->measured_s / (double)plan_tokens_per_step(&row->prediction->plan);
}

// The relative extra time per token of the next one.
static double measured_lead(const Validation *validation, const ValidateRow *fastest) {
    double next = HUGE_VAL;
    for (int i = 0; i < validation->row_count; i++) {
        const ValidateRow *row = &validation->rows[i];
        if (row != fastest && row->measured_s > 0) {
            next = fmin(next, per_token(row));
        }
    }
    return next / per_token(fastest) - 1;
}

// Measurements outrank predictions, unless repeats differ by as much.
static void write_fastest(const HtmlReport *report, FILE *out) {
    const ValidateRow *fastest = measured_fastest(report);
    if (!fastest) {
        return;
    }
    const Validation *validation = report->validation;
    const double lead = fastest->place == 1 ? measured_lead(validation, fastest) : validation->agreement.regret - 1;
    fputs("<p class=\"note\" id=\"fastest-measured\">", out);
    if (fastest->place == 1) {
        markup_format(
            out, "Of the %d plans that ran for real it was the fastest; the next took %.1f %% more time per token. ",
            validation->agreement.count, 100 * lead);
    } else {
        markup_format(
            out,
            "Of the %d plans that ran for real, the one in place %d was the fastest; what was predicted best of "
            "them took %.1f %% more time per token. ",
            validation->agreement.count, fastest->place, 100 * lead);
    }
    if (!isfinite(validation->noise)) {
        fputs("No plan ran twice, so how much of that is noise is not known.", out);
    } else if (lead < validation->noise) {
        markup_format(out, "Repeats of the same plan differ by %.1f %%: that is not settled before more runs.",
                      100 * validation->noise);
    } else {
        fputs("Measured steps decide.", out);
    }
    fputs("</p>\n", out);
}

static void write_speed(const Prediction *plan, double step_s, const char *measured, Arena *arena, FILE *out) {
    const double faster = plan->step_s / step_s, tokens_per_s = faster * plan->tokens_per_s;
    markup_card(
        arena_format(arena, "Tokens per second%s", measured), text_count(UNIT_BUFFER, tokens_per_s),
        arena_format(arena, "%s per accelerator", text_count(UNIT_BUFFER, tokens_per_s / mesh_world(&plan->plan.mesh))),
        out);
    markup_card(arena_format(arena, "MFU%s", measured), arena_format(arena, "%.1f %%", 100 * faster * plan->mfu),
                arena_format(arena, "HFU %.1f %%%s", 100 * faster * plan->hfu, format_peak(&plan->plan)), out);
}

// For a plan that ran: measured, then predicted.
static void write_measured_cards(const ValidateRow *row, Arena *arena, FILE *out) {
    const Prediction *plan = row->prediction;
    markup_card("Measured step", text_seconds(UNIT_BUFFER, row->measured_s),
                arena_format(arena, "%s to %s; %d run%s", text_seconds(UNIT_BUFFER, row->low_s),
                             text_seconds(UNIT_BUFFER, row->high_s), row->run_count, row->run_count == 1 ? "" : "s"),
                out);
    write_speed(plan, row->measured_s, ", measured", arena, out);
    markup_card("Predicted step", text_seconds(UNIT_BUFFER, plan->step_s),
                arena_format(arena, "%+.1f %% off", 100 * (plan->step_s / row->measured_s - 1)), out);
}

// The plan shown in the tiles; NULL where nothing ran.
static const ValidateRow *leading_row(const HtmlReport *report) {
    const ValidateRow *fastest = measured_fastest(report);
    return fastest ? fastest : measured_best(report);
}

// The most common cause when a step takes more than twice its prediction.
static void write_far_off(const void *what, FILE *out) {
    const HtmlReport *report = what;
    const ValidateRow *row = leading_row(report);
    if (row) {
        format_far_off(row->measured_s, row->prediction->step_s, report->result->request->cluster.name,
                       &report->validation->core_use, out);
    }
}

static void write_cards(const HtmlReport *report, const Prediction *best, FILE *out) {
    const TuneRequest *request = report->result->request;
    Arena *arena = report->arena;
    const ValidateRow *row = leading_row(report);
    const Prediction *plan = row ? row->prediction : best;
    fputs("<dl class=\"cards\">\n", out);
    if (row) {
        write_measured_cards(row, arena, out);
    } else {
        markup_card("Predicted step", text_seconds(UNIT_BUFFER, plan->step_s),
                    arena_format(arena, "80 %% interval %s to %s", text_seconds(UNIT_BUFFER, plan->step_low_s),
                                 text_seconds(UNIT_BUFFER, plan->step_high_s)),
                    out);
        write_speed(plan, plan->step_s, "", arena, out);
    }
    markup_card(row ? "Memory, predicted" : "Memory", text_bytes(UNIT_BUFFER, plan->memory.reserved_bytes),
                arena_format(arena, "of %s, %.0f %%", text_bytes(UNIT_BUFFER, request->memory_limit_bytes),
                             100 * plan->memory.reserved_bytes / request->memory_limit_bytes),
                out);
    fputs("</dl>\n", out);
}

// Of the choices that do not fit, the one closest to fitting, else the first shape's reason.
static void write_nothing(const TuneResult *result, FILE *out) {
    const Candidate *nearest = NULL;
    for (int i = 0; i < result->candidate_count; i++) {
        const Candidate *candidate = &result->candidates[i];
        if (candidate->reason && candidate->reserved_bytes > 0 &&
            (!nearest || candidate->reserved_bytes < nearest->reserved_bytes)) {
            nearest = candidate;
        }
    }
    fputs("<p class=\"verdict\">No shape can run.</p>\n<p>", out);
    if (nearest) {
        markup_format(out, "The nearest, %s, %s. ", format_mesh(&nearest->plan.mesh, FORMAT_BUFFER), nearest->reason);
    } else if (result->rejected_count > 0) {
        markup_format(out, "%s: %s. ", format_mesh(&result->rejected[0].plan.mesh, FORMAT_BUFFER),
                      result->rejected[0].reason);
    }
    fputs("<a href=\"#rejected\">All reasons</a>.</p>\n", out);
}

static void write_choices(const HtmlReport *report, const TrainPlan *plan, FILE *out) {
    char choices[FORMAT_BYTES];
    fputs("<p class=\"choices\">", out);
    markup_format(out, "with micro-batch %d, accumulation %d, recompute %s", plan->micro_batch, plan->grad_accum,
                  plan_recompute_text(plan, RECOMPUTE_BUFFER));
    if (plan->zero == 3) {
        markup_format(out, ", reshard %s", reshard_names[plan->reshard]);
    }
    if (plan->mesh.size[AXIS_CP] > 1) {
        markup_format(out, ", cp rotation %s", cp_rotate_names[plan->cp_rotate]);
    }
    if (format_choices(report->result->request->target, plan, choices)[0]) {
        markup_format(out, ", %s", choices);
    }
    markup_format(out, ", sequences of %d tokens, %s; a step is a global batch of %lld sequences (%s tokens)",
                  plan->seq, dtype_name(plan->precision), (long long)plan_global_batch(plan),
                  text_count(UNIT_BUFFER, (double)plan_tokens_per_step(plan)));
    fputs("</p>\n", out);
}

void section_verdict(const HtmlReport *report, FILE *out) {
    const TuneResult *result = report->result;
    const Prediction *best = report_best(report);
    if (!best) {
        write_nothing(result, out);
        return;
    }
    const TrainPlan *plan = &best->plan;
    const ValidateRow *fastest = measured_fastest(report);
    const bool contested = fastest && fastest->place > 1;
    if (contested) {
        fputs("<p class=\"verdict\" id=\"verdict-measured\">Measured fastest: <strong>", out);
        markup_text(format_layout(&fastest->prediction->plan.mesh, FORMAT_BUFFER), out);
        fputs("</strong></p>\n", out);
    }
    fprintf(out, "<p class=\"verdict\">%s <strong>",
            contested          ? "Predicted best:"
            : report->one_plan ? "One plan:"
                               : "Run");
    markup_text(format_layout(&plan->mesh, FORMAT_BUFFER), out);
    fputs("</strong></p>\n", out);
    write_choices(report, plan, out);
    write_badge(report, best, out);
    write_lead(report, out);
    write_fastest(report, out);
    write_cards(report, best, out);
    markup_lines(write_far_off, report, out);
    for (int i = 0; i < best->warning_count; i++) {
        fputs("<p class=\"warning\"><strong>Warning:</strong> ", out);
        markup_text(best->warnings[i], out);
        fputs("</p>\n", out);
    }
}
