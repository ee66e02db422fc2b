import type {
  CausalConv,
  GatedDelta,
  HeadedMamba,
  Mamba,
  StateSpaceDual,
} from '../../../model/architecture/layer.js';
import { jointChannels, LENGTH_EPS } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import { columnFactors } from '../../../model/architecture/walk.js';
import { activate } from '../differentiable.js';
import type { Tensor, Tensor3D, Tensor4D, Tf } from '../packages.js';
import type { ForwardRun } from '../run.js';
import { readValues } from '../run.js';
import { deltaRule, differentiableDelta, differentiableScan } from '../training/host-operations.js';
import { normedParts, runProjections } from './basic.js';
import { selectiveScan } from './selective-scan.js';

/** Causal convolution of x [B, T, D]: the bias plus Σ_k weight[:, 0, k] · x of kernel − 1 − k tokens before. */
export function runCausalConv(run: ForwardRun, layer: CausalConv, x: Tensor3D): Tensor3D {
  const { tf, weights, decoding } = run;
  const [batch, tokens, channels] = x.shape;
  const kernel = layer.weight.shape[2] ?? 1;
  const past: [number, number, number] = [batch, kernel - 1, channels];
  const before = decoding?.before.convolutions.get(layer);
  const padding: Tensor3D = before ? tf.tensor3d(before, past) : tf.zeros(past);
  const padded: Tensor3D = tf.concat([padding, x], 1); // (B, kernel − 1 + T, D)
  decoding?.after.convolutions.set(layer, readValues(tf.slice(padded, [0, tokens, 0], past)));
  // Time is the height of an image with a width of one pixel.
  const image: Tensor4D = tf.reshape(padded, [batch, kernel - 1 + tokens, 1, channels]);
  const filter: Tensor4D = tf.reshape(weights.transposed(layer.weight), [kernel, 1, channels, 1]);
  const mixed = tf.depthwiseConv2d(image, filter, 1, 'valid'); // (B, T, 1, D)
  const sum = layer.bias ? tf.add(mixed, weights.tensor(layer.bias)) : mixed;
  return tf.reshape(sum, [batch, tokens, channels]);
}

/** u [B, T, H] → [B, T, H]. */
export function runMamba(run: ForwardRun, layer: Mamba, u: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  const { innerSize, stateSize, stepRank, dtProj, skip, activation } = layer;
  const [input, residual] = split(tf, run.apply(layer.inProj, u), [innerSize, innerSize]);
  const x = activate(tf, activation, run.apply(layer.conv, input)); // (B, T, D)
  const parts = split(tf, run.apply(layer.xProj, x), [stepRank, stateSize, stateSize]);
  const [low, b, c] = parts.map((part, index) => innerNormed(run, layer, part, index)) as [
    Tensor3D,
    Tensor3D,
    Tensor3D,
  ];
  const biased = run.apply(dtProj, low);
  const step: Tensor3D = tf.softplus(
    layer.doubledStepBias && dtProj.bias ? tf.add(biased, weights.tensor(dtProj.bias)) : biased,
  );
  const scanned = scan(run, layer, { step, x, b, c });
  const y = tf.add(scanned, tf.mul(x, weights.tensor(skip)));
  return run.apply(layer.outProj, tf.mul(y, activate(tf, 'silu', residual)));
}

/** u [B, T, H] → [B, T, H]. */
export function runHeadedMamba(run: ForwardRun, layer: HeadedMamba, u: Tensor3D): Tensor3D {
  const { tf, weights, batch, tokens } = run;
  const { heads, headDim, stateSize, stepRank, activation } = layer;
  const inner = heads * headDim;
  const pairs: Tensor4D = tf.reshape(run.apply(layer.inProj, u), [batch, tokens, inner, 2]);
  const [input, residual] = tf
    .split(pairs, 2, 3)
    .map((part) => tf.reshape(part, [batch, tokens, inner])) as [Tensor3D, Tensor3D];
  const x = activate(tf, activation, run.apply(layer.conv, input)); // (B, T, D)
  const rows = tf.reshape(x, [batch * tokens, heads, headDim]);
  const ofHeads = tf.transpose(rows, [1, 0, 2]); // (heads, B · T, d)
  const product = (value: Tensor, weight: Param): Tensor3D =>
    tf.matMul(value, weights.tensor(weight), false, true) as Tensor3D;
  const parts = split(tf, product(ofHeads, layer.xProj), [stepRank, stateSize, stateSize]);
  const bias = tf.reshape(weights.tensor(layer.stepBias), [heads, 1, headDim]);
  const step = tf.softplus(tf.add(product(parts[0], layer.stepProj), bias));
  const state = headStates(run, layer);
  const scanned = Array.from({ length: heads }, (_, head): Tensor3D => {
    const own = (value: Tensor): Tensor3D => {
      const width = value.shape[2] ?? 0;
      const part = tf.slice(value, [head, 0, 0], [1, batch * tokens, width]);
      return tf.reshape(part, [batch, tokens, width]);
    };
    return headScan(run, layer, head, state, {
      step: own(step),
      x: own(ofHeads),
      b: own(parts[1]),
      c: own(parts[2]),
    });
  });
  run.decoding?.after.scans.set(layer, state);
  const skip = tf.reshape(weights.tensor(layer.skip), [inner]);
  const y = tf.add(tf.concat(scanned, 2), tf.mul(x, skip));
  return run.apply(layer.outProj, tf.mul(y, activate(tf, 'silu', residual)));
}

