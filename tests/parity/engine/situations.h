// What the recorder asks SimGrid, as JSON; the recorded file is this plus an "end_s" in every task and collective.
//   flows: links, and tasks that keep their lane's order and wait for the task named in "after". A task takes "seconds"
//          or sends "bytes" over all of "links" (separated by commas). A link with a "resource" is one that the engine
//          shares; the others are private and only limit their flow.
//   rings: ring collectives step by step over the ranks of one ring, every hop its own link.
// "within": the largest relative difference that the engine may show. "why": the modelling choice that explains it.

#pragma once

#include <jansson.h>

json_t *situations_flows(void);
json_t *situations_rings(void);
