/** torchtitan's TOML, which it reads up to 0.2.2. Later versions have configs in Python, with some keys renamed. */
import { asNumber, asText, isRecord } from '../../../base/values.js';
import { TORCHTITAN_KEYS, TORCHTITAN_NEW_KEYS } from '../known-keys.js';
import {
  amount,
  count,
  type KeyRow,
  meaning,
  numberOf,
  onOff,
  switchOf,
  type TrainingProgram,
} from '../program.js';
import type { TrainingRun } from '../training-run.js';

/** Published models by name and flavor (torchtitan/models/NAME/__init__.py); a flavor can have a suffix for its kernels. */
const FLAVORS: Readonly<Record<string, string>> = {
  'llama3/8b': 'meta-llama/Llama-3.1-8B',
  'llama3/70b': 'meta-llama/Llama-3.1-70B',
  'llama3/405b': 'meta-llama/Llama-3.1-405B',
  'llama4/17bx16e': 'meta-llama/Llama-4-Scout-17B-16E',
  'llama4/17bx128e': 'meta-llama/Llama-4-Maverick-17B-128E',
  'deepseek_v3/16b': 'deepseek-ai/deepseek-moe-16b-base',
  'deepseek_v3/236b': 'deepseek-ai/DeepSeek-V2',
  'deepseek_v3/671b': 'deepseek-ai/DeepSeek-V3',
  'qwen3/0.6b': 'Qwen/Qwen3-0.6B',
  'qwen3/1.7b': 'Qwen/Qwen3-1.7B',
  'qwen3/4b': 'Qwen/Qwen3-4B',
  'qwen3/8b': 'Qwen/Qwen3-8B',
  'qwen3/14b': 'Qwen/Qwen3-14B',
  'qwen3/32b': 'Qwen/Qwen3-32B',
  'qwen3/30b-a3b': 'Qwen/Qwen3-30B-A3B',
  'qwen3/235b-a22b': 'Qwen/Qwen3-235B-A22B',
  'gpt_oss/20b': 'openai/gpt-oss-20b',
  'gpt_oss/120b': 'openai/gpt-oss-120b',
};

/** Sizes of the models that have no publisher. Llama rounds the feed-forward width up to a multiple of 256 (model.py). */
const DEBUG_MODELS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
  llama3: {
    model_type: 'llama',
    architectures: ['LlamaForCausalLM'],
    hidden_size: 256,
    num_hidden_layers: 6,
    num_attention_heads: 16,
    num_key_value_heads: 16,
    intermediate_size: 768,
    vocab_size: 2048,
    max_position_embeddings: 131_072,
    rope_theta: 500_000,
    rms_norm_eps: 1e-5,
    tie_word_embeddings: false,
  },
  qwen3: {
    model_type: 'qwen3',
    architectures: ['Qwen3ForCausalLM'],
    hidden_size: 256,
    num_hidden_layers: 8,
    num_attention_heads: 16,
    num_key_value_heads: 8,
    head_dim: 128,
    intermediate_size: 3072,
    vocab_size: 2048,
    max_position_embeddings: 4096,
    rope_theta: 1_000_000,
    rms_norm_eps: 1e-6,
    tie_word_embeddings: true,
  },
};

/** Flavor of a published model, in the table above. */
function flavorOf(model: string | undefined): { name: string; flavor: string } | undefined {
  if (model === undefined) return undefined;
  const found = Object.entries(FLAVORS).find(
    ([, repository]) => repository.toLowerCase() === model.toLowerCase(),
  );
  const [name = '', flavor = ''] = found?.[0].split('/') ?? [];
  if (found === undefined) return undefined;
  // Flavors of Llama 3, DeepSeek and Qwen 3 are in capitals.
  return { name, flavor: /^(?:llama4|gpt_oss)$/.test(name) ? flavor : flavor.toUpperCase() };
}

const modelRow = (key: 'name' | 'flavor'): KeyRow =>
  meaning(
    `model.${key}`,
    (_, { model }) => modelMeaning(model),
    (run) => flavorOf(run.model)?.[key],
  );

function modelMeaning(model: unknown): Partial<TrainingRun> | undefined {
  if (!isRecord(model)) return undefined;
  const name = asText(model.name ?? '').toLowerCase();
  const flavor = asText(model.flavor ?? '').toLowerCase();
  if (flavor === '') return {};
  if (flavor.startsWith('debugmodel') && !flavor.includes('moe')) {
    const sizes = DEBUG_MODELS[name];
    return sizes && Object.hasOwn(DEBUG_MODELS, name) ? { sizes } : undefined;
  }
  const repository = FLAVORS[`${name}/${flavor.split('_')[0]}`];
  return repository === undefined ? undefined : { model: repository };
}

const FULL_TYPES: Readonly<Record<string, Partial<TrainingRun>>> = {
  bfloat16: { bf16: true, pureBf16: true },
  float32: {},
};

/** Whether a value is a degree of parallelism (parallel_dims.py: `d >= 1`). */
const isDegree = (value: unknown): boolean =>
  Number.isSafeInteger(numberOf(value)) && asNumber(value) >= 1;

