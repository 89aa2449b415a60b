// Every collective with exactly summable data over odd sizes: one table for all transports, whoever runs the ranks.

#pragma once

#include "exec/transport/transport.h"

enum { CHECK_RANKS_MOST = 8, CHECK_COMMUNICATORS_MOST = 16 };

// One rank of a transport under test.
typedef struct CheckRank {
    const TransportTable *table;
    Transport *transport;
    Mesh mesh;
    const Communicator *communicators;
    int communicator_count;
    int rank;
    int faults;  // wrong elements or failed calls
    Error error;
} CheckRank;

// A communicator for every mask of axes; returns how many.
int check_communicators(Communicator communicators[CHECK_COMMUNICATORS_MOST]);

// Every collective of the table on every communicator with every size.
void check_all(CheckRank *rank);

// Some collectives on one communicator, `times` over.
void check_some(CheckRank *rank, int communicator, int times);

// A sum of numbers whose rounding differs with the order, over all ranks: the bits of rank order.
void check_order(CheckRank *rank);
