// Ranks and links that are slower than the profile says: "rank.3.slowdown=1.2", "node.2.link_slowdown=3". Only the
// engine knows them; the closed form does not.

#pragma once

#include "autotune/result.h"
#include "sim/base/arena.h"
#include "sim/base/error.h"

// Is this assignment about a rank or a node by its number, and so none about the profile?
bool handicap_named(const char *assignment);

Status handicap_parse(const char *assignment, Handicap *handicap, Error *error);

// Does the world of the request have that rank or node?
Status handicap_check(const Handicap *handicap, const TuneRequest *request, Error *error);

// One sentence for the assumptions.
const char *handicap_text(const Handicap *handicap, Arena *arena);

// Factors per rank of the world, for the engine; NULL = all 1. Of two that name the same rank the later one holds.
const float *handicap_factors(const TuneRequest *request, bool of_links, Arena *arena);
