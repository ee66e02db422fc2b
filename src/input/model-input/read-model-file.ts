/** Reads the config of a model: the first step of every command that takes a FILE. */
import { UserError, usageError } from '../../base/errors.js';
import { hubSuggestion } from '../../base/text/hub-names.js';
import { commandText } from '../../base/text/setting.js';
import { type ConfigDocument, parseDocument } from '../../config/document.js';
import { quote } from '../../config/quote.js';
import { readDocument } from '../../config/read.js';
import { isFamilyName } from '../../model/architecture/families.js';
import { presetsOfSize } from '../published/published-models.js';
import { locateModel, type ModelReference, presetAdvice, publishedPresetText } from './locate.js';
import { type LocatedModelFile, type ModelLoadOptions, modelOf } from './model-file.js';

/**
 * Reads a config with overrides, checks it, and describes its model.
 * @param source A path, a folder with a config, a preset, or `-` for stdin.
 * @throws UserError with every problem.
 */
export async function loadModelFile(
  source: ModelReference,
  options: ModelLoadOptions = {},
): Promise<LocatedModelFile> {
  return modelOf(await readConfig(source), options);
}

/**
 * The config at a path, in a folder, of a preset, or, with `-`, from stdin.
 * @throws UserError as `readDocument`.
 */
export async function readConfig(source: ModelReference): Promise<ConfigDocument> {
  const place = locateModel(source);
  const { path, config } = place;
  const text = place.kind === 'preset' ? publishedPresetText(place.preset) : undefined;
  if (place.kind === 'preset' && text !== undefined) return parseDocument(text, place.preset);
  try {
    return await readDocument(config, {
      isFound: config !== path,
      ...(place.kind === 'preset' && { name: place.preset }),
    });
  } catch (error) {
    throw isMissing(error) ? missingModel(path, error) : error;
  }
}

const isMissing = (error: unknown): error is UserError =>
  error instanceof UserError && error.code === 'usage' && error.message.startsWith('there is no');

/** Most models that an error lists. */
const MOST_LISTED = 6;

/** Models of about a size in place of a model; undefined for another text. */
function sizeAdvice(source: string): string | undefined {
  const presets = presetsOfSize(source);
  if (presets === undefined) return undefined;
  return presets.length === 0
    ? `name a model: no published one has about ${source} parameters; ${commandText('plan', [], { maxParameters: source })} finds the best shape`
    : `name a model: ${presets.slice(0, MOST_LISTED).join(', ')} have about ${source} parameters`;
}

/** The error of a missing file, with the preset or model of the hub that could be meant. */
function missingModel(source: string, cause: UserError): UserError {
  const message = `expected a config, a checkpoint or a preset, found no file ${quote(source, 200)}`;
  const suggestion =
    sizeAdvice(source) ??
    cause.suggestion ??
    // A name of the hub can be close to that of a preset.
    (isFamilyName(source.split('/')[0] ?? '') ? undefined : hubSuggestion(source)) ??
    presetAdvice(source);
  return usageError(message, suggestion, cause);
}
