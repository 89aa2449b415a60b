// Rules: the project's reference for rows of measured runs. A word that a column has by itself always wins; then the
// first row of its table that the text contains. What no row knows stays, so that its run is left out with the word;
// so does a part beside which the text denies something ("bf16, fp8 off"): what it denies is not read.

#include "autotune/accuracy/run_words.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "sim/base/text.h"
#include "sim/cluster/cluster.h"
#include "sim/frameworks/framework.h"
#include "sim/plan/plan_fields.h"

// In lower case, without what stands between words; NULL = who has it is left out.
typedef struct WordPart {
    const char *part, *means;
    bool whole;  // the text is no more than that
} WordPart;

#define LAST                                                                                                           \
    { NULL, NULL, false }

static const WordPart recompute[] = {
    {"selective", "selective", false},
    {"full", "full", false},
    {"none", "none", false},
    {"norecompute", "none", false},
    {"no", "none", true},
    {"off", "none", true},
    {"false", "none", true},
    LAST,
};

// fp32 only where it is all: sums, copies and gradients in it stand beside what multiplies. A cache is for inference.
static const WordPart dtype[] = {
    {"bf16(fp8", NULL, false},
    {"fp8kv", NULL, false},
    {"kvfp8", NULL, false},
    {"nvfp4", "fp8", false},
    {"fp4", "fp8", false},
    {"mxfp8", "fp8", false},
    {"fp8", "fp8", false},
    {"float8", "fp8", false},
    {"bf16", "bf16", false},
    {"bfloat16", "bf16", false},
    {"fp16", "fp16", false},
    {"float16", "fp16", false},
    {"half", "fp16", true},
    {"fp32", "fp32", true},
    {"float32", "fp32", true},
    {"float", "fp32", true},
    LAST,
};

static const WordPart fp8_recipe[] = {
    {"nvfp4", "nvfp4", false},
    {"fp4", "nvfp4", false},
    {"mxfp8", "mxfp8", false},
    {"fp8mx", "mxfp8", false},
    {"rowwise", "rowwise", false},
    {"blockwise", "blockwise", false},
    {"fp8sc", "blockwise", false},
    {"subchannel", "blockwise", false},
    {"delayed", "delayed", false},
    {"fp8ds", "delayed", false},
    {"tensorwise", "tensorwise", false},
    {"fp8cs", "tensorwise", false},
    {"current", "tensorwise", false},
    {"pertensor", "tensorwise", false},
    LAST,
};

static const WordPart attention[] = {
    {"cudnn", "cudnn", false},
    {"te", "cudnn", true},
    {"tefused", "cudnn", true},
    {"teflash", "cudnn", true},
    {"transformerengine", "cudnn", false},
    {"unfused", "eager", false},
    {"fusedsoftmax", "eager", false},
    {"local", "eager", true},
    {"denseattention", "eager", false},
    {"math", "eager", false},
    {"eager", "eager", false},
    {"triton", "triton", false},
    {"flash4", NULL, false},
    {"flashattn4", NULL, false},
    {"flashattnv4", NULL, false},
    {"flashattention4", NULL, false},
    {"flashattentionv4", NULL, false},
    {"fa4", NULL, false},
    {"flash3", "flash3", false},
    {"flashattn3", "flash3", false},
    {"flashattnv3", "flash3", false},
    {"flashattention3", "flash3", false},
    {"flashattentionv3", "flash3", false},
    {"fa3", "flash3", false},
    {"fa2", "flash", false},
    {"flash", "flash", false},
    {"sdpa", "flash", false},
    {"flex", "flash", false},
    LAST,
};

static const WordPart fused[] = {
    {"compile", "compiled", false},
    {"torchcompile", "compiled", false},
    {"inductor", "compiled", false},
    {"te", "fused", true},
    {"apex", "fused", true},
    {"transformerengine", "fused", false},
    {"none", "eager", true},
    {"no", "eager", true},
    LAST,
};

// Megatron's a2a+p2p is of both.
static const WordPart cp_algo[] = {
    {"+", NULL, false},
    {"a2a", "a2a", false},
    {"p2p", "ring", false},
    {"zigzag", "ring", false},
    {"ring", "ring", false},
    {"allgather", "allgather", false},
    LAST,
};

// squared ReLU takes GELU's place: sizes and traffic are the same
static const WordPart mlp[] = {
    {"gelunew", "gelu-new", true}, {"gelutanh", "gelu-tanh", true}, {"swiglu", "swiglu", false},
    {"geglu", "swiglu", false},    {"gated", "swiglu", false},      {"silu", "swiglu", true},
    {"glu", "swiglu", true},       {"gelunew", "gelu-new", false},  {"gelutanh", "gelu-tanh", false},
    {"gelu", "gelu", false},       {"relu", "gelu", false},         LAST,
};

