// Runs every situation in one SimGrid simulation and prints the recorded file. One actor per task: it joins the tasks
// it waits for, then sleeps or sends to a host of its own; one actor per rank of a ring collective. Situations share no
// link, so they do not meet. Settings: pure max-min sharing without TCP effects (SimGrid 3.32 manual,
// Configuring SimGrid: network/model CM02, network/crosstraffic 0, network/TCP-gamma 0).
// record_simgrid > tests/parity/engine/simgrid.json

#include <simgrid/actor.h>
#include <simgrid/comm.h>
#include <simgrid/engine.h>
#include <simgrid/host.h>
#include <simgrid/mailbox.h>
#include <simgrid/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "tests/parity/engine/situations.h"

enum { MAX_TASKS = 32, MAX_AFTER = 4, STACK_BYTES = 65536 };

static const char *const settings[] = {
    "--cfg=network/model:CM02",   "--cfg=network/crosstraffic:0", "--cfg=network/TCP-gamma:0",
    "--cfg=network/weight-S:0",   "--cfg=surf/precision:1e-12",   "--cfg=maxmin/precision:1e-9",
    "--log=root.threshold:error",
};
enum { SETTINGS = sizeof settings / sizeof *settings };

typedef struct TaskRun {
    json_t *task;
    char mailbox[48];
    sg_actor_t actor;
    sg_actor_t after[MAX_AFTER + 1];
    int after_count;
} TaskRun;

typedef struct RankRun {
    json_t *collective;
    int ring, index, rank, ranks;
} RankRun;

static void *or_die(void *pointer, const char *what) {
    if (!pointer) {
        fprintf(stderr, "record_simgrid: %s\n", what);
        exit(1);
    }
    return pointer;
}

static const char *text_of(const json_t *object, const char *key) {
    return or_die((void *)json_string_value(json_object_get(object, key)), key);
}

