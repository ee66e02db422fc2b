/** Rotary positions: document settings, and their reader for a `config.json`. */

import * as z from 'zod';
import { asText, isRecord } from '../../../base/values.js';
import type { KeyRemark } from '../family.js';
import type { RotaryScaling, Temperature } from '../layer.js';
import { type JsonObject, unreadEach } from './config-keys.js';
import { positiveInteger, type SettingsOf } from './settings.js';

const factor = z.number().positive();

/** Keys of transformers' `rope_parameters`; the type decides which are required. */
const ropeScaling = z.strictObject({
  rope_type: z
    .enum(['default', 'linear', 'dynamic', 'llama3', 'yarn', 'longrope', 'proportional'])
    .default('default')
    .describe('How frequencies are stretched'),
  factor: factor.nullish().describe('How many times longer'),
  original_max_position_embeddings: positiveInteger
    .nullish()
    .describe('Length that it was trained with'),
  low_freq_factor: factor.nullish(),
  high_freq_factor: factor.nullish(),
  beta_fast: factor.nullish(),
  beta_slow: factor.nullish(),
  mscale: z.number().nullish(),
  mscale_all_dim: z.number().nullish(),
  attention_factor: factor.nullish(),
  truncate: z.boolean().nullish(),
  partial_rotary_factor: z
    .number()
    .min(0)
    .max(1)
    .nullish()
    .describe('proportional: the part of the frequencies that is not 0'),
  short_factor: z.array(factor).nullish(),
  long_factor: z.array(factor).nullish(),
});

export type RopeScaling = z.output<typeof ropeScaling>;

export const rotarySettings = (base: number) => ({
  rope_theta: z.number().positive().default(base).describe('Base of the rotary frequencies'),
  rope_scaling: ropeScaling.nullish().describe('How rotary positions reach beyond the training'),
});

/** Settings that determine the longest input. */
interface Stretched {
  readonly rope_type?: string | null | undefined;
  readonly factor?: number | null | undefined;
  readonly original_max_position_embeddings?: number | null | undefined;
}

/**
 * Longest input. Dynamic scaling begins where the others end: at `max_position_embeddings`, the training length. YaRN
 * reaches `factor` times the original length, although Qwen's model cards add it to a config without changing
 * `max_position_embeddings`.
 */
export function longestInput(positions: number, scaling: Stretched | null | undefined): number {
  const { rope_type: type, factor, original_max_position_embeddings: original } = scaling ?? {};
  if (type === 'dynamic') return Math.floor(positions * (factor ?? 1));
  return type === 'yarn'
    ? Math.max(positions, Math.floor((original ?? 0) * (factor ?? 1)))
    : positions;
}

/** YaRN's attention scaling for inputs `times` as long. */
export const yarnAmplitude = (times: number, strength = 1): number =>
  times <= 1 ? 1 : 0.1 * strength * Math.log(times) + 1;

/** YaRN's defaults, arXiv 2309.00071, section 3.2. */
const BETA_FAST = 32;
const BETA_SLOW = 1;

/**
 * Rotary scaling of a config, following `modeling_rope_utils.py` of transformers.
 * @param positions `max_position_embeddings`.
 * @param rotatedDim Rotated dimensions of a head.
 * @param trained Training length, if the config gives it separately from the scaling.
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
    case 'proportional':
      return {
        kind: 'proportional',
        pairs: Math.floor(((scaling.partial_rotary_factor ?? 1) * rotatedDim) / 2),
        factor: scaling.factor ?? 1,
      };
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

// Rotary positions in a `config.json` of transformers 5.18 (`modeling_rope_utils.py`)

/** Reader of a family's rotary settings. */
export interface RotaryReading {
  readonly keys: readonly string[];
  readonly settings: (config: JsonObject) => JsonObject;
  readonly remarks: (config: JsonObject) => readonly KeyRemark[];
}

/** Reader of a family without rotary positions. */
export const NO_ROTARY: RotaryReading = { keys: [], settings: () => ({}), remarks: () => [] };

const hasEntries = (value: unknown): value is JsonObject =>
  isRecord(value) && Object.keys(value).length > 0;

/** The rotary key that transformers reads: the older one, unless it is empty. */
const nameIn = (config: JsonObject) =>
  hasEntries(config.rope_scaling) ? 'rope_scaling' : 'rope_parameters';

