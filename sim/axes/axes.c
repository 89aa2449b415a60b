// The table of axes, filled from axis_list.h, and the words that find a row of it.

#include "sim/axes/axes.h"

#include <strings.h>

#include "sim/base/text.h"

#define AXIS_ROW(symbol, name, role, lenders) extern const AxisRow axis_##name;
AXIS_LIST(AXIS_ROW)

#define AXIS_ADDRESS(symbol, name, role, lenders) [AXIS_##symbol] = &axis_##name,
const AxisRow *const axis_rows[AXIS_COUNT] = {AXIS_LIST(AXIS_ADDRESS)};

#define AXIS_NAME(symbol, name, role, lenders) [AXIS_##symbol] = #name,
const char *const axis_names[AXIS_COUNT] = {AXIS_LIST(AXIS_NAME)};

#define AXIS_LENDERS(symbol, name, role, lenders) [AXIS_##symbol] = AXES_##lenders,
const AxisMask axis_lenders[AXIS_COUNT] = {AXIS_LIST(AXIS_LENDERS)};

char *axes_text(AxisMask axes, const char *separator, char out[AXES_TEXT_BYTES]) {
    size_t used = 0;
    out[0] = '\0';
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        if (axes & AXIS_BIT(axis)) {
            used = used > 0 ? text_put(out, AXES_TEXT_BYTES, used, separator) : 0;
            used = text_put(out, AXES_TEXT_BYTES, used, axis_names[axis]);
        }
    }
    return out;
}

const char *axis_run_column(Axis axis) {
    return axis_rows[axis]->run_column ? axis_rows[axis]->run_column : axis_names[axis];
}

Axis axis_find(const char *word) {
    int axis = 0;
    while (axis < AXIS_COUNT && !text_same_word(word, axis_names[axis])) {
        axis++;
    }
    return (Axis)axis;
}

static const AxisWord *word_find(const char *word) {
    for (int axis = 0; axis < AXIS_COUNT; axis++) {
        const AxisWord *words = axis_rows[axis]->words;
        for (int i = 0; i < AXIS_MAX_WORDS && words[i].word; i++) {
            if (strcasecmp(word, words[i].word) == 0) {
                return &words[i];
            }
        }
    }
    return NULL;
}

const char *axis_called(const char *word) {
    const AxisWord *found = word_find(word);
    return found ? found->meaning : NULL;
}

const char *axis_as_option(const char *word) {
    const Axis axis = axis_find(word);
    if (axis < AXIS_COUNT) {
        return axis_rows[axis]->as_option;
    }
    const AxisWord *found = word_find(word);
    return found ? found->as_option : NULL;
}
