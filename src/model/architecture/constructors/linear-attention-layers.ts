/** Constructors of layers with a state that are neither Mamba nor a gated delta rule. */
import type { LightningAttention } from '../layer.js';
import { buffer } from '../param.js';

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
