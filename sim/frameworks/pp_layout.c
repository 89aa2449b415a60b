// Reads a layout as parse_str_to_list of PipelineParallelLayerLayout does, and asserts what validate_layer_layout does.

#include "sim/frameworks/pp_layout.h"

#include <string.h>

#include "sim/frameworks/target.h"

const char pp_layout_such_as[] = "Et*8|t*8|t*8|t*8L";

enum { NO_TIMES = -1, MOST_DIGITS = 9 };

static const char *count_signs(PpLayout *layout, int times) {
    if (times == NO_TIMES) {
        return "a * without a number behind it";
    }
    // What adds nothing counts too: a bracket may repeat it.
    const int signs = times > 0 ? times : 1;
    if (signs > LAYOUT_MOST_SIGNS - layout->signs) {
        return "more than 65536 signs";
    }
    layout->signs += signs;
    return NULL;
}

// One sign of the layout; `times` where a number follows "*".
static void take_sign(PpLayout *layout, char sign, int times) {
    layout->wrong = count_signs(layout, times);
    for (int i = 0; i < times && !layout->wrong; i++) {
        if (sign == '|' && layout->count < LAYOUT_MOST_CHUNKS) {
            layout->layers[layout->count++] = 0;
        } else if (sign == '|') {
            layout->wrong = "too many stages";
        } else if (sign == 't') {
            layout->layers[layout->count - 1]++;
        } else if (sign == 'm') {
            layout->further++;
            layout->further_at = layout->count - 1;
        }
        layout->embeddings += sign == 'E';
        layout->losses += sign == 'L';
        layout->first = layout->first || sign == '|' ? layout->first : sign;
        layout->last = sign == '|' ? layout->last : sign;
    }
    if (!layout->wrong && !strchr("|tmEL", sign)) {
        layout->wrong = "a sign other than E, t, m, L and |";
    }
}

static int number_at(const char **at) {
    int number = 0, digits = 0;
    for (; **at >= '0' && **at <= '9' && digits < MOST_DIGITS; digits++) {
        number = 10 * number + *(*at)++ - '0';
    }
    return digits > 0 ? number : NO_TIMES;
}

static int times_behind(const char **at) {
    if (**at != '*') {
        return 1;
    }
    ++*at;
    return number_at(at);
}

// Brackets do not nest. Returns what follows them.
static const char *take_bracket(PpLayout *layout, const char *text) {
    const char *from = text + 1, *end = strchr(from, ')');
    const char *behind = end ? end + 1 : text + strlen(text);
    const int times = end ? times_behind(&behind) : 0;
    layout->wrong = end ? count_signs(layout, times) : "a bracket that does not end";
    for (int i = 0; i < times && !layout->wrong; i++) {
        for (const char *at = from; at < end && !layout->wrong;) {
            const char sign = *at++;
            if (sign == ' ' || sign == ',') {
                layout->wrong = count_signs(layout, 1);
            } else {
                take_sign(layout, sign, times_behind(&at));
            }
        }
    }
    return behind;
}

bool pp_layout_read(const char *text, PpLayout *layout) {
    *layout = (PpLayout){.count = 1};
    while (*text && !layout->wrong) {
        if (*text == ' ' || *text == ',') {
            text++;
        } else if (*text == '(') {
            text = take_bracket(layout, text);
        } else {
            const char sign = *text++;
            take_sign(layout, sign, times_behind(&text));
        }
    }
    return !layout->wrong;
}

int pp_layout_layers(const PpLayout *layout) {
    int sum = 0;
    for (int i = 0; i < layout->count; i++) {
        sum += layout->layers[i];
    }
    return sum;
}

// Chunks between the first and the last one have as many layers each; the place of the first that has not, 0: none.
static int odd_chunk(const PpLayout *layout) {
    int odd = 0;
    for (int i = 2; i < layout->count - 1 && !odd; i++) {
        odd = layout->layers[i] == layout->layers[1] ? 0 : i;
    }
    return odd;
}

// All chunks of the first stage are alike, those of the last one, and those between. Chunk i is on stage i mod stages.
static bool is_of_ends(const PpLayout *layout, int stages) {
    bool same = stages < layout->count && layout->layers[0] > 0 && layout->layers[stages - 1] > 0;
    for (int i = 0; i < layout->count; i++) {
        const int stage = i % stages, like = stage == 0 || stage == stages - 1 ? stage : 1;
        same &= layout->layers[i] == layout->layers[like];
    }
    return same;
}

// As they are dealt out where the number does not divide: the first ones have one more.
static bool is_own_deal(const PpLayout *layout) {
    const int all = pp_layout_layers(layout), each = all / layout->count, over = all % layout->count;
    bool same = over > 0;
    for (int i = 0; i < layout->count; i++) {
        same &= layout->layers[i] == each + (i < over);
    }
    // Where embedding and loss count as layers, that is how they are dealt out.
    return same && (all + 2) % layout->count != 0 && (all + 1) % layout->count != 0;
}

bool pp_layout_split(const PpLayout *layout, int stages, LayerRule rule, PpLayoutSplit *split) {
    const int chunks = layout->count / stages, first = layout->layers[0], last = layout->layers[layout->count - 1];
    *split = (PpLayoutSplit){.split = SPLIT_TARGET};
    if (is_own_deal(layout) && rule == LAYERS_EDGES_IF_UNEVEN) {
        return true;
    }
    if (!odd_chunk(layout)) {
        *split = (PpLayoutSplit){SPLIT_CHUNKS, first, last};
        return true;
    }
    *split = (PpLayoutSplit){SPLIT_ENDS, chunks * first, chunks * last};
    return is_of_ends(layout, stages);
}

const char *pp_layout_unheld(const PpLayout *layout, Arena *arena) {
    const int odd = odd_chunk(layout);
    return arena_format(arena,
                        "has %d layers in chunk 2 and %d in chunk %d, and a plan holds as many in each of the %d "
                        "between the first and the last: use as many in each",
                        layout->layers[1], layout->layers[odd], odd + 1, layout->count - 2);
}

const char *pp_layout_stages(const PpLayout *layout, Arena *arena) {
    const char *text = "";
    for (int stages = 2; stages <= layout->count; stages++) {
        const char *link = !text[0] ? "pp " : stages == layout->count ? " or " : ", ";
        text = layout->count % stages == 0 ? arena_format(arena, "%s%s%d", text, link, stages) : text;
    }
    return text[0] ? text : "a layout of several";
}

const char *pp_layout_refuse(const PpLayout *layout, int layers, int further, Arena *arena) {
    const int own = pp_layout_layers(layout);
    REFUSE_IF(arena, layout->first != 'E' || layout->embeddings != 1,
              "The first layer must be embedding, and it must be specified exactly once (E)");
    REFUSE_IF(arena, layout->last != 'L' || layout->losses != 1,
              "The last layer must be loss, and it must be specified exactly once (L)");
    REFUSE_IF(arena, layers > 0 && own != layers, "Number of decoder layers %d must match num_layers %d", own, layers);
    REFUSE_IF(arena, layout->further != further, "Number of mtp layers in layout must match mtp_num_layers");
    return NULL;
}
