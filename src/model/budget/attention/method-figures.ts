/**
 * Figures of a method of attention.
 *
 * A kernel either stores its scores in the memory of the GPU and passes over them four times (writes S, reads S,
 * writes P, reads P: arXiv 2205.14135, algorithm 0), or works in tiles on the chip (algorithm 1). Scores count as
 * computed, with those that the causal mask hides.
 */
import { DTYPES } from '../../../base/tensor/dtype.js';
import { sumOf } from '../../../base/values.js';
import type { Layer, Window } from '../../architecture/layer.js';
import { firstVisibleKey, scoreValues, sumByWindow, windowKey } from '../../architecture/masks.js';
import { add, ceildiv, type Expression, min, mul, v } from '../expression.js';
import { exact, type Figure, figure, type Quantity, quantity } from '../figure.js';
import { keptOf, stateOf } from '../state.js';
import type {
  AttentionLayer,
  AttentionRow,
  AttentionSetting,
  Tile,
  Variant,
} from './attention-result.js';

/** A method of attention for one context, from which all its figures follow. */
interface MethodCase {
  readonly variant: Variant;
  /** Tokens. */
  readonly context: number;
  readonly setting: AttentionSetting;
}

/**
 * Figures of a method for a context, without its ratios to plain attention.
 * @param model The model, whose own cache counts for the method `own`.
 */
export function methodFigures(
  model: Layer,
  variant: Variant,
  context: number,
  setting: AttentionSetting,
): Omit<AttentionRow, 'ratios'> {
  const { method, name, isModel, inTiles = false } = variant;
  const methodCase: MethodCase = { variant, context, setting };
  return {
    method,
    name,
    isModel,
    ...(inTiles && { tile: tilingOf(methodCase).tile }),
    scores: inTiles ? softmaxStatistics(methodCase) : largestScores(methodCase),
    traffic: inTiles ? tiledTraffic(methodCase) : plainTraffic(methodCase),
    flops: scoreFlops(methodCase),
    cache: method === 'own' ? ownCache(model, methodCase) : keyValueCache(methodCase),
    reach: reachQuantity(variant, context),
  };
}

/** Bytes of values of the setting's type. */
const asBytes = ({ setting }: MethodCase, values: Expression): Expression =>
  ceildiv(mul(values, v({ bits: DTYPES[setting.dtype].bits })), 8);

function softmaxStatistics(methodCase: MethodCase): Figure {
  const { variant, context } = methodCase;
  const heads = v({ heads: most(variant.layers, (layer) => layer.heads) });
  return figure({
    label: `${variant.name}: softmax statistics`,
    unit: 'bytes',
    formula: asBytes(methodCase, mul(2, heads, v({ context }))),
    source: 'ℓ and m of each query (arXiv 2205.14135, theorem 1); the scores stay on the chip',
  });
}

function largestScores(methodCase: MethodCase): Figure {
  const { variant, context } = methodCase;
  const layer = largestOf(variant.layers, context);
  return figure({
    label: `${variant.name}: scores of one layer`,
    unit: 'bytes',
    formula: asBytes(
      methodCase,
      storedOf([layer], context, ({ heads }) => heads, 'heads'),
    ),
    source: 'scores of each head, with those that the causal mask hides',
  });
}

function plainTraffic(methodCase: MethodCase): Figure {
  const { variant, context } = methodCase;
  const { layers } = variant;
  const widths = add(
    v({ query_and_output_width: total(layers, (each) => each.heads * bothWidths(each)) }),
    v({ key_and_value_width: total(layers, (each) => each.keyHeads * bothWidths(each)) }),
  );
  const scores = storedOf(layers, context, ({ heads }) => heads, 'heads');
  return figure({
    label: `${variant.name}: HBM traffic`,
    unit: 'bytes',
    formula: asBytes(methodCase, add(mul(4, scores), mul(v({ context }), widths))),
    source: 'S and P written and read, Q, K and V read, O written (arXiv 2205.14135, algorithm 0)',
  });
}

function tiledTraffic(methodCase: MethodCase): Figure {
  const { variant, setting } = methodCase;
  return figure({
    label: `${variant.name}: HBM traffic`,
    unit: 'bytes',
    formula: asBytes(methodCase, tiledValues(methodCase)),
    source:
      'K and V once; for each block of keys Q, O, ℓ and m read, O, ℓ and m written (arXiv 2205.14135, ' +
      `algorithm 1); Bc = ⌈M / 4d⌉, Br = min(Bc, d) for ${setting.onChip.source}` +
      (variant.block === undefined ? '' : '; times the share of blocks computed (proposition 4)'),
  });
}

function scoreFlops({ variant, context }: MethodCase): Figure {
  const { name, layers, block } = variant;
  const widthOf = (layer: AttentionLayer) => layer.heads * bothWidths(layer);
  const products =
    block === undefined
      ? storedOf(layers, context, widthOf, 'query_and_value_width')
      : mul(
          v({ query_and_value_width: total(layers, widthOf) }),
          v({ scores_of_blocks: exact(blockScores(context, block)) }),
        );
  return figure({
    label: `${name}: scores and values`,
    unit: 'FLOP',
    formula: mul(2, products),
    source: 'q·kᵀ and its sum over v: 2 FLOP per multiply-accumulate, for each computed score',
  });
}

const ownCache = (model: Layer, { variant, context, setting }: MethodCase): Figure =>
  stateOf(model, { batch: 1, context, dtype: setting.dtype }).keyValueCache.reworded({
    label: `${variant.name}: KV cache`,
  });

const keyValueCache = (methodCase: MethodCase): Figure =>
  figure({
    label: `${methodCase.variant.name}: KV cache`,
    unit: 'bytes',
    formula: asBytes(methodCase, keptValues(methodCase.variant, methodCase.context)),
    source: 'a key and a value for each key head and kept position',
  });

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
function tilingOf({ variant, context, setting }: MethodCase): Tiling {
  const width = most(variant.layers, ({ headDim, valueDim }) => Math.max(headDim, valueDim));
  const values = Math.floor((setting.onChip.bytes * 8) / DTYPES[setting.dtype].bits);
  const columns = Math.ceil(values / (4 * width));
  return {
    tile: { rows: Math.min(columns, width), columns },
    passes: Math.ceil(context / columns),
  };
}

/** Values read and written by algorithm 1. */
function tiledValues(methodCase: MethodCase): Expression {
  const { layers, block } = methodCase.variant;
  const { context } = methodCase;
  const { passes } = tilingOf(methodCase);
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
