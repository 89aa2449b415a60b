// ndtune models: the built-in models; with a name or a config.json, that one in full.

#include <stdio.h>
#include <string.h>

#include "autotune/cli/cli.h"
#include "reports/reports.h"
#include "reports/schemas.h"

static Status print_models(Cli *cli, const ModelPreset *presets, int count, Error *error) {
    switch (cli_format(cli)) {
    case FORMAT_JSON:
        return json_models(presets, count, stdout, error);
    case FORMAT_CSV:
        return record_csv(&schema_models, presets, count, stdout, error);
    case FORMAT_TABLE:
        break;
    }
    return cli->options.word_count > 0 ? table_model(&presets[0].spec, stdout, error)
                                       : record_table(&schema_models, presets, count, stdout, error);
}

Status cmd_models(Cli *cli, Error *error) {
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    if (cli->options.word_count == 0) {
        return print_models(cli, presets, count, error);
    }
    ModelPreset one = {0};
    cli->blame = cli->options.word_argument[0];
    TRY(model_find(cli->options.words[0], &cli->arena, &one.spec, error));
    for (int i = 0; i < count; i++) {
        one.alias = strcmp(presets[i].spec.name, one.spec.name) == 0 ? presets[i].alias : one.alias;
    }
    return print_models(cli, &one, 1, error);
}
