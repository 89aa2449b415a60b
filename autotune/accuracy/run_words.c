// Rules: the project's reference for rows of measured runs. A word that a column has by itself always wins; then the
// first row of its table that the text contains. What no row knows stays, so that its run is left out with the word.

#include "autotune/accuracy/run_words.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "sim/base/text.h"
#include "sim/cluster/cluster.h"
#include "sim/frameworks/framework.h"
#include "sim/plan/plan_fields.h"

typedef struct WordPart {
    const char *part, *means;
    bool whole;  // the text is no more than that
} WordPart;

static const WordPart recompute[] = {
    {"selective", "selective", false},
    {"full", "full", false},
    {"none", "none", false},
    {"no", "none", true},
    {"off", "none", true},
    {"false", "none", true},
    {NULL, NULL, false},
};

// fp32 only where it is all: sums, copies and gradients in it stand beside what multiplies.
static const WordPart dtype[] = {
    {"fp4", "fp8", false},       {"fp8", "fp8", false},     {"float8", "fp8", false},   {"bf16", "bf16", false},
    {"bfloat16", "bf16", false}, {"fp16", "fp16", false},   {"float16", "fp16", false}, {"half", "fp16", true},
    {"fp32", "fp32", true},      {"float32", "fp32", true}, {"float", "fp32", true},    {NULL, NULL, false},
};

static const WordPart fp8_recipe[] = {
    {"fp4", "nvfp4", false},
    {"mxfp8", "mxfp8", false},
    {"fp8-mx", "mxfp8", false},
    {"rowwise", "rowwise", false},
    {"blockwise", "blockwise", false},
    {"fp8-sc", "blockwise", false},
    {"subchannel", "blockwise", false},
    {"delayed", "delayed", false},
    {"fp8-ds", "delayed", false},
    {"tensorwise", "tensorwise", false},
    {"fp8-cs", "tensorwise", false},
    {"current", "tensorwise", false},
    {"per-tensor", "tensorwise", false},
    {NULL, NULL, false},
};

static const WordPart attention[] = {
    {"cudnn", "cudnn", false},
    {"te", "cudnn", true},
    {"te fused", "cudnn", true},
    {"te flash", "cudnn", true},
    {"transformer engine", "cudnn", false},
    {"unfused", "eager", false},
    {"fused softmax", "eager", false},
    {"local", "eager", true},
    {"dense attention", "eager", false},
    {"math", "eager", true},
    {"triton", "triton", false},
    {"flash-attn 3", "flash3", false},
    {"flash-attn-3", "flash3", false},
    {"flashattention-3", "flash3", false},
    {"flashattention 3", "flash3", false},
    {"fa3", "flash3", false},
    {"fa2", "flash", false},
    {"flash", "flash", false},
    {"sdpa", "flash", false},
    {"flex", "flash", false},
    {NULL, NULL, false},
};

static const WordPart fused[] = {
    {"compile", "compiled", false},
    {"inductor", "compiled", false},
    {"te", "fused", true},
    {"apex", "fused", true},
    {"transformer engine", "fused", false},
    {"none", "eager", true},
    {"no", "eager", true},
    {NULL, NULL, false},
};

static const WordPart cp_algo[] = {
    {"a2a", "a2a", false},
    {"p2p", "ring", false},
    {"zigzag", "ring", false},
    {"ring", "ring", false},
    {"all-gather", "allgather", false},
    {"all gather", "allgather", false},
    {"all_gather", "allgather", false},
    {NULL, NULL, false},
};

// squared ReLU takes GELU's place: sizes and traffic are the same
static const WordPart mlp[] = {
    {"gelu-new", "gelu-new", true}, {"gelu-tanh", "gelu-tanh", true}, {"swiglu", "swiglu", false},
    {"geglu", "swiglu", false},     {"gated", "swiglu", false},       {"silu", "swiglu", true},
    {"glu", "swiglu", true},        {"gelu-new", "gelu-new", false},  {"gelu-tanh", "gelu-tanh", false},
    {"gelu", "gelu", false},        {"relu", "gelu", false},          {NULL, NULL, false},
};

static const WordPart zero[] = {
    {"offload", NULL, false},
    {"zero3", "3", false},
    {"zero-3", "3", false},
    {"zero 3", "3", false},
    {"stage 3", "3", false},
    {"zero2", "2", false},
    {"zero-2", "2", false},
    {"zero 2", "2", false},
    {"stage 2", "2", false},
    {"zero1", "1", false},
    {"zero-1", "1", false},
    {"zero 1", "1", false},
    {"stage 1", "1", false},
    {"distributed optimizer", "1", false},
    {"fsdp", "3", false},
    {"full_shard", "3", false},
    {"hybrid_shard", "3", false},
    {"hsdp", "3", false},
    {"optim_grads_params", "3", false},
    {"ddp", "0", false},
    {"none", "0", false},
    {NULL, NULL, false},
};

static const WordPart sp[] = {
    {"without sequence parallel", "0", false},
    {"no sequence parallel", "0", false},
    {"sequence parallel", "1", false},
    {"true", "1", true},
    {"yes", "1", true},
    {"on", "1", true},
    {"false", "0", true},
    {"no", "0", true},
    {"off", "0", true},
    {NULL, NULL, false},
};

typedef struct WordColumn {
    const char *column;
    const WordPart *parts;  // NULL: names of frameworks
    const char *from;       // what it follows from where it is empty; NULL = nothing
    bool keeps;             // what no part is in is no reason to take the column as unknown
} WordColumn;

