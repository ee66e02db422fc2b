/**
 * Searches for the scales of several groups of values at a time, in WebAssembly: four groups in the four lanes of a
 * vector, so that each group is summed in the order of ggml's reference. With it, codes agree with those of llama.cpp
 * bit for bit (ggml 0.21.0, commit d99724f2, src/ggml-quants.c, compiled without fused multiply-add).
 */
import {
  addIntegers,
  type Code,
  constant,
  FunctionWriter,
  loadSplat,
  moduleOf,
  multiplyIntegers,
  smallConstant,
  store,
  VALUE,
  vector,
  vectorLoad,
  type WasmFunction,
  when,
} from './wasm-code.js';

const f32 = Math.fround;

/** Groups of a vector. */
const LANES = 4;

/** Values of all groups together, and groups. */
const MOST = { values: 256, groups: 16, trials: 37 };

// Places in memory, in bytes. Value i of group g is number (⌊g / 4⌋ · count + i) · 4 + g mod 4.
const VALUES = 0;
const WEIGHTS = VALUES + 4 * MOST.values;
const CODES = WEIGHTS + 4 * MOST.values;
const TRIED = CODES + 4 * MOST.values;
const SCALES = TRIED + 4 * MOST.values;
const MINIMA = SCALES + 4 * MOST.groups;
const TRIALS = MINIMA + 4 * MOST.groups;

/** A group whose largest value is below this counts as zeros. */
export const ZERO_GROUP = f32(1e-15);

const { add, sub, mul, div, smaller, larger, abs, nearest, select, and, anyTrue, neg } = vector;
const { less, lessOrEqual, greater, notEqual, splat } = vector;

const ZERO = constant(0);

/**
 * Scale s and minimum m ≤ 0 of each group with value ≈ s · code + m (ggml: make_qkx2_quants, make_qkx3_quants).
 * Parameters: vectors of groups, bytes of a vector's values, largest code, bytes of the trials, whether errors are
 * absolute instead of squares.
 */
