// Compares the model that a file names with the predicted one, by the size in its name ("Llama-3.1-70B", "8B",
// "SmolLM-135M"). Names round freely: Llama-3.2-1B has 1.24 G parameters, gemma-7b 8.5 G. Names without a size, and of
// mixtures ("8x7B"), give no information.

#include <ctype.h>
#include <string.h>

#include "autotune/import/import.h"
#include "sim/base/text.h"

static const double ROUNDED = 1.5;  // a larger ratio is another model

// Parameter count from the name; 0 = none.
static double size_in(const char *name) {
    for (const char *at = name; *at; at++) {
        const bool starts =
            isdigit((unsigned char)*at) && (at == name || (!isalnum((unsigned char)at[-1]) && at[-1] != '.'));
        const size_t length = starts ? strspn(at, "0123456789.") : 0;
        const char unit = (char)tolower((unsigned char)at[length]);
        char number[16];
        double value;
        if (length == 0 || length >= sizeof number || (unit != 'b' && unit != 'm') ||
            isalnum((unsigned char)at[length + 1])) {
            continue;
        }
        memcpy(number, at, length);
        number[length] = '\0';
        if (text_parse_double(number, &value)) {
            return value * (unit == 'b' ? 1e9 : 1e6);
        }
    }
    return 0;
}

void import_compare_model(Import *import, const char *asked, double parameters) {
    const double named = import->model ? size_in(import->model) : 0;
    FIND_IF(named > ROUNDED * parameters || (named > 0 && ROUNDED * named < parameters), import, FINDING_TRAP,
            import->model_key, "the file trains %s, and what is predicted is --model %s with %s parameters",
            import->model, asked, text_count(UNIT_BUFFER, parameters));
}
