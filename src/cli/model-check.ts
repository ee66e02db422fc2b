/** Checks of a proposed line that need its model: the keys of `--set`, and weights. */
import fs from 'node:fs';
import path from 'node:path';
import { downloadLine } from '../base/text/hub-names.js';
import type {
  CheckpointFlags,
  LoadedModel,
} from '../input/model-input/checkpoint/checkpoint-model.js';
import { checkpointsIn, locateModel, type ModelPlace } from '../input/model-input/locate.js';
import { openModelSource } from '../input/model-input/model-source.js';
import { asWhole } from '../input/model-input/whole-model.js';
import { ownRepository } from '../input/published/published-models.js';
import { LineMistake } from './line/line-mistake.js';

/** Names of arguments that are a model. */
const MODELS = ['file', 'model', 'config', 'path'] as const;

/** Inputs in place of the weights of a model. */
interface WeightFlags {
  readonly checkpoint?: string | undefined;
  readonly random?: boolean;
  readonly logits?: string | undefined;
  readonly probabilities?: string | undefined;
}

type Arguments = Readonly<Record<string, unknown>>;

/** The model of a line, if it can be read. */
function readableModel(args: Arguments): string | undefined {
  const model = MODELS.map((name) => args[name]).find((each) => typeof each === 'string');
  return model === undefined || model === '-' || model.startsWith('hf:') ? undefined : model;
}

/**
 * Reads the configs of a line with its settings.
 * @param args Its arguments by name, or a list of models.
 * @throws UserError for a key or a value that one of them does not take.
 */
export async function checkSettings(
  set: readonly string[] | undefined,
  args: Arguments,
): Promise<void> {
  if (set === undefined || set.length === 0) return;
  const own = readableModel(args);
  const listed = Object.keys(args).some((name) => name === '0') ? Object.values(args) : [own];
  for (const model of listed) {
    if (typeof model !== 'string' || model === '-' || model.startsWith('hf:')) continue;
    await (await openModelSource(model, {})).model(set);
  }
}

/** The model of a line; undefined for one of the hub, and for one that cannot be read: the command says why. */
export async function modelOfLine(
  args: Arguments,
  { set, ...flags }: CheckpointFlags & { readonly set?: readonly string[] | undefined },
): Promise<LoadedModel | undefined> {
  const model = readableModel(args);
  if (model === undefined) return undefined;
  try {
    return asWhole(await (await openModelSource(model, flags)).model(set));
  } catch {
    return undefined;
  }
}

/** @throws LineMistake for a config without weights, which the command of the line needs. */
export function checkWeights(
  words: readonly string[],
  { random, checkpoint, logits, probabilities }: WeightFlags,
  args: Arguments,
): void {
  const model = readableModel(args);
  const isGiven = [checkpoint, logits, probabilities].some((each) => each !== undefined);
  if (model === undefined || random || isGiven) return;
  const place = locateModel(model);
  if (place.kind === 'config' || place.kind === 'preset') throw withoutWeights(words, place);
}

/** The error for a published model, of which only the sizes are here; undefined for another one. */
export function withoutPublished(model: string): LineMistake | undefined {
  const place = locateModel(model);
  if (place.kind !== 'preset') return undefined;
  const repository = ownRepository(model)?.name;
  if (repository === undefined) return undefined;
  const folder = repository.slice(repository.indexOf('/') + 1);
  return new LineMistake(`${model}: expected a model with its weights, found its sizes`, [], {
    otherwise: `write ${downloadLine(repository)}, then name ./${folder}`,
  });
}

function withoutWeights(
  words: readonly string[],
  { path: model, config }: ModelPlace,
): LineMistake {
  const published = withoutPublished(model);
  if (published !== undefined) return published;
  const folder = path.dirname(config);
  const [beside, ...others] = fs.existsSync(folder) ? checkpointsIn(folder) : [];
  const own =
    beside === undefined || others.length > 0
      ? ['--random']
      : ['--checkpoint', path.join(folder, beside)];
  return new LineMistake(`${model} is a config without weights`, [{ words: [...words, ...own] }]);
}
