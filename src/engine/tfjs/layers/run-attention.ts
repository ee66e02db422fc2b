import { decodeValues } from '../../../base/tensor/decode-values.js';
import type { CacheType } from '../../../base/tensor/dtype.js';
import { encode } from '../../../base/tensor/encode.js';
import { decodeBlocks } from '../../../checkpoint/gguf/blocks/decode-blocks.js';
import { encodeBlocks } from '../../../checkpoint/gguf/blocks/encode-blocks.js';
import { ggmlType } from '../../../checkpoint/gguf/ggml-types.js';
import type {
  Alibi,
  Attention,
  AttentionCore,
  HeadSpan,
  LatentAttention,
  Temperature,
  Window,
} from '../../../model/architecture/layer.js';
import { alibiScore } from '../../../model/architecture/masks.js';
import { gateWidth, valueWidth } from '../../../model/architecture/walk.js';
import { decodingKeys, firstKeys } from '../../calls.js';
import { activate } from '../differentiable.js';
import type { Tensor, Tensor1D, Tensor2D, Tensor3D, Tensor4D, Tf } from '../packages.js';
import type { DecodingState, ForwardRun, HeadMemory } from '../run.js';
import { concatenated, readValues, rowsAfter } from '../run.js';
import { applySoftcap, runProjections, runRotary } from './basic.js';
import { type IndexerInputs, runIndexer } from './run-indexer.js';

// The keys and values of attention by head: those of this run after the cached ones; d is headDim.

/** x [B, T, heads · d] → [T, d] for each sequence and, within it, each head. */
function splitHeads(tf: Tf, x: Tensor3D, headDim: number): Tensor2D[] {
  const [batch, tokens, width] = x.shape;
  const heads = width / headDim;
  return Array.from({ length: batch * heads }, (_, index) => {
    const [sequence, head] = [Math.floor(index / heads), index % heads];
    const part = tf.slice(x, [sequence, 0, head * headDim], [1, tokens, headDim]);
    return tf.reshape(part, [tokens, headDim]);
  });
}

/** Keys and values for each sequence and key-value head. k, v: [B, T, keyValueHeads · d]. */
function headKeys(run: ForwardRun, layer: AttentionCore, k: Tensor3D, v: Tensor3D): HeadKeys[] {
  const { tf, decoding } = run;
  const values = splitHeads(tf, v, valueWidth(layer));
  const heads = splitHeads(tf, k, layer.headDim).map((keys, index) => ({
    keys,
    values: values[index] as Tensor2D,
  }));
  if (!decoding) {
    return heads.map((head) => ({ ...head, first: 0, keys: tf.transpose(head.keys) }));
  }
  const reads = typeof layer.sharing === 'object';
  const name = typeof layer.sharing === 'object' ? layer.sharing.from : layer.name;
  const before = decoding.before.attentions.get(name);
  const known = heads.map((head, index) =>
    concatenatedHeads(before?.[index], head, decoding.cacheType),
  );
  if (!reads) decoding.after.attentions.set(name, trimmedCache(run, decoding, layer, known));
  return known.map(({ first, ...rows }) => {
    const matrix = (data: Float32Array, width: number) =>
      tf.tensor2d(data, [data.length / width, width]);
    return {
      first,
      keys: tf.transpose(matrix(rows.keys, layer.headDim)),
      values: matrix(rows.values, valueWidth(layer)),
    };
  });
}

function concatenatedHeads(
  before: HeadMemory | undefined,
  { keys, values }: { keys: Tensor2D; values: Tensor2D },
  type: CacheType | undefined,
): HeadMemory {
  const newKeys = asCached(type, readValues(keys));
  const newValues = asCached(type, readValues(values));
  if (!before) return { first: 0, keys: newKeys, values: newValues };
  return {
    first: before.first,
    keys: concatenated(before.keys, newKeys),
    values: concatenated(before.values, newValues),
  };
}

