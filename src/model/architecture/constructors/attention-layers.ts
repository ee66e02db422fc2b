/** Constructors of attention, its positions and its windows. */
import type {
  ActivationName,
  Alibi,
  Attention,
  BlockIndexer,
  HeadSpan,
  LatentAttention,
  NormLayer,
  Projections,
  Rotary,
  RotaryScaling,
  Temperature,
  TokenIndexer,
  Window,
} from '../layer.js';
import type { Param } from '../param.js';
import { buffer, param } from '../param.js';
import { linear } from './basic-layers.js';

interface HybridAttentionSizes {
  readonly hidden: number;
  readonly heads: number;
  readonly spans: readonly HeadSpan[];
  readonly rotaryBase: number;
  /** Rows of the stored cosine and sine tables. */
  readonly rotaryPositions: number;
}

/** Attention with a key-value head per query head; only the output projection has a bias. */
export function hybridAttention(name: string, sizes: HybridAttentionSizes): Attention {
  const { hidden, heads, spans, rotaryBase, rotaryPositions } = sizes;
  const headDim = Math.floor(hidden / heads);
  const width = heads * headDim;
  const projection = (leaf: string) => linear(`${name}.${leaf}`, hidden, width, { bias: false });
  const cache = (leaf: string) => buffer(`${name}.rope.${leaf}`, [1, 1, rotaryPositions, headDim]);
  const tables = [
    buffer(`${name}.rope.inv_freq`, [headDim / 2]),
    cache('cos_cached'),
    cache('sin_cached'),
  ];
  return attention(name, {
    inputs: [projection('q_proj'), projection('k_proj'), projection('v_proj')],
    out: linear(`${name}.out_proj`, width, hidden, { bias: true }),
    rotary: rotary(`${name}.rope`, { base: rotaryBase, headDim, tables }),
    heads,
    headDim,
    spans,
  });
}

/** Optional parts of an attention; by default, one key-value head per query head and nothing else. */
export interface AttentionParts {
  readonly inputs: Projections;
  readonly out: Attention['out'];
  readonly heads: number;
  readonly headDim: number;
  readonly keyValueHeads?: number;
  /** Default: `headDim`. */
  readonly valueDim?: number | undefined;
  readonly queryNorm?: Attention['queryNorm'];
  readonly keyNorm?: Attention['keyNorm'];
  readonly valueNorm?: NormLayer | undefined;
  readonly valuesAreKeys?: boolean;
  readonly sharing?: Attention['sharing'] | undefined;
  readonly normsAfterRotation?: boolean;
  readonly clip?: number | undefined;
  readonly keeps?: Attention['keeps'];
  readonly rotary?: Rotary | undefined;
  readonly temperature?: Temperature | undefined;
  readonly alibi?: Alibi | undefined;
  readonly ownTypeSoftmax?: boolean;
  /** Default: 1 / sqrt(headDim). */
  readonly scale?: number;
  readonly softcap?: number | undefined;
  /** Window of all heads. */
  readonly window?: Window | undefined;
  /** Replaces `window` where heads differ. */
  readonly spans?: readonly HeadSpan[];
  readonly gate?: ActivationName | undefined;
  /** Default: one for each value of a head. */
  readonly gateDim?: number | undefined;
  /** Name of the scores without values. */
  readonly sinks?: string | undefined;
  readonly selection?: BlockIndexer | undefined;
}

export function attention(name: string, parts: AttentionParts): Attention {
  const { inputs, out, heads, headDim, window } = parts;
  return {
    kind: 'attention',
    name,
    component: 'attention',
    inputs,
    out,
    queryNorm: parts.queryNorm,
    keyNorm: parts.keyNorm,
    ...(parts.valueNorm && { valueNorm: parts.valueNorm }),
    ...(parts.valuesAreKeys && { valuesAreKeys: true }),
    ...(parts.sharing && { sharing: parts.sharing }),
    rotary: parts.rotary,
    alibi: parts.alibi,
    heads,
    keyValueHeads: parts.keyValueHeads ?? heads,
    headDim,
    ...(parts.valueDim !== undefined && { valueDim: parts.valueDim }),
    scale: parts.scale ?? 1 / Math.sqrt(headDim),
    softcap: parts.softcap,
    spans: parts.spans ?? [{ heads, window }],
    ...(parts.temperature && { temperature: parts.temperature }),
    ...(parts.ownTypeSoftmax && { ownTypeSoftmax: true }),
    ...(parts.gate && { gate: parts.gate }),
    ...(parts.gateDim !== undefined && { gateDim: parts.gateDim }),
    ...(parts.sinks && { sinks: param(parts.sinks, [heads]) }),
    ...(parts.normsAfterRotation && { normsAfterRotation: true }),
    ...(parts.clip !== undefined && { clip: parts.clip }),
    ...(parts.keeps && { keeps: parts.keeps }),
    ...(parts.selection && { selection: parts.selection }),
  };
}

interface LatentParts
  extends Omit<LatentAttention, 'kind' | 'name' | 'component' | 'rotary' | 'sharedDim'> {
  readonly rotary?: Rotary | undefined;
  /** Default: the rotated width. */
  readonly sharedDim?: number;
}

export function latentAttention(name: string, parts: LatentParts): LatentAttention {
  const { query, keyValueDown, latentNorm, keyValueUp, out, rotary, ...sizes } = parts;
  const layers = { query, keyValueDown, latentNorm, keyValueUp, out, rotary };
  const { sharedDim = rotary?.headDim ?? 0 } = parts;
  return { kind: 'latentAttention', name, component: 'attention', ...layers, ...sizes, sharedDim };
}

export const tokenIndexer = (
  name: string,
  parts: Omit<TokenIndexer, 'kind' | 'name' | 'component'>,
): TokenIndexer => ({ kind: 'tokenIndexer', name, component: 'indexer', ...parts });

export const blockIndexer = (
  name: string,
  parts: Omit<BlockIndexer, 'kind' | 'name' | 'component'>,
): BlockIndexer => ({ kind: 'blockIndexer', name, component: 'indexer', ...parts });

interface RotaryParts {
  readonly base: number;
  readonly headDim: number;
  /** Default: the whole head. */
  readonly rotatedDim?: number;
  readonly pairs?: Rotary['pairs'];
  readonly scaling?: RotaryScaling | undefined;
  readonly tables?: readonly Param[];
}

/**
 * Classes that rotate `cos.shape[-1]` dimensions round an odd number of them up to pairs. Their frequencies
 * base^(−2j / odd) are those of an even number with another base.
 */
export function rotary(name: string, parts: RotaryParts): Rotary {
  const { headDim, rotatedDim: asked = headDim, pairs = 'halves', scaling, tables = [] } = parts;
  const rotatedDim = asked + (asked % 2);
  const base = rotatedDim === asked ? parts.base : parts.base ** (rotatedDim / asked);
  return { kind: 'rotary', name, base, headDim, rotatedDim, pairs, scaling, tables };
}

/**
 * @param slopes Slope of each head.
 * @param bfloat16Factor Factor of products in bfloat16; undefined for exact ones.
 */
export function alibi(name: string, slopes: Iterable<number>, bfloat16Factor?: number): Alibi {
  const own = { kind: 'alibi', name, slopes: [...slopes] } as const;
  return bfloat16Factor === undefined ? own : { ...own, bfloat16Factor };
}

export function slidingWindow(tokens: number): Window {
  return { rule: 'sliding', tokens };
}

export function chunkWindow(tokens: number): Window {
  return { rule: 'chunked', tokens };
}
