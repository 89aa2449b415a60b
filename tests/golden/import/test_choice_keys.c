// The framework switches that change time or memory, key by key, as far as a file read here can hold them: each is in
// the plan, or reported as left out of it, or refused. None is ignored silently. Keys of functions and of scripts
// (Megatron's flags) are in no such file.

#include <criterion/criterion.h>
#include <string.h>

#include "autotune/import/config_load.h"
#include "autotune/import/import.h"

typedef struct Choice {
    const char *key;    // whose finding names it; NULL = the plan has it
    const char *with;   // the file that sets it
    const char *plain;  // the same file without it
} Choice;

#define FSDP2 "distributed_type: FSDP\nnum_processes: 8\nmixed_precision: bf16\n"
#define OF_FSDP2(more) FSDP2 "fsdp_config: {fsdp_version: 2, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP" more "}\n"
#define FSDP1(more) FSDP2 "fsdp_config: {fsdp_version: 1, fsdp_auto_wrap_policy: TRANSFORMER_BASED_WRAP" more "}\n"

static const Choice of_accelerate[] = {
    {NULL, OF_FSDP2(", fsdp_activation_checkpointing: true"), OF_FSDP2("")},
    {NULL, OF_FSDP2(", fsdp_activation_checkpointing: true, fsdp_activation_checkpointing_offload: true"),
     OF_FSDP2(", fsdp_activation_checkpointing: true")},
    {"fsdp_activation_checkpointing_offload",
     OF_FSDP2(", fsdp_activation_checkpointing: true, fsdp_activation_checkpointing_offload: true, "
              "fsdp_offload_params: true"),
     NULL},
    {NULL, OF_FSDP2(", fsdp_offload_params: true"), OF_FSDP2("")},
    {NULL, FSDP1(", fsdp_offload_params: true"), FSDP1("")},
    {NULL, OF_FSDP2(", fsdp_reshard_after_forward: false"), OF_FSDP2("")},
    {"fsdp_backward_prefetch", OF_FSDP2(", fsdp_backward_prefetch: BACKWARD_PRE"), NULL},
    {"fsdp_backward_prefetch", FSDP1(", fsdp_backward_prefetch: NO_PREFETCH"), NULL},
    {"fsdp_forward_prefetch", OF_FSDP2(", fsdp_forward_prefetch: true"), NULL},
    {"fsdp_forward_prefetch", FSDP1(", fsdp_forward_prefetch: true"), NULL},
    {NULL,
     OF_FSDP2(
         "") "parallelism_config: {parallelism_config_cp_size: 8, parallelism_config_cp_comm_strategy: alltoall}\n",
     OF_FSDP2("") "parallelism_config: {parallelism_config_cp_size: 8}\n"},
    {"parallelism_config_sp_size", OF_FSDP2("") "parallelism_config: {parallelism_config_sp_size: 8}\n", NULL},
    {NULL, OF_FSDP2("") "dynamo_config: {dynamo_backend: INDUCTOR}\n", OF_FSDP2("")},
    {"dynamo_mode", OF_FSDP2("") "dynamo_config: {dynamo_backend: INDUCTOR, dynamo_mode: reduce-overhead}\n", NULL},
    {"mixed_precision", "distributed_type: MULTI_GPU\nnum_processes: 8\nmixed_precision: fp8\n", NULL},
    {NULL, NULL, NULL}};

#define AXOLOTL(more) "base_model: x\nfsdp_version: 2\nfsdp_config: {auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n" more
#define LIGER "plugins: [axolotl.integrations.liger.LigerPlugin]\n"

