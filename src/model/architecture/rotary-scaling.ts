/** Frequencies of rotary positions, with the published methods that scale them to longer inputs, and buffers from them. */
import type { Layer, LightningAttention, Rotary, RotaryScaling, SrteSincos } from './layer.js';
import type { Param } from './param.js';
import { walk } from './walk.js';

const f32 = Math.fround;

/** Inputs of a rotary's angles. */
type AngleInputs = Pick<Rotary, 'base' | 'rotatedDim' | 'scaling' | 'isBackwards'>;

/** Whether frequencies depend on the length of the whole input. */
export const dependsOnLength = ({ scaling }: Pick<AngleInputs, 'scaling'>): boolean =>
  scaling?.kind === 'dynamic' || scaling?.kind === 'longrope';

/** Whether cosine and sine have another factor beyond the original length. */
export const hasLongAmplitude = ({ scaling }: Pick<AngleInputs, 'scaling'>): boolean =>
  scaling?.kind === 'longrope' &&
  (scaling.longAmplitude ?? scaling.amplitude) !== scaling.amplitude;

/**
 * Factor of cosine and sine.
 * @param tokens Length of the whole input; only `longrope` uses it.
 */
export function amplitudeOf({ scaling }: Pick<AngleInputs, 'scaling'>, tokens = 0): number {
  if (scaling?.kind !== 'yarn' && scaling?.kind !== 'longrope') return 1;
  const isLong = scaling.kind === 'longrope' && tokens > scaling.originalPositions;
  return f32((isLong ? scaling.longAmplitude : undefined) ?? scaling.amplitude);
}

/**
 * Radians per position, [rotatedDim / 2], rounded to float32 at each step as in PyTorch.
 * @param tokens Length of the whole input; only `dynamic` and `longrope` use it.
 */
export function rotaryFrequencies(turning: AngleInputs, tokens = 0): Float32Array {
  const frequencies = forwardFrequencies(turning, tokens);
  return turning.isBackwards ? frequencies.map((frequency) => -frequency) : frequencies;
}

function forwardFrequencies(turning: AngleInputs, tokens: number): Float32Array {
  const { base, rotatedDim, scaling } = turning;
  const plain = frequenciesOf(base, rotatedDim);
  if (scaling === undefined) return plain;
  switch (scaling.kind) {
    case 'linear':
      return plain.map((frequency) => frequency / f32(scaling.factor));
    case 'proportional':
      return plain.map((frequency, j) => (j < scaling.pairs ? frequency / f32(scaling.factor) : 0));
    case 'dynamic': {
      const { factor, originalPositions } = scaling;
      const length = Math.max(tokens, originalPositions);
      const stretch = (factor * length) / originalPositions - (factor - 1);
      return frequenciesOf(ntkBase(base, stretch, rotatedDim), rotatedDim);
    }
    case 'llama3': {
      const { factor, lowFrequencyFactor: low, highFrequencyFactor: high } = scaling;
      return plain.map((frequency) => {
        const waves = (scaling.originalPositions * frequency) / (2 * Math.PI);
        const kept = high === low ? Number(waves >= low) : (waves - low) / (high - low);
        return blend(frequency, factor, Math.min(1, Math.max(0, kept)));
      });
    }
    case 'yarn': {
      const [low, high] = yarnRamp(turning, scaling);
      const width = rampWidth(high - low, scaling.inverted);
      return plain.map((frequency, j) =>
        blend(frequency, scaling.factor, 1 - Math.min(1, Math.max(0, (j - low) / width))),
      );
    }
    case 'earlyYarn':
      return earlyYarn(plain, scaling);
    case 'longrope': {
      const { shortDivisors, longDivisors, originalPositions } = scaling;
      const divisors = tokens > originalPositions ? longDivisors : shortDivisors;
      return Float32Array.from(
        plain,
        (_, j) => 1 / f32(f32(divisors[j] ?? Number.NaN) * powerOf(base, rotatedDim, j)),
      );
    }
  }
}

/**
 * Frequencies of `precompute_freqs_cis` in jingyaogong/minimind from 4e35fb9 to 6b86ea3 (October and November 2025), and
 * in cklxx/mini-llm: f · (βs − β + 1) / (βs) up to the first wave that is longer than the original length, with β from
 * the slow to the fast value over the indices, and f / s from it on.
 */
function earlyYarn(
  plain: Float32Array,
  { factor, originalPositions, betaFast, betaSlow }: Extract<RotaryScaling, { kind: 'earlyYarn' }>,
): Float32Array {
  const found = plain.findIndex(
    (frequency) => f32(f32(2 * Math.PI) / frequency) > originalPositions,
  );
  const firstLong = found === -1 ? plain.length : found;
  const last = Math.max(plain.length - 1, 1);
  return plain.map((frequency, j) => {
    if (j >= firstLong) return frequency * f32(1 / factor);
    const beta = f32(betaSlow + f32((betaFast - betaSlow) * f32(j / last)));
    const stretched = f32(beta * factor);
    return frequency * f32(f32(f32(stretched - beta) + 1) / stretched);
  });
}

