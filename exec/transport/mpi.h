// MPI transport: ranks are processes that mpirun or srun started, on one host or many. A rank shows itself on the row
// of its setup, which a thread posts to the launcher.
//
// After a failed or stopped call the library may be left in the middle of a message: close does not finalize it then,
// and the process must end with _exit.

#pragma once

#include "exec/transport/transport.h"

extern const TransportTable transport_mpi;