static const Choice of_axolotl[] = {
    {NULL, AXOLOTL("bf16: false\n"), AXOLOTL("")},
    {"reshard_after_forward", "base_model: x\nfsdp_version: 2\nfsdp_config: {reshard_after_forward: false}\n", NULL},
    {NULL, AXOLOTL("gradient_checkpointing: true\n"), AXOLOTL("")},
    {"gradient_checkpointing", AXOLOTL("gradient_checkpointing: offload\n"), NULL},
    {"activation_offloading", AXOLOTL("gradient_checkpointing: true\nactivation_offloading: true\n"), NULL},
    {"selective_checkpointing", AXOLOTL("gradient_checkpointing: true\nselective_checkpointing: {save: [attention]}\n"),
     NULL},
    {"liger_fused_linear_cross_entropy",
     "base_model: x\nfsdp_config: {auto_wrap_policy: TRANSFORMER_BASED_WRAP}\n" LIGER
     "liger_fused_linear_cross_entropy: true\n",
     NULL},
    {"gradient_checkpointing_kwargs.every_n_layers",
     AXOLOTL("gradient_checkpointing: true\ngradient_checkpointing_kwargs: {every_n_layers: 2}\n"), NULL},
    {"gradient_checkpointing_kwargs.offload",
     AXOLOTL("gradient_checkpointing: true\ngradient_checkpointing_kwargs: {offload: true}\n"), NULL},
    {NULL, AXOLOTL("accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}\n"), AXOLOTL("")},
    {"layer_offloading", AXOLOTL("layer_offloading: true\n"), NULL},
    {"cut_cross_entropy", AXOLOTL("cut_cross_entropy: true\n"), NULL},
    {"chunked_cross_entropy", AXOLOTL("chunked_cross_entropy: true\n"), NULL},
    {"liger_cross_entropy", AXOLOTL(LIGER "liger_cross_entropy: true\n"), NULL},
    {NULL, AXOLOTL(LIGER "liger_fused_linear_cross_entropy: true\n"), AXOLOTL(LIGER)},
    {"liger_rms_norm", AXOLOTL(LIGER "liger_rms_norm: true\n"), NULL},
    {NULL, AXOLOTL("tiled_mlp: true\n"), AXOLOTL("")},
    {NULL, AXOLOTL("tiled_mlp: true\ntiled_mlp_num_shards: 4\n"), AXOLOTL("tiled_mlp: true\n")},
    {"tiled_mlp", AXOLOTL("tiled_mlp: true\nadapter: lora\n"), NULL},
    {"tiled_mlp", AXOLOTL("tiled_mlp: true\ntensor_parallel_size: 2\n"), NULL},
    {NULL, AXOLOTL("attn_implementation: flash_attention_2\ncontext_parallel_size: 2\nring_attn_func: varlen_llama3\n"),
     AXOLOTL("attn_implementation: flash_attention_2\ncontext_parallel_size: 2\nring_attn_func: batch_ring\n")},
    {"heads_k_stride", AXOLOTL("heads_k_stride: 2\n"), NULL},
    {NULL, AXOLOTL("tensor_parallel_size: 2\n"), AXOLOTL("")},
    {NULL, AXOLOTL("optimizer: adamw_torch_8bit\n"), AXOLOTL("")},
    {NULL, AXOLOTL("optimizer: adamw_torch\n"), AXOLOTL("optimizer: adamw_torch_fused\n")},
    {"optimizer", AXOLOTL("optimizer: adamw_8bit\n"), NULL},
    {"optimizer", AXOLOTL("optimizer: paged_adamw_32bit\n"), NULL},
    {"optimizer", AXOLOTL("optimizer: q_galore_adamw8bit\n"), NULL},
    {"optimizer", AXOLOTL("optimizer: muon\n"), NULL},
    {NULL, "base_model: x\noptimizer: muon\n", "base_model: x\n"},
    {"sample_packing", AXOLOTL("sample_packing: true\n"), NULL},
    {"batch_flattening", AXOLOTL("batch_flattening: true\n"), NULL},
    {NULL, AXOLOTL("torch_compile: true\n"), AXOLOTL("")},
    {"torch_compile_mode", AXOLOTL("torch_compile: true\ntorch_compile_mode: reduce-overhead\n"), NULL},
    {"deepcompile", AXOLOTL("deepcompile: true\n"), NULL},
    {"ddp_bucket_cap_mb", AXOLOTL("ddp_bucket_cap_mb: 100\n"), NULL},
    {"torch_empty_cache_steps", AXOLOTL("torch_empty_cache_steps: 5\n"), NULL},
    {"auto_find_batch_size", AXOLOTL("auto_find_batch_size: true\n"), NULL},
    {"fp8", AXOLOTL("fp8: true\n"), NULL},
    {NULL, "base_model: x\nfsdp_version: 2\nfsdp_config: {offload_params: true}\n",
     "base_model: x\nfsdp_version: 2\nfsdp_config: {offload_params: false}\n"},
    {NULL, AXOLOTL("adapter: lora\n"), AXOLOTL("")},
    {NULL, AXOLOTL("adapter: lora\nload_in_8bit: true\n"), AXOLOTL("adapter: lora\n")},
    {NULL, AXOLOTL("adapter: lora\nlora_target_linear: true\n"), AXOLOTL("adapter: lora\n")},
    {NULL, AXOLOTL("adapter: lora\nlora_r: 64\n"), AXOLOTL("adapter: lora\n")},
    {"lora_target_modules", AXOLOTL("adapter: lora\nlora_target_modules: [embed_tokens]\n"), NULL},
    {"lora_modules_to_save", AXOLOTL("adapter: lora\nlora_modules_to_save: [lm_head]\n"), NULL},
    {"adapter", AXOLOTL("adapter: llama-adapter\n"), NULL},
    {NULL, NULL, NULL}};

