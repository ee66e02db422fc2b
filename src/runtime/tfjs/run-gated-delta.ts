/** The gated delta rule on plain values: T steps of small operations in the library would take many times as long. */
import { type GatedDelta, LENGTH_EPS } from '../../architecture/layer.js';
import { runProjections } from './basic.js';
import { activate } from './differentiable.js';
import type { Tensor3D, Tf } from './packages.js';
import type { ForwardRun } from './run.js';
import { readValues } from './run.js';

/** u [B, T, H] → [B, T, H]. */
export function runGatedDelta(run: ForwardRun, layer: GatedDelta, u: Tensor3D): Tensor3D {
  const { tf, weights, batch, tokens, decoding } = run;
  const { keyHeads, keyDim, valueHeads, valueDim, activation } = layer;
  const [keys, inner] = [keyHeads * keyDim, valueHeads * valueDim];
  const [q0, k0, v0, gate, low, steps] = runProjections(run, layer.inputs, u) as SixValues;
  const inputs = layer.convs.length === 1 ? [tf.concat([q0, k0, v0], 2)] : [q0, k0, v0];
  const convolved = layer.convs.map((conv, index) => run.apply(conv, inputs[index] as Tensor3D));
  const mixed = activate(tf, activation, tf.concat(convolved, 2));
  const [q, k, v] = tf.split(mixed, [keys, keys, inner], 2) as [Tensor3D, Tensor3D, Tensor3D];
  const before = decoding?.before.scans.get(layer);
  const state = before?.slice() ?? new Float32Array(batch * inner * keyDim);
  const y = deltaRule(layer, {
    batch,
    tokens,
    queries: readValues(unitHeads(tf, q, keyDim)),
    keys: readValues(unitHeads(tf, k, keyDim)),
    values: readValues(v),
    beta: readValues(tf.mul(tf.sigmoid(low), layer.betaScale)),
    step: readValues(tf.softplus(tf.add(steps, weights.tensor(layer.stepBias)))),
    rates: weights.rates(layer.stateLog),
    state,
  });
  decoding?.after.scans.set(layer, state);
  const result = tf.tensor3d(y, [batch, tokens, valueHeads * valueDim]);
  return run.apply(layer.outProj, run.apply(layer.norm, result, gate));
}

type SixValues = [Tensor3D, Tensor3D, Tensor3D, Tensor3D, Tensor3D, Tensor3D];

/** Each head divided by its length. */
function unitHeads(tf: Tf, x: Tensor3D, keyDim: number): Tensor3D {
  const heads = tf.reshape(x, [-1, keyDim]);
  const lengths = tf.sqrt(tf.add(tf.sum(tf.square(heads), 1, true), LENGTH_EPS));
  return tf.reshape(tf.div(heads, lengths), x.shape);
}

interface DeltaInputs extends Readonly<Record<'batch' | 'tokens', number>> {
  /** [B, T, keyHeads · keyDim] */
  readonly queries: Float32Array;
  readonly keys: Float32Array;
  /** [B, T, valueHeads · valueDim] */
  readonly values: Float32Array;
  /** [B, T, valueHeads] */
  readonly beta: Float32Array;
  readonly step: Float32Array;
  /** −A · log2(e), [valueHeads]. */
  readonly rates: Float32Array;
  /** [B, valueHeads, keyDim, valueDim]; changed in place. */
  readonly state: Float32Array;
}

/** → [B, T, valueHeads · valueDim]. */
function deltaRule(layer: GatedDelta, inputs: DeltaInputs): Float32Array {
  const { keyHeads, keyDim, valueHeads, valueDim } = layer;
  const { batch, tokens, queries, keys, values, beta, step, rates, state } = inputs;
  const output = new Float32Array(values.length);
  const [correction, size] = [new Float32Array(valueDim), keyDim * valueDim];
  for (let head = 0; head < valueHeads; head++) {
    const shared = Math.floor((head * keyHeads) / valueHeads);
    for (let at = 0; at < batch * tokens; at++) {
      const sequence = Math.floor(at / tokens);
      const own = state.subarray((sequence * valueHeads + head) * size).subarray(0, size);
      const key = (at * keyHeads + shared) * keyDim;
      const value = (at * valueHeads + head) * valueDim;
      const decay = 2 ** ((rates[head] ?? 0) * (step[at * valueHeads + head] ?? 0));
      correction.fill(0);
      for (let i = 0, place = 0; i < keyDim; i++) {
        const factor = keys[key + i] as number;
        for (let j = 0; j < valueDim; j++, place++) {
          const kept = (own[place] as number) * decay;
          own[place] = kept;
          correction[j] = (correction[j] as number) + factor * kept;
        }
      }
      const rate = beta[at * valueHeads + head] as number;
      for (let j = 0; j < valueDim; j++) {
        correction[j] = rate * ((values[value + j] as number) - (correction[j] as number));
      }
      for (let i = 0, place = 0; i < keyDim; i++) {
        const [factor, query] = [keys[key + i] as number, queries[key + i] as number];
        for (let j = 0; j < valueDim; j++, place++) {
          const next = (own[place] as number) + factor * (correction[j] as number);
          own[place] = next;
          output[value + j] = (output[value + j] as number) + query * next;
        }
      }
    }
  }
  const scale = 1 / Math.sqrt(keyDim);
  return output.map((each) => each * scale);
}
