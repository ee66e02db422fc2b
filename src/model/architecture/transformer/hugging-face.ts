/** Converts a Hugging Face `config.json` to a `model` section. */

import type * as z from 'zod';
import { asText } from '../../../base/values.js';
import type { HuggingFaceReader, KeyRemark } from '../family.js';
import {
  HARMLESS,
  type HarmlessKeys,
  type JsonObject,
  type KeyUse,
  LIMITED,
  type LimitedKeys,
} from './config-keys.js';
import {
  isPlainRotation,
  NO_ROTARY,
  partialFactorIn,
  type RotaryReading,
  rotaryReading,
} from './rotary.js';
import { BOOKKEEPING_KEYS } from './settings.js';

/** Special features of a family's `config.json`. */
export interface Special {
  /** Other names of a setting in `config.json`; the last one present counts. */
  readonly names?: Readonly<Record<string, readonly string[]>>;
  /** Derived settings; undefined for those missing in the file. Default: the rotated part of a head. */
  readonly more?: (config: JsonObject) => JsonObject;
  /** Keys that `more` reads. */
  readonly reads?: readonly string[];
  /** Keys that change no logits of this family, with the reason. */
  readonly harmless?: HarmlessKeys;
  readonly limited?: LimitedKeys;
  /** See `HuggingFaceReader`. */
  readonly largerModel?: HuggingFaceReader['largerModel'];
  /** Remarks on the whole file, such as a class that it does not name. */
  readonly remarks?: (config: JsonObject) => readonly KeyRemark[];
  /** Reader for rotary positions that vary by layer or differ from transformers. */
  readonly rotary?: RotaryReading;
}

/**
 * Reads the `config.json` of a family whose settings are `model`. Rotary settings have two forms:
 * transformers 5 writes `rope_parameters`, older versions `rope_theta` and `rope_scaling`. If both are given,
 * transformers uses `rope_scaling` unless it is empty. One of the type `default` scales nothing, so that
 * its other keys, such as `rope_theta`, belong to no scaling.
 */
export function huggingFaceReader(model: z.ZodObject, special: Special = {}): HuggingFaceReader {
  const usual = 'partial_rotary_factor' in model.shape ? partialFactorIn : () => ({});
  const { names = {}, more = usual, reads = [] } = special;
  const rotary =
    special.rotary ?? ('rope_scaling' in model.shape ? rotaryReading(model.shape) : NO_ROTARY);
  const hasExperts = 'experts_stored' in model.shape;
  const isSetting = (key: string) => key !== 'family' && Object.hasOwn(model.shape, key);
  const read = new Set([
    ...Object.keys(model.shape).filter((key) => isSetting(key) && !BOOKKEEPING_KEYS.has(key)),
    ...Object.values(names).flat(),
    ...reads,
    ...rotary.keys,
  ]);
  const useOf = (key: string): KeyUse => {
    const own = limitedOrHarmless(key, special);
    if (own) return own;
    if (read.has(key)) return { use: 'read' };
    return limitedOrHarmless(key, SHARED) ?? { use: 'unknown' };
  };
  return {
    keys: [...read],
    useOf,
    ...(special.largerModel && { largerModel: special.largerModel }),
    read(config) {
      const settings: Record<string, unknown> = {};
      const found: JsonObject = {
        ...config,
        ...(isPlainRotation(config.rope_scaling) && { rope_scaling: null }),
        ...defined(rotary.settings(config)),
      };
      for (const key of Object.keys(model.shape).filter(isSetting)) {
        // transformers sets the other names after the fields of its class.
        const name = [...(names[key] ?? [])].reverse().find((each) => found[each] != null);
        const from = name ?? key;
        if (Object.hasOwn(found, from)) settings[key] = found[from];
      }
      // transformers 5 renamed `torch_dtype` to `dtype`.
      if (typeof config.dtype === 'string') settings.torch_dtype = config.dtype;
      return {
        settings: withoutNulls(
          {
            ...settings,
            ...(hasExperts && { experts_stored: expertsIn(config) }),
            ...defined(more(config)),
          },
          model,
        ),
        remarks: [
          ...keyRemarks(config, useOf),
          ...rotary.remarks(config),
          ...(special.remarks?.(config) ?? []),
          ...sizeRemarks(settings, model),
        ],
      };
    },
  };
}

const SHARED = { limited: LIMITED, harmless: HARMLESS };

function limitedOrHarmless(
  key: string,
  { limited = {}, harmless = {} }: Pick<Special, 'limited' | 'harmless'>,
): KeyUse | undefined {
  const [limit, why] = [ownValue(limited, key), ownValue(harmless, key)];
  if (limit) return { use: 'limited', ...limit };
  return why === undefined ? undefined : { use: 'harmless', why };
}

const ownValue = <Value>(values: Readonly<Record<string, Value>>, key: string) =>
  Object.hasOwn(values, key) ? values[key] : undefined;

function keyRemarks(config: JsonObject, useOf: (key: string) => KeyUse): KeyRemark[] {
  return Object.entries(config).flatMap(([key, value]): KeyRemark[] => {
    const use = useOf(key);
    if (use.use === 'unknown') return [{ path: [key], severity: 'warning' }];
    if (use.use !== 'limited' || use.allows(value, config)) return [];
    const { severity, why, advice } = use;
    return [{ path: [key], severity, why, ...(advice !== undefined && { advice }) }];
  });
}

/** Settings of which a file needs at least one to show its model's size. */
const SIZES = [
  'hidden_size',
  'n_embd',
  'd_model',
  'num_hidden_layers',
  'n_layer',
  'num_layers',
  'n_layers',
] as const;

/** Remarks on a file without width and depth, whose defaults are those of a large model. */
function sizeRemarks(settings: JsonObject, model: z.ZodObject): KeyRemark[] {
  const keys = SIZES.filter((key) => model.shape[key]?.safeParse(undefined).success === true);
  const isSilent = keys.length > 0 && keys.every((key) => settings[key] == null);
  return isSilent
    ? [{ path: [], severity: 'error', why: `gives neither ${keys.join(' nor ')}` }]
    : [];
}

const defined = (values: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

/** Drops null where the family gives it no meaning. A flag that is null is off, as in Python. */
function withoutNulls(settings: JsonObject, model: z.ZodObject): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(settings).flatMap(([key, value]): [string, unknown][] => {
      const schema = model.shape[key];
      if (value !== null || schema?.safeParse(null).success === true) return [[key, value]];
      return schema?.safeParse(undefined).data === true ? [[key, false]] : [];
    }),
  );
}

/**
 * Whether a config describes a model in memory instead of files. Only transformers 5 writes such configs, and some
 * tensor layouts differ from the saved ones. They lack `architectures`, which a saved model has.
 */
export function isHeldInMemory(config: JsonObject): boolean {
  const version = Number.parseInt(asText(config.transformers_version ?? ''), 10);
  return version >= 5 && config.architectures == null;
}

/** Storage of a mixture's experts, judged by the config alone. */
const expertsIn = (config: JsonObject): 'packed' | 'separate' =>
  isHeldInMemory(config) ? 'packed' : 'separate';
