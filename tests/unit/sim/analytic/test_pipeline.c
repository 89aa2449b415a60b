// When the stages of a pipeline end, by times that are given.

#include <criterion/criterion.h>
#include <math.h>

#include "sim/analytic/pipeline.h"

// A device that is ahead of its host by a rounding takes the way on which the host is followed.
Test(pipeline, a_host_that_stops_with_the_device_need_not_be_followed) {
    enum { STAGES = 4, MOST_PARTS = 16 };
    static const int32_t micro_steps[] = {4, 12, 64};
    double part_s[MOST_PARTS];
    for (int part = 0; part < MOST_PARTS; part++) {
        part_s[part] = 1 + part % 3 / 7.0 + (part == MOST_PARTS - 1);
    }
    for (int i = 0; i < 6; i++) {
        Arena arena = {0};
        PipelineOrders known = {.arena = &arena};
        const PipelineShape shape = {schedule_find(i < 3 ? "1f1b" : "interleaved"), STAGES, i < 3 ? 1 : 4,
                                     micro_steps[i % 3], 0};
        PipelineTimes times = {
            .part_s = part_s, .forward_share = 0.3, .device_share = 1, .last_share = 0.1, .message_s = 0.02};
        const double stopping_s = pipeline_span_s(&known, &shape, &times);
        times.device_share = nextafter(1, 0);
        const double followed_s = pipeline_span_s(&known, &shape, &times);
        cr_expect_float_eq(stopping_s, followed_s, 1e-12 * followed_s, "%d micro-steps: %g s, %g s", shape.micro_steps,
                           stopping_s, followed_s);
        arena_free(&arena);
    }
}

// What many micro-steps take, of three groups and what is left over, is what all of them take, done one after another.
Test(pipeline, groups_of_micro_steps_go_on_at_their_pace) {
    enum { STAGES = 4, CHUNKS = 2 };
    static const int32_t of_groups[][2] = {{5, 29}, {5, 25}, {7, 39}, {6, 40}};
    double part_s[STAGES * CHUNKS];
    for (int part = 0; part < STAGES * CHUNKS; part++) {
        part_s[part] = 1 + part % 3 / 7.0 + (part == STAGES * CHUNKS - 1);
    }
    const PipelineTimes times = {
        .part_s = part_s, .forward_share = 0.3, .device_share = 1, .last_share = 0.1, .message_s = 0.02};
    for (size_t i = 0; i < sizeof of_groups / sizeof *of_groups; i++) {
        Arena arena = {0};
        PipelineOrders known = {.arena = &arena};
        const Schedule *named = schedule_find("interleaved");
        PipelineShape shape = {named, STAGES, CHUNKS, of_groups[i][1], of_groups[i][0]};
        ScheduleAction *actions[STAGES];
        const Schedule written = {.name = "written", .written = actions};
        for (int32_t stage = 0; stage < STAGES; stage++) {
            const ScheduleShape of = {stage, STAGES, CHUNKS, shape.micro_steps, shape.group, 1};
            actions[stage] = ARENA_ARRAY(&arena, ScheduleAction, schedule_action_count(named, &of));
            schedule_order(named, &of, actions[stage]);
        }
        const double few_s = pipeline_span_s(&known, &shape, &times);
        const int32_t held = pipeline_held(&known, &shape, 0);
        shape.schedule = &written;
        const double all_s = pipeline_span_s(&known, &shape, &times);
        cr_expect_float_eq(few_s, all_s, 1e-9 * all_s, "group %d of %d: %g s, not %g s", shape.group, shape.micro_steps,
                           few_s, all_s);
        cr_expect_eq(held, pipeline_held(&known, &shape, 0), "group %d of %d", shape.group, shape.micro_steps);
        arena_free(&arena);
    }
}

// By hand, two micro-steps of two stages: forward 1 and backward 2 each. The first stage sends from 1 to 1.5 and starts
// its second forward then; the second one receives, works from 1.5 to 4.5, sends to 5 and has the second until 8, whose
// gradient is there at 8.5 and done at 10.5. Without waiting the second stage starts at 4.5 and all ends at 10.
Test(pipeline, a_sender_waits_until_its_message_has_gone) {
    static const double part_s[] = {3, 3};
    Arena arena = {0};
    PipelineOrders known = {.arena = &arena};
    const PipelineShape shape = {schedule_find("1f1b"), 2, 1, 2, 0};
    PipelineTimes times = {.part_s = part_s, .forward_share = 1.0 / 3, .device_share = 1, .message_s = 0.5};
    cr_expect_float_eq(pipeline_span_s(&known, &shape, &times), 10, 1e-12);
    times.held_s = 0.5;
    cr_expect_float_eq(pipeline_span_s(&known, &shape, &times), 10.5, 1e-12);
    arena_free(&arena);
}

// By hand, with messages that take longer than the work between them: the second one leaves at 5, when the first has
// gone, and is there at 9, the last gradient is behind the one before it and there at 16. Side by side they would end
// at 17.
Test(pipeline, a_message_waits_for_the_one_before_it) {
    static const double part_s[] = {3, 3};  // forward 1, backward 2
    Arena arena = {0};
    PipelineOrders known = {.arena = &arena};
    const PipelineShape shape = {schedule_find("1f1b"), 2, 1, 2, 0};
    const PipelineTimes times = {.part_s = part_s, .forward_share = 1.0 / 3, .device_share = 1, .message_s = 4};
    cr_expect_float_eq(pipeline_span_s(&known, &shape, &times), 18, 1e-12);
    arena_free(&arena);
}

// Weights wait for no other stage, and nobody waits for them: between two messages they make none later.
Test(pipeline, passes_of_weights_send_nothing) {
    static const double part_s[] = {3, 3};  // 1 each
    Arena arena = {0};
    PipelineOrders known = {.arena = &arena};
    const PipelineShape shape = {schedule_find("zero-bubble"), 2, 1, 1, 0};
    const PipelineTimes times = {.part_s = part_s, .forward_share = 1.0 / 3, .device_share = 1, .message_s = 4};
    cr_expect_float_eq(pipeline_span_s(&known, &shape, &times), 1 + 4 + 2 + 4 + 2, 1e-12);
    arena_free(&arena);
}

// By hand: a message goes when both of its hosts are there, and takes both of them the sleep.
Test(pipeline, hosts_that_sleep_at_messages_keep_both_stages) {
    static const double part_s[] = {3, 3};  // forward 1, backward 2
    static const double ends_s[] = {6 + 2 * 0.5, 9 + 4 * 0.5, 12 + 6 * 0.5};
    for (int32_t micro_steps = 1; micro_steps <= 3; micro_steps++) {
        Arena arena = {0};
        PipelineOrders known = {.arena = &arena};
        const PipelineShape shape = {schedule_find("1f1b"), 2, 1, micro_steps, 0};
        const PipelineTimes times = {.part_s = part_s,
                                     .forward_share = 1.0 / 3,
                                     .device_share = 1,
                                     .message_s = 0.5,
                                     .held_s = 0.5,
                                     .sleep_s = 0.5};
        cr_expect_float_eq(pipeline_span_s(&known, &shape, &times), ends_s[micro_steps - 1], 1e-12);
        arena_free(&arena);
    }
}
