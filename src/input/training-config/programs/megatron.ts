/** Arguments of Megatron-LM: a script or a line of arguments, or a YAML file of them. */
import { asText, isRecord } from '../../../base/values.js';
import { MEGATRON_KEYS } from '../megatron-keys.js';
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

/** A flag without a value; its name can be given with `no-` for the opposite. */
const given = (key: string, settings: Partial<TrainingRun>, write?: KeyRow['write']): KeyRow =>
  meaning(key, (value) => (switchOf(value) === false ? {} : settings), write);

const whenTrue = (value: boolean | undefined) => (value ? true : undefined);

const nodes = (document: Readonly<Record<string, unknown>>): number =>
  numberOf(document.nnodes) ?? numberOf(document['num-nodes']) ?? 1;

const perNode = meaning('nproc-per-node', (value, document) => {
  const each = numberOf(value);
  return each === undefined ? undefined : { gpus: each * nodes(document) };
});

const ROWS: readonly KeyRow[] = [
  perNode,
  meaning('nnodes', () => ({})),
  count('micro-batch-size', 'microBatch'),
  count('global-batch-size', 'globalBatch'),
  count('seq-length', 'context'),
  // arguments.py: `if args.train_iters`, `if args.train_samples`.
  count('train-iters', 'steps', { '0': 'the samples decide' }),
  count('train-samples', 'samples', { '0': 'the iterations decide' }),
  amount('lr', 'learningRate'),
  amount('min-lr', 'minLearningRate'),
  meaning(
    'lr-decay-style',
    (value) => (typeof value === 'string' ? { schedule: styleOf(value) } : undefined),
    ({ schedule }) => schedule && DECAY_STYLES[schedule],
  ),
  count('lr-decay-iters', 'scheduleSteps'),
  meaning(
    'lr-wsd-decay-style',
    (value) => {
      const style = asText(value);
      if (style === 'minus_sqrt') return { decayType: '1-sqrt' };
      return style === 'linear' || style === 'cosine' ? { decayType: style } : undefined;
    },
    ({ schedule, decayType }) =>
      schedule !== 'wsd' ? undefined : decayType === '1-sqrt' ? 'minus_sqrt' : decayType,
  ),
  count('lr-wsd-decay-iters', 'decaySteps'),
  amount('lr-warmup-iters', 'warmupSteps'),
  amount('lr-warmup-fraction', 'warmupRatio'),
  amount('weight-decay', 'weightDecay'),
  amount('adam-beta1', 'beta1'),
  amount('adam-beta2', 'beta2'),
  amount('adam-eps', 'epsilon'),
  amount('clip-grad', 'gradientClip'),
  meaning(
    'optimizer',
    (value) =>
      value === 'adam'
        ? { optimizer: 'adamw-fused' }
        : value === 'sgd'
          ? { optimizer: 'sgd' }
          : value === 'muon' || value === 'dist_muon'
            ? { optimizer: 'muon' }
            : undefined,
    ({ optimizer }) =>
      optimizer === 'sgd' ? 'sgd' : optimizer === 'muon' ? 'muon' : optimizer && 'adam',
  ),
  given('bf16', { bf16: true }, ({ bf16 }) => whenTrue(bf16)),
  given('fp16', { fp16: true }, ({ fp16 }) => whenTrue(fp16)),
  meaning(
    'fp8-format',
    (value) => (value ? { fp8: true } : {}),
    ({ fp8 }) => (fp8 ? 'hybrid' : undefined),
  ),
  given('grad-reduce-in-bf16', { float32Gradients: false }),
  given('no-accumulate-allreduce-grads-in-fp32', { float32Gradients: false }),
  count('tensor-model-parallel-size', 'tensorParallel'),
  count('pipeline-model-parallel-size', 'pipelineParallel'),
  count('context-parallel-size', 'contextParallel'),
  count('expert-model-parallel-size', 'expertParallel'),
  count('expert-tensor-parallel-size', 'expertTensorParallel'),
  onOff('sequence-parallel', 'sequenceParallel'),
  given('use-distributed-optimizer', { division: '1' }, ({ division }) =>
    whenTrue(division === '1'),
  ),
  given('use-torch-fsdp2', { division: 'fsdp2' }, ({ division }) =>
    whenTrue(division === 'fsdp2' || division === 'fsdp' || division === '3'),
  ),
  meaning('data-parallel-sharding-strategy', (value) => {
    const stage = { no_shard: '0', optim: '1', optim_grads: '2', optim_grads_params: '3' }[
      asText(value)
    ];
    return stage === undefined ? undefined : { division: stage as '0' };
  }),
  meaning(
    'recompute-granularity',
    (value) => (value === 'full' || value === 'selective' ? { recompute: value } : undefined),
    ({ recompute }) => (recompute === 'full' || recompute === 'selective' ? recompute : undefined),
  ),
  meaning(
    'recompute-method',
    (value) => (typeof value === 'string' ? {} : undefined),
    ({ recompute }) => (recompute === 'full' ? 'uniform' : undefined),
  ),
  // All layers are computed again only where each is a chunk of its own.
  meaning(
    'recompute-num-layers',
    (value) => (numberOf(value) === 1 ? {} : undefined),
    ({ recompute }) => (recompute === 'full' ? 1 : undefined),
  ),
  given('recompute-activations', { recompute: 'selective' }),
  given('optimizer-cpu-offload', { offloadOptimizer: true }, ({ offloadOptimizer }) =>
    whenTrue(offloadOptimizer),
  ),
];