static double number_of(const json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

static int is_flow(const json_t *task) {
    return json_object_get(task, "bytes") != NULL;
}

// ---------------------------------------------------------------------------------------------- platform

static void write_link(FILE *xml, const char *id, const json_t *link) {
    fprintf(xml, "<link id=\"%s\" bandwidth=\"%.17gBps\" latency=\"%.17gs\" sharing_policy=\"SHARED\"/>\n", id,
            number_of(link, "bytes_per_s"), number_of(link, "latency_s"));
}

static void write_host(FILE *xml, const char *id) {
    fprintf(xml, "<host id=\"%s\" speed=\"1Gf\"/>\n", id);
}

// A pass over all situations: 0 hosts, 1 links, 2 routes (the order that the format wants).
static void write_flows(FILE *xml, const json_t *flows, int pass) {
    size_t s, i;
    json_t *situation, *item;
    char id[96];
    json_array_foreach(flows, s, situation) {
        json_array_foreach(json_object_get(situation, "links"), i, item) {
            snprintf(id, sizeof id, "s%zu %s", s, text_of(item, "name"));
            if (pass == 1) {
                write_link(xml, id, item);
            }
        }
        json_array_foreach(json_object_get(situation, "tasks"), i, item) {
            for (int end = 0; pass == 0 && end < 2; end++) {
                snprintf(id, sizeof id, "s%zut%zu%c", s, i, "ab"[end]);
                write_host(xml, id);
            }
            if (pass == 2 && is_flow(item)) {
                char links[64], *rest = links;
                fprintf(xml, "<route src=\"s%zut%zua\" dst=\"s%zut%zub\" symmetrical=\"NO\">", s, i, s, i);
                snprintf(links, sizeof links, "%s", text_of(item, "links"));
                for (char *name = strtok_r(rest, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
                    fprintf(xml, "<link_ctn id=\"s%zu %s\"/>", s, name);
                }
                fprintf(xml, "</route>\n");
            }
        }
    }
}

static void write_rings(FILE *xml, const json_t *rings, int pass) {
    size_t r;
    json_t *ring;
    char id[64];
    json_array_foreach(rings, r, ring) {
        const int ranks = (int)number_of(ring, "ranks");
        for (int i = 0; i < ranks; i++) {
            snprintf(id, sizeof id, "ring%zu %d", r, i);
            if (pass == 0) {
                write_host(xml, id);
            } else if (pass == 1) {
                write_link(xml, id, ring);
            } else {
                fprintf(xml, "<route src=\"%s\" dst=\"ring%zu %d\" symmetrical=\"NO\"><link_ctn id=\"%s\"/></route>\n",
                        id, r, (i + 1) % ranks, id);
            }
        }
    }
}

static void load_platform(const json_t *flows, const json_t *rings) {
    char path[] = "/tmp/record-simgrid-XXXXXX";
    const int descriptor = mkstemp(path);
    FILE *xml = or_die(descriptor < 0 ? NULL : fdopen(descriptor, "w"), "no temporary file");
    fprintf(xml, "<?xml version='1.0'?>\n<!DOCTYPE platform SYSTEM \"https://simgrid.org/simgrid.dtd\">\n"
                 "<platform version=\"4.1\"><zone id=\"z\" routing=\"Full\">\n");
    for (int pass = 0; pass < 3; pass++) {
        write_flows(xml, flows, pass);
        write_rings(xml, rings, pass);
    }
    fprintf(xml, "</zone></platform>\n");
    fclose(xml);
    simgrid_load_platform(path);
    unlink(path);
}

// ---------------------------------------------------------------------------------------------- actors

static void note_end(json_t *object) {
    if (simgrid_get_clock() > number_of(object, "end_s")) {
        json_object_set_new(object, "end_s", json_real(simgrid_get_clock()));
    }
}

static void run_task(int argc, char **argv) {
    (void)argc;
    (void)argv;
    TaskRun *run = sg_actor_self_get_data();
    for (int i = 0; i < run->after_count; i++) {
        sg_actor_join(run->after[i], -1);
    }
    if (is_flow(run->task)) {
        sg_mailbox_put(sg_mailbox_by_name(run->mailbox), run, (long)number_of(run->task, "bytes"));
    } else {
        sg_actor_sleep_for(number_of(run->task, "seconds"));
    }
    note_end(run->task);
}

static void run_receiver(int argc, char **argv) {
    (void)argc;
    (void)argv;
    const TaskRun *run = sg_actor_self_get_data();
    sg_mailbox_get(sg_mailbox_by_name(run->mailbox));
}

static sg_actor_t start_actor(const char *host, xbt_main_func_t code, void *data) {
    sg_actor_t actor = sg_actor_init(host, or_die(sg_host_by_name(host), host));
    sg_actor_set_data(actor, data);
    sg_actor_set_stacksize(actor, STACK_BYTES);
    sg_actor_start(actor, code, 0, NULL);
    sg_actor_ref(actor);
    return actor;
}

static void find_predecessors(TaskRun *runs, size_t index) {
    TaskRun *run = &runs[index];
    int same_lane = -1;
    for (size_t i = 0; i < index; i++) {
        if (strcmp(text_of(runs[i].task, "name"), text_of(run->task, "after")) == 0) {
            run->after[run->after_count++] = runs[i].actor;
        }
        same_lane = strcmp(text_of(runs[i].task, "lane"), text_of(run->task, "lane")) == 0 ? (int)i : same_lane;
    }
    if (same_lane >= 0) {
        run->after[run->after_count++] = runs[same_lane].actor;
    }
}

static void start_flows(json_t *situation, size_t s) {
    TaskRun *runs = or_die(calloc(MAX_TASKS, sizeof *runs), "memory");  // lives until the process ends
    size_t i;
    json_t *task;
    json_array_foreach(json_object_get(situation, "tasks"), i, task) {
        char host[sizeof runs[i].mailbox + 1];
        runs[i].task = task;
        snprintf(runs[i].mailbox, sizeof runs[i].mailbox, "s%zut%zu", s, i);
        find_predecessors(runs, i);
        snprintf(host, sizeof host, "%sa", runs[i].mailbox);
        runs[i].actor = start_actor(host, run_task, &runs[i]);
        if (is_flow(task)) {
            snprintf(host, sizeof host, "%sb", runs[i].mailbox);
            start_actor(host, run_receiver, &runs[i]);
        }
    }
}

static void run_rank(int argc, char **argv) {
    (void)argc;
    (void)argv;
    RankRun *run = sg_actor_self_get_data();
    char mine[64], next[64];
    snprintf(mine, sizeof mine, "ring%d collective%d to %d", run->ring, run->index, run->rank);
    snprintf(next, sizeof next, "ring%d collective%d to %d", run->ring, run->index, (run->rank + 1) % run->ranks);
    sg_actor_sleep_for(number_of(run->collective, "start_s"));
    const int rounds = strcmp(text_of(run->collective, "kind"), "all_reduce") == 0 ? 2 : 1;
    const long part = (long)(number_of(run->collective, "payload_bytes") / run->ranks);
    for (int step = 0; step < rounds * (run->ranks - 1); step++) {
        sg_comm_t send = sg_mailbox_put_async(sg_mailbox_by_name(next), run, part);
        sg_mailbox_get(sg_mailbox_by_name(mine));
        sg_comm_wait(send);
    }
    note_end(run->collective);
}

static void start_ring(json_t *ring, size_t r) {
    const int ranks = (int)number_of(ring, "ranks");
    size_t c;
    json_t *collective;
    json_array_foreach(json_object_get(ring, "collectives"), c, collective) {
        for (int rank = 0; rank < ranks; rank++) {
            char host[64];
            RankRun *run = or_die(malloc(sizeof *run), "memory");
            *run = (RankRun){collective, (int)r, (int)c, rank, ranks};
            snprintf(host, sizeof host, "ring%zu %d", r, rank);
            start_actor(host, run_rank, run);
        }
    }
}

// ---------------------------------------------------------------------------------------------- the file

static json_t *header(void) {
    char version[32], date[16], words[512] = "record_simgrid";
    int major, minor, patch;
    const time_t now = time(NULL);
    struct tm utc;
    sg_version_get(&major, &minor, &patch);
    snprintf(version, sizeof version, "%d.%d.%d", major, minor, patch);
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &utc));
    for (int i = 0; i < SETTINGS; i++) {
        snprintf(words + strlen(words), sizeof words - strlen(words), " %s", settings[i]);
    }
    return json_pack("{s:s, s:s, s:s}", "simgrid", version, "recorded", date, "command", words);
}

