// The manual page and OPTIONS.md, written from the tables of commands and options: they cannot say anything
// else than the program does.

#include "autotune/cli/manual.h"

#include <string.h>

#include "autotune/cli/topics.h"
#include "autotune/validate/step_log.h"
#include "reports/export/export.h"
#include "reports/reports.h"

// Text of a page: a line must not begin with a control character, and a dash is a minus.
static void troff_text(FILE *out, const char *text) {
    for (const char *at = text; *at; at++) {
        const bool starts_line = at == text || at[-1] == '\n';
        if (starts_line && (*at == '.' || *at == '\'')) {
            fputs("\\&", out);
        }
        if (*at == '\\') {
            fputs("\\e", out);
        } else if (*at == '-') {
            fputs("\\-", out);
        } else {
            fputc(*at, out);
        }
    }
}

static void troff_line(FILE *out, const char *before, const char *text) {
    fputs(before, out);
    troff_text(out, text);
    fputc('\n', out);
}

static void man_commands(FILE *out) {
    fprintf(out, ".SH COMMANDS\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        const CommandRow *row = &command_table[i];
        fprintf(out, ".TP\n");
        troff_line(out, ".B ndtune ", row->usage);
        troff_line(out, "", row->summary);
    }
}

static void man_option(FILE *out, const OptionRow *row) {
    fprintf(out, ".TP\n.na\n");  // nothing to stretch in a list of words
    fprintf(out, ".BR \\-\\-");
    troff_text(out, row->name);
    if (row->value) {
        fputs(" \" ", out);
        for (const char *at = row->value; *at;) {  // a list of words may be broken behind each
            char word[128];
            const size_t length = strcspn(at, "|") + 1, rest = strlen(at);
            snprintf(word, sizeof word, "%.*s", (int)(length < rest ? length : rest), at);
            troff_text(out, word);
            fputs(length < rest ? "\\:" : "", out);
            at += length < rest ? length : rest;
        }
        fputs("\"", out);
    }
    fputc('\n', out);
    troff_text(out, row->help);
    if (row->fallback) {
        fputs(". Default: ", out);
        troff_text(out, row->fallback);
    }
    fputs(". Taken by", out);
    const char *comma = " ";
    for (int i = 0; i < COMMAND_COUNT; i++) {
        if (row->commands & COMMAND_BIT(i)) {
            fprintf(out, "%s%s", comma, command_names[i]);
            comma = ", ";
        }
    }
    fputs(".\n", out);
}

static void man_options(FILE *out) {
    for (int group = 0; group < GROUP_COUNT; group++) {
        fprintf(out, ".SH OPTIONS: ");
        for (const char *at = option_groups[group]; *at; at++) {
            fputc(*at >= 'a' && *at <= 'z' ? *at - 'a' + 'A' : *at, out);
        }
        fputc('\n', out);
        for (int i = 0; i < OPTION_COUNT; i++) {
            const OptionRow row = option_row((OptionId)i);
            if ((int)row.group == group) {
                man_option(out, &row);
            }
        }
    }
}

