/** Layers that transformer families share. */
import type { AttentionParts } from '../constructors/attention-layers.js';
import { attention, rotary } from '../constructors/attention-layers.js';
import {
  activation,
  blockNames,
  embedding,
  fusedProjection,
  head,
  languageModel,
  linear,
  normedProjection,
  residual,
  scale,
  sequence,
  stack,
  sum,
} from '../constructors/basic-layers.js';
import {
  gatedMlp,
  mixtureOfExperts,
  packedExperts,
  router,
} from '../constructors/feed-forward-layers.js';
import { type BlockSettings, rememberedBlocks } from '../constructors/remembered-blocks.js';
import type {
  ActivationName,
  Attention,
  Component,
  Embedding,
  GatedMlp,
  GateLimits,
  LanguageModel,
  Layer,
  Linear,
  MixtureOfExperts,
  NormLayer,
  Residual,
  RmsNorm,
  Rotary,
  Sequence,
} from '../layer.js';
import { checkNames } from '../param.js';
import type { RopeScaling } from './rotary.js';
import { longestInput, scalingOf } from './rotary.js';
import type { FilledHeads } from './settings.js';
import { type ActivationWord, activationOf, headPath, isComposed } from './settings.js';

export interface CausalModel {
  readonly vocabulary: number;
  readonly hidden: number;
  /** Rows of the embedding, if they are not those of the vocabulary. */
  readonly embeddingRows?: number;
  /** Width of the embedding, if it differs from `hidden`. */
  readonly embeddingWidth?: number;
  readonly positions: number;
  readonly tied: boolean;
  readonly headBias?: boolean;
  /** Paths of the embedding, the list of blocks, and the head. */
  readonly paths: { readonly embedding: string; readonly blocks: string; readonly head: string };
  readonly blocks: number;
  /** Key of the number of blocks. */
  readonly blocksKey: string;
  /** @param shared Layers from `shared`. */
  readonly block: (
    name: string,
    index: number,
    shared: readonly Layer[],
    tokens: Embedding,
  ) => Layer;
  /** Layers that several blocks use, and that may read the embedding. */
  readonly shared?: (tokens: Embedding) => readonly Layer[];
  readonly norm: LanguageModel['norm'];
  readonly embeddingSteps?: readonly Layer[];
  readonly logitSteps?: readonly Layer[];
  /** Settings that decide the blocks, without those of the vocabulary. Blocks that read the embedding have none. */
  readonly decidedBy?: BlockSettings;
}

/** A decoder: embedding, blocks, final norm, head. */
export function causalModel(parts: CausalModel): LanguageModel {
  const { vocabulary, hidden, positions, tied, paths, norm } = parts;
  const countPath = `model.${parts.blocksKey}`;
  const names = blockNames(paths.blocks, parts.blocks, countPath);
  const aliases = tied ? [`${paths.head}.weight`] : [];
  const width = parts.embeddingWidth ?? hidden;
  const tokens = embedding(paths.embedding, parts.embeddingRows ?? vocabulary, width, aliases);
  const build = () => {
    const shared = parts.shared?.(tokens) ?? [];
    const make = (name: string, index: number) => parts.block(name, index, shared, tokens);
    return { shared, blocks: stack(names, countPath, make) };
  };
  return languageModel({
    embedding: tokens,
    embeddingSteps: parts.embeddingSteps ?? [],
    ...(parts.decidedBy ? rememberedBlocks(parts.decidedBy, build) : build()),
    norm,
    head: head(paths.head, width, vocabulary, {
      tiedTo: tied ? tokens : undefined,
      bias: parts.headBias ?? false,
    }),
    logitSteps: parts.logitSteps ?? [],
    positions,
    hidden,
  });
}

interface CausalSettings {
  readonly vocab_size: number;
  readonly hidden_size: number;
  readonly num_hidden_layers: number;
  readonly max_position_embeddings: number;
  readonly rope_scaling?: Parameters<typeof longestInput>[1];
  readonly tie_word_embeddings: boolean;
  readonly stored_prefix?: string | undefined;
}

