/** Constructors of the recurrent block of Griffin. */
import type { ActivationName, BlockDiagonal, GriffinRecurrence } from '../layer.js';
import { param } from '../param.js';
import { linear } from './basic-layers.js';
import { causalConv } from './recurrent-layers.js';

/** `NAME_weight` and `NAME_bias`. */
function blockDiagonal(name: string, heads: number, size: number): BlockDiagonal {
  return {
    kind: 'blockDiagonal',
    name,
    weight: param(`${name}_weight`, [heads, size, size]),
    bias: param(`${name}_bias`, [heads, size]),
  };
}

interface GriffinSizes {
  readonly hidden: number;
  readonly width: number;
  /** Divides the width. */
  readonly heads: number;
  readonly kernel: number;
  readonly activation: ActivationName;
}

/** With the names of RecurrentGemma. */
export function griffinRecurrence(
  name: string,
  { hidden, width, heads, kernel, activation }: GriffinSizes,
): GriffinRecurrence {
  return {
    kind: 'griffinRecurrence',
    name,
    component: 'recurrence',
    y: linear(`${name}.linear_y`, hidden, width),
    x: linear(`${name}.linear_x`, hidden, width),
    out: linear(`${name}.linear_out`, width, hidden),
    conv: causalConv(`${name}.conv_1d`, width, kernel),
    decay: param(`${name}.rg_lru.recurrent_param`, [width]),
    inputGate: blockDiagonal(`${name}.rg_lru.input_gate`, heads, width / heads),
    recurrentGate: blockDiagonal(`${name}.rg_lru.recurrent_gate`, heads, width / heads),
    activation,
  };
}
