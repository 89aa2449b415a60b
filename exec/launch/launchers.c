// The launchers and how one is chosen. mpirun options: Open MPI 4.1 manual, and sim/SOURCES.md X1 for more ranks than
// cores; srun: Slurm 22.05 manual; torchrun: PyTorch's torch.distributed.run.

#define _GNU_SOURCE  // environ in unistd.h

#include "exec/launch/launchers.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "exec/protocol/rendezvous_wire.h"
#include "sim/base/open.h"
#include "sim/base/text.h"

enum { WORDS_MOST = 128 };

typedef struct Words {
    Arena *arena;
    char **words;
    int count;
} Words;

static void add(Words *words, const char *word) {
    if (word) {
        ASSERT(words->count < WORDS_MOST - 1);
        words->words[words->count++] = arena_text(words->arena, word);
    }
}

static Words begin(Arena *arena, const char *program) {
    Words words = {.arena = arena, .words = ARENA_ARRAY(arena, char *, WORDS_MOST)};
    add(&words, program);
    return words;
}

static void add_number(Words *words, const char *option, int number) {
    add(words, option);
    add(words, arena_format(words->arena, "%d", number));
}

// Ranks read their numbers from these variables: global rank, and local rank on the machine.
static char **end(Words *words, const LaunchPlan *plan, const char *rank_variable, const char *local_variable) {
    add(words, plan->worker);
    add(words, "join");
    add(words, rank_variable);
    add(words, local_variable);
    return words->words;
}

static void add_setting(Words *words, const char *name, const char *value) {
    add(words, "--mca");
    add(words, name);
    add(words, value);
}

// The user's NCCL settings (interfaces, debugging) apply on every host.
static void add_nccl_settings(Words *words) {
    static const char *const prefixes[] = {"NCCL_", "NDTUNE_NCCL_", "LD_LIBRARY_PATH="};
    for (char **at = environ; *at; at++) {
        for (size_t i = 0; i < sizeof prefixes / sizeof *prefixes; i++) {
            if (strncmp(*at, prefixes[i], strlen(prefixes[i])) == 0 && words->count < WORDS_MOST / 2) {
                add(words, "-x");
                add(words, arena_format(words->arena, "%.*s", (int)strcspn(*at, "="), *at));
            }
        }
    }
}

