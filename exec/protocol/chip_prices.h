// Prices of chips, sent to the workers and back, one row each: [chip, what, choice, seconds].

#pragma once

#include <jansson.h>

#include "sim/base/arena.h"
#include "sim/base/error.h"
#include "sim/step/chip_price.h"

json_t *chip_prices_json(const ChipPrice *prices, int count);  // NULL: a string in it is not UTF-8
Status chip_prices_take(const json_t *rows, Arena *arena, const ChipPrice **prices, int *count, Error *error);
