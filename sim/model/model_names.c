// Names of models as people type them: the identifier on the Hugging Face hub, which stands in a preset's source, or
// its last part. Sizes alone ("14b") name several; they are listed.

#include "sim/model/model_names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "sim/base/text.h"

enum { NAME_BYTES = 128, MAX_NAMES = 256 };

static void drop_end(char *name, const char *end) {
    const size_t length = strlen(name), cut = strlen(end);
    if (length > cut && strcmp(name + length - cut, end) == 0) {
        name[length - cut] = '\0';
    }
}

// "meta-llama/Meta-Llama-3-8B-Instruct" -> "llama-3-8b"
static void plain_name(const char *name, size_t length, char out[NAME_BYTES]) {
    static const char *const ends[] = {"-2507", "-0528", "-0324", "-instruct", "-thinking",
                                       "-chat", "-base", "-it",   "-hf",       "-chat"};
    for (size_t i = 0; i < length; i++) {
        if (name[i] == '/') {
            name += i + 1;
            length -= i + 1;
            i = 0;
        }
    }
    snprintf(out, NAME_BYTES, "%.*s", (int)length, name);
    for (char *at = out; *at; at++) {
        *at = *at == '_' ? '-' : (char)tolower((unsigned char)*at);
    }
    if (strncmp(out, "meta-", 5) == 0) {
        memmove(out, out + 5, strlen(out + 5) + 1);
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        drop_end(out, ends[i]);
    }
}

// The name with nothing between its letters, digits and points: "llama3.1-8b" and "Llama 3.1 8B" are one.
static bool same_squeezed(const char *a, const char *b) {
    while (*a || *b) {
        a += strspn(a, "-_ :");
        b += strspn(b, "-_ :");
        if (*a != *b) {
            return false;
        }
        a += *a != '\0';
        b += *b != '\0';
    }
    return true;
}

// Models trained on from a preset's, or with the same config.json but for what no prediction reads.
static const char *const twins[][2] = {
    {"llama-3.3-70b", "llama-3.1-70b"},
    {"deepseek-r1", "deepseek-v3"},
    {"deepseek-v3.1", "deepseek-v3"},
    {"deepseek-r1-distill-llama-8b", "llama-3.1-8b"},
    {"deepseek-r1-distill-llama-70b", "llama-3.1-70b"},
    {"deepseek-r1-distill-qwen-14b", "qwen2.5-14b"},
    {"deepseek-r1-distill-qwen-32b", "qwen2.5-32b"},
    {"qwen2-0.5b", "qwen2.5-0.5b"},
    {"qwen2-1.5b", "qwen2.5-1.5b"},
    {"qwen2-7b", "qwen2.5-7b"},
    {"qwen2-72b", "qwen2.5-72b"},
    {"qwen2.5-coder-0.5b", "qwen2.5-0.5b"},
    {"qwen2.5-coder-1.5b", "qwen2.5-1.5b"},
    {"qwen2.5-coder-3b", "qwen2.5-3b"},
    {"qwen2.5-coder-7b", "qwen2.5-7b"},
    {"qwen2.5-coder-14b", "qwen2.5-14b"},
    {"qwen2.5-coder-32b", "qwen2.5-32b"},
    {"qwq-32b", "qwen2.5-32b"},
    {"qwen3-coder-30b-a3b", "qwen3-30b-a3b"},
    {"mixtral-8x7b-instruct-v0.1", "mixtral-8x7b"},
    {"tinyllama-1.1b-chat-v1.0", "tinyllama-1.1b"},
};

static bool is_twin(const ModelPreset *preset, const char *plain) {
    bool is = false;
    for (size_t i = 0; i < sizeof twins / sizeof twins[0]; i++) {
        is |= strcmp(preset->spec.name, twins[i][1]) == 0 && same_squeezed(plain, twins[i][0]);
    }
    return is;
}

bool model_is_called(const ModelPreset *preset, const char *name) {
    char asked[NAME_BYTES], known[NAME_BYTES];
    plain_name(name, strlen(name), asked);
    if (is_twin(preset, asked) || same_squeezed(asked, preset->spec.name) ||
        (preset->alias && same_squeezed(asked, preset->alias))) {
        return true;
    }
    const char *config = preset->spec.source ? strstr(preset->spec.source, " config.json") : NULL;
    if (!config) {
        return false;
    }
    const char *hub = config;
    while (hub > preset->spec.source && hub[-1] != ' ') {
        hub--;
    }
    plain_name(hub, (size_t)(config - hub), known);
    return same_squeezed(asked, known);
}

static void list_add(char list[ERROR_HINT_BYTES], const char *word) {
    strncat(list, list[0] ? ", " : "", ERROR_HINT_BYTES - strlen(list) - 1);
    strncat(list, word, ERROR_HINT_BYTES - strlen(list) - 1);
}

// Families whose models have experts and are built otherwise.
static bool has_experts(const char *name) {
    static const char *const words[] = {"dbrx", "grok", "qwen3-next", "minimax", "jetmoe"};
    bool any = false;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        any |= text_contains(name, words[i]);
    }
    return any;
}

