/** The JSON of DeepSpeed. */
import { asText, isRecord } from '../../../base/values.js';
import { DEEPSPEED_KEYS } from '../known-keys.js';
import {
  amount,
  count,
  degree,
  type KeyRow,
  meaning,
  numberOf,
  switchOf,
  type TrainingProgram,
} from '../program.js';
import { settingsIn } from '../settings-in.js';
import type { TrainingRun } from '../training-run.js';
import { optimizerMeaning } from './shared-values.js';

/** `auto` leaves a value to the trainer that reads the file. */
const orAuto = (row: KeyRow): KeyRow => ({
  ...row,
  read: (value, document) => (value === 'auto' ? {} : row.read(value, document)),
});

const DEVICES = ['cpu', 'nvme'];

const offload = (key: string, field: 'offloadOptimizer' | 'offloadParameters'): KeyRow =>
  meaning(
    `zero_optimization.${key}.device`,
    (value) => (DEVICES.includes(asText(value)) ? { [field]: true } : {}),
    (run) => (run[field] ? 'cpu' : undefined),
  );

const enabled = (section: 'bf16' | 'fp16'): KeyRow =>
  orAuto(
    meaning(
      `${section}.enabled`,
      (value) => {
        const isOn = switchOf(value);
        return isOn === undefined ? undefined : { [section]: isOn };
      },
      (run) => (run[section] ? true : undefined),
    ),
  );

/** Names of its schedulers (runtime/lr_schedules.py). */
const SCHEDULERS: Readonly<Record<string, string>> = {
  WarmupLR: 'constant_with_warmup',
  WarmupDecayLR: 'linear',
  WarmupCosineLR: 'cosine',
};

/** Names of its optimizers (ops/adam, runtime/engine.py). */
const OPTIMIZER_TYPES: Readonly<Record<string, string>> = {
  adamw: 'AdamW',
  'adamw-fused': 'AdamW',
  lion: 'Lion',
  muon: 'Muon',
};

/** `[0.9, 0.95]`. */
function betasOf(value: unknown): Partial<TrainingRun> | undefined {
  const [beta1, beta2] = Array.isArray(value) ? value : [];
  return typeof beta1 === 'number' && typeof beta2 === 'number' ? { beta1, beta2 } : undefined;
}

const ROWS: readonly KeyRow[] = [
  orAuto(count('train_batch_size', 'globalBatch')),
  orAuto(count('train_micro_batch_size_per_gpu', 'microBatch')),
  orAuto(count('gradient_accumulation_steps', 'accumulation')),
  meaning(
    'zero_optimization.stage',
    (value) => {
      const stage = numberOf(value);
      return stage !== undefined && [0, 1, 2, 3].includes(stage)
        ? { division: `${stage}` as '0' | '1' | '2' | '3' }
        : undefined;
    },
    ({ division }) =>
      division === undefined ? undefined : /^[0-3]$/.test(division) ? Number(division) : 3,
  ),
  offload('offload_optimizer', 'offloadOptimizer'),
  offload('offload_param', 'offloadParameters'),
  meaning('zero_optimization.cpu_offload', (value) =>
    switchOf(value) ? { offloadOptimizer: true } : {},
  ),
  enabled('bf16'),
  enabled('fp16'),
  orAuto(
    meaning('optimizer.type', optimizerMeaning, ({ optimizer }) =>
      optimizer ? OPTIMIZER_TYPES[optimizer] : undefined,
    ),
  ),
  orAuto(amount('optimizer.params.lr', 'learningRate')),
  orAuto(amount('optimizer.params.eps', 'epsilon')),
  orAuto(amount('optimizer.params.weight_decay', 'weightDecay')),
  orAuto(
    meaning('optimizer.params.betas', betasOf, ({ beta1, beta2 }) =>
      beta1 !== undefined && beta2 !== undefined ? [beta1, beta2] : undefined,
    ),
  ),
  meaning(
    'scheduler.type',
    (value) =>
      Object.hasOwn(SCHEDULERS, asText(value))
        ? { schedule: SCHEDULERS[asText(value)] ?? '' }
        : undefined,
    ({ schedule }) => Object.keys(SCHEDULERS).find((name) => SCHEDULERS[name] === schedule),
  ),
  orAuto(amount('scheduler.params.warmup_num_steps', 'warmupSteps')),
  orAuto(count('scheduler.params.total_num_steps', 'steps')),
  meaning('scheduler.params.warmup_max_lr', (value, { optimizer }) =>
    typeof value === 'number' && !isRecord(optimizer) ? { learningRate: value } : {},
  ),
  orAuto(amount('gradient_clipping', 'gradientClip')),
  meaning(
    'tensor_parallel.autotp_size',
    // runtime/tensor_parallel/config.py: 0 is off.
    count('', 'tensorParallel', { '0': 'off' }).read,
    ({ tensorParallel = 1 }) => (tensorParallel > 1 ? tensorParallel : undefined),
  ),
  degree('sequence_parallel_size', 'contextParallel'),
  degree('pipeline.stages', 'pipelineParallel'),
  meaning('data_types.grad_accum_dtype', (value) =>
    value === 'fp32' ? { float32Gradients: true } : {},
  ),
];

