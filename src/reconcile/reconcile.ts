/** A description held against a checkpoint: what is wrong, what is only odd, and what would mend it. */
import type { Ignored, Reading, StoredShapes } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import { tensorsOf } from '../architecture/walk.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import { firstLike } from '../checkpoint/name-patterns.js';
import { prefixOf, type StoredName, type StoredNames, storedNames } from '../checkpoint/names.js';
import {
  type Sameness,
  samenessOfBytes,
  samenessOfPlaces,
  type Watch,
} from '../checkpoint/sharing.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import { faultsOf, namesOf, shapesOf } from './faults.js';
import type { FaultGroup, Note } from './notes.js';
import { groupFaults, keptByOthers, notesOf } from './notes.js';
import { type Suggestion, suggestionsFor } from './suggest.js';

/** A model, and how it would be with other values of its configuration. */
export interface Description {
  readonly model: LanguageModel;
  /** What others keep beside it: no fault of a checkpoint. */
  readonly ignored: readonly Ignored[];
  /** What a checkpoint shows of the configuration. */
  readonly readOff: (stored: StoredShapes) => readonly Reading[];
  /** Undefined when there is no valid configuration with these values. */
  readonly rebuild: (readings: readonly Reading[]) => LanguageModel | undefined;
}

export interface Reconciliation {
  /** Whether the checkpoint is as described. */
  readonly matches: boolean;
  /** What was taken off every name: `module.`; empty for nothing. */
  readonly prefix: string;
  /** Tensors that are not as described, like ones together. */
  readonly faults: readonly FaultGroup[];
  readonly notes: readonly Note[];
  readonly suggestions: readonly Suggestion[];
}

/**
 * Holds a checkpoint against a description. Reads the bytes of tensors that are one in the description, or
 * could be by the family's rules; of all others the index alone.
 * @throws UserError when reading fails, or names collide.
 */
export async function reconcile(
  description: Description,
  checkpoint: Checkpoint,
  watch?: Watch,
): Promise<Reconciliation> {
  const stored = splitNames(description, checkpoint);
  const sameness = await samenessOfBytes(groupsToCompare(description, stored.own), watch);
  return judge(description, checkpoint, stored, sameness);
}

/** `reconcile` without reading any tensor: whether values are the same is known from their places only. */
export function reconcileIndex(description: Description, checkpoint: Checkpoint): Reconciliation {
  return judge(description, checkpoint, splitNames(description, checkpoint), samenessOfPlaces);
}

/** The names of a checkpoint: those of a model, and those that others keep beside it. */
interface SplitNames {
  readonly all: StoredNames;
  readonly own: StoredNames;
  /** By what they are, in words. */
  readonly beside: ReadonlyMap<string, readonly StoredName[]>;
}

/** @throws UserError when names collide. */
function splitNames({ model, ignored }: Description, checkpoint: Checkpoint): SplitNames {
  const all = storedNames(checkpoint);
  const described = new Set(tensorsOf(model).flatMap(namesOf));
  const own = new Map<string, StoredName>();
  const beside = new Map<string, StoredName[]>();
  for (const [name, stored] of all) {
    const what = described.has(name) ? undefined : firstLike(name, ignored)?.what;
    if (what === undefined) own.set(name, stored);
    else if (beside.get(what)?.push(stored) === undefined) beside.set(what, [stored]);
  }
  return { all, own, beside };
}

function judge(
  { model, readOff, rebuild }: Description,
  checkpoint: Checkpoint,
  { all, own: stored, beside }: SplitNames,
  sameness: Sameness,
): Reconciliation {
  const readings = readOff(shapesOf(stored, (a, b) => sameness(a, b) === true));
  const likely = rebuild(readings);
  const faults = faultsOf(model, stored, sameness);
  return {
    matches: faults.length === 0,
    prefix: prefixOf(all),
    faults: groupFaults(faults),
    notes: [
      ...keptByOthers(beside),
      ...(faults.length === 0
        ? notesOf({ model, likely, format: checkpoint.format, stored, sameness })
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

/** Tensors that are one in the description, or in the one that the checkpoint suggests at its most shared. */
function groupsToCompare({ model, readOff, rebuild }: Description, stored: StoredNames) {
  const mostShared = rebuild(readOff(shapesOf(stored, () => true)));
  const tensors = [...tensorsOf(model), ...(mostShared ? tensorsOf(mostShared) : [])].filter(
    ({ aliases }) => aliases.length > 0,
  );
  const groups = new Map<string, Set<string>>();
  for (const names of tensors.map(namesOf)) {
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
