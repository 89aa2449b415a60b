// ndtune blame: which rank holds up a job, from the dumps of PyTorch's flight recorder; with --mesh and --model also
// the layer and task of the step. Exit code 0: no rank is blamed; 2: one is, in one sentence.

#include "autotune/blame/places.h"
#include "autotune/cli/cli.h"
#include "autotune/cli/request.h"
#include "autotune/search/prune.h"
#include "reports/html/blame_page.h"

typedef struct Blaming {
    Cli *cli;
    Mesh mesh;
    TrainPlan plan;
    StepPrograms programs;
    bool stepped;  // the programs are known
    Job job;
    Verdict verdict;
    BlameReport report;
} Blaming;

// The step given by --mesh, --model and the accompanying choices.
static Status lower_step(Blaming *blaming, Error *error) {
    Cli *cli = blaming->cli;
    TuneRequest request;
    const char *reason = NULL;
    if (!cli_given(cli, OPTION_MESH)) {
        return cli_given(cli, OPTION_MODEL) ? cli_refuse(cli, OPTION_MODEL, error, "--model needs the shape: --mesh")
                                            : STATUS_OK;
    }
    TRY(request_build(cli, &predict_defaults, &request, error));
    blaming->mesh = request.mesh;
    request_plan(&request, &request.mesh, &blaming->plan);
    FAIL_WITH(prune(&request, &blaming->plan, NULL, &cli->arena, &reason),
              cli_refuse(cli, OPTION_MESH, error, "this plan is not legal: %s", reason));
    TRY(step_lower_stages(&request.model, &blaming->plan, request.target, &cli->arena, &blaming->programs, error));
    blaming->stepped = true;
    blaming->report.program =
        arena_format(&cli->arena, "%s on %s for %s@%s", request.model.name,
                     mesh_short_text(&blaming->mesh, MESH_BUFFER), request.target->name, request.target->version);
    return STATUS_OK;
}

static Status read_job(Blaming *blaming, Error *error) {
    Cli *cli = blaming->cli;
    const int world = blaming->stepped ? mesh_world(&blaming->mesh) : cli_integer_or(cli, OPTION_WORLD, 0);
    cli->blame = cli->options.word_argument[0];
    TRY(job_read(cli->options.words[0], world, &cli->arena, &blaming->job, error));
    cli->blame = -1;
    FAIL_WITH(world > 0 && blaming->job.world != world,
              cli_refuse(cli, blaming->stepped ? OPTION_MESH : OPTION_WORLD, error,
                         "the dumps are of %d ranks, not of %d", blaming->job.world, world));
    return STATUS_OK;
}

static void find_places(Blaming *blaming) {
    Places places;
    if (blaming->stepped) {
        places_name(&blaming->job, &blaming->mesh, &blaming->programs, &blaming->cli->arena, &blaming->verdict,
                    &places);
        blaming->report.matched = places.matched;
        blaming->report.compared = places.compared;
    }
}

Status cmd_blame(Cli *cli, Error *error) {
    Blaming blaming = {.cli = cli};
    BlameReport *report = &blaming.report;
    if (cli->options.word_count == 0) {
        error_set(error, STATUS_USAGE, "blame reads a folder of dumps");
        return error_hint(error, "TORCH_FR_BUFFER_SIZE=2000 TORCH_FR_DUMP_TEMP_FILE=DIR/rank_ makes torch write them");
    }
    TRY(cli_check_output(cli, OPTION_HTML, error));
    TRY(lower_step(&blaming, error));
    TRY(read_job(&blaming, error));
    const double hang_s = cli_number_or(cli, OPTION_TIMEOUT, 0);
    verdict_find(&blaming.job, hang_s, &cli->arena, &blaming.verdict);
    find_places(&blaming);
    report->job = &blaming.job;
    report->verdict = &blaming.verdict;
    const BlamePage page = {.report = report, .again = cli->line, .arena = &cli->arena};
    TRY(cli_write_option(cli, OPTION_HTML, html_blame, &page, error));
    TRY(cli_answer(cli, &answer_blame, report, error));
    return blaming.verdict.kind == VERDICT_HEALTHY
               ? STATUS_OK
               : error_set(error, STATUS_INFEASIBLE, "%s", blame_sentence(report, &cli->arena));
}
