// One line on standard error, redrawn in place at most ten times a second, and only on a terminal.

#include <stdarg.h>
#include <stdio.h>

#include "autotune/cli/cli.h"
#include "sim/base/clock.h"

void cli_draw(Cli *cli, const char *format, ...) {
    if (cli->interactive) {
        va_list values;
        va_start(values, format);
        fputs("\r\033[K", stderr);
        vfprintf(stderr, format, values);
        fflush(stderr);
        va_end(values);
        cli->drawn = true;
    }
}

static bool update(void *context, const char *label, int64_t done, int64_t total) {
    Cli *cli = context;
    const double time_s = clock_s();
    if (cli->interactive && time_s - cli->drawn_s >= 0.1) {
        cli_draw(cli, "%s %lld/%lld", label, (long long)done, (long long)total);
        cli->drawn_s = time_s;
    }
    return !*cli->interrupted;
}

Progress cli_progress(Cli *cli) {
    cli->listen();
    cli->drawn_s = clock_s();  // short work draws nothing
    return (Progress){.update = update, .context = cli};
}

void cli_progress_clear(Cli *cli) {
    if (cli->drawn) {
        fputs("\r\033[K", stderr);
        cli->drawn = false;
    }
}
