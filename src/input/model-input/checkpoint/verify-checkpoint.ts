/** A checkpoint checked against a config, and its faults as problems. */

import { type Problem, type Severity, UserError } from '../../../base/errors.js';
import type { Progress, ProgressDisplay } from '../../../base/progress-display.js';
import { isSameShape } from '../../../base/tensor/dtype.js';
import { commandText } from '../../../base/text/setting.js';
import { shortened } from '../../../base/text/words.js';
import { sumOf } from '../../../base/values.js';
import type { LoraAdapter } from '../../../checkpoint/adapter/adapter.js';
import { type Checkpoint, tensorsOfFile } from '../../../checkpoint/checkpoint.js';
import { distanceBetween, relativeError, roundingLimit } from '../../../checkpoint/distance.js';
import type { CheckpointFormat } from '../../../checkpoint/formats.js';
import { firstOfPattern, type StoredNames, storedNames } from '../../../checkpoint/names.js';
import {
  adviceText,
  configDifferenceText,
  faultCountText,
  faultText,
} from '../../../checkpoint/reconcile/fault-texts.js';
import { parameterNames } from '../../../checkpoint/reconcile/faults.js';
import { ignoredIn, ignoredText } from '../../../checkpoint/reconcile/ignored-tensors.js';
import { type FaultGroup, groupFaults } from '../../../checkpoint/reconcile/notes.js';
import {
  type ConfigDifference,
  type Reconciliation,
  reconcile,
} from '../../../checkpoint/reconcile/reconcile.js';
import { viewsOf } from '../../../checkpoint/sharing.js';
import {
  isSameView,
  type StoredBytes,
  type StoredTensor,
  storedTypeOf,
} from '../../../checkpoint/stored-tensor.js';
import type { ConfigDocument } from '../../../config/document.js';
import { isIgnoredOnLoad } from '../../../model/architecture/family.js';
import type { Param } from '../../../model/architecture/param.js';
import { describedLayer, tensorsOf } from '../../../model/architecture/walk.js';
import { adapterFaults } from '../adapter-model.js';
import { type ModelFile, type ModelLoadOptions, modelOf } from '../model-file.js';
import type { OnnxView } from '../onnx/onnx-tensors.js';
import { scanValues, type ValueScan } from '../scan-values.js';
import {
  adjustedToCheckpoint,
  checkpointWarnings,
  descriptionOf,
  embeddedConfigDifferences,
  ignoredTensors,
  withoutHead,
} from './checkpoint-config.js';

export interface VerifyResult extends Reconciliation {
  /** Path of the config as the user wrote it; `<stdin>` for `-`. */
  readonly config: string;
  /** Path of the checkpoint as the user wrote it. */
  readonly checkpoint: string;
  /** Family of the model. */
  readonly family: string;
  /** Format of the checkpoint. */
  readonly format: CheckpointFormat;
  /** Keys that lead to the dict of the tensors; empty when it is the whole. */
  readonly stateDict: readonly string[];
  /** Whether the model is described and no engine runs it; absent where one does. */
  readonly isNotRun?: true;
  /** Numbers of tensors. */
  readonly counts: {
    /** Tensors of the description, each once. @count */
    readonly described: number;
    /** Names in the checkpoint. @count */
    readonly stored: number;
    /** Tensors in the checkpoint, tied ones once, as `inspect` and `convert-checkpoint` count them. @count */
    readonly tensors: number;
    /** Names with a fault. @count */
    readonly faulty: number;
  };
  /** Values of the config that differ from the config in the checkpoint. */
  readonly configDifferences: readonly ConfigDifference[];
  /** Search for values that are not finite; absent for adapters, and where tensors do not match. */
  readonly scan?: ValueScan;
}

/**
 * Whether the tensors of a checkpoint are those of its config.
 * @answer minimind verify --json
 */
export interface VerifyAnswer extends VerifyResult {
  readonly schema: 'minimind/verify@1';
  /** Comparison with the values of another checkpoint; absent without `--values`. */
  readonly values?: ValueComparison;
  /** How an ONNX graph stores the tensors of the model. */
  readonly onnx?: OnnxView;
}

interface VerifySurroundings {
  readonly display: ProgressDisplay;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
}

