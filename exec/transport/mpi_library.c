// Each symbol is a row: its name and its place in the table. The library stays open until the process ends.

#include "exec/transport/mpi_library.h"

#include <dlfcn.h>
#include <stddef.h>

#include "kernels/symbols.h"

static const Symbol symbols[] = {
    SYMBOL(MpiLibrary, MPI_Init_thread, init_thread),
    SYMBOL(MpiLibrary, MPI_Finalize, finalize),
    SYMBOL(MpiLibrary, MPI_Error_string, error_string),
    SYMBOL(MpiLibrary, MPI_Comm_set_errhandler, comm_set_errhandler),
    SYMBOL(MpiLibrary, MPI_Comm_rank, comm_rank),
    SYMBOL(MpiLibrary, MPI_Comm_size, comm_size),
    SYMBOL(MpiLibrary, MPI_Comm_split, comm_split),
    SYMBOL(MpiLibrary, MPI_Ibarrier, ibarrier),
    SYMBOL(MpiLibrary, MPI_Irecv, irecv),
    SYMBOL(MpiLibrary, MPI_Isend, isend),
    SYMBOL(MpiLibrary, MPI_Test, test),
    SYMBOL(MpiLibrary, MPI_Testall, testall),
    SYMBOL(MpiLibrary, MPI_Waitall, waitall),
    SYMBOL(MpiLibrary, ompi_mpi_comm_world, world),
    SYMBOL(MpiLibrary, ompi_mpi_byte, byte),
    SYMBOL(MpiLibrary, ompi_request_null, no_request),
    SYMBOL(MpiLibrary, ompi_mpi_errors_return, errors_return),
};

// The build's own first, which its launcher belongs to; elsewhere the one that this machine has. GLOBAL: components
// that the library opens look for its symbols.
Status mpi_library_open(MpiLibrary *library, Error *error) {
    static const char *const files[] = {NDTUNE_MPI_FOLDER "/libmpi.so.40", "libmpi.so.40"};
    void *handle = dlopen(files[0], RTLD_NOW | RTLD_GLOBAL);
    handle = handle ? handle : dlopen(files[1], RTLD_NOW | RTLD_GLOBAL);
    FAIL_IF(!handle, error, STATUS_ENVIRONMENT,
            "transport mpi: no %s on this machine (Open MPI: package openmpi-bin, or LD_LIBRARY_PATH to where it is)",
            files[1]);
    const char *lacks = symbols_find(handle, symbols, sizeof symbols / sizeof *symbols, library);
    FAIL_IF(lacks, error, STATUS_ENVIRONMENT, "transport mpi: %s has no %s: it is not Open MPI", files[1], lacks);
    return STATUS_OK;
}
