/** Queries that grow with their position, in steps of the training length: settings, and their reader. */
import * as z from 'zod';
import type { KeyRemark } from '../family.js';
import type { Temperature } from '../layer.js';
import type { JsonObject } from './config-keys.js';
import {
  isObject,
  type RopeScaling,
  type RotaryReading,
  rotaryIn,
  rotaryReading,
} from './rotary.js';
import { positiveInteger, type SettingsOf } from './settings.js';

const BETA = 'llama_4_scaling_beta';
const TRAINED = 'original_max_position_embeddings';

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

/** Scaling types with a training length, which transformers fills in. */
const STRETCHED: readonly unknown[] = ['llama3', 'yarn', 'longrope'];

const typeOf = ({ rope_type, type }: JsonObject) => rope_type ?? type;

/** Rotary settings, without what they say about queries alone. */
function withoutTemperature(rotary: JsonObject): JsonObject {
  const { [BETA]: _, max_position_embeddings: __, ...rest } = rotary;
  const { [TRAINED]: ___, ...others } = rest;
  return STRETCHED.includes(typeOf(rotary)) ? rest : others;
}

/**
 * Reader of rotary settings that have those of growing queries among them.
 * @param defaults Rotary settings of a file without any.
 * @param known Leaves out further keys that are as they have to be.
 */
export function temperedReading(
  defaults: JsonObject,
  known: (rotary: JsonObject, config: JsonObject) => JsonObject = (rotary) => rotary,
): RotaryReading {
  /** Settings of a file, and the file with those that every family has. */
  const partsOf = (config: JsonObject) => {
    const isGiven = isObject(config.rope_parameters) || Object.keys(rotaryIn(config)).length > 0;
    const rotary = isGiven ? rotaryIn(config) : defaults;
    const { rope_scaling: _, rope_theta, [TRAINED]: outside, ...rest } = config;
    const isStretched = STRETCHED.includes(typeOf(rotary));
    const trained = (isStretched ? outside : undefined) ?? rotary[TRAINED];
    const cleaned = { ...rest, rope_parameters: known(withoutTemperature(rotary), config) };
    return {
      rotary,
      trained,
      isStretched,
      usual: {
        ...cleaned,
        ...(isGiven && { rope_theta }),
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
            why: `${key} is missing, by which queries are scaled`,
          }),
        ),
        ...plain.remarks(usual),
      ];
    },
  };
}