/**
 * Checks an open checkpoint against a config.
 * @param options.strict Whether warnings count as mismatches.
 * @param options.scan Whether to search values of any size for NaN, also those of the hub.
 * @throws UserError when the config is not valid, or reading fails.
 */
export async function verifyCheckpoint(
  checkpoint: Checkpoint,
  document: ConfigDocument,
  options: ModelLoadOptions & { readonly scan?: boolean | undefined },
  { display, warn }: VerifySurroundings,
): Promise<VerifyResult> {
  const described = await modelOf(document, options);
  await warn(described.warnings);
  await warn(checkpointWarnings(checkpoint));
  const loaded = withoutHead(adjustedToCheckpoint(described, checkpoint), checkpoint);
  const reconciliation = await reconciled(loaded, checkpoint, display);
  const configDifferences = await embeddedConfigDifferences(loaded, checkpoint);
  // Wrong tensors are found first: their values mean nothing.
  const scan = reconciliation.matches
    ? await scanValues(loaded.model, checkpoint, { all: options.scan === true, display })
    : undefined;
  const hasWarnings =
    checkpoint.warnings.length > 0 ||
    configDifferences.length > 0 ||
    reconciliation.notes.some(({ severity }) => severity === 'warning');
  return {
    config: loaded.file,
    checkpoint: checkpoint.path,
    family: loaded.family.name,
    format: checkpoint.format,
    stateDict: checkpoint.stateDict,
    ...(describedLayer(loaded.model) && { isNotRun: true as const }),
    counts: {
      described: tensorsOf(loaded.model).length,
      stored: tensorsOfFile(checkpoint).size + checkpoint.aliases.size,
      tensors: viewsOf(tensorsOfFile(checkpoint)).length,
      faulty: sumOf(reconciliation.faults, ({ names }) => names.length),
    },
    ...reconciliation,
    matches:
      reconciliation.matches && (scan?.bad ?? []).length === 0 && !(options.strict && hasWarnings),
    configDifferences,
    ...(scan && { scan }),
  };
}

/** Checks an adapter against the description of its model. */
export function verifiedAdapter(loaded: ModelFile, adapter: LoraAdapter): VerifyResult {
  const { checkpoint } = adapter;
  const faults = groupFaults(adapterFaults(loaded.model, adapter));
  return {
    config: loaded.file,
    checkpoint: checkpoint.path,
    family: loaded.family.name,
    format: checkpoint.format,
    stateDict: [],
    counts: {
      described: adapter.modules.length + adapter.replaced.size,
      stored: checkpoint.tensors.size,
      tensors: viewsOf(checkpoint.tensors).length,
      faulty: sumOf(faults, ({ names }) => names.length),
    },
    matches: faults.length === 0,
    prefix: '',
    faults,
    notes: [],
    suggestions: [],
    configDifferences: [],
  };
}

/** Runs `reconcile` with progress: comparing large equal tables takes time. */
async function reconciled(
  loaded: ModelFile,
  checkpoint: Checkpoint,
  display: ProgressDisplay,
): Promise<Reconciliation> {
  let shown: Progress | undefined;
  try {
    return await reconcile(descriptionOf(loaded), checkpoint, (totalBytes) => {
      shown = display.bytes('comparing', totalBytes);
      return shown.add;
    });
  } finally {
    shown?.end();
  }
}

/** The first `most` faults as problems of the file, one per group. */
export const faultProblems = (
  file: string,
  faults: readonly FaultGroup[],
  severity: Severity,
  most: number,
): Problem[] =>
  faults.slice(0, most).map((fault) => {
    const message = faultText(fault) + (fault.hint === null ? '' : ` (${fault.hint})`);
    return { severity, file, path: shortened(fault.pattern), message };
  });

/** Text about more than `most` faults. */
export const listedText = (faults: readonly FaultGroup[], most: number): string =>
  faults.length > most ? `, of which ${most} are listed here` : '';

/** Further faults are only counted: they indicate another model. */
const MAX_LISTED_FAULTS = 40;

