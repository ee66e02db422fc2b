/**
 * Methods of attention on one model: what each computes, stores, moves and keeps. The heads, widths and layers are
 * those of the model; only the mask, the key heads and the kernel change.
 *
 * A kernel either stores its scores in the memory of the GPU and passes over them four times (writes S, reads S,
 * writes P, reads P: arXiv 2205.14135, algorithm 0), or works in tiles on the chip (algorithm 1). Scores count as
 * computed, with those that the causal mask hides.
 */

import { usageError } from '../../base/errors.js';
import { DTYPES, type Dtype } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { sumOf } from '../../base/text/words.js';
import type { HeadSpan, Layer, Window } from '../architecture/layer.js';
import { firstVisibleKey, scoreValues, sumByWindow, windowKey } from '../architecture/masks.js';
import { primitivesOf } from '../operations/lower.js';
import type { Scores } from '../operations/primitive.js';
import { add, ceildiv, type Expression, min, mul, v } from './expression.js';
import { exact, type Figure, figure, type Quantity, quantity } from './figure.js';
import type { LongTexts } from './long-texts.js';
import type { NormOperations } from './norm-operations.js';
import { keptOf, stateOf } from './state.js';

export type AttentionMethod =
  | 'plain'
  | 'flash'
  | 'grouped'
  | 'window'
  | 'hierarchical'
  | 'block-sparse'
  /** The model as it is, where it is like no other row. */
  | 'own';

/** Memory on the chip that one block of threads can use. */
export interface OnChip {
  /** Memory of a tile. @integer @minimum 1 */
  readonly bytes: number;
  /** Source of the number. */
  readonly source: string;
}

export interface AttentionSetting {
  /** Tokens of one sequence. */
  readonly contexts: readonly number[];
  /** Element type of queries, keys, values and scores. */
  readonly dtype: Dtype;
  readonly onChip: OnChip;
  /** Tokens of a block of the block-sparse mask. @integer @minimum 1 */
  readonly block: number;
  /** Tokens of the window; default: the largest of the model, or 1,024. @integer @minimum 1 */
  readonly window?: number | undefined;
  /** Heads without a window in the hierarchical row; default: as in the model, or 2. @integer @minimum 1 */
  readonly globalHeads?: number | undefined;
  /** Numbers of key heads, a row each; default: those of the model, or a quarter of the heads. */
  readonly keyHeads?: readonly number[] | undefined;
}

/** Rows and columns of a tile of scores. */
export interface Tile {
  /** Rows of the tile. @integer @minimum 1 */
  readonly rows: number;
  /** Columns of the tile. @integer @minimum 1 */
  readonly columns: number;
}

export const COMPARED = ['scores', 'traffic', 'flops', 'cache'] as const;

export type ComparedFigure = (typeof COMPARED)[number];

export interface AttentionRow {
  /** Method of the row; `own`: the model, where it is like no other row. */
  readonly method: AttentionMethod;
  /** `grouped (2 key heads)`. */
  readonly name: string;
  /** Whether the model is like this. */
  readonly isModel: boolean;
  /** Set for kernels that work in tiles. */
  readonly tile?: Tile;
  /** Memory of the scores of one layer, the largest; ℓ and m of the softmax for kernels in tiles. */
  readonly scores: Figure;
  /** Bytes read from and written to the memory of the GPU, all layers. */
  readonly traffic: Figure;
  /** Scores and their sums over the values, all layers; without projections. */
  readonly flops: Figure;
  /** Keys and values of all layers. */
  readonly cache: Figure;
  /** Tokens that the last one can read from through all layers, itself included. */
  readonly reach: Quantity;
  /** Plain attention divided by this row; Infinity where the row has nothing. @real @minimum 0 */
  readonly ratios: Readonly<Record<ComparedFigure, number>>;
}