// The documents that --format json prints, by the fields that scripts rely on.
static const char documents[] =
    ".SH JSON\n"
    "Every document has a field schema; bytes and seconds are plain numbers; what is unknown is null.\n"
    ".TP\n.B ndtune.plan/1\n"
    "request (what was asked), entries (a prediction for the best choice of each shape that fits, ranked; pareto is "
    "true "
    "where no other shape is as fast with less memory), rejected (mesh, plan, rule, reason of every other shape), "
    "baseline "
    "(mesh, feasible, reason, place, step_time_s, tokens_per_s, gain_of_best_percent; null without \\-\\-baseline), "
    "search "
    "(shapes, candidates, pruned, estimated, simulated, cached, elapsed_s), global_batch (of all entries; request has "
    "it "
    "where it was asked), best_reason (why entries[0] is the best; the others follow by the objective), "
    "fastest_if_it_fits (a prediction that is faster and leaves less than 8 % of the memory free, or null), if_allowed "
    "(what number formats that nobody asked for would come to, or null), cures (where nothing fits: what would let "
    "something fit, the nearest first).\n"
    ".TP\n.B ndtune.prediction/1\n"
    "model, cluster, target, evidence, evidence_here (published runs of the framework on this accelerator: runs, "
    "largest_world, median_abs_error, median_bias of predicted / measured - 1), mesh, plan (its order lists the axes "
    "over the ranks from slow to fast), legal, "
    "feasible, reasons, warnings, step_time_s with its 80 % "
    "interval "
    "step_time_low_s and step_time_high_s, tokens_per_s, tokens_per_s_per_gpu, mfu, hfu, model_flops_per_s_per_gpu, "
    "memory "
    "(terms that sum to peak_bytes, reserved_bytes, limit_bytes), time (terms that sum to step_time_s), cost "
    "(usd_per_hour, "
    "usd_per_billion_tokens; with \\-\\-tokens also tokens, training_s, training_usd), origin (estimate or engine), "
    "engine_version, peak_phase and largest_buffer (what is alive where memory is largest). Of ndtune predict also "
    "request and, with \\-\\-measured, measured (step_time_s, over_predicted, in_interval, "
    "one_micro_batch, micro_batches, causes: "
    "cause, explains, slowness, step_time_s with it, look; suspects: choice, step_time_s).\n"
    ".TP\n.B ndtune.scaling/1\n"
    "request (of the first world), best_world, worlds (world, feasible, reason, best, efficiency, training_s, "
    "training_usd).\n"
    ".TP\n.B ndtune.explain/1\n"
    "request, best and next (predictions), lead, seconds_per_million_tokens and memory_bytes (name, best, next, "
    "difference), "
    "estimated_best, what_if (change, factor, feasible, mesh, same_shape, gain, break_even_factor, break_even_mesh, "
    "searched_to_factor), sensitivities (quantity, less and more: factor of the quantity, change of the best plan's "
    "time "
    "per token, feasible; null where no plan is that near), stages (why pp, or why not: offered, used, other_shapes; "
    "other: the best shape of the other kind, lead, most_saved, bubble_share; else a reason), etp (why the ranks that "
    "cut "
    "each expert are so many: offered, asked, used, others: the best plan with etp, feasible, slower, reserved_bytes; "
    "else a reason).\n"
    ".TP\n.B ndtune.explain\\-from/1\n"
    "Of ndtune explain \\-\\-from: file, format, flavour (the file in words), request (the search, with the file's "
    "batch, "
    "sequence length and kernels), refusal (why no plan follows from the file), own and best (predictions), no_best "
    "(why "
    "best is null), gain (of "
    "the best over own), seconds_per_million_tokens and memory_bytes (name, best, own, difference), changes (one at a "
    "time, what fits first: kind, change, key, mesh, plan, feasible, reason, step_time_s, tokens_per_s, gain, "
    "reserved_bytes), findings (kind: refused, trap, ignored, not modelled or assumed; key, line, sentence), successor "
    "(the target that replaces this one) and successor_gain.\n"
    ".TP\n.B ndtune.check/1\n"
    "Of ndtune check FILE: file, format, request, passed (runs, fits and near_best, each only where the one before is "
    "true), slower (than the best: a share of its tokens per second), tolerance, verdict (one sentence), own and best "
    "(predictions), no_best, notes (level error, warning or notice; key, line, end_line, sentence).\n"
    ".TP\n.B ndtune.check\\-pair/1\n"
    "Of ndtune check FILE FILE: request, before and after (file, format, reason, own), passed, slower (than before), "
    "more_bytes (reserved), tolerance, verdict, changes (key, line_before, line, before, after: values; alone, slower "
    "and more_bytes of this change made to the first file, or where it does not go alone of all such together).\n"
    ".TP\n.B ndtune.export/1\n"
    "format, file_name, versions (of the framework, in words), content (the file), prediction.\n"
    ".TP\n.B ndtune.run/1\n"
    "model, cluster, target, target_version, mesh, plan, loss, grad_norm, step_time_s (one number per step), "
    "host, device, transport, lanes, seed, peak_bytes, planned_peak_bytes, core_type (that OpenBLAS ran its kernels "
    "for, "
    "on a processor), chip and device_bytes (on a GPU), expert_load (over, most: per cent, where ep spreads experts), "
    "state, "
    "failure, "
    "predicted_step_time_s, tasks (name, kind, lane, count, measured_s: of a collective with the wait for the slowest "
    "rank, predicted_s: without).\n"
    ".TP\n.B ndtune.validate/1\n"
    "request, source (executor, or command: \\-\\-with), shapes (ranked), steps, warm_up, repeats, rows (place in the "
    "predicted ranking, chosen top or spread, mesh, plan, predicted_step_time_s with predicted_low_s and "
    "predicted_high_s, measured_step_time_s with its 90 % interval measured_low_s and measured_high_s, "
    "steady_step_time_s (without what the machine's speed did meanwhile: rows are compared by it), noise (what "
    "repeats differ by), state, reason, runs (median_s, step_time_s, warm_up, known), predicted_time and measured_time "
    "(terms that sum to the step), peak_bytes, planned_peak_bytes, tasks), kinds (lane, kind, count, measured_s, "
    "predicted_s: one step of each measured shape, summed), agreement (measured, best_predicted, best_measured, "
    "regret, "
    "kendall_tau, median_abs_error, median_bias, constant_rate_median_abs_error (of one rate for all shapes, fitted to "
    "these very runs), in_interval, noise).\n"
    ".TP\n.B ndtune.calibrate/1\n"
    "parent, parent_hash, profile (name), path, from (in words), runs (ids), parameters (name, scales, target or null "
    "= "
    "the machine, log_factor and factor over the parent's numbers, prior_sd, sd, prior_source, verdict identified, "
    "weak "
    "or untaught, verdict_words, runs, plans and run_sets that could teach it), plans (model, target, mesh, plan, "
    "runs, "
    "measured_step_time_s, before_step_time_s, after_step_time_s, held_out_step_time_s by the fit without the plan, "
    "weight near 0 where the fit took it for an outlier), fit and held_out (plans, median and p90 of |predicted / "
    "measured \\- 1| before and after; held_out has 0 plans where there are too few), misfit_sd and noise_sd (of log "
    "step "
    "times: of a plan, of its repeats), span_runs, outliers (run, ratio, against repeats or fit), left_out (reason, "
    "runs).\n"
    ".TP\n.B ndtune.tune/1\n"
    "request, wanted_probability, tolerance, max_runs, max_time_s, seed, winner (mesh), probability (that no shape is "
    "faster than the winner by more than the tolerance), expected_regret, stopped_by (probability, max\\-runs, "
    "max\\-time, no\\-shape\\-left), runs, known (measured before the session), failed, wall_s, begin and steps (one "
    "per run: mesh, why it was run, run_id, known, expected_step_time_s with its 80 % interval expected_low_s and "
    "expected_high_s, measured_step_time_s, failure, wall_s, calibration, and what is believed after it: winner, "
    "probability, expected_regret, entropy_bits, next, next_why, gain_bits), shapes (place in the predicted ranking, "
    "mesh, plan, predicted_step_time_s, calibrated_step_time_s, 80 % interval believed_low_s and believed_high_s, "
    "measured_step_time_s, runs, probability_good, probability_fastest, unsettled, out (why it is no candidate)).\n"
    ".TP\n.B ndtune.preflight/1\n"
    "mesh, ready, ranks (rank, host, cores, flop_per_s, memory_bytes, clock_offset_s), groups (axes, collective, "
    "ranks, "
    "payload_bytes, measured_s, predicted_s, wrong_elements), findings (bad, sentence).\n"
    ".TP\n.B ndtune.blame/1\n"
    "folder, world, dumps (ranks that left one), verdict (healthy, missing, skipped, extra, mismatch, order, size, "
    "slow, stuck), sentence, ranks (who is blamed; of two that disagree both where certain is false), did and due "
    "(what the blamed rank issued, or issued last, and what its group issued: collective, bytes, elements_in, "
    "elements_out, dtype, group, number, inside, waited_s, layer, caller), waiting (ranks in it), held_up (ranks "
    "that other waits hold up), excess (slow: share of the time that the others wait), program (step, matched, "
    "compared; null without \\-\\-mesh), stands (of each rank: rank, host, dump, at), groups (name, description, "
    "ranks, listed: by the dumps, else those that used it), unknown (what the dumps do not tell), left_out "
    "(files).\n"
    ".TP\n.B ndtune.config/1\n"
    "The file of {config} in a command of validate \\-\\-with: model, mesh, plan, steps.\n"
    ".TP\n.B ndtune.stored-run/1\n"
    "Of ndtune runs ID: id, started_at, source, host, command, model, cluster, target, plan, state, failure, warm_up, "
    "loss, step_time_s, measured_step_s, predicted_step_s, core_type (as in ndtune.run/1), peak_bytes, tasks.\n"
    ".TP\n.B ndtune.report/1\n"
    "Of ndtune report: html (the file), bytes, charts (the build has them), request, entries, candidates, measured "
    "(plans "
    "with runs).\n"
    ".TP\n.B ndtune.runs/1\n"
    "requests (id, asked_at, command, model, cluster, target, world, times_asked, best_plan, best_step_s), runs (id, "
    "started_at, host, model, plan, device, transport, state, failure, steps, measured_step_s, predicted_step_s), "
    "preflights (id, checked_at, command, cluster, hosts, device, transport, mesh, world, ready, reason: the first "
    "finding that is bad).\n"
    ".TP\n.B ndtune.cluster/1\n"
    "Of ndtune clusters NAME and ndtune probe: the profile file, each number with value, source and grade. With "
    "\\-\\-device cuda the probe measures one GPU's products (rates, a sustained one, and each for itself under "
    "products), "
    "streams, memory and attention (flash is ndtune's own kernel, cudnn NVIDIA's), and over nccl the collectives of "
    "its "
    "groups; description says what stays that of the profile that it extends. Where accelerator.name is a chip on "
    "which "
    "runs timed products, plan, predict, run and the others take those times from the store too.\n"
    ".TP\n.B ndtune.models/1, ndtune.clusters/1, ndtune.accuracy/1\n"
    "The lists models and clusters, and the scores of predictions against measured runs: a column half in the groups "
    "file (fitted, held) splits "
    "them by what constants were fitted on.\n";