/** A key that newer versions call otherwise. */
const newer = (key: string, read: KeyRow['read']): KeyRow => ({ key, read });

const ROWS: readonly KeyRow[] = [
  modelRow('name'),
  modelRow('flavor'),
  // The folder of the tokenizer and weights, `./assets/hf/Llama-3.1-8B`: used where the flavor is none of the table.
  meaning('model.hf_assets_path', () => ({})),
  meaning(
    'optimizer.name',
    (value) => (value === 'AdamW' || value === 'Adam' ? { optimizer: 'adamw' } : undefined),
    ({ optimizer }) => (optimizer === 'adamw' || optimizer === 'adamw-fused' ? 'AdamW' : undefined),
  ),
  amount('optimizer.lr', 'learningRate'),
  amount('optimizer.beta1', 'beta1'),
  amount('optimizer.beta2', 'beta2'),
  amount('optimizer.eps', 'epsilon'),
  amount('optimizer.weight_decay', 'weightDecay'),
  meaning(
    'optimizer.implementation',
    (value) =>
      value === 'fused'
        ? { optimizer: 'adamw-fused' }
        : value === 'foreach' || value === 'for-loop'
          ? { optimizer: 'adamw' }
          : undefined,
    ({ optimizer }) =>
      optimizer === 'adamw-fused' ? 'fused' : optimizer === 'adamw' ? 'foreach' : undefined,
  ),
  amount('lr_scheduler.warmup_steps', 'warmupSteps'),
  count('lr_scheduler.total_steps', 'scheduleSteps'),
  amount('lr_scheduler.decay_ratio', 'decayRatio'),
  meaning(
    'lr_scheduler.decay_type',
    (value) => {
      if (typeof value !== 'string') return undefined;
      return { decayType: value === 'sqrt' ? '1-sqrt' : value };
    },
    ({ decayType }) => (decayType === '1-sqrt' ? 'sqrt' : decayType),
  ),
  amount('lr_scheduler.min_lr_factor', 'minLearningRateRatio'),
  count('training.local_batch_size', 'microBatch'),
  // trainer.py: below 0 it is the local batch of all replicas.
  count('training.global_batch_size', 'globalBatch', { '-1': 'the local batch decides' }),
  count('training.seq_len', 'context'),
  amount('training.max_norm', 'gradientClip'),
  count('training.steps', 'steps'),
  meaning(
    'training.enable_cpu_offload',
    (value) => {
      const isOn = switchOf(value);
      return isOn === undefined
        ? undefined
        : isOn
          ? { offloadOptimizer: true, offloadParameters: true }
          : {};
    },
    ({ offloadParameters }) => (offloadParameters ? true : undefined),
  ),
  meaning(
    'training.dtype',
    (value) => (Object.hasOwn(FULL_TYPES, asText(value)) ? FULL_TYPES[asText(value)] : undefined),
    ({ pureBf16 }) => (pureBf16 ? 'bfloat16' : undefined),
  ),
  meaning(
    'training.mixed_precision_param',
    (value) =>
      value === 'bfloat16' ? { bf16: true } : value === 'float32' ? { bf16: false } : undefined,
    ({ bf16 }) => (bf16 === false ? 'float32' : bf16 ? 'bfloat16' : undefined),
  ),
  {
    key: 'parallelism.data_parallel_replicate_degree',
    read(value) {
      if (!isDegree(value)) return undefined;
      return asNumber(value) > 1 ? { division: 'hsdp' } : {};
    },
    expected: 'an integer of at least 1',
  },
  {
    key: 'parallelism.data_parallel_shard_degree',
    left: { '-1': 'all other GPUs' },
    read(value) {
      const degree = numberOf(value);
      if (degree === -1) return {};
      if (degree === undefined || !isDegree(value)) return undefined;
      return degree === 1 ? { division: '0' } : { dataParallel: degree };
    },
    // parallel_dims.py: dp_shard == -1 or dp_shard >= 1.
    expected: '-1 for all other GPUs, or an integer of at least 1',
    write: ({ division }) => (division === '0' ? 1 : -1),
  },
  meaning(
    'parallelism.fsdp_reshard_after_forward',
    (value) => (value === 'never' ? { division: '2' } : typeof value === 'string' ? {} : undefined),
    ({ division }) => (division === '2' ? 'never' : undefined),
  ),
  count('parallelism.tensor_parallel_degree', 'tensorParallel'),
  count('parallelism.pipeline_parallel_degree', 'pipelineParallel'),
  count('parallelism.context_parallel_degree', 'contextParallel'),
  count('parallelism.expert_parallel_degree', 'expertParallel'),
  count('parallelism.expert_tensor_parallel_degree', 'expertTensorParallel'),
  newer('parallelism.enable_sequence_parallel', onOff('', 'sequenceParallel').read),
  meaning(
    'activation_checkpoint.mode',
    (value, { activation_checkpoint: section }) => {
      if (value === 'none' || value === 'full') return { recompute: value };
      if (value !== 'selective') return undefined;
      const option = isRecord(section) ? (section.selective_ac_option ?? '2') : '2';
      // A whole number keeps every second block or so, which no setting here has.
      return option === 'op' ? { recompute: 'operations' } : undefined;
    },
    ({ recompute }) =>
      recompute === 'operations'
        ? 'selective'
        : recompute === 'full'
          ? 'full'
          : recompute && 'none',
  ),
  meaning(
    'activation_checkpoint.selective_ac_option',
    () => ({}),
    ({ recompute }) => (recompute === 'operations' ? 'op' : undefined),
  ),
  meaning('quantize.linear.float8', (value) => (isRecord(value) ? {} : undefined)),
  newer('training.max_context_length', count('', 'context').read),
  newer('training.num_tokens_per_microbatch_per_dp_rank', (value, { training }) => {
    const [tokens, context] = [
      numberOf(value),
      isRecord(training) && numberOf(training.max_context_length),
    ];
    return tokens && context && tokens % context === 0
      ? { microBatch: tokens / context }
      : undefined;
  }),
  newer('training.num_tokens_per_train_step', (value, { training }) => {
    // trainer.py: below 0 it is the tokens of a micro-batch of all replicas.
    if (asNumber(value) < 0) return {};
    const [tokens, context] = [
      numberOf(value),
      isRecord(training) && numberOf(training.max_context_length),
    ];
    return tokens && context && tokens % context === 0
      ? { globalBatch: tokens / context }
      : undefined;
  }),
];

