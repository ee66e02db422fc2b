/**
 * Hybrid language model: every block has a Mamba branch with a Shared Relative Time Encoding (SRTE) and an
 * attention branch with local and global heads. The branches are aligned, gated and fused.
 * Names, shapes and order follow the original PyTorch state dict.
 */
import * as z from 'zod';
import type { Confusion, DocumentRule } from '../../../base/errors.js';
import { commandText } from '../../../base/text/setting.js';
import { hybridAttention } from '../constructors/attention-layers.js';
import {
  alignment,
  blockNames,
  embedding,
  gate,
  geluNetwork,
  head,
  languageModel,
  layerNormLayer,
  linear,
  stack,
} from '../constructors/basic-layers.js';
import { mambaLayer } from '../constructors/recurrent-layers.js';
import { rememberedBlocks } from '../constructors/remembered-blocks.js';
import {
  defineFamily,
  type ModelChange,
  type ProxyBounds,
  type ProxySetting,
  type Setting,
} from '../family.js';
import type { HeadSpan, HybridBlock, LanguageModel, Srte } from '../layer.js';
import { buffer, param } from '../param.js';
import { TRAINING_SECTIONS, trainingHints } from '../training-section.js';
import { readOff } from './hybrid-reading.js';

// Fixed in the original code, not configurable.
const MAMBA_EXPANSION = 2;
const MAMBA_STATE = 64;
const MAMBA_KERNEL = 4;
const MAMBA_STEP_DIVISOR = 16;
const MLP_EXPANSION = 4;
const ROTARY_BASE = 10_000;
/** Rows of the cached RoPE tables, independent of the configuration. */
const ROTARY_POSITIONS = 65_536;
/** Norms inside a block ignore `layer_norm_eps`, which only the final norm uses. */
const BLOCK_NORM_EPS = 1e-5;
/** Window of the first layer of a pyramid; the last has `window_size`. */
const PYRAMID_BASE_WINDOW = 512;

const count = z.int().min(1);
const amount = z.number().min(0);
const probability = z.number().min(0).lt(1);

const model = z
  .strictObject({
    family: z.literal('hybrid').default('hybrid').describe('The kind of model'),
    vocab_size: count.default(50432).describe('Rows of the embedding and of the head'),
    hidden_size: count.default(4096).describe('Width of the residual stream'),
    num_layers: count.default(32).describe('Number of blocks'),
    num_heads: count
      .default(32)
      .describe('Attention heads; hidden_size / num_heads, rounded down, must be even'),
    window_size: count
      .default(1024)
      .describe('Window of the local heads: a position sees window_size // 2 keys before it'),
    global_heads: z
      .int()
      .min(0)
      .default(2)
      .describe('The last this many heads see everything before them'),
    gate_rank: count.default(256).describe('Rank of the gate, at most hidden_size // 2'),
    max_position_embeddings: count.default(65536).describe('Rows of the SRTE table: longest input'),
    layer_norm_eps: z
      .number()
      .positive()
      .default(1e-5)
      .describe('Epsilon of the final norm; norms inside a block always use 1e-5'),
    dropout: probability.default(0.1).describe('Training only'),
    drop_branch_prob: probability.default(0.1).describe('Training only'),
    attention_type: z
      .enum(['local_global', 'pyramidal'])
      .default('local_global')
      .describe('pyramidal: windows go from 512 in the first layer to window_size in the last'),
    srte_encoding: z
      .enum(['learnable', 'sincos'])
      .default('learnable')
      .describe('A learned table, or sines and cosines without parameters'),
    srte_share_across_layers: z
      .boolean()
      .default(true)
      .describe('One SRTE for all layers, or one for each'),
    srte_factorized_rank: z
      .int()
      .min(0)
      .default(0)
      .describe('Learnable only: rank of the table; 0, or hidden_size and more, is the full table'),
    use_alignment: z.boolean().default(true).describe('Learned alignment of the two branches'),
    tie_word_embeddings: z.boolean().default(false).describe('The head reads the embedding'),
    load_balance_coeff: amount.default(0.1).describe('Training only'),
    entropy_reg_coeff: amount.default(1e-4).describe('Training only'),
    use_cache: z.boolean().default(true),
    pad_token_id: z.int().min(0).default(0),
    bos_token_id: z.int().min(0).default(1),
    eos_token_id: z.int().min(0).default(2),
  })
  .describe('The model itself');

