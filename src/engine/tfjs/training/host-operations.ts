/** Operations on values read back from the library, with their gradients: cross-entropy and scans. */
import type { GatedDelta } from '../../../model/architecture/layer.js';
import type { ScanSizes } from '../layers/selective-scan.js';
import { decayRates, selectiveScan } from '../layers/selective-scan.js';
import type { Tensor, Tensor3D, Tf } from '../packages.js';
import { readValues } from '../run.js';

/** An operation on values: its value, and the gradients of its inputs from that of its value. */
interface HostOperation {
  readonly shape: readonly number[];
  readonly value: (inputs: readonly Float32Array[]) => ArrayLike<number>;
  readonly gradients: (
    inputs: readonly Float32Array[],
    dy: Float32Array,
  ) => readonly ArrayLike<number>[];
}

/** An operation that computes on values read back, with its gradients. */
export function hostOperation<T extends Tensor>(
  tf: Tf,
  inputs: readonly Tensor[],
  operation: HostOperation,
): T {
  const tensorOf = (values: ArrayLike<number>, shape: readonly number[]) =>
    tf.tensor(Float32Array.from(values), [...shape], 'float32');
  const custom = tf.customGrad((...given) => {
    const save = given.at(-1) as (tensors: Tensor[]) => void;
    const own = given.slice(0, -1) as Tensor[];
    save(own);
    return {
      value: tensorOf(operation.value(own.map(readValues)), operation.shape),
      gradFunc: (dy: Tensor, saved: Tensor[]) =>
        operation
          .gradients(saved.map(readValues), readValues(dy))
          .map((values, index) => tensorOf(values, saved[index]?.shape ?? [])),
    };
  });
  return custom(...inputs) as T;
}

/** Mean of −log softmax(logits)[target] over the rows; logits [rows, V]. → scalar */
export function crossEntropy(tf: Tf, logits: Tensor, targets: Int32Array): Tensor {
  const rows = targets.length;
  const vocabulary = logits.size / rows;
  /** Largest logit and the sum of exponentials below it, of a row. */
  const rowSums = (values: Float32Array, from: number) => {
    let most = Number.NEGATIVE_INFINITY;
    for (let at = from; at < from + vocabulary; at++) {
      const value = values[at] as number;
      // Not Math.max: a NaN has to reach the loss, which a comparison would skip.
      if (!(value <= most)) most = value;
    }
    let sum = 0;
    for (let at = from; at < from + vocabulary; at++)
      sum += Math.exp((values[at] as number) - most);
    return { most, sum };
  };
  return hostOperation(tf, [logits], {
    shape: [],
    value: ([values = new Float32Array()]) => {
      let total = 0;
      for (const [row, target] of targets.entries()) {
        const { most, sum } = rowSums(values, row * vocabulary);
        total += most + Math.log(sum) - (values[row * vocabulary + target] as number);
      }
      return [total / rows];
    },
    gradients: ([values = new Float32Array()], [dy = 1]) => {
      const gradient = new Float32Array(values.length);
      for (const [row, target] of targets.entries()) {
        const from = row * vocabulary;
        const { most, sum } = rowSums(values, from);
        for (let at = from; at < from + vocabulary; at++) {
          const share = Math.exp((values[at] as number) - most) / sum;
          gradient[at] = ((share - (at === from + target ? 1 : 0)) * dy) / rows;
        }
      }
      return [gradient];
    },
  });
}

// Scans with their gradients, as custom operations on values read back. Gradients are computed in float64.

/**
 * The scan of a selective state space, h = h · exp(Δ ⊗ A) + (Δ · x) ⊗ B and y = h · C, from a state of zeros.
 * @param inputs Δ and x [B, T, D], B and C [B, T, N], and log(−A) [D, N].
 */
export const differentiableScan = (
  tf: Tf,
  inputs: readonly [step: Tensor, x: Tensor, b: Tensor, c: Tensor, stateLog: Tensor],
  sizes: ScanSizes,
): Tensor3D =>
  hostOperation<Tensor3D>(tf, inputs, {
    shape: [sizes.batch, sizes.tokens, sizes.inner],
    value: (values) => scanned(sizes, values as ScanValues),
    gradients: (values, dy) => scanGradients(sizes, values as ScanValues, dy),
  });

type ScanValues = readonly [
  step: Float32Array,
  x: Float32Array,
  b: Float32Array,
  c: Float32Array,
  stateLog: Float32Array,
];

/** State of one channel of a sequence for each token: a row of N. */
interface ChannelMemory {
  /** States, after a row of zeros. */
  readonly rows: Float64Array;
  /** exp(Δ · A) */
  readonly decays: Float64Array;
}

const channelMemory = ({ tokens, state }: ScanSizes): ChannelMemory => ({
  rows: new Float64Array((tokens + 1) * state),
  decays: new Float64Array(tokens * state),
});

