/**
 * Rotary positions beyond the training length: the wavelength of each frequency, and the effect of each published
 * scaling method.
 */

import { type UserError, usageError } from '../../base/errors.js';
import type { LanguageModel, Rotary, RotaryScaling } from '../architecture/layer.js';
import { LARGEST_BLOCK, reachOf } from '../architecture/masks.js';
import { amplitudeOf, ntkBase, rotaryFrequencies } from '../architecture/rotary-scaling.js';
import { scalingOf } from '../architecture/transformer/rotary.js';
import {
  type AnyAttention,
  describedLayer,
  isAttention,
  walkCounted,
} from '../architecture/walk.js';

export interface RopeOptions {
  /** Model name in error messages. */
  readonly name: string;
  /** Positions to reach; default: those of the config if the training had fewer, else four times the training. */
  readonly context?: number | undefined;
  /** Training positions, if the config lacks them or has them wrong. */
  readonly trained?: number | undefined;
  /** Scaling factor of the methods; default context / trained. */
  readonly factor?: number | undefined;
}

/** Source of the training length. */
export type TrainedFrom = 'flag' | 'scaling' | 'positions';

/** Source of the positions to reach. */
export type ContextFrom = 'flag' | 'config' | 'default';

/** `own` is the model's scaling, if no other method gives its frequencies. */
export type RopeMethodId = 'plain' | 'linear' | 'ntk' | 'yarn' | 'llama3' | 'own';

/**
 * Change of a frequency: equal to the plain one; divided by less than the factor (or raised); divided by the
 * factor or more.
 */
export type RopeChange = 'kept' | 'partly' | 'fully';

/** Frequencies by their change. Extrapolated ones also count in one of the other three. */
export interface RopeCounts extends Readonly<Record<RopeChange, number>> {
  /** Frequencies equal to the plain ones. @integer */
  readonly kept: number;
  /** Frequencies divided by less than the factor, or raised. @integer */
  readonly partly: number;
  /** Frequencies divided by the factor or more. @integer */
  readonly fully: number;
  /** Frequencies with angles in the context that are unseen in training. @integer */
  readonly extrapolated: number;
}

export interface RopeFrequency {
  /** Radians per position. */
  readonly frequency: number;
  /** Positions per turn, 2π / frequency. */
  readonly wavelength: number;
  /** Wavelength relative to that of the plain frequency. */
  readonly stretch: number;
  readonly change: RopeChange;
  /** Whether the context has angles unseen in training; see `isExtrapolated`. */
  readonly extrapolated: boolean;
}

export interface RopeMethod {
  readonly id: RopeMethodId;
  /** Whether the model uses this method. */
  readonly current: boolean;
  /** Base of the frequencies. */
  readonly base: number;
  /** Scaling of the frequencies of `base`; null where they are not scaled. */
  readonly scaling: RotaryScaling | null;
  /** Factor of cosine and sine; attention scores scale with its square. */
  readonly amplitude: number;
  readonly counts: RopeCounts;
  /** [rotatedDim / 2] */
  readonly frequencies: readonly RopeFrequency[];
}

/** A rotation and its number of layers. */
export interface RopeRotary {
  /** Layers that have this rotation. @integer */
  readonly layers: number;
  /** Base of the frequencies. */
  readonly base: number;
  /** Width of a head. @integer */
  readonly headDim: number;
  /** Dimensions that are rotated. @integer */
  readonly rotatedDim: number;
  /** Dimensions that turn together: j and j + rotatedDim / 2, or 2j and 2j + 1. */
  readonly pairs: Rotary['pairs'];
  /** Maximum visible positions in its layers, including the current one; null without a limit. @integer */
  readonly window: number | null;
  /** The rotation under each method. */
  readonly methods: readonly RopeMethod[];
}