function affineKernel(): WasmFunction {
  const writer = new FunctionWriter();
  const { i32, f32: float, v128 } = VALUE;
  const [vectors, bytes, largestCode] = [i32, i32, float].map((type) => writer.local(type));
  const [trialBytes, isAbsolute] = [i32, i32].map((type) => writer.local(type));
  if (!vectors || !bytes || !largestCode || !trialBytes || !isAbsolute) throw new Error();
  const integers = () => writer.local(i32);
  const number = () => writer.local(v128);
  const [turn, base, place, i, at, trial] = Array.from({ length: 6 }, integers) as Six<Local>;
  const [top, x, w, low, high, minimum] = Array.from({ length: 6 }, number) as Six<Local>;
  const [sumW, sumX, inverse, scale, least, code] = Array.from({ length: 6 }, number) as Six<Local>;
  const [sumL, sumL2, sumXL, ownScale, ownMinimum, sum] = Array.from(
    { length: 6 },
    number,
  ) as Six<Local>;
  const [better, isZero, isPositive, difference, asAbsolute, determinant] = Array.from(
    { length: 6 },
    number,
  ) as Six<Local>;

  const everyValue = (body: readonly Code[]) =>
    i.upTo(bytes.get, 16, [at.set(addIntegers(base.get, i.get)), ...body]);
  const codeOf = (from: Local): Code => {
    const raw = nearest(mul(inverse.get, sub(x.get, from.get)));
    return larger(smaller(raw, top.get), ZERO);
  };
  /** sum + w · error of `code` with a scale and minimum. */
  const withError = (total: Local, s: Local, m: Local): Code => [
    ...difference.set(sub(add(mul(s.get, code.get), m.get), x.get)),
    ...total.set(
      add(
        total.get,
        mul(
          w.get,
          select(abs(difference.get), mul(difference.get, difference.get), asAbsolute.get),
        ),
      ),
    ),
  ];
  const loads = [x.set(vectorLoad(at.get, VALUES)), w.set(vectorLoad(at.get, WEIGHTS))];

  const firstCodes = [
    inverse.set(div(top.get, sub(high.get, low.get))),
    scale.set(div(constant(1), inverse.get)),
    least.set(ZERO),
    everyValue([
      ...loads,
      code.set(codeOf(low)),
      store(at.get, CODES, code.get),
      withError(least, scale, low),
    ]),
  ];
  const oneTrial = [
    // A better minimum also moves the range of the trials after it.
    inverse.set(div(loadSplat(trial.get, TRIALS), sub(high.get, minimum.get))),
    sumL.set(ZERO),
    sumL2.set(ZERO),
    sumXL.set(ZERO),
    everyValue([
      ...loads,
      code.set(codeOf(minimum)),
      store(i.get, TRIED, code.get),
      w.set(mul(w.get, code.get)),
      sumL.set(add(sumL.get, w.get)),
      sumL2.set(add(sumL2.get, mul(w.get, code.get))),
      sumXL.set(add(sumXL.get, mul(w.get, x.get))),
    ]),
    determinant.set(sub(mul(sumW.get, sumL2.get), mul(sumL.get, sumL.get))),
    ownScale.set(div(sub(mul(sumW.get, sumXL.get), mul(sumX.get, sumL.get)), determinant.get)),
    ownMinimum.set(div(sub(mul(sumL2.get, sumX.get), mul(sumL.get, sumXL.get)), determinant.get)),
    isPositive.set(greater(ownMinimum.get, ZERO)),
    ownMinimum.set(select(ZERO, ownMinimum.get, isPositive.get)),
    ownScale.set(select(div(sumXL.get, sumL2.get), ownScale.get, isPositive.get)),
    sum.set(ZERO),
    everyValue([
      ...loads,
      code.set(vectorLoad(i.get, TRIED)),
      withError(sum, ownScale, ownMinimum),
    ]),
    better.set(and(less(sum.get, least.get), greater(determinant.get, ZERO))),
    when(
      anyTrue(better.get),
      [
        everyValue([
          store(
            at.get,
            CODES,
            select(vectorLoad(i.get, TRIED), vectorLoad(at.get, CODES), better.get),
          ),
        ]),
        least.set(select(sum.get, least.get, better.get)),
        scale.set(select(ownScale.get, scale.get, better.get)),
        minimum.set(select(ownMinimum.get, minimum.get, better.get)),
      ].flat(),
    ),
  ];
  const oneVector = [
    base.set(multiplyIntegers(turn.get, bytes.get)),
    place.set(multiplyIntegers(turn.get, smallConstant(16))),
    low.set(vectorLoad(base.get, VALUES)),
    high.set(low.get),
    sumW.set(ZERO),
    sumX.set(ZERO),
    everyValue([
      ...loads,
      low.set(smaller(low.get, x.get)),
      high.set(larger(high.get, x.get)),
      sumW.set(add(sumW.get, w.get)),
      sumX.set(add(sumX.get, mul(w.get, x.get))),
    ]),
    low.set(smaller(low.get, ZERO)),
    isZero.set(lessOrEqual(high.get, low.get)),
    minimum.set(low.get),
    ...firstCodes,
    trial.upTo(trialBytes.get, 4, oneTrial),
    when(
      anyTrue(isZero.get),
      [
        everyValue([store(at.get, CODES, select(ZERO, vectorLoad(at.get, CODES), isZero.get))]),
        scale.set(select(ZERO, scale.get, isZero.get)),
        minimum.set(select(low.get, minimum.get, isZero.get)),
      ].flat(),
    ),
    store(place.get, SCALES, scale.get),
    store(place.get, MINIMA, neg(minimum.get)),
  ];
  return writer.finished('affine', 5, [
    top.set(splat(largestCode.get)),
    // All bits of each lane where the parameter is not 0.
    asAbsolute.set(notEqual(splat([...isAbsolute.get, 0xb2]), ZERO)),
    turn.upTo(vectors.get, 1, oneVector),
  ]);
}

