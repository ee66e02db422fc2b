/** Config rules of transformer families that a schema cannot express. */

import type { ProblemText } from '../../../base/errors.js';
import { asNumber } from '../../../base/values.js';
import { defineRules } from '../family.js';
import type { JsonObject } from './config-keys.js';
import type { RopeScaling } from './rotary.js';
import { type HeadSettings, headsOf } from './settings.js';

/** Divisor of `whole` nearest to `target`. */
function nearestDivisor(target: number, whole: number): number {
  // 1 always divides, so the search ends; a divisor 4096 steps away is not near.
  for (let step = 0; step < 4096; step++) {
    if (target - step >= 1 && whole % (target - step) === 0) return target - step;
    if (whole % (target + step) === 0) return target + step;
  }
  return 1;
}

/** Families whose class in transformers 5.18 refuses heads that do not divide the width; others round heads down. */
const WITH_WHOLE_WIDTHS = [
  'arcee',
  'aria_text',
  'bitnet',
  'falcon',
  'hyperclovax',
  'jais2',
  'llama',
  'modernbert-decoder',
  'olmoe',
  'stablelm',
];

/** Heads that do not divide the width, unless the head width is given. */
const widthRules = (['error', 'warning'] as const).flatMap((severity) =>
  defineRules<{ readonly model: HeadSettings & { readonly family?: string } }>([
    {
      severity,
      reads: ['model.num_attention_heads', 'model.hidden_size', 'model.head_dim'],
      check: ({ model: { family, num_attention_heads: heads, hidden_size: hidden, head_dim } }) => {
        const isError = WITH_WHOLE_WIDTHS.includes(family ?? '') || heads > hidden;
        if (head_dim != null || hidden % heads === 0 || isError !== (severity === 'error')) {
          return undefined;
        }
        const narrower = isError ? '' : `: a head has ${Math.floor(hidden / heads)} dimensions`;
        return {
          message: `${heads} heads do not divide hidden_size ${hidden}${narrower}`,
          suggestion: `write num_attention_heads: ${nearestDivisor(heads, hidden)}, or give head_dim`,
        };
      },
    },
  ]),
);

/**
 * A number must divide another one, by their keys. A number that is null divides any.
 * @param what The things that the first number counts: `heads`.
 * @param wholeText The second number in messages: `hidden_size 64`.
 */
const divisorRules = (
  key: string,
  what: string,
  wholeKey: string,
  wholeText: (whole: number) => string,
) =>
  defineRules<{ readonly model: object }>([
    {
      severity: 'error',
      reads: [`model.${key}`, `model.${wholeKey}`],
      check: ({ model }) => {
        const values = model as JsonObject;
        const [part, whole] = [values[key], asNumber(values[wholeKey])];
        return typeof part === 'number' && whole % part !== 0
          ? {
              message: `${part} ${what} do not divide ${wholeText(whole)}`,
              suggestion: `write ${key}: ${nearestDivisor(part, whole)}`,
            }
          : undefined;
      },
    },
  ]);

/** Heads must divide the width. */
export const headsDivide = (headsKey: string, hiddenKey: string) =>
  divisorRules(headsKey, 'heads', hiddenKey, (hidden) => `${hiddenKey} ${hidden}`);

/** Key-value heads must divide the query heads. */
export const keyHeadsDivide = (key: string) =>
  divisorRules(key, 'key-value heads', 'num_attention_heads', (heads) => `${heads} heads`);

/** Heads must divide the width, and key-value heads the heads. */
export const headRules = [...widthRules, ...keyHeadsDivide('num_key_value_heads')];

/** Groups of the heads of a Mamba layer must be equal. */
export const groupRules = (groupsKey: string, headsKey: string) =>
  divisorRules(groupsKey, 'groups', headsKey, (heads) => `the ${heads} heads of a Mamba layer`);

// ── Rotary positions ─────────────────────────────────────────────────────────────────────────────

/** Number of rotated dimensions of a head, and the keys that set it. */
interface Rotated<Model> {
  readonly reads: readonly [string, ...string[]];
  readonly of: (model: Model) => number;
  /** Suggestion for an invalid number. */
  readonly suggestion: string;
  /** Whether the class rounds an odd number up to pairs. */
  readonly roundsUp?: (model: Model) => boolean;
}

const HEAD_KEYS = ['model.hidden_size', 'model.num_attention_heads'] as const;

const wholeHead: Rotated<HeadSettings> = {
  reads: ['model.head_dim', ...HEAD_KEYS],
  of: (model) => headsOf(model).headDim,
  suggestion: 'write an even head_dim, or another number of heads',
};