/**
 * Base that makes the longest wave `times` as long and keeps the shortest: base · times^(d / (d − 2))
 * ("NTK-aware": bloc97, r/LocalLLaMA, June 2023; arXiv 2309.00071, section 3.1). Requires more than two
 * dimensions.
 */
export const ntkBase = (base: number, times: number, dimensions: number): number =>
  base * times ** (dimensions / (dimensions - 2));

/** Width of YaRN's ramp, never zero because it is a divisor. */
const rampWidth = (distance: number, inverted: 'backwards' | 'stepped'): number =>
  inverted === 'stepped' ? Math.max(distance, 0.001) : distance || 0.001;

/** Blends the frequency with its value divided by the factor. */
const blend = (frequency: number, factor: number, kept: number) =>
  (frequency / factor) * (1 - kept) + frequency * kept;

/** base^(2j / d), rounded at every step: otherwise angles of far positions are off by 1e-3. */
const powerOf = (base: number, dimensions: number, j: number) =>
  f32(f32(base) ** f32((2 * j) / dimensions));

function frequenciesOf(base: number, dimensions: number): Float32Array {
  return Float32Array.from({ length: dimensions / 2 }, (_, j) => 1 / powerOf(base, dimensions, j));
}

/** YaRN's ramp from kept to divided dimensions: those with betaFast and betaSlow turns. */
export function yarnRamp(
  { base, rotatedDim }: AngleInputs,
  {
    betaFast,
    betaSlow,
    originalPositions,
    truncate,
    lastDimension,
  }: Extract<RotaryScaling, { kind: 'yarn' }>,
): readonly [low: number, high: number] {
  const dimensionOf = (turns: number) =>
    (rotatedDim * Math.log(originalPositions / (turns * 2 * Math.PI))) / (2 * Math.log(base));
  const [low, high] = [dimensionOf(betaFast), dimensionOf(betaSlow)];
  return truncate
    ? [Math.max(Math.floor(low), 0), Math.min(Math.ceil(high), lastDimension)]
    : [Math.max(low, 0), Math.min(high, lastDimension)];
}

// Buffers that follow from a model's configuration; checkpoints often leave them out

/** Value at a row-major index of a tensor. */
export type Formula = (index: number) => number;

/**
 * Formulas of every buffer below `layer`. They round to float32 at each step, as the original does, so values
 * match bit for bit.
 */
export function computedBuffers(layer: Layer): Map<Param, Formula> {
  const formulas = new Map<Param, Formula>();
  for (const visit of walk(layer)) {
    if (visit.layer.kind === 'rotary') rotaryFormulas(visit.layer, formulas);
    if (visit.layer.kind === 'srteSincos') sincosFormula(visit.layer, formulas);
    if (visit.layer.kind === 'lightningAttention') lightningFormulas(visit.layer, formulas);
  }
  return formulas;
}

/** Frequencies [d / 2], then cosine and sine [1, 1, positions, d] of position · frequency. */
function rotaryFormulas(rotary: Rotary, into: Map<Param, Formula>): void {
  const [frequencies, cosines, sines] = rotary.tables;
  const { headDim } = rotary;
  const half = headDim / 2;
  const frequency = rotaryFrequencies(rotary);
  const angle: Formula = (index) =>
    f32(Math.floor(index / headDim) * (frequency[(index % headDim) % half] ?? Number.NaN));
  if (frequencies) into.set(frequencies, (j) => frequency[j] ?? Number.NaN);
  if (cosines) into.set(cosines, (index) => Math.cos(angle(index)));
  if (sines) into.set(sines, (index) => Math.sin(angle(index)));
}

/** Slopes, then decays of queries, of keys, and between tokens, for blocks of C tokens. */
function lightningFormulas(
  { tables, slopes }: LightningAttention,
  into: Map<Param, Formula>,
): void {
  const [rates, queries, keys, between] = tables;
  const block = queries?.shape[1] ?? 0;
  const decay = (head: number, distance: number) =>
    Math.exp(f32(-f32(slopes[head] ?? Number.NaN) * distance));
  if (rates) into.set(rates, (head) => slopes[head] ?? Number.NaN);
  if (queries) {
    into.set(queries, (index) => decay(Math.floor(index / block), (index % block) + 1));
  }
  if (keys) {
    into.set(keys, (index) => decay(Math.floor(index / block), block - 1 - (index % block)));
  }
  if (between) {
    into.set(between, (index) => {
      const distance = (Math.floor(index / block) % block) - (index % block);
      return distance < 0 ? 0 : decay(Math.floor(index / block ** 2), distance);
    });
  }
}

function sincosFormula({ inverseFrequencies }: SrteSincos, into: Map<Param, Formula>): void {
  const hidden = 2 * inverseFrequencies.elements;
  const exponent = f32(-Math.log(10_000) / hidden);
  into.set(inverseFrequencies, (j) => Math.exp(f32(2 * j * exponent)));
}
