/** The model of a line of `fit`, and the checks of the line that need it. */
import { UserError } from '../../base/errors.js';
import type { FitOptions } from '../../estimate/fit/fit-options.js';
import { requireTokens } from '../../estimate/fit/fit-request.js';
import { storedWeightFormat } from '../../estimate/fit/model-memory.js';
import type {
  CheckpointFlags,
  LoadedModel,
} from '../../input/model-input/checkpoint/checkpoint-model.js';
import { isAdapterPlace, locateModel } from '../../input/model-input/locate.js';
import { openModelSource } from '../../input/model-input/model-source.js';
import { asWhole, withOwnHead } from '../../input/model-input/whole-model.js';
import type { FitFlags } from '../flags/fit-flags.js';
import { sourceOf } from '../flags/flags.js';
import { causeOf } from '../line/line-mistake.js';

/** Flags of a model as they are parsed. */
type ModelLineFlags = CheckpointFlags & {
  readonly set?: readonly string[] | undefined;
  readonly 'state-dict'?: string | undefined;
};

/** @throws UserError as `openModelSource`. */
export async function modelToFit(file: string, flags: ModelLineFlags): Promise<LoadedModel> {
  const source = await openModelSource(file, sourceOf(flags));
  return withOwnHead(asWhole(await source.model(flags.set)));
}

/** Path of the model that an adapter runs with; the path itself where it is not an adapter. */
export async function withoutAdapter(file: string, note: (text: string) => void): Promise<string> {
  if (!isAdapterPlace(locateModel(file))) return file;
  const { adapterNote, basePathOf, readAdapter } = await import(
    '../../input/model-input/adapter-model.js'
  );
  const base = basePathOf(await readAdapter(file), (model) => `fit ${model}`);
  note(adapterNote(file, base));
  return base;
}

/** @throws UserError when the tokens of a request are more than the positions of the model of the line. */
export async function requireTokensOfLine(
  args: { readonly file?: string },
  flags: ModelLineFlags,
  options: FitOptions,
): Promise<void> {
  const { modelOfLine } = await import('../model-check.js');
  const loaded = await modelOfLine(args, sourceOf(flags));
  if (loaded === undefined) return;
  try {
    requireTokens(loaded, options);
  } catch (error) {
    const { promptTokens = 0, outputTokens = 0 } = options;
    const isLonger = promptTokens + outputTokens > loaded.model.positions;
    throw isLonger && error instanceof UserError ? causeOf(error) : error;
  }
}

/** Note on serving with weights in their stored type; undefined for the usual type. */
export function storedTypeNote(loaded: LoadedModel, flags: FitFlags): string | undefined {
  const stored = storedWeightFormat(loaded);
  if (!stored || flags.dtype !== undefined || (flags.for ?? 'serving') !== 'serving')
    return undefined;
  const label = loaded.quantization?.label ?? loaded.storedType;
  return `Serving in ${stored.dtype}: the weights are stored as ${label}.`;
}
