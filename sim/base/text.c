// Text in and out. Numbers for people have three significant digits; what people type is parsed whole or not at all (no
// spaces, no hex, no inf). Suggestions use the optimal string alignment distance (insert, delete, replace, swap of
// neighbours), in which letter case and '-' against '_' cost nothing.

#include "sim/base/text.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "sim/base/error.h"

typedef struct Scale {
    double scale;
    const char *name;
} Scale;

// Three significant digits of value; the limits are where rounding would add a digit.
static void format_significant(char out[TEXT_UNIT_BYTES], double value, const char *unit) {
    const double size = fabs(value);
    const int decimals = size < 9.995 ? 2 : size < 99.95 ? 1 : 0;
    snprintf(out, TEXT_UNIT_BYTES, "%.*f %s", decimals, value, unit);
}

// The first unit (largest first) in which the value, rounded, is at least 1; values above 1e15 of the largest unit lose
// the plain form.
static char *format_units(char out[TEXT_UNIT_BYTES], double value, const Scale *units, size_t count) {
    const double size = fabs(value);
    if (!isfinite(value) || size >= 1e15 * units[0].scale) {
        snprintf(out, TEXT_UNIT_BYTES, "%.3g %s", value / units[0].scale, units[0].name);
        return out;
    }
    for (size_t i = 0; i < count; i++) {
        if (size >= 0.9995 * units[i].scale) {
            format_significant(out, value / units[i].scale, units[i].name);
            return out;
        }
    }
    format_significant(out, value / units[count - 1].scale, units[count - 1].name);
    return out;
}

char *text_bytes(char out[TEXT_UNIT_BYTES], double bytes) {
    static const Scale units[] = {{0x1p50, "PiB"}, {0x1p40, "TiB"}, {0x1p30, "GiB"}, {0x1p20, "MiB"}, {0x1p10, "KiB"}};
    if (fabs(bytes) < 1023.5) {
        snprintf(out, TEXT_UNIT_BYTES, "%.0f B", fabs(bytes) < 0.5 ? 0.0 : bytes);
        return out;
    }
    return format_units(out, bytes, units, sizeof units / sizeof units[0]);
}

char *text_seconds(char out[TEXT_UNIT_BYTES], double seconds) {
    static const Scale units[] = {{1.0, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}};
    if (seconds == 0.0) {
        snprintf(out, TEXT_UNIT_BYTES, "0 s");
        return out;
    }
    return format_units(out, seconds, units, sizeof units / sizeof units[0]);
}

char *text_count(char out[TEXT_UNIT_BYTES], double count) {
    static const Scale units[] = {{1e12, "T"}, {1e9, "B"}, {1e6, "M"}, {1e3, "k"}};
    if (fabs(count) < 999.5) {
        snprintf(out, TEXT_UNIT_BYTES, "%.*f", count == floor(count) ? 0 : 1, count);
        return out;
    }
    return format_units(out, count, units, sizeof units / sizeof units[0]);
}

size_t text_put(char *out, size_t bytes, size_t used, const char *part) {
    const size_t length = strlen(part);
    ASSERT(used + length < bytes);
    memcpy(out + used, part, length + 1);
    return used + length;
}

size_t text_put_int(char *out, size_t bytes, size_t used, int number) {
    char digits[16];
    char *at = &digits[sizeof digits - 1];
    unsigned left = number < 0 ? 0u - (unsigned)number : (unsigned)number;
    *at = '\0';
    do {
        *--at = (char)('0' + left % 10);
        left /= 10;
    } while (left > 0);
    if (number < 0) {
        *--at = '-';
    }
    return text_put(out, bytes, used, at);
}

bool text_parse_int(const char *text, int64_t *value) {
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    if (!isdigit((unsigned char)digits[0])) {
        return false;
    }
    char *end = NULL;
    errno = 0;
    const long long parsed = strtoll(text, &end, 10);
    if (errno != 0 || *end != '\0') {
        return false;
    }
    *value = parsed;
    return true;
}

