/** The two compared models: located, opened with their weights, and run on the same tokens. */
import os from 'node:os';
import path from 'node:path';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { Problem } from '../errors.js';
import { UserError } from '../errors.js';
import { checkpointWarnings, findConfig } from '../model-input/checkpoint-config.js';
import { openModelCheckpoint } from '../model-input/gguf/gguf-checkpoint.js';
import { configPath, hasWeights, isCheckpointPath } from '../model-input/locate.js';
import type { ModelFile } from '../model-input/model-file.js';
import { loadModelFile, modelOf } from '../model-input/model-file.js';
import { verifiedModel } from '../model-input/verify-checkpoint.js';
import type { ProgressDisplay } from '../progress-display.js';
import { checkpointWeights } from '../runtime/weights.js';
import type { AgainstRequest, ModelComparison, RanModel } from './compare-outputs.js';
import { compareOutputs } from './compare-outputs.js';

/** A model and the source of its weights. */
export interface ComparedModel {
  readonly loaded: ModelFile;
  /** An open checkpoint; undefined for random weights. */
  readonly checkpoint: Checkpoint | undefined;
}

export interface OpenedModel extends ComparedModel {
  readonly warnings: readonly Problem[];
}

/**
 * Opens the other model from a checkpoint or a config. A checkpoint without a config uses the model's own. A config has
 * random weights, unless the model has a checkpoint's and a checkpoint is next to the config.
 * @throws UserError when it cannot be read, or does not match its config. Everything is closed then.
 */
export async function openComparedModel(
  source: string,
  own: ComparedModel,
  display: ProgressDisplay,
): Promise<OpenedModel> {
  if (source === '-' && own.loaded.file === '<stdin>') {
    throw new UserError('usage', 'standard input cannot be read twice', {
      suggestion: 'name a file for one of the two models',
    });
  }
  if (isCheckpointPath(source)) return checkpointSide(source, own.loaded, display);
  const loaded = await loadModelFile(source);
  const folder = path.dirname(configPath(source));
  return own.checkpoint && source !== '-' && hasWeights(folder)
    ? checkpointSide(folder, loaded, display, loaded)
    : { loaded, checkpoint: undefined, warnings: loaded.warnings };
}

/**
 * Opens a checkpoint with its own config.
 * @param otherwise Config to use when it has none.
 * @param named Config that takes precedence.
 */
export async function checkpointSide(
  source: string,
  otherwise: ModelFile,
  display: ProgressDisplay,
  named?: ModelFile,
): Promise<OpenedModel> {
  const checkpoint = openModelCheckpoint(source);
  try {
    const config = named ? undefined : await findConfig(checkpoint, undefined);
    const described = named ?? (config ? await modelOf(config.document) : otherwise);
    const held = await verifiedModel(described, checkpoint, display);
    const warnings = [
      ...(described === otherwise ? [] : described.warnings),
      ...checkpointWarnings(checkpoint),
      ...held.warnings,
    ];
    return { loaded: held.loaded, checkpoint, warnings };
  } catch (error) {
    checkpoint.close();
    throw error;
  }
}

type Wishes = Omit<AgainstRequest, 'own' | 'other' | 'threads' | 'watch' | 'notice'> & {
  readonly threads: number | undefined;
};

/** One of the two models after its run. */
export interface ComparedRun extends RanModel {
  /** Path of the config as given. */
  readonly file: string;
  readonly family: string;
  /** The checkpoint with the weights; null for random weights. */
  readonly checkpoint: string | null;
}

export interface TwoModelComparison extends ModelComparison {
  readonly own: ComparedRun;
  readonly other: ComparedRun;
}

/**
 * Runs both.
 * @throws UserError as `compareOutputs`.
 */
export async function compareTwoModels(
  own: ComparedModel,
  other: ComparedModel,
  wishes: Wishes,
  display: ProgressDisplay,
): Promise<TwoModelComparison> {
  const toRun = ({ loaded: { model }, checkpoint }: ComparedModel) => ({
    model,
    weights: checkpoint && checkpointWeights(model, checkpoint),
  });
  const shown = display.steps();
  try {
    const found = await compareOutputs({
      ...wishes,
      own: toRun(own),
      other: toRun(other),
      threads: wishes.threads ?? os.availableParallelism(),
      watch: shown.doing,
      notice: shown.say,
    });
    return {
      ...found,
      own: { ...namesOf(own), ...found.own },
      other: { ...namesOf(other), ...found.other },
    };
  } finally {
    shown.end();
  }
}

const namesOf = ({ loaded: { file, family }, checkpoint }: ComparedModel) => ({
  file,
  family: family.name,
  checkpoint: checkpoint?.path ?? null,
});
