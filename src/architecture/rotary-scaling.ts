/** Rotary frequencies, and the published ways of stretching them to longer inputs. */
/**
 * How frequencies are stretched; the names and formulas are those of `modeling_rope_utils.py` of transformers.
 * `originalPositions`: the length that the model was trained with.
 */
export type RotaryScaling =
  /** All positions divided by the factor (arXiv 2306.15595). */
  | { readonly kind: 'linear'; readonly factor: number }
  /** A larger base beyond the original length, by the length of the input (dynamic NTK). */
  | { readonly kind: 'dynamic'; readonly factor: number; readonly originalPositions: number }
  /** Long waves divided, short ones kept, those between blended (Llama 3.1). */
  | {
      readonly kind: 'llama3';
      readonly factor: number;
      readonly lowFrequencyFactor: number;
      readonly highFrequencyFactor: number;
      readonly originalPositions: number;
    }
  /** arXiv 2309.00071: a ramp over the dimensions between kept and divided frequencies. */
  | {
      readonly kind: 'yarn';
      readonly factor: number;
      readonly originalPositions: number;
      readonly betaFast: number;
      readonly betaSlow: number;
      /** Whether the ends of the ramp are whole dimensions. */
      readonly truncate: boolean;
      /** The ramp ends here at the latest: implementations differ. */
      readonly lastDimension: number;
      /** The behaviour of a ramp that would end before it begins: it runs backwards, or has no width. */
      readonly inverted: 'backwards' | 'stepped';
      /** What cosine and sine are multiplied by. */
      readonly amplitude: number;
    }
  /** A divisor for every frequency, one list up to the original length and one beyond (arXiv 2402.13753). */
  | {
      readonly kind: 'longrope';
      readonly shortDivisors: readonly number[];
      readonly longDivisors: readonly number[];
      readonly originalPositions: number;
      readonly amplitude: number;
    };

const f32 = Math.fround;

/** What decides a rotary's angles. */
interface Turning {
  readonly base: number;
  readonly rotatedDim: number;
  readonly scaling: RotaryScaling | undefined;
}

/** Whether frequencies depend on how long the whole input is. */
export const dependsOnLength = ({ scaling }: Pick<Turning, 'scaling'>): boolean =>
  scaling?.kind === 'dynamic' || scaling?.kind === 'longrope';

/** What cosine and sine are multiplied by. */
export const amplitudeOf = ({ scaling }: Pick<Turning, 'scaling'>): number =>
  scaling?.kind === 'yarn' || scaling?.kind === 'longrope' ? f32(scaling.amplitude) : 1;

/**
 * Radians for each position further, [rotatedDim / 2], in float32 at each step as PyTorch computes them.
 * @param tokens Length of the whole input; it matters to `dynamic` and `longrope` alone.
 */
export function rotaryFrequencies(turning: Turning, tokens = 0): Float32Array {
  const { base, rotatedDim, scaling } = turning;
  const plain = frequenciesOf(base, rotatedDim);
  if (scaling === undefined) return plain;
  switch (scaling.kind) {
    case 'linear':
      return plain.map((frequency) => frequency / f32(scaling.factor));
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
        const kept = Math.min(1, Math.max(0, (waves - low) / (high - low)));
        return blend(frequency, factor, kept);
      });
    }
    case 'yarn': {
      const [low, high] = yarnRamp(turning, scaling);
      const width = rampWidth(high - low, scaling.inverted);
      return plain.map((frequency, j) =>
        blend(frequency, scaling.factor, 1 - Math.min(1, Math.max(0, (j - low) / width))),
      );
    }
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
 * The base with which the longest wave is `times` as long and the shortest as it was: base · times^(d / (d − 2))
 * ("NTK-aware": bloc97, r/LocalLLaMA, June 2023; arXiv 2309.00071, section 3.1). For more than two dimensions.
 */
export const ntkBase = (base: number, times: number, dimensions: number): number =>
  base * times ** (dimensions / (dimensions - 2));

/** How far YaRN's ramp reaches, without which it would divide by zero. */
const rampWidth = (distance: number, inverted: 'backwards' | 'stepped'): number =>
  inverted === 'stepped' ? Math.max(distance, 0.001) : distance || 0.001;

/** A part of the frequency kept, the rest divided by the factor. */
const blend = (frequency: number, factor: number, kept: number) =>
  (frequency / factor) * (1 - kept) + frequency * kept;

/** base^(2j / d) */
// Unrounded at one step only, far positions are turned by an angle that is 1e-3 off.
const powerOf = (base: number, dimensions: number, j: number) =>
  f32(f32(base) ** f32((2 * j) / dimensions));

function frequenciesOf(base: number, dimensions: number): Float32Array {
  return Float32Array.from({ length: dimensions / 2 }, (_, j) => 1 / powerOf(base, dimensions, j));
}

/** The dimensions between which YaRN goes from kept to divided: those that turn betaFast and betaSlow times. */
export function yarnRamp(
  { base, rotatedDim }: Turning,
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
