// The axes of a mesh as a table: axis_list.h has a row for each, the file of that name its messages. Batch, local
// tokens and groups are computed from masks of axes by role; nothing else depends on the number of axes.

#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "sim/axes/axis_list.h"
#include "sim/base/arena.h"

#define AXIS_SYMBOL(symbol, name, role, lenders) AXIS_##symbol,
typedef enum { AXIS_LIST(AXIS_SYMBOL) AXIS_COUNT } Axis;

typedef enum {
    ROLE_REPLICATE,  // whole copies: multiplies the batch; gradients are summed over it
    ROLE_SHARD,      // ranks share parameters, gradients and optimizer: multiplies the batch
    ROLE_SEQUENCE,   // ranks cut each sequence: divides a rank's tokens; in the shard group
    ROLE_TENSOR,     // ranks cut each layer
    ROLE_STAGE,      // ranks hold different layers
    ROLE_EXPERT      // ranks hold different experts
} AxisRole;

typedef uint64_t AxisMask;  // bit 1 << axis
#define AXIS_BIT(axis) ((AxisMask)1 << (axis))
#define AXIS_ALL ((AxisMask)((1u << AXIS_COUNT) - 1))

// Constant masks of the axes of a role.
#define AXIS_IF(symbol, condition) | ((condition) ? AXIS_BIT(AXIS_##symbol) : 0u)
#define AXIS_IF_REPLICATE(symbol, name, role, lenders) AXIS_IF(symbol, ROLE_##role == ROLE_REPLICATE)
#define AXIS_IF_SHARD(symbol, name, role, lenders) AXIS_IF(symbol, ROLE_##role == ROLE_SHARD)
#define AXIS_IF_SEQUENCE(symbol, name, role, lenders) AXIS_IF(symbol, ROLE_##role == ROLE_SEQUENCE)
#define AXIS_IF_STAGE(symbol, name, role, lenders) AXIS_IF(symbol, ROLE_##role == ROLE_STAGE)
#define AXIS_IF_TENSOR(symbol, name, role, lenders) AXIS_IF(symbol, ROLE_##role == ROLE_TENSOR)
enum {  // lists in lists do not expand: the masks of lenders need numbers
    REPLICATE_BITS = 0u AXIS_LIST(AXIS_IF_REPLICATE),
    SHARD_BITS = 0u AXIS_LIST(AXIS_IF_SHARD),
    SEQUENCE_BITS = 0u AXIS_LIST(AXIS_IF_SEQUENCE),
    TENSOR_BITS = 0u AXIS_LIST(AXIS_IF_TENSOR),
    STAGE_BITS = 0u AXIS_LIST(AXIS_IF_STAGE)
};
#define AXES_REPLICATE ((AxisMask)REPLICATE_BITS)
#define AXES_SHARD ((AxisMask)SHARD_BITS)
#define AXES_SEQUENCE ((AxisMask)SEQUENCE_BITS)
#define AXES_TENSOR ((AxisMask)TENSOR_BITS)
#define AXES_STAGE ((AxisMask)STAGE_BITS)

// What follows from the roles.
#define AXES_BATCH (AXES_REPLICATE | AXES_SHARD)             // ranks with sequences of their own
#define AXES_SHARD_GROUP (AXES_SHARD | AXES_SEQUENCE)        // the FSDP group
#define AXES_DATA_GROUP (AXES_REPLICATE | AXES_SHARD_GROUP)  // ranks with tokens of their own
#define AXES_NORM_GROUP (AXES_SHARD_GROUP | AXES_TENSOR)     // ranks whose sharded gradients differ
#define AXES_STAGE_RANKS AXES_NORM_GROUP                     // of one replica of a stage: those that share its experts

// A borrowed axis divides the ranks of its lenders and adds none to the world.
#define AXES_NONE 0u
#define AXIS_IF_OWN(symbol, name, role, lenders) AXIS_IF(symbol, AXES_##lenders == 0u)
#define AXES_OWN ((AxisMask)(0u AXIS_LIST(AXIS_IF_OWN)))
#define AXES_BORROWED (AXIS_ALL & ~AXES_OWN)

// In a mask with lenders, without ep: excludes the ranks that ep takes of them, as the groups that share the experts
// of one of its ranks are.
#define AXES_LEFT_BY_EP ((AxisMask)1 << 31)

