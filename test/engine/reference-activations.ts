import type { ActivationName } from '../../src/model/architecture/layer.js';
import { each, sigmoid, silu, type Tensor } from './reference-values.js';

const gelu = (x: number) => (x / 2) * (1 + erf(x / Math.SQRT2));

/** Each activation by its authors' definition. */
const ACTIVATED: Readonly<Record<ActivationName, (x: number) => number>> = {
  silu,
  gelu,
  geluTanh: (x) => (x / 2) * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x ** 3))),
  quickGelu: (x) => x * sigmoid(1.702 * x),
  relu: (x) => Math.max(x, 0),
  identity: (x) => x,
  softplus: (x) => Math.log1p(Math.exp(x)),
  sqrtSoftplus: (x) => Math.sqrt(Math.log1p(Math.exp(x))),
  reluSquared: (x) => Math.max(x, 0) ** 2,
  relu6: (x) => Math.min(Math.max(x, 0), 6),
  leakyRelu: (x) => (x < 0 ? 0.01 * x : x),
  geluClipped: (x) => Math.min(Math.max(gelu(x), -10), 10),
  hardSwish: (x) => (x * Math.min(Math.max(x + 3, 0), 6)) / 6,
  mish: (x) => x * Math.tanh(Math.log1p(Math.exp(x))),
  tanh: Math.tanh,
  sigmoid,
  laplace: (x) => (1 + erf((x - Math.SQRT1_2) * Math.sqrt(2 * Math.PI))) / 2,
};

export const activated = (x: Tensor, name: ActivationName) => each(x, ACTIVATED[name]);

/**
 * The error function: its Taylor series up to 3, and beyond it Lentz's continued fraction of the complement
 * (Numerical Recipes, 3rd edition, 6.2).
 */
function erf(x: number): number {
  const size = Math.abs(x);
  const value = size < 3 ? series(size) : 1 - complement(size);
  return x < 0 ? -value : value;
}

function series(x: number): number {
  let term = x;
  let sum = x;
  for (let n = 1; Math.abs(term) > 1e-18 * sum; n++) {
    term *= -(x * x) / n;
    sum += term / (2 * n + 1);
  }
  return (2 / Math.sqrt(Math.PI)) * sum;
}

function complement(x: number): number {
  if (x > 27) return 0;
  let fraction = x;
  for (let n = 60; n > 0; n--) fraction = x + n / 2 / fraction;
  return Math.exp(-x * x) / Math.sqrt(Math.PI) / fraction;
}
