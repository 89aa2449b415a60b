// ndtune blame: who holds up a job, from the dumps of PyTorch's flight recorder. Exit code 0: nobody is blamed; 2:
// somebody is, in one sentence.

#include <stdio.h>

#include "autotune/cli/cli.h"
#include "reports/blame.h"

static Status print(const Cli *cli, const BlameReport *report, Error *error) {
    switch (cli_format(cli)) {
    case FORMAT_JSON:
        return json_blame(report, stdout, error);
    case FORMAT_CSV:
        return csv_blame(report, stdout, error);
    case FORMAT_TABLE:
        break;
    }
    return table_blame(report, stdout, error);
}

Status cmd_blame(Cli *cli, Error *error) {
    if (cli->options.word_count == 0) {
        error_set(error, STATUS_USAGE, "blame reads a folder of dumps");
        return error_hint(error, "TORCH_FR_BUFFER_SIZE=2000 TORCH_FR_DUMP_TEMP_FILE=DIR/rank_ makes torch write them");
    }
    Job job;
    Verdict verdict;
    cli->blame = cli->options.word_argument[0];
    TRY(job_read(cli->options.words[0], &cli->arena, &job, error));
    cli->blame = -1;
    const double hang_s = cli_given(cli, OPTION_TIMEOUT) ? cli_value(cli, OPTION_TIMEOUT)->number : 0;
    verdict_find(&job, hang_s, &cli->arena, &verdict);
    const BlameReport report = {.job = &job, .verdict = &verdict};
    TRY(print(cli, &report, error));
    return verdict.kind == VERDICT_HEALTHY
               ? STATUS_OK
               : error_set(error, STATUS_INFEASIBLE, "%s", blame_sentence(&report, &cli->arena));
}
