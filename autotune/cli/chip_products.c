// A price is for one shape, one chip and one version of the library, by which its algorithm is known; the newest
// version counts here. Prices of products that were to leave multiprocessors to a collective are not taken: the engine
// counts that itself. The bias is nothing beside a product: a price with one serves where there is none without.

#include "autotune/cli/chip_products.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "autotune/probe/chip_name.h"
#include "autotune/store/store.h"

static bool store_exists(const Cli *cli) {
    const OptionValue *db = cli_value(cli, OPTION_DB);
    char path[STORE_PATH_BYTES];
    return db->given ? access(db->text, F_OK) == 0
                     : store_default_path(path, NULL) == STATUS_OK && access(path, F_OK) == 0;
}

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

static void add(const ChipPrice *prices, int price_count, ClusterProfile *cluster, Arena *arena, int *count) {
    TimedGemm *products = ARENA_ARRAY(arena, TimedGemm, price_count);
    for (int bias = 1; bias >= 0; bias--) {  // the later one counts
        for (int i = 0; i < price_count; i++) {
            if (strcmp(chip_name(prices[i].chip, arena), cluster->accelerator.name) == 0) {
                *count += read_price(&prices[i], bias == 1, &products[*count]);
            }
        }
    }
    cluster_products_add(
        cluster, products, *count,
        arena_format(arena, "%d times of runs on %s, from the store", *count, cluster->accelerator.name), arena);
}

Status chip_products_add(Cli *cli, ClusterProfile *cluster, int *count, Error *error) {
    *count = 0;
    if (cluster->accelerator.device_class != DEVICE_CLASS_GPU || !store_exists(cli)) {
        return STATUS_OK;
    }
    const ChipPrice *prices;
    int price_count;
    TRY(cli_open_store_to_ask(cli, error));
    TRY(store_prices(cli->store, &cli->arena, &prices, &price_count, error));
    if (price_count > 0) {
        add(prices, price_count, cluster, &cli->arena, count);
    }
    return STATUS_OK;
}