/** Rotary settings of a `config.json`. */
export function rotaryIn(config: JsonObject): JsonObject {
  const value = config[nameIn(config)];
  return isRecord(value) ? value : {};
}

const TRAINED = 'original_max_position_embeddings';

/** Older names of scaling types. */
const OLD_TYPES: Readonly<Record<string, string>> = { su: 'longrope' };

const ropeType = ({ rope_type: type, type: oldType }: JsonObject): unknown => {
  const name = type ?? oldType ?? 'default';
  return typeof name === 'string' && Object.hasOwn(OLD_TYPES, name) ? OLD_TYPES[name] : name;
};

/** Whether a `rope_scaling` names the type without scaling. */
export const isPlainRotation = (value: unknown): boolean =>
  isRecord(value) && (value.rope_type ?? value.type) === 'default';

/** Keys of `rope_parameters` that are separate settings here. */
const APART = ['type', 'rope_theta', 'partial_rotary_factor'] as const;

/** Types that scale from the training length. */
const FROM_TRAINED: readonly unknown[] = ['llama3', 'yarn', 'longrope'];

/**
 * `rope_scaling` of a document; undefined without scaling.
 * @param trained Training length given outside; overrides the one inside.
 */
export function scalingIn(rotary: JsonObject, trained?: unknown): JsonObject | undefined {
  const type = ropeType(rotary);
  if (type === 'default') return undefined;
  const rest = Object.fromEntries(
    Object.entries(rotary).filter(
      ([key]) =>
        !APART.some((apart) => apart === key) ||
        (type === 'proportional' && key === 'partial_rotary_factor'),
    ),
  );
  const outside = trained != null && FROM_TRAINED.includes(type) ? { [TRAINED]: trained } : {};
  return { ...rest, ...outside, rope_type: type };
}

/** Keys read by each type, in addition to those of every type. */
const READ_BY_TYPE: Readonly<Record<string, readonly string[]>> = {
  default: [],
  linear: ['factor'],
  proportional: ['factor', 'partial_rotary_factor'],
  dynamic: ['factor'],
  llama3: ['factor', 'low_freq_factor', 'high_freq_factor', TRAINED],
  yarn: ['factor', TRAINED, 'attention_factor', 'beta_fast', 'beta_slow', 'mscale', 'truncate'],
  longrope: ['factor', TRAINED, 'attention_factor', 'short_factor', 'long_factor'],
};

/** Key that scaling types read in some family. */
const OF_ALL_STRETCHED = 'mscale_all_dim';

/** Unread keys of rotary settings. @param isPartial Whether the family rotates a part of a head. */
function unreadRotary(
  rotary: JsonObject,
  path: readonly string[],
  isPartial: boolean,
): KeyRemark[] {
  const type = ropeType(rotary);
  const read =
    typeof type === 'string' && Object.hasOwn(READ_BY_TYPE, type) ? READ_BY_TYPE[type] : undefined;
  // An unknown type is a separate error.
  if (!read) return [];
  const isRead = (key: string) =>
    ['rope_type', 'type', 'rope_theta', ...read].includes(key) ||
    (key === OF_ALL_STRETCHED && type !== 'default') ||
    (key === 'partial_rotary_factor' && (isPartial || rotary[key] === 1));
  return Object.keys(rotary)
    .filter((key) => rotary[key] != null && !isRead(key))
    .map((key) => ({
      path: [...path, key],
      severity: 'warning',
      why:
        key === 'partial_rotary_factor'
          ? 'this family rotates whole heads'
          : `rope_type ${asText(type)} does not read it`,
    }));
}

/** Remark on the other rotary key, if the two differ. */
function unreadName(config: JsonObject): KeyRemark[] {
  const { rope_scaling: old, rope_parameters: current } = config;
  const isUnread =
    nameIn(config) === 'rope_scaling' &&
    hasEntries(current) &&
    JSON.stringify(current) !== JSON.stringify(old);
  return isUnread
    ? [{ path: ['rope_parameters'], severity: 'warning', why: 'rope_scaling takes its place' }]
    : [];
}

