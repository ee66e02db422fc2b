/** axolotl's YAML. */
import { asNumber, isRecord } from '../../../base/values.js';
import { AXOLOTL_FSDP_KEYS, AXOLOTL_KEYS } from '../known-keys.js';
import {
  alias,
  amount,
  count,
  degree,
  meaning,
  onOff,
  switchedOn,
  switchOf,
  type TrainingProgram,
  textRow,
} from '../program.js';
import {
  deepspeedFileMeaning,
  fsdpOf,
  optimizerRow,
  targetsOf,
  warmupRow,
} from './shared-values.js';
import { EPOCHS_DECIDE } from './transformers.js';

/** Files that axolotl brings (deepspeed_configs/). */
const ZERO_FILES = { 1: 'zero1.json', 2: 'zero2.json', 3: 'zero3_bf16.json' } as const;

/** Its file that keeps optimizer and parameters in system memory; none keeps the optimizer alone there. */
const OFFLOADING_FILE = 'zero3_bf16_cpuoffload_all.json';

/** Degrees that its schema turns into 1 (utils/schemas/validation.py). */
const ONE = { '0': 'as 1' };

const accumulation = count('gradient_accumulation_steps', 'accumulation');
const recompute = meaning(
  'gradient_checkpointing',
  (value) => {
    if (value === 'offload' || value === 'offload_disk') return { recompute: 'full' };
    const isOn = switchOf(value);
    return isOn === undefined ? undefined : { recompute: isOn ? 'full' : 'none' };
  },
  ({ recompute }) => recompute && recompute !== 'none',
);

/** `bf16: auto` is bf16 where the GPU has it; `full` keeps the weights in bf16 too. */
const bf16 = meaning(
  'bf16',
  (value) => {
    if (value === 'auto') return { bf16: true };
    if (value === 'full') return { bf16: true, pureBf16: true };
    const isOn = switchOf(value);
    return isOn === undefined ? undefined : { bf16: isOn };
  },
  (run) => (run.pureBf16 ? 'full' : run.bf16),
);

