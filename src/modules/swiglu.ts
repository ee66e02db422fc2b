import { expectSameDtype, expectShape, numbersOf, rounded, type Tensor } from './tensor.js';

/**
 * SwiGLU (arXiv 2002.05202): silu(gate) · up, with silu(x) = x / (1 + exp(−x)).
 * @param gate [...]
 * @param up [...], of the same shape and dtype.
 * @returns [...] in their dtype, rounded once, after the product.
 * @throws UserError when shapes or dtypes differ.
 */
export function swiglu(gate: Tensor, up: Tensor): Tensor {
  expectShape('swiglu', 'up', up.shape, gate.shape);
  expectSameDtype('swiglu', { gate, up });
  const gates = numbersOf('swiglu', gate);
  const ups = numbersOf('swiglu', up);
  const data = gates.map((value, at) => (value / (1 + Math.exp(-value))) * (ups[at] ?? 0));
  return rounded('swiglu', { dtype: 'f32', shape: gate.shape, data }, gate.dtype);
}