#define STAGES2(more) "[parallelism]\npipeline_parallel_degree = 2\npipeline_parallel_" more
#define EIGHT_B "[model]\nname = \"llama3\"\nflavor = \"8B\"\n"

static const Choice of_torchtitan[] = {
    {NULL, "[activation_checkpoint]\nmode = \"full\"\n", "[training]\nlocal_batch_size = 8\n"},
    {"activation_checkpoint.mode", "[activation_checkpoint]\nmode = \"memory_budget\"\n", NULL},
    {"activation_checkpoint.per_op_sac_force_recompute_mm_shapes_by_fqns",
     "[activation_checkpoint]\nmode = \"selective\"\nselective_ac_option = \"op\"\n"
     "per_op_sac_force_recompute_mm_shapes_by_fqns = [\"moe.router.gate\", \"feed_forward.w3\"]\n",
     NULL},
    {NULL, "[parallelism]\nfsdp_reshard_after_forward = \"never\"\n", "[parallelism]\ntensor_parallel_degree = 1\n"},
    {NULL, "[compile]\nenable = true\n[parallelism]\nenable_async_tensor_parallel = true\n",
     "[compile]\nenable = true\n"},
    {"parallelism.context_parallel_load_balancer",
     "[parallelism]\ncontext_parallel_degree = 2\ncontext_parallel_load_balancer = \"ptrr\"\n", NULL},
    {"model.flavor", "[model]\nflavor = \"8B_flex\"\n", NULL},
    {NULL, "[training]\nenable_cpu_offload = true\n", "[training]\nenable_cpu_offload = false\n"},
    {NULL, "[training]\ndtype = \"bfloat16\"\n", "[training]\nlocal_batch_size = 8\n"},
    {NULL, "[optimizer]\nimplementation = \"foreach\"\n", "[optimizer]\nimplementation = \"fused\"\n"},
    {"optimizer.implementation", "[optimizer]\nimplementation = \"for-loop\"\n", NULL},
    {NULL, "[optimizer]\nearly_step_in_backward = true\n", "[optimizer]\nimplementation = \"fused\"\n"},
    {"optimizer.name", "[optimizer]\nname = \"SGD\"\n", NULL},
    {"model.converters", "[model]\nconverters = [\"quantize.linear.mx\"]\n", NULL},
    {NULL, "[model]\nconverters = [\"quantize.linear.float8\"]\n[quantize.linear.float8]\nrecipe_name = \"rowwise\"\n",
     "[model]\nconverters = [\"quantize.linear.float8\"]\n"},
    {NULL, "[parallelism]\npipeline_parallel_degree = 2\n", "[parallelism]\npipeline_parallel_degree = 1\n"},
    {NULL, STAGES2("schedule = \"GPipe\"\n"), STAGES2("schedule = \"1F1B\"\n")},
    {NULL, STAGES2("microbatch_size = 2\n"), STAGES2("microbatch_size = 1\n")},
    {NULL, STAGES2("microbatch_size = 2\n") "[training]\nlocal_batch_size = 8\nglobal_batch_size = 64\n",
     STAGES2("microbatch_size = 2\n") "[training]\nlocal_batch_size = 16\nglobal_batch_size = 64\n"},
    {NULL, STAGES2("schedule = \"Interleaved1F1B\"\n") "pipeline_parallel_layers_per_stage = 6\n" EIGHT_B,
     STAGES2("schedule = \"Interleaved1F1B\"\n") "pipeline_parallel_layers_per_stage = 9\n" EIGHT_B},
    // 32 layers and the ends make 34: 5 stages on 2 ranks, 4 of a schedule with one each, 2 of one with two each
    {"parallelism.pipeline_parallel_layers_per_stage",
     STAGES2("schedule = \"Interleaved1F1B\"\n") "pipeline_parallel_layers_per_stage = 8\n" EIGHT_B, NULL},
    {"parallelism.pipeline_parallel_layers_per_stage",
     STAGES2("schedule = \"1F1B\"\n") "pipeline_parallel_layers_per_stage = 9\n" EIGHT_B, NULL},
    {"parallelism.pipeline_parallel_layers_per_stage",
     STAGES2("schedule = \"Interleaved1F1B\"\n") "pipeline_parallel_layers_per_stage = 17\n" EIGHT_B, NULL},
    {"parallelism.pipeline_parallel_layers_per_stage",
     STAGES2("schedule = \"ZBVZeroBubble\"\n") "pipeline_parallel_layers_per_stage = 6\n" EIGHT_B, NULL},
    {"parallelism.pipeline_parallel_layers_per_stage",
     STAGES2("schedule = \"DualPipeV\"\n") "pipeline_parallel_layers_per_stage = 6\n" EIGHT_B, NULL},
    {"parallelism.pipeline_parallel_layers_per_stage",
     STAGES2("schedule = \"Interleaved1F1B\"\n") "pipeline_parallel_layers_per_stage = 4\n", NULL},
    {"parallelism.pipeline_parallel_schedule_csv", STAGES2("schedule_csv = \"actions.csv\"\n"), NULL},
    {"parallelism.module_fqns_per_model_part",
     STAGES2("microbatch_size = 1\n") "module_fqns_per_model_part = [[\"a\"]]\n", NULL},
    {NULL,
     STAGES2("microbatch_size = 1\n") "module_fqns_per_model_part = [[\"tok_embeddings\", \"layers.0\"], "
                                      "[\"layers.1\", \"layers.2\", \"norm\", \"output\"]]\n",
     STAGES2("microbatch_size = 1\n")},
    {NULL, STAGES2("last_stage_less_layers = 3\n"), STAGES2("last_stage_less_layers = 2\n")},
    {NULL, NULL, NULL}};