interface DecoderParts
  extends Pick<
    CausalModel,
    | 'block'
    | 'embeddingRows'
    | 'embeddingSteps'
    | 'shared'
    | 'logitSteps'
    | 'headBias'
    | 'decidedBy'
  > {
  /** Longest input. Default: that of the positions and their scaling. */
  readonly positions?: number;
  /** The final norm, with layers before it where a family has some. */
  readonly norm: (name: string) => LanguageModel['norm'];
  /** Name of the final norm. */
  readonly finalNorm?: string | undefined;
}

/** `causalModel` for a config with the usual keys and names. */
export function decoder(
  config: CausalSettings,
  { norm, finalNorm = 'norm', ...parts }: DecoderParts,
): LanguageModel {
  const { stored_prefix: prefix = 'model.' } = config;
  return causalModel({
    paths: {
      embedding: `${prefix}embed_tokens`,
      blocks: `${prefix}layers`,
      head: headPath(prefix),
    },
    norm: norm(`${prefix}${finalNorm}`),
    vocabulary: config.vocab_size,
    hidden: config.hidden_size,
    positions: longestInput(config.max_position_embeddings, config.rope_scaling),
    tied: config.tie_word_embeddings,
    blocks: config.num_hidden_layers,
    blocksKey: 'num_hidden_layers',
    ...parts,
  });
}

export interface BlockParts {
  readonly norm: (name: string) => NormLayer;
  readonly attention: Layer;
  readonly feedForward: Layer;
}

/** x + attention(norm(x)), then x + feedForward(norm(x)). */
export function preNormBlock(name: string, parts: BlockParts): Sequence {
  const { norm, attention: mixer, feedForward } = parts;
  return residualBlock(name, {
    attention: [norm(`${name}.input_layernorm`), mixer],
    mlp: [norm(`${name}.post_attention_layernorm`), feedForward],
  });
}

/** A `preNormBlock` whose mixer is attention or a recurrent layer. */
export function mixerBlock(name: string, parts: BlockParts): Sequence {
  const { norm, attention: mixer, feedForward } = parts;
  return residualBlock(name, {
    mixer: [norm(`${name}.input_layernorm`), mixer],
    mlp: [norm(`${name}.pre_ff_layernorm`), feedForward],
  });
}

/** x + norm(attention(x)), then x + norm(feedForward(x)). */
export function postNormBlock(name: string, parts: BlockParts): Sequence {
  const { norm, attention: mixer, feedForward } = parts;
  return residualBlock(name, {
    attention: [mixer, norm(`${name}.post_attention_layernorm`)],
    mlp: [feedForward, norm(`${name}.post_feedforward_layernorm`)],
  });
}

/** A norm before and one after each branch: x + norm(attention(norm(x))), and so on. */
export function sandwichBlock(name: string, parts: BlockParts): Sequence {
  const { norm, attention: mixer, feedForward } = parts;
  return residualBlock(name, {
    attention: [norm(`${name}.input_layernorm`), mixer, norm(`${name}.post_attention_layernorm`)],
    mlp: [
      norm(`${name}.pre_feedforward_layernorm`),
      feedForward,
      norm(`${name}.post_feedforward_layernorm`),
    ],
  });
}

/** x + attention(n) + feedForward(n), n = norm(x). */
export function parallelBlock(name: string, parts: BlockParts): Residual {
  const { norm, attention: mixer, feedForward } = parts;
  return parallelBranches(name, norm(`${name}.input_layernorm`), mixer, feedForward);
}

/** x + the sum of branches that read the same norm. */
export const parallelBranches = (
  name: string,
  norm: NormLayer,
  ...branches: readonly Layer[]
): Residual =>
  residual(name, sequence(`${name}.branch`, [norm, sum(`${name}.branches`, ...branches)]));

/** A factor of a stream, as a chain of layers. */
export const streamFactor = (name: string, factor: number): Layer[] =>
  factor === 1 ? [] : [scale(name, factor)];

