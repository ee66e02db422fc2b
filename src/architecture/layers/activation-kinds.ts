/** Activation functions, and layers that apply one operation to every value. */
import type { Param } from '../param.js';
import type { Node } from './layer-node.js';

/** Activation functions by name; σ is the sigmoid. */
export const ACTIVATIONS = {
  silu: 'x · σ(x)',
  /** Uses erf. */
  gelu: 'GELU',
  geluTanh: 'GELU, approximated by tanh',
  /** x · σ(1.702 x) */
  quickGelu: 'GELU, approximated by σ',
  relu: 'max(x, 0)',
  reluSquared: 'max(x, 0)²',
  relu6: 'min(max(x, 0), 6)',
  leakyRelu: 'max(x, x / 100)',
  /** Clipped at ±10. */
  geluClipped: 'GELU, between −10 and 10',
  hardSwish: 'x · min(max(x + 3, 0), 6) / 6',
  mish: 'x · tanh(log(1 + eˣ))',
  tanh: 'tanh(x)',
  sigmoid: 'σ(x)',
  /** Uses erf, with mean √½ and deviation √(1 / 4π) (arXiv 2209.10655). */
  laplace: 'distribution function of a normal distribution',
} as const satisfies Record<string, string>;

/** Mean and deviation of `laplace`, with the digits used by implementations. */
export const LAPLACE = { mean: 707_107e-6, deviation: 282_095e-6 } as const;

export type ActivationName = keyof typeof ACTIVATIONS;

/** Elementwise. */
export interface Activation extends Node<'activation'> {
  readonly fn: ActivationName;
  /** Whether the original uses elementary operations, each of which keeps values for its gradient. */
  readonly composed?: boolean;
}

/** x · weight, weight [1] or as wide as x. */
export interface WeightedScale extends Node<'weightedScale'> {
  readonly weight: Param;
}

/** x · factor. */
export interface Scale extends Node<'scale'> {
  readonly factor: number;
}

/** cap · tanh(x / cap). */
export interface Softcap extends Node<'softcap'> {
  readonly cap: number;
}
