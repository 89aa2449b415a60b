// The world of a request, which the part of each rack that it has goes with.

#include "autotune/result.h"

int request_set_world(TuneRequest *request, int world, Arena *arena) {
    request->world = world;
    return cluster_make_racks_alike(&request->cluster, world, arena);
}