export interface RopeAnalysis {
  /** Positions to reach. @integer */
  readonly context: number;
  readonly contextFrom: ContextFrom;
  /** Positions of the training. @integer */
  readonly trained: number;
  readonly trainedFrom: TrainedFrom;
  /** Longest input of the config. @integer @minimum 1 */
  readonly positions: number;
  /** Scaling factor of the methods; 1 for a context within the training length. */
  readonly factor: number;
  /** Whether the model as it is meets angles unseen in training, and has no scaling made for this context. */
  readonly needsScaling: boolean;
  /** Distinct rotations of the model. */
  readonly rotaries: readonly RopeRotary[];
  /** Attention layers without rotation. @integer */
  readonly layersWithout: number;
}

/**
 * Every distinct rotation of a model under every method.
 * @throws UserError for a model without rotary positions, or numbers that float32 frequencies cannot hold.
 */
export function analyseRope(model: LanguageModel, options: RopeOptions): RopeAnalysis {
  const { name } = options;
  const { groups, layersWithout } = rotationsOf(model);
  if (groups.length === 0) throw noRotary(model, name);
  const { trained, trainedFrom } = trainedLength(model, groups, options.trained);
  const { context, contextFrom } = wantedLength(model, trained, options.context);
  const factor = options.factor ?? Math.max(1, context / trained);
  const rotaries = groups.map((group) => rotaryUnder(group, { context, trained, factor }));
  return {
    context,
    contextFrom,
    trained,
    trainedFrom,
    positions: model.positions,
    factor,
    needsScaling: needsScaling(rotaries, context, model),
    rotaries,
    layersWithout,
  };
}

/** Whether the model as it is meets angles unseen in training, and has no scaling made for this context. */
function needsScaling(
  rotaries: readonly RopeRotary[],
  context: number,
  { positions }: LanguageModel,
): boolean {
  const own = rotaries.flatMap(({ methods }) => methods.filter(({ current }) => current));
  const isScaled = context <= positions && own.some(({ scaling }) => scaling !== null);
  return own.some(({ counts }) => counts.extrapolated > 0) && !isScaled;
}

// ── Rotations of a model ─────────────────────────────────────────────────────────────────────────

interface RotaryGroup {
  readonly rotary: Rotary;
  layers: number;
  /** Undefined if a layer sees all positions. */
  window: number | undefined;
}

function rotationsOf(model: LanguageModel) {
  const groups = new Map<string, RotaryGroup>();
  let layersWithout = 0;
  for (const { layer } of walkCounted(model)) {
    if (!isAttention(layer)) continue;
    if (layer.rotary === undefined) layersWithout++;
    else include(groups, layer.rotary, windowOf(layer));
  }
  return { groups: [...groups.values()], layersWithout };
}

function include(
  groups: Map<string, RotaryGroup>,
  rotary: Rotary,
  window: number | undefined,
): void {
  const { base, headDim, rotatedDim, pairs, scaling } = rotary;
  const key = JSON.stringify([base, headDim, rotatedDim, pairs, scaling]);
  const group = groups.get(key);
  if (group === undefined) {
    groups.set(key, { rotary, layers: 1, window });
    return;
  }
  group.layers++;
  group.window = farther(group.window, window);
}

const farther = (a: number | undefined, b: number | undefined) =>
  a === undefined || b === undefined ? undefined : Math.max(a, b);

/** Maximum visible positions of its heads for any input length; undefined without a limit. */
function windowOf(layer: AnyAttention): number | undefined {
  if (!('spans' in layer)) return undefined;
  return layer.spans
    .map(({ window }) => {
      if (window === undefined) return undefined;
      const block = window.rule === 'local' ? Math.min(window.tokens, LARGEST_BLOCK) : 1;
      return Math.max(window.tokens, reachOf(window) + block);
    })
    .reduce(farther);
}

/** Original length of the scaling; without scaling, all positions of the config. */
function trainedLength(
  model: LanguageModel,
  groups: readonly RotaryGroup[],
  requested: number | undefined,
): { readonly trained: number; readonly trainedFrom: TrainedFrom } {
  if (requested !== undefined) return { trained: requested, trainedFrom: 'flag' };
  for (const { rotary } of groups) {
    const { scaling } = rotary;
    if (scaling && 'originalPositions' in scaling) {
      return { trained: scaling.originalPositions, trainedFrom: 'scaling' };
    }
  }
  return { trained: model.positions, trainedFrom: 'positions' };
}