// What no model of the step is made for, by the words that its names have.
static const TextSynonym refused[] = {
    {"gemma-2", "no preset: Gemma 2 is read from its config.json (gemma2)"},
    {"gemma2", "no preset: Gemma 2 is read from its config.json (gemma2)"},
    {"falcon", "Falcon (attention beside the MLP) is not predicted yet"},
    {"mamba", "state-space models are not predicted yet"},
    {"rwkv", "recurrent models are not predicted yet"},
    {"jamba", "state-space models are not predicted yet"},
    {"t5", "models with an encoder are not predicted yet"},
    {"bert", "models with an encoder are not predicted yet"},
    {"roberta", "models with an encoder are not predicted yet"},
    {"distilbert", "models with an encoder are not predicted yet"},
    {"whisper", "models with an encoder are not predicted yet"},
    {"llava", "models that see are not predicted yet; their language model is"},
    {"-vl", "models that see are not predicted yet; their language model is"},
};

// At the beginning of a word of the name: "flan-t5" is a T5, "gpt5" is not.
static bool has_word(const char *name, const char *word) {
    for (const char *at = name; *at; at++) {
        const bool begins = at == name || !isalnum((unsigned char)at[-1]) || word[0] == '-';
        if (begins && strncasecmp(at, word, strlen(word)) == 0) {
            return true;
        }
    }
    return false;
}

// The sentence for a name; NULL.
static const char *refusal_of(const char *name) {
    if (has_experts(name)) {
        return "this family of models with experts (MoE) is not predicted yet";
    }
    for (size_t i = 0; i < sizeof refused / sizeof refused[0]; i++) {
        if (has_word(name, refused[i].words)) {
            return refused[i].answer;
        }
    }
    return NULL;
}

bool model_is_named(const char *name) {
    return refusal_of(name) || (strchr(name, '/') && name[0] != '.' && name[0] != '/');
}

// "mistral-7b-instruct-v0.2" goes on from "mistral-7b"; its sizes may differ, so it is asked about, not taken.
static bool goes_on_from(const char *name, const char *preset) {
    const size_t length = strlen(preset);
    return strncmp(name, preset, length) == 0 && name[length] == '-';
}

// "gpt3": every preset whose name goes on from there; of "mistral-7b-v0.3" the preset that it goes on from.
static void of_family(const char *plain, const ModelPreset *presets, int count, char list[ERROR_HINT_BYTES]) {
    list[0] = '\0';
    for (int i = 0; i < count && strlen(plain) > 2; i++) {
        if (strncmp(presets[i].spec.name, plain, strlen(plain)) == 0 || goes_on_from(plain, presets[i].spec.name)) {
            list_add(list, presets[i].spec.name);
        }
    }
}

// "14b": every preset of that size.
static void of_size(const char *name, const ModelPreset *presets, int count, char list[ERROR_HINT_BYTES]) {
    list[0] = '\0';
    for (int i = 0; i < count && name[0] >= '0' && name[0] <= '9'; i++) {
        const char *size = strrchr(presets[i].spec.name, '-');
        if (size && strcasecmp(size + 1, name) == 0) {
            list_add(list, presets[i].spec.name);
        }
    }
}

// "405b" of "llama-3.1-405b"; NULL where the last part is no number.
static const char *size_of(const char *name) {
    const char *dash = strrchr(name, '-');
    return dash && isdigit((unsigned char)dash[1]) ? dash + 1 : NULL;
}

// Of those of the same size, if one is near enough: "llama-405b" is not near 7b.
static const char *nearest_model(const char *plain, const char *const *names, size_t count) {
    const char *alike[MAX_NAMES], *size = size_of(plain), *nearest = NULL;
    size_t same = 0;
    for (size_t i = 0; i < count && size; i++) {
        const char *other = size_of(names[i]);
        if (other && strcasecmp(other, size) == 0) {
            alike[same++] = names[i];
        }
    }
    nearest = same > 0 ? text_nearest(plain, alike, same) : NULL;
    return nearest ? nearest : text_nearest(plain, names, count);
}

// The short names; the long ones are too many for a sentence.
Status model_unknown(const char *name, Error *error) {
    int count = 0;
    const ModelPreset *presets = model_presets(&count);
    const char *names[MAX_NAMES];
    size_t named = 0;
    char list[ERROR_HINT_BYTES] = "tiny", plain[NAME_BYTES], alike[ERROR_HINT_BYTES];
    int others = count - 1;
    for (int i = 0; i < count && named + 2 <= MAX_NAMES; i++) {
        names[named++] = presets[i].spec.name;
        if (presets[i].alias) {
            names[named++] = presets[i].alias;
            list_add(list, presets[i].alias);
            others--;
        }
    }
    if (refusal_of(name)) {
        error_set(error, STATUS_USAGE, "\"%.64s\": %s", name, refusal_of(name));
        return error_hint(error, "ndtune models lists what is; a dense decoder's config.json is as good as a preset");
    }
    const Status status = error_set(error, STATUS_USAGE,
                                    "unknown model \"%.64s\"; known: %s and %d more (ndtune models lists them), or the "
                                    "path of a config.json",
                                    name, list, others);
    of_size(name, presets, count, alike);
    if (alike[0]) {
        return error_hint(error, "did you mean %s?", alike);
    }
    plain_name(name, strlen(name), plain);
    of_family(plain, presets, count, alike);
    if (alike[0]) {
        return error_hint(error, "did you mean %s?", alike);
    }
    const char *nearest = nearest_model(plain, names, named);
    if (nearest) {
        return error_hint(error, "did you mean %s?", nearest);
    }
    return strchr(name, '/') ? error_hint(error, "its config.json, downloaded, is as good as a preset: --model "
                                                 "path/to/config.json")
                             : status;
}