static const WordPart zero[] = {
    {"offload", NULL, false},
    {"cpuoffload", NULL, false},
    {"zero3", "3", false},
    {"zerostage3", "3", false},
    {"stage3", "3", false},
    {"zero2", "2", false},
    {"zerostage2", "2", false},
    {"stage2", "2", false},
    {"zero1", "1", false},
    {"zerostage1", "1", false},
    {"stage1", "1", false},
    {"hybridshardzero2", "2", false},
    {"shardgradop", "2", false},
    {"noshard", "0", false},
    {"distributedoptimizer", "1", false},
    {"optimgradsparams", "3", false},
    {"optimgrads", "2", false},  // Megatron-FSDP's
    {"fsdp", "3", false},
    {"simplefsdp", "3", false},
    {"fullshard", "3", false},
    {"hybridshard", "3", false},
    {"hsdp", "3", false},
    {"none", "0", false},
    {"zero0", "0", false},
    {"zerostage0", "0", false},
    {"stage0", "0", false},
    {"ddp", "0", false},
    LAST,
};

// What speaks of the states; other texts are of other axes ("TP + SP").
static const WordPart sharded_states[] = {{"zero", "", false}, {"stage", "", false}, {"shard", "", false}, LAST};

static const WordPart sp[] = {
    {"withoutsequenceparallel", "0", false},
    {"nosequenceparallel", "0", false},
    {"sequenceparalleloff", "0", false},
    {"sequenceparallelfalse", "0", false},
    {"sequenceparallel", "1", false},
    {"true", "1", true},
    {"yes", "1", true},
    {"on", "1", true},
    {"false", "0", true},
    {"no", "0", true},
    {"off", "0", true},
    LAST,
};

typedef struct WordColumn {
    const char *column;
    const WordPart *parts;    // NULL: names of frameworks
    const char *from[2];      // what it follows from where it is empty; NULL = nothing
    bool same;                // that is of the same thing: it has the column's own words, and what nobody knows is kept
    const WordPart *of_same;  // only where it has one of these; NULL = always
} WordColumn;

