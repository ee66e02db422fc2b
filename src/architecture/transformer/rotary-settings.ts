/** `rope_theta` and `rope_scaling` of a config, and what they come to. */
import * as z from 'zod';
import type { RotaryScaling } from '../rotary-scaling.js';
import { count } from './settings.js';

const factor = z.number().positive();

/** The keys of transformers' `rope_parameters`; which of them are needed depends on the type. */
const ropeScaling = z.strictObject({
  rope_type: z
    .enum(['default', 'linear', 'dynamic', 'llama3', 'yarn', 'longrope'])
    .default('default')
    .describe('How frequencies are stretched'),
  factor: factor.nullish().describe('How many times longer'),
  original_max_position_embeddings: count.nullish().describe('Length that it was trained with'),
  low_freq_factor: factor.nullish(),
  high_freq_factor: factor.nullish(),
  beta_fast: factor.nullish(),
  beta_slow: factor.nullish(),
  mscale: z.number().nullish(),
  mscale_all_dim: z.number().nullish(),
  attention_factor: factor.nullish(),
  truncate: z.boolean().nullish(),
  short_factor: z.array(factor).nullish(),
  long_factor: z.array(factor).nullish(),
});

export type RopeScaling = z.output<typeof ropeScaling>;

export const rotarySettings = (base: number) => ({
  rope_theta: z.number().positive().default(base).describe('Base of the rotary frequencies'),
  rope_scaling: ropeScaling.nullish().describe('How rotary positions reach beyond the training'),
});

/** What of a scaling decides how long an input may be. */
interface Stretched {
  readonly rope_type?: string | null | undefined;
  readonly factor?: number | null | undefined;
}

/** Dynamic scaling begins where the others end: at `max_position_embeddings`, the length of the training. */
export const longestInput = (positions: number, scaling: Stretched | null | undefined): number =>
  scaling?.rope_type === 'dynamic' ? Math.floor(positions * (scaling.factor ?? 1)) : positions;

/** YaRN's correction of how sharp attention is, for inputs `times` as long. */
export const yarnAmplitude = (times: number, strength = 1): number =>
  times <= 1 ? 1 : 0.1 * strength * Math.log(times) + 1;

/** YaRN's defaults, arXiv 2309.00071, section 3.2. */
const BETA_FAST = 32;
const BETA_SLOW = 1;

/**
 * As `modeling_rope_utils.py` of transformers reads it.
 * @param positions `max_position_embeddings`.
 * @param rotatedDim Dimensions of a head that are rotated.
 * @param trained Length of the training where the config states it beside the scaling.
 */
export function scalingOf(
  scaling: RopeScaling | null | undefined,
  positions: number,
  rotatedDim: number,
  trained?: number,
): RotaryScaling | undefined {
  if (!scaling) return undefined;
  const originalPositions = trained ?? scaling.original_max_position_embeddings ?? positions;
  const times = scaling.factor ?? positions / originalPositions;
  switch (scaling.rope_type) {
    case 'default':
      return undefined;
    case 'linear':
      return { kind: 'linear', factor: times };
    case 'dynamic':
      return { kind: 'dynamic', factor: times, originalPositions: positions };
    case 'llama3':
      return {
        kind: 'llama3',
        factor: times,
        lowFrequencyFactor: scaling.low_freq_factor ?? 1,
        highFrequencyFactor: scaling.high_freq_factor ?? 1,
        originalPositions,
      };
    case 'yarn': {
      const { mscale, mscale_all_dim: all } = scaling;
      const ratio =
        mscale && all
          ? yarnAmplitude(times, mscale) / yarnAmplitude(times, all)
          : yarnAmplitude(times);
      return {
        kind: 'yarn',
        factor: times,
        originalPositions,
        betaFast: scaling.beta_fast ?? BETA_FAST,
        betaSlow: scaling.beta_slow ?? BETA_SLOW,
        truncate: scaling.truncate ?? true,
        lastDimension: rotatedDim - 1,
        inverted: 'backwards',
        amplitude: scaling.attention_factor ?? ratio,
      };
    }
    case 'longrope':
      return {
        kind: 'longrope',
        shortDivisors: scaling.short_factor ?? [],
        longDivisors: scaling.long_factor ?? [],
        originalPositions,
        amplitude:
          scaling.attention_factor ??
          (times <= 1 ? 1 : Math.sqrt(1 + Math.log(times) / Math.log(originalPositions))),
      };
  }
}
