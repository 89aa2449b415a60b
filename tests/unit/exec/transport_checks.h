// Every collective with exactly summable data over odd sizes: one table for all transports, however ranks are run.

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

// A communicator for every mask of axes larger than 1, the last with all ranks; returns how many.
int check_communicators(const Mesh *mesh, Communicator communicators[CHECK_COMMUNICATORS_MOST]);

// Every collective of the table on every communicator with every size.
void check_all(CheckRank *rank);

// The links of a ring of all ranks, and last their communicator; for the three checks below.
int check_links(const Mesh *mesh, Communicator communicators[CHECK_COMMUNICATORS_MOST]);

// Messages along the ranks and back.
void check_line(CheckRank *rank);

// Messages that are all sent before the first is received: for transports that can queue them.
void check_messages_ahead(CheckRank *rank);

// Messages round the ring, sent in one thread and received in another.
void check_message_lanes(CheckRank *rank);

// Some collectives on one communicator, `times` over.
void check_some(CheckRank *rank, int communicator, int times);

// A sum over all ranks whose rounding depends on the order: must have the bits of rank order.
void check_order(CheckRank *rank);
