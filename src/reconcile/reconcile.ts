/** A description held against a checkpoint: what is wrong, what is only odd, and what would mend it. */
import type { Ignored, Reading, StoredShapes } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import { tensorsOf } from '../architecture/walk.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { StoredName, StoredNames } from '../checkpoint/names.js';
import { firstLike, prefixOf, storedNames } from '../checkpoint/names.js';
import type { Sameness, Watch } from '../checkpoint/sharing.js';
import { samenessOfBytes, samenessOfPlaces } from '../checkpoint/sharing.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import { counted, joined, shortened } from '../text/words.js';
import type { FaultKind, Said } from './faults.js';
import { faultsOf, namesOf, shapesOf } from './faults.js';
import type { FaultGroup, Note } from './notes.js';
import { groupFaults, keptByOthers, notesOf } from './notes.js';

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

// Changes that make faults vanish: each is tried, and only what helps is suggested.

/** A change, and what is left when it is made. */
export type Suggestion = {
  /** How many of the faults it explains, counted by tensors. */
  readonly explains: number;
  /** How many faults there are then. */
  readonly leaves: number;
} & (
  | { readonly kind: 'config'; readonly set: readonly Reading[] }
  /** Every name begins so, and none should. */
  | { readonly kind: 'rename'; readonly prefix: string }
);

interface Case {
  readonly stored: StoredNames;
  /** Faults now. */
  readonly faults: number;
  /** What the checkpoint shows. */
  readonly readings: readonly Reading[];
  readonly rebuild: (readings: readonly Reading[]) => LanguageModel | undefined;
  /** Faults of another description, or of other names. */
  readonly count: (model: LanguageModel, stored: StoredNames) => number;
  readonly model: LanguageModel;
}

function suggestionsFor(given: Case): Suggestion[] {
  if (given.faults === 0) return [];
  return [...configSuggestion(given), ...renameSuggestion(given)];
}

/** The fewest values of the config that explain as many faults as all that the checkpoint shows. */
function configSuggestion({ stored, faults, readings, rebuild, count }: Case): Suggestion[] {
  const leftBy = (tried: readonly Reading[]) => {
    const model = rebuild(tried);
    return model ? count(model, stored) : Number.POSITIVE_INFINITY;
  };
  const leaves = leftBy(readings);
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

/** `model.`: the first part of every name, where it is the same for all. */
function sharedPrefix(names: readonly string[]): string | undefined {
  const [first = ''] = names;
  const prefix = first.slice(0, first.indexOf('.') + 1);
  return prefix !== '' && names.every((name) => name.startsWith(prefix)) ? prefix : undefined;
}

// Words for the differences between a checkpoint and its description, in errors and in reports.

/** A value that the config and the config inside the checkpoint do not agree on. */
export interface ConfigDifference {
  /** `model.window_size`. */
  readonly path: string;
  readonly config: unknown;
  readonly checkpoint: unknown;
}

export const FAULT_NAMES = {
  'missing-layers': 'missing layers',
  'layer-gap': 'gap in layers',
  'extra-layers': 'extra layers',
  missing: 'missing',
  extra: 'extra',
  misshapen: 'misshapen',
  'wrong-dtype': 'wrong type',
  'not-tied': 'not tied',
  tied: 'wrongly tied',
} as const satisfies Record<FaultKind, string>;

/** `40 faults in 107 tensors`. */
export function faultCountText(faults: readonly FaultGroup[]): string {
  const faulty = faults.reduce((sum, { names }) => sum + names.length, 0);
  return `${counted(faults.length, 'fault')} in ${counted(faulty, 'tensor')}`;
}

/** A fault in a sentence without its tensors: `misshapen: described as [8], found F32 [9]`. */
export function faultText({ kind, expected, found }: FaultGroup): string {
  const said = [
    ...(expected ? [`described as ${saidText(expected)}`] : []),
    ...(found ? [`found ${saidText(found)}`] : []),
  ];
  return `${FAULT_NAMES[kind]}: ${said.join(', ')}`;
}

/** `F32 [64, 64]`, `values of embed_tokens.weight`, `32 layers`. */
export function saidText(said: Said): string {
  if (said.sameAs !== undefined) return `values of ${shortened(said.sameAs)}`;
  if (said.layers !== undefined) return counted(said.layers, 'layer');
  const shape = said.shape ? `[${said.shape.join(', ')}]` : '';
  return [said.dtype, shape].filter(Boolean).join(' ');
}

/** A suggestion in a sentence. */
export function adviceText(suggestion: Suggestion): string {
  if (suggestion.kind === 'rename') {
    return `every name begins with ${JSON.stringify(suggestion.prefix)}, which is none of the model’s: take it off.`;
  }
  const { set } = suggestion;
  const shows = joined(set.map((each) => each.shows));
  const keys = joined(set.map(({ path, value }) => `${path}: ${value}`));
  const convert = set.every(({ convertible }) => convertible) ? ', or convert the checkpoint' : '';
  return `${shows}: set ${keys}${convert}.`;
}

/** `config inside the checkpoint says model.window_size: 1024, not 7`. */
export const differenceText = ({ path, config, checkpoint }: ConfigDifference): string =>
  `config inside the checkpoint says ${path}: ${JSON.stringify(checkpoint)}, not ${JSON.stringify(config)}`;
