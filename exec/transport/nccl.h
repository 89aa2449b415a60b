// NCCL transport: one rank per GPU, on one machine or many; an NCCL communicator for each of the setup's.
//
// All calls of a rank come from one thread. A call with a stream is enqueued there; finish waits for all of them. A
// call that fails or is stopped aborts every communicator of this rank, and none is used again. Host memory is staged
// through the GPU, so that the run's own small calls need no other transport.

#pragma once

#include "exec/transport/transport.h"

extern const TransportTable transport_nccl;
