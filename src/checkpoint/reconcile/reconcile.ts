/** Compares a checkpoint with a model description: faults, notes and suggested fixes. */
import type { Ignored, ReadSetting, StoredShapes } from '../../model/architecture/family.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { tensorsOf } from '../../model/architecture/walk.js';
import type { Checkpoint } from '../checkpoint.js';
import type { StoredName, StoredNames } from '../names.js';
import { firstOfPattern, prefixOf, storedNames } from '../names.js';
import type { ComparisonProgress, TensorEquality } from '../sharing.js';
import { equalByBytes, equalByLocation } from '../sharing.js';
import type { StoredTensor } from '../stored-tensor.js';

import { faultsOf, parameterNames, shapesOf } from './faults.js';
import { type IgnoredTensors, ignoredIn } from './ignored-tensors.js';
import type { FaultGroup, ReconciliationNote } from './notes.js';
import { extraTensorNotes, groupFaults, ignoredNotes, reconciliationNotes } from './notes.js';

/** A model, and a way to rebuild it with other config values. */
export interface Description {
  readonly model: LanguageModel;
  /** Tensors that other programs store with the model; they are not faults. */
  readonly ignored: readonly Ignored[];
  /** Reads config values from the tensors of a checkpoint. */
  readonly readOff: (stored: StoredShapes) => readonly ReadSetting[];
  /** Rebuilds the model with these config values; undefined if they are not valid. */
  readonly rebuild: (readings: readonly ReadSetting[]) => LanguageModel | undefined;
}

export interface Reconciliation {
  /** Whether the checkpoint is as described; with --strict, without a warning too. */
  readonly matches: boolean;
  /** Prefix removed from every name: `module.`; may be empty. */
  readonly prefix: string;
  /** Tensors that differ from the description, equal ones grouped. */
  readonly faults: readonly FaultGroup[];
  /** Oddities and omissions of a checkpoint that is as described. */
  readonly notes: readonly ReconciliationNote[];
  /** Fixes, the best first. */
  readonly suggestions: readonly Suggestion[];
}

/**
 * Compares a checkpoint with a description. Reads the bytes of tensors that are tied in the description, or
 * could be by the rules of the family; for all others only the index.
 * @throws UserError if reading fails, or two names are equal.
 */
export async function reconcile(
  description: Description,
  checkpoint: Checkpoint,
  watch?: ComparisonProgress,
): Promise<Reconciliation> {
  // Values are not downloaded only to compare copies.
  if (checkpoint.files.some(({ isRemote }) => isRemote))
    return reconcileIndex(description, checkpoint);
  const stored = splitNames(description, checkpoint);
  const sameness = await equalByBytes(groupsToCompare(description, stored.own), watch);
  return judgeTensors(description, checkpoint, stored, sameness);
}

/** Variant of `reconcile` that reads no tensors: only locations decide whether values are equal. */
export function reconcileIndex(description: Description, checkpoint: Checkpoint): Reconciliation {
  return judgeTensors(
    description,
    checkpoint,
    splitNames(description, checkpoint),
    equalByLocation,
  );
}

/** Tensors that transformers ignores, by the index alone; undefined without any. */
export const ignoredInIndex = (
  description: Pick<Description, 'model' | 'ignored'>,
  checkpoint: Checkpoint,
): IgnoredTensors | undefined =>
  ignoredIn(ignoredNotes(splitNames(description, checkpoint).ignored));

/** Names of a checkpoint: those of the model, and those of extra tensors. */
interface SplitNames {
  readonly all: StoredNames;
  readonly own: StoredNames;
  /** Extra tensors, by purpose. */
  readonly beside: ReadonlyMap<string, readonly StoredName[]>;
  /** Extra tensors that transformers ignores, by its regular expression. */
  readonly ignored: ReadonlyMap<RegExp, readonly StoredName[]>;
}

/** @throws UserError if two names are equal. */
function splitNames(
  { model, ignored }: Pick<Description, 'model' | 'ignored'>,
  checkpoint: Checkpoint,
): SplitNames {
  const all = storedNames(checkpoint);
  const described = new Set(tensorsOf(model).flatMap(parameterNames));
  const own = new Map<string, StoredName>();
  const beside = new Map<string, StoredName[]>();
  const onLoad = new Map<RegExp, StoredName[]>();
  for (const [name, stored] of all) {
    const entry = described.has(name) ? undefined : firstOfPattern(name, ignored);
    if (entry === undefined) own.set(name, stored);
    else if (entry.pattern instanceof RegExp) added(onLoad, entry.pattern, stored);
    else added(beside, entry.what, stored);
  }
  return { all, own, beside, ignored: onLoad };
}

function added<Kind>(kinds: Map<Kind, StoredName[]>, kind: Kind, stored: StoredName): void {
  if (kinds.get(kind)?.push(stored) === undefined) kinds.set(kind, [stored]);
}

