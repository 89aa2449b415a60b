// MPI transport: ranks are processes started by mpirun or srun, on one host or many. A rank shows its state in the row
// of its setup, which a thread sends to the launcher.
//
// After a failed or stopped call the library may be left in the middle of a message: close does not finalize it then,
// and the process must end with _exit.

#pragma once

#include "exec/transport/transport.h"

extern const TransportTable transport_mpi;
