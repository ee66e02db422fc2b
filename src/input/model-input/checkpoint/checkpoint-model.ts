/** A model loaded from a checkpoint: its config, and whether the tensors match it. */

import type { Problem } from '../../../base/errors.js';
import { commandText, setting } from '../../../base/text/setting.js';
import { counted, joined } from '../../../base/text/words.js';
import { sumOf } from '../../../base/values.js';
import {
  type Checkpoint,
  type CheckpointPath,
  tensorsOfFile,
} from '../../../checkpoint/checkpoint.js';
import type { CheckpointFormat } from '../../../checkpoint/formats.js';
import type { StoredName } from '../../../checkpoint/names.js';
import { storedNames } from '../../../checkpoint/names.js';
import { parameterNames, quantizedPart } from '../../../checkpoint/reconcile/faults.js';
import { type IgnoredTensors, ignoredIn } from '../../../checkpoint/reconcile/ignored-tensors.js';
import type { FaultGroup } from '../../../checkpoint/reconcile/notes.js';
import type { Reconciliation, Suggestion } from '../../../checkpoint/reconcile/reconcile.js';
import { reconcileIndex } from '../../../checkpoint/reconcile/reconcile.js';
import { equalByBytes } from '../../../checkpoint/sharing.js';
import { isSameView, storedTypeOf } from '../../../checkpoint/stored-tensor.js';
import type { Totals } from '../../../checkpoint/summary.js';
import { summarise } from '../../../checkpoint/summary.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import { tensorsOf } from '../../../model/architecture/walk.js';
import { ggufTypeOf, openModelCheckpoint } from '../gguf/gguf-checkpoint.js';
import type { ModelFile } from '../model-file.js';
import { modelOf } from '../model-file.js';
import type { ConfigOrigin } from './checkpoint-config.js';
import {
  adjustedToCheckpoint,
  checkpointWarnings,
  descriptionOf,
  withoutHead,
} from './checkpoint-config.js';
import { configOf } from './required-config.js';
import { faultProblems, listedText } from './verify-checkpoint.js';

/** Facts of the checkpoint that a model was loaded from, by its index. */
export interface CheckpointFacts {
  /** Path of the checkpoint as the user wrote it. */
  readonly file: string;
  /** Format of the checkpoint. */
  readonly format: CheckpointFormat;
  /** Keys that lead to the dict of the tensors; empty when it is the whole. */
  readonly stateDict: readonly string[];
  /** The config of the model. */
  readonly config: {
    /** Path of the config. */
    readonly file: string;
    readonly origin: ConfigOrigin;
  };
  /** Whether names, shapes and types match the config; no tensor was read. */
  readonly matches: boolean;
  /** Differences from the config, in groups. */
  readonly faults: readonly FaultGroup[];
  /** Fixes, the best first. */
  readonly suggestions: readonly Suggestion[];
  readonly totals: Totals;
  /** Whether its weights are packed in a layout that the config does not describe: only the file shows their size. */
  readonly isPacked?: true;
  /** Tensors that transformers ignores, where there are some. */
  readonly ignored?: IgnoredTensors;
}

/** A model, and its checkpoint if it was loaded from one. */
export interface LoadedModel extends ModelFile {
  readonly checkpoint?: CheckpointFacts;
  /** Type of a tensor as the checkpoint stores it: `bf16`, `q4_k`; undefined where it is missing. */
  readonly typeOf?: (tensor: Param) => string | undefined;
  /** The `warnings` about parts of the checkpoint other than its language model. */
  readonly leftOutWarnings?: readonly Problem[];
}

/** An input that was read once: standard input cannot be read again. */
export interface ModelSource {
  /**
   * The model with overrides.
   * @param options.isChecked Whether to check the tensors of a checkpoint against the model.
   * @throws UserError with every problem.
   */
  model(
    set: readonly string[] | undefined,
    options?: { readonly isChecked?: boolean },
  ): Promise<LoadedModel>;
}

export interface CheckpointFlags {
  /** Config that replaces the checkpoint's own. */
  readonly config?: string | undefined;
  readonly stateDict?: string | undefined;
  /** See `ModelLoadOptions.family`. */
  readonly family?: string | undefined;
}

/**
 * Reads the index and the config of a checkpoint. A mismatch between them is a warning.
 * @throws UserError when the checkpoint is refused, or has no valid config.
 */
export async function openCheckpointModel(
  { path, listing }: CheckpointPath,
  flags: CheckpointFlags,
): Promise<ModelSource> {
  const open = () => openModelCheckpoint(path, { stateDict: flags.stateDict, listing });
  const checkpoint = open();
  try {
    const { document, origin } = await configOf(checkpoint, flags.config);
    const config = { file: document.file, origin };
    // Only the index of the open checkpoint is used below.
    return {
      model: async (set, { isChecked = true } = {}) => {
        const whole = await modelOf(document, { set, family: flags.family });
        const described = withoutHead(adjustedToCheckpoint(whole, checkpoint), checkpoint);
        const storedType = ggufTypeOf(checkpoint);
        const loaded = { ...described, file: path, ...(storedType && { storedType }) };
        return isChecked ? comparedWithIndex(checkpoint, config, loaded, open) : loaded;
      },
    };
  } finally {
    checkpoint.close();
  }
}

