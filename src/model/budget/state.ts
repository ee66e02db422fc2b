/** State kept between tokens in cached decoding, and memory of inference. */

import type { CacheDtype, Dtype } from '../../base/tensor/dtype.js';
import { cacheBlockBytes, DTYPES, isCacheBlock, stateDtypeOf } from '../../base/tensor/dtype.js';
import { sumOf } from '../../base/values.js';
import type { Component, HeadSpan, Layer, Window } from '../architecture/layer.js';
import { COMPONENTS } from '../architecture/layer.js';
import { reachOf, sumByWindow } from '../architecture/masks.js';
import { memoized, memoizedBy } from '../architecture/walk.js';
import { countedParts } from '../operations/lower.js';
import type { Convolution, IndexScores, Primitive, Scan, Scores } from '../operations/primitive.js';
import {
  add,
  ceildiv,
  type Expression,
  floordiv,
  type Input,
  inputs,
  min,
  mul,
  v,
} from './expression.js';
import type { Figure } from './figure.js';
import { figure, sumFigure } from './figure.js';

export interface StateSetting {
  /** Sequences. @integer @minimum 1 */
  readonly batch: number;
  /** Tokens so far in each sequence. @integer @minimum 1 */
  readonly context: number;
  /** Element type of weights. */
  readonly dtype: Dtype;
  /** Element type of caches and states; default: that of the weights. */
  readonly cacheDtype?: CacheDtype;
  /** GPUs that share the heads and channels of each layer; counts the one that keeps most. Default 1. */
  readonly gpus?: number;
  /**
   * Tokens that a program keeps of each window beyond it: those that it computes at a time. Default: none, as transformers.
   */
  readonly beyondWindows?: number | undefined;
}

export interface StateBudget {
  /** Distinct windows of the heads. */
  readonly windows: readonly Window[];
  readonly keyValueCache: Figure;
  /** Bytes per additional token of a sequence while no window is full. */
  readonly keyValuePerToken: Figure;
  /** Bytes per additional token when every window is full. */
  readonly keyValuePerTokenPastWindows: Figure;
  readonly mambaState: Figure;
  readonly convolutionState: Figure;
  readonly total: Figure;
}

/** Values of a token by the key of a window. */
type ByWindow = ReadonlyMap<string, { readonly window: Window | undefined; readonly size: number }>;

interface StateSizes {
  readonly attentions: readonly Scores[];
  /** Latent and shared rotated key of a token, over all layers, by their window. */
  readonly latents: ByWindow;
  /** Keys of indexers for a token, over all layers, by their window. */
  readonly indexes: ByWindow;
  readonly mambaValues: number;
  /** Kept in float32, for any type of the cache. */
  readonly float32Values: number;
  readonly convolutionValues: number;
  /** Whether these are inputs that described layers keep, and none are of a convolution. */
  readonly areBuffers: boolean;
  /** Components of the layers that scan. */
  readonly scanned: readonly Component[];
}

/** State of decoding with sliding windows: a windowed head keeps the keys that the next token sees. */
export function stateOf(model: Layer, setting: StateSetting): StateBudget {
  const kept = keptOn(model, setting.gpus ?? 1);
  const last = lastState.get(kept);
  const { batch, context, dtype, cacheDtype, beyondWindows } = setting;
  const identity = [batch, context, dtype, cacheDtype, beyondWindows].join(' ');
  if (last?.identity === identity) return last.budget;
  const budget = stateIn(kept, setting);
  lastState.set(kept, { identity, budget });
  return budget;
}

/** The last budget of a state: models of a sweep can have it in common, and searches ask for many others. */
const lastState = new WeakMap<
  KeptOnGpus,
  { readonly identity: string; readonly budget: StateBudget }
>();