/** Values of a head as a cache of another type returns them, by the encoders of GGUF. */
function asCached(type: CacheType | undefined, values: Float32Array): Float32Array {
  if (type === undefined) return values;
  if (type === 'f16') {
    const [words, numbers] = [new Uint8Array(2 * values.length), new Float64Array(values.length)];
    encode('F16', Float64Array.from(values), words);
    decodeValues('F16', words, numbers);
    return Float32Array.from(numbers);
  }
  const name = type === 'q8_0' ? 'Q8_0' : 'Q4_0';
  const { values: perBlock, bytes } = ggmlType(name);
  const blocks = new Uint8Array((values.length / perBlock) * bytes);
  const rounded = new Float32Array(values.length);
  encodeBlocks(name, values, blocks);
  decodeBlocks(name, blocks, rounded);
  return rounded;
}

/** The cache without keys that later queries cannot see. */
function trimmedCache(
  { start, tokens }: ForwardRun,
  { totalTokens }: DecodingState,
  layer: AttentionCore,
  known: readonly HeadMemory[],
): HeadMemory[] {
  const { spans, heads, keyValueHeads } = layer;
  const firstSeen = spans.flatMap((span) => {
    const [first = 0] = decodingKeys(start + tokens, 1, span.window, totalTokens);
    return new Array<number>(span.heads).fill(first);
  });
  const group = heads / keyValueHeads;
  return known.map(({ first, keys, values }, index) => {
    const head = (index % keyValueHeads) * group;
    const from = Math.max(first, Math.min(...firstSeen.slice(head, head + group)));
    const skipped = from - first;
    return {
      first: from,
      keys: keys.slice(skipped * layer.headDim),
      values: values.slice(skipped * valueWidth(layer)),
    };
  });
}

// Softmax attention over given queries, keys and values.

/** Keys and values visible to the queries of a head; d is the width of a query. */
export interface HeadKeys {
  /** Position of the first key. */
  readonly first: number;
  /** [d, S]: transposed once, so that products need no transposition. */
  readonly keys: Tensor2D;
  /** [S, width of a value] */
  readonly values: Tensor2D;
  /** Bonus of the score of each key, [S]; a query sees only the `kept` visible keys with the largest. */
  readonly gains?: { readonly ofKeys: Tensor1D; readonly kept: number };
}

/** Query heads that read the same keys and values. */
export interface HeadGroup extends HeadKeys {
  /** Scaled queries of each head: [T, d]. */
  readonly queries: readonly Tensor2D[];
  /** ALiBi of these heads. */
  readonly alibi?: Pick<Alibi, 'slopes' | 'bfloat16Factor'> | undefined;
  /** Score of each head without a value, [heads]. */
  readonly sinks?: Tensor1D | undefined;
  /** 0 for a chosen key, −∞ for another: for each head, or for all, [heads or 1, T, S]. */
  readonly selection?: Tensor3D | undefined;
}

/** Rules for all heads with the same window. */
export interface Rules {
  readonly window: Window | undefined;
  readonly softcap?: number | undefined;
}

/** Rows of scores of a group in memory at a time; keys that none of them sees are excluded. */
const ROWS_AT_ONCE = 512;

/** A range of queries and the keys that they see: all positions. */
interface QueryRange {
  readonly from: number;
  readonly to: number;
  readonly firstKey: number;
  readonly endKey: number;
}

/**
 * The groups of each sequence → [B, T, heads · width of a value]. Computes two products of plain matrices for each
 * group and block, because the wasm backend is 10 to 20 times slower for batched products.
 */