async function comparedWithIndex(
  checkpoint: Checkpoint,
  config: CheckpointFacts['config'],
  loaded: ModelFile,
  open: () => Checkpoint,
): Promise<LoadedModel> {
  const { path } = checkpoint;
  const result = reconcileIndex(descriptionOf(loaded), checkpoint);
  const leftOutWarnings = warningsOfLeftOut(path, loaded);
  return {
    ...loaded,
    leftOutWarnings,
    warnings: [
      ...loaded.warnings,
      ...leftOutWarnings,
      ...checkpointWarnings(checkpoint),
      ...mismatches(path, result, config.file),
      ...(await countedOnce(checkpoint, loaded, open)),
    ],
    checkpoint: found(checkpoint, result, config, loaded),
    typeOf: typesIn(checkpoint),
  };
}

function typesIn(checkpoint: Checkpoint) {
  const stored = storedNames(checkpoint);
  return (tensor: Param) => {
    const [first] = parameterNames(tensor).flatMap((name) => stored.get(name) ?? []);
    return first && storedTypeOf(first.tensor).toLowerCase();
  };
}

/** Parts of the checkpoint outside the described language model. */
function warningsOfLeftOut(file: string, { textOf, leftOut = [] }: ModelFile): Problem[] {
  if (leftOut.length === 0) return [];
  const parts = leftOut.map(
    ({ name, parameters }) => `${name} with ${counted(parameters, 'parameter')}`,
  );
  const message = `left out of ${textOf}: ${joined(parts)}`;
  return [{ severity: 'warning', file, message }];
}

function found(
  checkpoint: Checkpoint,
  { matches, faults, suggestions, notes }: Reconciliation,
  config: CheckpointFacts['config'],
  { quantization }: Pick<ModelFile, 'quantization'>,
): CheckpointFacts {
  const { path: file, format, stateDict } = checkpoint;
  const tensors = tensorsOfFile(checkpoint);
  const { totals } = summarise({ ...checkpoint, tensors });
  const ignored = ignoredIn(notes);
  const found = { file, format, stateDict, config, matches, faults, suggestions, totals };
  const isPacked =
    quantization === undefined &&
    faults.some(({ kind, names: [name = ''] }) => kind === 'extra' && quantizedPart(name));
  return { ...found, ...(isPacked && { isPacked }), ...(ignored && { ignored }) };
}

/** Maximum bytes read to compare the copies of a tied tensor. */
const COMPARED_BYTES = 64 * 2 ** 20;

/**
 * Warnings about tied tensors that the file also stores under a second name, unless the values are equal: transformers
 * unties a head whose stored values differ.
 */
async function countedOnce(
  checkpoint: Checkpoint,
  { model }: ModelFile,
  open: () => Checkpoint,
): Promise<Problem[]> {
  const copies = copiesIn(checkpoint, model);
  if (copies.length === 0) return [];
  const bytes = sumOf(copies, ([first]) => first.tensor.bytes);
  const isFar = bytes > COMPARED_BYTES || checkpoint.files.some(({ isRemote }) => isRemote);
  const isEqual = isFar ? [] : await comparedIn(open(), model);
  return copies.flatMap(([first, other], at): Problem[] => {
    if (isEqual[at] === true) return [];
    const isCompared = isEqual[at] === false;
    const found = isCompared ? `has other values than ${first.own}` : `is stored with ${first.own}`;
    const doubt = isCompared ? '' : '; their values were not compared';
    return [
      {
        severity: 'warning',
        file: checkpoint.path,
        path: other.own,
        message: `${found}, and is counted once with it, because the config ties them${doubt}`,
        suggestion: isCompared
          ? 'set tie_word_embeddings to false to count both, as transformers loads them'
          : `${commandText('verify')} compares their values; if they differ, the model has both`,
      },
    ];
  });
}

/** Tied tensors with two separate copies in a file. */
function copiesIn(
  checkpoint: Checkpoint,
  model: LanguageModel,
): (readonly [StoredName, StoredName])[] {
  const stored = storedNames(checkpoint);
  return tensorsOf(model).flatMap((tensor) => {
    const [first, ...others] = parameterNames(tensor).flatMap((name) => stored.get(name) ?? []);
    const other = first && others.find((each) => !isSameView(first.tensor, each.tensor));
    return first && other ? [[first, other] as const] : [];
  });
}

/** Whether each of the copies in a checkpoint has the values of the first. Closes the checkpoint. */
async function comparedIn(checkpoint: Checkpoint, model: LanguageModel) {
  try {
    const pairs = copiesIn(checkpoint, model).map((pair) => pair.map(({ tensor }) => tensor));
    const isSame = await equalByBytes(pairs);
    return pairs.map(([a, b]) => a && b && isSame(a, b));
  } finally {
    checkpoint.close();
  }
}

/** Further faults are only counted. */
const MAX_LISTED_FAULTS = 3;

function mismatches(file: string, { faults }: Reconciliation, config: string): Problem[] {
  if (faults.length === 0) return [];
  const more = listedText(faults, MAX_LISTED_FAULTS);
  return [
    {
      severity: 'warning',
      file,
      message: `does not match ${config}: ${faults.length} ${faults.length === 1 ? 'fault' : 'faults'}${more}`,
      suggestion: `see them all with ${setting('json')}`,
    },
    ...faultProblems(file, faults, 'warning', MAX_LISTED_FAULTS),
  ];
}