/** Rotated part of each head, by the key that sets it. */
export function partOfEachHead(
  key: string,
  scalingKey: ScalingKey = 'rope_scaling',
): Rotated<HeadSettings> {
  const of = (model: HeadSettings) =>
    Math.trunc(headsOf(model).headDim * asNumber((model as unknown as JsonObject)[key]));
  return {
    reads: [`model.${key}`, ...HEAD_KEYS],
    of,
    suggestion: `write another ${key}`,
    roundsUp: (model) => {
      const { family, [scalingKey]: scaling } = model as ScalingSettings & { family?: string };
      return (
        of(model) < headsOf(model).headDim &&
        !WITH_EVEN_PARTS.includes(family ?? '') &&
        !BY_WIDTH.includes(scaling?.rope_type)
      );
    },
  };
}

/** Families whose class in transformers 5.18 cuts heads at an odd number of dimensions, and fails to rotate them. */
const WITH_EVEN_PARTS = ['gpt_neox_japanese', 'persimmon', 'phi', 'stablelm'];

/** Scaling types with a formula or lists for an even number of dimensions. */
const BY_WIDTH: readonly unknown[] = ['dynamic', 'longrope', 'yarn'];

/** Rotation turns pairs, so the number of rotated dimensions must be even. */
export const rotationRules = <Model>({ reads, of, suggestion, roundsUp }: Rotated<Model>) =>
  defineRules<{ readonly model: Model }>([
    {
      severity: 'error',
      reads,
      check: ({ model }) => {
        const rotated = of(model);
        // The rule of heads reports a head width that is not a whole number.
        const isOdd = rotated % 2 === 1 && !roundsUp?.(model);
        return Number.isInteger(rotated) && (isOdd || rotated === 0)
          ? {
              message: `${rotated} dimensions of a head would be rotated, but RoPE rotates pairs: expected an even number above 0`,
              suggestion,
            }
          : undefined;
      },
    },
  ]);

/** Required values of each scaling type. */
const NEEDED = {
  default: [],
  linear: ['factor'],
  proportional: [],
  dynamic: ['factor'],
  llama3: ['factor', 'low_freq_factor', 'high_freq_factor'],
  yarn: ['factor'],
  longrope: ['short_factor', 'long_factor'],
} as const satisfies Record<RopeScaling['rope_type'], readonly (keyof RopeScaling)[]>;

type ScalingKey = 'rope_scaling' | 'rope_local_scaling';

type ScalingSettings = Partial<Record<ScalingKey, RopeScaling | null | undefined>>;

/** Rules for the keys that a scaling type requires, and for their values. */
export const scalingRules = <Model>(
  { reads, of }: Rotated<Model>,
  key: ScalingKey = 'rope_scaling',
) =>
  defineRules<{ readonly model: Model & ScalingSettings }>([
    {
      severity: 'error',
      reads: [`model.${key}`, ...reads],
      check: ({ model }) => {
        const { short_factor: short, long_factor: long } = model[key] ?? {};
        const target = of(model) / 2;
        const wrong = [short, long].find((list) => list && list.length !== target);
        return wrong && Number.isInteger(target)
          ? {
              message: `expected ${target} entries in short_factor and long_factor, half of the rotated dimensions, found ${wrong.length}`,
              suggestion: 'copy the lists of a model with the same head width',
            }
          : undefined;
      },
    },
    {
      severity: 'error',
      reads: [`model.${key}`],
      check: ({ model: { [key]: scaling } }) =>
        scaling?.rope_type === 'llama3' &&
        scaling.low_freq_factor != null &&
        scaling.high_freq_factor != null &&
        // Equal ones are those of Llama 4 Scout: no frequency is between them.
        scaling.high_freq_factor < scaling.low_freq_factor
          ? {
              message: `high_freq_factor ${scaling.high_freq_factor} is below low_freq_factor ${scaling.low_freq_factor}`,
              suggestion: 'write low_freq_factor: 1 and high_freq_factor: 4, as Llama 3.1 has them',
            }
          : undefined,
    },
    {
      severity: 'error',
      reads: [`model.${key}`],
      check: ({ model: { [key]: scaling } }): ProblemText | undefined => {
        if (!scaling) return undefined;
        const missing = NEEDED[scaling.rope_type].filter((each) => scaling[each] == null);
        return missing.length === 0
          ? undefined
          : {
              message: `rope_type ${scaling.rope_type} needs ${missing.join(' and ')}`,
              suggestion: `write ${missing.map((each) => `${each}: …`).join(', ')} under ${key}`,
            };
      },
    },
  ]);

/** Rules for families with separate scaling in layers with a window. */
export const localRotaryRules = scalingRules(wholeHead, 'rope_local_scaling');

// ── Lists, lengths and experts ───────────────────────────────────────────────────────────────────

