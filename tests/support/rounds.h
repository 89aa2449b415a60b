// How much of what is drawn or enumerated runs under the address sanitizer, where each round costs three to six times
// as much: half. The laws over all of it are the release's to show.

#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define SEARCH_ROUNDS(usual) ((usual) / 2)
enum { PLAN_STRIDE = 2 };
#else
#define SEARCH_ROUNDS(usual) (usual)
enum { PLAN_STRIDE = 1 };
#endif