#define STAGE3(more) "{\"zero_optimization\": {\"stage\": 3" more "}}"
#define BESIDE(more) "{\"zero_optimization\": {\"stage\": 3}, " more "}"

static const Choice of_deepspeed[] = {
    {"zero_optimization.overlap_comm", STAGE3(", \"overlap_comm\": false"), NULL},
    {NULL, "{\"zero_optimization\": {\"stage\": 2, \"overlap_comm\": true}}",
     "{\"zero_optimization\": {\"stage\": 2}}"},
    {NULL, STAGE3(", \"reduce_bucket_size\": 1e8"), STAGE3("")},
    {NULL, STAGE3(", \"reduce_bucket_size\": \"auto\""), STAGE3("")},
    {"zero_optimization.contiguous_gradients", STAGE3(", \"contiguous_gradients\": false"), NULL},
    {"zero_optimization.allgather_bucket_size", STAGE3(", \"allgather_bucket_size\": 1e8"), NULL},
    {"zero_optimization.stage3_prefetch_bucket_size", STAGE3(", \"stage3_prefetch_bucket_size\": 1e8"), NULL},
    {"zero_optimization.stage3_max_live_parameters", STAGE3(", \"stage3_max_live_parameters\": 1e8"), NULL},
    {"zero_optimization.stage3_max_reuse_distance", STAGE3(", \"stage3_max_reuse_distance\": 1e8"), NULL},
    {"zero_optimization.stage3_param_persistence_threshold", STAGE3(", \"stage3_param_persistence_threshold\": 1e6"),
     NULL},
    {"zero_optimization.allgather_sequential", STAGE3(", \"allgather_sequential\": true"), NULL},
    {NULL, STAGE3(", \"zero_hpz_partition_size\": 8"), STAGE3("")},
    {"zero_optimization.zero_quantized_weights", STAGE3(", \"zero_quantized_weights\": true"), NULL},
    {"zero_optimization.zero_quantized_gradients", STAGE3(", \"zero_quantized_gradients\": true"), NULL},
    {NULL, STAGE3(", \"offload_optimizer\": {\"device\": \"cpu\"}"), STAGE3("")},
    {"zero_optimization.offload_param", STAGE3(", \"offload_param\": {\"device\": \"nvme\"}"), NULL},
    {"zero_optimization.zenflow", STAGE3(", \"zenflow\": {\"topk_ratio\": 0.1}"), NULL},
    {"zero_optimization.round_robin_gradients", STAGE3(", \"round_robin_gradients\": true"), NULL},
    {"bf16.bf16_master_weights_and_grads",
     BESIDE("\"bf16\": {\"enabled\": true, \"bf16_master_weights_and_grads\": true}"), NULL},
    {"bf16.bf16_optimizer_states", BESIDE("\"bf16\": {\"enabled\": true, \"bf16_optimizer_states\": true}"), NULL},
    {"data_types.grad_accum_dtype", BESIDE("\"data_types\": {\"grad_accum_dtype\": \"fp32\"}"), NULL},
    {"communication_data_type", BESIDE("\"communication_data_type\": \"fp32\""), NULL},
    {"pipeline", BESIDE("\"pipeline\": {\"stages\": 4}"), NULL},
    {NULL, BESIDE("\"pipeline\": {\"activation_checkpoint_interval\": 1}"), BESIDE("\"pipeline\": {\"stages\": 4}")},
    {NULL, BESIDE("\"optimizer\": {\"type\": \"Lion\"}"), BESIDE("\"optimizer\": {\"type\": \"AdamW\"}")},
    {NULL, BESIDE("\"optimizer\": {\"type\": \"AdamW\", \"params\": {\"torch_adam\": true}}"),
     BESIDE("\"optimizer\": {\"type\": \"AdamW\"}")},
    {"optimizer.type", BESIDE("\"optimizer\": {\"type\": \"OneBitAdam\"}"), NULL},
    {"compile.deepcompile", BESIDE("\"compile\": {\"deepcompile\": true}"), NULL},
    {"disable_python_gc", BESIDE("\"disable_python_gc\": true"), NULL},
    {NULL, "{\"zero_optimization\": {\"stage\": 1}, \"tensor_parallel\": {\"autotp_size\": 2}}",
     "{\"zero_optimization\": {\"stage\": 1}}"},
    {NULL, NULL, NULL}};