export interface AttentionMethods {
  /** Sizes that the figures are counted for. */
  readonly setting: Omit<AttentionSetting, 'contexts' | 'keyHeads'> & {
    readonly window: number;
  };
  /** Number of attention layers; others have no scores. @integer @minimum 1 */
  readonly layers: number;
  /** Heads of the first attention layer. @integer @minimum 1 */
  readonly heads: number;
  /** Its key heads. @integer @minimum 1 */
  readonly keyHeads: number;
  /** Width of its heads. @integer @minimum 1 */
  readonly headDim: number;
  /** Figures for each context, from the shortest to the longest. */
  readonly contexts: readonly {
    /** Tokens of a sequence. @integer @minimum 1 */
    readonly context: number;
    /** The methods. */
    readonly rows: readonly AttentionRow[];
  }[];
}

/** Methods of attention on one model. */
export interface AttentionResult extends AttentionMethods {
  readonly schema: 'minimind/attention@1';
  /** Path of the model as the user wrote it. */
  readonly file: string;
  /** Family of the model. */
  readonly family: string;
  /** GPU of the tiles; null for --on-chip. */
  readonly gpu: string | null;
  /** Operations of each kind of norm. */
  readonly norms: NormOperations;
  /** Counted ratios near published ones; absent without `--published`. */
  readonly published?: readonly RatioMatch[];
  /** Set for --chunk, for the longest context. */
  readonly longTexts?: LongTexts;
}

/** Heads, widths and masks of one layer. */
interface AttentionLayer {
  readonly heads: number;
  readonly keyHeads: number;
  readonly headDim: number;
  readonly valueDim: number;
  readonly spans: readonly HeadSpan[];
}

/** A method before its figures. */
interface Variant {
  readonly method: AttentionMethod;
  readonly name: string;
  readonly layers: readonly AttentionLayer[];
  readonly isModel: boolean;
  /** Whether its kernel works in tiles on the chip. */
  readonly inTiles?: boolean;
  /** Tokens of a block, for the block-sparse mask. */
  readonly block?: number;
}

/** Window of the hybrid family's defaults, for models without one. */
const USUAL_WINDOW = 1024;
const USUAL_GLOBAL_HEADS = 2;
/** Llama 3 has 8 key heads for 32. */
const USUAL_GROUP = 4;

/**
 * Figures of each method for each context.
 * @throws UserError for a model without softmax attention, and for heads that do not fit it.
 */
export function attentionMethodsOf(model: Layer, options: AttentionSetting): AttentionMethods {
  const scores = primitivesOf(model).filter((each): each is Scores => each.kind === 'scores');
  const [first] = scores;
  if (first === undefined) {
    throw usageError(
      'expected attention layers, found no softmax attention',
      'profile shows the state of other layers',
    );
  }
  refuseGlobalHeads(options.globalHeads, Math.max(...scores.map(({ heads }) => heads)));
  const window = options.window ?? largestWindow(scores) ?? USUAL_WINDOW;
  const variants = variantsOf(scores, window, options);
  const { dtype, onChip, block, globalHeads } = options;
  return {
    setting: { dtype, onChip, block, window, ...(globalHeads !== undefined && { globalHeads }) },
    layers: scores.length,
    heads: first.heads,
    keyHeads: first.keyValueHeads,
    headDim: first.headDim,
    contexts: [...new Set(options.contexts)]
      .sort((a, b) => a - b)
      .map((context) => ({ context, rows: methodRows(model, variants, context, options) })),
  };
}

/** @throws UserError for more heads than the model has. */
function refuseGlobalHeads(wanted: number | undefined, heads: number): void {
  if (wanted === undefined || wanted <= heads) return;
  throw usageError(
    `${setting('globalHeads')}: expected at most ${heads}, the heads of the model, found ${wanted}`,
    `write ${setting('globalHeads', heads)}, or less`,
  );
}

const largestWindow = (layers: readonly Scores[]): number | undefined => {
  const windows = layers.flatMap(({ spans }) => spans.flatMap((span) => span.window ?? []));
  return windows.length === 0 ? undefined : Math.max(...windows.map(({ tokens }) => tokens));
};

// Methods

