/** A model with the checkpoint of its weights, from one reference or from a config and `--checkpoint`. */
import path from 'node:path';
import { type Problem, type UserError, usageError } from '../../../base/errors.js';
import { pathKind } from '../../../base/files/mounted.js';
import type { ProgressDisplay } from '../../../base/progress-display.js';
import { setting } from '../../../base/text/setting.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { checkpointsIn, locateModel, type ModelPlace, type ModelReference } from '../locate.js';
import { type ModelFile, type ModelLoadOptions, modelOf } from '../model-file.js';
import { loadModelFile } from '../read-model-file.js';
import {
  checkpointAsConfig,
  checkpointWarnings,
  openFlaggedCheckpoint,
} from './checkpoint-config.js';
import { configFirst, configOf } from './required-config.js';
import { verifiedModel } from './verify-checkpoint.js';

export interface WeightFlags extends ModelLoadOptions {
  readonly checkpoint?: string | undefined;
  readonly stateDict?: string | undefined;
  /** Whether random weights take the place of a checkpoint. */
  readonly random?: boolean;
}

export interface WeightedModelFile {
  readonly loaded: ModelFile;
  /** Undefined for random weights. */
  readonly checkpoint: Checkpoint | undefined;
  readonly warnings: readonly Problem[];
  readonly close: () => void;
}

/**
 * Opens a model whose weights are needed. The caller closes it.
 * @throws UserError when there are no weights, or they do not match the config.
 */
export async function openWeighted(
  reference: ModelReference,
  flags: WeightFlags,
  display: ProgressDisplay,
): Promise<WeightedModelFile> {
  const place = locateModel(reference);
  const own = checkpointAsConfig(place, flags);
  let checkpoint = own;
  const close = () => checkpoint?.close();
  try {
    if (own && flags.random) throw hasWeights(place.path);
    const described = own
      ? await modelOf((await configOf(own, undefined, configFirst)).document, flags)
      : await loadModelFile(place, flags);
    checkpoint ??= openFlaggedCheckpoint(flags);
    if (!checkpoint) {
      if (!flags.random) throw hasNoWeights(described.file, place);
      return { loaded: described, checkpoint, warnings: described.warnings, close };
    }
    const { loaded, warnings } = await verifiedModel(described, checkpoint, display);
    return {
      loaded,
      checkpoint,
      warnings: [...described.warnings, ...checkpointWarnings(checkpoint), ...warnings],
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

const hasWeights = (file: string) =>
  usageError(
    `${file} is a checkpoint; ${setting('random')} requires a config`,
    `remove ${setting('random')}, or pass a config`,
  );

function hasNoWeights(file: string, { kind, config }: ModelPlace): UserError {
  const folder = path.dirname(config);
  const beside = kind !== 'stdin' && isFolder(folder) ? checkpointsIn(folder) : [];
  const [only] = beside.length === 1 ? beside : [];
  return usageError(
    `${file} is a config without weights`,
    only
      ? `write ${setting('checkpoint', path.join(folder, only))}, or ${setting('random')} for random weights`
      : `add ${setting('checkpoint', 'PATH')}, or ${setting('random')} for random weights`,
  );
}

/** Folders in which the text files of a model lie: that of its config, and that of its weights. */
export function foldersOf({
  loaded: { file },
  checkpoint,
}: {
  readonly loaded: Pick<ModelFile, 'file'>;
  readonly checkpoint: Pick<Checkpoint, 'path'> | undefined;
}): string[] {
  const files = [
    ...(file === '<stdin>' ? [] : [locateModel(file).config]),
    ...(checkpoint ? [checkpoint.path] : []),
  ];
  return [...new Set(files.map((each) => (isFolder(each) ? each : path.dirname(each))))];
}

const isFolder = (file: string) => pathKind(file) === 'folder';
