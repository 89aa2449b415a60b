// GEMMs timed on the chip of a profile: "products": {"points": [["4096x6144x4096 nt bf16>bf16 set",
// seconds], ...], "source", "grade"}. The words are m x n x k, n or t for each operand's layout (t: transposed), the
// input and output dtypes, and whether it overwrites or accumulates. They are kept sorted, so that a look-up is
// a binary search; of two times for one product the later one counts.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cluster/cluster_fields.h"

enum { MAX_PRODUCTS = 65536 };
static const double seconds_high = 1e3;

static int order_of(int64_t a, int64_t b) {
    return (a > b) - (a < b);
}

static int by_product(const TimedGemm *a, const TimedGemm *b) {
    const int64_t left[] = {a->m, a->n, a->k, a->input, a->output, a->trans_a, a->trans_b, a->accumulate};
    const int64_t right[] = {b->m, b->n, b->k, b->input, b->output, b->trans_a, b->trans_b, b->accumulate};
    int order = 0;
    for (size_t i = 0; i < sizeof left / sizeof *left && order == 0; i++) {
        order = order_of(left[i], right[i]);
    }
    return order;
}

const TimedGemm *cluster_product_find(const Accelerator *accelerator, const TimedGemm *wanted) {
    int low = 0, high = accelerator->product_count;
    while (low < high) {
        const int middle = low + (high - low) / 2;
        const int order = by_product(wanted, &accelerator->products[middle]);
        if (order == 0) {
            return &accelerator->products[middle];
        }
        low = order > 0 ? middle + 1 : low;
        high = order < 0 ? middle : high;
    }
    return NULL;
}

// ---------------------------------------------------------------------------------------------- words

const char *cluster_product_text(const TimedGemm *product, Arena *arena) {
    return arena_format(arena, "%" PRId64 "x%" PRId64 "x%" PRId64 " %c%c %s>%s %s", product->m, product->n, product->k,
                        product->trans_a ? 't' : 'n', product->trans_b ? 't' : 'n', dtype_name(product->input),
                        dtype_name(product->output), product->accumulate ? "add" : "set");
}

bool cluster_product_parse(const char *text, TimedGemm *product, const char **rest) {
    char a = 0, b = 0, input[12], output[12], sum[4];
    int used = 0;
    *product = (TimedGemm){0};
    if (sscanf(text, "%9" SCNd64 "x%9" SCNd64 "x%9" SCNd64 " %c%c %9[a-z0-9_]>%9[a-z0-9_] %3[a-z]%n", &product->m,
               &product->n, &product->k, &a, &b, input, output, sum, &used) != 8 ||
        !dtype_parse(input, &product->input) || !dtype_parse(output, &product->output) || product->m < 1 ||
        product->n < 1 || product->k < 1) {
        return false;
    }
    product->trans_a = a == 't';
    product->trans_b = b == 't';
    product->accumulate = strcmp(sum, "add") == 0;
    Arena arena = {0};
    const char *again = cluster_product_text(product, &arena);  // nothing else is a product
    const bool same = strncmp(again, text, (size_t)used) == 0 && strlen(again) == (size_t)used;
    arena_free(&arena);
    *rest = text + used;
    return same;
}

// ---------------------------------------------------------------------------------------------- files

static Status read_point(const JsonReader *at, size_t index, TimedGemm *product, Error *error) {
    const json_t *pair = json_array_get(json_object_get(at->object, "points"), index);
    const json_t *words = json_array_get(pair, 0), *seconds = json_array_get(pair, 1);
    const char *rest = "";
    JSON_FAIL_IF(json_array_size(pair) != 2 || !json_is_string(words) || !json_is_number(seconds) ||
                     !cluster_product_parse(json_string_value(words), product, &rest) || *rest != '\0',
                 at, "points", error,
                 "pair %zu must be [product, seconds], such as [\"4096x6144x4096 nt bf16>bf16 set\", 3e-4]", index + 1);
    product->seconds = json_number_value(seconds);
    JSON_FAIL_IF(!(product->seconds > 0) || product->seconds > seconds_high, at, "points", error,
                 "pair %zu: seconds must be above 0 and at most %g, got %g", index + 1, seconds_high, product->seconds);
    return STATUS_OK;
}