// How tune decides, and how it goes on.
static const char tune_sessions[] =
    ".SH TUNE\n"
    "After each run the profile is calibrated by all runs of the session: that is what the session leaves for other "
    "shapes and models. What is believed of each shape's step time follows from the predictions, which may all be off "
    "by one factor, from a misfit of each shape's own and from the runs; samples of it say how "
    "probable it is that a shape is within \\-\\-within of the fastest, and which run is expected to tell most about "
    "which shape is the fastest. A shape whose run fails is out, with its reason. A run that nothing else agrees with "
    "is repeated before it counts. Runs are stored with the session: the same call after an interrupt or a kill prints "
    "what was done and goes on; runs that validate made of the same shapes are known to it. \\-\\-no\\-cache begins a "
    "new session.\n";

#define PLACE(symbol, name, role, lenders) " {" #name "}"
#define AXES_PLACES AXIS_LIST(PLACE)

// validate --with reads what somebody else's program prints.
static const char with_command[] =
    ".SH VALIDATE \\-\\-WITH\n"
    "In the words of the command," AXES_PLACES " {world} {seq} {micro_batch} {grad_accum} "
    "{global_batch} {zero} {reshard} {recompute} {cp_rotate} {precision} {steps} {layers} {hidden} {heads} {kv_heads} "
    "{ffn} {vocab} become the numbers of the shape, so do the other columns of a plan, and {config} a JSON file with "
    "all of them; the same are in the environment as NDTUNE_DP_SHARD and so on. No shell is involved: sh \\-c "
    "'COMMAND' starts one. Step times are read from standard output and error, from the first of these formats that "
    "any line has: ";