type Local = ReturnType<FunctionWriter['local']>;
type Six<Value> = [Value, Value, Value, Value, Value, Value];

/**
 * Scale s of each group with value ≈ s · (code − half), codes from 0 to 2 · half − 1 (ggml: make_qx_quants).
 * Parameters: vectors of groups, bytes of a vector's values, half, bytes of the trials.
 */
function symmetricKernel(): WasmFunction {
  const writer = new FunctionWriter();
  const { i32, f32: float, v128 } = VALUE;
  const [vectors, bytes, half, trialBytes] = [i32, i32, float, i32].map((type) =>
    writer.local(type),
  );
  if (!vectors || !bytes || !half || !trialBytes) throw new Error();
  const integers = () => writer.local(i32);
  const number = () => writer.local(v128);
  const [turn, base, place, i, at, trial] = Array.from({ length: 6 }, integers) as Six<Local>;
  const [top, bottom, middle, x, w, peak] = Array.from({ length: 6 }, number) as Six<Local>;
  const [inverse, scale, best, code, sumLX, sumL2] = Array.from(
    { length: 6 },
    number,
  ) as Six<Local>;
  const [better, isLarger] = [number(), number()];

  const everyValue = (body: readonly Code[]) =>
    i.upTo(bytes.get, 16, [at.set(addIntegers(base.get, i.get)), ...body]);
  const codeOfValue = larger(smaller(nearest(mul(inverse.get, x.get)), top.get), bottom.get);
  const sums = [
    sumLX.set(ZERO),
    sumL2.set(ZERO),
    everyValue([
      x.set(vectorLoad(at.get, VALUES)),
      w.set(vectorLoad(at.get, WEIGHTS)),
      code.set(codeOfValue),
      sumLX.set(add(sumLX.get, mul(mul(w.get, x.get), code.get))),
      sumL2.set(add(sumL2.get, mul(mul(w.get, code.get), code.get))),
    ]),
  ];
  const keepCodes = (mask: Code) =>
    everyValue([
      x.set(vectorLoad(at.get, VALUES)),
      store(at.get, CODES, select(add(codeOfValue, middle.get), vectorLoad(at.get, CODES), mask)),
    ]);
  const oneTrial = [
    inverse.set(div(loadSplat(trial.get, TRIALS), peak.get)),
    ...sums,
    better.set(
      and(greater(sumL2.get, ZERO), greater(mul(sumLX.get, sumLX.get), mul(best.get, sumL2.get))),
    ),
    when(
      anyTrue(better.get),
      [
        keepCodes(better.get),
        scale.set(select(div(sumLX.get, sumL2.get), scale.get, better.get)),
        best.set(select(mul(scale.get, sumLX.get), best.get, better.get)),
      ].flat(),
    ),
  ];
  const oneVector = [
    base.set(multiplyIntegers(turn.get, bytes.get)),
    place.set(multiplyIntegers(turn.get, smallConstant(16))),
    peak.set(ZERO),
    everyValue([
      x.set(vectorLoad(at.get, VALUES)),
      isLarger.set(greater(abs(x.get), abs(peak.get))),
      peak.set(select(x.get, peak.get, isLarger.get)),
    ]),
    inverse.set(div(bottom.get, peak.get)),
    ...sums,
    better.set(notEqual(sumL2.get, ZERO)),
    scale.set(and(div(sumLX.get, sumL2.get), better.get)),
    best.set(mul(scale.get, sumLX.get)),
    keepCodes(notEqual(constant(1), ZERO)),
    trial.upTo(trialBytes.get, 4, oneTrial),
    better.set(less(abs(peak.get), constant(ZERO_GROUP))),
    when(
      anyTrue(better.get),
      [
        everyValue([store(at.get, CODES, select(ZERO, vectorLoad(at.get, CODES), better.get))]),
        scale.set(select(ZERO, scale.get, better.get)),
      ].flat(),
    ),
    store(place.get, SCALES, scale.get),
  ];
  return writer.finished('symmetric', 4, [
    middle.set(splat(half.get)),
    bottom.set(neg(middle.get)),
    top.set(sub(middle.get, constant(1))),
    turn.upTo(vectors.get, 1, oneVector),
  ]);
}

