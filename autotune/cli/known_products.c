// What the store knows about the chip that a profile names. A missing store is not created.

#include "autotune/cli/known_products.h"

#include <unistd.h>

#include "autotune/probe/chip_products.h"
#include "autotune/store/store.h"

static bool store_exists(const Cli *cli) {
    const OptionValue *db = cli_value(cli, OPTION_DB);
    char path[STORE_PATH_BYTES];
    return db->given ? access(db->text, F_OK) == 0
                     : store_default_path(path, NULL) == STATUS_OK && access(path, F_OK) == 0;
}

Status known_products_add(Cli *cli, ClusterProfile *cluster, int *count, Error *error) {
    *count = 0;
    if (cluster->accelerator.device_class != DEVICE_CLASS_GPU || !store_exists(cli)) {
        return STATUS_OK;
    }
    const ChipPrice *prices;
    int price_count;
    TRY(cli_open_store_to_ask(cli, error));
    TRY(store_prices(cli->store, &cli->arena, &prices, &price_count, error));
    if (price_count > 0) {
        *count = chip_products_add(prices, price_count, cluster, &cli->arena);
    }
    return STATUS_OK;
}