static const char ending[] =
    ".SH EXIT STATUS\n"
    "0 ok, 1 usage, 2 nothing feasible (blame: somebody is blamed), 3 environment (files, memory, disks, workers), "
    "4 internal.\n"
    ".SH ENVIRONMENT\n"
    ".TP\n.B XDG_DATA_HOME\nThe store is ndtune/ndtune.db below it, else below ~/.local/share.\n"
    ".TP\n.B NO_COLOR\nNo colours, also not on terminals.\n"
    ".TP\n.B NDTUNE_CORE_TYPE\nA core type of OpenBLAS (Haswell, SkylakeX) that runs use whatever it costs. Without it "
    "they use what the processor's features allow where OpenBLAS, or OPENBLAS_CORETYPE, has narrower kernels; the run "
    "says so and keeps the core type.\n"
    ".TP\n.B NDTUNE_WORKER\nThe ndtune\\-worker to start, else the one beside ndtune.\n"
    ".TP\n.B NDTUNE_NCCL_SHARE_GPU\n1: several ranks of \\-\\-transport nccl may share a GPU; each looks like a host "
    "of its "
    "own to NCCL, over sockets. For correctness only: its times mean nothing.\n"
    ".SH FILES\n"
    "The store is one SQLite file; the views v_ranking, v_best, v_accuracy (runs beside their predictions) and v_tune "
    "(sessions of tune, run by run) are made for queries by hand; the table calibrations keeps every profile that "
    "ndtune calibrate wrote, preflights what ndtune preflight found.\n";