static const WordColumn columns[] = {
    {"recompute", recompute, {"act_ckpt"}, true, NULL},
    {"dtype", dtype, {"precision"}, true, NULL},
    {"fp8_recipe", fp8_recipe, {"dtype", "precision"}, false, NULL},
    {"attention", attention, {"attention_impl"}, true, NULL},
    {"fused", fused, {NULL}, false, NULL},
    {"cp_algo", cp_algo, {NULL}, false, NULL},
    {"mlp", mlp, {NULL}, false, NULL},
    {"zero", zero, {"sharding"}, true, sharded_states},
    {"sp", sp, {"compiled_or_fused"}, false, NULL},
    {"target", NULL, {"source"}, false, NULL},
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

static bool begins_word(const char *text, const char *at) {
    return at == text || !isalnum((unsigned char)at[-1]);
}

// The bytes of the part at the head of a text, with what stands between its words; 0 = it is not there.
static size_t head_bytes(const char *text, const char *part) {
    const char *at = text;
    for (; *part; part++, at++) {
        while (at != text && *at && strchr(" -_:=", *at)) {
            at++;
        }
        if (*at != *part) {
            return 0;
        }
    }
    return (size_t)(at - text);
}

// Where a word of the text begins with the part; NULL = nowhere.
static const char *part_at(const char *text, const WordPart *row, size_t *bytes) {
    for (const char *at = text; *at; at++) {
        *bytes = begins_word(text, at) || !isalnum((unsigned char)*row->part) ? head_bytes(at, row->part) : 0;
        if (*bytes > 0) {
            return !row->whole || (at == text && text[*bytes] == '\0') ? at : NULL;
        }
    }
    return NULL;
}

#define UNSAID "not stated"  // denies nothing

static bool is_denial(const char *at) {
    static const char *const words[] = {"no",    "not",  "non",   "nor",     "un",       "without", "w/o",   "off",
                                        "false", "none", "never", "disable", "disabled", "instead", "except"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t bytes = strlen(words[i]);
        if (strncmp(at, words[i], bytes) == 0 && !isalnum((unsigned char)at[bytes])) {
            return true;
        }
    }
    return false;
}

// Does a text deny something beside the `bytes` at `part`?
static bool denies(const char *text, const char *part, size_t bytes) {
    for (const char *at = text; *at; at++) {
        const bool beside = at < part || at >= part + bytes;
        if (beside && begins_word(text, at) && is_denial(at) && strncmp(at, UNSAID, strlen(UNSAID)) != 0) {
            return true;
        }
    }
    return false;
}

// What the first row says of a word: itself = its run is left out, NULL = no row.
static const char *part_in(const WordPart *row, const char *word, bool whole) {
    for (; row->part; row++) {
        size_t bytes = 0;
        const char *at = row->whole && !whole ? NULL : part_at(word, row, &bytes);
        if (at) {
            return row->means && !denies(word, at, bytes) ? row->means : word;
        }
    }
    return NULL;
}

// ---- frameworks

enum { NAME_LETTERS = 5 };  // shorter ones are parts of other words and names of their makers

static bool has_word(const char *text, const char *word) {
    const size_t length = strlen(word);
    for (const char *at = text; length >= NAME_LETTERS && *at; at++) {
        if (begins_word(text, at) && strncasecmp(at, word, length) == 0 && !isalnum((unsigned char)at[length])) {
            return true;
        }
    }
    return false;
}

static bool is_named(const Framework *framework, const char *text, bool whole) {
    bool named =
        whole ? text_same_word(text, framework->name) : !framework->name_is_word && has_word(text, framework->name);
    for (const FrameworkSynonym *row = framework->synonyms; row && row->word; row++) {
        named = named || (whole ? text_same_word(text, row->word) : has_word(text, row->word));
    }
    return named;
}

// How many train under a name in the text, and the last of them.
static int frameworks_in(const char *text, bool whole, const char **name) {
    int count = 0, found = 0;
    const Framework *const *all = framework_list(&count);
    for (int i = 0; i < count; i++) {
        if (all[i]->versions[0] && is_named(all[i], text, whole)) {
            *name = all[i]->name;
            found++;
        }
    }
    return found;
}

static const char *target_word(const char *text, Arena *arena) {
    const char *word = plain(text, arena), *version = strchr(word, '@');
    const char *name = version ? arena_format(arena, "%.*s", (int)(version - word), word) : word;
    const char *known = NULL;
    return frameworks_in(name, true, &known) == 1 ? arena_format(arena, "%s%s", known, version ? version : "") : text;
}

// The framework with the longest name of runs, or of its maker, in a text: the text itself = denied there, NULL = none.
static const char *source_in(const char *text, bool maker) {
    int count = 0;
    const Framework *const *all = framework_list(&count);
    const char *longest = NULL;
    size_t most = 0;
    for (int i = 0; i < count; i++) {
        for (const SourceName *row = all[i]->sources; row && row->name; row++) {
            const WordPart part = {row->name, all[i]->name, row->whole};
            size_t bytes = 0;
            const char *at = row->maker == maker ? part_at(text, &part, &bytes) : NULL;
            if (at && strlen(row->name) > most) {
                most = strlen(row->name);
                longest = denies(text, at, bytes) ? text : all[i]->name;
            }
        }
    }
    return longest;
}

static bool is_unread(const char *text) {
    static const WordPart others[] = {{"jax", NULL, false}, {"paxml", NULL, false}, {"maxtext", NULL, false}, LAST};
    return part_in(others, text, true) != NULL;
}

// What a source trains by; "" = it does not say, or it has several names.
static const char *source_target(const char *word) {
    const char *named = NULL;
    const int count = frameworks_in(word, false, &named);
    const char *said = source_in(word, false);
    said = said ? said : count == 1 ? named : source_in(word, true);
    return said && said != word && count <= 1 && !is_unread(word) ? said : "";
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
    const char *said = is_own(name, word) ? NULL : part_in(column->parts, word, true);
    return is_own(name, word) ? word : said && said != word ? said : text;
}

const char *run_word_source(const char *name, int index) {
    const WordColumn *column = column_of(name);
    if (!column) {
        return index == 0 && strcmp(name, "cluster") == 0 ? "gpu" : NULL;
    }
    return index < (int)(sizeof column->from / sizeof column->from[0]) ? column->from[index] : NULL;
}

// What no row knows: is it of the column's own subject?
static bool is_kept(const WordColumn *column, const char *word) {
    const bool speaks = !column->of_same || part_in(column->of_same, word, true) != NULL;
    return column->same && speaks && (!column->of_same || strstr(word, UNSAID) == NULL);
}

const char *run_word_from(const char *name, const char *other, Arena *arena) {
    const WordColumn *column = column_of(name);
    const char *word = plain(other, arena);
    if (!column || word[0] == '\0') {
        return "";
    }
    if (column->same && is_own(name, word)) {
        return word;
    }
    if (!column->parts) {
        return source_target(word);
    }
    const char *said = part_in(column->parts, word, column->same);
    return said && said != word ? said : said || is_kept(column, word) ? other : "";
}

const char *run_word_cluster(const char *chip, const char *memory_gb, bool usual, Arena *arena) {
    const char *plain_node = cluster_usual_node(chip);
    const char *sized = cluster_usual_node(arena_format(arena, "%s %sGB", chip, memory_gb));
    if (sized && (usual || (plain_node && strcmp(sized, plain_node) != 0))) {
        return sized;
    }
    return usual && plain_node ? plain_node : chip;
}