function variantsOf(
  scores: readonly Scores[],
  tokens: number,
  { window, block, globalHeads, keyHeads }: AttentionSetting,
): Variant[] {
  const own = scores.map(layerOf);
  const plain = own.map((layer) => ({
    ...layer,
    keyHeads: layer.heads,
    spans: [{ heads: layer.heads, window: undefined }],
  }));
  const isLocal = own.some(({ spans }) => spans.some((span) => span.window?.rule === 'local'));
  const asGiven = isLocal && globalHeads === undefined && window === undefined;
  const masked = (spansOf: (heads: number) => readonly HeadSpan[]) =>
    plain.map((layer) => ({ ...layer, spans: spansOf(layer.heads) }));
  const variants: Omit<Variant, 'isModel'>[] = [
    { method: 'plain', name: 'plain', layers: plain },
    { method: 'flash', name: 'flash', layers: plain, inTiles: true },
    ...(keyHeads ?? [undefined]).map((count) => groupedVariant(plain, own, count)),
    {
      method: 'window',
      name: `window ${tokens}`,
      layers: masked((heads) => [{ heads, window: { rule: 'sliding', tokens } }]),
    },
    {
      method: 'hierarchical',
      name: 'hierarchical',
      layers: asGiven ? own : masked((heads) => localSpans(heads, tokens, globalHeads)),
    },
    { method: 'block-sparse', name: `block-sparse ${block}`, layers: plain, inTiles: true, block },
  ];
  const asText = (layers: readonly AttentionLayer[]) => JSON.stringify(layers);
  const isPlainCache = scores.every(
    ({ latent, keeps }) => latent === undefined && keeps === undefined,
  );
  // The first row that is like the model; the kernel is not part of it.
  const like = isPlainCache
    ? variants.findIndex((each) => !each.inTiles && asText(each.layers) === asText(own))
    : -1;
  return [
    ...variants.map((each, at) => ({ ...each, isModel: at === like })),
    ...(like < 0
      ? [{ method: 'own', name: 'this model', layers: own, isModel: true } as const]
      : []),
  ];
}

const layerOf = ({ heads, keyValueHeads, headDim, valueDim, spans }: Scores): AttentionLayer => ({
  heads,
  keyHeads: keyValueHeads,
  headDim,
  valueDim,
  spans: spans.map((span) => ({ heads: span.heads, window: span.window })),
});

function groupedVariant(
  plain: readonly AttentionLayer[],
  own: readonly AttentionLayer[],
  count: number | undefined,
): Omit<Variant, 'isModel'> {
  const layers = plain.map((layer, at) => {
    const ownHeads = own[at]?.keyHeads ?? layer.heads;
    const wanted = count ?? (ownHeads < layer.heads ? ownHeads : quarterOf(layer.heads));
    if (layer.heads % wanted !== 0) {
      throw usageError(
        `${setting('keyHeads')}: expected a divisor of ${layer.heads} heads, found ${wanted}`,
        `write ${setting('keyHeads', quarterOf(layer.heads))}`,
      );
    }
    return { ...layer, keyHeads: wanted };
  });
  const [shown = 1] = layers.map(({ keyHeads }) => keyHeads);
  return {
    method: 'grouped',
    name: `grouped (${shown} key ${shown === 1 ? 'head' : 'heads'})`,
    layers,
  };
}

/** Largest divisor of the heads that is at most a quarter of them. */
function quarterOf(heads: number): number {
  let wanted = Math.max(1, Math.floor(heads / USUAL_GROUP));
  while (heads % wanted !== 0) wanted--;
  return wanted;
}

/** Heads of the hybrid family: the last ones see everything, the others half a window back. */
function localSpans(heads: number, tokens: number, wanted = USUAL_GLOBAL_HEADS): HeadSpan[] {
  const globals = Math.min(wanted, heads);
  return [
    { heads: heads - globals, window: { rule: 'local', tokens } as const },
    { heads: globals, window: undefined },
  ].filter((span) => span.heads > 0);
}

// Figures

