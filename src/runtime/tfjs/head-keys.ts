/** The keys and values of attention, head by head: those of this run, after those remembered; d is headDim. */
import type { Attention } from '../../architecture/layer.js';
import { decodingKeys } from '../attention-rules.js';
import type { HeadKeys } from './attend.js';
import type { Tensor2D, Tensor3D, Tf } from './library.js';
import { type Decoding, type HeadMemory, type Run, valuesOf } from './run.js';

/** x [B, T, heads · d] → [T, d] for each sequence and, within it, each head. */
export function splitHeads(tf: Tf, x: Tensor3D, headDim: number): Tensor2D[] {
  const [batch, tokens, width] = x.shape;
  const heads = width / headDim;
  return Array.from({ length: batch * heads }, (_, index) => {
    const [sequence, head] = [Math.floor(index / heads), index % heads];
    const part = tf.slice(x, [sequence, 0, head * headDim], [1, tokens, headDim]);
    return tf.reshape(part, [tokens, headDim]);
  });
}

/** For each sequence and key-value head. k, v: [B, T, keyValueHeads · d]. */
export function headKeys(run: Run, layer: Attention, k: Tensor3D, v: Tensor3D): HeadKeys[] {
  const { tf, decoding } = run;
  const values = splitHeads(tf, v, layer.headDim);
  const heads = splitHeads(tf, k, layer.headDim).map((keys, index) => ({
    keys,
    values: values[index] as Tensor2D,
  }));
  if (!decoding) {
    return heads.map((head) => ({ ...head, first: 0, keys: tf.transpose(head.keys) }));
  }
  const before = decoding.before.attentions.get(layer);
  const known = heads.map((head, index) => joined(before?.[index], head));
  decoding.after.attentions.set(layer, remembered(run, decoding, layer, known));
  return known.map(({ first, ...rows }) => {
    const matrix = (data: Float32Array) =>
      tf.tensor2d(data, [data.length / layer.headDim, layer.headDim]);
    return { first, keys: tf.transpose(matrix(rows.keys)), values: matrix(rows.values) };
  });
}

function joined(
  before: HeadMemory | undefined,
  { keys, values }: { keys: Tensor2D; values: Tensor2D },
): HeadMemory {
  const [newKeys, newValues] = [valuesOf(keys), valuesOf(values)];
  if (!before) return { first: 0, keys: newKeys, values: newValues };
  return {
    first: before.first,
    keys: concatenated(before.keys, newKeys),
    values: concatenated(before.values, newValues),
  };
}

export function concatenated(a: Float32Array, b: Float32Array): Float32Array {
  const result = new Float32Array(a.length + b.length);
  result.set(a);
  result.set(b, a.length);
  return result;
}

/** Without the keys that none of the coming queries will see. */
function remembered(
  { start, tokens }: Run,
  { totalTokens }: Decoding,
  { spans, heads, keyValueHeads, headDim }: Attention,
  known: readonly HeadMemory[],
): HeadMemory[] {
  const firstSeen = spans.flatMap((span) => {
    const [first = 0] = decodingKeys(start + tokens, 1, span.window, totalTokens);
    return new Array<number>(span.heads).fill(first);
  });
  const group = heads / keyValueHeads;
  return known.map(({ first, keys, values }, index) => {
    const head = (index % keyValueHeads) * group;
    const from = Math.max(first, Math.min(...firstSeen.slice(head, head + group)));
    const skipped = (from - first) * headDim;
    return { first: from, keys: keys.slice(skipped), values: values.slice(skipped) };
  });
}
