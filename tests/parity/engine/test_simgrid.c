// The engine against SimGrid's recorded finishing times. Flows and rings without contention are exact; flows that share
// one link follow the same max-min model on both sides; where the models differ by choice, the file says why and how
// much is allowed. `test_engine_simgrid --verbose` shows the largest difference of every situation.

#include <criterion/criterion.h>
#include <criterion/logging.h>
#include <math.h>
#include <string.h>

#include "sim/cost/cost.h"
#include "tests/parity/engine/replay.h"

static const double exact = 1e-9;

typedef struct Worst {
    double difference;
    const char *task;
    int compared;
} Worst;

static void compare(Worst *worst, const char *task, double engine_s, double recorded_s) {
    const double difference = replay_difference(engine_s, recorded_s);
    worst->compared++;
    if (!(fabs(difference) <= fabs(worst->difference))) {
        *worst = (Worst){difference, task, worst->compared};
    }
}

static void judge(const json_t *situation, const Worst *worst) {
    const double within = replay_number(situation, "within");
    cr_log_info("%-75s %2d ends, worst %+.2g, allowed %.2g", replay_text(situation, "name"), worst->compared,
                worst->difference, within);
    cr_assert_gt(worst->compared, 0);
    cr_assert(fabs(worst->difference) <= within, "%s: %s ends %+.3g off SimGrid, allowed %.3g",
              replay_text(situation, "name"), worst->task, worst->difference, within);
}

Test(simgrid, flows_end_when_simgrid_says) {
    json_t *file = replay_file();
    size_t s, i;
    json_t *situation, *task;
    json_array_foreach(json_object_get(file, "flows"), s, situation) {
        Replay replay;
        Worst worst = {.task = ""};
        replay_flows(situation, false, &replay);
        json_array_foreach(json_object_get(situation, "tasks"), i, task) {
            compare(&worst, replay_text(task, "name"), replay.end_s[i], replay_number(task, "end_s"));
        }
        judge(situation, &worst);
        replay_free(&replay);
    }
    json_decref(file);
}

// What keeps the comparison from being an easy one.
Test(simgrid, most_situations_would_be_wrong_without_sharing) {
    json_t *file = replay_file();
    const json_t *flows = json_object_get(file, "flows");
    size_t s, i, wrong = 0;
    json_t *situation, *task;
    json_array_foreach(flows, s, situation) {
        Replay replay;
        Worst worst = {.task = ""};
        replay_flows(situation, true, &replay);
        json_array_foreach(json_object_get(situation, "tasks"), i, task) {
            compare(&worst, replay_text(task, "name"), replay.end_s[i], replay_number(task, "end_s"));
        }
        wrong += fabs(worst.difference) > 0.03;
        replay_free(&replay);
    }
    cr_assert_gt(3 * wrong, 2 * json_array_size(flows), "only %zu of %zu", wrong, json_array_size(flows));
    json_decref(file);
}

Test(simgrid, rings_end_when_simgrid_says) {
    json_t *file = replay_file();
    size_t s, i;
    json_t *ring, *collective;
    json_array_foreach(json_object_get(file, "rings"), s, ring) {
        Replay replay;
        Worst worst = {.task = ""};
        replay_ring(ring, &replay);
        json_array_foreach(json_object_get(ring, "collectives"), i, collective) {
            compare(&worst, replay_text(collective, "kind"), replay.end_s[2 * i + 1],
                    replay_number(collective, "end_s"));
        }
        judge(ring, &worst);
        replay_free(&replay);
    }
    json_decref(file);
}

// ---------------------------------------------------------------------------------------------- closed form

// Rings of one collective: steps (a + m / P / B), Thakur, Rabenseifner and Gropp 2005.
static double hockney_s(const json_t *ring) {
    const json_t *collective = json_array_get(json_object_get(ring, "collectives"), 0);
    const double part = replay_number(collective, "payload_bytes") / replay_number(ring, "ranks");
    return replay_ring_step_count(ring, collective) *
           (replay_number(ring, "latency_s") + part / replay_number(ring, "bytes_per_s"));
}

typedef double (*TimeOfRing)(const json_t *ring);

static void check_rings_alone(TimeOfRing time_of) {
    json_t *file = replay_file();
    size_t i;
    json_t *ring;
    int checked = 0;
    json_array_foreach(json_object_get(file, "rings"), i, ring) {
        if (json_array_size(json_object_get(ring, "collectives")) == 1) {
            const double difference = replay_difference(time_of(ring), hockney_s(ring));
            cr_assert(fabs(difference) <= exact, "%s: %+.3g off the closed form", replay_text(ring, "name"),
                      difference);
            checked++;
        }
    }
    cr_assert_geq(checked, 15);
    json_decref(file);
}

static double recorded_s(const json_t *ring) {
    return replay_number(json_array_get(json_object_get(ring, "collectives"), 0), "end_s");
}

static double engine_steps_s(const json_t *ring) {
    Replay replay;
    replay_ring_steps(ring, &replay);
    const double step_s = replay.result.step_s;
    replay_free(&replay);
    return step_s;
}

// One node whose links and latencies are the ring's own: no pipelining loss, no local copy, no start-up besides steps.
static double ring_algorithm_s(const json_t *ring) {
    const json_t *collective = json_array_get(json_object_get(ring, "collectives"), 0);
    const int ranks = (int)replay_number(ring, "ranks");
    const char *kind_name = replay_text(collective, "kind");
    const CollectiveKind kind = strcmp(kind_name, "all_gather") == 0       ? COLLECTIVE_ALL_GATHER
                                : strcmp(kind_name, "reduce_scatter") == 0 ? COLLECTIVE_REDUCE_SCATTER
                                                                           : COLLECTIVE_ALL_REDUCE;
    const double latency_s = replay_number(ring, "latency_s");
    ClusterProfile profile = {.node = {.accelerators = ranks, .hosts = 1, .link_latency_s = 0}};
    profile.node.step_latency_s = latency_s;
    profile.node.ring.bandwidth_bytes_per_s = replay_number(ring, "bytes_per_s");
    const GroupPlacement group = {.size = ranks, .nodes = 1, .per_node = ranks, .siblings = 1};
    return cost_collective_s(&profile, kind, &group, replay_number(collective, "payload_bytes"), NULL);
}

Test(simgrid, is_an_exact_hockney_oracle_under_these_settings) {
    check_rings_alone(recorded_s);
}

Test(simgrid, the_steps_of_a_ring_end_at_the_closed_form) {
    check_rings_alone(engine_steps_s);
}

Test(simgrid, the_ring_algorithm_is_the_closed_form_on_a_machine_without_losses) {
    check_rings_alone(ring_algorithm_s);
}