// What export writes, from the table of formats.
static void man_formats(FILE *out) {
    fputs(".SH EXPORT\n"
          "The plan is that of \\-\\-mesh, or the best of \\-\\-world and \\-\\-model, or the best of the last request "
          "in the "
          "store. \\-\\-target alone picks the first of its formats. The accumulation of \\-\\-mesh is the one that "
          "makes "
          "\\-\\-global\\-batch, unless \\-\\-grad\\-accum says another. What a format cannot hold is refused.\n",
          out);
    const ExportFormat *format;
    for (int i = 0; (format = export_format_at(i)); i++) {
        fputs(".TP\n", out);
        troff_line(out, ".B ", format->name);
        troff_text(out, format->file_name);
        fputs(", for ", out);
        troff_text(out, format->versions);
        fputs(format->target ? "; plans of " : "; plans of any target with a format", out);
        troff_text(out, format->target ? format->target : "");
        fputs(".\n", out);
    }
}

static void man_topics(FILE *out) {
    int count = 0;
    const Topic *table = topics(&count);
    for (int i = 0; i < count; i++) {
        troff_line(out, ".SH ", table[i].title);
        fprintf(out, ".nf\n");
        topic_write(&table[i], troff_text, out);
        fprintf(out, ".fi\n");
    }
}

static void man_csv(FILE *out) {
    const char *const place = strstr(manual_csv, "{plan}");
    const char *names[CSV_PLAN_COLUMNS];
    const int count = csv_plan_names(names);
    fprintf(out, "%.*s", (int)(place - manual_csv), manual_csv);
    for (int i = 0; i < count; i++) {
        fprintf(out, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    fputs(place + strlen("{plan}"), out);
}

Status manual_page(FILE *out, const char *version, Error *error) {
    fprintf(out, ".TH NDTUNE 1 \"\" \"ndtune %s\" \"User commands\"\n", version);
    fprintf(out, ".SH NAME\nndtune \\- which mesh shape to train a large transformer with\n");
    fprintf(out, ".SH SYNOPSIS\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        troff_line(out, i > 0 ? ".br\n.B ndtune " : ".B ndtune ", command_table[i].usage);
    }
    fprintf(out,
            ".SH DESCRIPTION\n"
            "Predicts memory and step time of every dp_replicate x dp_shard x cp x tp shape of a world, with every "
            "choice that goes with a shape, ranks them with reasons, and runs them for real.\n");
    man_commands(out);
    man_topics(out);
    man_options(out);
    fputs(documents, out);
    man_csv(out);
    fputs(tune_sessions, out);
    char formats[STEP_LOG_FORMATS_BYTES];
    fputs(with_command, out);
    troff_text(out, step_log_formats(formats));
    fputs(". ndtune calibrate \\-\\-log reads the same formats. Let one rank print them. A command that fails, or "
          "prints none, is stored with that reason.\n",
          out);
    man_formats(out);
    fputs(ending, out);
    fprintf(out, ".SH EXAMPLES\n");
    for (int i = 0; i < COMMAND_COUNT; i++) {
        fprintf(out, ".nf\n");
        troff_text(out, command_table[i].examples);
        fprintf(out, ".fi\n");
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the manual page could not be written") : STATUS_OK;
}

Status option_markdown(FILE *out, Error *error) {
    fputs("| option | value | default | what it is | taken by |\n|---|---|---|---|---|\n", out);
    for (int i = 0; i < OPTION_COUNT; i++) {
        const OptionRow row = option_row((OptionId)i);
        fprintf(out, "| `--%s` | ", row.name);
        for (const char *at = row.value ? row.value : ""; *at; at++) {
            fputs(*at == '|' ? "\\|" : (const char[]){*at, '\0'}, out);
        }
        fprintf(out, " | %s | %s | ", row.fallback ? row.fallback : "", row.help);
        const char *comma = "";
        const bool everybody = row.commands == (1u << COMMAND_COUNT) - 1;
        for (int command = 0; command < COMMAND_COUNT && !everybody; command++) {
            if (row.commands & COMMAND_BIT(command)) {
                fprintf(out, "%s%s", comma, command_names[command]);
                comma = ", ";
            }
        }
        fputs(everybody ? "all |\n" : " |\n", out);
    }
    return ferror(out) ? error_set(error, STATUS_ENVIRONMENT, "the table could not be written") : STATUS_OK;
}