/** Whether converters turn products into FP8. */
const isFp8 = ({ model }: Readonly<Record<string, unknown>>): boolean =>
  isRecord(model) &&
  Array.isArray(model.converters) &&
  model.converters.some((each) => /float8/.test(asText(each)));

export const TORCHTITAN: TrainingProgram = {
  title: 'torchtitan',
  version: '0.2.2',
  source:
    'pytorch/torchtitan, tag v0.2.2: torchtitan/config/job_config.py, models/*/__init__.py; newer keys: commit b5bcd76c (2026-08-21), torchtitan/config/configs.py',
  rows: ROWS,
  uncounted: [
    ...[
      'compile.enable',
      'compile.components',
      'parallelism.pipeline_parallel_schedule',
      'model.converters',
    ],
    ...['parallelism.enable_async_tensor_parallel', 'parallelism.disable_loss_parallel'],
    'parallelism.pipeline_parallel_microbatch_size',
    ...[
      'optimizer.early_step_in_backward',
      'training.mixed_precision_reduce',
      'activation_checkpoint.memory_budget',
    ],
    ...['parallelism.pipeline_parallel_layers_per_stage', 'parallelism.module_fqns_per_model_part'],
  ],
  known: [...TORCHTITAN_KEYS, ...TORCHTITAN_NEW_KEYS],
  open: [
    'quantize',
    'training.dataloader',
    'validation.dataloader',
    'experimental',
    'comm',
    'fault_tolerance',
    'float8',
    'mx',
    'checkpoint.exclude_from_loading',
  ],
  // job_config.py; FSDP is on unless its degree is 1 (data_parallel_shard_degree = -1), and always the second version.
  defaults: {
    kind: 'training',
    microBatch: 8,
    accumulation: 1,
    context: 2048,
    steps: 10_000,
    gradientClip: 1,
    learningRate: 8e-4,
    beta1: 0.9,
    beta2: 0.95,
    epsilon: 1e-8,
    weightDecay: 0.1,
    optimizer: 'adamw-fused',
    schedule: 'torchtitan',
    warmupSteps: 200,
    decayType: 'linear',
    minLearningRateRatio: 0,
    bf16: true,
    division: 'fsdp2',
    recompute: 'none',
    tensorParallel: 1,
    pipelineParallel: 1,
  },
  complete: (run, document) => ({
    ...(isFp8(document) && { fp8: true }),
    // A longer warm-up than the run is cut (components/lr_scheduler.py).
    ...(run.warmupSteps === undefined && { warmupSteps: Math.min(200, run.steps ?? 10_000) }),
    // Each expert is whole on a GPU unless it says otherwise (job_config.py: expert_tensor_parallel_degree = 1).
    ...((run.expertParallel ?? 1) > 1 &&
      run.expertTensorParallel === undefined && { expertTensorParallel: 1 }),
    // Its tensor parallelism always splits the residual stream (models/llama3/infra/parallelize.py).
    ...((run.tensorParallel ?? 1) > 1 &&
      run.sequenceParallel === undefined && { sequenceParallel: true }),
    // Without a ratio, all steps after the warm-up decay (components/lr_scheduler.py).
    ...(run.decayRatio === undefined &&
      run.steps !== undefined && {
        decaySteps: Math.max(0, run.steps - (run.warmupSteps ?? 200)),
      }),
  }),
  recognises: ({ value }) =>
    (isRecord(value.model) && Object.hasOwn(value.model, 'flavor')) ||
    (isRecord(value.training) &&
      isRecord(value.parallelism) &&
      ['local_batch_size', 'seq_len', 'num_tokens_per_microbatch_per_dp_rank'].some((key) =>
        Object.hasOwn(value.training as object, key),
      )),
};