typedef struct Placed {
    TimedGemm product;
    int place;
} Placed;

static int compare_placed(const void *a, const void *b) {
    const Placed *left = a, *right = b;
    const int order = by_product(&left->product, &right->product);
    return order != 0 ? order : order_of(left->place, right->place);
}

// Into order, the last one of equals; how many are left.
static int settle(TimedGemm *products, int count, Arena *arena) {
    Placed *placed = ARENA_ARRAY(arena, Placed, count);
    for (int i = 0; i < count; i++) {
        placed[i] = (Placed){products[i], i};
    }
    qsort(placed, (size_t)count, sizeof *placed, compare_placed);
    int kept = 0;
    for (int i = 0; i < count; i++) {
        kept -= kept > 0 && by_product(&products[kept - 1], &placed[i].product) == 0;
        products[kept++] = placed[i].product;
    }
    return kept;
}

Status cluster_products_read(const JsonReader *root, Arena *arena, ClusterProfile *profile, Error *error) {
    json_t *section = json_object_get(root->object, "products");
    if (!section) {
        return STATUS_OK;
    }
    const JsonReader at = {.origin = root->origin, .path = "products", .object = section};
    const size_t count = json_array_size(json_object_get(section, "points"));
    JSON_FAIL_IF(profile->accelerator.device_class == DEVICE_CLASS_CPU, root, "products", error,
                 "times of products are read for accelerator.class \"gpu\" only");
    JSON_FAIL_IF(!json_is_object(section) || count < 1 || count > MAX_PRODUCTS, root, "products", error,
                 "must be an object with points (1 to %d pairs [product, seconds]), source and grade", MAX_PRODUCTS);
    TimedGemm *products = ARENA_ARRAY(arena, TimedGemm, count);
    for (size_t i = 0; i < count; i++) {
        TRY(read_point(&at, i, &products[i], error));
    }
    profile->accelerator.products = products;
    profile->accelerator.product_count = settle(products, (int)count, arena);
    return STATUS_OK;
}

json_t *cluster_products_points(const Accelerator *accelerator, Arena *arena) {
    json_t *points = json_array();
    for (int i = 0; i < accelerator->product_count; i++) {
        const TimedGemm *product = &accelerator->products[i];
        json_array_append_new(points, json_pack("[s, f]", cluster_product_text(product, arena), product->seconds));
    }
    return points;
}

// ---------------------------------------------------------------------------------------------- changes

void cluster_products_add(ClusterProfile *profile, const TimedGemm *products, int count, const char *source,
                          Arena *arena) {
    Accelerator *accelerator = &profile->accelerator;
    const int had = accelerator->product_count, numbers = profile->provenance_count - cluster_product_rows(profile);
    if (count == 0) {
        return;
    }
    TimedGemm *all = ARENA_ARRAY(arena, TimedGemm, had + count);
    for (int i = 0; i < had + count; i++) {
        all[i] = i < had ? accelerator->products[i] : products[i - had];
    }
    Provenance *rows = ARENA_ARRAY(arena, Provenance, numbers + 1);
    for (int i = 0; i < numbers; i++) {
        rows[i] = profile->provenance[i];
    }
    accelerator->products = all;
    accelerator->product_count = settle(all, had + count, arena);
    rows[numbers] = (Provenance){
        .path = CLUSTER_PRODUCTS_PATH,
        .value = accelerator->product_count,
        .source =
            had > 0 ? arena_format(arena, "%s; the others: %s", source, profile->provenance[numbers].source) : source,
        .grade = GRADE_MEASURED};
    profile->provenance = rows;
    profile->provenance_count = numbers + 1;
}

void cluster_products_drop(ClusterProfile *profile) {
    profile->provenance_count -= cluster_product_rows(profile);  // the last row
    profile->accelerator.products = NULL;
    profile->accelerator.product_count = 0;
}