#define TRAINER(more) "output_dir: o\nper_device_train_batch_size: 2\nbf16: true\nfsdp: true\n" more

static const Choice of_trainer[] = {
    {NULL, TRAINER("gradient_checkpointing: true\n"), TRAINER("")},
    {NULL, TRAINER("fsdp_config: {activation_checkpointing: true}\n"), TRAINER("")},
    {NULL, TRAINER("gradient_checkpointing: true\ngradient_checkpointing_kwargs: {every_n_layers: 2}\n"),
     TRAINER("gradient_checkpointing: true\n")},
    {NULL, TRAINER("gradient_checkpointing: true\ngradient_checkpointing_kwargs: {offload: true}\n"),
     TRAINER("gradient_checkpointing: true\n")},
    {"gradient_checkpointing_kwargs.offload", TRAINER("gradient_checkpointing_kwargs: {offload: true}\n"), NULL},
    {"cpu_offload",
     TRAINER("fsdp_config: {cpu_offload: true}\nactivation_checkpointing: true\n"
             "activation_checkpointing_kwargs: {offload: true}\n"),
     NULL},
    {NULL, TRAINER("fsdp_config: {reshard_after_forward: false}\n"), TRAINER("")},
    {NULL, TRAINER("fsdp_config: {cpu_offload: true}\n"), TRAINER("")},
    {"auto_wrap_policy", TRAINER("fsdp_config: {auto_wrap_policy: SIZE_BASED_WRAP}\n"), NULL},
    {NULL, TRAINER("accelerator_config: {gradient_accumulation_kwargs: {sync_each_batch: true}}\n"), TRAINER("")},
    {NULL, TRAINER("use_liger_kernel: true\n"), TRAINER("")},
    {"use_liger_kernel", TRAINER("use_liger_kernel: true\n"), NULL},
    {NULL, TRAINER("torch_compile: true\n"), TRAINER("")},
    {"torch_compile_mode", TRAINER("torch_compile_mode: reduce-overhead\n"), NULL},
    {NULL, TRAINER("optim: adamw_8bit\n"), TRAINER("")},
    {NULL, TRAINER("optim: adafactor\n"), TRAINER("optim: sgd\n")},
    {"optim", TRAINER("optim: paged_adamw_8bit\n"), NULL},
    {"optim", TRAINER("optim: galore_adamw\n"), NULL},
    {"torch_empty_cache_steps", TRAINER("torch_empty_cache_steps: 5\n"), NULL},
    {"auto_find_batch_size", TRAINER("auto_find_batch_size: true\n"), NULL},
    {"ddp_bucket_cap_mb", TRAINER("ddp_bucket_cap_mb: 100\n"), NULL},
    {"ddp_static_graph", TRAINER("ddp_static_graph: true\n"), NULL},
    {"fsdp_config", "output_dir: o\nfsdp_config: {reshard_after_forward: false}\n", NULL},
    {"fp16", TRAINER("fp16: true\n"), NULL},
    {NULL, NULL, NULL}};