// A decimal number at the start of text; *end is what follows.
static bool parse_number(const char *text, double *value, char **end) {
    const char *digits = text + (text[0] == '-' || text[0] == '+');
    const char *first = digits + (digits[0] == '.');
    if (!isdigit((unsigned char)first[0]) || (digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X'))) {
        return false;
    }
    errno = 0;
    const double parsed = strtod(text, end);
    if (!isfinite(parsed) || (errno == ERANGE && fabs(parsed) > 1.0)) {
        return false;
    }
    *value = parsed;
    return true;
}

bool text_parse_double(const char *text, double *value) {
    char *end = NULL;
    double parsed = 0.0;
    if (!parse_number(text, &parsed, &end) || *end != '\0') {
        return false;
    }
    *value = parsed;
    return true;
}

bool text_parse_bytes(const char *text, int64_t *bytes) {
    static const char letters[] = "KMGTP";
    char *unit = NULL;
    double number = 0.0;
    if (!parse_number(text, &number, &unit)) {
        return false;
    }
    unit += *unit == ' ';
    const char *letter = *unit == '\0' ? NULL : strchr(letters, toupper((unsigned char)*unit));
    double scale = 1.0;
    if (letter) {
        const bool binary = unit[1] == 'i';
        scale = pow(binary ? 1024.0 : 1000.0, (double)(letter - letters + 1));
        unit += binary ? 2 : 1;
    }
    unit += *unit == 'B';
    const double total = number * scale;
    if (*unit != '\0' || !(total >= 0.0) || total >= 0x1p63) {
        return false;
    }
    *bytes = (int64_t)llround(total);
    return true;
}

static int folded(char letter) {
    return letter == '_' ? '-' : tolower((unsigned char)letter);
}

enum { NEAREST_MAX_LENGTH = 64 };

// Optimal string alignment distance with three rows.
static int edit_distance(const char *a, size_t a_length, const char *b, size_t b_length) {
    int rows[3][NEAREST_MAX_LENGTH + 1];
    for (size_t j = 0; j <= b_length; j++) {
        rows[0][j] = (int)j;
    }
    for (size_t i = 1; i <= a_length; i++) {
        int *row = rows[i % 3];
        const int *above = rows[(i + 2) % 3];
        const int *above2 = rows[(i + 1) % 3];
        row[0] = (int)i;
        for (size_t j = 1; j <= b_length; j++) {
            const bool same = folded(a[i - 1]) == folded(b[j - 1]);
            int best = above[j - 1] + !same;
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && folded(a[i - 1]) == folded(b[j - 2]) && folded(a[i - 2]) == folded(b[j - 1])) {
                best = above2[j - 2] + 1 < best ? above2[j - 2] + 1 : best;
            }
            row[j] = best;
        }
    }
    return rows[a_length % 3][b_length];
}

const char *text_nearest(const char *word, const char *const *candidates, size_t count) {
    const size_t length = strlen(word);
    if (length < 2 || length > NEAREST_MAX_LENGTH) {  // of one letter each other is as near
        return NULL;
    }
    int nearest_distance = (int)(length + 2) / 3 + 1;  // a slip in every third letter is the most that is still a slip
    const char *nearest = NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t candidate_length = strlen(candidates[i]);
        if (candidate_length > NEAREST_MAX_LENGTH) {
            continue;
        }
        const int distance = edit_distance(word, length, candidates[i], candidate_length);
        if (distance < nearest_distance) {
            nearest_distance = distance;
            nearest = candidates[i];
        }
    }
    return nearest;
}

const char *text_synonym(const char *word, const TextSynonym *table, size_t count) {
    const size_t bytes = strlen(word);
    for (size_t i = 0; i < count; i++) {
        for (const char *at = table[i].words; at; at = strchr(at, '|') ? strchr(at, '|') + 1 : NULL) {
            if (strcspn(at, "|") == bytes && strncasecmp(word, at, bytes) == 0) {
                return table[i].answer;
            }
        }
    }
    return NULL;
}

bool text_contains(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (; *text != '\0'; text++) {
        if (strncasecmp(text, word, length) == 0) {
            return true;
        }
    }
    return length == 0;
}

bool text_ends_in(const char *text, const char *ending) {
    const size_t length = strlen(text), tail = strlen(ending);
    return length > tail && strcmp(text + length - tail, ending) == 0;
}

bool text_is_path(const char *text) {
    return text[0] == '.' || text[0] == '/' || text_ends_in(text, ".json");
}

const char *text_of_bits(const char *const *words, unsigned bits, Arena *arena) {
    const char *text = "";
    for (int i = 0; bits; i++, bits >>= 1) {
        const char *link = !text[0] ? "" : bits == 1 ? " or " : ", ";
        text = bits & 1 ? arena_format(arena, "%s%s%s", text, link, words[i]) : text;
    }
    return text;
}

bool text_same(const char *a, const char *b) {
    return a == b || (a && b && strcmp(a, b) == 0);
}

int text_row(const void *rows, size_t count, size_t bytes, size_t offset, const char *word) {
    for (size_t i = 0; i < count; i++) {
        const char *text;
        memcpy(&text, (const char *)rows + i * bytes + offset, sizeof text);
        if (strcmp(text, word) == 0) {
            return (int)i;
        }
    }
    return -1;
}

bool text_same_word(const char *a, const char *b) {
    for (; *a != '\0' && *b != '\0'; a++, b++) {
        const char left = *a == '_' ? '-' : *a;
        const char right = *b == '_' ? '-' : *b;
        if (left != right) {
            return false;
        }
    }
    return *a == *b;
}