static const WordColumn columns[] = {
    {"recompute", recompute, "act_ckpt", true},
    {"dtype", dtype, "precision", true},
    {"fp8_recipe", fp8_recipe, "precision", false},
    {"attention", attention, "attention_impl", false},
    {"fused", fused, NULL, false},
    {"cp_algo", cp_algo, NULL, false},
    {"mlp", mlp, NULL, false},
    {"zero", zero, "sharding", false},
    {"sp", sp, "compiled_or_fused", false},
    {"target", NULL, "source", false},
};

static const WordColumn *column_of(const char *name) {
    return TEXT_FIND(columns, sizeof columns / sizeof columns[0], column, name);
}

// Without blanks around it, in lower case.
static char *plain(const char *text, Arena *arena) {
    while (isspace((unsigned char)*text)) {
        text++;
    }
    char *word = arena_text(arena, text);
    size_t length = strlen(word);
    while (length > 0 && isspace((unsigned char)word[length - 1])) {
        word[--length] = '\0';
    }
    for (size_t i = 0; i < length; i++) {
        word[i] = (char)tolower((unsigned char)word[i]);
    }
    return word;
}

static bool is_own(const char *column, const char *word) {
    int64_t number = 0;
    for (int id = 0; id < PLAN_FIELD_COUNT; id++) {
        if (plan_fields[id].column && strcmp(plan_fields[id].column, column) == 0) {
            return plan_fields[id].column_is_number ? text_parse_int(word, &number)
                                                    : plan_field_value((PlanFieldId)id, word) != PLAN_ANY;
        }
    }
    return text_parse_int(word, &number);
}

// NULL: no row.
static const WordPart *part_in(const WordPart *parts, const char *word) {
    for (; parts->part; parts++) {
        if (parts->whole ? strcmp(word, parts->part) == 0 : strstr(word, parts->part) != NULL) {
            return parts;
        }
    }
    return NULL;
}

// ---- frameworks

enum { NAME_LETTERS = 5 };  // shorter ones are parts of other words and names of their makers

static bool has_word(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = text; length >= NAME_LETTERS && *at; at++) {
        const bool begins = at == text || !isalnum((unsigned char)at[-1]);
        if (begins && strncasecmp(at, word, length) == 0 && !isalnum((unsigned char)at[length])) {
            return true;
        }
    }
    return false;
}

static bool is_named(const Framework *framework, const char *text, bool whole) {
    bool named = whole ? text_same_word(text, framework->name) : has_word(text, framework->name);
    for (const FrameworkSynonym *row = framework->synonyms; row && row->word; row++) {
        named = named || (whole ? text_same_word(text, row->word) : has_word(text, row->word));
    }
    return named;
}

// The only one that trains under a name in the text; NULL = none, or several.
static const char *framework_in(const char *text, bool whole) {
    int count = 0, found = 0;
    const Framework *const *all = framework_list(&count);
    const char *name = NULL;
    for (int i = 0; i < count; i++) {
        if (all[i]->versions[0] && is_named(all[i], text, whole)) {
            name = all[i]->name;
            found++;
        }
    }
    return found == 1 ? name : NULL;
}

static const char *target_word(const char *text, Arena *arena) {
    const char *word = plain(text, arena), *version = strchr(word, '@');
    const char *name = version ? arena_format(arena, "%.*s", (int)(version - word), word) : word;
    const char *known = framework_in(name, true);
    return known ? arena_format(arena, "%s%s", known, version ? version : "") : text;
}

// ---- what is read

// "4096 packed": full documents of that many tokens, as where nothing is said of them.
static const char *packed_length(const char *text, Arena *arena) {
    const char *word = plain(text, arena), *rest = strchr(word, ' ');
    return rest && strcmp(rest, " packed") == 0 ? arena_format(arena, "%.*s", (int)(rest - word), word) : word;
}

const char *run_word(const char *name, const char *text, Arena *arena) {
    if (text[0] == '\0') {
        return text;
    }
    if (strcmp(name, "seq_len") == 0) {
        return packed_length(text, arena);
    }
    const WordColumn *column = column_of(name);
    if (!column) {
        return text;
    }
    if (!column->parts) {
        return target_word(text, arena);
    }
    const char *word = plain(text, arena);
    const WordPart *row = is_own(name, word) ? NULL : part_in(column->parts, word);
    return row ? row->means ? row->means : text : is_own(name, word) ? word : text;
}

const char *run_word_source(const char *name) {
    const WordColumn *column = column_of(name);
    return column ? column->from : strcmp(name, "cluster") == 0 ? "gpu" : NULL;
}

const char *run_word_from(const char *name, const char *other, Arena *arena) {
    const WordColumn *column = column_of(name);
    if (!column || other[0] == '\0') {
        return "";
    }
    if (!column->parts) {
        const char *known = framework_in(other, false);
        return known ? known : "";
    }
    const WordPart *row = part_in(column->parts, plain(other, arena));
    return row ? row->means ? row->means : other : column->keeps ? other : "";
}

const char *run_word_cluster(const char *chip, const char *memory_gb, bool usual, Arena *arena) {
    const char *plain_node = cluster_usual_node(chip);
    const char *sized = cluster_usual_node(arena_format(arena, "%s %sGB", chip, memory_gb));
    if (sized && (usual || (plain_node && strcmp(sized, plain_node) != 0))) {
        return sized;
    }
    return usual && plain_node ? plain_node : chip;
}
