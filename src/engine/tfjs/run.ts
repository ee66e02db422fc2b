/** State shared by the functions that compute layers during a run. */
import type { CacheType } from '../../base/tensor/dtype.js';
import type { LatentAttention, Layer, Router } from '../../model/architecture/layer.js';
import type { TokenIds } from '../engine.js';
import type { Tensor, Tensor3D, Tf } from './packages.js';
import type { WeightForms } from './weight-plan.js';

/** Letters in shapes: B batch, T tokens of this run, S keys, H hidden, D inner, N state. */
export interface ForwardRun {
  readonly tf: Tf;
  readonly weights: WeightForms;
  readonly batch: number;
  readonly tokens: number;
  /** Position of the first token; above 0 only when decoding. */
  readonly start: number;
  readonly ids: TokenIds | undefined;
  /** Number of last tokens whose logits are needed; all when undefined. */
  readonly lastTokens?: number | undefined;
  /** Undefined without decoding. */
  readonly decoding: DecodingState | undefined;
  /** Called with the tokens of each expert when a router has chosen. */
  readonly noteSent?: (router: Router, counts: readonly number[]) => void;
  /** Whether scans must have a gradient, which takes longer. */
  readonly learns?: boolean;
  /** The value of a sublayer. */
  apply(layer: Layer, ...inputs: Tensor3D[]): Tensor3D;
  /** A value shared by several layers: computed at the first use of its key, disposed after the run. */
  once<T extends Tensor>(key: unknown, compute: () => T): T;
}

export interface DecodingState {
  /** Final number of tokens. */
  readonly totalTokens: number;
  /** Type of cached keys and values; undefined for float32. */
  readonly cacheType: CacheType | undefined;
  readonly before: LayerStates;
  readonly after: LayerStates;
}

/** Memory of layers between runs: plain values, which need no disposal. */
export interface LayerStates {
  /** The last inputs, [B, kernel − 1, D]. */
  readonly convolutions: Map<Layer, Float32Array>;
  /** The state, [B, D, N]; for a state space dual, the state of each group in turn; for a delta rule, [B, H, N, D]. */
  readonly scans: Map<Layer, Float32Array>;
  /** Caches of a layer by its name: by sequence, then by key-value head. */
  readonly attentions: Map<string, readonly HeadMemory[]>;
  readonly latents: Map<LatentAttention, LatentMemory>;
  /** Keys of an indexer by its name: of each sequence, [S, width]. */
  readonly indexes: Map<string, readonly Float32Array[]>;
}

/** Cache of each sequence, one row per position. */
export interface LatentMemory {
  /** Normed, [S, latentRank]. */
  readonly latents: readonly Float32Array[];
  /** Rotated, for all heads, [S, rotary.headDim]. */
  readonly keys: readonly Float32Array[];
}

/** Keys and values, a row of headDim for each position. */
export interface HeadMemory {
  /** Position of the first row. */
  readonly first: number;
  readonly keys: Float32Array;
  readonly values: Float32Array;
}

export const emptyMemory = (): LayerStates => ({
  convolutions: new Map(),
  scans: new Map(),
  attentions: new Map(),
  latents: new Map(),
  indexes: new Map(),
});

/** The values of a float tensor, row-major. */
export const readValues = (tensor: Tensor): Float32Array => tensor.dataSync<'float32'>();

/** Cached values followed by new ones. */
export function concatenated(a: Float32Array, b: Float32Array): Float32Array {
  const result = new Float32Array(a.length + b.length);
  result.set(a);
  result.set(b, a.length);
  return result;
}

/** Cached rows of each sequence followed by the new ones. */
export function rowsAfter(
  before: readonly Float32Array[] | undefined,
  now: Tensor3D,
): Float32Array[] {
  const values = readValues(now);
  const [batch] = now.shape;
  const size = values.length / batch;
  return Array.from({ length: batch }, (_, sequence) => {
    const own = values.slice(sequence * size, (sequence + 1) * size);
    const known = before?.[sequence];
    return known ? concatenated(known, own) : own;
  });
}
