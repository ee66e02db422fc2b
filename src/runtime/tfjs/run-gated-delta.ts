import { type GatedDelta, LENGTH_EPS } from '../../architecture/layer.js';
import { runProjections } from './basic.js';
import { deltaRule } from './delta-rule.js';
import { activate } from './differentiable.js';
import type { Tensor3D, Tf } from './packages.js';
import type { ForwardRun } from './run.js';
import { readValues } from './run.js';
import { differentiableDelta } from './training/scan-gradients.js';

/** u [B, T, H] → [B, T, H]. */
export function runGatedDelta(run: ForwardRun, layer: GatedDelta, u: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  const { keyHeads, keyDim, valueHeads, valueDim, activation } = layer;
  const [keys, inner] = [keyHeads * keyDim, valueHeads * valueDim];
  const [q0, k0, v0, gate, low, steps] = runProjections(run, layer.inputs, u) as SixValues;
  const inputs = layer.convs.length === 1 ? [tf.concat([q0, k0, v0], 2)] : [q0, k0, v0];
  const convolved = layer.convs.map((conv, index) => run.apply(conv, inputs[index] as Tensor3D));
  const mixed = activate(tf, activation, tf.concat(convolved, 2));
  const [q, k, v] = tf.split(mixed, [keys, keys, inner], 2) as [Tensor3D, Tensor3D, Tensor3D];
  const inputsOfRule = {
    queries: unitHeads(tf, q, keyDim),
    keys: unitHeads(tf, k, keyDim),
    values: v,
    beta: tf.mul(tf.sigmoid(low), layer.betaScale) as Tensor3D,
    step: tf.softplus(tf.add(steps, weights.tensor(layer.stepBias))) as Tensor3D,
  };
  const result = run.learns
    ? learnedRule(run, layer, inputsOfRule)
    : ruleWithState(run, layer, inputsOfRule);
  return run.apply(layer.outProj, run.apply(layer.norm, result, gate));
}

type RuleInputs = Readonly<Record<'queries' | 'keys' | 'values' | 'beta' | 'step', Tensor3D>>;

function learnedRule(
  { tf, weights, batch, tokens }: ForwardRun,
  layer: GatedDelta,
  { queries, keys, values, beta, step }: RuleInputs,
): Tensor3D {
  const stateLog = weights.tensor(layer.stateLog);
  const inputs = [queries, keys, values, beta, step, stateLog] as const;
  return differentiableDelta(tf, inputs, { ...layer, batch, tokens });
}

/** Continues the state of the previous run. */
function ruleWithState(
  { tf, weights, batch, tokens, decoding }: ForwardRun,
  layer: GatedDelta,
  inputs: RuleInputs,
): Tensor3D {
  const inner = layer.valueHeads * layer.valueDim;
  const before = decoding?.before.scans.get(layer);
  const state = before?.slice() ?? new Float32Array(batch * inner * layer.keyDim);
  const y = deltaRule(layer, {
    batch,
    tokens,
    queries: readValues(inputs.queries),
    keys: readValues(inputs.keys),
    values: readValues(inputs.values),
    beta: readValues(inputs.beta),
    step: readValues(inputs.step),
    rates: weights.rates(layer.stateLog),
    state,
  });
  decoding?.after.scans.set(layer, state);
  return tf.tensor3d(y, [batch, tokens, inner]);
}

type SixValues = [Tensor3D, Tensor3D, Tensor3D, Tensor3D, Tensor3D, Tensor3D];

/** Each head divided by its length. */
function unitHeads(tf: Tf, x: Tensor3D, keyDim: number): Tensor3D {
  const heads = tf.reshape(x, [-1, keyDim]);
  const lengths = tf.sqrt(tf.add(tf.sum(tf.square(heads), 1, true), LENGTH_EPS));
  return tf.reshape(tf.div(heads, lengths), x.shape);
}