/** A branch whose output is multiplied by a factor. */
export const scaledBranch = (layer: Layer, factor: number): Layer =>
  factor === 1
    ? layer
    : sequence(`${layer.name}.scaled`, [layer, scale(`${layer.name}.residual_multiplier`, factor)]);

/** x + each branch in turn; a branch is a chain of layers. */
export function residualBlock(
  name: string,
  branches: Readonly<Record<string, readonly Layer[]>>,
): Sequence {
  return sequence(
    name,
    Object.entries(branches).map(([branch, layers]) =>
      residual(`${name}.${branch}_residual`, sequence(`${name}.${branch}_branch`, layers)),
    ),
  );
}

interface HeadParts
  extends FilledHeads,
    Omit<AttentionParts, 'inputs' | 'out' | 'heads' | 'keyValueHeads' | 'headDim'> {}

export interface AttentionSettings extends HeadParts {
  /** Whether queries, keys and values have biases. */
  readonly bias?: boolean | undefined;
  /** Whether keys have biases; default: as queries and values. */
  readonly keyBias?: boolean;
  readonly outBias?: boolean | undefined;
  /** Name of the output product. */
  readonly outName?: string | undefined;
  /** Norm before the output product. */
  readonly outNorm?: RmsNorm;
}

/** `q_proj`, `k_proj`, `v_proj` and `o_proj`, or the output's other name. */
export function separateAttention(name: string, sizes: AttentionSettings): Attention {
  const { hidden, bias = false, keyBias = bias, outBias = false, ...more } = sizes;
  const { outName = 'o_proj', outNorm, ...parts } = more;
  const { heads, keyValueHeads, headDim } = parts;
  const input = (leaf: string, count: number, hasBias = bias) =>
    linear(`${name}.${leaf}`, hidden, count * headDim, { bias: hasBias });
  const out = linear(`${name}.${outName}`, heads * headDim, hidden, { bias: outBias });
  return attention(name, {
    ...parts,
    inputs: [
      input('q_proj', heads),
      input('k_proj', keyValueHeads, keyBias),
      input('v_proj', keyValueHeads),
    ],
    out: outNorm ? normedProjection(outNorm, out) : out,
  });
}

interface FusedSettings extends HeadParts {
  /** Names of the two products. */
  readonly leaves: readonly [inputs: string, output: string];
  readonly bias?: boolean;
  /** Groups of queries, keys and values in the product; one by default. */
  readonly groups?: number;
}

/** Queries, keys and values as one product. */
export function fusedAttention(name: string, sizes: FusedSettings): Attention {
  const { hidden, leaves, bias = true, groups, ...parts } = sizes;
  const keys = parts.keyValueHeads * parts.headDim;
  const product = linear(`${name}.${leaves[0]}`, hidden, hidden + 2 * keys, { bias });
  return attention(name, {
    ...parts,
    inputs: fusedProjection(product, [hidden, keys, keys], groups),
    out: linear(`${name}.${leaves[1]}`, hidden, hidden, { bias }),
  });
}

interface RotarySource {
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly max_position_embeddings: number;
}

interface RotaryForm {
  readonly pairs?: Rotary['pairs'];
  /** Rotated part of each head. */
  readonly part?: number | undefined;
}

/** Rotation of a block's heads, whole ones by default, from its config. */
export function rotaryOf(
  block: string,
  config: RotarySource,
  headDim: number,
  { pairs = 'halves', part = 1 }: RotaryForm = {},
): Rotary {
  const rotatedDim = Math.trunc(headDim * part);
  const scaling = scalingOf(config.rope_scaling, config.max_position_embeddings, rotatedDim);
  return rotary(`${block}.rotary`, {
    base: config.rope_theta,
    headDim,
    rotatedDim,
    pairs,
    scaling,
  });
}

