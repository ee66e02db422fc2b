/** What is odd about a checkpoint, or left out of it, though it is as described. */
import { distance } from 'fastest-levenshtein';
import type { LanguageModel } from '../architecture/layer.js';
import { stateDictOf, tensorsOf } from '../architecture/walk.js';
import type { CheckpointFormat } from '../checkpoint/formats.js';
import type { Alike, StoredName, StoredNames, Template } from '../checkpoint/names.js';
import { groupAlike, templateOf } from '../checkpoint/names.js';
import type { Sameness } from '../checkpoint/sharing.js';
import { isSameView } from '../checkpoint/stored-tensor.js';
import { isSameShape } from '../tensor/dtype.js';
import { sumOf } from '../text/words.js';
import type { Fault, FaultKind, Said } from './faults.js';
import { FAULT_KINDS, namesOf, quantizedPart } from './faults.js';

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
    bytes: sumOf(stored, ({ tensor }) => tensor.bytes),
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
  const bytes = sumOf(copies, ({ tensor }) => tensor.bytes);
  return [{ severity: 'note', kind, names: copies.map(({ own }) => own), bytes }];
}

// The same fault in many layers, told once.

/** One fault, of one tensor or of the tensors that a pattern names. */
export interface FaultGroup {
  readonly kind: FaultKind;
  /** `norm.weight`, `layers.{0–31}.srte.freqs`; of whole layers `layers.{24–31}`. */
  readonly pattern: string;
  /** As the file has them; as the description has them when they are missing. */
  readonly names: readonly string[];
  readonly expected: Said | null;
  readonly found: Said | null;
  readonly hint: string | null;
}

/** Kinds of faults that are of layers as a whole. */
const OF_LAYERS: ReadonlySet<FaultKind> = new Set(['missing-layers', 'layer-gap', 'extra-layers']);

/** Faults that are told together. */
type Draft = Alike<Fault>;

/** In the order of `FAULT_KINDS`, then of the faults. */
export function groupFaults(faults: readonly Fault[]): FaultGroup[] {
  const drafts = groupAlike(faults, (fault) => ({
    template: templateOfFault(fault),
    key: JSON.stringify([fault.kind, fault.expected, fault.found]),
  }));
  const ordered = FAULT_KINDS.flatMap((kind) => drafts.filter(({ first }) => first.kind === kind));
  const hints = hintsOf(ordered);
  return ordered.map((draft) => ({
    kind: draft.first.kind,
    pattern: draft.pattern,
    names: draft.members.map(({ own }) => own),
    expected: draft.first.expected,
    found: draft.first.found,
    hint: hints.get(draft) ?? null,
  }));
}

function templateOfFault({ kind, name }: Fault): Template {
  const whole = templateOf(name);
  return OF_LAYERS.has(kind) ? { ...whole, after: '' } : whole;
}

/** More groups than this are of another model, and hints would only cost time. */
const MOST_HINTS = 200;

/** What may have happened, where that can be told from one group. */
function hintsOf(drafts: readonly Draft[]): Map<Draft, string> {
  const hints = new Map<Draft, string>();
  const missing = drafts.filter(({ first }) => first.kind === 'missing').slice(0, MOST_HINTS);
  for (const draft of drafts.slice(0, MOST_HINTS)) {
    const { kind, expected, found } = draft.first;
    if (kind === 'misshapen' && isTransposed(expected, found)) hints.set(draft, 'transposed');
    if (kind !== 'extra') continue;
    const quantized = quantizedPart(draft.first.name);
    if (quantized) {
      hints.set(draft, `${quantized}: the file is quantized`);
      continue;
    }
    const near = nearest(draft, missing);
    if (near) hints.set(draft, `near ${near.pattern}, which is missing`);
  }
  return hints;
}

function isTransposed(expected: Said | null, found: Said | null): boolean {
  return isSameShape(expected?.shape ?? [], (found?.shape ?? []).toReversed());
}

/** The missing tensors that an extra one was most likely meant to be: at most a quarter of it may differ. */
function nearest(extra: Draft, missing: readonly Draft[]): Draft | undefined {
  const wanted = textOf(extra);
  let best: Draft | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of missing) {
    const text = textOf(candidate);
    const allowed = Math.floor(Math.max(wanted.length, text.length) / 4);
    if (Math.abs(wanted.length - text.length) > allowed) continue;
    const letters = distance(wanted, text);
    if (letters > allowed) continue;
    // Of equally near names, the one of the same shape.
    const shapes = [extra.first.found?.shape ?? [], candidate.first.expected?.shape ?? []] as const;
    const away = letters + (isSameShape(...shapes) ? 0 : 0.5);
    if (away < least) [best, least] = [candidate, away];
  }
  return best;
}

const textOf = ({ template: { before, after } }: Draft) => `${before}#${after}`;
