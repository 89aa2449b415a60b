// Layout strings as splits of plans, worked out by hand: chunk i is on stage i mod stages.

#include <criterion/criterion.h>

#include "sim/frameworks/pp_layout.h"

typedef struct Case {
    const char *text;
    int stages;
    LayerRule rule;
    PpSplit split;
    int first, last;
} Case;

Test(pp_layout, a_layout_is_the_split_that_holds_the_same_layers) {
    static const Case cases[] = {
        {"Et*4|t*4|t*4|t*4L", 4, LAYERS_EDGES_IF_UNEVEN, SPLIT_CHUNKS, 4, 4},
        {"Et*3|t*4|t*4|t*3L", 4, LAYERS_EDGES_IF_UNEVEN, SPLIT_CHUNKS, 3, 3},
        {"Et*3|t*4L", 2, LAYERS_EVEN, SPLIT_CHUNKS, 3, 4},
        {"Et|(t*2|)*6t*3L", 4, LAYERS_EDGES_IF_UNEVEN, SPLIT_CHUNKS, 1, 3},
        {"E|(tt|)*6L", 4, LAYERS_EDGES_IF_UNEVEN, SPLIT_CHUNKS, 0, 0},
        {"Et*3|t*4|t*4|t*2|t*3|t*4|t*4|t*2L", 4, LAYERS_EDGES_IF_UNEVEN, SPLIT_ENDS, 6, 4},
        {"Et*5|t*4|t*4|t*4L", 4, LAYERS_EDGES_IF_UNEVEN, SPLIT_TARGET, 0, 0},
        {"Et*5|t*4|t*4|t*4L", 4, LAYERS_EVEN, SPLIT_CHUNKS, 5, 4},
    };
    Arena arena = {0};
    PpLayout *layout = ARENA_NEW(&arena, PpLayout);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        PpLayoutSplit split;
        cr_assert(pp_layout_read(cases[i].text, layout), "%s: %s", cases[i].text, layout->wrong);
        cr_expect(pp_layout_split(layout, cases[i].stages, cases[i].rule, &split), "case %zu", i);
        cr_expect(split.split == cases[i].split && split.first == cases[i].first && split.last == cases[i].last,
                  "case %zu: %s %d %d", i, pp_split_names[split.split], split.first, split.last);
    }
    arena_free(&arena);
}

Test(pp_layout, chunks_between_that_differ_are_named_with_their_layers) {
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"Et|tt|ttt|t*10L", "has 2 layers in chunk 2 and 3 in chunk 3, and a plan holds as many in each of the 2 "
                            "between the first and the last: use as many in each"},
        {"Et*3|(tt|)*29m|L", "has 2 layers in chunk 2 and 0 in chunk 31, and a plan holds as many in each of the 30 "
                             "between the first and the last: use as many in each"},
        {"Et*3|t*4|t*4|t*2|t*2|t*4|t*4|t*2L", "has 4 layers in chunk 2 and 2 in chunk 4, and a plan holds as many in "
                                              "each of the 6 between the first and the last: use as many in each"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        Arena arena = {0};
        PpLayout *layout = ARENA_NEW(&arena, PpLayout);
        PpLayoutSplit split;
        cr_assert(pp_layout_read(cases[i].text, layout), "%s: %s", cases[i].text, layout->wrong);
        cr_expect(!pp_layout_split(layout, 4, LAYERS_EDGES_IF_UNEVEN, &split), "case %zu", i);
        cr_expect_str_eq(pp_layout_unheld(layout, &arena), cases[i].words);
        arena_free(&arena);
    }
}

Test(pp_layout, the_stages_that_divide_its_chunks_are_listed) {
    Arena arena = {0};
    PpLayout *layout = ARENA_NEW(&arena, PpLayout);
    cr_assert(pp_layout_read("E|(t|)*6L", layout));
    cr_expect_str_eq(pp_layout_stages(layout, &arena), "pp 2, 4 or 8");
    cr_assert(pp_layout_read("Et|t|tL", layout));
    cr_expect_str_eq(pp_layout_stages(layout, &arena), "pp 3");
    arena_free(&arena);
}