function methodRows(
  model: Layer,
  variants: readonly Variant[],
  context: number,
  options: AttentionSetting,
): AttentionRow[] {
  const all = variants.map((variant) => methodFigures(model, variant, context, options));
  const [plain] = all;
  if (plain === undefined) return [];
  return all.map((row) => {
    const ratio = (name: ComparedFigure) => Number(plain[name].value) / Number(row[name].value);
    const [scores, traffic] = [ratio('scores'), ratio('traffic')];
    return { ...row, ratios: { scores, traffic, flops: ratio('flops'), cache: ratio('cache') } };
  });
}

function methodFigures(
  model: Layer,
  variant: Variant,
  context: number,
  { dtype, onChip }: AttentionSetting,
): Omit<AttentionRow, 'ratios'> {
  const { method, name, isModel, layers, inTiles = false } = variant;
  const bits = v({ bits: DTYPES[dtype].bits });
  const asBytes = (values: Expression) => ceildiv(mul(values, bits), 8);
  const tokens = v({ context });
  const tiling = tilingOf(layers, context, { bytes: onChip.bytes, bits: DTYPES[dtype].bits });
  const label = (what: string) => `${name}: ${what}`;
  const scores = inTiles
    ? figure({
        label: label('softmax statistics'),
        unit: 'bytes',
        formula: asBytes(mul(2, v({ heads: most(layers, ({ heads }) => heads) }), tokens)),
        source: 'ℓ and m of each query (arXiv 2205.14135, theorem 1); the scores stay on the chip',
      })
    : figure({
        label: label('scores of one layer'),
        unit: 'bytes',
        formula: asBytes(
          storedOf([largestOf(layers, context)], context, ({ heads }) => heads, 'heads'),
        ),
        source: 'scores of each head, with those that the causal mask hides',
      });
  return {
    method,
    name,
    isModel,
    ...(inTiles && { tile: tiling.tile }),
    scores,
    traffic: figure({
      label: label('HBM traffic'),
      unit: 'bytes',
      ...(inTiles
        ? {
            formula: asBytes(tiledTraffic(variant, context, tiling)),
            source:
              'K and V once; for each block of keys Q, O, ℓ and m read, O, ℓ and m written (arXiv 2205.14135, ' +
              `algorithm 1); Bc = ⌈M / 4d⌉, Br = min(Bc, d) for ${onChip.source}` +
              (variant.block === undefined
                ? ''
                : '; times the share of blocks computed (proposition 4)'),
          }
        : {
            formula: asBytes(
              add(
                mul(
                  4,
                  storedOf(layers, context, ({ heads }) => heads, 'heads'),
                ),
                mul(
                  tokens,
                  add(
                    v({
                      query_and_output_width: total(
                        layers,
                        (each) => each.heads * bothWidths(each),
                      ),
                    }),
                    v({
                      key_and_value_width: total(
                        layers,
                        (each) => each.keyHeads * bothWidths(each),
                      ),
                    }),
                  ),
                ),
              ),
            ),
            source:
              'S and P written and read, Q, K and V read, O written (arXiv 2205.14135, algorithm 0)',
          }),
    }),
    flops: figure({
      label: label('scores and values'),
      unit: 'FLOP',
      formula: mul(
        2,
        variant.block === undefined
          ? storedOf(
              layers,
              context,
              (each) => each.heads * bothWidths(each),
              'query_and_value_width',
            )
          : mul(
              v({ query_and_value_width: total(layers, (each) => each.heads * bothWidths(each)) }),
              v({ scores_of_blocks: exact(blockScores(context, variant.block)) }),
            ),
      ),
      source: 'q·kᵀ and its sum over v: 2 FLOP per multiply-accumulate, for each computed score',
    }),
    cache:
      method === 'own'
        ? stateOf(model, { batch: 1, context, dtype }).keyValueCache.reworded({
            label: label('KV cache'),
          })
        : figure({
            label: label('KV cache'),
            unit: 'bytes',
            formula: asBytes(keptValues(variant, context)),
            source: 'a key and a value for each key head and kept position',
          }),
    reach: reachQuantity(variant, context),
  };
}

const bothWidths = ({ headDim, valueDim }: AttentionLayer) => headDim + valueDim;

const total = (layers: readonly AttentionLayer[], of: (layer: AttentionLayer) => number) =>
  sumOf(layers, (layer) => of(layer));