/** @throws UserError with the faults and their likely causes, if there are any. */
function refuseFaults(
  { path: file }: Checkpoint,
  config: string,
  { faults, suggestions }: Reconciliation,
): void {
  if (faults.length === 0) return;
  const more = listedText(faults, MAX_LISTED_FAULTS);
  throw new UserError(
    'usage',
    `${file} does not match ${config}: ${faultCountText(faults)}${more}`,
    {
      problems: faultProblems(file, faults, 'error', MAX_LISTED_FAULTS),
      suggestion:
        suggestions.map(adviceText).join(' ') ||
        `name the config that it was made with; ${commandText('verify')} compares the two`,
    },
  );
}

/**
 * A model adjusted to the checkpoint with its weights.
 * @throws UserError when the two do not match.
 */
export async function verifiedModel(
  described: ModelFile,
  checkpoint: Checkpoint,
  display: ProgressDisplay,
): Promise<{ readonly loaded: ModelFile; readonly warnings: readonly Problem[] }> {
  const loaded = adjustedToCheckpoint(described, checkpoint);
  const reconciliation = await reconciled(loaded, checkpoint, display);
  refuseFaults(checkpoint, loaded.file, reconciliation);
  sayIgnored(reconciliation, display);
  return { loaded, warnings: await differenceWarnings(loaded, checkpoint) };
}

/** A line about the tensors that transformers ignores, as does a run here. */
function sayIgnored({ notes }: Reconciliation, display: ProgressDisplay): void {
  const ignored = ignoredIn(notes);
  if (ignored === undefined) return;
  const shown = display.steps();
  shown.say(ignoredText(ignored));
  shown.end();
}

/** Warnings about different values in the config inside the checkpoint, where tensors do not reveal them. */
async function differenceWarnings(loaded: ModelFile, checkpoint: Checkpoint): Promise<Problem[]> {
  const differences = await embeddedConfigDifferences(loaded, checkpoint);
  return differences.map((each) => ({
    severity: 'warning',
    file: checkpoint.path,
    message: configDifferenceText(each),
  }));
}

// The values of a checkpoint against those of the checkpoint that it was made from.

/** Tensors of one type, and how far they are from the original's. */
export interface TypeDifference {
  /** `Q4_K` */
  readonly type: string;
  /** Number of tensors. @integer */
  readonly tensors: number;
  /** ‖original − stored‖ / ‖original‖ of the tensor that is furthest away. @real */
  readonly relativeError: number;
  /** Largest error that rounding to this type explains. */
  readonly limit: number;
  /** The tensor that is furthest away. */
  readonly worst: string;
}

export interface ValueComparison {
  /** Path of the other checkpoint. */
  readonly original: string;
  /** Compared tensors. @integer */
  readonly compared: number;
  /** Names that only one of the two has. */
  readonly missing: readonly string[];
  /** Names that only one of the two has, and transformers ignores; other containers have no place for them. */
  readonly ignored: readonly string[];
  /** Tensors of another shape, or beyond the limit of their type. */
  readonly beyond: readonly string[];
  /** Those of another shape, whose values are not compared. */
  readonly reshaped: readonly string[];
  /** Tensors of another type than in the original. */
  readonly types: readonly TypeDifference[];
}

/** Names to match the tensors of a checkpoint and its original by. */
interface NamingOptions {
  /** Names of the checkpoint for equal copies of tied tensors, which the original need not store. */
  readonly copies?: ReadonlySet<string>;
  /** The model of both: tensors can have other names, and several, on one side. */
  readonly described?: ModelFile;
}

/**
 * Compares all tensors that both have.
 * @throws UserError when reading fails, or a type has no values that can be read.
 */
