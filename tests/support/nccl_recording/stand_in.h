// Stand-ins for the NVIDIA driver (libcuda.so.1) and for NCCL (libnccl.so.2), for tests only: the calls that transport
// nccl makes, over host memory. Streams are threads with a queue, so that what a GPU does later happens later here too.
//
// NCCL moves data between the ranks of a communicator through files of NDTUNE_NCCL_RECORDING, a directory that the test
// makes and removes, and writes there what every rank called: calls-RANK.log. It is stricter than NCCL: a call that
// NCCL would answer by hanging or by damage (members that call different things, a call before the last one is settled,
// one on an aborted communicator) is an error here, and a line with VIOLATION.
//
// NDTUNE_STAND_IN_GPUS=N: what the driver shows, 8 without. NDTUNE_NCCL_FAIL=RANK:N: the Nth collective of that rank
// fails later, as a lost peer makes it fail.

#pragma once

#include <cuda.h>

// Runs after everything already queued on the stream.
void stand_in_push(CUstream stream, void (*run)(void *context), void *context);