const schema = z.looseObject({
  model,
  ...TRAINING_SECTIONS,
});

type HybridDocument = z.output<typeof schema>;
export type HybridConfig = HybridDocument['model'];

// ── Building from a configuration ────────────────────────────────────────────────────────────────

/** Rank of the SRTE's low-rank form; undefined for the full table or no table. */
export function srteRank(
  config: Pick<HybridConfig, 'srte_encoding' | 'srte_factorized_rank' | 'hidden_size'>,
): number | undefined {
  const { srte_encoding, srte_factorized_rank: rank, hidden_size } = config;
  return srte_encoding === 'learnable' && rank > 0 && rank < hidden_size ? rank : undefined;
}

/** Window of the local heads of layer `index`. */
function windowOf(config: HybridConfig, index: number): number {
  const { attention_type, window_size, num_layers } = config;
  switch (attention_type) {
    case 'local_global':
      return window_size;
    case 'pyramidal':
      return Math.trunc(
        PYRAMID_BASE_WINDOW +
          ((window_size - PYRAMID_BASE_WINDOW) * index) / Math.max(1, num_layers - 1),
      );
  }
}

function headSpans(config: HybridConfig, layer: number): HeadSpan[] {
  const window = { rule: 'local', tokens: windowOf(config, layer) } as const;
  const globalHeads = Math.min(config.global_heads, config.num_heads);
  const localHeads = config.num_heads - globalHeads;
  return [
    { heads: localHeads, window },
    { heads: globalHeads, window: undefined },
  ].filter(({ heads }) => heads > 0);
}

/** @param mounts Paths of the layers that share it. */
function srte(name: string, config: HybridConfig, mounts: readonly string[] = []): Srte {
  const { hidden_size: hidden, max_position_embeddings: rows, srte_encoding } = config;
  const named = (leaf: string) => mounts.map((mount) => `${mount}.${leaf}`);
  const base = { name, component: 'srte' } as const;
  if (srte_encoding === 'sincos') {
    const inverseFrequencies = buffer(`${name}.inv_freq`, [hidden / 2], {
      aliases: named('inv_freq'),
    });
    return { kind: 'srteSincos', ...base, inverseFrequencies };
  }
  const rank = srteRank(config);
  if (rank === undefined) {
    const table = param(`${name}.freqs`, [1, rows, hidden], named('freqs'));
    return { kind: 'srteTable', ...base, table };
  }
  return {
    kind: 'srteLowRank',
    ...base,
    lowRank: param(`${name}.lowrank`, [1, rows, rank], named('lowrank')),
    projection: linear(`${name}.proj`, rank, hidden, { bias: false, aliases: named('proj') }),
  };
}