/** States before this run, [heads, B, d, N]. */
function headStates({ batch, decoding }: ForwardRun, layer: HeadedMamba): Float32Array {
  const before = decoding?.before.scans.get(layer);
  return before?.slice() ?? new Float32Array(layer.heads * batch * layer.headDim * layer.stateSize);
}

/** Scans one head on plain values; its part of `state` becomes the state after it. */
function headScan(
  run: ForwardRun,
  layer: HeadedMamba,
  head: number,
  state: Float32Array,
  { step, x, b, c }: ScanTensors,
): Tensor3D {
  const { tf, weights, batch, tokens } = run;
  const { headDim, stateSize } = layer;
  const sizes = { batch, tokens, inner: headDim, state: stateSize };
  if (run.learns) {
    const logs = tf.slice(weights.tensor(layer.stateLog), [head, 0, 0], [1, headDim, stateSize]);
    return differentiableScan(tf, [step, x, b, c, tf.reshape(logs, [headDim, stateSize])], sizes);
  }
  const [size, length] = [batch * headDim * stateSize, headDim * stateSize];
  const output = selectiveScan({
    sizes,
    step: readValues(step),
    x: readValues(x),
    b: readValues(b),
    c: readValues(c),
    rates: weights.rates(layer.stateLog).slice(head * length, (head + 1) * length),
    state: state.subarray(head * size, (head + 1) * size),
  });
  return tf.tensor3d(output, [batch, tokens, headDim]);
}

function innerNormed(run: ForwardRun, layer: Mamba, part: Tensor3D, index: number): Tensor3D {
  const norm = layer.innerNorms[index];
  if (norm) return run.apply(norm, part);
  if (layer.innerNormEps === undefined) return part;
  const { tf } = run;
  return tf.reshape(normedParts(tf, part, part.shape[2], layer.innerNormEps), part.shape);
}

/** u [B, T, H] → [B, T, H]. */
export function runStateSpaceDual(run: ForwardRun, layer: StateSpaceDual, u: Tensor3D): Tensor3D {
  const { tf, weights, batch, tokens } = run;
  const { heads, headDim, stateSize, groups, activation, norm } = layer;
  const [inner, shared] = [heads * headDim, groups * stateSize];
  const projection = run.apply(layer.inProj, u);
  const factors = columnFactors(layer);
  const projected: Tensor3D = factors ? tf.mul(projection, tf.tensor1d(factors)) : projection;
  const [gate, input, low] = split(tf, projected, [inner, inner + 2 * shared, heads]);
  const mixed = activate(tf, activation, run.apply(layer.conv, input));
  const [x, b, c] = split(tf, mixed, [inner, shared, shared]);
  const [least, most] = layer.stepLimits;
  const unlimited = tf.softplus(tf.add(low, weights.tensor(layer.stepBias)));
  const step: Tensor3D = tf.minimum(tf.maximum(unlimited, least), most); // (B, T, heads)
  const scanned = dualScan(run, layer, { step, x, b, c });
  const ofHeads = tf.reshape(x, [batch, tokens, heads, headDim]);
  const skip = tf.reshape(weights.tensor(layer.skip), [heads, 1]);
  const skipped: Tensor3D = tf.reshape(tf.mul(ofHeads, skip), [batch, tokens, inner]);
  const y: Tensor3D = tf.add(scanned, skipped);
  const gated: Tensor3D = norm ? run.apply(norm, y, gate) : tf.mul(y, activate(tf, 'silu', gate));
  return run.apply(layer.outProj, gated);
}

