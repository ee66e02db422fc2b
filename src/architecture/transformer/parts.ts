/** Layers that transformer families share. */
import {
  type AttentionParts,
  attention,
  blockNames,
  embedding,
  fusedProjection,
  gatedMlp,
  head,
  languageModel,
  linear,
  mixtureOfExperts,
  packedExperts,
  residual,
  rotary,
  router,
  sequence,
  stack,
} from '../constructors.js';
import type {
  ActivationName,
  Attention,
  Component,
  GatedMlp,
  LanguageModel,
  Layer,
  Linear,
  MixtureOfExperts,
  NormLayer,
  Rotary,
  Sequence,
} from '../layer.js';
import { checkNames } from '../param.js';
import { longestInput, type RopeScaling, scalingOf } from './rotary.js';
import { activationOf, type FilledHeads } from './settings.js';

interface CausalModel {
  readonly vocabulary: number;
  readonly hidden: number;
  readonly positions: number;
  readonly tied: boolean;
  /** Paths of the embedding, the list of blocks, and the head. */
  readonly paths: { readonly embedding: string; readonly blocks: string; readonly head: string };
  readonly blocks: number;
  /** Key of the number of blocks. */
  readonly blocksKey: string;
  readonly block: (name: string, index: number) => Layer;
  readonly norm: NormLayer;
  readonly embeddingSteps?: readonly Layer[];
  readonly logitSteps?: readonly Layer[];
}

/** A decoder: embedding, blocks, final norm, head. */
export function causalModel(parts: CausalModel): LanguageModel {
  const { vocabulary, hidden, positions, tied, paths, norm } = parts;
  const countPath = `model.${parts.blocksKey}`;
  const names = blockNames(paths.blocks, parts.blocks, countPath);
  const aliases = tied ? [`${paths.head}.weight`] : [];
  const tokens = embedding(paths.embedding, vocabulary, hidden, aliases);
  return languageModel({
    embedding: tokens,
    embeddingSteps: parts.embeddingSteps ?? [],
    blocks: stack(names, countPath, parts.block),
    norm,
    head: head(paths.head, hidden, vocabulary, tied ? tokens : undefined),
    logitSteps: parts.logitSteps ?? [],
    positions,
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

interface DecoderParts extends Pick<CausalModel, 'block' | 'embeddingSteps' | 'logitSteps'> {
  readonly norm: (name: string) => NormLayer;
}

/** `causalModel` for a config with the usual keys and names. */
export function decoder(config: CausalSettings, { norm, ...parts }: DecoderParts): LanguageModel {
  const { stored_prefix: prefix = 'model.' } = config;
  return causalModel({
    paths: { embedding: `${prefix}embed_tokens`, blocks: `${prefix}layers`, head: 'lm_head' },
    norm: norm(`${prefix}norm`),
    vocabulary: config.vocab_size,
    hidden: config.hidden_size,
    positions: longestInput(config.max_position_embeddings, config.rope_scaling),
    tied: config.tie_word_embeddings,
    blocks: config.num_hidden_layers,
    blocksKey: 'num_hidden_layers',
    ...parts,
  });
}

interface BlockParts {
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

export interface AttentionSettings
  extends FilledHeads,
    Omit<AttentionParts, 'inputs' | 'out' | 'heads' | 'keyValueHeads' | 'headDim'> {
  /** Whether queries, keys and values have biases. */
  readonly bias?: boolean | undefined;
  readonly outBias?: boolean | undefined;
}

/** `q_proj`, `k_proj`, `v_proj` and `o_proj`. */
export function separateAttention(name: string, sizes: AttentionSettings): Attention {
  const { hidden, bias = false, outBias = false, ...parts } = sizes;
  const { heads, keyValueHeads, headDim } = parts;
  const input = (leaf: string, count: number) =>
    linear(`${name}.${leaf}`, hidden, count * headDim, { bias });
  return attention(name, {
    ...parts,
    inputs: [
      input('q_proj', heads),
      input('k_proj', keyValueHeads),
      input('v_proj', keyValueHeads),
    ],
    out: linear(`${name}.o_proj`, heads * headDim, hidden, { bias: outBias }),
  });
}

interface RotarySource {
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly max_position_embeddings: number;
}

/** Rotation of a block's whole heads, from its config. */
export function rotaryOf(block: string, config: RotarySource, headDim: number): Rotary {
  const scaling = scalingOf(config.rope_scaling, config.max_position_embeddings, headDim);
  return rotary(`${block}.rotary`, { base: config.rope_theta, headDim, scaling });
}

interface MlpSizes {
  readonly hidden: number;
  readonly inner: number;
  readonly activation: ActivationName;
  readonly bias?: boolean;
  readonly component?: Component;
  /** Names of gate, up and down. */
  readonly leaves?: readonly [gate: string, up: string, down: string];
}

const MLP_LEAVES = ['gate_proj', 'up_proj', 'down_proj'] as const;

/** Gate, up and down as three products. */
export function separateMlp(name: string, sizes: MlpSizes): GatedMlp {
  const { hidden, inner, activation, bias = false, component, leaves = MLP_LEAVES } = sizes;
  const [gate, up, down] = leaves;
  const product = (leaf: string, from: number, to: number): Linear =>
    linear(`${name}.${leaf}`, from, to, { bias });
  return gatedMlp(name, {
    inputs: [product(gate, hidden, inner), product(up, hidden, inner)],
    activation,
    down: product(down, inner, hidden),
    ...(component && { component }),
  });
}

export interface MlpSource {
  readonly hidden_size: number;
  readonly intermediate_size: number;
  readonly hidden_act: Parameters<typeof activationOf>[0];
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

/** Gate and up as one product, `gate_up_proj`. */
export function fusedMlp(name: string, { hidden, inner, activation }: MlpSizes): GatedMlp {
  const both = linear(`${name}.gate_up_proj`, hidden, 2 * inner, { bias: false });
  return gatedMlp(name, {
    inputs: fusedProjection(both, [inner, inner]),
    activation,
    down: linear(`${name}.down_proj`, inner, hidden, { bias: false }),
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

interface ExpertSizes extends Omit<MlpSizes, 'bias' | 'component'> {
  readonly experts: number;
  readonly stored: 'packed' | 'separate';
}

/** Experts `NAME.0`, `NAME.1`, …, or all of them in two tensors of NAME. */
export function expertsOf(name: string, sizes: ExpertSizes): MixtureOfExperts['experts'] {
  const { experts, stored, hidden, inner, activation } = sizes;
  switch (stored) {
    case 'packed':
      return packedExperts(name, { experts, hidden, inner }, activation);
    case 'separate':
      return numberedMlps(name, experts, { ...sizes, component: 'experts' });
  }
}

interface SoftmaxMixture extends ExpertSizes {
  readonly expertsPerToken: number;
  /** Whether the weights of the chosen experts sum to one. */
  readonly isNormed: boolean;
}

/** Experts chosen by softmax scores, as in Mixtral and Qwen: `NAME.gate` and `NAME.experts`. */
export function softmaxMixture(
  name: string,
  { expertsPerToken, isNormed, ...sizes }: SoftmaxMixture,
  shared: Partial<Pick<MixtureOfExperts, 'shared' | 'sharedGate'>> = {},
): MixtureOfExperts {
  return mixtureOfExperts(name, {
    router: router(`${name}.gate`, sizes.hidden, {
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
  readonly hidden_act: Parameters<typeof activationOf>[0];
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