// Ranks are not bound: their threads would share the one core to which mpirun binds each rank.
static char **mpirun_argv(const LaunchPlan *plan, Arena *arena) {
    static const char *const exported[] = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", RENDEZVOUS_VARIABLE};
    Words words = begin(arena, "mpirun");
    add_number(&words, "-n", plan->world);
    add(&words, "--bind-to");
    add(&words, "none");
    add(&words, plan->crowded ? "--oversubscribe" : NULL);
    for (size_t i = 0; i < sizeof exported / sizeof *exported; i++) {
        add(&words, "-x");
        add(&words, exported[i]);
    }
    if (plan->passive) {
        add(&words, "-x");
        add(&words, "OMP_WAIT_POLICY");
    }
    if (strcmp(plan->transport, "nccl") == 0) {
        add_nccl_settings(&words);
    }
    if (plan->options.hostfile || plan->options.hosts) {
        add(&words, plan->options.hostfile ? "--hostfile" : "--host");
        add(&words, plan->options.hostfile ? plan->options.hostfile : plan->options.hosts);
    } else {  // leftovers of killed ranks go with the run's directory, which other hosts lack
        add_setting(&words, "orte_tmpdir_base", plan->directory);
        add_setting(&words, "btl_vader_backing_directory", plan->directory);
    }
    return end(&words, plan, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK");
}

static char **srun_argv(const LaunchPlan *plan, Arena *arena) {
    Words words = begin(arena, "srun");
    add_number(&words, "--ntasks", plan->world);
    add(&words, "--kill-on-bad-exit=1");
    add(&words, "--cpu-bind=none");
    add(&words, plan->crowded ? "--overcommit" : NULL);
    add(&words, strcmp(plan->transport, "mpi") == 0 ? "--mpi=pmix" : "--mpi=none");
    if (plan->options.hosts) {
        add(&words, "--nodelist");
        add(&words, plan->options.hosts);
    }
    return end(&words, plan, "SLURM_PROCID", "SLURM_LOCALID");
}

static char **torchrun_argv(const LaunchPlan *plan, Arena *arena) {
    Words words = begin(arena, "torchrun");
    add(&words, "--standalone");
    add_number(&words, "--nproc-per-node", plan->world);
    add(&words, "--no-python");
    return end(&words, plan, "RANK", "LOCAL_RANK");
}

static const Launcher launchers[] = {
    {.name = "local", .others = true},
    {"mpirun", "mpirun", "Open MPI, package openmpi-bin", true, true, true, mpirun_argv},
    {"srun", "srun", "Slurm, package slurm-client", true, true, true, srun_argv},
    {"torchrun", "torchrun", "PyTorch", false, true, false, torchrun_argv},
};

Status launcher_find(const char *name, const Launcher **launcher, Error *error) {
    *launcher = TEXT_FIND(launchers, sizeof launchers / sizeof *launchers, name, name);
    return *launcher ? STATUS_OK
                     : error_set(error, STATUS_USAGE,
                                 "no launcher '%s'; there are auto, local, mpirun, srun and torchrun", name);
}

static bool in_path(const char *program) {
    const char *path = getenv("PATH");
    char tried[4096];
    for (const char *at = path ? path : ""; *at;) {
        const size_t length = strcspn(at, ":");
        snprintf(tried, sizeof tried, "%.*s/%s", (int)length, at, program);
        if (access(tried, X_OK) == 0) {
            return true;
        }
        at += length + (at[length] == ':');
    }
    return false;
}

static Status choose_named(const LaunchOptions *options, const char *transport, const Launcher **launcher,
                           Error *error) {
    TRY(launcher_find(options->launcher, launcher, error));
    const Launcher *row = *launcher;
    const bool mpi = strcmp(transport, "mpi") == 0;
    if (mpi ? !row->mpi : !row->others) {
        error_set(error, STATUS_USAGE, "launcher %s starts no ranks of transport %s", row->name, transport);
        return error_hint(error, mpi ? "use --launcher mpirun or srun" : "use --launcher local");
    }
    FAIL_IF((options->hosts || options->hostfile) && !row->hosts, error, STATUS_USAGE,
            "launcher %s starts ranks on this host only; mpirun and srun take hosts", row->name);
    FAIL_IF(options->hostfile && strcmp(row->name, "srun") == 0, error, STATUS_USAGE,
            "launcher srun takes --hosts, not --hostfile: Slurm knows its hosts");
    return STATUS_OK;
}

// ---------------------------------------------------------------------------------------------- hosts

static int count_lines(const char *path) {
    FILE *file = fopen(path, "r");
    char line[512];
    int count = 0;
    while (line_next(file, line, sizeof line)) {
        const char *word = line + strspn(line, " \t");
        count += *word != '\n' && *word != '#' && *word != '\0';
    }
    return count;
}

// A launcher, or the ssh it starts, would parse such a name as an option.
static bool names_an_option(const LaunchOptions *options) {
    bool found = options->hosts && (options->hosts[0] == '-' || strstr(options->hosts, ",-"));
    FILE *file = options->hostfile ? fopen(options->hostfile, "r") : NULL;
    char line[512];
    while (line_next(file, line, sizeof line)) {
        found = found || line[strspn(line, " \t")] == '-';
    }
    return found;
}

// Hosts named by "a:2,b,a": two; the number after a colon is slots.
static int count_names(const char *hosts) {
    int count = 0;
    for (const char *at = hosts; *at; at += strcspn(at, ",") + (at[strcspn(at, ",")] == ',')) {
        const size_t length = strcspn(at, ":,");
        bool known = length == 0;
        for (const char *before = hosts; before < at && !known; before += strcspn(before, ",") + 1) {
            known = strcspn(before, ":,") == length && strncmp(before, at, length) == 0;
        }
        count += !known;
    }
    return count;
}

// mpirun would answer with a page of text that does not name the host.
static Status check_hosts(const LaunchOptions *options, Error *error) {
    FAIL_IF(options->hosts && options->hostfile, error, STATUS_USAGE, "hosts %s and host file %s: give one of them",
            options->hosts, options->hostfile);
    FAIL_IF(options->hostfile && access(options->hostfile, R_OK) != 0, error, STATUS_USAGE,
            "host file %s cannot be read: %s", options->hostfile, strerror(errno));
    struct stat about;
    FAIL_IF(options->hostfile && stat(options->hostfile, &about) == 0 && !S_ISREG(about.st_mode), error, STATUS_USAGE,
            "host file %s is no file but a folder, device or pipe: it is read several times", options->hostfile);
    FAIL_IF(names_an_option(options), error, STATUS_USAGE, "%s '%s': the name of a host does not begin with '-'",
            options->hostfile ? "host file" : "hosts", options->hostfile ? options->hostfile : options->hosts);
    const int named = options->hostfile ? count_lines(options->hostfile)
                      : options->hosts  ? count_names(options->hosts)
                                        : 1;
    if (named > 0) {
        return STATUS_OK;
    }
    error_set(error, STATUS_USAGE, "%s '%s' names no host", options->hostfile ? "host file" : "hosts",
              options->hostfile ? options->hostfile : options->hosts);
    return error_hint(error, options->hostfile ? "a line each: node1 slots=2" : "such as node1:2,node2:2");
}

// Users start ndtune under mpirun as they start their trainers: every rank of it would begin its own run.
static Status check_alone(Error *error) {
    const char *size = getenv("OMPI_COMM_WORLD_SIZE"), *rank = getenv("OMPI_COMM_WORLD_RANK");
    if (!size || !rank || strtol(size, NULL, 10) < 2) {
        return STATUS_OK;
    }
    error_set(error, STATUS_USAGE, "ndtune was started here as rank %s of %s by mpirun", rank, size);
    return error_hint(error, "start it once, by itself: it starts the ranks (--transport mpi, --hosts)");
}

// ---------------------------------------------------------------------------------------------- choice

Status launcher_choose(const LaunchOptions *options, const char *transport, Arena *arena, const Launcher **launcher,
                       const char **why, Error *error) {
    LaunchOptions wanted = *options;
    const char *job = getenv("SLURM_JOB_ID");
    const char *nodes = getenv("SLURM_JOB_NUM_NODES");
    const bool hosts = options->hosts || options->hostfile, shm = strcmp(transport, "shm") == 0;
    TRY(check_alone(error));
    TRY(check_hosts(options, error));
    const bool mpi = strcmp(transport, "mpi") == 0, leaves = mpi || (!shm && nodes && strtol(nodes, NULL, 10) > 1);
    if (wanted.launcher && strcmp(wanted.launcher, "auto") != 0) {
        *why = "as asked";
    } else if (!leaves && !hosts) {
        wanted.launcher = "local";
        *why = arena_format(arena, "ranks of transport %s are processes of this machine%s", transport,
                            shm ? "" : " where no hosts are named");
    } else if (job && !hosts && in_path("srun")) {
        wanted.launcher = "srun";
        *why = arena_format(arena, "this is Slurm job %s", job);
    } else {
        wanted.launcher = "mpirun";
        *why = hosts ? "hosts are named" : "transport mpi starts with mpirun outside of Slurm";
    }
    TRY(choose_named(&wanted, transport, launcher, error));
    if ((hosts || launcher_hosts(*launcher, options) > 1) && shm) {
        error_set(error, STATUS_USAGE, "transport %s does not leave this machine, and %s", transport,
                  hosts ? "hosts are named" : "the Slurm job has several");
        return error_hint(error, "use --transport mpi, or nccl on GPUs");
    }
    FAIL_IF((*launcher)->program && !in_path((*launcher)->program), error, STATUS_ENVIRONMENT,
            "%s is not installed (%s)", (*launcher)->program, (*launcher)->package);
    return STATUS_OK;
}

int launcher_hosts(const Launcher *launcher, const LaunchOptions *options) {
    int count = 1;
    if (options->hostfile) {
        count = count_lines(options->hostfile);
    } else if (options->hosts) {
        count = count_names(options->hosts);
    } else if (launcher->hosts && strcmp(launcher->name, "srun") == 0 && getenv("SLURM_JOB_NUM_NODES")) {
        count = (int)strtol(getenv("SLURM_JOB_NUM_NODES"), NULL, 10);
    }
    return count < 1 ? 1 : count;
}