#define TRL(more) "dataset_name: d\nper_device_train_batch_size: 2\nfsdp: true\n" more

static const Choice of_trl[] = {{NULL, TRL("gradient_checkpointing: false\n"), TRL("")},
                                {NULL, TRL("bf16: false\n"), TRL("")},
                                {NULL, TRL("max_length: 4096\n"), TRL("")},
                                {"packing", TRL("packing: true\n"), NULL},
                                {"padding_free", TRL("padding_free: true\n"), NULL},
                                {"activation_offloading", TRL("activation_offloading: true\n"), NULL},
                                {"loss_type", TRL("loss_type: dft\n"), NULL},
                                {"use_liger_kernel", TRL("use_liger_kernel: true\n"), NULL},
                                {NULL, TRL("use_peft: true\n"), TRL("")},
                                {NULL, TRL("use_peft: true\nload_in_4bit: true\n"), TRL("use_peft: true\n")},
                                {"use_dora", TRL("use_peft: true\nuse_dora: true\n"), NULL},
                                {"load_in_4bit", TRL("load_in_4bit: true\n"), NULL},
                                {"attn_implementation", TRL("attn_implementation: kernels-community/x\n"), NULL},
                                {NULL, TRL("attn_implementation: eager\n"), TRL("")},
                                {NULL, NULL, NULL}};

#define NANOTRON(parallelism, more) "parallelism: {dp: 2, pp: 2, tp: 2, tp_mode: REDUCE_SCATTER" parallelism "}\n" more

static const Choice of_nanotron[] = {
    {NULL, NANOTRON(", pp_engine: 1f1b", ""), NANOTRON("", "")},
    {NULL, NANOTRON(", recompute_layer: true", ""), NANOTRON("", "")},
    {"tp_mode", "parallelism: {dp: 4, pp: 1, tp: 2, tp_mode: ALL_REDUCE}\n", NULL},
    {"tp_linear_async", NANOTRON(", tp_linear_async_communication: false", ""), NULL},
    {"tp_recompute_allgather", NANOTRON(", tp_recompute_allgather: false", ""), NULL},
    {"expert_parallel_size", NANOTRON(", expert_parallel_size: 2", ""), NULL},
    {"context_parallel_size", NANOTRON(", context_parallel_size: 2", ""), NULL},
    {NULL, NANOTRON("", "optimizer: {zero_stage: 1}\n"), NANOTRON("", "optimizer: {zero_stage: 0}\n")},
    {NULL, NANOTRON("", "model: {dtype: float32}\n"), NANOTRON("", "model: {dtype: bfloat16}\n")},
    {"accumulate_grad", NANOTRON("", "optimizer: {accumulate_grad_in_fp32: false}\n"), NULL},
    {"optimizer_factory", NANOTRON("", "optimizer: {optimizer_factory: {name: sgd}}\n"), NULL},
    {"ddp_bucket_cap_mb", NANOTRON("", "model: {ddp_bucket_cap_mb: 100}\n"), NULL},
    {"is_mamba_config", NANOTRON("", "model: {model_config: {is_mamba_config: true}}\n"), NULL},
    {NULL, NULL, NULL}};

#define MEGATRON(more) "pretrain_gpt.py --micro-batch-size 1 --seq-length 512 --num-layers 8 --bf16 " more