/** A list per layer must have one entry per layer. */
export const layerListRules = (key: string) =>
  defineRules<{ readonly model: { readonly num_hidden_layers: number } }>([
    {
      severity: 'error',
      reads: [`model.${key}`, 'model.num_hidden_layers'],
      check: ({ model }) => {
        const list = (model as Readonly<Record<string, unknown>>)[key];
        const layers = model.num_hidden_layers;
        return Array.isArray(list) && list.length !== layers
          ? {
              message: `${key} has ${list.length} entries for ${layers} layers`,
              suggestion: 'write one entry per layer, or leave the list out',
            }
          : undefined;
      },
    },
  ]);

interface Windowed {
  readonly sliding_window: number | null;
  readonly use_sliding_window?: boolean;
  readonly layer_types?: readonly string[] | null | undefined;
}

/**
 * Layers with a window require its size.
 * @param slidesByRule Whether some layers have a window that the config does not list, even without its size.
 */
export const windowRules = (slidesByRule: (model: Windowed) => boolean = () => false) =>
  defineRules<{ readonly model: Windowed }>([
    {
      severity: 'error',
      reads: ['model.sliding_window', 'model.use_sliding_window', 'model.layer_types'],
      check: ({ model }) => {
        const { sliding_window: tokens, use_sliding_window: use, layer_types: types } = model;
        const isListed = types?.includes('sliding_attention') ?? false;
        const isUsed = use !== false;
        if (tokens === 0 && isUsed) {
          return {
            message: 'a window of 0 tokens hides every token',
            suggestion: 'write sliding_window: 1 or more, or null',
          };
        }
        const slides = types ? isListed : slidesByRule(model);
        return slides && tokens === null
          ? {
              message: 'layers have a sliding window, but its size is null',
              suggestion: 'write sliding_window: N, or layer_types without sliding_attention',
            }
          : undefined;
      },
    },
  ]);

/**
 * Layers listed with a window while a flag disables all windows. Transformers 4 saves files of Qwen 2 MoE in this form;
 * 5.18 reads them, with a window of 0 tokens that hides every token, and other classes refuse such files.
 */
export const usedWindowRules = (['error', 'warning'] as const).flatMap((severity) =>
  defineRules<{
    readonly model: Windowed & { readonly family?: string; readonly use_sliding_window: boolean };
  }>([
    {
      severity,
      reads: ['model.layer_types', 'model.use_sliding_window'],
      check: ({ model: { family, layer_types: types, use_sliding_window: use } }) => {
        const isError = family !== 'qwen2_moe';
        if (use || !types?.includes('sliding_attention')) return undefined;
        if (isError !== (severity === 'error')) return undefined;
        const read = isError ? '' : ': no layer has a window';
        return {
          message: `layer_types has sliding_attention, but use_sliding_window is false${read}`,
          suggestion: 'write use_sliding_window: true, or full_attention for all layers',
        };
      },
    },
  ]),
);

/** Training sequences longer than the model's positions. */
export const lengthRules = (positionsKey: string) =>
  defineRules<{
    readonly model: object;
    readonly training?: { readonly max_seq_length?: number | undefined } | null | undefined;
  }>([
    {
      severity: 'error',
      reads: ['training.max_seq_length', `model.${positionsKey}`],
      check: ({ model, training }) => {
        const positions = (model as Readonly<Record<string, unknown>>)[positionsKey];
        const length = training?.max_seq_length;
        return length !== undefined && typeof positions === 'number' && length > positions
          ? {
              message: `sequences of ${length} tokens are longer than ${positionsKey} ${positions}`,
              suggestion: `write at most ${positions}, or raise model.${positionsKey}`,
            }
          : undefined;
      },
    },
  ]);

/** The chosen experts are at most those there are. With 0 experts, where a family allows that, all layers are dense. */
export const expertRules = (experts: string, chosen = 'num_experts_per_tok') =>
  defineRules<{ readonly model: object }>([
    {
      severity: 'error',
      reads: [`model.${chosen}`, `model.${experts}`],
      check: ({ model }) => {
        const values = model as Readonly<Record<string, unknown>>;
        const [there, taken] = [asNumber(values[experts]), asNumber(values[chosen])];
        return there > 0 && taken > there
          ? {
              message: `${taken} experts for a token are more than the ${there} there are`,
              suggestion: `write at most ${there}`,
            }
          : undefined;
      },
    },
  ]);

const decoderRules = (rotated: Rotated<HeadSettings>) => [
  ...headRules,
  ...rotationRules(rotated),
  ...lengthRules('max_position_embeddings'),
];

/** Rules of every decoder with the usual keys and rotary positions. */
export const DECODER_RULES = decoderRules(wholeHead);

/** The same, with rules for scaled positions. */
export const WHOLE_HEAD_RULES = [...DECODER_RULES, ...scalingRules(wholeHead)];

const PART_OF_HEAD = partOfEachHead('partial_rotary_factor');

/** The same, for heads of which a part is rotated. */
export const PART_OF_HEAD_RULES = [...decoderRules(PART_OF_HEAD), ...scalingRules(PART_OF_HEAD)];
