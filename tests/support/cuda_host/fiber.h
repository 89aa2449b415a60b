// Fibers: a function on its own stack that yields explicitly. Hand-written on x86-64, ucontext elsewhere.

#pragma once

#include <stddef.h>
#include <stdint.h>

#if !defined(__x86_64__)
#include <ucontext.h>
#endif

struct FiberPlace {  // where a stack was left
#if defined(__x86_64__)
    void *stack_pointer;
#else
    ucontext_t context;
#endif
    void *fake_stack;  // of the address sanitizer
    const void *bottom;
    size_t bytes;
};

typedef void FiberBody(void *context);

struct Fiber {
    FiberPlace place;
    char *stack;
    FiberBody *body;
    void *context;
    FiberPlace *home;  // where it was last resumed from
    bool finished;
};

enum { FIBER_STACK_BYTES = 256 * 1024 };

void fiber_begin(Fiber *fiber, char *stack, FiberBody *body, void *context);
// Runs the fiber until it leaves or its body returns. Not from another fiber.
void fiber_resume(Fiber *fiber);
void fiber_leave(Fiber *fiber);
// Leaves for another fiber that has left, and returns to the same home: one switch in place of two.
void fiber_pass(Fiber *fiber, Fiber *to);
#if defined(__SANITIZE_ADDRESS__)
static const bool FIBERS_PASS = false;  // the sanitizer would take the stack that was left for home's
#else
static const bool FIBERS_PASS = true;
#endif