static const Choice of_megatron[] = {
    {NULL, MEGATRON("--use-distributed-optimizer"), MEGATRON("")},
    {NULL, MEGATRON("--overlap-grad-reduce"), MEGATRON("")},
    {NULL, MEGATRON("--sequence-parallel"), MEGATRON("")},
    {NULL, MEGATRON("--attention-backend flash"), MEGATRON("--attention-backend auto")},
    {NULL, MEGATRON("--recompute-activations"), MEGATRON("")},
    {NULL, MEGATRON("--recompute-granularity selective --recompute-modules layernorm"),
     MEGATRON("--recompute-granularity selective")},
    {NULL, MEGATRON("--grad-reduce-in-bf16"), MEGATRON("")},
    {NULL, MEGATRON("--optimizer sgd"), MEGATRON("")},
    {NULL, MEGATRON("--cuda-graph-impl full_iteration"), MEGATRON("")},
    {NULL, MEGATRON("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"),
     MEGATRON("--cross-entropy-loss-fusion")},
    {"--cross-entropy-fusion-impl", MEGATRON("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te"), NULL},
    {NULL, MEGATRON("--cross-entropy-loss-fusion"), MEGATRON("")},
    {NULL, MEGATRON("--cuda-graph-impl transformer_engine --cuda-graph-modules attn"), MEGATRON("")},
    {NULL, MEGATRON("--cuda-graph-impl local --cuda-graph-scope mlp"), MEGATRON("--cuda-graph-impl local")},
    {NULL, MEGATRON("--fp8-format hybrid --fp8-recipe mxfp8"), MEGATRON("--fp8-format hybrid")},
    {NULL, MEGATRON("--optimizer-cpu-offload"), MEGATRON("")},
    {NULL, MEGATRON("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2"),
     MEGATRON("--pipeline-model-parallel-size 2")},
    {NULL,
     MEGATRON("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2 "
              "--microbatch-group-size-per-virtual-pipeline-stage 4"),
     MEGATRON("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2")},
    {NULL,
     MEGATRON("--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2 "
              "--no-overlap-p2p-communication"),
     MEGATRON("--pipeline-model-parallel-size 4 --num-virtual-stages-per-pipeline-rank 2")},
    {NULL, MEGATRON("--optimizer muon"), MEGATRON("")},
    {"--optimizer", MEGATRON("--optimizer soap"), NULL},
    {NULL, MEGATRON("--cuda-graph-impl local"), MEGATRON("")},
    {"--cuda-graph-modules", MEGATRON("--cuda-graph-impl local --cuda-graph-modules moe"), NULL},
    {"--optimizer-offload-fraction", MEGATRON("--optimizer-cpu-offload --optimizer-offload-fraction 0.5"), NULL},
    {"--recompute-num-layers",
     MEGATRON("--recompute-granularity full --recompute-method uniform --recompute-num-layers 2"), NULL},
    {"--recompute-modules", MEGATRON("--recompute-granularity selective --recompute-modules shared_experts"), NULL},
    {"--overlap-grad-reduce", MEGATRON("--use-distributed-optimizer --overlap-grad-reduce"), NULL},
    {"--use-torch-fsdp2", MEGATRON("--use-torch-fsdp2"), NULL},
    {"--hybrid-layer-pattern", MEGATRON("--hybrid-layer-pattern M*M*"), NULL},
    {"--encoder-num-layers", MEGATRON("--encoder-num-layers 4"), NULL},
    {NULL, MEGATRON("--mtp-num-layers 1"), MEGATRON("--mtp-num-layers 0")},
    {NULL, MEGATRON("--num-experts 8 --moe-expert-capacity-factor 1.0"), MEGATRON("--num-experts 8")},
    {NULL, MEGATRON("--num-experts 8 --expert-tensor-parallel-size 2"), MEGATRON("--num-experts 8")},
    {"--delay-wgrad-compute", MEGATRON("--delay-wgrad-compute"), NULL},
    {"--rampup-batch-size", MEGATRON("--rampup-batch-size 8 8 100"), NULL},
    {"--exp-avg-dtype", MEGATRON("--use-precision-aware-optimizer --exp-avg-dtype bf16"), NULL},
    {"--exp-avg-sq-dtype", MEGATRON("--use-precision-aware-optimizer --exp-avg-sq-dtype fp4"), NULL},
    {NULL, MEGATRON("--use-distributed-optimizer --use-precision-aware-optimizer"),
     MEGATRON("--use-distributed-optimizer")},
    {NULL,
     MEGATRON("--use-distributed-optimizer --use-precision-aware-optimizer --exp-avg-dtype fp8 "
              "--exp-avg-sq-dtype fp8"),
     MEGATRON("--use-distributed-optimizer --use-precision-aware-optimizer")},
    {NULL, NULL, NULL}};