/** A, of every channel and state. */
const ratesOf = (stateLog: Float32Array): Float64Array =>
  Float64Array.from(stateLog, (value) => -Math.exp(value));

function fillChannel(
  { tokens, inner, state }: ScanSizes,
  [step, x, b]: ScanValues,
  rates: Float64Array,
  sequence: number,
  channel: number,
  { rows, decays }: ChannelMemory,
): void {
  for (let token = 0; token < tokens; token++) {
    const row = sequence * tokens + token;
    const delta = step[row * inner + channel] as number;
    const given = delta * (x[row * inner + channel] as number);
    for (let n = 0; n < state; n++) {
      const decay = Math.exp(delta * (rates[channel * state + n] as number));
      decays[token * state + n] = decay;
      rows[(token + 1) * state + n] =
        (rows[token * state + n] as number) * decay + given * (b[row * state + n] as number);
    }
  }
}

function scanned(sizes: ScanSizes, [step, x, b, c, stateLog]: ScanValues): Float32Array {
  const state = new Float32Array(sizes.batch * sizes.inner * sizes.state);
  return selectiveScan({ sizes, step, x, b, c, rates: decayRates(stateLog), state });
}

export const zerosLike = <Values extends readonly Float32Array[]>(values: Values) =>
  values.map(({ length }) => new Float64Array(length)) as {
    -readonly [Index in keyof Values]: Float64Array;
  };

/** Adds to an element: typed arrays have no such operator under strict indexing. */
export const addAt = (values: Float64Array, at: number, value: number): void => {
  values[at] = (values[at] as number) + value;
};

function scanGradients(sizes: ScanSizes, values: ScanValues, dy: Float32Array): Float64Array[] {
  const { batch, tokens, inner, state } = sizes;
  const [step, x, b, c, stateLog] = values;
  const [dStep, dx, db, dc, dLog] = zerosLike(values);
  const memory = channelMemory(sizes);
  const { rows, decays } = memory;
  const rates = ratesOf(stateLog);
  const dState = new Float64Array(state);
  for (let sequence = 0; sequence < batch; sequence++) {
    for (let channel = 0; channel < inner; channel++) {
      fillChannel(sizes, values, rates, sequence, channel, memory);
      dState.fill(0);
      for (let token = tokens - 1; token >= 0; token--) {
        const row = sequence * tokens + token;
        const at = row * inner + channel;
        const [delta, input, up] = [step[at], x[at], dy[at]] as [number, number, number];
        for (let n = 0; n < state; n++) {
          const place = row * state + n;
          const rate = rates[channel * state + n] as number;
          const decay = decays[token * state + n] as number;
          const own = b[place] as number;
          const slope = (dState[n] as number) + up * (c[place] as number);
          addAt(dc, place, up * (rows[(token + 1) * state + n] as number));
          // Derivative with respect to the exponent Δ · A.
          const dExponent = slope * decay * (rows[token * state + n] as number);
          addAt(dStep, at, dExponent * rate + slope * input * own);
          addAt(dLog, channel * state + n, dExponent * delta * rate);
          addAt(dx, at, slope * delta * own);
          addAt(db, place, slope * delta * input);
          dState[n] = slope * decay;
        }
      }
    }
  }
  return [dStep, dx, db, dc, dLog];
}

export interface DeltaSizes {
  readonly batch: number;
  readonly tokens: number;
  readonly keyHeads: number;
  readonly keyDim: number;
  readonly valueHeads: number;
  readonly valueDim: number;
}

/**
 * The gated delta rule from a state of zeros (see `GatedDelta`).
 * @param inputs q and k [B, T, keyHeads · keyDim], v [B, T, valueHeads · valueDim], β and steps [B, T, valueHeads], and
 * log(−A) [valueHeads].
 */
export const differentiableDelta = (
  tf: Tf,
  inputs: readonly [q: Tensor, k: Tensor, v: Tensor, beta: Tensor, step: Tensor, log: Tensor],
  sizes: DeltaSizes,
): Tensor3D =>
  hostOperation<Tensor3D>(tf, inputs, {
    shape: [sizes.batch, sizes.tokens, sizes.valueHeads * sizes.valueDim],
    value: (values) => deltaValues(sizes, values as DeltaValues),
    gradients: (values, dy) => deltaGradients(sizes, values as DeltaValues, dy),
  });

type DeltaValues = readonly [
  q: Float32Array,
  k: Float32Array,
  v: Float32Array,
  beta: Float32Array,
  step: Float32Array,
  stateLog: Float32Array,
];

/** One token of a head: its positions in the inputs, its decay, and the value written into the state. */
interface DeltaStep {
  readonly key: number;
  readonly value: number;
  readonly gate: number;
  readonly decay: number;
  /** v − k · S, with the decayed state. */
  readonly residual: Float64Array;
}

