/**
 * The scan of one channel as WebAssembly, four states at a time: several times as fast as the same loop in
 * JavaScript, which spends its time on exponentials.
 */
import {
  type Code,
  f32,
  f32x4,
  i32,
  i32x4,
  type Local,
  moduleOf,
  repeatWhile,
} from './webassembly.js';

/** States that are worked on together. */
export const LANES = 4;
const LANES_BYTES = LANES * Float32Array.BYTES_PER_ELEMENT;

/**
 * A state that should keep less than 2^−64 of itself keeps that: it is nothing beside what float32 can tell
 * apart, and with less, products become subnormal numbers, with which a processor takes four times as long.
 */
const LEAST_EXPONENT = -64;
const EXPONENT_BIAS = 127;
const MANTISSA_BITS = 23;
/** Of the series of 2^f; the first that is left out is below 1e−8. */
const TERMS = 8;

/** Addresses and lengths are in bytes. */
const PARAMETERS = [
  /** At least one. */
  'tokens',
  /** From one token to the next in `step`, `x` and `y`. */
  'stride',
  /** Of the states of a channel; from one token to the next in `b` and `c`. */
  'width',
  'step',
  'x',
  'b',
  'c',
  /** A · log2(e) */
  'rates',
  'state',
  'y',
] as const;

const LOCALS = {
  delta: 'v128',
  input: 'v128',
  sum: 'v128',
  at: 'i32',
  exponent: 'v128',
  whole: 'v128',
  fraction: 'v128',
  next: 'v128',
} as const;

/** A module that computes, for every token, state = state · 2^(Δ · rates) + Δ · x · B and y = Σ state · C. */
export function scanModule(): Uint8Array<ArrayBuffer> {
  const { add, sub, mul, max, nearest, constant, load, loadSplat, store } = f32x4;
  return moduleOf(PARAMETERS, LOCALS, (v) => {
    const advance = (variable: Local, by: Code) => variable.set(i32.add(variable.get, by));
    const current = (base: Local) => load(i32.add(base.get, v.at.get));
    return [
      repeatWhile(v.tokens.get, [
        v.delta.set(loadSplat(v.step.get)),
        v.input.set(mul(v.delta.get, loadSplat(v.x.get))),
        v.sum.set(constant(0)),
        v.at.set(i32.constant(0)),
        repeatWhile(i32.lessThan(v.at.get, v.width.get), [
          v.exponent.set(max(mul(v.delta.get, current(v.rates)), constant(LEAST_EXPONENT))),
          v.whole.set(nearest(v.exponent.get)),
          v.fraction.set(sub(v.exponent.get, v.whole.get)),
          v.next.set(
            add(
              mul(current(v.state), powerOfTwo(v.whole, v.fraction)),
              mul(v.input.get, current(v.b)),
            ),
          ),
          store(i32.add(v.state.get, v.at.get), v.next.get),
          v.sum.set(add(v.sum.get, mul(v.next.get, current(v.c)))),
          advance(v.at, i32.constant(LANES_BYTES)),
        ]),
        f32.store(v.y.get, total(v.sum)),
        ...[v.step, v.x, v.y].map((address) => advance(address, v.stride.get)),
        ...[v.b, v.c].map((address) => advance(address, v.width.get)),
        advance(v.tokens, i32.constant(-1)),
      ]),
    ];
  });
}

/** 2^whole · 2^fraction, for an integer from −126 to 127, and a fraction from −½ to ½. */
function powerOfTwo(whole: Local, fraction: Local): Code {
  const { mul, add, constant, truncate } = f32x4;
  // 2^whole is written as the exponent of a float.
  const exponent = i32x4.add(truncate(whole.get), i32x4.constant(EXPONENT_BIAS));
  const scale = i32x4.shiftLeft(exponent, MANTISSA_BITS);
  // 2^fraction = Σ (ln 2)^i / i! · fraction^i, by Horner's rule.
  const coefficients = [1];
  for (let i = 1; i < TERMS; i++) coefficients.push(((coefficients[i - 1] ?? 0) * Math.LN2) / i);
  const series = coefficients
    .map(constant)
    .reduceRight((sum, coefficient) => add(mul(sum, fraction.get), coefficient));
  return mul(series, scale);
}

/** The sum of the lanes. */
function total(value: Local): Code {
  const [a, b, c, d] = [0, 1, 2, 3].map((index) => f32x4.lane(value.get, index)) as [
    Code,
    Code,
    Code,
    Code,
  ];
  return f32.add(f32.add(a, b), f32.add(c, d));
}