#define AUTOMODEL(more)                                                                                                \
    "recipe: TrainFinetuneRecipeForNextTokenPrediction\nstep_scheduler: {local_batch_size: 1, global_batch_size: 8}\n" \
    "distributed: {strategy: fsdp2" more "}\n"

static const Choice of_automodel[] = {
    {NULL, AUTOMODEL(", activation_checkpointing: true"), AUTOMODEL("")},
    {NULL, AUTOMODEL(", enable_compile: true"), AUTOMODEL("")},
    {NULL, AUTOMODEL(", defer_fsdp_grad_sync: false"), AUTOMODEL("")},
    {"enable_fsdp2_prefetch", AUTOMODEL(", enable_fsdp2_prefetch: true"), NULL},
    {"enable_fsdp2_prefetch", AUTOMODEL(", enable_fsdp2_prefetch: true, fsdp2_backward_prefetch_depth: 3"), NULL},
    {"enable_async_tensor_parallel", AUTOMODEL(", tp_size: 2, enable_async_tensor_parallel: true"), NULL},
    {"sequence_parallel", AUTOMODEL(", tp_size: 2, sequence_parallel: true"), NULL},
    {NULL, NULL, NULL}};

static void read_in(const char *text, ConfigSyntax syntax, const char *format, Arena *arena, Import *import) {
    ConfigNode *root = NULL;
    Error error = {0};
    cr_assert_eq(config_parse(text, "file", syntax, arena, &root, &error), STATUS_OK, "%s\n%s", error.message, text);
    cr_assert_eq(import_tree(root, "file", format, arena, import, &error), STATUS_OK, "%s\n%s", error.message, text);
    ImportChoices given = import_nothing_said();
    given.world = 8;
    import_settle(import, &given);
}

static bool names(const Import *import, const char *key) {
    for (int i = 0; i < import->finding_count; i++) {
        const ImportFinding *finding = &import->findings[i];
        if (finding->key && strstr(finding->key, key) && finding->kind != FINDING_UNKNOWN) {
            return true;
        }
    }
    return false;
}

static void check(const Choice *choices, ConfigSyntax syntax, const char *format) {
    for (const Choice *choice = choices; choice->with; choice++) {
        Arena arena = {0};
        Import with, plain;
        read_in(choice->with, syntax, format, &arena, &with);
        if (choice->key) {
            cr_expect(names(&with, choice->key), "%s is not named:\n%s", choice->key, choice->with);
        } else {
            read_in(choice->plain, syntax, format, &arena, &plain);
            cr_expect_neq(memcmp(&with.said, &plain.said, sizeof with.said), 0, "the plan is the same:\n%s",
                          choice->with);
        }
        for (int i = 0; i < with.finding_count; i++) {
            cr_expect_neq(with.findings[i].kind, FINDING_UNKNOWN, "%s\n%s", with.findings[i].sentence, choice->with);
        }
        arena_free(&arena);
    }
}

Test(choice_keys, accelerate_has_no_switch_that_passes_in_silence) {
    check(of_accelerate, SYNTAX_YAML, "accelerate");
}

Test(choice_keys, axolotl_has_no_switch_that_passes_in_silence) {
    check(of_axolotl, SYNTAX_YAML, "axolotl");
}

Test(choice_keys, torchtitan_has_no_switch_that_passes_in_silence) {
    check(of_torchtitan, SYNTAX_TOML, "torchtitan");
}

Test(choice_keys, deepspeed_has_no_switch_that_passes_in_silence) {
    check(of_deepspeed, SYNTAX_JSON, "deepspeed");
}

Test(choice_keys, trainer_has_no_switch_that_passes_in_silence) {
    check(of_trainer, SYNTAX_YAML, "trainer");
}

Test(choice_keys, trl_has_no_switch_that_passes_in_silence) {
    check(of_trl, SYNTAX_YAML, "trl");
}

Test(choice_keys, nanotron_has_no_switch_that_passes_in_silence) {
    check(of_nanotron, SYNTAX_YAML, "nanotron");
}

Test(choice_keys, megatron_has_no_switch_that_passes_in_silence) {
    check(of_megatron, SYNTAX_SHELL, "megatron");
}

Test(choice_keys, automodel_has_no_switch_that_passes_in_silence) {
    check(of_automodel, SYNTAX_YAML, "automodel");
}