function stateIn(
  {
    windows,
    mambaValues,
    float32Values,
    convolutionValues,
    areBuffers,
    scanned,
    onRanks,
  }: KeptOnGpus,
  { batch, context, dtype, cacheDtype = dtype, beyondWindows }: StateSetting,
): StateBudget {
  const of = inputs({ batch, context, bits: DTYPES[stateDtypeOf(cacheDtype)].bits });
  const blockBytes = v({ block_bytes: cacheBlockBytes(cacheDtype) });
  const isBlock = isCacheBlock(cacheDtype);
  const cacheInput: Readonly<Record<string, Input>> = isBlock
    ? { block_bytes: blockBytes }
    : { bits: of.bits };
  const bytesOf = (values: Expression) =>
    isBlock ? ceildiv(mul(values, blockBytes), 32) : ceildiv(mul(values, of.bits), 8);
  /** Bytes of the values in the caches that `which` selects, by one of `of`. */
  const keyValues = (
    label: string,
    valuesIn: (cached: readonly CachedValues[]) => Expression,
    listed: Readonly<Record<string, Input>>,
    which: (each: CachedValues) => boolean = () => true,
  ) =>
    fullest(
      onRanks.map((all) => {
        return figure({
          label,
          unit: 'bytes',
          formula: bytesOf(valuesIn(all.filter(which))),
          inputs: listed,
          source: [...new Set(all.map(({ source }) => source))].join('; ') || NO_CACHE,
        });
      }),
    );
  const keyValueCache = keyValues(
    'key-value cache',
    (cached) =>
      mul(
        of.batch,
        add(...cached.map(({ width, kept }) => mul(width, kept(of.context, beyondWindows)))),
      ),
    { batch: of.batch, context: of.context, ...cacheInput },
  );
  const perToken = (label: string, which?: (each: CachedValues) => boolean) =>
    keyValues(
      label,
      (cached) =>
        add(
          ...cached.map(({ width, window }) =>
            window?.rule === 'compressed' ? ceildiv(width, window.tokens) : width,
          ),
        ),
      cacheInput,
      which,
    );
  const recurrent = (scanned.length > 0 ? scanned : (['mamba'] as const))
    .map((component) => COMPONENTS[component])
    .join(' and ');
  const mambaState = figure({
    label: `${recurrent} state`,
    unit: 'bytes',
    formula: add(
      ceildiv(mul(of.batch, v({ state_values: mambaValues }), of.bits), 8),
      ...(float32Values > 0 ? [mul(4, of.batch, v({ float32_values: float32Values }))] : []),
    ),
    source:
      `one state [inner, state] for each ${recurrent} layer and sequence` +
      (float32Values > 0 ? '; in float32 where transformers keeps it so' : ''),
  });
  const convolutionState = figure({
    label: areBuffers && convolutionValues > 0 ? 'input buffers' : 'convolution state',
    unit: 'bytes',
    formula: ceildiv(mul(of.batch, v({ convolution_values: convolutionValues }), of.bits), 8),
    source:
      areBuffers && convolutionValues > 0
        ? 'the last inputs that each described layer keeps for its next step'
        : 'the last kernel − 1 inputs of each channel of each convolution, or kernel in transformers',
  });
  return {
    windows,
    keyValueCache,
    keyValuePerToken: perToken('key-value cache per token'),
    keyValuePerTokenPastWindows: perToken(
      'key-value cache per token, windows full',
      ({ window }) => window === undefined || window.rule === 'compressed',
    ),
    mambaState,
    convolutionState,
    total: sumFigure(
      'total state',
      'bytes',
      {
        key_value_cache: keyValueCache,
        mamba_state: mambaState,
        convolution_state: convolutionState,
      },
      'sum of the parts',
    ),
  };
}

/** State kept per GPU, for the GPUs that may keep most. */
interface KeptOnGpus
  extends Pick<
    StateSizes,
    'mambaValues' | 'float32Values' | 'convolutionValues' | 'areBuffers' | 'scanned'
  > {
  readonly windows: readonly Window[];
  readonly onRanks: readonly (readonly CachedValues[])[];
}

/** Cached values of one kind per token, over all layers. */
interface CachedValues {
  /** Values of one token, or of one compressed entry. */
  readonly width: Expression;
  /** Number of kept tokens, or of compressed entries, in a context. */
  readonly kept: (context: Input, beyond: number | undefined) => Expression;
  readonly window: Window | undefined;
  readonly source: string;
}

/**
 * Tokens that a windowed head keeps: those that the next token sees in addition to its own, as transformers' cache of
 * sliding windows and chunks. The hybrid model's keeps its own, too.
 */
const keptBehind = (window: Window): number =>
  window.rule === 'local' ? reachOf(window) + 1 : reachOf(window);