export const DEEPSPEED: TrainingProgram = {
  title: 'DeepSpeed',
  version: '0.19.6',
  source:
    'deepspeedai/DeepSpeed, commit edaa7221 (2026-08-22): deepspeed/runtime/{constants,config,precision_config,lr_schedules}.py, zero/{config,offload_config}.py',
  rows: ROWS,
  uncounted: [
    ...['zero_optimization.zero_hpz_partition_size', 'zero_optimization.zero_quantized_weights'],
    ...['zero_optimization.zero_quantized_gradients', 'zero_optimization.mics_shard_size'],
    ...['zero_optimization.reduce_bucket_size', 'zero_optimization.allgather_bucket_size'],
    ...['zero_optimization.sub_group_size', 'zero_optimization.stage3_max_live_parameters'],
    ...['zero_optimization.stage3_prefetch_bucket_size', 'activation_checkpointing'],
    ...['zero_optimization.offload_optimizer.ratio', 'amp.enabled', 'torch_autocast.enabled'],
    ...['zero_optimization.stage3_param_persistence_threshold', 'compile.deepcompile'],
    ...['pipeline.activation_checkpoint_interval', 'bf16.bf16_optimizer_states'],
    ...['bf16.bf16_master_weights_and_grads', 'fp16.fp16_master_weights_and_grads'],
  ],
  known: DEEPSPEED_KEYS,
  open: [
    ...[
      'activation_checkpointing',
      'aio',
      'flops_profiler',
      'tensorboard',
      'wandb',
      'csv_monitor',
      'comet',
    ],
    ...[
      'comms_logger',
      'autotuning',
      'elasticity',
      'compression_training',
      'data_efficiency',
      'curriculum_learning',
    ],
    ...[
      'sparse_attention',
      'eigenvalue',
      'progressive_layer_drop',
      'quantize_training',
      'nebula',
      'hybrid_engine',
    ],
    ...[
      'checkpoint',
      'data_types',
      'compile',
      'amp',
      'torch_autocast',
      'pipeline',
      'tensor_parallel',
      'datastates_ckpt',
    ],
    ...[
      'zero_optimization.zenflow',
      'zero_optimization.leaf_module',
      'weight_quantization',
      'bfloat16',
      'monitor_config',
    ],
  ],
  defaults: { kind: 'training', division: '0' },
  recognises: ({ value }) =>
    ['zero_optimization', 'train_micro_batch_size_per_gpu', 'zero_allow_untested_optimizer'].some(
      (key) => Object.hasOwn(value, key),
    ) ||
    (Object.hasOwn(value, 'train_batch_size') &&
      ['optimizer', 'fp16', 'bf16', 'gradient_accumulation_steps', 'steps_per_print'].some((key) =>
        Object.hasOwn(value, key),
      )),
};

/** Settings of a config within another one. */
export const deepspeedMeaning = (
  section: Readonly<Record<string, unknown>>,
): Partial<TrainingRun> => settingsIn(section, { rows: ROWS });
