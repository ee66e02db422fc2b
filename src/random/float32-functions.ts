/**
 * Logarithm, sine and cosine of float32 values as PyTorch's kernels for processors with AVX2 compute them
 * (aten/src/ATen/native/cpu/avx_mathfun.h of 2.13, after the single precision functions of Moshier's Cephes). A
 * product and the sum that it goes into are rounded once, as the compiler of its builds joins them.
 */
const f32 = Math.fround;

const word = new Int32Array(1);
const number = new Float32Array(word.buffer);

const SQRT_HALF = f32(Math.SQRT1_2);
const LOGARITHM = Float32Array.of(
  ...[7.0376836292e-2, -1.151461031e-1, 1.167699874e-1, -1.2420140846e-1, 1.4249322787e-1],
  ...[-1.6668057665e-1, 2.0000714765e-1, -2.4999993993e-1, 3.3333331174e-1],
);
/** ln 2 in two parts, of which the first has few bits. */
const [LN2_HIGH, LN2_LOW] = [f32(0.693359375), f32(-2.1219444e-4)];

const SINE = Float32Array.of(-1.9515295891e-4, 8.3321608736e-3, -1.6666654611e-1);
const COSINE = Float32Array.of(2.443315711809948e-5, -1.388731625493765e-3, 4.166664568298827e-2);
/** π / 4 in three parts. */
const [EIGHTH_1, EIGHTH_2, EIGHTH_3] = [
  f32(0.78515625),
  f32(2.4187564849853516e-4),
  f32(3.774894977445941e-8),
];
const EIGHTHS = f32(1.27323954473516);

function polynomial(coefficients: Float32Array, x: number): number {
  let sum = coefficients[0] ?? 0;
  for (let i = 1; i < coefficients.length; i++) sum = f32(sum * x + (coefficients[i] ?? 0));
  return sum;
}

/** @param x A normal float32 above zero. */
export function logarithm(x: number): number {
  number[0] = x;
  const bits = word[0] ?? 0;
  let exponent = (bits >> 23) - 0x7e;
  word[0] = (bits & 0x7fffff) | 0x3f000000;
  const mantissa = number[0] ?? 0;
  let rest = mantissa - 1;
  if (mantissa < SQRT_HALF) {
    exponent--;
    rest += mantissa;
  }
  const square = f32(rest * rest);
  const tail = f32(polynomial(LOGARITHM, rest) * rest);
  let sum = f32(tail * square + f32(exponent * LN2_LOW));
  sum = f32(sum - square * 0.5);
  return f32(exponent * LN2_HIGH + f32(rest + sum));
}

/** @param angle From 0 on, some turns at most. @param point Gets its cosine and sine. */
export function cosineAndSine(angle: number, point: Float32Array): void {
  // To the nearest multiple of a quarter turn.
  const eighths = (Math.trunc(f32(angle * EIGHTHS)) + 1) & ~1;
  let rest = f32(angle - eighths * EIGHTH_1);
  rest = f32(rest - eighths * EIGHTH_2);
  rest = f32(rest - eighths * EIGHTH_3);
  const square = f32(rest * rest);
  const even = f32(polynomial(COSINE, square) * square);
  const cosine = f32(f32(even * square - square * 0.5) + 1);
  const sine = f32(f32(polynomial(SINE, square) * square) * rest + rest);
  const isTurned = (eighths & 2) !== 0;
  const x = isTurned ? sine : cosine;
  const y = isTurned ? cosine : sine;
  point[0] = ((eighths - 2) & 4) === 0 ? -x : x;
  point[1] = (eighths & 4) === 0 ? y : -y;
}
