/** Parameter counts of families' presets, and of other forms of a model. */
import { FAMILY_NAMES, loadFamily } from '../architecture/families.js';
import type { Family } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import { hybrid } from '../architecture/models/hybrid.js';
import { LimitError } from '../architecture/param.js';
import { primitivesOf } from '../operations/lower.js';
import type { Primitive } from '../operations/primitive.js';
import { countParameters } from './parameters.js';
import { compareSrte, PUBLISHED_RANKS } from './srte-comparison.js';

export interface PresetSummary {
  readonly name: string;
  readonly title: string;
  readonly parameters: number;
}

/** What a family's models are, by the layers of its default or first preset; a mixture has experts. */
export type Architecture = 'dense' | 'mixture' | 'hybrid' | 'recurrent';

export interface FamilySummary {
  readonly name: string;
  readonly title: string;
  readonly architecture: Architecture;
  /** Whether a `config.json` of Hugging Face is read. */
  readonly huggingFace: boolean;
  readonly presets: readonly PresetSummary[];
}

/** Every family with its presets and their counts. */
export async function describeFamilies(): Promise<FamilySummary[]> {
  const families = await Promise.all(FAMILY_NAMES.map(loadFamily));
  return families.map(({ name, title, presets, schema, build, fromHuggingFace }) => ({
    name,
    title,
    architecture: architectureOf(build(exampleOf(name, schema, presets))),
    huggingFace: fromHuggingFace !== undefined,
    presets: Object.entries(presets).map(([preset, { title, document }]) => ({
      name: preset,
      title,
      parameters: countParameters(build(schema.parse(document))).parameters,
    })),
  }));
}

/** The default document, or the first preset where the defaults are none. */
function exampleOf(name: string, schema: Family['schema'], presets: Family['presets']): unknown {
  const standard = schema.safeParse({ model: { family: name } });
  return standard.success ? standard.data : schema.parse(Object.values(presets)[0]?.document);
}

/** What a model is, by the primitives of its layers. */
export function architectureOf(model: LanguageModel): Architecture {
  const kinds = new Set<string>(primitivesOf(model).map(({ kind }) => kind));
  const attends = kinds.delete('scores');
  const isRecurrent = [...kinds].some((kind) => !STATELESS.includes(kind));
  if (isRecurrent) return attends ? 'hybrid' : 'recurrent';
  return kinds.has('router') ? 'mixture' : 'dense';
}

/** Primitives without a state; any other keeps one from token to token. */
const STATELESS: readonly string[] = [
  'matmul',
  'router',
  'lookup',
  'norm',
  'dispatch',
  'elementwise',
] satisfies Primitive['kind'][];

// Counts of other forms or parts of a model: rows of a published comparison

/** A number of parameters and its meaning. */
export interface KnownCount {
  /** Stable identifier for programs: `preset-recommended`. */
  readonly id: string;
  readonly text: string;
  readonly value: bigint;
}

/**
 * Counts of the model's components and the family's presets. For the hybrid family, also the other SRTE settings
 * with their savings. Excludes the model's own total.
 */
export function knownCounts(family: Family, document: unknown, model: LanguageModel): KnownCount[] {
  const { parameters: own, byComponent } = countParameters(model);
  return [
    ...Object.entries(byComponent).map(([component, value]) =>
      known(`component-${component}`, `the parameters of ${component} alone`, value),
    ),
    ...presetCounts(family),
    ...srteCounts(family, document),
  ].filter(({ value }) => value > 0n && value !== BigInt(own));
}

const known = (id: string, text: string, value: number): KnownCount => ({
  id,
  text,
  value: BigInt(value),
});

function presetCounts({ name: family, presets, schema, build }: Family): KnownCount[] {
  return Object.entries(presets).flatMap(([name, { document }]) => {
    try {
      const { parameters } = countParameters(build(schema.parse(document)));
      return [
        known(`preset-${name}`, `the parameters of the preset ${family}/${name}`, parameters),
      ];
    } catch (error) {
      if (error instanceof LimitError) return [];
      throw error;
    }
  });
}

function srteCounts(family: Family, document: unknown): KnownCount[] {
  if (family.name !== hybrid.name) return [];
  const { model: config } = hybrid.schema.parse(document);
  const { rows } = compareSrte(config, { dtype: 'bf16', ranks: PUBLISHED_RANKS });
  return rows.flatMap(({ id, label, parameters, srteParameters, savedParameters }) => [
    known(`srte-${id}`, `the parameters of this model with the SRTE "${label}"`, parameters),
    known(`srte-${id}-alone`, `the SRTE of "${label}" alone`, srteParameters),
    known(
      `srte-${id}-saved`,
      `the parameters that "${label}" saves against the unshared model`,
      savedParameters ?? 0,
    ),
  ]);
}
