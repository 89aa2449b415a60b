// Inside sim/cost: gathers of tp that a product hides part by part.

#pragma once

#include "sim/cost/cost.h"

// With tp_overlap most of a tp collective runs inside the product that it feeds or comes from.
bool peer_exchange_in_product(const TrainPlan *plan, const Task *task);

// Whether a gather comes part by part: what it costs hangs on the product behind it, too.
bool peer_exchange_feeds(const StepProgram *program, const Task *task);

// Of a gather whose parts are multiplied as they come, what the product leaves in the open; 0 of all others.
double peer_exchange_open_s(const CostModel *model, const StepProgram *program, const Task *task,
                            const GroupPlacement *group);
