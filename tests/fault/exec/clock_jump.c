// Preloaded: a tenth of a second after the process starts, its wall clock jumps by NDTUNE_CLOCK_JUMP_S seconds. The
// other clocks are not affected.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

typedef int (*GetTime)(clockid_t, struct timespec *);

static int real_time(clockid_t clock, struct timespec *now) {
    GetTime get;
    *(void **)&get = dlsym(RTLD_NEXT, "clock_gettime");
    return get(clock, now);
}

static double since_start(void) {
    static double began;
    struct timespec now;
    real_time(CLOCK_MONOTONIC, &now);
    const double now_s = (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
    began = began > 0 ? began : now_s;
    return now_s - began;
}

__attribute__((constructor)) static void begin(void) {
    since_start();
}

static int jumped(clockid_t clock, struct timespec *now) {
    const int result = real_time(clock, now);
    const char *jump_s = getenv("NDTUNE_CLOCK_JUMP_S");
    if (clock == CLOCK_REALTIME && jump_s && since_start() > 0.1) {
        now->tv_sec += atol(jump_s);
    }
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    return jumped(clock, now);
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    struct timespec time;
    jumped(CLOCK_REALTIME, &time);
    *now = (struct timeval){.tv_sec = time.tv_sec, .tv_usec = time.tv_nsec / 1000};
    return 0;
}

time_t time(time_t *now) {
    struct timespec time;
    jumped(CLOCK_REALTIME, &time);
    if (now) {
        *now = time.tv_sec;
    }
    return time.tv_sec;
}
