// What transport nccl decides by itself, on every machine: neither NCCL nor a GPU is queried.

#include <criterion/criterion.h>
#include <string.h>

#include "exec/transport/nccl_choice.h"

enum { NCCL_2_28_9 = 22809, CUDA_13 = 13000 };

static NcclChoice choice_of(const char *lane, bool one_host) {
    return nccl_choose(
        &(NcclFacts){.version = NCCL_2_28_9, .driver = CUDA_13, .lane = lane, .size = 8, .one_host = one_host});
}

Test(nccl_choice, only_the_gather_of_one_machine_leaves_all_sms_to_compute) {
    static const char *const lanes[] = {"ag", "rs", "rep", "tp", "cp", "run"};
    for (size_t i = 0; i < sizeof lanes / sizeof lanes[0]; i++) {
        cr_expect((choice_of(lanes[i], true).policy == NCCL_POLICY_ZERO) == (i == 0), "%s", lanes[i]);
        cr_expect(choice_of(lanes[i], false).policy != NCCL_POLICY_ZERO, "%s", lanes[i]);
    }
}

Test(nccl_choice, zero_sms_need_the_library_and_the_driver_for_it) {
    NcclFacts facts = {.version = NCCL_2_28_9, .driver = CUDA_13, .lane = "ag", .size = 2, .one_host = true};
    cr_expect(nccl_choose(&facts).policy == NCCL_POLICY_ZERO);
    facts.driver = 12040;
    cr_expect(nccl_choose(&facts).policy == NCCL_POLICY_DEFAULT);
    facts.driver = CUDA_13;
    facts.version = 22705;
    cr_expect(nccl_choose(&facts).policy == NCCL_POLICY_DEFAULT && nccl_choose(&facts).windows);
    facts.version = 23007;
    facts.one_host = false;
    cr_expect(nccl_choose(&facts).policy == NCCL_POLICY_ZERO);
}

Test(nccl_choice, the_reduce_scatter_takes_few_sms_and_the_rest_as_many_as_nccl_wants) {
    cr_expect_eq(choice_of("rs", true).most_ctas, 16);
    cr_expect_eq(choice_of("ag", true).most_ctas, 0);
    cr_expect_eq(choice_of("tp", true).policy, NCCL_POLICY_EFFICIENCY);
    cr_expect(choice_of("rs", true).windows && !choice_of("tp", true).windows);
}

Test(nccl_choice, nothing_new_is_asked_of_an_old_library_or_on_a_shared_gpu) {
    NcclFacts facts = {.version = 22600, .driver = CUDA_13, .lane = "ag", .size = 8, .one_host = true};
    NcclChoice choice = nccl_choose(&facts);
    cr_expect(choice.policy == NCCL_POLICY_DEFAULT && !choice.windows && choice.most_ctas == 0);
    facts.version = NCCL_2_28_9;
    facts.share_gpu = true;
    choice = nccl_choose(&facts);
    cr_expect(choice.policy == NCCL_POLICY_DEFAULT && !choice.windows && choice.most_ctas == 0);
}

Test(nccl_choice, a_library_without_splits_is_refused_with_both_versions) {
    Error error = {0};
    cr_expect(nccl_check_version(NCCL_LEAST_VERSION, &error) == STATUS_OK);
    cr_expect(nccl_check_version(21705, &error) == STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "2.18.0") && strstr(error.message, "2.17.5"), "%s", error.message);
}

Test(nccl_choice, ranks_of_a_machine_take_its_gpus_in_turn) {
    int gpu = -1;
    for (int rank = 0; rank < 4; rank++) {
        const NcclPlace place = {.local_rank = rank, .local_ranks = 4, .gpus = 4};
        cr_expect(nccl_place(&place, &gpu, NULL) == STATUS_OK && gpu == rank);
    }
    // Slurm shows each task its own GPU, as number 0.
    cr_expect(nccl_place(&(NcclPlace){.local_rank = 3, .gpus = 1}, &gpu, NULL) == STATUS_OK && gpu == 0);
}

Test(nccl_choice, a_second_rank_on_a_gpu_is_refused_in_words_that_name_shm) {
    Error error = {0};
    int gpu;
    const NcclPlace second = {.local_rank = 1, .local_ranks = 2, .gpus = 1};
    cr_assert(nccl_place(&second, &gpu, &error) == STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "2 ranks on this machine and 1 GPU"), "%s", error.message);
    cr_expect(strstr(error.hint, "--transport shm"), "%s", error.hint);
    const NcclPlace none = {.local_rank = 0, .local_ranks = 1, .gpus = 0};
    cr_assert(nccl_place(&none, &gpu, &error) == STATUS_ENVIRONMENT);
    cr_expect(strstr(error.message, "no NVIDIA GPU"), "%s", error.message);
}

Test(nccl_choice, ranks_that_shall_share_a_gpu_look_like_hosts_of_their_own) {
    NcclSetting settings[NCCL_SETTINGS_MOST];
    int gpu = -1;
    const NcclPlace second = {.local_rank = 1, .local_ranks = 2, .gpus = 1, .share_gpu = true};
    cr_expect(nccl_place(&second, &gpu, NULL) == STATUS_OK && gpu == 0);
    cr_assert_eq(nccl_settings(false, settings), 1);
    cr_expect_str_eq(settings[0].name, "NCCL_LAUNCH_ORDER_IMPLICIT");
    const int count = nccl_settings(true, settings);
    cr_assert_leq(count, NCCL_SETTINGS_MOST);
    bool own_host = false;
    for (int i = 0; i < count; i++) {
        own_host = own_host || (strcmp(settings[i].name, "NCCL_HOSTID") == 0 && !settings[i].value);
    }
    cr_expect(own_host);
}