function attend(
  run: ForwardRun,
  sequences: readonly (readonly HeadGroup[])[],
  rules: Rules,
): Tensor3D {
  const { tf, start, tokens } = run;
  const seen = firstKeys({ start, tokens, total: run.decoding?.totalTokens }, rules.window);
  const heads = Math.max(...sequences.flat().map(({ queries }) => queries.length));
  const atOnce = Math.max(1, Math.floor(ROWS_AT_ONCE / heads));
  const blocks: Tensor3D[] = [];
  for (let from = 0; from < tokens; from += atOnce) {
    const to = Math.min(from + atOnce, tokens);
    const firstKey = seen.subarray(from, to).reduce((least, key) => Math.min(least, key));
    const block = { from, to, firstKey, endKey: start + to };
    blocks.push(tf.tidy(() => attendBlock(run, sequences, block, { ...rules, seen })));
  }
  return tf.concat(blocks, 1);
}

type BlockRules = Rules & { readonly seen: Int32Array };

function attendBlock(
  run: ForwardRun,
  sequences: readonly (readonly HeadGroup[])[],
  block: QueryRange,
  rules: BlockRules,
): Tensor3D {
  const { tf } = run;
  const mask = maskOf(run, block, rules.seen);
  const rows = sequences.map((groups) =>
    tf.concat(
      groups.flatMap((group) =>
        tf.tidy(() => attendGroup(tf, group, block, { ...rules, mask, start: run.start })),
      ),
      1,
    ),
  );
  return tf.stack(rows) as Tensor3D; // (B, to − from, heads · width)
}

/** Output of each head: [to − from, width of a value]. */
function attendGroup(
  tf: Tf,
  group: HeadGroup,
  block: QueryRange,
  rules: BlockRules & { readonly mask: Tensor2D | undefined; readonly start: number },
): Tensor2D[] {
  const { from, to, firstKey, endKey } = block;
  const [heads, count, rows] = [group.queries.length, endKey - firstKey, to - from];
  const first = firstKey - group.first;
  const parts = group.queries.map((each): Tensor2D => tf.slice(each, [from, 0], [rows, -1]));
  const queries = tf.concat(parts);
  const keys: Tensor2D = tf.slice(group.keys, [0, first], [-1, count]);
  const values: Tensor2D = tf.slice(group.values, [first, 0], [count, -1]);
  const products: Tensor2D = tf.matMul(queries, keys); // (heads · rows, S)
  const capped = rules.softcap === undefined ? products : applySoftcap(tf, products, rules.softcap);
  const scores = [
    rules.mask,
    penaltyOf(tf, group, block),
    gainsOf(tf, group, block, rules),
    chosenOf(tf, group, block),
  ].reduce<Tensor>(
    (sum, each) => (each ? tf.add(sum, each) : sum),
    tf.reshape(capped, [heads, rows, count]),
  );
  const shares = group.sinks ? withoutSinks(tf, scores, group.sinks) : tf.softmax(scores);
  const weights: Tensor2D = tf.reshape(shares, [heads * rows, count]);
  const result: Tensor2D = tf.matMul(weights, values);
  return heads === 1 ? [result] : (tf.split(result, heads) as Tensor2D[]);
}

/** Probabilities: softmax of scores [heads, rows, S] and one sink per head, without the sinks' shares. */
function withoutSinks(tf: Tf, scores: Tensor, sinks: Tensor1D): Tensor {
  const [heads = 0, rows = 0, count = 0] = scores.shape;
  const columns = tf.tile(tf.reshape(sinks, [heads, 1, 1]), [1, rows, 1]);
  const all: Tensor3D = tf.softmax(tf.concat([scores as Tensor3D, columns as Tensor3D], 2));
  return tf.slice(all, [0, 0, 0], [heads, rows, count]);
}

/** ALiBi's penalty of the scores, relative to the last key: softmax depends only on differences. [heads, 1, S] */
function penaltyOf(
  tf: Tf,
  { alibi }: HeadGroup,
  { firstKey, endKey }: QueryRange,
): Tensor3D | undefined {
  if (!alibi) return undefined;
  const keys = endKey - firstKey;
  const penalties = alibi.slopes.flatMap((_, head) => {
    const own = alibiScore(alibi, head, endKey - 1);
    return Array.from({ length: keys }, (_key, at) => alibiScore(alibi, head, firstKey + at) - own);
  });
  return tf.tensor3d(penalties, [alibi.slopes.length, 1, keys]);
}

