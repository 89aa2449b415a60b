// ndtune: which mesh shape to train with, predicted and proven. This comment is the map of the program.
//
//   autotune/cli/      main.c (here)    option_table.c every option once    options.c reads argv
//                      cli.c the commands    cmd_*.c one command each    request.c options -> Asked
//                      complain.c errors for people    manual.c pages from the option table
//   autotune/request   asked.h what a user says    request.c looks it up, every default said
//   autotune/search    space.c every choice of every shape    prune.c why not    search*.c screen, simulate, rank
//   autotune/predict   predict.c one plan    interval.c low and high    autotune/parallel.c threads
//   autotune/explain   explain.c what would change the answer    autotune/store what is remembered
//   autotune/measure   plans run for real: chosen by validate/ and tune/, fitted by calibrate/    probe/ a new profile
//   autotune/import    config files of frameworks    check/ what is wrong with one    accuracy/ blame/ other questions
//   reports/           plan.c and others: table, JSON, CSV of each answer    html/ the page, filled by autotune/page
//                      export/ of config files
//   sim/model cluster axes plan    what is trained, on what, in which shape, with which choices
//   sim/frameworks     who can run which plan, and the config files of each
//   sim/step           the StepProgram: one training step as data, lowered in passes from (model, plan, target)
//   sim/memory cost analytic engine    its readers: what is alive, what a task takes, the estimate, the simulation
//   exec/launch        starts ndtune-worker, which runs the same StepProgram for real (exec/, kernels/)
//
// Reading order for `ndtune --world 32 --model 7b`: cli_run, cmd_plan, request_resolve (no plan yet, what was asked:
// TuneRequest), search_run_keeping, space_enumerate_near (plans begin here), predict_plan, step_lower_stages,
// engine_run_stages, answer_plan, store_save_result; with --html FILE report_page_option, html_report.

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "autotune/cli/cli.h"

static volatile sig_atomic_t interrupted;  // by this signal

// The first asks for an orderly end, which keeps what was measured; the next one ends the program at once. So does any
// before the work begins: reading files does not check for signals.
static void on_interrupt(int signal_number) {
    if (interrupted) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    interrupted = signal_number;
}

// What the caller has it ignore (nohup, a job in the background of a script) stays ignored.
static void catch_interrupt(int signal_number) {
    struct sigaction action;
    if (sigaction(signal_number, NULL, &action) == 0 && action.sa_handler != SIG_IGN) {
        action = (struct sigaction){.sa_handler = on_interrupt};
        sigemptyset(&action.sa_mask);
        sigaction(signal_number, &action, NULL);
    }
}

static void catch_interrupts(void) {
    catch_interrupt(SIGINT);
    catch_interrupt(SIGTERM);  // of a batch system whose time is up
    catch_interrupt(SIGHUP);
}

// Scratch arenas come and go by the thousand: keep their pages instead of handing them back to the kernel each time.
static void keep_memory(void) {
    mallopt(M_MMAP_THRESHOLD, 256 << 20);
    mallopt(M_TRIM_THRESHOLD, 1 << 30);
}

int main(int argc, char **argv) {
    keep_memory();
    signal(SIGXFSZ, SIG_IGN);  // a file over its limit is an error to report, like a full disk
    Cli cli = {.argc = argc,
               .argv = argv,
               .interrupted = &interrupted,
               .listen = catch_interrupts,
               .interactive = isatty(STDERR_FILENO) == 1};
    Error error = {0};
    Status status = cli_run(&cli, &error);
    cli_progress_clear(&cli);
    if (status == STATUS_OK && (fflush(stdout) != 0 || ferror(stdout))) {
        status = error_set(&error, STATUS_ENVIRONMENT, "standard output could not be written");
        cli.blame = -1;
    }
    if (status != STATUS_OK) {
        cli_complain(&cli, &error);
    }
    if (interrupted) {  // end as the signal would have, so that the caller sees it
        fflush(stdout);
        const int by = interrupted;
        signal(by, SIG_DFL);
        raise(by);
    }
    arena_free(&cli.arena);
    return status_exit_code(status);
}