export async function compareValues(
  checkpoint: Checkpoint,
  original: Checkpoint,
  display: ProgressDisplay,
  { copies = new Set(), described }: NamingOptions = {},
): Promise<ValueComparison> {
  const [stored, source] = [storedNames(checkpoint), storedNames(original)];
  const { matched, missing: alone } = matchedTensors(
    new Map([...stored].filter(([name, { own }]) => source.has(name) || !copies.has(own))),
    source,
    described && namesOnBothSides(described, checkpoint, original),
  );
  const isIgnored = ignoredNames(described);
  const ignored = alone.filter(isIgnored);
  const missing = alone.filter((name) => !ignored.includes(name));
  const [pairs, others] = [true, false].map((isSame) =>
    matched.filter(({ tensor, other }) => isSameShape(tensor.shape, other.shape) === isSame),
  ) as [MatchedTensor[], MatchedTensor[]];
  const shown = display.bytes(
    'comparing values',
    sumOf(pairs, ({ other }) => other.bytes),
  );
  const types = new Map<string, TypeDifference>();
  const reshaped = others.map(({ name }) => name);
  const beyond = [...reshaped];
  try {
    for (const { name, tensor, other } of pairs) {
      const type = storedTypeOf(tensor);
      const error = relativeError(await distanceBetween(other, tensor, shown.add));
      const limit = roundingLimit(type);
      if (error > limit) beyond.push(name);
      const known = types.get(type) ?? { type, tensors: 0, relativeError: -1, limit, worst: '' };
      const isWorst = error > known.relativeError;
      types.set(type, {
        ...known,
        tensors: known.tensors + 1,
        ...(isWorst && { relativeError: error, worst: name }),
      });
    }
  } finally {
    shown.end();
  }
  return {
    original: original.path,
    compared: pairs.length,
    missing,
    ignored,
    beyond,
    reshaped,
    types: [...types.values()],
  };
}

/** Whether transformers ignores a tensor that the described model does not have. */
function ignoredNames(described: ModelFile | undefined): (name: string) => boolean {
  if (described === undefined) return () => false;
  const ignored = ignoredTensors(described).filter(isIgnoredOnLoad);
  return (name) => firstOfPattern(name, ignored) !== undefined;
}

/** A tensor of a checkpoint, and that of its original. */
interface MatchedTensor {
  readonly name: string;
  readonly tensor: StoredTensor;
  readonly other: StoredTensor;
}

type NamesOfBoth = Record<'stored' | 'source', ReadonlyMap<string, readonly string[]>>;

/** Tensors of both sides by their names; a name that one side lacks, by another name of the described tensor. */
function matchedTensors(
  stored: StoredNames,
  source: StoredNames,
  names: NamesOfBoth | undefined,
): { readonly matched: readonly MatchedTensor[]; readonly missing: readonly string[] } {
  const matched: MatchedTensor[] = [];
  const missing: string[] = [];
  const known = new Map<StoredBytes, MatchedTensor[]>();
  const match = (each: MatchedTensor) => {
    matched.push(each);
    const others = known.get(each.tensor.storage);
    if (others) others.push(each);
    else known.set(each.tensor.storage, [each]);
  };
  const isKnown = (tensor: StoredTensor, other: StoredTensor) =>
    known
      .get(tensor.storage)
      ?.some((each) => isSameView(each.tensor, tensor) && isSameView(each.other, other));
  const lacking: (readonly [string, StoredTensor | undefined, StoredTensor | undefined])[] = [];
  const under = (all: StoredNames, list: readonly string[] = []) =>
    list.flatMap((each) => all.get(each)?.tensor ?? [])[0];
  for (const [name, { tensor }] of stored) {
    const other = source.get(name)?.tensor;
    if (other) match({ name, tensor, other });
    else lacking.push([name, tensor, under(source, names?.source.get(name))]);
  }
  for (const [name, { tensor }] of source) {
    if (!stored.has(name)) lacking.push([name, under(stored, names?.stored.get(name)), tensor]);
  }
  for (const [name, tensor, other] of lacking) {
    if (!tensor || !other) missing.push(name);
    else if (!isKnown(tensor, other)) match({ name, tensor, other });
  }
  return { matched, missing };
}

/** For each name of a described tensor, its names in the checkpoint and in the original. */
function namesOnBothSides(
  described: ModelFile,
  checkpoint: Checkpoint,
  original: Checkpoint,
): NamesOfBoth {
  const [own, theirs] = [checkpoint, original].map((each) =>
    tensorsOf(adjustedToCheckpoint(described, each).model),
  ) as [Param[], Param[]];
  const names: Record<keyof NamesOfBoth, Map<string, string[]>> = {
    stored: new Map(),
    source: new Map(),
  };
  // The programs that wrote them may have split or joined tensors.
  if (own.some(({ shape }, at) => !isSameShape(shape, theirs[at]?.shape ?? []))) return names;
  for (const [at, param] of own.entries()) {
    const other = theirs[at] ?? param;
    for (const name of [...parameterNames(param), ...parameterNames(other)]) {
      names.stored.set(name, parameterNames(param));
      names.source.set(name, parameterNames(other));
    }
  }
  return names;
}
