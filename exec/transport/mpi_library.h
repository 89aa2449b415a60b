// Open MPI, loaded at run time: it and the libraries behind it are a third of what starting a rank costs, and ranks of
// one host need none of them. Functions by their name without prefix; types come from the header of the build.

#pragma once

#include <mpi.h>

#include "sim/base/error.h"

typedef struct MpiLibrary {
    __typeof__(MPI_Init_thread) *init_thread;
    __typeof__(MPI_Finalize) *finalize;
    __typeof__(MPI_Error_string) *error_string;
    __typeof__(MPI_Comm_set_errhandler) *comm_set_errhandler;
    __typeof__(MPI_Comm_rank) *comm_rank;
    __typeof__(MPI_Comm_size) *comm_size;
    __typeof__(MPI_Comm_split) *comm_split;
    __typeof__(MPI_Ibarrier) *ibarrier;
    __typeof__(MPI_Irecv) *irecv;
    __typeof__(MPI_Isend) *isend;
    __typeof__(MPI_Test) *test;
    __typeof__(MPI_Testall) *testall;
    __typeof__(MPI_Waitall) *waitall;
    // What MPI_COMM_WORLD, MPI_BYTE, MPI_REQUEST_NULL and MPI_ERRORS_RETURN stand for: addresses of its data.
    MPI_Comm world;
    MPI_Datatype byte;
    MPI_Request no_request;
    MPI_Errhandler errors_return;
} MpiLibrary;

// ENVIRONMENT where it is missing or lacks a symbol; the message says what to install.
Status mpi_library_open(MpiLibrary *library, Error *error);
