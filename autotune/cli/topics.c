// The topics of ndtune help. To add one: a row; the manual page and the completion have it then.

#include "autotune/cli/topics.h"

#include <stdbool.h>
#include <string.h>

#include "sim/axes/axes.h"
#include "sim/frameworks/words.h"

#define AXES_LINE "{axes}\n"  // at the start of a text: the axes, and what they are

static const Topic table[] = {
    {"shape", "Which shape, and is mine wrong?",
     "  ndtune --world 64 --model llama-3-8b --target " FRAMEWORK_DEFAULT " --seq 8k --global-batch 512\n"
     "      ranks every shape. \"Best\" is followed by who is within 5 %: such shapes a prediction cannot tell apart.\n"
     "  ndtune --world 64 ... --baseline dp_replicate=8,dp_shard=8\n"
     "      sets your own shape beside the best one.\n"
     "  ndtune explain --from my.yaml --world 64 --model llama-3-8b\n"
     "      reads the config that you train with (" FRAMEWORK_CONFIGS "), says what it costs, which\n"
     "      single change gains most, and which key of the file it is.\n"
     "  ndtune check main.yaml mine.yaml --model llama-3-8b\n"
     "      says what a change of the file costs, line by line; of one file, whether it runs, fits and is fast.\n"
     "  ndtune explain --world 64 --model llama-3-8b\n"
     "      says why the best beats the next, term by term, and from which network, memory or length on another shape "
     "wins.\n"
     "\n"
     "What fights the wiring: tp groups that cross nodes (every layer waits for them), dp_shard over a slow network\n"
     "(each layer's weights are gathered twice per micro-batch), cp where sequences are short. The lines \"... groups "
     "cross\n"
     "node borders\" and \"exposed ...\" under the best shape show which of them a plan pays for, and how much.\n"},
    {"batch", "What is my batch size once dimensions split?",
     "  global batch = micro-batch x dp_replicate x dp_shard x accumulation        (sequences per optimizer step)\n"
     "\n"
     "cp and tp are not in the product: the cp x tp ranks that share a place of dp_replicate and dp_shard work on the "
     "same\n"
     "sequences, cp on slices of each and tp on slices of the layers. Twice the tp at the same world is half the "
     "global batch,\n"
     "unless accumulation doubles.\n"
     "\n"
     "  ndtune predict --mesh dp_shard=4,tp=2 --model llama-3-8b --micro-batch 1 --global-batch 64\n"
     "      finds the accumulation that makes 64, or says that none does and what the nearest is.\n"
     "  ndtune export --mesh dp_shard=4,tp=2 --model llama-3-8b --global-batch 64 --as " FRAMEWORK_DEFAULT_FORMAT "\n"
     "      writes the same numbers under the names that the framework gives them.\n"
     "\n"
     "What frameworks ask for, as micro-batch and as accumulation or batch:\n" FRAMEWORK_BATCH_WORDS},
    {"memory", "It does not fit, or only just",
     "  ndtune --world 16 --model llama-3-70b\n"
     "      where nothing fits says how much is missing, and what would let it fit, with its cost in speed: offload, "
     "more\n"
     "      accelerators, a smaller batch, bf16 states, shorter sequences.\n"
     "  ndtune predict --mesh dp_shard=16 --model llama-3-8b --micro-batch 2 --memory-snapshot live.pickle\n"
     "      says what is alive at the peak; pytorch.org/memory_viz draws the file.\n"
     "  ndtune --world 16 --model llama-3-8b --memory-limit 70GiB\n"
     "      plans for less. Predictions of memory may be off by 5 to 10 %, so the best leaves 8 % free where it can; "
     "\"faster if\n"
     "      it fits\" is the fastest that uses all.\n"
     "\n"
     "\"reserved\" is what nvidia-smi shows of the process, \"peak\" what is alive in it. Accumulation with FSDP keeps "
     "whole\n"
     "gradients on every rank under frameworks that reduce on the last micro-batch only: of a 70B model 131 GiB.\n"},
    {"hang", "A job hangs: which rank, and where?",
     "  ndtune preflight --mesh dp_shard=8,tp=8 --hostfile hosts --timeout 20\n"
     "      runs every collective of every group of that shape once, on the very ranks of the job, and names who does "
     "not\n"
     "      answer, whose links are slow, and which host cannot be reached. Exit code 3: something is wrong. Within "
     "Slurm:\n"
     "      ndtune preflight --mesh ... --transport mpi. It needs ndtune-worker on each host, and no model or data.\n"
     "  ndtune preflight --mesh dp_shard=8,tp=8 --hostfile hosts --device cuda --transport nccl\n"
     "      the same through NCCL, as a framework would.\n"
     "  ndtune run --mesh dp_shard=8,tp=8 --hostfile hosts --model llama-3-8b --layers 4 --steps 50\n"
     "      trains that shape for real. A rank that dies, stops, lags or skips a collective is named with its host, "
     "its\n"
     "      task and the collective, within --timeout seconds; the run is stored (ndtune runs).\n"
     "\n"
     "  ndtune blame dumps\n"
     "      reads what the flight recorder of your own job left when it timed out: which rank never came, skipped a\n"
     "      collective or issued another one, and who waits for it. Exit code 2: somebody is blamed. Torch writes the "
     "dumps\n"
     "      with TORCH_FR_BUFFER_SIZE=2000 TORCH_FR_DUMP_TEMP_FILE=dumps/rank_ (older: TORCH_NCCL_TRACE_BUFFER_SIZE "
     "and\n"
     "      TORCH_NCCL_DEBUG_INFO_TEMP_FILE, with TORCH_NCCL_DUMP_ON_TIMEOUT=1). Bring all ranks' files into one "
     "folder.\n"
     "\n"
     "If preflight and run pass and your framework still hangs, the wiring is not to blame: look for ranks that take\n"
     "different branches (a data loader that ends early on one rank, a loss that is logged on rank 0 only), and "
     "compare the\n"
     "groups: ranks of one tp group are neighbours (0, 1, ... tp-1), then cp, then dp_shard, then dp_replicate.\n"},
    {"slow", "Why is my job slow?",
     "  ndtune predict --mesh dp_shard=64 --model llama-3-8b --target " FRAMEWORK_DEFAULT
     " --seq 8k --recompute full \\\n"
     "      --measured 1.9\n"
     "      sets your step time (or the log of the run: --measured train.log) beside the prediction, says whether it "
     "is\n"
     "      inside the interval, and if not, which single cause would explain it: a network at a third of its rate, a\n"
     "      rank that is 1.7 times slower, clocks, a kernel that is not the one you think; with where to look.\n"
     "  ndtune preflight --mesh dp_shard=64 --hostfile hosts\n"
     "      measures each of them: rates of links and ranks against the profile.\n"
     "  ndtune explain --from my.toml --world 64 --model llama-3-8b\n"
     "      says what in the config costs time.\n"
     "  ndtune predict ... --set rank.3.slowdown=1.3, --set node.2.link_slowdown=4, --set fabric.node_gbps=400\n"
     "      asks what one slow rank, one bad cable or half the network would do to the step.\n"},
    {"cluster", "Describing a cluster that is not in the list",
     "  ndtune clusters; ndtune clusters dgx-h100\n"
     "      the profiles, and every number of one with its source.\n"
     "  ndtune --world 32 --model 7b --cluster pcie-4090-8x --set node.gpus=4 --set fabric.node_gbps=25\n"
     "      changes numbers for one call: accelerators of a node, Gbit/s of all network cards of a node together, "
     "price.\n"
     "  ours.json, for --cluster ours.json, says what differs from the nearest profile:\n"
     "      {\"schema\": \"ndtune.cluster/1\", \"name\": \"ours\", \"extends\": \"dgx-a100-80g\", \"description\": "
     "\"half the network\",\n"
     "       \"fabric\": {\"nics\": {\"value\": 4, \"source\": \"our order\", \"grade\": \"datasheet\"}}}\n"
     "  ndtune clusters ours.json\n"
     "      checks the file and prints what became of it.\n"
     "  ndtune probe --device cuda --out ours.json; ndtune probe --hostfile hosts --out ours.json\n"
     "      measures it instead. ndtune calibrate fits it to the logs of your runs (ndtune help logs).\n"},
    {"logs", "Using the logs of your own runs",
     "  ndtune calibrate --target " FRAMEWORK_DEFAULT " --model llama-3-8b --cluster dgx-h100 --seq 8k \\\n"
     "      --log a.log@dp_shard=64,micro_batch=1 --log b.log@dp_shard=32,tp=2,micro_batch=2 --out ours.json\n"
     "      reads step times that frameworks print, fits the profile to them, and says what the runs cannot tell.\n"
     "  ndtune accuracy --runs runs.csv\n"
     "      predicts every row of a file and scores itself. The least that a row needs, with a preset as model:\n"
     "      id,model,cluster,target,dp_replicate,dp_shard,cp,tp,seq_len,micro_batch,grad_accum,recompute,step_time_s\n"
     "      r1,llama-3-8b,dgx-h100," FRAMEWORK_DEFAULT ",1,64,1,1,8192,1,1,full,1.13\n"
     "  ndtune validate --world 8 --model llama-3-8b --with " FRAMEWORK_DEFAULT
     " -- torchrun --nproc-per-node={world} train.py "
     "...\n"
     "      runs the best shapes by your own command and compares.\n"
     "  sqlite3 ~/.local/share/ndtune/ndtune.db 'select * from v_ranking limit 5'\n"
     "      everything that was asked and run; views v_ranking, v_best, v_accuracy, v_tune.\n"},
    {"words", "What the words mean",
     AXES_LINE
     "  micro x accum sequences of a data rank at once, and how often before the optimizer steps\n"
     "  recompute     activations computed again in backward: none, selective (part of them), full (checkpointing)\n"
     "  reshard       gathered weights are freed after forward (always) or kept until backward (never)\n"
     "  besides, sync gradients are reduced on each micro-step (each), over shards on each and over replicas once\n"
     "                (shards), or kept whole to the last (last); shown where it is not what the framework does by "
     "itself\n"
     "  besides, fused  kernels of norms, rotary positions, activation and loss: compiled by torch.compile\n"
     "  besides, loss logits of all tokens (whole), of a part of the tokens at a time (chunked), or of a part inside\n"
     "                one kernel with the head (fused)\n"
     "  interval      the step lies in it 8 times of 10; shapes closer than it is wide need a measurement\n"
     "  evidence      the measured runs behind a target's predictions; \"unvalidated\" = none of this version\n"
     "  exposed       communication that nothing hides: the time that a better network or shape would save\n"
     "  MFU, HFU      model (with recompute: hardware) FLOPs against the accelerator's dense peak\n"
     "  front, *      no other shape is as fast with less memory\n"},
};

const Topic *topics(int *count) {
    *count = (int)(sizeof table / sizeof table[0]);
    return table;
}

void topic_write(const Topic *topic, void (*write)(FILE *out, const char *text), FILE *out) {
    const size_t marked = strlen(AXES_LINE);
    const bool defines_axes = strncmp(topic->text, AXES_LINE, marked) == 0;
    for (int axis = 0; axis < AXIS_COUNT && defines_axes; axis++) {
        char line[160];
        snprintf(line, sizeof line, "  %-13s %s\n", axis_names[axis], axis_rows[axis]->definition);
        write(out, line);
    }
    write(out, defines_axes ? topic->text + marked : topic->text);
}
