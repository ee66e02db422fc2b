import { FAMILY_NAMES, loadFamily } from '../architecture/families.js';
import { countParameters } from './parameters.js';

export interface PresetSummary {
  readonly name: string;
  readonly title: string;
  readonly parameters: number;
}

export interface FamilySummary {
  readonly name: string;
  readonly title: string;
  /** Whether a `config.json` of Hugging Face is read. */
  readonly huggingFace: boolean;
  readonly presets: readonly PresetSummary[];
}

/** Every family with its presets, each counted. */
export async function describeFamilies(): Promise<FamilySummary[]> {
  const families = await Promise.all(FAMILY_NAMES.map(loadFamily));
  return families.map(({ name, title, presets, schema, build, fromHuggingFace }) => ({
    name,
    title,
    huggingFace: fromHuggingFace !== undefined,
    presets: Object.entries(presets).map(([preset, { title, document }]) => ({
      name: preset,
      title,
      parameters: countParameters(build(schema.parse(document))).parameters,
    })),
  }));
}
