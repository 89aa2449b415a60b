// The runs of the store as samples of a calibration.

#pragma once

#include "autotune/calibrate/samples.h"
#include "autotune/store/store.h"

// What the command line of a stored run asked for, on this cluster instead of its own, and by the version of the
// framework that ran; texts live as long as the samples. An error's message is why it cannot be known.
typedef struct StoredLines {
    Status (*request)(void *context, const StoredRun *run, const char *cluster, TuneRequest *request, Error *error);
    void *context;
} StoredLines;

// `runs` are the newest first; the list's base is known. Of runs of the executor those are taken that went over the
// transport of the newest, or over the one that is named.
Status samples_of_store(SampleList *list, Store *store, const StoredMeasurement *runs, int count, const char *transport,
                        const StoredLines *asks, Error *error);