function block(
  name: string,
  index: number,
  config: HybridConfig,
  sharedSrte: Srte | undefined,
): HybridBlock {
  const { hidden_size: hidden, num_heads: heads, gate_rank, use_alignment } = config;
  return {
    kind: 'hybridBlock',
    name,
    inputNorm: layerNormLayer(`${name}.ln_input`, hidden, BLOCK_NORM_EPS),
    mamba: mambaLayer(
      `${name}.mamba`,
      {
        hidden,
        inner: MAMBA_EXPANSION * hidden,
        state: MAMBA_STATE,
        kernel: MAMBA_KERNEL,
        stepRank: Math.ceil(hidden / MAMBA_STEP_DIVISOR),
      },
      { doubledStepBias: true },
    ),
    attention: hybridAttention(`${name}.attention`, {
      hidden,
      heads,
      spans: headSpans(config, index),
      rotaryBase: ROTARY_BASE,
      rotaryPositions: ROTARY_POSITIONS,
    }),
    srte: sharedSrte ?? srte(`${name}.srte`, config),
    alignment: use_alignment ? alignment(`${name}.alignment`, hidden) : undefined,
    gate: gate(`${name}.gate`, hidden, Math.min(gate_rank, Math.floor(hidden / 2))),
    fusion: linear(`${name}.fusion_proj`, hidden, hidden, { component: 'fusion' }),
    mlp: geluNetwork(`${name}.small_mlp`, [hidden, MLP_EXPANSION * hidden, hidden], 'mlp'),
    outputNorm: layerNormLayer(`${name}.ln_output`, hidden, BLOCK_NORM_EPS),
  };
}

function build({ model: config }: HybridDocument): LanguageModel {
  const { vocab_size: vocabulary, hidden_size: hidden, tie_word_embeddings: tied } = config;
  const names = blockNames('layers', config.num_layers, 'model.num_layers');
  const tokens = embedding('embed_tokens', vocabulary, hidden, tied ? ['lm_head.weight'] : []);
  return languageModel({
    embedding: tokens,
    ...rememberedBlocks(config, () => {
      const shared = config.srte_share_across_layers
        ? srte(
            'shared_srte',
            config,
            names.map((name) => `${name}.srte`),
          )
        : undefined;
      const make = (name: string, index: number) => block(name, index, config, shared);
      return {
        shared: shared ? [shared] : [],
        blocks: stack(names, 'model.num_layers', make),
      };
    }),
    norm: layerNormLayer('norm', hidden, config.layer_norm_eps),
    head: head('lm_head', hidden, vocabulary, { tiedTo: tied ? tokens : undefined }),
    positions: config.max_position_embeddings,
  });
}

/** Settings of a changed model: its whole SRTE and its tying. */
function settingsFor({ srte: layout, tied }: ModelChange): Setting[] {
  const settings: Partial<HybridConfig> = {
    ...(layout && {
      max_position_embeddings: layout.positions,
      srte_encoding: layout.form === 'sincos' ? 'sincos' : 'learnable',
      srte_share_across_layers: layout.sharing === 'shared',
      srte_factorized_rank: layout.rank ?? 0,
    }),
    ...(tied !== undefined && { tie_word_embeddings: tied }),
  };
  return Object.entries(settings).map(([key, value]) => ({ path: `model.${key}`, value }));
}

// ── Rules ────────────────────────────────────────────────────────────────────────────────────────

