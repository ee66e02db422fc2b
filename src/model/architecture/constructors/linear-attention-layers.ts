/** Constructors of layers with a state that are neither Mamba nor a gated delta rule. */
import type { KimiDelta, LightningAttention } from '../layer.js';
import { buffer, param } from '../param.js';

interface LightningParts
  extends Omit<LightningAttention, 'kind' | 'name' | 'component' | 'tables'> {
  /** Tokens of a block: sizes of the tables. */
  readonly block: number;
}

export function lightningAttention(
  name: string,
  { block, norm, inputs, outProj, ...rest }: LightningParts,
): LightningAttention {
  const heads = rest.slopes.length;
  return {
    kind: 'lightningAttention',
    name,
    component: 'linearAttention',
    tables: [
      buffer(`${name}.slope_rate`, [heads, 1, 1]),
      buffer(`${name}.query_decay`, [heads, block, 1]),
      buffer(`${name}.key_decay`, [heads, block, 1]),
      buffer(`${name}.diagonal_decay`, [1, heads, block, block]),
    ],
    norm,
    inputs,
    outProj,
    ...rest,
  };
}

interface KimiDeltaParts
  extends Omit<KimiDelta, 'kind' | 'name' | 'component' | 'stepBias' | 'stateLog'> {
  /** Name of the layer's own tensors. */
  readonly tensors: string;
}

export function kimiDelta(
  name: string,
  { tensors, inputs, convs, ...rest }: KimiDeltaParts,
): KimiDelta {
  const { heads, headDim } = rest;
  return {
    kind: 'kimiDelta',
    name,
    component: 'linearAttention',
    inputs,
    convs,
    stepBias: param(`${tensors}.dt_bias`, [heads * headDim]),
    stateLog: param(`${tensors}.A_log`, [1, 1, heads, 1]),
    ...rest,
  };
}
