// The switch saves what the System V ABI lets a callee keep (rbx, rbp, r12 to r15) and the stack pointer. The address
// sanitizer is told of every change of stack.

#include "tests/support/cuda_host/fiber.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>
#endif

static void leaving(FiberPlace *from, const FiberPlace *to, bool for_good) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_start_switch_fiber(for_good ? nullptr : &from->fake_stack, to->bottom, to->bytes);
#else
    (void)from, (void)to, (void)for_good;
#endif
}

static void arrived(FiberPlace *here, FiberPlace *previous) {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(here->fake_stack, &previous->bottom, &previous->bytes);
#else
    (void)here, (void)previous;
#endif
}

static __thread Fiber *starting;  // the first switch to a fiber cannot carry an argument

static void fiber_main() {
    Fiber *fiber = starting;
    arrived(&fiber->place, fiber->home);
    fiber->body(fiber->context);
    fiber->finished = true;
    leaving(&fiber->place, fiber->home, true);
#if defined(__x86_64__)
    extern void fiber_switch(void **, void *) __asm__("cuda_host_fiber_switch");
    fiber_switch(&fiber->place.stack_pointer, fiber->home->stack_pointer);
#else
    swapcontext(&fiber->place.context, &fiber->home->context);
#endif
    __builtin_trap();  // nobody resumes a finished fiber
}

#if defined(__x86_64__)
__asm__(".text\n.globl cuda_host_fiber_switch\n.type cuda_host_fiber_switch, @function\ncuda_host_fiber_switch:\n"
        "pushq %rbp\npushq %rbx\npushq %r12\npushq %r13\npushq %r14\npushq %r15\n"
        "movq %rsp, (%rdi)\nmovq %rsi, %rsp\n"
        "popq %r15\npopq %r14\npopq %r13\npopq %r12\npopq %rbx\npopq %rbp\nret\n"
        ".size cuda_host_fiber_switch, .-cuda_host_fiber_switch\n");
void fiber_switch(void **, void *) __asm__("cuda_host_fiber_switch");

static void place_begin(Fiber *fiber) {
    void **top = (void **)(void *)(fiber->stack + FIBER_STACK_BYTES);
    top[-1] = nullptr;  // so that fiber_main begins with the alignment of a called function
    top[-2] = (void *)fiber_main;
    for (int saved = 3; saved <= 8; saved++) {
        top[-saved] = nullptr;
    }
    fiber->place.stack_pointer = top - 8;
}

static void place_change(FiberPlace *from, FiberPlace *to) {
    fiber_switch(&from->stack_pointer, to->stack_pointer);
}
#else
static void place_begin(Fiber *fiber) {
    getcontext(&fiber->place.context);
    fiber->place.context.uc_stack.ss_sp = fiber->stack;
    fiber->place.context.uc_stack.ss_size = FIBER_STACK_BYTES;
    fiber->place.context.uc_link = nullptr;
    makecontext(&fiber->place.context, fiber_main, 0);
}

static void place_change(FiberPlace *from, FiberPlace *to) {
    swapcontext(&from->context, &to->context);
}
#endif

void fiber_begin(Fiber *fiber, char *stack, FiberBody *body, void *context) {
    *fiber = Fiber{};
    fiber->stack = stack;
    fiber->body = body;
    fiber->context = context;
    fiber->place.bottom = stack;
    fiber->place.bytes = FIBER_STACK_BYTES;
    place_begin(fiber);
}

void fiber_resume(Fiber *fiber) {
    FiberPlace home = {};
    fiber->home = &home;
    starting = fiber;
    leaving(&home, &fiber->place, false);
    place_change(&home, &fiber->place);
    FiberPlace ignored = {};
    arrived(&home, &ignored);
}

void fiber_pass(Fiber *fiber, Fiber *to) {
    to->home = fiber->home;
    place_change(&fiber->place, &to->place);
}

void fiber_leave(Fiber *fiber) {
    leaving(&fiber->place, fiber->home, false);
    place_change(&fiber->place, fiber->home);
    arrived(&fiber->place, fiber->home);
}