// One situation per line, so that a difference between two recordings can be read.
static void print_list(const char *key, const json_t *list) {
    size_t i;
    json_t *item;
    printf(",\n\"%s\": [", key);
    json_array_foreach(list, i, item) {
        printf(i == 0 ? "\n" : ",\n");
        json_dumpf(item, stdout, JSON_REAL_PRECISION(15));
    }
    printf("\n]");
}

static void print_file(const json_t *head, const json_t *flows, const json_t *rings) {
    printf("{\n");
    json_dumpf(head, stdout, JSON_EMBED);
    print_list("flows", flows);
    print_list("rings", rings);
    printf("\n}\n");
}

int main(void) {
    char *arguments[SETTINGS + 2] = {"record_simgrid"};
    int count = SETTINGS + 1;
    for (int i = 0; i < SETTINGS; i++) {
        arguments[i + 1] = (char *)settings[i];
    }
    simgrid_init(&count, arguments);
    json_t *file = header(), *flows = situations_flows(), *rings = situations_rings();
    load_platform(flows, rings);
    size_t i;
    json_t *item;
    json_array_foreach(flows, i, item) {
        start_flows(item, i);
    }
    json_array_foreach(rings, i, item) {
        start_ring(item, i);
    }
    simgrid_run();
    print_file(file, flows, rings);
    json_decref(file);
    json_decref(flows);
    json_decref(rings);
    return 0;
}
