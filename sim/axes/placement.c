// Where the members of a group land when ranks fill nodes in order (sim/SOURCES.md C2: n ranks, p on each of N nodes,
// q sibling groups in the same node; uneven groups use the largest p). When every boundary divides or is divided by the
// node size, one node is a sub-block of the mesh and the answer is a product. Otherwise (tp=3 on 8 per node) the answer
// is still periodic in the offset of a block within its node, so the work depends on the node size G, not on the world:
// N by sums over the offsets that a group's blocks run through, p and q by looking at one node of each kind
// (look_at_nodes). Held against counting every node in tests/property/sim/axes.

#include "sim/axes/mesh.h"
#include "sim/base/integer.h"

enum { MAX_RANKS_PER_NODE = 1024, SLOTS = 2 * MAX_RANKS_PER_NODE };  // as the profile's field table

// Neighbouring axes that are all in the mask, or all not, are one level. Fast to slow, none of size 1.
typedef struct Level {
    int64_t size, stride;
    bool inside;  // the mask
} Level;

typedef struct Levels {
    Level of[3 * AXIS_COUNT];  // an axis of which a borrowed one takes part is two, or three
    int count;
    int world, node_size;
} Levels;

static void add_level(Levels *levels, int size, bool inside, int64_t *stride) {
    if (size > 1 && levels->count > 0 && levels->of[levels->count - 1].inside == inside) {
        levels->of[levels->count - 1].size *= size;
    } else if (size > 1) {
        levels->of[levels->count++] = (Level){size, *stride, inside};
    }
    *stride *= size;
}

// Only axes with ranks of their own have levels.
static void find_levels(const Mesh *mesh, AxisMask mask, int ranks_per_node, Levels *levels) {
    int64_t stride = 1;
    levels->count = 0;
    for (int place = AXIS_COUNT - 1; place >= 0; place--) {
        const Axis axis = mesh_axis_at(mesh, place);
        const int extent = mesh_extent(mesh, axis);
        if (extent > 1) {
            const int inside = mesh_group_extent(mesh, mask, axis), step = mesh_group_step(mesh, mask, axis);
            add_level(levels, step, false, &stride);
            add_level(levels, inside, true, &stride);
            add_level(levels, extent / step / inside, false, &stride);
        }
    }
    levels->world = (int)stride;
    levels->node_size = ranks_per_node < levels->world ? ranks_per_node : levels->world;
}

static int group_size(const Levels *levels) {
    int size = 1;
    for (int i = 0; i < levels->count; i++) {
        size *= levels->of[i].inside ? (int)levels->of[i].size : 1;
    }
    return size;
}

static bool divides_either_way(int64_t a, int64_t b) {
    return a % b == 0 || b % a == 0;
}

static bool is_nested(const Levels *levels) {
    for (int i = 0; i < levels->count; i++) {
        if (!divides_either_way(levels->of[i].stride * levels->of[i].size, levels->node_size)) {
            return false;
        }
    }
    return true;
}

static void place_nested(const Levels *levels, GroupPlacement *placement) {
    int64_t left = levels->node_size;  // over the stride of the level: how many steps along it stay in the node
    for (int i = 0; i < levels->count; i++) {
        const int64_t here = levels->of[i].size < left ? levels->of[i].size : left;
        int *product = levels->of[i].inside ? &placement->per_node : &placement->siblings;
        *product *= (int)here;
        left /= here;
    }
    placement->nodes = placement->size / placement->per_node;
}

// sums[o] = values[o] + values[o + step] + ... (count of them, indices modulo n): each cycle of offsets is walked once.
static void sum_along(const int64_t *values, int n, int64_t count, int64_t step, int64_t *sums) {
    const int cycles = (int)gcd(n, step), length = n / cycles;
    const int64_t whole = count / length;
    const int hop = (int)(step % n);
    const int rest = (int)(count % length);
    const int reach = (int)((int64_t)hop * rest % n);
    for (int cycle = 0; cycle < cycles; cycle++) {
        int64_t total = 0, window = 0;
        for (int i = 0, at = cycle; i < length; i++, at = (at + hop) % n) {
            window += i < rest ? values[at] : 0;
            total += values[at];
        }
        for (int i = 0, at = cycle; i < length; i++, at = (at + hop) % n) {
            sums[at] = whole * total + window;
            window += values[(at + reach) % n] - values[at];
        }
    }
}