/** Bonus of the scores, −∞ for visible keys that are not kept: [1, to − from, S]. */
function gainsOf(
  tf: Tf,
  { gains, first: firstRow }: HeadGroup,
  { from, to, firstKey, endKey }: QueryRange,
  { seen, start }: { readonly seen: Int32Array; readonly start: number },
): Tensor3D | undefined {
  if (!gains) return undefined;
  const [rows, count] = [to - from, endKey - firstKey];
  const own: Tensor1D = tf.slice(gains.ofKeys, [firstKey - firstRow], [count]);
  const values = readValues(own);
  const hidden = new Float32Array(rows * count);
  for (let row = 0; row < rows; row++) {
    const [least, most] = [
      Math.max(0, (seen[from + row] ?? 0) - firstKey),
      start + from + row - firstKey,
    ];
    const order = Array.from({ length: most - least + 1 }, (_, at) => least + at);
    order.sort((a, b) => (values[b] ?? 0) - (values[a] ?? 0) || a - b);
    for (const key of order.slice(gains.kept)) {
      hidden[row * count + key] = Number.NEGATIVE_INFINITY;
    }
  }
  return tf.add(tf.tensor3d(hidden, [1, rows, count]), tf.reshape(own, [1, 1, count]));
}
/** The part of a choice of keys for a block, [heads or 1, rows, S]. */
const chosenOf = (
  tf: Tf,
  { selection }: HeadGroup,
  { from, to, firstKey, endKey }: QueryRange,
): Tensor3D | undefined =>
  selection && tf.slice(selection, [0, from, firstKey], [-1, to - from, endKey - firstKey]);

/** 0 where a query sees a key, −∞ elsewhere, [to − from, S]; undefined when every query sees all keys. */
function maskOf(
  { tf, start }: ForwardRun,
  { from, to, firstKey, endKey }: QueryRange,
  seen: Int32Array,
): Tensor2D | undefined {
  // The keys start at the first one visible to the first query, so a single query sees them all.
  if (to - from === 1) return undefined;
  const [rows, columns] = [to - from, endKey - firstKey];
  const mask = new Float32Array(rows * columns).fill(Number.NEGATIVE_INFINITY);
  for (let row = 0; row < rows; row++) {
    const first = (seen[from + row] ?? 0) - firstKey;
    const own = start + from + row - firstKey;
    mask.fill(0, row * columns + first, row * columns + own + 1);
  }
  return tf.tensor2d(mask, [rows, columns]);
}

/** Keys and values of this call: the layer's own, which later layers may share, or those of another layer. */
function keysAndValuesFor(
  run: ForwardRun,
  layer: Attention,
  own: Readonly<Record<'keys' | 'values', () => Tensor3D>>,
): [keys: Tensor3D, values: Tensor3D] {
  const { name, sharing, keyValueHeads } = layer;
  const of = (leaf: 'keys' | 'values'): Tensor3D => {
    if (sharing === undefined) return own[leaf]();
    if (sharing === 'lends') return run.once(`${name}.${leaf}`, own[leaf]);
    const width = keyValueHeads * (leaf === 'keys' ? layer.headDim : valueWidth(layer));
    return run.once(
      `${sharing.from}.${leaf}`,
      (): Tensor3D => run.tf.zeros([run.batch, run.tokens, width]),
    );
  };
  return [of('keys'), of('values')];
}

/** Queries [B, T, ·] multiplied by the temperature of their position. */
function temperatureScaled(
  { tf, start, tokens }: ForwardRun,
  temperature: Temperature | undefined,
  queries: Tensor3D,
): Tensor3D {
  if (!temperature) return queries;
  const { tokens: size, strength, offset } = temperature;
  const factors = Float32Array.from(
    { length: tokens },
    (_, index) => 1 + strength * Math.log1p(Math.floor((start + index + offset) / size)),
  );
  return tf.mul(queries, tf.tensor3d(factors, [1, tokens, 1]));
}

