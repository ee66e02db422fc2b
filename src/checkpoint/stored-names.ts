/** The tensors of a checkpoint under the names that a model gives them. */
import type { Checkpoint } from './checkpoint.js';
import { canonicalNames, layerNumber } from './names.js';
import { refusal } from './refusal.js';
import type { StoredTensor } from './stored-tensor.js';
import { tensorPlace } from './wording.js';

/** A tensor and its name in the file. */
export interface StoredName {
  readonly own: string;
  readonly tensor: StoredTensor;
}

/** By names without the prefixes of wrappers, those of safetensors metadata included. In the file's order. */
export type StoredNames = ReadonlyMap<string, StoredName>;

/** @throws UserError when two names become one without their prefixes, or when written as text. */
export function storedNames({ path, tensors, ambiguous, aliases }: Checkpoint): StoredNames {
  const [twice] = ambiguous;
  if (twice !== undefined) {
    throw refusal(path, {
      rule: 'names-keys',
      place: tensorPlace(twice),
      message: `the state dict also has a tensor under the integer ${twice}, which becomes the same name`,
      suggestion: 'save the state dict with texts as keys, each once',
    });
  }
  const stored = new Map<string, StoredName>();
  for (const [own, name] of canonicalNames([...tensors.keys(), ...aliases.keys()], path)) {
    const tensor = tensors.get(own) ?? tensors.get(aliases.get(own) ?? own);
    if (tensor) stored.set(name, { own, tensor });
  }
  return stored;
}

/** What the names of a file have in front of the model's own: `module.`; empty when nothing. */
export function prefixOf(stored: StoredNames): string {
  for (const [name, { own }] of stored) return own.endsWith(name) ? own.slice(0, -name.length) : '';
  return '';
}

/** The number n of a name `prefix.n.…`. */
export function numberUnder(prefix: string, name: string): number | undefined {
  if (!name.startsWith(`${prefix}.`)) return undefined;
  const from = prefix.length + 1;
  const to = name.indexOf('.', from);
  return to < 0 ? undefined : layerNumber(name.slice(from, to));
}

/** The numbers n of all names `prefix.n.…`, ascending. */
export function numbersUnder(prefix: string, names: Iterable<string>): number[] {
  const numbers = new Set<number>();
  for (const name of names) {
    const number = numberUnder(prefix, name);
    if (number !== undefined) numbers.add(number);
  }
  return [...numbers].sort((a, b) => a - b);
}