function judgeTensors(
  { model, readOff, rebuild }: Description,
  checkpoint: Checkpoint,
  { all, own: stored, beside, ignored }: SplitNames,
  sameness: TensorEquality,
): Reconciliation {
  const readings = readOff(shapesOf(stored, (a, b) => sameness(a, b) === true));
  const likely = rebuild(readings);
  const faults = faultsOf(model, stored, sameness);
  return {
    matches: faults.length === 0,
    prefix: prefixOf(all),
    faults: groupFaults(faults),
    notes: [
      ...ignoredNotes(ignored),
      ...extraTensorNotes(beside),
      ...(faults.length === 0
        ? reconciliationNotes({ model, likely, format: checkpoint.format, stored, sameness })
        : []),
    ],
    suggestions: suggestionsFor({
      model,
      stored,
      faults: faults.length,
      readings,
      rebuild,
      count: (other, names) => faultsOf(other, names, sameness).length,
    }),
  };
}

/**
 * Groups of tensors that are tied in the description, or in the model with all possible ties that the
 * checkpoint suggests.
 */
function groupsToCompare({ model, readOff, rebuild }: Description, stored: StoredNames) {
  const mostShared = rebuild(readOff(shapesOf(stored, () => true)));
  const tensors = [...tensorsOf(model), ...(mostShared ? tensorsOf(mostShared) : [])].filter(
    ({ aliases }) => aliases.length > 0,
  );
  const groups = new Map<string, Set<string>>();
  for (const names of tensors.map(parameterNames)) {
    const met = new Set(names.flatMap((name) => groups.get(name) ?? []));
    const group = new Set([...met].flatMap((other) => [...other]));
    for (const name of names) group.add(name);
    for (const name of group) groups.set(name, group);
  }
  return [...new Set(groups.values())].map((names) =>
    [...names].flatMap((name): StoredTensor[] => {
      const found = stored.get(name);
      return found ? [found.tensor] : [];
    }),
  );
}

// Suggested fixes. Each is tried, and only those that reduce the faults are returned.

/** A fix, with the number of faults before and after. */
export type Suggestion = {
  /** Number of faults that it removes, counted by tensors. @count */
  readonly explains: number;
  /** Tensors with a fault that would be left. @count */
  readonly leaves: number;
} & (
  | {
      /** A change of the config. */
      readonly kind: 'config';
      /** Values of the config to change. */
      readonly set: readonly ReadSetting[];
    }
  /** A prefix that every name has and should not have. */
  | {
      /** Another prefix of the names. */
      readonly kind: 'rename';
      /** Prefix of every name, which should not be there. */
      readonly prefix: string;
    }
);

interface Case {
  readonly stored: StoredNames;
  /** Number of faults without a fix. */
  readonly faults: number;
  /** Config values read from the checkpoint. */
  readonly readings: readonly ReadSetting[];
  readonly rebuild: (readings: readonly ReadSetting[]) => LanguageModel | undefined;
  /** Counts the faults for another description or other names. */
  readonly count: (model: LanguageModel, stored: StoredNames) => number;
  readonly model: LanguageModel;
}

function suggestionsFor(reconciled: Case): Suggestion[] {
  if (reconciled.faults === 0) return [];
  return [...configSuggestion(reconciled), ...renameSuggestion(reconciled)];
}

/** The smallest set of config values that removes the same number of faults as all values read from the checkpoint. */
function configSuggestion({ stored, faults, readings, rebuild, count }: Case): Suggestion[] {
  const leftBy = (tried: readonly ReadSetting[]) => {
    const model = rebuild(tried);
    return model ? count(model, stored) : Number.POSITIVE_INFINITY;
  };
  const leaves = readings.length === 0 ? faults : leftBy(readings);
  if (leaves >= faults) return [];
  let set = readings;
  for (const reading of readings) {
    const without = set.filter((other) => other !== reading);
    if (leftBy(without) <= leaves) set = without;
  }
  return [{ kind: 'config', set, explains: faults - leaves, leaves }];
}

function renameSuggestion({ stored, faults, count, model }: Case): Suggestion[] {
  const prefix = sharedPrefix([...stored.keys()]);
  if (prefix === undefined) return [];
  const renamed = new Map<string, StoredName>();
  for (const [name, tensor] of stored) renamed.set(name.slice(prefix.length), tensor);
  const leaves = count(model, renamed);
  return leaves < faults ? [{ kind: 'rename', prefix, explains: faults - leaves, leaves }] : [];
}

/** `model.`: the first name part, if it is equal for all names. */
function sharedPrefix(names: readonly string[]): string | undefined {
  const [first = ''] = names;
  const prefix = first.slice(0, first.indexOf('.') + 1);
  return prefix !== '' && names.every((name) => name.startsWith(prefix)) ? prefix : undefined;
}

// Text for the differences between a checkpoint and its description, in errors and reports.

/** A config value that differs from the config inside the checkpoint. */
export interface ConfigDifference {
  /** `model.window_size`. */
  readonly path: string;
  /** Value in the config. */
  readonly config: unknown;
  /** Value in the config inside the checkpoint. */
  readonly checkpoint: unknown;
}
