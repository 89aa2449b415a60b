// How many of the drawn or enumerated cases run under the address sanitizer, where each round costs three to six times
// as much: half; of recorded answers every third, of measured bounds one round. The release build checks the laws over
// all of them.

#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define SEARCH_ROUNDS(usual) ((usual) / 2)
#define MEASURED_ROUNDS(usual) 1
enum { PLAN_STRIDE = 2, GUARD_STRIDE = 3 };
#else
#define SEARCH_ROUNDS(usual) (usual)
#define MEASURED_ROUNDS(usual) (usual)
enum { PLAN_STRIDE = 1, GUARD_STRIDE = 1 };
#endif
