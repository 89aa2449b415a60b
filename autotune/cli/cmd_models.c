// ndtune models: the built-in models; with a name or a config.json, that one in full.

#include <string.h>

#include "autotune/cli/cli.h"
#include "reports/reports.h"

Status cmd_models(Cli *cli, Error *error) {
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    if (cli->options.word_count == 0) {
        return cli_answer(cli, &answer_models, &(ModelsReport){presets, count, false}, error);
    }
    ModelPreset one = {0};
    cli->blame = cli->options.word_argument[0];
    TRY(model_find(cli->options.words[0], &cli->arena, &one.spec, error));
    for (int i = 0; i < count; i++) {
        one.alias = strcmp(presets[i].spec.name, one.spec.name) == 0 ? presets[i].alias : one.alias;
    }
    return cli_answer(cli, &answer_models, &(ModelsReport){&one, 1, true}, error);
}