/**
 * Tokens that a cache keeps, or entries in place of them.
 * @param beyond Tokens that a program computes at a time and keeps beside those of a window, all in whole blocks.
 */
export const keptOf = (window: Window | undefined, context: Input, beyond?: number): Expression => {
  if (window === undefined) return context;
  if (window.rule === 'compressed') return floordiv(context, window.tokens);
  const tokens =
    beyond === undefined
      ? keptBehind(window)
      : Math.ceil((reachOf(window) + 1 + beyond) / CACHE_PADDING) * CACHE_PADDING;
  return min(context, tokens);
};

/** Tokens that a cache of llama.cpp is padded to (src/llama-kv-cache.cpp: n_pad; src/llama-kv-cache-iswa.cpp). */
const CACHE_PADDING = 256;

const NO_CACHE = 'no layer keeps keys and values';

/** Cached values on one of the GPUs that share the heads. */
function cachedValues({ attentions, latents, indexes }: StateSizes, gpus: number, rank: number) {
  const values = new Map(windowWidths(attentions, gpus, rank, 'valueDim'));
  const heads = windowWidths(attentions, gpus, rank).map(
    ([key, { window, size }]): CachedValues => {
      const valueSize = values.get(key)?.size ?? size;
      return {
        width:
          size === valueSize
            ? mul(2, v({ [`width_${key}`]: size }))
            : add(v({ [`key_width_${key}`]: size }), v({ [`value_width_${key}`]: valueSize })),
        kept: (context, beyond) => keptOf(window, context, beyond),
        window,
        source:
          size === valueSize
            ? 'a key and a value of head_dim for each key head and kept position'
            : 'a key and a value, of different widths, for each key head and kept position',
      };
    },
  );
  const sharedBy = (name: string, widths: ByWindow, source: string): CachedValues[] =>
    [...widths].map(([key, { window, size }]) => ({
      width: v({ [window === undefined ? name : `${name}_${key}`]: size }),
      kept: (context, beyond) => keptOf(window, context, beyond),
      window,
      source,
    }));
  return [
    ...heads,
    ...sharedBy(
      'latent_width',
      latents,
      'the latent of a token and the one rotated key that all heads share (arXiv 2405.04434)',
    ),
    ...sharedBy(
      'index_width',
      indexes,
      'the key of a token that all heads of an indexer share (arXiv 2512.02556)',
    ),
  ];
}

/** Key heads × the width of a key or value over all layers, for heads with the same window. */
const windowWidths = (
  attentions: readonly Scores[],
  gpus: number,
  rank: number,
  width: 'headDim' | 'valueDim' = 'headDim',
) => [
  ...sumByWindow(
    attentions.map((layer) => ({
      width: (layer.times ?? 1) * layer[width],
      spans: spansOfRank(keySpansOf(layer), gpus, rank),
    })),
    (layer, heads) => heads * layer.width,
  ),
];

const windowsOf = ({ attentions, latents }: StateSizes): Window[] => [
  ...new Map(
    [...windowWidths(attentions, 1, 0), ...latents].flatMap(([key, { window }]) =>
      window === undefined ? [] : [[key, window] as const],
    ),
  ).values(),
];

/** State independent of batch and context, memoized because searches request it often. */
const keptOn = memoizedBy(
  (gpus: number) => gpus,
  (model: Layer, gpus) => {
    const parts = countedParts(model).map(stateful);
    const [only = [], ...others] = parts.filter(({ length }) => length > 0);
    // Usually the blocks alone keep a state, and several models can have them in common.
    return others.length === 0 ? keptOnBy(only, gpus) : readKept(parts.flat(), gpus);
  },
);

const keptOnBy = memoizedBy((gpus: number) => gpus, readKept);

function readKept(primitives: readonly Stateful[], gpus: number): KeptOnGpus {
  const kept = keptBy(primitives, gpus);
  const { attentions, mambaValues, float32Values, convolutionValues, areBuffers, scanned } = kept;
  return {
    windows: windowsOf(kept),
    mambaValues,
    float32Values,
    convolutionValues,
    areBuffers,
    scanned,
    onRanks: ranksOf(
      attentions.map(({ spans }) => spans),
      gpus,
    ).map((rank) => cachedValues(kept, gpus, rank)),
  };
}

