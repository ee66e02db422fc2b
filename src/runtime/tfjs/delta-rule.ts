/** The gated delta rule on plain values: T steps of small operations in the library would take many times as long. */
import type { GatedDelta } from '../../architecture/layer.js';

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
