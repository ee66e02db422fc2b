/** Activations and their derivatives, one value at a time, as autograd of PyTorch gives them. */
import type { Tensor } from './tensor.js';
import { mistake, numbersOf, roundedTensor } from './tensor.js';

interface Activation {
  /** Expression of PyTorch on `x`. */
  readonly torch: string;
  readonly value: (x: number) => number;
  readonly derivative: (x: number) => number;
}

const sigmoid = (x: number): number => 1 / (1 + Math.exp(-x));

/** Beyond this, erf differs from one by less than float64 holds. */
const ERF_IS_ONE = 6;

/** Error function by its series without cancellation (Abramowitz and Stegun 7.1.6). */
function erf(x: number): number {
  if (!(Math.abs(x) < ERF_IS_ONE)) return Number.isNaN(x) ? x : Math.sign(x);
  let [term, sum] = [x, x];
  for (let n = 1; Math.abs(term) > Number.EPSILON * Math.abs(sum); n++) {
    term *= (2 * x * x) / (2 * n + 1);
    sum += term;
  }
  return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
}

/** Cumulative distribution function of the standard normal distribution. */
const normalShare = (x: number): number => 0.5 * (1 + erf(x / Math.SQRT2));
const normalDensity = (x: number): number => Math.exp((-x * x) / 2) / Math.sqrt(2 * Math.PI);

const TANH_SCALE = Math.sqrt(2 / Math.PI);
const TANH_CUBE = 0.044715;
const tanhOf = (x: number): number => Math.tanh(TANH_SCALE * (x + TANH_CUBE * x ** 3));

/** Derivative of ReLU at 0 is 0, as in PyTorch. */
export const ACTIVATIONS = {
  relu: {
    torch: 'torch.relu(x)',
    value: (x) => (x > 0 || Number.isNaN(x) ? x : 0),
    derivative: (x) => (x > 0 ? 1 : 0),
  },
  gelu: {
    torch: 'torch.nn.functional.gelu(x)',
    value: (x) => x * normalShare(x),
    derivative: (x) => normalShare(x) + x * normalDensity(x),
  },
  gelu_tanh: {
    torch: "torch.nn.functional.gelu(x, approximate='tanh')",
    value: (x) => 0.5 * x * (1 + tanhOf(x)),
    derivative: (x) => {
      const tanh = tanhOf(x);
      const inner = TANH_SCALE * (1 + 3 * TANH_CUBE * x * x);
      return 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh * tanh) * inner;
    },
  },
  silu: {
    torch: 'torch.nn.functional.silu(x)',
    value: (x) => x * sigmoid(x),
    derivative: (x) => {
      const share = sigmoid(x);
      return share + x * share * (1 - share);
    },
  },
} as const satisfies Record<string, Activation>;

export type ActivationName = keyof typeof ACTIVATIONS;

function applied(where: string, name: ActivationName, x: Tensor, part: 'value' | 'derivative') {
  const known = Object.hasOwn(ACTIVATIONS, name) ? ACTIVATIONS[name] : undefined;
  if (known === undefined) {
    const names = Object.keys(ACTIVATIONS).join(', ');
    throw mistake(where, `unknown activation ${String(name)}`, `write one of ${names}`);
  }
  const data = numbersOf(where, x).map((value) => known[part](value));
  return roundedTensor(where, { dtype: 'f32', shape: x.shape, data }, x.dtype);
}

/**
 * ReLU, GELU (with erf, or `gelu_tanh`) or SiLU of every value.
 * @returns [...] in X's dtype, rounded once.
 * @throws UserError for an unknown name.
 */
export const activation = (name: ActivationName, x: Tensor): Tensor =>
  applied('activation', name, x, 'value');

/**
 * Derivative of an activation at every value: the gradient of the sum of its outputs, `torch.autograd.grad(y.sum(), x)`.
 * @returns [...] in X's dtype, rounded once.
 * @throws UserError for an unknown name.
 */
export const activationGradient = (name: ActivationName, x: Tensor): Tensor =>
  applied('activationGradient', name, x, 'derivative');
