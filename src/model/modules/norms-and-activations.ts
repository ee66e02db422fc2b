/**
 * Norms over the last axis, and SwiGLU. Squares are float32, which overflow at 3.4e38 as in PyTorch. Their sums use double
 * precision. Results are rounded to float32 and then to X's dtype.
 */
import { manualSeed } from '../../base/random/generator.js';
import type { Float32Tensor, Tensor } from './tensor.js';
import {
  expectFinite,
  expectSameDtype,
  expectShape,
  expectWhole,
  mistake,
  numbersOf,
  roundedTensor,
} from './tensor.js';

const DEFAULT_EPS = 1e-5;

/**
 * GroupRMSNorm: divides every `groupSize` adjacent columns by the root mean square and multiplies by γ: X /
 * sqrt(mean(X²) + eps) · γ.
 * @param x [..., h]
 * @param gamma [h]
 * @param groupSize Width of a group, not the number of groups; divides h.
 * @returns [..., h] in X's dtype.
 * @throws UserError when it does not divide h, or shapes do not fit.
 */
export function groupRmsNorm(
  x: Tensor,
  gamma: Tensor,
  groupSize: number,
  eps = DEFAULT_EPS,
): Tensor {
  return normalizedGroups('groupRmsNorm', x, gamma, groupSize, eps);
}

/**
 * RMSNorm (arXiv 1910.07467): X / sqrt(mean(X²) + eps) · γ over the last axis.
 * @param x [..., h]
 * @param gamma [h]
 * @returns [..., h] in X's dtype, rounded once, as `torch.nn.functional.rms_norm` does.
 * @throws UserError when shapes do not fit.
 */
export function rmsNorm(x: Tensor, gamma: Tensor, eps = DEFAULT_EPS): Tensor {
  return normalizedGroups('rmsNorm', x, gamma, rowWidth('rmsNorm', x), eps);
}

function normalizedGroups(
  where: string,
  x: Tensor,
  gamma: Tensor,
  size: number,
  eps: number,
): Tensor {
  const width = rowWidth(where, x);
  expectWhole(where, 'the width of a group', size, 1);
  if (width % size !== 0) {
    throw mistake(
      where,
      `a group of ${size} columns does not divide the width ${width}`,
      `choose a group size that divides ${width}; it is the width of a group, not the number of groups`,
    );
  }
  expectShape(where, 'γ', gamma.shape, [width]);
  expectFinite(where, 'eps', eps);
  const input = numbersOf(where, x);
  const scales = numbersOf(where, gamma);
  const data = new Float32Array(input.length);
  for (let start = 0; start < input.length; start += size) {
    const group = input.subarray(start, start + size);
    const factor = 1 / Math.sqrt(meanOf(group, 0) + eps);
    for (let i = 0; i < size; i++) {
      data[start + i] = (group[i] ?? 0) * factor * (scales[(start + i) % width] ?? 0);
    }
  }
  return roundedTensor(where, { dtype: 'f32', shape: x.shape, data }, x.dtype);
}

/**
 * LayerNorm (arXiv 1607.06450): (X − mean) / sqrt(variance + eps) · γ + β over the last axis.
 * @param x [..., h]
 * @param gamma [h]
 * @param beta [h], optional.
 * @returns [..., h] in X's dtype, rounded once, as `torch.nn.functional.layer_norm` does.
 * @throws UserError when shapes do not fit.
 */
export function layerNorm(x: Tensor, gamma: Tensor, beta?: Tensor, eps = DEFAULT_EPS): Tensor {
  const where = 'layerNorm';
  const width = rowWidth(where, x);
  expectShape(where, 'γ', gamma.shape, [width]);
  if (beta) expectShape(where, 'β', beta.shape, [width]);
  expectFinite(where, 'eps', eps);
  const input = numbersOf(where, x);
  const scales = numbersOf(where, gamma);
  const shifts = beta && numbersOf(where, beta);
  const data = new Float32Array(input.length);
  for (let start = 0; start < input.length; start += width) {
    const row = input.subarray(start, start + width);
    const mean = row.reduce((sum, value) => sum + value, 0) / width;
    const factor = 1 / Math.sqrt(meanOf(row, mean) + eps);
    for (let i = 0; i < width; i++) {
      data[start + i] = ((row[i] ?? 0) - mean) * factor * (scales[i] ?? 0) + (shifts?.[i] ?? 0);
    }
  }
  return roundedTensor(where, { dtype: 'f32', shape: x.shape, data }, x.dtype);
}

/** Mean of the squared distances from `centre`: infinite if one of them or their sum overflows float32. */
const meanOf = (values: Float32Array, centre: number): number =>
  Math.fround(values.reduce((sum, value) => sum + Math.fround((value - centre) ** 2), 0)) /
  values.length;

function rowWidth(where: string, x: Tensor): number {
  const width = x.shape.at(-1) ?? 0;
  expectWhole(where, 'the width of X', width, 1);
  return width;
}

/**
 * Initial γ of a GroupRMSNorm: `torch.manual_seed(seed)`, then uniform over the range.
 * @returns [hiddenSize], float32.
 * @throws UserError for an invalid size, range or seed.
 */
export function initialGamma(
  hiddenSize: number,
  [low, high]: readonly [low: number, high: number],
  seed: number | bigint,
): Float32Tensor {
  expectWhole('initialGamma', 'the width', hiddenSize, 1);
  const data = manualSeed(seed).uniform(new Float32Array(hiddenSize), low, high);
  return { dtype: 'f32', shape: [hiddenSize], data };
}

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
  return roundedTensor('swiglu', { dtype: 'f32', shape: gate.shape, data }, gate.dtype);
}
