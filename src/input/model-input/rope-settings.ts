/** Settings of a config that stretch its rotary positions with YaRN. */

import { UserError } from '../../base/errors.js';
import { isRecord } from '../../base/values.js';
import { documentText } from '../../config/document.js';
import type { Family } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { isAttention, walk } from '../../model/architecture/walk.js';
import { isHuggingFace } from './hugging-face/hugging-face-document.js';
import { readConfig } from './read-model-file.js';

/** Lines for a config. */
export interface RopeSettings {
  /** Method of the scaling. */
  readonly method: 'yarn';
  /** JSON for a `config.json` of Hugging Face, else YAML. */
  readonly format: 'yaml' | 'json';
  /** The lines. */
  readonly text: string;
}

interface Wanted {
  readonly context: number;
  readonly trained: number;
  readonly factor: number;
  /** Path of the config, or `<stdin>`. */
  readonly file: string;
  readonly family: Family;
  readonly model: LanguageModel;
}

/**
 * Settings with which the config describes a model with YaRN; null if its family has none.
 * @param load Model of the config with overrides.
 */
export async function yarnSettings(
  { context, trained, factor, file, family, model }: Wanted,
  load: (set: readonly string[]) => Promise<{ readonly model: LanguageModel }>,
): Promise<RopeSettings | null> {
  const scaling = { rope_type: 'yarn', factor, original_max_position_embeddings: trained };
  const lengths = model.positions < context ? { max_position_embeddings: context } : {};
  // MiniMind has a switch of its own.
  const values = {
    ...lengths,
    ...(family.name === 'minimind' && { inference_rope_scaling: true }),
    rope_scaling: scaling,
  };
  if (!(await isYarn(values, load))) return null;
  const json = await huggingFaceText(file, values);
  if (json === null) return null;
  return json === undefined
    ? { method: 'yarn', format: 'yaml', text: documentText({ model: values }).trimEnd() }
    : { method: 'yarn', format: 'json', text: json };
}

/** Whether a config with these values is valid, and describes YaRN. */
async function isYarn(
  values: Readonly<Record<string, unknown>>,
  load: (set: readonly string[]) => Promise<{ readonly model: LanguageModel }>,
): Promise<boolean> {
  try {
    const set = Object.entries(values).map(
      ([key, value]) => `model.${key}=${JSON.stringify(value)}`,
    );
    const { model } = await load(set);
    return walk(model).some(
      ({ layer }) => isAttention(layer) && layer.rotary?.scaling?.kind === 'yarn',
    );
  } catch (error) {
    if (error instanceof UserError) return false;
    throw error;
  }
}

/** Lines of a `config.json`; undefined for another config, null where its rotary settings are per layer. */
async function huggingFaceText(
  file: string,
  { rope_scaling: scaling, ...others }: Readonly<Record<string, unknown>>,
): Promise<string | undefined | null> {
  if (!/\.json$/i.test(file)) return undefined;
  const document = await readConfig(file);
  if (!isHuggingFace(document)) return undefined;
  const { rope_parameters: current } = document.value;
  const isCurrent = isRecord(current) && Object.keys(current).length > 0;
  if (isCurrent && Object.values(current).some(isRecord)) return null;
  const base = isCurrent && 'rope_theta' in current ? { rope_theta: current.rope_theta } : {};
  const entries = {
    ...others,
    [isCurrent ? 'rope_parameters' : 'rope_scaling']: { ...base, ...(scaling as object) },
  };
  return Object.entries(entries)
    .map(([key, value]) => `${JSON.stringify(key)}: ${JSON.stringify(value, null, 2)}`)
    .join(',\n');
}