/** States of a head: one after each token, after zeros. */
function headStates(
  sizes: DeltaSizes,
  [, k, v, beta, step, stateLog]: DeltaValues,
  sequence: number,
  head: number,
  states: Float64Array,
): DeltaStep[] {
  const { tokens, keyHeads, keyDim, valueHeads, valueDim } = sizes;
  const shared = Math.floor((head * keyHeads) / valueHeads);
  const size = keyDim * valueDim;
  const rate = -Math.exp(stateLog[head] as number);
  return Array.from({ length: tokens }, (_, token) => {
    const row = sequence * tokens + token;
    const key = (row * keyHeads + shared) * keyDim;
    const value = (row * valueHeads + head) * valueDim;
    const gate = row * valueHeads + head;
    const decay = Math.exp(rate * (step[gate] as number));
    const before = states.subarray(token * size, (token + 1) * size);
    const after = states.subarray((token + 1) * size, (token + 2) * size);
    const residual = Float64Array.from(v.subarray(value, value + valueDim));
    for (let at = 0; at < size; at++) {
      const kept = decay * (before[at] as number);
      after[at] = kept;
      addAt(residual, at % valueDim, -(k[key + Math.floor(at / valueDim)] as number) * kept);
    }
    for (let at = 0; at < size; at++) {
      const written = (beta[gate] as number) * (residual[at % valueDim] as number);
      addAt(after, at, (k[key + Math.floor(at / valueDim)] as number) * written);
    }
    return { key, value, gate, decay, residual };
  });
}

function deltaValues(
  sizes: DeltaSizes,
  [queries, keys, values, beta, step, stateLog]: DeltaValues,
): Float32Array {
  const { batch, tokens, keyDim } = sizes;
  const state = new Float32Array(batch * sizes.valueHeads * keyDim * sizes.valueDim);
  const rates = decayRates(stateLog);
  return deltaRule(sizes, { batch, tokens, queries, keys, values, beta, step, rates, state });
}

function deltaGradients(sizes: DeltaSizes, values: DeltaValues, dy: Float32Array): Float64Array[] {
  const { batch, tokens, keyDim, valueHeads, valueDim } = sizes;
  const [q, k, , beta, step, stateLog] = values;
  const gradients = zerosLike(values);
  const [dq, dk, dv, dBeta, dStep, dLog] = gradients;
  const size = keyDim * valueDim;
  const states = new Float64Array((tokens + 1) * size);
  const scale = 1 / Math.sqrt(keyDim);
  for (let sequence = 0; sequence < batch; sequence++) {
    for (let head = 0; head < valueHeads; head++) {
      const steps = headStates(sizes, values, sequence, head, states);
      const rate = -Math.exp(stateLog[head] as number);
      const dState = new Float64Array(size);
      for (const [token, { key, value, gate, decay, residual }] of [...steps.entries()].reverse()) {
        const before = states.subarray(token * size, (token + 1) * size);
        const after = states.subarray((token + 1) * size, (token + 2) * size);
        const share = beta[gate] as number;
        const written = new Float64Array(valueDim);
        for (let at = 0; at < size; at++) {
          const [i, j] = [key + Math.floor(at / valueDim), at % valueDim];
          const up = scale * (dy[value + j] as number);
          addAt(dq, i, up * (after[at] as number));
          addAt(dState, at, up * (q[i] as number));
          addAt(written, j, (k[i] as number) * (dState[at] as number));
          addAt(dk, i, (dState[at] as number) * share * (residual[j] as number));
        }
        for (let j = 0; j < valueDim; j++) {
          addAt(dBeta, gate, (written[j] as number) * (residual[j] as number));
          addAt(dv, value + j, share * (written[j] as number));
        }
        let slope = 0;
        for (let at = 0; at < size; at++) {
          const [i, j] = [key + Math.floor(at / valueDim), at % valueDim];
          const lacked = share * (written[j] as number);
          addAt(dk, i, -decay * (before[at] as number) * lacked);
          const own = (dState[at] as number) - (k[i] as number) * lacked;
          slope += own * (before[at] as number);
          dState[at] = decay * own;
        }
        // Derivative with respect to the exponent A · step.
        const dExponent = slope * decay;
        addAt(dStep, gate, dExponent * rate);
        addAt(dLog, head, dExponent * rate * (step[gate] as number));
      }
    }
  }
  return gradients;
}

// The gated delta rule on plain values: T steps of small operations in the library would take many times as long.

export interface DeltaInputs extends Readonly<Record<'batch' | 'tokens', number>> {
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

/** Heads of the rule (see `GatedDelta`). */
export type DeltaHeads = Pick<GatedDelta, 'keyHeads' | 'keyDim' | 'valueHeads' | 'valueDim'>;

/** → [B, T, valueHeads · valueDim]. */
export function deltaRule(layer: DeltaHeads, inputs: DeltaInputs): Float32Array {
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
