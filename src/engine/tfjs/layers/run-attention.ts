/** Attention of heads: keys and values of this run after the cached ones; d is headDim. */
import type { CacheType } from '../../../base/tensor/dtype.js';
import { asCached } from '../../../checkpoint/gguf/blocks/cache-rounding.js';
import type {
  Attention,
  AttentionCore,
  HeadSpan,
  Temperature,
} from '../../../model/architecture/layer.js';
import { gateWidth, valueWidth } from '../../../model/architecture/walk.js';
import { decodingKeys } from '../../calls.js';
import { activate } from '../differentiable.js';
import type { Tensor1D, Tensor2D, Tensor3D, Tensor4D } from '../packages.js';
import type { DecodingState, ForwardRun, HeadMemory } from '../run.js';
import { concatenated, readValues } from '../run.js';
import { attend, type HeadGroup, type HeadKeys, selectionFor, splitHeads } from './attend.js';
import { runProjections, runRotary } from './basic.js';
import { runIndexer } from './run-indexer.js';

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
export function temperatureScaled(
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
