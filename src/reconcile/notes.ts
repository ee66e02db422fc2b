/** What is odd about a checkpoint, or left out of it, though it is as described. */
import type { LanguageModel } from '../architecture/layer.js';
import { stateDictOf, tensorsOf } from '../architecture/walk.js';
import type { CheckpointFormat } from '../checkpoint/checkpoint.js';
import type { StoredName, StoredNames } from '../checkpoint/stored-names.js';
import { isSameView } from '../checkpoint/stored-tensor.js';
import { namesOf } from './faults.js';
import type { Sameness } from './sameness.js';

export interface Note {
  /** A warning is of something that some program will stumble over. */
  readonly severity: 'warning' | 'note';
  readonly kind: 'buffers-left-out' | 'strict-load' | 'stored-again' | 'kept-by-others';
  /** The tensors that are meant. */
  readonly names: readonly string[];
  /** Bytes that are stored in vain. */
  readonly bytes?: number;
  /** What is kept by others, in words. */
  readonly what?: string;
}

/** @param beside Tensors that the model does without, by what they are. */
export const keptByOthers = (beside: ReadonlyMap<string, readonly StoredName[]>): Note[] =>
  Array.from(beside, ([what, stored]) => ({
    severity: 'note',
    kind: 'kept-by-others',
    names: stored.map(({ own }) => own),
    bytes: stored.reduce((total, { tensor }) => total + tensor.bytes, 0),
    what,
  }));

/** Of a checkpoint that is as described. */
export function notesOf(
  model: LanguageModel,
  format: CheckpointFormat,
  stored: StoredNames,
  sameness: Sameness,
): Note[] {
  return [
    // Files of safetensors have each tensor once, and nobody loads them otherwise.
    ...(format === 'safetensors' ? buffersLeftOut(model, stored) : strictLoad(model, stored)),
    ...storedAgain(model, stored, sameness),
  ];
}

function buffersLeftOut(model: LanguageModel, stored: StoredNames): Note[] {
  const names = tensorsOf(model)
    .filter(({ role }) => role === 'buffer')
    .filter((tensor) => !namesOf(tensor).some((name) => stored.has(name)))
    .map(({ name }) => name);
  return names.length > 0 ? [{ severity: 'note', kind: 'buffers-left-out', names }] : [];
}

/** Names that PyTorch asks for, further names of one tensor and buffers included. */
function strictLoad(model: LanguageModel, stored: StoredNames): Note[] {
  const names = stateDictOf(model)
    .map(({ name }) => name)
    .filter((name) => !stored.has(name));
  return names.length > 0 ? [{ severity: 'warning', kind: 'strict-load', names }] : [];
}

/** Copies of a tensor that the description has once. */
function storedAgain(model: LanguageModel, stored: StoredNames, sameness: Sameness): Note[] {
  const copies = tensorsOf(model).flatMap((tensor) => {
    const [first, ...others] = namesOf(tensor).flatMap((name) => stored.get(name) ?? []);
    return others.filter(
      (other) =>
        first !== undefined &&
        !isSameView(first.tensor, other.tensor) &&
        sameness(first.tensor, other.tensor) === true,
    );
  });
  if (copies.length === 0) return [];
  return [
    {
      severity: 'note',
      kind: 'stored-again',
      names: copies.map(({ own }) => own),
      bytes: copies.reduce((total, { tensor }) => total + tensor.bytes, 0),
    },
  ];
}
