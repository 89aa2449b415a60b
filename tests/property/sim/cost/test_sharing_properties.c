// The properties that make link sharing max-min, for any demands: random cases from a printed seed.

#include <criterion/criterion.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/cost/interference.h"

enum { SEED = 20261121, CASES = 100000, LINKS = RESOURCE_HBM };  // links come first

static const double slack = 1e-6;

typedef struct Sharing {
    ShareDemand demands[SHARE_MAX_ACTIVE];
    double rates[SHARE_MAX_ACTIVE];
    int count;
    double carried[LINKS], largest[LINKS];
} Sharing;

static uint64_t draw(uint64_t *state) {  // xorshift64*
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return *state * 2685821657736338717ull;
}

// Nothing, all of the link, or any part of it.
static float draw_use(uint64_t *state) {
    const uint64_t kind = draw(state) >> 62;
    return kind == 0 ? 0 : kind == 1 ? 1 : (float)(draw(state) >> 40) / 16777216.0f;
}

static Sharing draw_sharing(uint64_t *state) {
    const Interference none = {1, 1, 1};
    const ShareDemand *list[SHARE_MAX_ACTIVE];
    Sharing sharing = {.count = 2 + (int)(draw(state) % (SHARE_MAX_ACTIVE - 1))};
    for (int i = 0; i < sharing.count; i++) {
        sharing.demands[i] = (ShareDemand){.collective = true};
        for (int link = 0; link < LINKS; link++) {
            sharing.demands[i].use[link] = draw_use(state);
        }
        list[i] = &sharing.demands[i];
    }
    share_rates(list, sharing.count, &none, sharing.rates);
    for (int i = 0; i < sharing.count; i++) {
        for (int link = 0; link < LINKS; link++) {
            const double share = sharing.rates[i] * (double)sharing.demands[i].use[link];
            sharing.carried[link] += share;
            sharing.largest[link] = fmax(sharing.largest[link], share);
        }
    }
    return sharing;
}

Test(property_sharing, no_link_carries_more_than_it_can) {
    uint64_t state = SEED;
    fprintf(stderr, "seed %d\n", SEED);
    for (int i = 0; i < CASES; i++) {
        const Sharing sharing = draw_sharing(&state);
        for (int link = 0; link < LINKS; link++) {
            cr_assert_leq(sharing.carried[link], 1 + slack, "case %d, link %d: %.9g", i, link, sharing.carried[link]);
        }
    }
}

static bool has_bottleneck(const Sharing *sharing, int index) {
    bool found = false;
    for (int link = 0; link < LINKS; link++) {
        const double use = (double)sharing->demands[index].use[link];
        found |= use > 0 && sharing->carried[link] >= 1 - slack &&
                 sharing->rates[index] * use >= sharing->largest[link] - slack;
    }
    return found;
}

// Bertsekas and Gallager, Data Networks, 6.5.2: an allocation is max-min fair if and only if everybody has a
// bottleneck.
Test(property_sharing, who_is_slowed_has_the_largest_share_of_a_full_link) {
    uint64_t state = SEED;
    fprintf(stderr, "seed %d\n", SEED);
    int slowed = 0;
    for (int i = 0; i < CASES; i++) {
        const Sharing sharing = draw_sharing(&state);
        for (int k = 0; k < sharing.count; k++) {
            cr_assert(sharing.rates[k] > 0 && sharing.rates[k] <= 1, "case %d, rate %d: %.9g", i, k, sharing.rates[k]);
            if (sharing.rates[k] < 1) {
                slowed++;
                cr_assert(has_bottleneck(&sharing, k), "case %d: nothing holds collective %d at %.9g", i, k,
                          sharing.rates[k]);
            }
        }
    }
    cr_assert_gt(slowed, CASES);
}