/** u [B, T, H] → [B, T, H]. */
export function runAttention(
  run: ForwardRun,
  layer: Attention,
  u: Tensor3D,
  formed?: Formed,
): Tensor3D {
  const { tf } = run;
  const { queryNorm, keyNorm, rotary, clip } = layer;
  const normed = (norm: typeof queryNorm, x: Tensor3D) => (norm ? run.apply(norm, x) : x);
  const clipped = (x: Tensor3D): Tensor3D =>
    clip === undefined ? x : tf.clipByValue(x, -clip, clip);
  // The rotary layer transforms two values: it has no single output to keep.
  const rotated = (x: Tensor3D) => (rotary ? runRotary(run, rotary, x) : x);
  const prepared = (norm: typeof queryNorm, x: Tensor3D) =>
    layer.normsAfterRotation
      ? normed(norm, rotated(clipped(x)))
      : rotated(clipped(normed(norm, x)));
  const projected = runProjections(run, layer.inputs, u);
  const [gate] = layer.gate ? projected.splice(1, 1) : [];
  const [q, k, v = k] = projected as [Tensor3D, Tensor3D, Tensor3D?];
  const rotatedQueries = temperatureScaled(run, layer.temperature, prepared(queryNorm, q));
  const queries: Tensor3D = tf.mul(rotatedQueries, layer.scale); // (B, T, heads · d)
  const [ownKeys, ownValues] = keysAndValuesFor(run, layer, {
    keys: () => prepared(keyNorm, k),
    values: () => clipped(normed(layer.valueNorm, v)),
  });
  const own = { queries, keys: ownKeys, values: ownValues };
  const selection = layer.selection && runIndexer(run, layer.selection, { input: u });
  const result = attendHeads(run, layer, own, { formed, selection });
  return run.apply(layer.out, gate ? gatedHeads(run, layer, result, gate) : result);
}

/** Output of the heads [B, T, heads · width] times their gate [B, T, heads · gateDim]. */
function gatedHeads(
  { tf }: ForwardRun,
  layer: Attention,
  result: Tensor3D,
  gate: Tensor3D,
): Tensor3D {
  const factors = activate(tf, layer.gate ?? 'identity', gate);
  const [values, gates] = [valueWidth(layer), gateWidth(layer)];
  if (values === gates) return tf.mul(result, factors);
  const byHead = tf.mul(
    tf.reshape(result, [-1, layer.heads, values]),
    tf.reshape(factors, [-1, layer.heads, gates]),
  );
  return tf.reshape(byHead, result.shape);
}

/** Values of one call: scaled queries [B, T, heads · d], keys and values [B, T, keyValueHeads · d]. */
interface OwnHeads {
  readonly queries: Tensor3D;
  readonly keys: Tensor3D;
  readonly values: Tensor3D;
}

/** Keys and values in place of the cached ones, by sequence and key-value head. */
type Formed = (keys: readonly HeadKeys[]) => readonly HeadKeys[];

/** Changes of what the heads see. */
interface SeenKeys {
  readonly formed?: Formed | undefined;
  /** [B, G, T, S] */
  readonly selection?: Tensor4D | undefined;
}

/** Attention output of the heads, [B, T, heads · width of a value]. */
export function attendHeads(
  run: ForwardRun,
  layer: AttentionCore,
  own: OwnHeads,
  { formed = (keys) => keys, selection }: SeenKeys = {},
): Tensor3D {
  const { tf } = run;
  const keys = formed(headKeys(run, layer, own.keys, own.values));
  const queries = splitHeads(tf, own.queries, layer.headDim);
  let first = 0;
  const spans = layer.spans.flatMap((span) => {
    const groups = headGroups(run, layer, span, first, { queries, keys, selection });
    first += span.heads;
    return span.heads === 0 ? [] : [attend(run, groups, { ...span, softcap: layer.softcap })];
  });
  return tf.concat(spans, 2);
}

