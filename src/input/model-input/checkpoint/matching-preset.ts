/** The preset or published model whose tensors a checkpoint without a config has. */
import { UserError } from '../../../base/errors.js';
import { isRecord } from '../../../base/values.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { reconcileIndex } from '../../../checkpoint/reconcile/reconcile.js';
import { FAMILY_NAMES } from '../../../model/architecture/families.js';
import { presetsOf } from '../../../model/architecture/presets.js';
import { publishedDocument, publishedModels } from '../../published/published-file.js';
import { loadModelFile } from '../read-model-file.js';
import { descriptionOf, findConfig } from './checkpoint-config.js';

/** `presetLike` of a checkpoint without a config; undefined with one, whether it can be read or not. */
export async function presetInstead(checkpoint: Checkpoint): Promise<string | undefined> {
  try {
    if (await findConfig(checkpoint, undefined)) return undefined;
  } catch (error) {
    if (error instanceof UserError) return undefined;
    throw error;
  }
  return presetLike(checkpoint);
}

/** Most models that are built and compared. */
const MOST_TRIED = 24;

/** Keys of the sizes that a tensor has as a dimension, in the configs of all families. */
const DIMENSIONS = ['vocab_size', 'hidden_size', 'n_embd', 'd_model', 'intermediate_size'] as const;

/** Keys of the number of layers. */
const DEPTHS = ['num_layers', 'num_hidden_layers', 'n_layer', 'n_layers'] as const;

/**
 * Name of the first preset, else of the first published model, that describes all tensors of a checkpoint; undefined
 * without one. Reads the index alone. Constants that no shape shows, such as those of RoPE, can still differ.
 */
export async function presetLike(checkpoint: Checkpoint): Promise<string | undefined> {
  const sizes = new Set([...checkpoint.tensors.values()].flatMap(({ shape }) => shape));
  const depth = depthOf([...checkpoint.tensors.keys()]);
  const names = candidates()
    .map(({ name, model }) => ({ name, equal: equalSizes(model, sizes, depth) }))
    .filter(({ equal }) => equal > 0)
    // A setting that is left out has the default of its family, which is not known before it is loaded.
    .sort((a, b) => b.equal - a.equal)
    .map(({ name }) => name);
  for (const name of names.slice(0, MOST_TRIED)) {
    if (await describes(name, checkpoint)) return name;
  }
  return undefined;
}

interface Candidate {
  readonly name: string;
  /** Settings of the model; those with the default of their family are absent. */
  readonly model: unknown;
}

function candidates(): readonly Candidate[] {
  const presets = FAMILY_NAMES.flatMap((family) =>
    presetsOf(family).map(({ name, document }) => ({
      name: `${family}/${name}`,
      model: document.model,
    })),
  );
  const published = publishedModels()
    .filter(({ row }) => row.preset === undefined)
    .map((each) => ({ name: each.preset, model: publishedDocument(each).model }));
  return [...presets, ...published];
}

/** Numbered layers: one more than the largest number after a name that ends in a plural, or in `h`. */
function depthOf(names: readonly string[]): number {
  const numbers = names.map((name) => Number(/(?:^|\.)(?:\w+s|h)\.(\d+)\./.exec(name)?.[1] ?? -1));
  return 1 + numbers.reduce((most, each) => Math.max(most, each), -1);
}

/** Number of sizes of a model that a checkpoint has, too; 0 if it has another one. */
function equalSizes(model: unknown, sizes: ReadonlySet<number>, depth: number): number {
  if (!isRecord(model)) return 0;
  const given = (keys: readonly string[]) =>
    keys.map((key) => model[key]).filter((value) => typeof value === 'number');
  const depths = given(DEPTHS);
  const widths = given(DIMENSIONS);
  // A gated network can be stored as one product of twice its width.
  const isEqual =
    depths.every((value) => value === depth) &&
    widths.every((value) => sizes.has(value) || sizes.has(2 * value));
  return isEqual ? depths.length + widths.length : 0;
}

async function describes(preset: string, checkpoint: Checkpoint): Promise<boolean> {
  try {
    return reconcileIndex(descriptionOf(await loadModelFile(preset)), checkpoint).matches;
  } catch (error) {
    // What cannot be compared is not like the preset.
    if (error instanceof UserError) return false;
    throw error;
  }
}