/** Scans each group as a Mamba layer whose channels of a head have the same steps and rates. */
function dualScan(
  run: ForwardRun,
  layer: StateSpaceDual,
  { step, x, b, c }: ScanTensors,
): Tensor3D {
  const { tf, weights, batch, tokens, decoding } = run;
  const { heads, headDim, stateSize, groups } = layer;
  const [ofHeads, size] = [heads / groups, batch * (heads / groups) * headDim * stateSize];
  const columns = (value: Tensor3D, group: number) => {
    const width = value.shape[2] / groups;
    return tf.slice(value, [0, 0, group * width], [batch, tokens, width]);
  };
  const stepsOf = (group: number): Tensor4D => {
    const steps: Tensor4D = tf.reshape(columns(step, group), [batch, tokens, ofHeads, 1]);
    return tf.tile(steps, [1, 1, 1, headDim]);
  };
  if (run.learns) {
    const sizes = { batch, tokens, inner: ofHeads * headDim, state: stateSize };
    const logs = weights.tensor(layer.stateLog);
    const parts = Array.from({ length: groups }, (_, group): Tensor3D => {
      const own = tf.reshape(tf.slice(logs, [group * ofHeads], [ofHeads]), [ofHeads, 1]);
      const ofStates = tf.tile(own, [1, headDim * stateSize]);
      const inputs = [x, b, c].map((value) => columns(value, group)) as [
        Tensor3D,
        Tensor3D,
        Tensor3D,
      ];
      return differentiableScan(tf, [stepsOf(group), ...inputs, ofStates], sizes);
    });
    return groups === 1 ? (parts[0] ?? x) : tf.concat(parts, 2);
  }
  const before = decoding?.before.scans.get(layer);
  const state = before?.slice() ?? new Float32Array(groups * size);
  const rates = weights.rates(layer.stateLog); // (heads)
  const outputs = Array.from({ length: groups }, (_, group): Tensor3D => {
    const rateOf = (at: number) =>
      rates[group * ofHeads + Math.floor(at / (headDim * stateSize))] ?? 0;
    const output = selectiveScan({
      sizes: { batch, tokens, inner: ofHeads * headDim, state: stateSize },
      step: readValues(stepsOf(group)),
      x: readValues(columns(x, group)),
      b: readValues(columns(b, group)),
      c: readValues(columns(c, group)),
      rates: Float32Array.from({ length: ofHeads * headDim * stateSize }, (_, at) => rateOf(at)),
      state: state.subarray(group * size, (group + 1) * size),
    });
    return tf.tensor3d(output, [batch, tokens, ofHeads * headDim]);
  });
  decoding?.after.scans.set(layer, state);
  return groups === 1 ? (outputs[0] ?? x) : tf.concat(outputs, 2);
}

interface ScanTensors {
  /** [B, T, D]; for a state space dual, one step per head. */
  readonly step: Tensor3D;
  readonly x: Tensor3D;
  /** [B, T, N] */
  readonly b: Tensor3D;
  readonly c: Tensor3D;
}

/** Runs the scan on plain values, from the state of the previous run. */
function scan(run: ForwardRun, layer: Mamba, { step, x, b, c }: ScanTensors): Tensor3D {
  const { tf, weights, batch, tokens, decoding } = run;
  const { innerSize, stateSize } = layer;
  if (run.learns) {
    const stateLog = weights.tensor(layer.stateLog);
    const sizes = { batch, tokens, inner: innerSize, state: stateSize };
    return differentiableScan(tf, [step, x, b, c, stateLog], sizes);
  }
  const before = decoding?.before.scans.get(layer);
  const state = before?.slice() ?? new Float32Array(batch * innerSize * stateSize);
  const output = selectiveScan({
    sizes: { batch, tokens, inner: innerSize, state: stateSize },
    step: readValues(step),
    x: readValues(x),
    b: readValues(b),
    c: readValues(c),
    rates: weights.rates(layer.stateLog),
    state,
  });
  decoding?.after.scans.set(layer, state);
  return tf.tensor3d(output, [batch, tokens, innerSize]);
}

/** Splits the last axis into parts of these sizes. */
function split<const Sizes extends readonly number[]>(tf: Tf, x: Tensor3D, sizes: Sizes) {
  return tf.split(x, [...sizes], 2) as { [Part in keyof Sizes]: Tensor3D };
}

/** u [B, T, H] → [B, T, H]. */
export function runGatedDelta(run: ForwardRun, layer: GatedDelta, u: Tensor3D): Tensor3D {
  const { tf, weights } = run;
  const { keyHeads, keyDim, valueHeads, valueDim, activation } = layer;
  const [keys, inner] = [keyHeads * keyDim, valueHeads * valueDim];
  const [q0, k0, v0, gate, low, steps] = runProjections(run, layer.inputs, u) as SixValues;
  const joint = jointChannels(layer);
  const inputs = joint ? split(tf, tf.concat([q0, k0, v0], 2), joint) : [q0, k0, v0];
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

/** Each head divided by its L2 norm. */
export function unitHeads(tf: Tf, x: Tensor3D, keyDim: number): Tensor3D {
  const heads = tf.reshape(x, [-1, keyDim]);
  const lengths = tf.sqrt(tf.add(tf.sum(tf.square(heads), 1, true), LENGTH_EPS));
  return tf.reshape(tf.div(heads, lengths), x.shape);
}