/** Multiple of the training length that is usually asked for. */
const USUAL_STRETCH = 4;

function wantedLength(
  { positions }: LanguageModel,
  trained: number,
  requested: number | undefined,
): Pick<RopeAnalysis, 'context' | 'contextFrom'> {
  if (requested !== undefined) return { context: requested, contextFrom: 'flag' };
  return positions > trained
    ? { context: positions, contextFrom: 'config' }
    : {
        context: Math.min(USUAL_STRETCH * trained, Number.MAX_SAFE_INTEGER),
        contextFrom: 'default',
      };
}

function noRotary(model: LanguageModel, name: string): UserError {
  const positions = walkCounted(model).flatMap(({ layer }) => {
    if (layer.kind === 'learnedPositions') {
      return [`learned positions, a row for each of ${layer.weight.shape[0]}`];
    }
    if (layer.kind === 'sinusoidalPositions') return ['sines and cosines of each position'];
    return layer.kind === 'alibi' ? ['ALiBi, a penalty that grows with the distance'] : [];
  });
  if (positions.length === 0 && describedLayer(model) !== undefined) {
    return usageError(
      `${name} has no rotary positions that can be analysed: its positions are described, not computed`,
      'use a model that runs',
    );
  }
  const [has = 'no positions at all'] = positions;
  return usageError(
    `${name} has no rotary positions: it has ${has}`,
    'use a model with RoPE: learned positions and ALiBi have no frequencies',
  );
}

// ── Methods ──────────────────────────────────────────────────────────────────────────────────────

interface Lengths {
  readonly context: number;
  readonly trained: number;
  readonly factor: number;
}

type FrequencySettings = Pick<Rotary, 'base' | 'scaling'>;

/**
 * Published methods with their authors' defaults. `scaling` uses the names of transformers:
 * YaRN with beta_fast 32 and beta_slow 1 (arXiv 2309.00071, section 3.2, for Llama models; amplitude 0.1 ln k + 1,
 * section 3.4), and llama3 with low_freq_factor 1 and high_freq_factor 4 from Llama 3.1's config.json.
 */
const METHODS = {
  plain: ({ base }) => ({ base, scaling: undefined }),
  /** "Position interpolation", arXiv 2306.15595. */
  linear: (rotary, lengths) => stretched(rotary, lengths, { rope_type: 'linear' }),
  ntk: ({ base, rotatedDim }, { factor }) => ({
    // A single frequency is 1 for any base.
    base: rotatedDim > 2 ? ntkBase(base, factor, rotatedDim) : base,
    scaling: undefined,
  }),
  yarn: (rotary, lengths) => stretched(rotary, lengths, { rope_type: 'yarn' }),
  llama3: (rotary, lengths) =>
    stretched(rotary, lengths, { rope_type: 'llama3', low_freq_factor: 1, high_freq_factor: 4 }),
} as const satisfies Record<
  Exclude<RopeMethodId, 'own'>,
  (rotary: Rotary, lengths: Lengths) => FrequencySettings
>;

function stretched(
  { base, rotatedDim }: Rotary,
  { factor, trained }: Lengths,
  scaling: NonNullable<Parameters<typeof scalingOf>[0]>,
): FrequencySettings {
  return { base, scaling: scalingOf({ ...scaling, factor }, trained, rotatedDim) };
}

/** Wider heads do not exist, and a longer table would be unreadable. */
const MOST_FREQUENCIES = 4096;