const most = (layers: readonly AttentionLayer[], of: (layer: AttentionLayer) => number) =>
  Math.max(...layers.map(of));

/** The layer with the most scores. */
const largestOf = (layers: readonly AttentionLayer[], context: number): AttentionLayer => {
  const scoresOf = ({ spans }: AttentionLayer) =>
    spans.reduce(
      (sum, { heads, window }) => sum + BigInt(heads) * storedScores(context, window),
      0n,
    );
  return layers.reduce((a, b) => (scoresOf(b) > scoresOf(a) ? b : a));
};

/** Scores of one head: the square, a band as wide as the window, the chunks, or the blocks of the hybrid family. */
function storedScores(context: number, window: Window | undefined): bigint {
  if (window === undefined || window.rule === 'local' || window.rule === 'compressed') {
    return scoreValues(context, window);
  }
  const [tokens, size] = [BigInt(context), BigInt(window.tokens)];
  if (window.rule === 'chunked') return (tokens / size) * size ** 2n + (tokens % size) ** 2n;
  return tokens * (tokens < size ? tokens : size);
}

/** Σ of `of` × scores, spans with one window together. `of` is for all heads of a layer, in proportion to a span's. */
function storedOf(
  layers: readonly AttentionLayer[],
  context: number,
  of: (layer: AttentionLayer) => number,
  name: string,
): Expression {
  const spans = sumByWindow(layers, (layer, heads) => (of(layer) / layer.heads) * heads);
  const tokens = v({ context });
  return add(
    ...[...spans].map(([key, { window, size }]) => {
      const suffix = window === undefined && spans.size === 1 ? '' : `_${key}`;
      const sized = v({ [`${name}${suffix}`]: size });
      if (window === undefined) return mul(sized, tokens, tokens);
      if (window.rule === 'sliding')
        return mul(sized, tokens, min(tokens, v({ [key]: window.tokens })));
      return mul(sized, v({ [`scores_${key}`]: exact(storedScores(context, window)) }));
    }),
  );
}

interface Tiling {
  readonly tile: Tile;
  /** Passes over Q and O: blocks of keys. */
  readonly passes: number;
}

/** Blocks of the paper for the widest heads, as it has one width. */
function tilingOf(
  layers: readonly AttentionLayer[],
  context: number,
  { bytes, bits }: { readonly bytes: number; readonly bits: number },
): Tiling {
  const width = most(layers, ({ headDim, valueDim }) => Math.max(headDim, valueDim));
  const columns = Math.ceil(Math.floor((bytes * 8) / bits) / (4 * width));
  return {
    tile: { rows: Math.min(columns, width), columns },
    passes: Math.ceil(context / columns),
  };
}

/** Values read and written by algorithm 1. */
function tiledTraffic({ layers, block }: Variant, context: number, { passes }: Tiling): Expression {
  const tokens = v({ context });
  const widths = total(
    layers,
    ({ heads, headDim, valueDim }) => heads * (headDim + 2 * valueDim + 4),
  );
  const loop = mul(v({ key_blocks: passes }), tokens, v({ width_per_pass: widths }));
  const once = mul(
    tokens,
    v({ key_and_value_width: total(layers, (each) => each.keyHeads * bothWidths(each)) }),
  );
  if (block === undefined) return add(once, loop);
  const computed = v({ scores_of_blocks: exact(blockScores(context, block)) });
  return add(once, ceildiv(mul(loop, computed), mul(tokens, tokens)));
}

/** Scores of the visible blocks of one head: the first, the one before and the own of each block of queries. */
function blockScores(context: number, block: number): bigint {
  const rows = BigInt(context % block);
  const [size, blocks] = [BigInt(block), BigInt(Math.floor(context / block))];
  const before = blocks < 2n ? blocks : 2n;
  // Blocks with 1, 2 and 3 visible blocks, and the rest of the last one.
  const whole = before === 0n ? 0n : before === 1n ? 1n : 3n * blocks - 3n;
  return size * size * whole + rows * (before * size + rows);
}