const rules: readonly DocumentRule<HybridDocument>[] = [
  {
    severity: 'error',
    reads: ['model.num_heads', 'model.hidden_size'],
    check: ({ model: { num_heads, hidden_size } }) => {
      const width = hybridHeadDim({ num_heads, hidden_size });
      if (width > 0 && width % 2 === 0) return undefined;
      return {
        message:
          hidden_size % num_heads === 0
            ? `a head would be ${width} wide (hidden_size ${hidden_size} / ${num_heads} heads), but RoPE rotates pairs: the width must be even`
            : `${num_heads} heads do not divide hidden_size ${hidden_size}`,
        suggestion: `write ${nearestHeads(num_heads, hidden_size)}`,
      };
    },
  },
  {
    severity: 'warning',
    reads: ['model.num_heads', 'model.hidden_size'],
    check: ({ model: { num_heads, hidden_size } }) => {
      const width = hybridHeadDim({ num_heads, hidden_size });
      if (hidden_size % num_heads === 0 || width === 0 || width % 2 === 1) return undefined;
      return {
        message: `${num_heads} heads do not divide hidden_size ${hidden_size}: a head has ${width} dimensions`,
        suggestion: `write ${nearestHeads(num_heads, hidden_size)}`,
      };
    },
  },
  {
    severity: 'warning',
    reads: ['model.srte_factorized_rank', 'model.hidden_size', 'model.srte_encoding'],
    check: ({ model: { srte_factorized_rank: rank, hidden_size, srte_encoding } }) =>
      srte_encoding === 'learnable' && rank >= hidden_size
        ? {
            message: `rank ${rank} is not below hidden_size ${hidden_size}: the full table will be built`,
            suggestion: 'write a rank well below hidden_size, or 0 for the full table',
          }
        : undefined,
  },
  {
    severity: 'warning',
    reads: ['model.srte_factorized_rank', 'model.srte_encoding'],
    check: ({ model: { srte_factorized_rank: rank, srte_encoding } }) =>
      srte_encoding === 'sincos' && rank > 0
        ? {
            message: `rank ${rank} has no effect: a sincos SRTE has no table to factorise`,
            suggestion: 'remove it, or write srte_encoding: learnable',
          }
        : undefined,
  },
  {
    severity: 'warning',
    reads: ['model.global_heads', 'model.num_heads'],
    check: ({ model: { global_heads, num_heads } }) =>
      global_heads > num_heads
        ? {
            message: `${global_heads} global heads are more than the ${num_heads} heads there are: all heads will be global`,
            suggestion: `write at most ${num_heads}`,
          }
        : undefined,
  },
  {
    severity: 'warning',
    reads: ['model.gate_rank', 'model.hidden_size'],
    check: ({ model: { gate_rank, hidden_size } }) => {
      const largest = Math.floor(hidden_size / 2);
      return gate_rank > largest
        ? {
            message: `gate rank ${gate_rank} is more than half of hidden_size ${hidden_size}: ${largest} will be used`,
            suggestion: `write at most ${largest}`,
          }
        : undefined;
    },
  },
  {
    severity: 'error',
    reads: ['training.max_seq_length', 'model.max_position_embeddings'],
    check: ({ model: { max_position_embeddings: rows }, training }) =>
      training?.max_seq_length !== undefined && training.max_seq_length > rows
        ? {
            message: `sequences of ${training.max_seq_length} tokens are longer than max_position_embeddings ${rows}`,
            suggestion: `write at most ${rows}, or raise model.max_position_embeddings`,
          }
        : undefined,
  },
  ...(['pad_token_id', 'bos_token_id', 'eos_token_id'] as const).map(
    (key): DocumentRule<HybridDocument> => ({
      severity: 'warning',
      reads: [`model.${key}`, 'model.vocab_size'],
      check: ({ model: config }) =>
        config[key] >= config.vocab_size
          ? {
              message: `token ${config[key]} is outside a vocabulary of ${config.vocab_size}`,
              suggestion: `write at most ${config.vocab_size - 1}`,
            }
          : undefined,
    }),
  ),
];

/** Width of a head, rounded down as in the original. */
const hybridHeadDim = ({
  num_heads,
  hidden_size,
}: Pick<HybridConfig, 'num_heads' | 'hidden_size'>) => Math.floor(hidden_size / num_heads);

/** Number of heads nearest to `wanted` that divides `hidden` into heads of even width. */
function nearestHeads(wanted: number, hidden: number): string {
  if (hidden % 2 === 1) return 'an even hidden_size';
  const fits = (heads: number) => heads >= 1 && (hidden / heads) % 2 === 0;
  // One head always fits, so the search ends; a distant divisor is not a useful suggestion.
  for (let step = 0; step < 4096; step++) {
    if (fits(wanted - step)) return `num_heads: ${wanted - step}`;
    if (fits(wanted + step)) return `num_heads: ${wanted + step}`;
  }
  return 'a num_heads that divides hidden_size / 2';
}

