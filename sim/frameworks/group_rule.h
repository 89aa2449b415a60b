// How many micro-steps go through a chunk of layers before the next one (pp_groups.h). EQUAL: groups of one size, at
// least as many as stages (torch's pipelining). OF_STAGES: as many as stages, which must divide. ANY: any that fills
// the stages, as what is left over does too, if anything is.

#pragma once

typedef enum { GROUPS_EQUAL, GROUPS_OF_STAGES, GROUPS_ANY } GroupRule;