/** Exports of the module. */
interface Kernels {
  readonly memory: { readonly buffer: ArrayBuffer };
  affine(vectors: number, bytes: number, largest: number, trials: number, absolute: number): void;
  symmetric(vectors: number, bytes: number, half: number, trials: number): void;
}

interface WebAssemblyApi {
  readonly Module: new (bytes: Uint8Array) => object;
  readonly Instance: new (module: object) => { readonly exports: unknown };
}

function instantiated(): Kernels {
  const { Module, Instance } = (globalThis as unknown as { WebAssembly: WebAssemblyApi })
    .WebAssembly;
  return new Instance(new Module(moduleOf([affineKernel(), symmetricKernel()]))).exports as Kernels;
}

const kernels = instantiated();

const numbersAt = (offset: number, length: number) =>
  new Float32Array(kernels.memory.buffer, offset, length);

/** Values and importances of all groups, by `groupPlace`. Inputs of the searches, which leave them as they are. */
export const groupValues = numbersAt(VALUES, MOST.values);
export const groupWeights = numbersAt(WEIGHTS, MOST.values);

/** Results of a search: the codes by `groupPlace`, and a scale of each group; for affine codes also the −m of each. */
export const groupCodes = numbersAt(CODES, MOST.values);
export const groupScales = numbersAt(SCALES, MOST.groups);
export const groupMinima = numbersAt(MINIMA, MOST.groups);

const trialsPlace = numbersAt(TRIALS, MOST.trials);

/** Place of the first value of a group of `count` values; the next ones are `LANES` apart. */
export const groupPlace = (group: number, count: number): number =>
  (group >> 2) * count * LANES + (group & 3);

/** Distance between the values of a group. */
export const STRIDE = LANES;

/** Trials of a scale: numbers that replace the largest code, and so shrink or widen the range. */
export type Trials = Float32Array;

/** `count` trials from `first` on, each `step` more, for a largest code. */
export const affineTrials = (
  first: number,
  step: number,
  count: number,
  largestCode: number,
): Trials =>
  Float32Array.from({ length: count }, (_, index) =>
    f32(f32(f32(first) + f32(f32(step) * index)) + largestCode),
  );

/** Searches scales and minima of `groups` groups, a multiple of four, of `count` values each. */
export function searchAffine(
  groups: number,
  count: number,
  largestCode: number,
  trials: Trials,
  isAbsolute: boolean,
): void {
  trialsPlace.set(trials);
  const bytes = 4 * LANES * count;
  kernels.affine(groups / LANES, bytes, largestCode, 4 * trials.length, isAbsolute ? 1 : 0);
}

/** The trials of symmetric codes, for each half. */
const symmetricTrials = new Map<number, Trials>();

/** Searches scales of `groups` groups, a multiple of four, of `count` values each. */
export function searchSymmetric(groups: number, count: number, half: number): void {
  let trials = symmetricTrials.get(half);
  if (trials === undefined) {
    const steps = Array.from({ length: 19 }, (_, index) => index - 9).filter((step) => step !== 0);
    trials = Float32Array.from(steps, (step) => -f32(half + f32(f32(0.1) * step)));
    symmetricTrials.set(half, trials);
  }
  trialsPlace.set(trials);
  kernels.symmetric(groups / LANES, 4 * LANES * count, half, 4 * trials.length);
}