/** Keys of other configuration formats without an equivalent here. */
const KEYS_WITHOUT_EQUIVALENT = {
  intermediate_size: 'the feed-forward width is fixed at 4 · hidden_size',
  rms_norm_eps: 'the norms are LayerNorms; layer_norm_eps is the epsilon of the final one',
  num_key_value_heads: 'every attention head has its own keys and values',
  head_dim: 'the width of a head is hidden_size / num_heads, rounded down',
  rope_theta: 'the base of RoPE is fixed at 10000',
} as const satisfies Record<string, string>;

const confusions: readonly Confusion[] = [
  {
    path: 'model.srte_encoding',
    value: 'factorized',
    message: 'unknown encoding "factorized": a factorized SRTE is a learnable one with a rank',
    suggestion: 'write srte_encoding: learnable and srte_factorized_rank: 128',
  },
  {
    path: 'model.srte_encoding',
    value: 'sinusoidal',
    message: '"sinusoidal" is spelled differently here',
    suggestion: 'write srte_encoding: sincos',
  },
  ...Object.entries(KEYS_WITHOUT_EQUIVALENT).map(([key, why]) => ({
    path: `model.${key}`,
    message: `${key} has no equivalent in this model: ${why}`,
    suggestion:
      'write the family that reads it, as family: minimind, or leave the line out of a hybrid',
  })),
  ...Object.keys(model.shape).map((key) => ({
    path: key,
    message: `${key} is at the top level, where nothing reads it`,
    suggestion: 'move it under model:',
  })),
  {
    path: 'model_type',
    message: 'this looks like a config.json of Hugging Face, not like a config of this family',
    get suggestion() {
      return `write the sizes under model: with the keys that ${commandText('schema')} shows`;
    },
  },
];

// ── A smaller model of the same structure ────────────────────────────────────────────────────────

const PROXY = { hidden: 256, layers: 4, vocabulary: 1024, positions: 2048 } as const;

/** Keeps the number of heads and narrows them; ranks scale with the width. */
function scaledDownProxy(
  { model: config }: HybridDocument,
  tokens: number,
  { width = PROXY.hidden, layers = PROXY.layers }: ProxyBounds = {},
): ProxySetting[] {
  const { num_heads, hidden_size } = config;
  const headDim = Math.min(
    hybridHeadDim(config),
    Math.max(2, 2 * Math.floor(width / num_heads / 2)),
  );
  const hidden = num_heads * headDim;
  const inProportion = (rank: number) =>
    Math.min(rank, Math.max(1, Math.round((rank * hidden) / hidden_size)));
  const smaller = {
    hidden_size: hidden,
    num_layers: Math.min(config.num_layers, layers),
    vocab_size: Math.min(config.vocab_size, PROXY.vocabulary),
    max_position_embeddings: Math.min(
      config.max_position_embeddings,
      Math.max(tokens, PROXY.positions),
    ),
    // Keeps the window shorter than the context.
    window_size: Math.min(config.window_size, Math.max(1, Math.floor(tokens / 2))),
    gate_rank: inProportion(config.gate_rank),
    srte_factorized_rank: inProportion(config.srte_factorized_rank),
  } satisfies Partial<HybridConfig>;
  return Object.entries(smaller).map(([key, value]) => ({ path: `model.${key}`, value }));
}

export const hybrid = defineFamily({
  name: 'hybrid',
  title: 'Mamba with local and global attention, and an SRTE',
  architecture: 'hybrid',
  schema,
  rules,
  confusions,
  build,
  readOff,
  settingsFor,
  scaledDownProxy,
  dimensions: {
    vocabulary: 'vocab_size',
    positions: 'max_position_embeddings',
    depth: 'num_layers',
    width: 'hidden_size',
    heads: 'num_heads',
    rank: { key: 'srte_factorized_rank', choices: [32, 64, 128, 256] },
    // 256 of 4096 by default.
    follows: (width) => ({ gate_rank: Math.ceil(width / 16) }),
  },
  trainingHints,
});
