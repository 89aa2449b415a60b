// The collective algorithms: a file and a row each. cost_collective takes the fastest applicable one.

#include "sim/cost/collective.h"

const CollectiveAlgorithm *const collective_table[] = {
    &collective_ring,     &collective_tree,      &collective_nvls,  &collective_p2p,
    &collective_exchange, &collective_symmetric, &collective_sharp, NULL};