function rotaryUnder({ rotary, layers, window }: RotaryGroup, lengths: Lengths): RopeRotary {
  const { base, headDim, rotatedDim, pairs, scaling } = rotary;
  if (rotatedDim / 2 > MOST_FREQUENCIES) {
    throw usageError(
      `expected at most ${2 * MOST_FREQUENCIES} rotated dimensions in heads of ${headDim}, found ${rotatedDim}`,
      `write a head_dim of at most ${2 * MOST_FREQUENCIES}`,
    );
  }
  const plain = rotaryFrequencies({ base, rotatedDim, scaling: undefined });
  const seen = {
    context: Math.min(lengths.context, window ?? lengths.context),
    trained: Math.min(lengths.trained, window ?? lengths.trained),
    factor: lengths.factor,
  };
  const make = (id: RopeMethodId, turning: FrequencySettings): RopeMethod => {
    const frequencies = rotaryFrequencies({ ...turning, rotatedDim }, lengths.context);
    const each = Array.from(frequencies, (frequency, j) =>
      judged(id, turning, frequency, plain[j] ?? Number.NaN, seen),
    );
    return {
      id,
      current: false,
      base: turning.base,
      scaling: turning.scaling ?? null,
      amplitude: amplitudeOf(turning, lengths.context),
      counts: countsOf(each),
      frequencies: each,
    };
  };
  const published = Object.entries(METHODS).map(([id, turning]) =>
    make(id as RopeMethodId, turning(rotary, lengths)),
  );
  const methods = withCurrent(published, make('own', { base, scaling }));
  return { layers, base, headDim, rotatedDim, pairs, window: window ?? null, methods };
}

/** Marks the model's method, or adds the model's setting. */
function withCurrent(published: readonly RopeMethod[], own: RopeMethod): RopeMethod[] {
  const same = published.find((method) => isSameMethod(method, own));
  return same
    ? published.map((method) => ({ ...method, current: method === same }))
    : [...published, { ...own, current: true }];
}

const isSameMethod = (a: RopeMethod, b: RopeMethod): boolean =>
  a.scaling?.kind === b.scaling?.kind &&
  a.amplitude === b.amplitude &&
  a.frequencies.every(({ frequency }, j) => frequency === b.frequencies[j]?.frequency);

function countsOf(frequencies: readonly RopeFrequency[]): RopeMethod['counts'] {
  const counts = { kept: 0, partly: 0, fully: 0, extrapolated: 0 };
  for (const { change, extrapolated } of frequencies) {
    counts[change]++;
    if (extrapolated) counts.extrapolated++;
  }
  return counts;
}

function judged(
  id: RopeMethodId,
  { base }: FrequencySettings,
  frequency: number,
  plain: number,
  seen: Lengths,
): RopeFrequency {
  // Zero if a wave is too long for float32, infinite if it is too short.
  if (!(frequency > 0 && Number.isFinite(frequency) && plain > 0)) {
    throw usageError(
      `with the base ${base}, ${id} gives frequencies that are not numbers`,
      'write a base (rope_theta) between 1 and 1e30, and a smaller factor',
    );
  }
  const stretch = plain / frequency;
  return {
    frequency,
    wavelength: (2 * Math.PI) / frequency,
    stretch,
    change: changeOf(stretch, seen.factor),
    extrapolated: isExtrapolated(plain, stretch, seen),
  };
}

/** Frequencies are float32, and powers of a base lose a few more units. */
const TOLERANCE = 1e-5;

const isAtLeast = (value: number, bound: number) => value >= bound * (1 - TOLERANCE);

function changeOf(stretch: number, factor: number): RopeChange {
  if (Math.abs(stretch - 1) <= TOLERANCE) return 'kept';
  return isAtLeast(stretch, factor) && stretch > 1 ? 'fully' : 'partly';
}

/**
 * Whether the context has angles unseen in training. This holds if the plain wave is longer than the training
 * length, so training saw only part of a turn, and the context turns further: context / stretch > trained. A wave
 * that fits into the training length has shown all its angles. (arXiv 2309.00071, section 3.2, on wavelengths
 * beyond the context.)
 */
function isExtrapolated(plain: number, stretch: number, { context, trained }: Lengths): boolean {
  const isWhole = trained * plain >= 2 * Math.PI;
  return !isWhole && !isAtLeast(stretch, context / trained);
}
