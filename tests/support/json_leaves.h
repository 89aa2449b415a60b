// The sum of all numbers in a JSON value, however deep.

#pragma once

#include <jansson.h>

static inline double json_leaves(const json_t *value) {
    if (json_is_number(value)) {
        return json_number_value(value);
    }
    double sum = 0;
    const char *key;
    json_t *member;
    json_object_foreach((json_t *)value, key, member) {
        sum += json_leaves(member);
    }
    return sum;
}