/** Curves of Megatron (optimizer_param_scheduler.py), as schedules of our own. */
const DECAY_STYLES: Readonly<Record<string, string>> = {
  cosine_with_min_lr: 'cosine',
  cosine: 'cosine',
  polynomial: 'linear',
  linear: 'linear',
  constant_with_warmup: 'constant',
  constant: 'constant',
  inverse_sqrt: 'inverse-square-root',
  wsd: 'WSD',
};

const OUR_STYLES: Readonly<Record<string, string>> = {
  cosine: 'cosine_with_min_lr',
  linear: 'polynomial',
  constant: 'constant_with_warmup',
  'inverse-square-root': 'inverse_sqrt',
  wsd: 'wsd',
};

const styleOf = (style: string): string => OUR_STYLES[style.toLowerCase()] ?? style;

/** Sizes of the model (arguments.py: _add_network_size_args, TransformerConfig). */
const SIZES = [
  ...[
    'num-layers',
    'hidden-size',
    'ffn-hidden-size',
    'num-attention-heads',
    'group-query-attention',
  ],
  ...['num-query-groups', 'kv-channels', 'max-position-embeddings', 'position-embedding-type'],
  ...[
    'normalization',
    'swiglu',
    'squared-relu',
    'vocab-size',
    'padded-vocab-size',
    'make-vocab-size-divisible-by',
  ],
  ...['untie-embeddings-and-output-weights', 'disable-bias-linear', 'add-qkv-bias', 'qk-layernorm'],
  ...['rotary-base', 'rotary-percent', 'num-experts', 'moe-router-topk', 'moe-ffn-hidden-size'],
  ...['norm-epsilon', 'use-rotary-position-embeddings', 'tokenizer-type', 'moe-layer-freq'],
  ...[
    'moe-shared-expert-intermediate-size',
    'multi-latent-attention',
    'hybrid-override-pattern',
    'spec',
  ],
  ...['hybrid-layer-pattern', 'is-hybrid-model', 'window-size'],
];

/** Tokens of tokenizers that need no size (GPT-2: 50,257). */
const VOCABULARIES: Readonly<Record<string, number>> = { GPT2BPETokenizer: 50_257 };

function sizesOf(
  document: Readonly<Record<string, unknown>>,
  run: TrainingRun,
): Partial<TrainingRun> {
  const number = (key: string) => numberOf(document[key]);
  const is = (key: string) => document[key] !== undefined && switchOf(document[key]) !== false;
  const [layers, width, heads] = ['num-layers', 'hidden-size', 'num-attention-heads'].map(number);
  if (layers === undefined || width === undefined || heads === undefined) return {};
  // Blocks that are no Transformers of one kind: their own description is needed.
  const isOther = [
    'multi-latent-attention',
    'hybrid-override-pattern',
    'hybrid-layer-pattern',
    'is-hybrid-model',
  ].some(is);
  if (isOther) return {};
  const isGated = is('swiglu');
  const isRms = document.normalization === 'RMSNorm';
  const experts = number('num-experts');
  const headWidth = number('kv-channels') ?? width / heads;
  const vocabulary =
    number('padded-vocab-size') ??
    paddedTo(
      number('vocab-size') ?? VOCABULARIES[asText(document['tokenizer-type'])] ?? 50_257,
      (number('make-vocab-size-divisible-by') ?? 128) * (run.tensorParallel ?? 1),
    );
  const positions = number('max-position-embeddings') ?? run.context;
  const isTied = !is('untie-embeddings-and-output-weights');
  const feedForward =
    number('ffn-hidden-size') ?? (isGated ? Math.trunc((4 * width * 2) / 3 / 64) * 64 : 4 * width);
  if (!isGated && !isRms && experts === undefined) {
    return {
      sizes: {
        model_type: 'gpt2',
        architectures: ['GPT2LMHeadModel'],
        n_layer: layers,
        n_embd: width,
        n_head: heads,
        n_inner: feedForward,
        n_positions: positions,
        vocab_size: vocabulary,
        tie_word_embeddings: isTied,
      },
    };
  }
  const groups = is('group-query-attention') ? (number('num-query-groups') ?? 1) : heads;
  const common = {
    num_hidden_layers: layers,
    hidden_size: width,
    num_attention_heads: heads,
    num_key_value_heads: groups,
    head_dim: headWidth,
    intermediate_size: feedForward,
    vocab_size: vocabulary,
    ...(positions !== undefined && { max_position_embeddings: positions }),
    rope_theta: number('rotary-base') ?? 10_000,
    rms_norm_eps: number('norm-epsilon') ?? 1e-5,
    tie_word_embeddings: isTied,
  };
  if (experts !== undefined) {
    const expertWidth = number('moe-ffn-hidden-size') ?? feedForward;
    return {
      sizes: is('qk-layernorm')
        ? {
            ...common,
            model_type: 'qwen3_moe',
            architectures: ['Qwen3MoeForCausalLM'],
            num_experts: experts,
            num_experts_per_tok: number('moe-router-topk') ?? 2,
            moe_intermediate_size: expertWidth,
          }
        : {
            ...common,
            model_type: 'mixtral',
            architectures: ['MixtralForCausalLM'],
            intermediate_size: expertWidth,
            num_local_experts: experts,
            num_experts_per_tok: number('moe-router-topk') ?? 2,
          },
    };
  }
  if (is('qk-layernorm')) {
    return { sizes: { ...common, model_type: 'qwen3', architectures: ['Qwen3ForCausalLM'] } };
  }
  const hasBias = is('add-qkv-bias');
  return {
    sizes: {
      ...common,
      model_type: hasBias ? 'qwen2' : 'llama',
      architectures: [hasBias ? 'Qwen2ForCausalLM' : 'LlamaForCausalLM'],
    },
  };
}