/** One rotation for all layers, with the settings in `shape`. */
export function rotaryReading(shape: JsonObject): RotaryReading {
  const isPartial = 'partial_rotary_factor' in shape || 'rotary_pct' in shape;
  return {
    keys: ['rope_parameters', 'rope_scaling', TRAINED],
    settings(config) {
      const rotary = rotaryIn(config);
      return {
        rope_theta: rotary.rope_theta ?? config.rope_theta,
        rope_scaling: scalingIn(rotary, config[TRAINED]),
      };
    },
    remarks: (config) => [
      ...unreadName(config),
      ...unreadRotary(rotaryIn(config), [nameIn(config)], isPartial),
    ],
  };
}

/** `rotaryReading` of a family with its own rotary settings for a file without any. */
export function rotaryOr(defaults: JsonObject): RotaryReading {
  const isGivenIn = (config: JsonObject) =>
    isRecord(config.rope_parameters) || hasEntries(config.rope_scaling);
  return {
    keys: plain.keys,
    settings: (config) =>
      plain.settings(isGivenIn(config) ? config : { ...config, rope_parameters: defaults }),
    remarks: (config) => [
      ...plain.remarks(config),
      ...(!isGivenIn(config) && ![undefined, null, defaults.rope_theta].includes(config.rope_theta)
        ? [
            {
              path: ['rope_theta'],
              severity: 'warning',
              why: 'without other rotary settings, the class has its own for all of them',
            } as const,
          ]
        : []),
    ],
  };
}

/** Part of each head that a `config.json` rotates; the rotary settings come before the file. */
export const partialFactorIn = (config: JsonObject): JsonObject => ({
  partial_rotary_factor: rotaryIn(config).partial_rotary_factor ?? undefined,
});

/** Rotary settings of the layers with a window, where they differ from the others. */
export function localRotarySettings(base: number) {
  const local = rotarySettings(base);
  return {
    rope_local_base_freq: local.rope_theta.describe(
      'Base of the rotary frequencies in the layers with a window',
    ),
    rope_local_scaling: local.rope_scaling.describe(
      'How the positions of those layers reach beyond the training',
    ),
  };
}

const objectOr = (value: unknown): JsonObject => (isRecord(value) ? value : {});

/** Rotary settings of the two layer kinds; an older `rope_scaling` applies to layers without a window. */
function rotaryByKind(config: JsonObject): Readonly<Record<'full' | 'sliding', JsonObject>> {
  // Without rope_parameters, rope_type is default already, so that an older type does not replace it.
  const { full_attention, sliding_attention } = objectOr(
    config.rope_parameters ?? { full_attention: { rope_type: 'default' } },
  );
  return {
    full: { ...objectOr(full_attention), ...objectOr(config.rope_scaling) },
    sliding: objectOr(sliding_attention),
  };
}

/** Drops `truncate`: transformers reads it outside the two kinds. */
function scalingOfKind(rotary: JsonObject): JsonObject | undefined {
  const { truncate: _, ...scaling } = scalingIn(rotary) ?? {};
  return 'rope_type' in scaling ? scaling : undefined;
}

function unreadOfKind(rotary: JsonObject, kind: string): KeyRemark[] {
  const path = ['rope_parameters', kind];
  const { truncate, ...rest } = rotary;
  const why = 'this family always truncates';
  return [
    ...unreadRotary(rest, path, false),
    ...(truncate === false
      ? [{ path: [...path, 'truncate'], severity: 'warning', why } as const]
      : []),
  ];
}

/** Reader of a family with separate rotary settings for layers with and without a window. */
export const rotaryByLayer: RotaryReading = {
  keys: ['rope_parameters', 'rope_scaling', 'rope_theta'],
  settings(config) {
    const { full, sliding } = rotaryByKind(config);
    return {
      rope_theta: full.rope_theta ?? config.rope_theta,
      // The file's own settings are those of one kind only.
      rope_scaling: scalingOfKind(full) ?? (isRecord(config.rope_scaling) ? null : undefined),
      rope_local_base_freq: sliding.rope_theta ?? config.rope_local_base_freq,
      rope_local_scaling: scalingOfKind(sliding),
    };
  },
  remarks(config) {
    const { full_attention: _, sliding_attention: __, ...flat } = objectOr(config.rope_parameters);
    const { full, sliding } = rotaryByKind(config);
    return [
      ...Object.keys(flat).map(
        (key): KeyRemark => ({
          path: ['rope_parameters', key],
          severity: 'warning',
          why: 'this family has rotary settings for each kind of layer',
        }),
      ),
      ...unreadOfKind(full, 'full_attention'),
      ...unreadOfKind(sliding, 'sliding_attention'),
    ];
  },
};

