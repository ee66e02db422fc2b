/** The delta rule with a decay for each channel of a key (see `KimiDelta`), on plain values, with its gradients. */
import type { Tensor, Tensor3D, Tf } from '../packages.js';
import { addAt, hostOperation, zerosLike } from './host-operations.js';

export interface ChannelDeltaSizes {
  readonly batch: number;
  readonly tokens: number;
  readonly heads: number;
  /** Width of keys and values. */
  readonly headDim: number;
}

/** q, k, v and the logarithms of the decays, [B, T, heads · headDim], and β, [B, T, heads]. */
export type ChannelDeltaInputs<Value> = readonly [
  q: Value,
  k: Value,
  v: Value,
  logs: Value,
  beta: Value,
];

/** From a state of zeros. */
export const differentiableChannelDelta = (
  tf: Tf,
  inputs: ChannelDeltaInputs<Tensor>,
  sizes: ChannelDeltaSizes,
): Tensor3D =>
  hostOperation<Tensor3D>(tf, inputs, {
    shape: [sizes.batch, sizes.tokens, sizes.heads * sizes.headDim],
    value: (values) => channelDelta(sizes, values as Values, emptyState(sizes)),
    gradients: (values, dy) => channelDeltaGradients(sizes, values as Values, dy),
  });

type Values = ChannelDeltaInputs<Float32Array>;

export const emptyState = ({ batch, heads, headDim }: ChannelDeltaSizes): Float32Array =>
  new Float32Array(batch * heads * headDim * headDim);

/**
 * → [B, T, heads · headDim].
 * @param state [B, heads, headDim, headDim]; changed in place.
 */
export function channelDelta(
  sizes: ChannelDeltaSizes,
  [q, k, v, logs, beta]: Values,
  state: Float32Array,
): Float32Array {
  const { batch, tokens, heads, headDim: size } = sizes;
  const output = new Float32Array(v.length);
  const scale = 1 / Math.sqrt(size);
  const change = new Float64Array(size);
  for (let row = 0; row < batch * tokens; row++) {
    for (let head = 0; head < heads; head++) {
      const at = (row * heads + head) * size;
      const own = (Math.floor(row / tokens) * heads + head) * size * size;
      change.fill(0);
      for (let i = 0, place = own; i < size; i++) {
        const [decay, key] = [Math.exp(logs[at + i] as number), k[at + i] as number];
        for (let j = 0; j < size; j++, place++) {
          const kept = (state[place] as number) * decay;
          state[place] = kept;
          addAt(change, j, key * kept);
        }
      }
      const rate = beta[row * heads + head] as number;
      for (let j = 0; j < size; j++) {
        change[j] = rate * ((v[at + j] as number) - (change[j] as number));
      }
      for (let i = 0, place = own; i < size; i++) {
        const [key, query] = [k[at + i] as number, scale * (q[at + i] as number)];
        for (let j = 0; j < size; j++, place++) {
          const next = (state[place] as number) + key * (change[j] as number);
          state[place] = next;
          output[at + j] = (output[at + j] as number) + query * next;
        }
      }
    }
  }
  return output;
}

/** States of a head in float64: the decayed ones of each token, those after it, and v − k · S. */
function headStates(
  { tokens, heads, headDim: size }: ChannelDeltaSizes,
  [, k, v, logs, beta]: Values,
  sequence: number,
  head: number,
) {
  const [decayed, after] = [0, 1].map(() => new Float64Array(tokens * size * size)) as [
    Float64Array,
    Float64Array,
  ];
  const residual = new Float64Array(tokens * size);
  for (let token = 0; token < tokens; token++) {
    const row = sequence * tokens + token;
    const at = (row * heads + head) * size;
    const own = token * size * size;
    for (let j = 0; j < size; j++) residual[token * size + j] = v[at + j] as number;
    for (let place = 0; place < size * size; place++) {
      const i = Math.floor(place / size);
      const before = token === 0 ? 0 : (after[own - size * size + place] as number);
      const kept = before * Math.exp(logs[at + i] as number);
      decayed[own + place] = kept;
      addAt(residual, token * size + (place % size), -(k[at + i] as number) * kept);
    }
    const rate = beta[row * heads + head] as number;
    for (let place = 0; place < size * size; place++) {
      const [key, rest] = [
        k[at + Math.floor(place / size)] as number,
        residual[token * size + (place % size)] as number,
      ];
      after[own + place] = (decayed[own + place] as number) + key * rate * rest;
    }
  }
  return { decayed, after, residual };
}

function channelDeltaGradients(
  sizes: ChannelDeltaSizes,
  values: Values,
  dy: Float32Array,
): Float64Array[] {
  const { batch, tokens, heads, headDim: size } = sizes;
  const [q, k, , logs, beta] = values;
  const gradients = zerosLike(values);
  const [dq, dk, dv, dLogs, dBeta] = gradients;
  const scale = 1 / Math.sqrt(size);
  for (let sequence = 0; sequence < batch; sequence++) {
    for (let head = 0; head < heads; head++) {
      const { decayed, after, residual } = headStates(sizes, values, sequence, head);
      const dState = new Float64Array(size * size);
      for (let token = tokens - 1; token >= 0; token--) {
        const row = sequence * tokens + token;
        const at = (row * heads + head) * size;
        const own = token * size * size;
        const rate = beta[row * heads + head] as number;
        const written = new Float64Array(size);
        for (let place = 0; place < size * size; place++) {
          const [i, j] = [Math.floor(place / size), place % size];
          const up = scale * (dy[at + j] as number);
          addAt(dq, at + i, up * (after[own + place] as number));
          addAt(dState, place, up * (q[at + i] as number));
          addAt(written, j, (k[at + i] as number) * (dState[place] as number));
          const change = rate * (residual[token * size + j] as number);
          addAt(dk, at + i, (dState[place] as number) * change);
        }
        for (let j = 0; j < size; j++) {
          const rest = residual[token * size + j] as number;
          addAt(dBeta, row * heads + head, (written[j] as number) * rest);
          addAt(dv, at + j, rate * (written[j] as number));
        }
        for (let place = 0; place < size * size; place++) {
          const [i, j] = [Math.floor(place / size), place % size];
          const lacked = rate * (written[j] as number);
          addAt(dk, at + i, -(decayed[own + place] as number) * lacked);
          const slope = (dState[place] as number) - (k[at + i] as number) * lacked;
          addAt(dLogs, at + i, slope * (decayed[own + place] as number));
          dState[place] = slope * Math.exp(logs[at + i] as number);
        }
      }
    }
  }
  return gradients;
}
