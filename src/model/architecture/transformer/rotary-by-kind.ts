/** Rotary positions of layers with and without a window, each kind with its own base, scaling and part of a head. */
import { isRecord } from '../../../base/values.js';
import type { KeyRemark } from '../family.js';
import type { Rotary } from '../layer.js';
import type { JsonObject } from './config-keys.js';
import { rotaryOf } from './decoder-parts.js';
import {
  localRotarySettings,
  nestedRotary,
  type RopeScaling,
  type RotaryReading,
} from './rotary.js';
import { partOfEachHead, rotationRules, scalingRules } from './rules.js';
import { partOfHead } from './settings.js';

/** Defaults of a class for values that a file leaves out. */
export interface KindDefaults {
  readonly rope_theta: number;
  readonly rope_local_base_freq: number;
  readonly partial_rotary_factor: number;
  readonly local_partial_rotary_factor: number;
}

/** Settings beside `rope_theta` and `rope_scaling`, which are those of the layers without a window. */
export const partSettings = (defaults: KindDefaults) => ({
  ...localRotarySettings(defaults.rope_local_base_freq),
  partial_rotary_factor: partOfHead(defaults.partial_rotary_factor),
  local_partial_rotary_factor: partOfHead(defaults.local_partial_rotary_factor).describe(
    'The part of a head that is rotated in the layers with a window',
  ),
});

const LOCAL_PART = partOfEachHead('local_partial_rotary_factor', 'rope_local_scaling');

export const PART_RULES = [
  ...rotationRules(LOCAL_PART),
  ...scalingRules(LOCAL_PART, 'rope_local_scaling'),
];

interface KindSettings {
  readonly rope_theta: number;
  readonly rope_scaling?: RopeScaling | null | undefined;
  readonly rope_local_base_freq: number;
  readonly rope_local_scaling?: RopeScaling | null | undefined;
  readonly partial_rotary_factor: number;
  readonly local_partial_rotary_factor: number;
  readonly max_position_embeddings: number;
}

export const rotaryOfKind = (
  block: string,
  config: KindSettings,
  headDim: number,
  slides: boolean,
): Rotary =>
  slides
    ? rotaryOf(
        block,
        {
          max_position_embeddings: config.max_position_embeddings,
          rope_theta: config.rope_local_base_freq,
          rope_scaling: config.rope_local_scaling,
        },
        headDim,
        { part: rotatedPart(config.rope_local_scaling, config.local_partial_rotary_factor) },
      )
    : rotaryOf(block, config, headDim, {
        part: rotatedPart(config.rope_scaling, config.partial_rotary_factor),
      });

/** `proportional` has angles of 0 for the rest of a head. */
const rotatedPart = (scaling: RopeScaling | null | undefined, part: number): number =>
  scaling?.rope_type === 'proportional' ? 1 : part;

const KINDS = ['full_attention', 'sliding_attention'] as const;

/**
 * Reader of a class that has these settings in `rope_parameters` alone, by kind of layer.
 * @param fallback Part of a head in a kind without scaling that gives none. Kinds with scaling rotate whole heads.
 * @param usedBy Kinds of the layers of a file.
 */
export function partsByKind(
  defaults: KindDefaults,
  fallback: number,
  usedBy: (config: JsonObject) => readonly unknown[],
): RotaryReading {
  const nested = nestedRotary({ ...defaults });
  const partIn = (kind: unknown): number => {
    if (!isRecord(kind)) return fallback;
    const { partial_rotary_factor: part, rope_type: type = 'default' } = kind;
    return typeof part === 'number' ? part : type === 'default' ? fallback : 1;
  };
  return {
    keys: nested.keys,
    settings(config) {
      const { rope_parameters: all } = config;
      return {
        ...nested.settings(config),
        ...(isRecord(all) && {
          partial_rotary_factor: partIn(all.full_attention),
          local_partial_rotary_factor: partIn(all.sliding_attention),
        }),
      };
    },
    remarks(config) {
      const { rope_parameters: all } = config;
      if (all == null) return [];
      return [
        ...nested.remarks(withoutParts(config)),
        ...missingKinds(isRecord(all) ? all : {}, usedBy(config)),
        ...partOutside(config),
      ];
    },
  };
}

/** The parts of heads are read here. */
function withoutParts(config: JsonObject): JsonObject {
  const { rope_parameters: all } = config;
  if (!isRecord(all)) return config;
  const kinds = Object.entries(all).map(([name, kind]) => {
    if (!isRecord(kind)) return [name, kind];
    const { partial_rotary_factor: _, ...rest } = kind;
    return [name, rest];
  });
  return { rope_parameters: Object.fromEntries(kinds) as JsonObject };
}

const missingKinds = (all: JsonObject, used: readonly unknown[]): KeyRemark[] =>
  KINDS.filter((kind) => used.includes(kind)).flatMap((kind): KeyRemark[] => {
    const path = ['rope_parameters', kind];
    const found = all[kind];
    if (!isRecord(found)) {
      return [{ path, severity: 'error', why: 'layers of this kind have no rotary settings' }];
    }
    const missing = ['rope_type', 'rope_theta'].filter((key) => found[key] == null);
    return missing.map((key) => ({ path, severity: 'error', why: `${key} is missing` }));
  });

/** A part outside the kinds is read for scaled ones without their own, and for those that come after them. */
function partOutside(config: JsonObject): KeyRemark[] {
  const { rope_parameters: all, partial_rotary_factor: outside } = config;
  if (outside == null || !isRecord(all)) return [];
  const kinds = KINDS.map((kind) => all[kind]).filter(isRecord);
  const isScaled = kinds.some(({ rope_type: type }) => type !== 'default');
  return isScaled && kinds.some((kind) => kind.partial_rotary_factor == null)
    ? [
        {
          path: ['partial_rotary_factor'],
          severity: 'error',
          why: 'write it in the settings of each kind of layer: whether it is read here depends on their order',
        },
      ]
    : [];
}