// In a mask of lenders: this many of their nearest ranks, as for a borrowed axis of that size.
enum { AXES_NEAREST_SHIFT = 12, AXES_NEAREST_MOST = (1 << 19) - 1 };
static inline AxisMask axes_nearest(AxisMask lenders, int ranks) {
    return lenders | (AxisMask)ranks << AXES_NEAREST_SHIFT;
}
static inline int axes_nearest_ranks(AxisMask mask) {  // 0 = all of them
    return (int)(mask >> AXES_NEAREST_SHIFT & AXES_NEAREST_MOST);
}
_Static_assert((int)AXIS_COUNT <= (int)AXES_NEAREST_SHIFT, "a mask has axes, ranks and AXES_LEFT_BY_EP");

// In a mask of lenders: the stride between these ranks, of neighbours the first one, its neighbour's counterpart, ...
enum { AXES_APART_SHIFT = 32 };
static inline AxisMask axes_apart(AxisMask lenders, int ranks) {
    return lenders | (AxisMask)ranks << AXES_APART_SHIFT;
}
static inline int axes_apart_ranks(AxisMask mask) {  // 0 = neighbours
    return (int)(mask >> AXES_APART_SHIFT);
}

// Texts and hashes include these even at size 1, and every search enumerates them: they were once the only axes, and
// what was stored then keeps its name.
#define AXES_FIRST (AXIS_BIT(AXIS_DP_REPLICATE) | AXIS_BIT(AXIS_DP_SHARD) | AXIS_BIT(AXIS_CP) | AXIS_BIT(AXIS_TP))

// Headers of tables, each column after a comma: ",dp_replicate,dp_shard,..." and ",exposed_dp_replicate_s,...".
// Names in a sentence: " dp_replicate dp_shard ...".
#define AXIS_COLUMN(symbol, name, role, lenders) "," #name
#define AXIS_EXPOSED_COLUMN(symbol, name, role, lenders) ",exposed_" #name "_s"
#define AXIS_SPACED(symbol, name, role, lenders) " " #name
#define AXES_COLUMNS AXIS_LIST(AXIS_COLUMN)
#define AXES_EXPOSED_COLUMNS AXIS_LIST(AXIS_EXPOSED_COLUMN)
#define AXES_SPACED AXIS_LIST(AXIS_SPACED)

// Other tools' names of an axis. as_option: the answer to "--word N"; NULL = that of an unknown option.
typedef struct AxisWord {
    const char *word, *meaning, *as_option;
} AxisWord;

enum { AXIS_MAX_WORDS = 8 };

typedef struct AxisRow {
    int number;                      // what stored hashes call it; never given to another axis
    const char *definition;          // "ranks that cut each layer between them (tensor parallelism)"
    const char *as_option;           // as of a word
    const char *run_column;          // of run tables, where its name is another column; NULL = its name
    AxisWord words[AXIS_MAX_WORDS];  // up to the first without a word
} AxisRow;

extern const AxisRow *const axis_rows[AXIS_COUNT];
extern const char *const axis_names[AXIS_COUNT];  // "dp_replicate" ...
extern const AxisMask axis_lenders[AXIS_COUNT];   // 0 = its own ranks

// Their names, such as "dp_shard x cp" with the separator " x ", which has at most three letters.
#define AXIS_NAME_BYTES(symbol, name, role, lenders) +sizeof #name "   "
enum { AXES_TEXT_BYTES = 1 AXIS_LIST(AXIS_NAME_BYTES) };
#define AXES_BUFFER ((char[AXES_TEXT_BYTES]){0})  // room for one text: lives as long as the block around it
char *axes_text(AxisMask axes, const char *separator, char out[AXES_TEXT_BYTES]);

const char *axis_run_column(Axis axis);
Axis axis_find(const char *word);              // AXIS_COUNT where there is none of that name
const char *axis_called(const char *word);     // what another tool's word is here; NULL = unknown
const char *axis_as_option(const char *word);  // the answer to "--word N", by name or another tool's word; NULL = none

// The slowest axis of a group, to which the exposed time of its collectives is charged (shard group -> dp_shard); a
// borrowed one, where its lenders are named along with it; AXIS_COUNT for the group of no axis.
static inline Axis axes_slowest(AxisMask axes) {
    int axis = 0;
    axes = axes & AXES_BORROWED ? axes & AXES_BORROWED : axes;
    while (axis < AXIS_COUNT && !(axes & AXIS_BIT(axis))) {
        axis++;
    }
    return (Axis)axis;
}
