/** Settings of an answer: flags, then the model's generation_config.json, then defaults. */
import type { Problem } from '../../base/errors.js';
import { UserError, usageError } from '../../base/errors.js';
import { formatJson } from '../../base/text/json.js';
import { setting } from '../../base/text/setting.js';
import { isRecord } from '../../base/values.js';
import { GREEDY, type SamplingSettings } from './sampling.js';

/** Settings that the user gave. */
export interface GivenSettings {
  readonly temperature?: number | undefined;
  readonly topK?: number | undefined;
  readonly topP?: number | undefined;
  readonly minP?: number | undefined;
  readonly repetitionPenalty?: number | undefined;
  readonly maxTokens?: number | undefined;
}

export interface ChosenSettings {
  readonly sampling: SamplingSettings;
  readonly maxTokens: number;
  /** Settings of generation_config.json that are used: `temperature 0.7`. */
  readonly fromFile: readonly string[];
  readonly warnings: readonly Problem[];
}

interface GenerationFile {
  readonly file: string;
  readonly config: Readonly<Record<string, unknown>>;
}

const DEFAULT_MAX_TOKENS = 256;

/** Value of `top_k` in transformers when the file enables sampling without one. */
const TRANSFORMERS_TOP_K = 50;

type SettingName = keyof GivenSettings;

interface Setting {
  readonly key: string;
  readonly expected: string;
  readonly isValid: (value: number) => boolean;
}

const SETTINGS: Readonly<Record<SettingName, Setting>> = {
  temperature: {
    key: 'temperature',
    expected: 'a number from 0 on',
    isValid: (value) => value >= 0,
  },
  topK: {
    key: 'top_k',
    expected: 'a whole number from 0 on',
    isValid: (value) => Number.isSafeInteger(value) && value >= 0,
  },
  topP: {
    key: 'top_p',
    expected: 'a number from 0 to 1',
    isValid: (value) => value >= 0 && value <= 1,
  },
  minP: {
    key: 'min_p',
    expected: 'a number from 0 to 1',
    isValid: (value) => value >= 0 && value <= 1,
  },
  repetitionPenalty: {
    key: 'repetition_penalty',
    expected: 'a number above 0',
    isValid: (value) => value > 0,
  },
  maxTokens: {
    key: 'max_new_tokens',
    expected: 'a positive whole number',
    isValid: (value) => Number.isSafeInteger(value) && value > 0,
  },
};

/** Keys of transformers that affect sampling and are not supported, with the values that have no effect. */
const UNSUPPORTED: Readonly<Record<string, readonly unknown[]>> = {
  num_beams: [1],
  num_beam_groups: [1],
  penalty_alpha: [0],
  typical_p: [1],
  epsilon_cutoff: [0],
  eta_cutoff: [0],
  top_h: [],
  no_repeat_ngram_size: [0],
  encoder_repetition_penalty: [1],
  encoder_no_repeat_ngram_size: [0],
  diversity_penalty: [0],
  exponential_decay_length_penalty: [],
  min_length: [0],
  min_new_tokens: [0],
  bad_words_ids: [],
  sequence_bias: [],
  suppress_tokens: [],
  begin_suppress_tokens: [],
  forced_bos_token_id: [],
  forced_eos_token_id: [],
  guidance_scale: [1],
  watermarking_config: [],
  dola_layers: [],
};

const ofSampling: readonly SettingName[] = ['temperature', 'topK', 'topP', 'minP'];

/**
 * Settings of an answer. If neither the file nor a flag enables sampling, the likeliest token is taken.
 * @throws UserError when a value of the file is not valid.
 */
export function chooseSettings(
  given: GivenSettings,
  generation: GenerationFile | undefined,
): ChosenSettings {
  const file = readSettings(generation);
  const asksToSample = ofSampling.some((name) => given[name] !== undefined);
  const samples = given.temperature !== 0 && (asksToSample || file.samples);
  const neutral = samples ? { ...GREEDY, temperature: 1 } : GREEDY;
  // The file of a model that does not sample can still have values for sampling.
  const usable = (name: SettingName) => (file.samples && samples) || !ofSampling.includes(name);
  const fromFile: string[] = [];
  const take = (name: SettingName, otherwise: number): number => {
    const own = given[name];
    if (own !== undefined) return own;
    const value = usable(name) ? file.values[name] : undefined;
    if (value === undefined) return otherwise;
    if (value !== otherwise) fromFile.push(`${SETTINGS[name].key} ${value}`);
    return value;
  };
  const sampling = {
    temperature: take('temperature', neutral.temperature),
    topK: take('topK', neutral.topK),
    topP: take('topP', neutral.topP),
    minP: take('minP', neutral.minP),
    repetitionPenalty: take('repetitionPenalty', neutral.repetitionPenalty),
  };
  const maxTokens = take('maxTokens', DEFAULT_MAX_TOKENS);
  return { sampling, maxTokens, fromFile, warnings: warningsAbout(generation) };
}

/**
 * Rejects settings without an effect.
 * @param seed Seed of the draws; undefined where none is given.
 * @throws UserError for a filter of the distribution, or a seed of draws, where the likeliest token is taken.
 */
export function refuseUnsampled(
  given: GivenSettings,
  seed: number | undefined,
  { temperature }: SamplingSettings,
): void {
  const ofDraws = { topK: given.topK, topP: given.topP, minP: given.minP, seed };
  const names = Object.keys(ofDraws) as (keyof typeof ofDraws)[];
  const unused = names.find((name) => ofDraws[name] !== undefined);
  if (temperature !== 0 || unused === undefined) return;
  throw usageError(
    `${setting(unused)} has no effect at ${setting('temperature', 0)}`,
    `write a temperature above 0, or leave ${setting(unused)} out`,
  );
}

function readSettings(generation: GenerationFile | undefined) {
  const { file = '', config = {} } = generation ?? {};
  const values: Partial<Record<SettingName, number>> = {};
  for (const name of Object.keys(SETTINGS) as SettingName[]) {
    const { key, expected, isValid } = SETTINGS[name];
    const value = config[key];
    if (value === undefined || value === null) continue;
    if (typeof value !== 'number' || !isValid(value)) {
      const shown = formatJson(value).slice(0, 60);
      throw new UserError('refused-file', `${file}: ${key}: expected ${expected}, found ${shown}`, {
        suggestion: 'correct the file, or remove the key',
      });
    }
    values[name] = value;
  }
  const samples = config.do_sample === true;
  if (samples && config.top_k === undefined) values.topK = TRANSFORMERS_TOP_K;
  return { samples, values };
}

function warningsAbout(generation: GenerationFile | undefined): Problem[] {
  if (generation === undefined) return [];
  const { file, config } = generation;
  const changing = Object.keys(UNSUPPORTED).filter(
    (key) => Object.hasOwn(config, key) && isChanging(config[key], UNSUPPORTED[key] ?? []),
  );
  return changing.map((key) => ({
    severity: 'warning' as const,
    file,
    path: key,
    message: 'is not supported here, and changes what transformers generates',
  }));
}

const isChanging = (value: unknown, neutral: readonly unknown[]): boolean =>
  value !== undefined &&
  value !== null &&
  value !== false &&
  !neutral.includes(value) &&
  !(Array.isArray(value) && value.length === 0) &&
  !(isRecord(value) && Object.keys(value).length === 0);