/**
 * `rotaryByLayer` of a class that does not read the keys of older files.
 * @param defaults Settings of a file without `rope_parameters`.
 */
export const nestedRotary = (defaults: JsonObject): RotaryReading => ({
  ...rotaryByLayer,
  keys: ['rope_parameters'],
  settings({ rope_parameters }) {
    if (!isRecord(rope_parameters)) return defaults;
    const { rope_scaling, rope_local_scaling, ...bases } = rotaryByLayer.settings({
      rope_parameters,
    });
    return {
      ...bases,
      rope_scaling: rope_scaling ?? null,
      rope_local_scaling: rope_local_scaling ?? null,
    };
  },
  remarks: ({ rope_parameters }) => rotaryByLayer.remarks({ rope_parameters }),
});

/** Keys of older files, for these classes. */
export const OLDER_ROTARY_KEYS = unreadEach(['rope_scaling', 'rope_theta', 'rope_local_base_freq']);

// Queries that are scaled by their position, in steps of the training length

const BETA = 'llama_4_scaling_beta';

export const temperatureSettings = {
  [BETA]: z
    .number()
    .default(0.1)
    .describe('How much queries grow: by this, times the logarithm of 1 + their step'),
  [TRAINED]: positiveInteger
    .nullish()
    .describe('Tokens of a step; default: that of rope_scaling, or max_position_embeddings'),
};

type TemperedConfig = SettingsOf<typeof temperatureSettings> & {
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly max_position_embeddings: number;
};

export const temperatureOf = (config: TemperedConfig): Temperature => ({
  strength: config[BETA],
  offset: 0,
  tokens: config[TRAINED] ?? config.rope_scaling?.[TRAINED] ?? config.max_position_embeddings,
});

const plain = rotaryReading({});

/** Rotary settings without those that only scale queries. */
function withoutTemperature(rotary: JsonObject): JsonObject {
  const { [BETA]: _, max_position_embeddings: __, ...rest } = rotary;
  const { [TRAINED]: ___, ...others } = rest;
  return FROM_TRAINED.includes(ropeType(rotary)) ? rest : others;
}

/**
 * Reader of rotary settings that include those for scaling queries.
 * @param defaults Rotary settings of a file without any.
 * @param known Leaves out further keys that have the required values.
 */
export function temperedReading(
  defaults: JsonObject,
  known: (rotary: JsonObject, config: JsonObject) => JsonObject = (rotary) => rotary,
): RotaryReading {
  /** Settings of a file, and the file with those that every family has. */
  const partsOf = (config: JsonObject) => {
    const hasRotary = isRecord(config.rope_parameters) || hasEntries(rotaryIn(config));
    const rotary = hasRotary ? rotaryIn(config) : defaults;
    const { rope_scaling: _, rope_theta, [TRAINED]: outside, ...rest } = config;
    const isStretched = FROM_TRAINED.includes(ropeType(rotary));
    const trained = (isStretched ? outside : undefined) ?? rotary[TRAINED];
    const cleaned = { ...rest, rope_parameters: known(withoutTemperature(rotary), config) };
    return {
      rotary,
      trained,
      isStretched,
      usual: {
        ...cleaned,
        ...(hasRotary && { rope_theta }),
        ...(isStretched && { [TRAINED]: trained }),
      },
    };
  };
  return {
    keys: plain.keys,
    settings(config) {
      const { rotary, trained, usual } = partsOf(config);
      return { ...plain.settings(usual), [BETA]: rotary[BETA], [TRAINED]: trained };
    },
    remarks(config) {
      const { rotary, isStretched, usual } = partsOf(config);
      const needed = isStretched ? [BETA] : [BETA, TRAINED];
      const missing = needed.filter((key) => rotary[key] == null);
      return [
        ...missing.map(
          (key): KeyRemark => ({
            path: ['rope_parameters'],
            severity: 'error',
            why: `${key} is missing, which scales the queries`,
          }),
        ),
        ...plain.remarks(usual),
      ];
    },
  };
}
