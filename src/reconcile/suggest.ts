/** Changes that make faults vanish: each is tried, and only what helps is suggested. */
import type { Reading } from '../architecture/family.js';
import type { LanguageModel } from '../architecture/layer.js';
import type { StoredName, StoredNames } from '../checkpoint/names.js';

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

export function suggestionsFor(given: Case): Suggestion[] {
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