/** Rotation of a family with other settings in the layers with a window. */
export const rotaryByKind = (
  block: string,
  config: RotarySource & {
    readonly rope_local_base_freq: number;
    readonly rope_local_scaling?: RopeScaling | null | undefined;
  },
  headDim: number,
  isSliding: boolean,
): Rotary =>
  rotaryOf(
    block,
    isSliding
      ? {
          ...config,
          rope_theta: config.rope_local_base_freq,
          rope_scaling: config.rope_local_scaling,
        }
      : config,
    headDim,
  );

interface MlpSizes {
  readonly hidden: number;
  readonly inner: number;
  readonly activation: ActivationName;
  readonly bias?: boolean;
  readonly component?: Component;
  /** Names of gate, up and down. */
  readonly leaves?: readonly [gate: string, up: string, down: string];
  /** See `GatedMlp`. */
  readonly cutoffDeviations?: number | undefined;
  /** Norm before the last product. */
  readonly innerNorm?: RmsNorm;
  readonly limits?: GateLimits | undefined;
}

const MLP_LEAVES = ['gate_proj', 'up_proj', 'down_proj'] as const;

/** Gate, up and down as three products. */
export function separateMlp(name: string, sizes: MlpSizes): GatedMlp {
  const { hidden, inner, activation, bias = false, component, leaves = MLP_LEAVES } = sizes;
  const [gate, up, down] = leaves;
  const product = (leaf: string, from: number, to: number): Linear =>
    linear(`${name}.${leaf}`, from, to, { bias });
  const last = product(down, inner, hidden);
  return gatedMlp(name, {
    inputs: [product(gate, hidden, inner), product(up, hidden, inner)],
    activation,
    down: sizes.innerNorm ? normedProjection(sizes.innerNorm, last) : last,
    ...(component && { component }),
    cutoffDeviations: sizes.cutoffDeviations,
    limits: sizes.limits,
  });
}

export interface MlpSource {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly hidden_act: ActivationWord;
  readonly mlp_bias?: boolean;
}

/** `separateMlp` from a config. */
export const mlpOf = (name: string, config: MlpSource): GatedMlp =>
  separateMlp(name, {
    hidden: config.hidden_size,
    inner: config.intermediate_size,
    activation: activationOf(config.hidden_act),
    bias: config.mlp_bias ?? false,
  });

interface PlainMlpSizes {
  readonly hidden: number;
  readonly inner: number;
  /** Word of a config. */
  readonly activation: ActivationWord;
  readonly bias?: boolean;
  /** Names of the two products. */
  readonly leaves?: readonly [up: string, down: string];
}

/** down(activation(up(x))): a network without a gate. */
export function plainMlp(name: string, sizes: PlainMlpSizes): Sequence {
  const { hidden, inner, activation: word, bias = true } = sizes;
  const [up, down] = sizes.leaves ?? (['up_proj', 'down_proj'] as const);
  return sequence(
    name,
    [
      linear(`${name}.${up}`, hidden, inner, { bias }),
      activation(`${name}.act`, activationOf(word), isComposed(word)),
      linear(`${name}.${down}`, inner, hidden, { bias }),
    ],
    'feedForward',
  );
}

/** `plainMlp` from a config. */
export const plainMlpOf = (
  name: string,
  config: MlpSource,
  leaves?: PlainMlpSizes['leaves'],
): Sequence =>
  plainMlp(name, {
    hidden: config.hidden_size,
    inner: config.intermediate_size,
    activation: config.hidden_act,
    bias: config.mlp_bias ?? true,
    ...(leaves && { leaves }),
  });

/** Gate and up as one product, `gate_up_proj`. */
export function fusedMlp(
  name: string,
  { hidden, inner, activation, limits, component }: MlpSizes,
): GatedMlp {
  const both = linear(`${name}.gate_up_proj`, hidden, 2 * inner, { bias: false });
  return gatedMlp(name, {
    inputs: fusedProjection(both, [inner, inner]),
    activation,
    down: linear(`${name}.down_proj`, inner, hidden, { bias: false }),
    limits,
    ...(component && { component }),
  });
}

/**
 * `NAME.0`, `NAME.1`, …
 * @throws LimitError if they exceed a model's limit.
 */
