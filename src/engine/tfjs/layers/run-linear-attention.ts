/** Attention without a softmax, whose state has decays. Shapes: B batch, T tokens of this run, d headDim. */
import type { KimiDelta, LightningAttention } from '../../../model/architecture/layer.js';
import { activate } from '../differentiable.js';
import type { Tensor2D, Tensor3D, Tf } from '../packages.js';
import type { ForwardRun } from '../run.js';
import { readValues } from '../run.js';
import {
  type ChannelDeltaInputs,
  channelDelta,
  differentiableChannelDelta,
  emptyState,
} from '../training/channel-delta.js';
import { runProjections } from './basic.js';
import { unitHeads } from './run-recurrent.js';

/** u [B, T, H] → [B, T, H]: products of plain matrices for each head, as in softmax attention. */
export function runLightningAttention(
  run: ForwardRun,
  layer: LightningAttention,
  u: Tensor3D,
): Tensor3D {
  const { tf, batch, decoding } = run;
  const { slopes, headDim } = layer;
  const [q, k, v, gate] = runProjections(run, layer.inputs, u) as [
    Tensor3D,
    Tensor3D,
    Tensor3D,
    Tensor3D,
  ];
  const [queries, keys, values] = [q, k, v].map((each) => activate(tf, layer.activation, each)) as [
    Tensor3D,
    Tensor3D,
    Tensor3D,
  ];
  const size = headDim * headDim;
  const before = decoding?.before.scans.get(layer);
  const after = decoding && new Float32Array(batch * slopes.length * size);
  const rows = Array.from({ length: batch }, (_, sequence) => {
    const heads = slopes.map((slope, head): Tensor2D => {
      const place = (sequence * slopes.length + head) * size;
      const state = before && tf.tensor2d(before.subarray(place, place + size), [headDim, headDim]);
      const [query, key, value] = [queries, keys, values].map((each) =>
        headOf(tf, each, sequence, head, headDim),
      ) as [Tensor2D, Tensor2D, Tensor2D];
      const decayed = lightningHead(run, slope, { query, key, value, state });
      if (after) after.set(readValues(decayed.state), place);
      return decayed.output;
    });
    return tf.concat(heads, 1); // (T, heads · d)
  });
  if (after) decoding.after.scans.set(layer, after);
  const y = tf.stack(rows) as Tensor3D;
  return run.apply(layer.outProj, run.apply(layer.norm, y, gate));
}

/** x [B, T, heads · d] → [T, d]. */
function headOf(tf: Tf, x: Tensor3D, sequence: number, head: number, headDim: number): Tensor2D {
  const [, tokens] = x.shape;
  const part = tf.slice(x, [sequence, 0, head * headDim], [1, tokens, headDim]);
  return tf.reshape(part, [tokens, headDim]);
}

interface LightningHead {
  /** [T, d] */
  readonly query: Tensor2D;
  readonly key: Tensor2D;
  readonly value: Tensor2D;
  /** [d, d]; undefined for zeros. */
  readonly state: Tensor2D | undefined;
}

/** Output [T, d] and the state after the last token [d, d]. */
function lightningHead(
  run: ForwardRun,
  slope: number,
  { query, key, value, state }: LightningHead,
): { readonly output: Tensor2D; readonly state: Tensor2D } {
  const { tf, tokens } = run;
  const between = decayTable(run, 'between', slope, [tokens, tokens], (at) => {
    const distance = Math.floor(at / tokens) - (at % tokens);
    return distance < 0 ? Number.POSITIVE_INFINITY : distance;
  });
  const toEnd = decayTable(run, 'to the end', slope, [tokens, 1], (at) => tokens - 1 - at);
  const scores = tf.mul(tf.matMul(query, tf.transpose(key)), between) as Tensor2D;
  const inside: Tensor2D = tf.matMul(scores, value);
  const added: Tensor2D = tf.matMul(tf.transpose(tf.mul(key, toEnd) as Tensor2D), value);
  if (!state) return { output: inside, state: added };
  const fromStart = decayTable(run, 'from the start', slope, [tokens, 1], (at) => at + 1);
  return {
    output: tf.add(inside, tf.mul(tf.matMul(query, state), fromStart)),
    state: tf.add(added, tf.mul(state, Math.exp(-slope * tokens))),
  };
}

/** exp(−slope · distance), with one table for all uses. */
const decayTable = (
  { tf, once }: ForwardRun,
  which: string,
  slope: number,
  shape: [number, number],
  distanceOf: (index: number) => number,
): Tensor2D =>
  once(`decays ${which} ${slope} ${shape}`, () =>
    tf.tensor2d(
      Float32Array.from({ length: shape[0] * shape[1] }, (_, at) =>
        Math.exp(-slope * distanceOf(at)),
      ),
      shape,
    ),
  );

/** u [B, T, H] → [B, T, H]. */
export function runKimiDelta(run: ForwardRun, layer: KimiDelta, u: Tensor3D): Tensor3D {
  const { tf, batch, tokens, decoding } = run;
  const { heads, headDim } = layer;
  const inputs = runProjections(run, layer.inputs, u) as Tensor3D[];
  const given = layer.convs.length === 1 ? [tf.concat(inputs, 2)] : inputs;
  const convolved = layer.convs.map((conv, index) => run.apply(conv, given[index] as Tensor3D));
  const mixed = activate(tf, layer.activation, tf.concat(convolved, 2) as Tensor3D);
  const [q, k, v] = tf.split(mixed, 3, 2) as [Tensor3D, Tensor3D, Tensor3D];
  const values = [
    unitHeads(tf, q, headDim),
    unitHeads(tf, k, headDim),
    v,
    channelDecays(run, layer, u),
    tf.sigmoid(run.apply(layer.beta, u)),
  ] as const;
  const sizes = { batch, tokens, heads, headDim };
  const rule = (): Tensor3D => {
    const state = decoding?.before.scans.get(layer)?.slice() ?? emptyState(sizes);
    const read = values.map(readValues) as unknown as ChannelDeltaInputs<Float32Array>;
    const y = channelDelta(sizes, read, state);
    decoding?.after.scans.set(layer, state);
    return tf.tensor3d(y, [batch, tokens, heads * headDim]);
  };
  const y = run.learns ? differentiableChannelDelta(tf, values, sizes) : rule();
  return run.apply(layer.outProj, run.apply(layer.norm, y, run.apply(layer.gate, u)));
}

/** Logarithms of the decays, [B, T, heads · headDim]. */
function channelDecays(run: ForwardRun, layer: KimiDelta, u: Tensor3D): Tensor3D {
  const { tf, weights, batch, tokens } = run;
  const { heads, headDim } = layer;
  const biased = tf.add(run.apply(layer.forget, u), weights.tensor(layer.stepBias));
  const steps = tf.reshape(tf.softplus(biased), [batch, tokens, heads, headDim]);
  const rates = tf.neg(tf.exp(weights.tensor(layer.stateLog))); // (1, 1, heads, 1)
  return tf.reshape(tf.mul(steps, rates), [batch, tokens, heads * headDim]);
}
