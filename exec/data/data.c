// One of two sources, selected by whether a path is given.

#include "exec/data/data.h"

#include <inttypes.h>

Status data_open(const DataSetup *setup, DataSource *source, Error *error) {
    *source = (DataSource){.setup = *setup, .chain = token_chain(setup->seed, setup->vocab)};
    if (!setup->path) {
        return STATUS_OK;
    }
    TRY(token_file_open(setup->path, setup->vocab, &source->file, error));
    const int64_t here = source->file.count;
    if (setup->tokens == 0 || setup->tokens == here) {
        return STATUS_OK;
    }
    token_file_close(&source->file);
    error_set(error, STATUS_ENVIRONMENT,
              "%s holds %" PRId64 " tokens for this rank, and %" PRId64 " where the run was started", setup->path, here,
              setup->tokens);
    return error_hint(error, "every host needs the same file under this name");
}

void data_close(DataSource *source) {
    token_file_close(&source->file);
}

void data_sequence(const DataSource *source, int64_t step, int64_t sequence, int32_t count, int32_t *tokens) {
    if (!source->setup.path) {
        chain_sequence(&source->chain, step, sequence, count, tokens);
        return;
    }
    const int64_t place = token_file_place(&source->file, source->setup.seed, step, sequence, count);
    token_file_read(&source->file, place, count, tokens);
}