// Nodes that a group touches, at its worst. touched[o]: nodes of a block of members that begins at offset o of a node;
// the next level repeats the block and counts once the nodes in which one block ends and the next begins.
static int most_nodes(const Levels *levels) {
    const int n = levels->node_size;
    int64_t touched[MAX_RANKS_PER_NODE], begins[MAX_RANKS_PER_NODE], shared[MAX_RANKS_PER_NODE];
    int64_t sums[MAX_RANKS_PER_NODE], joints[MAX_RANKS_PER_NODE];
    for (int o = 0; o < n; o++) {
        touched[o] = 1;
        begins[o] = o == 0;
    }
    int64_t extent = 0;  // from the first member of a block to its last
    for (int i = 0; i < levels->count; i++) {
        const Level *level = &levels->of[i];
        if (!level->inside) {  // groups begin at each step of it: backwards, because sums look ahead
            sum_along(begins, n, level->size, n - level->stride % n, sums);
            for (int o = 0; o < n; o++) {
                begins[o] = sums[o] > 0;
            }
            continue;
        }
        for (int o = 0; o < n; o++) {
            shared[o] = (o + extent) / n == (o + level->stride) / n;
        }
        sum_along(touched, n, level->size, level->stride, sums);
        sum_along(shared, n, level->size - 1, level->stride, joints);
        for (int o = 0; o < n; o++) {
            touched[o] = sums[o] - joints[o];
        }
        extent += (level->size - 1) * level->stride;
    }
    int64_t most = 1;
    for (int o = 0; o < n; o++) {
        most = begins[o] && touched[o] > most ? touched[o] : most;
    }
    return (int)most;
}

// First member of the group of a rank: the group's name.
static int64_t group_leader(const Levels *levels, int64_t rank) {
    int64_t leader = rank;
    for (int i = 0; i < levels->count; i++) {
        const Level *level = &levels->of[i];
        leader -= level->inside ? rank / level->stride % level->size * level->stride : 0;
    }
    return leader;
}

// Counts one node's groups: how many there are and how many members the largest has.
static void look_at_node(const Levels *levels, int64_t node, GroupPlacement *placement) {
    int64_t leader_at[SLOTS];  // a small hash table; -1 = free
    int members_at[SLOTS];
    int slots = 2;
    while (slots < 2 * levels->node_size) {
        slots *= 2;
    }
    for (int slot = 0; slot < slots; slot++) {
        leader_at[slot] = -1;
        members_at[slot] = 0;
    }
    const int64_t first = node * levels->node_size;
    const int64_t end = first + levels->node_size < levels->world ? first + levels->node_size : levels->world;
    int groups = 0;
    for (int64_t rank = first; rank < end; rank++) {
        const int64_t leader = group_leader(levels, rank);
        int slot = (int)(leader % slots);
        while (leader_at[slot] >= 0 && leader_at[slot] != leader) {
            slot = (slot + 1) % slots;
        }
        groups += leader_at[slot] < 0;
        leader_at[slot] = leader;
        members_at[slot]++;
        placement->per_node = members_at[slot] > placement->per_node ? members_at[slot] : placement->per_node;
    }
    placement->siblings = groups > placement->siblings ? groups : placement->siblings;
}

// One node of each kind. A stride is large from the node size on, so a node holds at most one multiple of the smallest
// large stride B inside. Without one, what it looks like depends on its first rank modulo the largest small stride: the
// first nodes of each block of B have all of those remainders, and so do as many blocks as B takes to come back to the
// same offset. With a multiple of a large stride, it depends on where that lies in the node and on whether the level of
// that stride wraps there, which twice as many multiples show. The last node may be short.
static void look_at_nodes(const Levels *levels, GroupPlacement *placement) {
    const int64_t n = levels->node_size, nodes = (levels->world + n - 1) / n;
    int large = 0;
    while (large < levels->count && levels->of[large].stride < n) {
        large++;
    }
    const int64_t block = large < levels->count ? levels->of[large].stride : levels->world;
    const int64_t small = large > 0 ? levels->of[large - 1].stride : 1;
    const int64_t blocks = int_min(levels->world / block, n / gcd(block, n));
    for (int64_t m = 0; m < blocks; m++) {
        const int64_t first = (m * block + n - 1) / n;
        const int64_t end = int_min(nodes, first + int_min(small / gcd(small, n), block / n + 1));
        for (int64_t node = first; node < end; node++) {
            look_at_node(levels, node, placement);
        }
    }
    for (int i = large; i < levels->count; i++) {
        const int64_t stride = levels->of[i].stride;
        const int64_t multiples = int_min(levels->world / stride - 1, 2 * n / gcd(stride, n));
        for (int64_t m = 1; m <= multiples; m++) {
            look_at_node(levels, m * stride / n, placement);
        }
    }
    look_at_node(levels, nodes - 1, placement);
}

// Last member minus first, plus one: every level of the mask at its far end.
static int group_span(const Levels *levels) {
    int64_t span = 1;
    for (int i = 0; i < levels->count; i++) {
        span += levels->of[i].inside ? (levels->of[i].size - 1) * levels->of[i].stride : 0;
    }
    return (int)span;
}

GroupPlacement mesh_group_placement(const Mesh *mesh, AxisMask mask, int ranks_per_node) {
    ASSERT(ranks_per_node <= MAX_RANKS_PER_NODE);
    Levels levels;
    find_levels(mesh, mask, ranks_per_node, &levels);
    GroupPlacement placement = {.size = group_size(&levels), .per_node = 1, .siblings = 1};
    if (is_nested(&levels)) {
        place_nested(&levels, &placement);
    } else {
        placement.nodes = most_nodes(&levels);
        look_at_nodes(&levels, &placement);
    }
    placement.span = group_span(&levels);
    return placement;
}
