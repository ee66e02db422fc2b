/** What is odd about a checkpoint, or left out of it, though it is as described. */
import type { LanguageModel } from '../architecture/layer.js';
import { stateDictOf, tensorsOf } from '../architecture/walk.js';
import type { CheckpointFormat } from '../checkpoint/checkpoint.js';
import type { Sameness } from '../checkpoint/sameness.js';
import type { StoredName, StoredNames } from '../checkpoint/stored-names.js';
import { isSameView } from '../checkpoint/stored-tensor.js';
import { namesOf } from './faults.js';

export interface Note {
  /** A warning is of something that some program will stumble over. */
  readonly severity: 'warning' | 'note';
  readonly kind:
    | 'buffers-left-out'
    | 'strict-load'
    | 'stored-again'
    | 'equal-values'
    | 'kept-by-others';
  /** The tensors that are meant. */
  readonly names: readonly string[];
  /** Bytes that sharing would save, or that others keep. */
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

interface Described {
  readonly model: LanguageModel;
  /** The description that the checkpoint itself suggests, where there is one. */
  readonly likely: LanguageModel | undefined;
  readonly format: CheckpointFormat;
  readonly stored: StoredNames;
  readonly sameness: Sameness;
}

/** Notes on a checkpoint without faults. */
export function notesOf({ model, likely, format, stored, sameness }: Described): Note[] {
  const again = copiesOf(model, stored, sameness);
  const equal = (likely ? copiesOf(likely, stored, sameness) : []).filter(
    (copy) => !again.includes(copy),
  );
  return [
    // A safetensors file holds each tensor once, and its loaders expect that.
    ...(format === 'safetensors' ? buffersLeftOut(model, stored) : strictLoad(model, stored)),
    ...copyNote('stored-again', again),
    ...copyNote('equal-values', equal),
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

/** Stored copies of tensors that `model` has once. */
function copiesOf(model: LanguageModel, stored: StoredNames, sameness: Sameness): StoredName[] {
  return tensorsOf(model).flatMap((tensor) => {
    const [first, ...others] = namesOf(tensor).flatMap((name) => stored.get(name) ?? []);
    return others.filter(
      (other) =>
        first !== undefined &&
        !isSameView(first.tensor, other.tensor) &&
        sameness(first.tensor, other.tensor) === true,
    );
  });
}

function copyNote(kind: 'stored-again' | 'equal-values', copies: readonly StoredName[]): Note[] {
  if (copies.length === 0) return [];
  const bytes = copies.reduce((total, { tensor }) => total + tensor.bytes, 0);
  return [{ severity: 'note', kind, names: copies.map(({ own }) => own), bytes }];
}