/** Cached values, all layers. */
function keptValues({ layers, block }: Variant, context: number): Expression {
  const tokens = v({ context });
  if (block !== undefined) {
    const width = total(layers, (each) => each.keyHeads * bothWidths(each));
    return mul(v({ key_and_value_width: width }), min(tokens, mul(3, v({ block }))));
  }
  const spans = sumByWindow(
    layers,
    (layer, heads) => (heads * layer.keyHeads * bothWidths(layer)) / layer.heads,
  );
  return add(
    ...[...spans].map(([key, { window, size }]) =>
      mul(v({ [`key_and_value_width_${key}`]: size }), keptOf(window, tokens)),
    ),
  );
}

// Reach

function reachQuantity({ name, layers, block }: Variant, context: number): Quantity {
  const label = `${name}: reach of the last token`;
  const depth = v({ layers: layers.length });
  const tokens = v({ context });
  if (block !== undefined) {
    const behind = (context - 1) % block;
    const own = v({ tokens_of_last_block: behind + 1 });
    return quantity({
      label,
      unit: 'tokens',
      formula: min(tokens, add(mul(depth, v({ block })), own)),
      source: 'each layer reaches one more block back; the first block is always seen, too',
    });
  }
  const windows = new Map(
    layers.flatMap(({ spans }) => spans.map(({ window }) => [windowKey(window), window] as const)),
  );
  const [only] = windows.values();
  if (windows.size === 1 && only === undefined) {
    return quantity({ label, unit: 'tokens', formula: tokens, source: 'all earlier positions' });
  }
  if (windows.size === 1 && only?.rule === 'sliding') {
    const further = v({ window_minus_own: only.tokens - 1 });
    return quantity({
      label,
      unit: 'tokens',
      formula: min(tokens, add(mul(depth, further), 1)),
      source: 'each layer reaches window − 1 positions further back',
    });
  }
  return quantity({
    label,
    unit: 'tokens',
    formula: v({ positions_reached: context - earliestRead(layers, context) }),
    source: 'first visible key of the head that sees furthest, layer by layer from the last',
  });
}

/** First position that the last one reads from, through all layers. */
function earliestRead(layers: readonly AttentionLayer[], context: number): number {
  let position = context - 1;
  for (const { spans } of layers.toReversed()) {
    position = Math.min(...spans.map(({ window }) => firstVisibleKey(position, context, window)));
  }
  return position;
}

// Published ratios

/** A ratio of one row to plain attention. */
export interface FoundRatio {
  /** Tokens of a sequence. @integer @minimum 1 */
  readonly context: number;
  /** Method of the row; `own`: the model, where it is like no other row. */
  readonly method: AttentionMethod;
  /** Name of the row. */
  readonly name: string;
  /** The compared figure. */
  readonly figure: ComparedFigure;
  /** Plain attention divided by the row; Infinity where the row has nothing. @real @minimum 0 */
  readonly ratio: number;
}

export interface RatioMatch {
  /** The published ratio. */
  readonly published: number;
  /** Ratios within 2 %. */
  readonly matches: readonly FoundRatio[];
  /** The closest where none is that close. */
  readonly nearest?: FoundRatio;
}

const CLOSE = 0.02;

/** Rows and figures with the ratios of a publication. */
export function matchRatios(
  { contexts }: Pick<AttentionMethods, 'contexts'>,
  published: readonly number[],
): RatioMatch[] {
  const all = contexts.flatMap(({ context, rows }) =>
    rows.flatMap(({ method, name, ratios }): FoundRatio[] =>
      COMPARED.map((each) => ({ context, method, name, figure: each, ratio: ratios[each] })),
    ),
  );
  return published.map((value) => {
    const distance = ({ ratio }: FoundRatio) => Math.abs(Math.log(ratio / value));
    const matches = all.filter((each) => Math.abs(each.ratio / value - 1) <= CLOSE);
    const nearest = all.reduce((a, b) => (distance(b) < distance(a) ? b : a));
    return { published: value, matches, ...(matches.length === 0 && { nearest }) };
  });
}