interface GroupInputs {
  /** By sequence and head. */
  readonly queries: readonly Tensor2D[];
  /** By sequence and key-value head. */
  readonly keys: readonly HeadKeys[];
  /** [B, G, T, S] */
  readonly selection: Tensor4D | undefined;
}

/** Choices of keys of some heads in one sequence, [heads, T, S]. @param all [B, G, T, S] */
function selectionFor(
  { tf }: ForwardRun,
  all: Tensor4D | undefined,
  { sequence, heads, from, to }: Readonly<Record<'sequence' | 'heads' | 'from' | 'to', number>>,
): Tensor3D | undefined {
  if (!all) return undefined;
  const [, groups, tokens, count] = all.shape;
  const ofHead = (head: number): Tensor3D => {
    const group = Math.floor((head * groups) / heads);
    const part = tf.slice(all, [sequence, group, 0, 0], [1, 1, -1, -1]);
    return tf.reshape(part, [1, tokens, count]);
  };
  return tf.concat(Array.from({ length: to - from }, (_, index) => ofHead(from + index)));
}

/** Head groups of a span, which begins at the head `first`, by shared keys and for each sequence. */
function headGroups(
  run: ForwardRun,
  { heads, keyValueHeads, alibi, sinks }: AttentionCore,
  span: HeadSpan,
  first: number,
  { queries, keys, selection }: GroupInputs,
): HeadGroup[][] {
  const { tf, weights } = run;
  const sharing = heads / keyValueHeads;
  const end = first + span.heads;
  return Array.from({ length: queries.length / heads }, (_, sequence) => {
    const groups: HeadGroup[] = [];
    const [own, ownKeys] = [sequence * heads, sequence * keyValueHeads];
    for (let from = first; from < end; ) {
      const group = Math.floor(from / sharing);
      const to = Math.min((group + 1) * sharing, end);
      groups.push({
        ...(keys[ownKeys + group] as HeadKeys),
        queries: queries.slice(own + from, own + to),
        alibi: alibi && { ...alibi, slopes: alibi.slopes.slice(from, to) },
        sinks: sinks && (tf.slice(weights.tensor(sinks), [from], [to - from]) as Tensor1D),
        selection: selectionFor(run, selection, { sequence, heads, from, to }),
      });
      from = to;
    }
    return groups;
  });
}

/** u [B, T, H] → [B, T, H]. Keys and values of all heads are recomputed from the cache in every run. */
export function runLatentAttention(run: ForwardRun, layer: LatentAttention, u: Tensor3D): Tensor3D {
  const { tf } = run;
  const { latentRank, nopeDim, valueDim, rotary, sharedDim } = layer;
  const { made, latent: queryLatent } = latentQueries(run, layer, u);
  const queries = splitHeads(tf, queriesOf(run, layer, made), nopeDim + sharedDim);
  const selection = latentSelection(run, layer, { input: u, latent: queryLatent });
  const down = run.apply(layer.keyValueDown, u);
  const [latent, sharedKey] = splitAt(tf, down, latentRank, 2);
  const { latentScale = 1 } = layer;
  const normed = run.apply(layer.latentNorm, latent);
  const { latents, keys } = latentsSoFar(run, layer, {
    latents: latentScale === 1 ? normed : tf.mul(normed, latentScale),
    keys: rotary ? runRotary(run, rotary, sharedKey) : sharedKey,
  });
  const shared = splitHeads(tf, keys, sharedDim); // (S, rotated) of each sequence
  const heads = splitHeads(tf, run.apply(layer.keyValueUp, latents), nopeDim + valueDim);
  const groups = heads.map((head, index): HeadGroup => {
    const [own, values] = splitAt(tf, head, nopeDim, 1);
    const key = tf.concat([own, shared[Math.floor(index / layer.heads)] as Tensor2D], 1);
    return {
      first: 0,
      keys: tf.transpose(key),
      values,
      queries: [queries[index] as Tensor2D],
      selection: selectionFor(run, selection, {
        sequence: Math.floor(index / layer.heads),
        heads: 1,
        from: 0,
        to: 1,
      }),
    };
  });
  const sequences = shared.map((_, sequence) =>
    groups.slice(sequence * layer.heads, (sequence + 1) * layer.heads),
  );
  return run.apply(layer.out, attend(run, sequences, { window: undefined }));
}

