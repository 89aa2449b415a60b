// A price is for one shape, one chip and one version of the library, by which its algorithm is known; the newest
// version counts here. Prices of products that were to leave multiprocessors to a collective are not taken: the engine
// counts that itself. The bias costs almost nothing: a price with bias is used where there is none without.

#include "autotune/probe/chip_products.h"

#include <stdio.h>
#include <string.h>

#include "autotune/probe/chip_name.h"

// "plain" or "bias", alignment and multiprocessors follow the product.
static bool read_price(const ChipPrice *price, bool bias, TimedGemm *product) {
    char with[8];
    const char *rest;
    int alignment, sms;
    if (!cluster_product_parse(price->what, product, &rest) ||
        sscanf(rest, " %7[a-z] align %d sms %d", with, &alignment, &sms) != 3 || sms != 0 ||
        (strcmp(with, "bias") == 0) != bias) {
        return false;
    }
    product->seconds = price->seconds;
    return true;
}

int chip_products_add(const ChipPrice *prices, int price_count, ClusterProfile *cluster, Arena *arena) {
    int count = 0;
    TimedGemm *products = ARENA_ARRAY(arena, TimedGemm, price_count);
    for (int bias = 1; bias >= 0; bias--) {  // the later one counts
        for (int i = 0; i < price_count; i++) {
            if (strcmp(chip_name(prices[i].chip, arena), cluster->accelerator.name) == 0) {
                count += read_price(&prices[i], bias == 1, &products[count]);
            }
        }
    }
    cluster_products_add(
        cluster, products, count,
        arena_format(arena, "%d times of runs on %s, from the store", count, cluster->accelerator.name), arena);
    return count;
}