const fullest = (figures: readonly Figure[]): Figure =>
  figures.reduce((a, b) => (b.value > a.value ? b : a));

/**
 * Each GPU keeps whole heads and channels; a remaining key head is replicated on several. The latent of a token
 * belongs to all heads, so each GPU keeps it, as well as the keys of indexers.
 */
function keptBy(primitives: readonly Stateful[], gpus: number): StateSizes {
  const share = (parts: number) => (gpus === 1 ? parts : Math.ceil(parts / gpus));
  const attentions: Scores[] = [];
  const latents: Scores[] = [];
  const indexers: IndexScores[] = [];
  let mambaValues = 0;
  let float32Values = 0;
  let convolutionValues = 0;
  let areBuffers = true;
  const scanned = new Set<Component>();
  for (const primitive of primitives) {
    const { times = 1 } = primitive;
    if (primitive.kind === 'scan') {
      const values = times * share(primitive.inner) * primitive.state;
      scanned.add(primitive.component);
      if (primitive.inFloat32) float32Values += values;
      else mambaValues += values;
    } else if (primitive.kind === 'convolution') {
      convolutionValues += times * share(primitive.channels) * primitive.cached;
      areBuffers &&= primitive.isBuffer === true;
    } else if (primitive.kind === 'scores') {
      if (primitive.keeps === 'nothing') continue;
      if (primitive.latent) latents.push(primitive);
      else attentions.push(primitive);
    } else {
      indexers.push(primitive);
    }
  }
  return {
    attentions,
    latents: sumByWindow(
      latents.map(onceByWindow),
      ({ latent, times = 1 }) => times * (latent?.cached ?? 0),
    ),
    indexes: sumByWindow(indexers.map(onceByWindow), ({ headDim, times = 1 }) => times * headDim),
    mambaValues,
    float32Values,
    convolutionValues,
    areBuffers,
    scanned: [...scanned],
  };
}

type Stateful = Scan | Convolution | Scores | IndexScores;

const STATEFUL: ReadonlySet<Primitive['kind']> = new Set<Stateful['kind']>([
  'scan',
  'convolution',
  'scores',
  'indexScores',
]);

/** Primitives that keep a state. */
const stateful = memoized((part: readonly Primitive[]) =>
  part.filter((each): each is Stateful => STATEFUL.has(each.kind)),
);

/** A layer with one span, because all its heads share what the cache keeps. */
const onceByWindow = <Layer extends Pick<Scores, 'spans'>>(layer: Layer): Layer => ({
  ...layer,
  spans: layer.spans.slice(0, 1),
});

// Heads with different windows, distributed over GPUs

/** Spans of keys and values instead of queries. */
const keySpansOf = ({ spans, heads, keyValueHeads, keeps }: Scores): readonly HeadSpan[] => {
  const kept = keeps === 'a key for each query head' ? heads : keyValueHeads;
  return spans.map((span) => ({
    heads: (span.heads * kept) / heads,
    window: keeps === 'keys outside the windows' ? undefined : span.window,
  }));
};

/**
 * Heads of one GPU, in the order of the spans. Heads stay whole, and the first GPU has the most. With fewer heads
 * than GPUs, each GPU has one, so some heads are replicated.
 */
export function spansOfRank(spans: readonly HeadSpan[], gpus: number, rank: number): HeadSpan[] {
  const all = sumOf(spans, ({ heads }) => heads);
  const most = Math.ceil(all / gpus);
  let start = all < gpus ? -Math.floor((rank * all) / gpus) : -rank * most;
  return spans.flatMap(({ heads, window }) => {
    const [from, to] = [Math.max(0, start), Math.min(most, start + heads)];
    start += heads;
    return to > from ? [{ heads: to - from, window }] : [];
  });
}

/** GPUs that can keep the most: the first, unless heads of a layer have different windows. */
export const ranksOf = (
  layers: readonly (readonly HeadSpan[])[],
  gpus: number,
): readonly number[] => {
  const isUneven = layers.some((spans) => spans.length > 1);
  return Array.from({ length: isUneven ? gpus : 1 }, (_, rank) => rank);
};
