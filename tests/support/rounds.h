// Rounds of a property test that searches: under the address sanitizer, where each costs three to five times as much
// and the laws are those that the release has shown, half of them.

#pragma once

#if defined(__SANITIZE_ADDRESS__)
#define SEARCH_ROUNDS(usual) ((usual) / 2)
#else
#define SEARCH_ROUNDS(usual) (usual)
#endif
