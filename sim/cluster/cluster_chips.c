// Common names of accelerators, and the usual node of each. To add one: a row.

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "sim/base/text.h"

enum { CHIP_BYTES = 64 };

// Without what says nothing: "NVIDIA A100-SXM4-40GB" is "a10040".
typedef struct Chip {
    const char *name, *profile;
} Chip;

static const Chip chips[] = {
    {"h100", "dgx-h100"},
    {"h10080", "dgx-h100"},
    {"h10096", "meta-h100-96g"},
    {"h100pcie", "pcie-h100-8x"},
    {"h100pcie80", "pcie-h100-8x"},
    {"h200", "dgx-h200"},
    {"h200141", "dgx-h200"},
    {"b200", "dgx-b200"},
    {"b200180", "dgx-b200"},
    {"b200192", "dgx-b200"},
    {"b300", "dgx-b300"},
    {"b300288", "dgx-b300"},
    {"gb200", "gb200-nvl72"},
    {"gb300", "gb300-nvl72"},
    {"gh200", "gh200"},
    {"gh20096", "gh200"},
    {"a100", "dgx-a100-80g"},
    {"a10080", "dgx-a100-80g"},
    {"a10040", "dgx-a100-40g"},
    {"a100pcie", "pcie-a100-8x"},
    {"a100pcie80", "pcie-a100-8x"},
    {"a800", "hgx-a800"},
    {"h800", "hgx-h800"},
    {"h20", "hgx-h20"},
    {"h2096", "hgx-h20"},
    {"v100", "dgx-1v"},
    {"v10032", "dgx-1v"},
    {"mi300x", "mi300x-8x"},
    {"mi300x192", "mi300x-8x"},
    {"mi325x", "mi325x-8x"},
    {"mi325x256", "mi325x-8x"},
    {"mi355x", "oci-bm-gpu-mi355x"},
    {"mi250x", "lumi-g"},
    {"4090", "pcie-4090-8x"},
    {"409024", "pcie-4090-8x"},
    {"5090", "pcie-5090-8x"},
    {"509032", "pcie-5090-8x"},
    {"l40s", "pcie-l40s-8x"},
    {"l40s48", "pcie-l40s-8x"},
    {"l4", "aws-g6"},
    {"a10g", "aws-g5"},
    {"pro6000", "pcie-rtxpro6000-8x"},
};

static const char *const noise[] = {"nvidia", "geforce", "tesla", "amd",   "instinct", "rtx",   "sxm",      "server",
                                    "8x",     "hbm3e",   "hbm3",  "hbm2e", "hbm2",     "nvl72", "blackwell"};

// Letters and digits in lower case, without filler words and without the unit after a memory size.
static void plain_chip(const char *name, char out[CHIP_BYTES]) {
    size_t used = 0;
    while (*name && used + 1 < CHIP_BYTES) {
        bool skipped = false;
        for (size_t i = 0; i < sizeof noise / sizeof noise[0] && !skipped; i++) {
            const size_t length = strlen(noise[i]);
            if (strncasecmp(name, noise[i], length) == 0) {
                const bool generation = strcmp(noise[i], "sxm") == 0 && isdigit((unsigned char)name[length]);
                name += length + generation;
                skipped = true;
            }
        }
        if (!skipped && used > 0 && isdigit((unsigned char)out[used - 1]) &&
            (strncasecmp(name, "gb", 2) == 0 || strncasecmp(name, "gib", 3) == 0)) {
            name += strncasecmp(name, "gb", 2) == 0 ? 2 : 3;
            skipped = true;
        }
        if (!skipped) {
            if (isalnum((unsigned char)*name)) {
                out[used++] = (char)tolower((unsigned char)*name);
            }
            name++;
        }
    }
    out[used] = '\0';
}

const char *cluster_usual_node(const char *chip) {
    char plain[CHIP_BYTES];
    plain_chip(chip, plain);
    const Chip *row = TEXT_FIND(chips, sizeof chips / sizeof chips[0], name, plain);
    return row ? row->profile : NULL;
}