const paddedTo = (value: number, multiple: number) => Math.ceil(value / multiple) * multiple;

/** Flags of torchrun (torch/distributed/run.py), without a meaning here. */
const TORCHRUN = [
  ...[
    'nproc-per-node',
    'nnodes',
    'node-rank',
    'master-addr',
    'master-port',
    'rdzv-backend',
    'rdzv-endpoint',
  ],
  ...[
    'rdzv-id',
    'rdzv-conf',
    'standalone',
    'max-restarts',
    'monitor-interval',
    'log-dir',
    'tee',
    'redirects',
    'role',
  ],
];

export const MEGATRON: TrainingProgram = {
  title: 'Megatron-LM',
  version: '0.20.0',
  source:
    'NVIDIA/Megatron-LM, commit d98e8a64 (2026-08-22): megatron/training/arguments.py, megatron/training/config, megatron/core/transformer/transformer_config.py',
  rows: ROWS,
  sizes: SIZES,
  uncounted: [
    ...[
      'overlap-grad-reduce',
      'overlap-param-gather',
      'num-layers-per-virtual-pipeline-stage',
      'cp-comm-type',
    ],
    ...[
      'expert-tensor-parallel-size',
      'recompute-modules',
      'fp8-param-gather',
      'attention-backend',
      'use-flash-attn',
    ],
    ...[
      'cross-entropy-loss-fusion',
      'moe-grouped-gemm',
      'moe-token-dispatcher-type',
      'attention-dropout',
    ],
    ...[
      'hidden-dropout',
      'rampup-batch-size',
      'step-batch-size-schedule',
      'lr-warmup-samples',
      'lr-decay-samples',
    ],
    ...[
      'use-megatron-fsdp',
      'use-custom-fsdp',
      'main-grads-dtype',
      'exp-avg-dtype',
      'exp-avg-sq-dtype',
    ],
    ...[
      'use-precision-aware-optimizer',
      'mtp-num-layers',
      'moe-pad-expert-input-to-capacity',
      'cuda-graph-impl',
    ],
    ...[
      'virtual-pipeline-model-parallel-size',
      'num-virtual-stages-per-pipeline-rank',
      'optimizer-offload-fraction',
    ],
  ],
  known: [...MEGATRON_KEYS, ...TORCHRUN],
  open: ['torchrun'],
  // arguments.py: gradients are reduced in float32 with bf16; its Adam is the fused one of Transformer Engine or Apex.
  defaults: {
    kind: 'training',
    accumulation: 1,
    optimizer: 'adamw-fused',
    schedule: 'polynomial',
    weightDecay: 0.01,
    beta1: 0.9,
    beta2: 0.999,
    epsilon: 1e-8,
    gradientClip: 1,
    minLearningRate: 0,
    tensorParallel: 1,
    pipelineParallel: 1,
    division: '0',
    recompute: 'none',
    float32Gradients: true,
  },
  complete: (run, document) => sizesOf(document, run),
  recognises: ({ value }) =>
    isRecord(value) &&
    ['num-layers', 'micro-batch-size', 'tensor-model-parallel-size'].filter((key) =>
      Object.hasOwn(value, key),
    ).length >= 2,
};