export const AXOLOTL: TrainingProgram = {
  title: 'axolotl',
  version: '0.18.0',
  source:
    'axolotl-ai-cloud/axolotl, commit 067b021c (2026-07-24): src/axolotl/utils/schemas, src/axolotl/utils/config',
  rows: [
    textRow('base_model', 'model'),
    {
      ...meaning(
        'adapter',
        (value, { load_in_4bit: in4 }) => {
          if (value === 'qlora' || (value === 'lora' && in4 === true)) return { kind: 'qlora' };
          return value === 'lora' ? { kind: 'lora' } : value === '' ? {} : undefined;
        },
        ({ kind }) => (kind === 'training' ? undefined : kind),
      ),
      isDecisive: true,
    },
    meaning(
      'load_in_4bit',
      (value, { adapter }) =>
        switchOf(value) === undefined ? undefined : value && adapter ? { kind: 'qlora' } : {},
      ({ kind }) => (kind === 'qlora' ? true : undefined),
    ),
    count('lora_r', 'rank'),
    meaning(
      'lora_target_modules',
      (value) => targetsOf(value),
      ({ targets }) => (targets && targets[0] !== 'all' ? targets : undefined),
    ),
    meaning(
      'lora_target_linear',
      (value) =>
        value === true ? { targets: ['all'] } : switchOf(value) === undefined ? undefined : {},
      ({ kind, targets }) =>
        kind !== 'training' && kind !== undefined && (!targets || targets[0] === 'all')
          ? true
          : undefined,
    ),
    count('sequence_len', 'context'),
    onOff('sample_packing', 'packing'),
    count('micro_batch_size', 'microBatch'),
    accumulation,
    amount('num_epochs', 'epochs'),
    count('max_steps', 'steps', EPOCHS_DECIDE),
    optimizerRow('optimizer'),
    amount('learning_rate', 'learningRate'),
    textRow('lr_scheduler', 'schedule'),
    amount('cosine_min_lr_ratio', 'minLearningRateRatio'),
    warmupRow('warmup_steps'),
    amount('warmup_ratio', 'warmupRatio'),
    amount('weight_decay', 'weightDecay'),
    amount('adam_beta1', 'beta1'),
    amount('adam_beta2', 'beta2'),
    amount('adam_epsilon', 'epsilon'),
    amount('max_grad_norm', 'gradientClip'),
    bf16,
    alias('bfloat16', bf16),
    switchedOn('fp16', 'fp16'),
    alias('float16', onOff('fp16', 'fp16')),
    switchedOn('fp8', 'fp8'),
    recompute,
    meaning('activation_offloading', (value) => (value === false ? {} : undefined)),
    meaning(
      'deepspeed',
      (value) => (typeof value === 'string' ? deepspeedFileMeaning(value) : undefined),
      ({ division, offloadParameters }) =>
        division === '1' || division === '2' || division === '3'
          ? `deepspeed_configs/${offloadParameters && division === '3' ? OFFLOADING_FILE : ZERO_FILES[division]}`
          : undefined,
    ),
    meaning('fsdp', (value, document) =>
      fsdpOf(value, document.fsdp_config, document.fsdp_version),
    ),
    meaning(
      'fsdp_version',
      () => ({}),
      ({ division }) =>
        division === 'fsdp' ? 1 : division === 'fsdp2' || division === 'hsdp' ? 2 : undefined,
    ),
    meaning(
      'fsdp_config',
      (value, document) =>
        isRecord(value) ? fsdpOf(document.fsdp ?? true, value, document.fsdp_version) : undefined,
      ({ division, offloadParameters }) =>
        division === 'fsdp' || division === 'fsdp2' || division === 'hsdp'
          ? {
              auto_wrap_policy: 'TRANSFORMER_BASED_WRAP',
              state_dict_type: 'FULL_STATE_DICT',
              reshard_after_forward: division === 'fsdp' ? 'FULL_SHARD' : true,
              ...(offloadParameters && { offload_params: true }),
            }
          : undefined,
    ),
    count('dp_shard_size', 'dataParallel', { '0': 'the GPUs decide' }),
    meaning('dp_replicate_size', (value) => (asNumber(value) > 1 ? { division: 'hsdp' } : {})),
    degree('tensor_parallel_size', 'tensorParallel', ONE),
    degree('context_parallel_size', 'contextParallel', ONE),
    alias('sequence_parallel_degree', count('context_parallel_size', 'contextParallel', ONE)),
    // It follows from the launch, so that it is never written.
    alias('world_size', count('world_size', 'gpus')),
  ],
  uncounted: [
    ...['load_in_8bit', 'activation_offloading', 'layer_offloading', 'selective_checkpointing'],
    ...['flash_attention', 'attn_implementation', 'xformers_attention', 'sdp_attention'],
    ...['flex_attention', 'eager_attention', 'torch_compile', 'liger_rope', 'liger_rms_norm'],
    ...['liger_glu_activation', 'liger_fused_linear_cross_entropy', 'liger_layer_norm', 'plugins'],
    ...['cut_cross_entropy', 'chunked_cross_entropy', 'tiled_mlp', 'unfrozen_parameters', 'relora'],
    ...['qat', 'rl', 'trl', 'pad_to_sequence_len', 'lora_modules_to_save', 'peft_use_dora'],
    ...[
      'lora_mlp_kernel',
      'lora_qkv_kernel',
      'lora_o_kernel',
      'auto_find_batch_size',
      'batch_size',
    ],
    ...[
      'gptq',
      'quantize_moe_experts',
      'embedding_lr',
      'lr_groups',
      'val_set_size',
      'lora_dropout',
    ],
    ...['batch_flattening', 'pretraining_dataset', 'tf32', 'gradient_checkpointing_kwargs'],
  ],
  known: [...AXOLOTL_KEYS, ...AXOLOTL_FSDP_KEYS.map((key) => `fsdp_config.${key}`)],
  open: [
    ...['datasets', 'test_datasets', 'pretraining_dataset', 'special_tokens', 'tokens', 'plugins'],
    ...['trl', 'vllm', 'qat', 'quantization', 'peft', 'fsdp_config.mixed_precision_policy', 'ebft'],
    ...['gradient_checkpointing_kwargs', 'lr_scheduler_kwargs', 'bnb_config_kwargs', 'lr_groups'],
    ...['overrides_of_model_config', 'overrides_of_model_kwargs', 'model_config', 'loftq_config'],
    ...['dataloader', 'accelerator_config', 'chat_template_kwargs', 'added_tokens_overrides'],
    ...[
      'llmcompressor',
      'diffusion',
      'kd_trainer',
      'optim_args',
      'rope_scaling',
      'role_boundaries',
    ],
    ...[
      'dynamic_checkpoint',
      'resources_per_worker',
      'model_quantization_config_kwargs',
      'processor_kwargs',
    ],
    ...[
      'torch_compile_options',
      'selective_checkpointing',
      'deepspeed',
      'lora_rank_pattern',
      'max_memory',
    ],
    ...[
      'lora_alpha_pattern',
      'comet_experiment_config',
      'flex_attn_compile_kwargs',
      'swanlab_config',
    ],
  ],
  // HyperparametersConfig and AxolotlInputConfig; the scheduler is that of transformers (cosine in core/builders).
  defaults: {
    kind: 'training',
    microBatch: 1,
    accumulation: 1,
    context: 512,
    epochs: 1,
    optimizer: 'adamw-fused',
    schedule: 'cosine',
    weightDecay: 0,
    rank: 8,
    bf16: true,
    recompute: 'none',
  },
  complete: (run, { pretraining_dataset: pretraining }) => ({
    isFineTuning: pretraining === undefined || pretraining === null,
    // bf16: auto is the default, unless another type is chosen.
    ...(run.fp16 && run.bf16 === undefined && { bf16: false }),
  }),
  recognises: ({ value }) =>
    typeof value.base_model === 'string' &&
    [
      'datasets',
      'sequence_len',
      'micro_batch_size',
      'pretraining_dataset',
      'adapter',
      'num_epochs',
    ].some((key) => Object.hasOwn(value, key)),
};