/** Queries, and the latent of which they are made where an indexer reads it. */
function latentQueries(
  run: ForwardRun,
  { query, selection }: LatentAttention,
  u: Tensor3D,
): { made: Tensor3D; latent: Tensor3D } {
  if (!selection || query.kind === 'linear') return { made: run.apply(query, u), latent: u };
  const [down, norm, up] = query.layers;
  const latent = run.apply(norm, run.apply(down, u));
  return { made: run.apply(up, latent), latent };
}

/** The layer's own choice of keys, which later layers may take, or that of another, [B, 1, T, S]. */
function latentSelection(
  run: ForwardRun,
  { name, selection }: LatentAttention,
  inputs: IndexerInputs,
): Tensor4D | undefined {
  if (!selection) return undefined;
  if ('kind' in selection) {
    return run.once(`${name}.selection`, () => runIndexer(run, selection, inputs));
  }
  const { tf, batch, tokens, start } = run;
  return run.once(
    `${selection.from}.selection`,
    (): Tensor4D => tf.zeros([batch, 1, tokens, start + tokens]),
  );
}

/**
 * Scaled queries with the end of each head rotated: [B, T, heads · (nopeDim + rotated)].
 * @param made Queries as the products give them, of the same width.
 */
function queriesOf(run: ForwardRun, layer: LatentAttention, made: Tensor3D): Tensor3D {
  const { tf, batch, tokens } = run;
  const { heads, nopeDim, rotary, sharedDim: rotated } = layer;
  const perHead: Tensor3D = tf.reshape(made, [-1, heads, nopeDim + rotated]);
  const [own, end] = splitAt(tf, perHead, nopeDim, 2);
  const ends: Tensor3D = tf.reshape(end, [batch, tokens, heads * rotated]);
  const rotatedEnds = rotary ? runRotary(run, rotary, ends) : ends;
  const joined = tf.concat([own, tf.reshape(rotatedEnds, [-1, heads, rotated])], 2);
  const queries: Tensor3D = tf.reshape(tf.mul(joined, layer.scale), [batch, tokens, -1]);
  return temperatureScaled(run, layer.temperature, queries);
}

/** Splits in two along an axis, the first `width` wide. */
function splitAt<T extends Tensor2D | Tensor3D>(tf: Tf, x: T, width: number, axis: number): [T, T] {
  return tf.split(x, [width, (x.shape[axis] ?? 0) - width], axis) as [T, T];
}

interface LatentCache {
  /** [B, S, latentRank], normed */
  readonly latents: Tensor3D;
  /** [B, S, sharedDim], rotated */
  readonly keys: Tensor3D;
}

/** Cached latents and keys followed by those of this run. */
function latentsSoFar(
  { tf, decoding }: ForwardRun,
  layer: LatentAttention,
  now: LatentCache,
): LatentCache {
  if (!decoding) return now;
  const before = decoding.before.latents.get(layer);
  const latents = rowsAfter(before?.latents, now.latents);
  const keys = rowsAfter(before?.keys, now.keys);
  decoding.after.latents.set(layer, { latents, keys });
  const tensorOf = (rows: readonly Float32Array[], width: number) =>
    tf.stack(rows.map((each) => tf.tensor2d(each, [each.length / width, width]))) as Tensor3D;
  return {
    latents: tensorOf(latents, layer.latentRank),
    keys: tensorOf(keys, layer.sharedDim),
  };
}