export function numberedMlps(name: string, count: number, sizes: MlpSizes): GatedMlp[] {
  checkNames('model', 3 * count);
  return Array.from({ length: count }, (_, index) => separateMlp(`${name}.${index}`, sizes));
}

/** Experts for every token, as one network of their joint width; none where `count` is 0. */
export const jointExperts = (name: string, count: number, sizes: MlpSizes): GatedMlp[] =>
  count === 0
    ? []
    : [separateMlp(name, { ...sizes, inner: count * sizes.inner, component: 'sharedExperts' })];

interface ExpertSizes extends Omit<MlpSizes, 'bias' | 'component'> {
  readonly experts: number;
  readonly stored: 'packed' | 'separate';
}

/** Experts `NAME.0`, `NAME.1`, …, or all of them in two tensors of NAME. */
export function expertsOf(name: string, sizes: ExpertSizes): MixtureOfExperts['experts'] {
  const { experts, stored, hidden, inner, activation, limits } = sizes;
  switch (stored) {
    case 'packed':
      return packedExperts(name, { experts, hidden, inner }, activation, { limits });
    case 'separate':
      return numberedMlps(name, experts, { ...sizes, component: 'experts' });
  }
}

interface SoftmaxMixture extends ExpertSizes {
  readonly expertsPerToken: number;
  /** Whether the weights of the chosen experts sum to one. */
  readonly isNormed: boolean;
  /** Default: `gate`. */
  readonly routerName?: string;
}

/** Experts chosen by softmax scores, as in Mixtral and Qwen: `NAME.gate` and `NAME.experts`. */
export function softmaxMixture(
  name: string,
  { expertsPerToken, isNormed, routerName = 'gate', ...sizes }: SoftmaxMixture,
  shared: Partial<Pick<MixtureOfExperts, 'shared' | 'sharedGate'>> = {},
): MixtureOfExperts {
  return mixtureOfExperts(name, {
    router: router(`${name}.${routerName}`, sizes.hidden, {
      experts: sizes.experts,
      expertsPerToken,
      scoring: 'softmax',
      renormalised: isNormed ? { eps: 0 } : undefined,
    }),
    experts: expertsOf(`${name}.experts`, sizes),
    ...shared,
  });
}

interface SparseSource {
  readonly hidden_size: number;
  readonly hidden_act: ActivationWord;
  readonly num_experts: number;
  readonly num_experts_per_tok: number;
  readonly moe_intermediate_size: number;
  readonly norm_topk_prob: boolean;
  readonly experts_stored: 'packed' | 'separate';
}

/** `softmaxMixture` from a config with the keys of `sparseSettings`. */
export const sparseMixture = (
  name: string,
  config: SparseSource,
  shared?: Parameters<typeof softmaxMixture>[2],
): MixtureOfExperts =>
  softmaxMixture(
    name,
    {
      experts: config.num_experts,
      expertsPerToken: config.num_experts_per_tok,
      isNormed: config.norm_topk_prob,
      stored: config.experts_stored,
      hidden: config.hidden_size,
      inner: config.moe_intermediate_size,
      activation: activationOf(config.hidden_act),
    },
    shared,
  );

interface SharedSource {
  readonly hidden_size: number;
  readonly hidden_act: ActivationWord;
  readonly shared_expert_intermediate_size: number;
}

/** `NAME.shared_expert` with its own gate, `NAME.shared_expert_gate`. */
export const sharedExpert = (
  name: string,
  config: SharedSource,
): Pick<MixtureOfExperts, 'shared' | 'sharedGate'> => ({
  shared: [
    separateMlp(`${name}.shared_expert`, {
      hidden: config.hidden_size,
      inner: config.shared_expert_intermediate_size,
      activation: activationOf(config.hidden_act),
      component: 'sharedExperts',
    }),
  ],
  sharedGate: linear(`${name}.shared_expert_gate`, config.hidden_size, 1, {
    bias: false,
    component: 'sharedExperts',
  }),
});
