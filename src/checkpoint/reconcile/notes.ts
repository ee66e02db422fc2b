/** Notes on a checkpoint that matches its description: unusual or missing tensors. */
import { distance } from 'fastest-levenshtein';
import { isSameShape } from '../../base/tensor/dtype.js';
import { sumOf } from '../../base/values.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { stateDictOf, tensorsOf } from '../../model/architecture/walk.js';
import type { CheckpointFormat } from '../formats.js';
import type { NameGroup, StoredName, StoredNames, Template } from '../names.js';
import { groupByPattern, templateOf } from '../names.js';
import type { TensorEquality } from '../sharing.js';
import { isSameView } from '../stored-tensor.js';
import type { Fault, FaultKind, TensorProperties } from './faults.js';
import { FAULT_KINDS, parameterNames, quantizedPart } from './faults.js';

export interface ReconciliationNote {
  /** A warning is for a problem in some other program. */
  readonly severity: 'warning' | 'note';
  /** Kind of the note. */
  readonly kind:
    | 'buffers-left-out'
    | 'strict-load'
    | 'stored-again'
    | 'equal-values'
    | 'kept-by-others'
    | 'ignored-by-transformers';
  /** Names of the tensors. */
  readonly names: readonly string[];
  /** Bytes that sharing would save, or that extra tensors take. @count */
  readonly bytes?: number;
  /** Purpose of the extra tensors. */
  readonly what?: string;
  /** Names of ignored tensors, those of equal parts as one: `mtp.*`, `layers.{20–29}.self_attn.k_proj.weight`. */
  readonly patterns?: readonly string[];
}

/**
 * Tensors that transformers' class ignores when it loads a checkpoint: they are not parameters of the model.
 * @param ignored Tensors by the regular expression that matches them.
 */
export function ignoredNotes(
  ignored: ReadonlyMap<RegExp, readonly StoredName[]>,
): ReconciliationNote[] {
  const stored = [...ignored.values()].flat();
  if (stored.length === 0) return [];
  return [
    {
      severity: 'note',
      kind: 'ignored-by-transformers',
      names: stored.map(({ own }) => own),
      bytes: sumOf(stored, ({ tensor }) => tensor.bytes),
      patterns: patternsOf(ignored),
    },
  ];
}

/** Common beginning of several names of a kind, `mtp.*`, where that shows the kind; else patterns of the names. */
function patternsOf(ignored: ReadonlyMap<RegExp, readonly StoredName[]>): string[] {
  const starts: string[] = [];
  const listed: string[] = [];
  for (const [expression, stored] of ignored) {
    const names = stored.map(({ own }) => own);
    const start = startOf(names);
    if (namePatterns(names).length > 1 && expression.test(start)) starts.push(`${start}*`);
    else listed.push(...names);
  }
  return [...starts, ...namePatterns(listed)];
}

const namePatterns = (names: readonly string[]): string[] =>
  groupByPattern(names, (name) => ({ template: templateOf(name), key: '' })).map(
    ({ pattern }) => pattern,
  );

/** The characters that all names begin with. */
function startOf([first = '', ...others]: readonly string[]): string {
  let end = first.length;
  for (const name of others) {
    let same = 0;
    while (same < end && name[same] === first[same]) same++;
    end = same;
  }
  return first.slice(0, end);
}

/** @param extras Tensors that the model does not need, by purpose. */
export const extraTensorNotes = (
  extras: ReadonlyMap<string, readonly StoredName[]>,
): ReconciliationNote[] =>
  Array.from(extras, ([what, stored]) => ({
    severity: 'note',
    kind: 'kept-by-others',
    names: stored.map(({ own }) => own),
    bytes: sumOf(stored, ({ tensor }) => tensor.bytes),
    what,
  }));

interface ReadCheckpoint {
  readonly model: LanguageModel;
  /** Model that the checkpoint suggests, if any. */
  readonly likely: LanguageModel | undefined;
  readonly format: CheckpointFormat;
  readonly stored: StoredNames;
  readonly sameness: TensorEquality;
}

/** Notes on a checkpoint without faults. */
export function reconciliationNotes({
  model,
  likely,
  format,
  stored,
  sameness,
}: ReadCheckpoint): ReconciliationNote[] {
  const again = copiesOf(model, stored, sameness);
  const equal = (likely ? copiesOf(likely, stored, sameness) : []).filter(
    (copy) => !again.includes(copy),
  );
  return [
    // A safetensors file contains each tensor once, as its loaders expect.
    ...(format === 'safetensors' ? buffersLeftOut(model, stored) : strictLoad(model, stored)),
    ...copyNote('stored-again', again),
    ...copyNote('equal-values', equal),
  ];
}

function buffersLeftOut(model: LanguageModel, stored: StoredNames): ReconciliationNote[] {
  const names = tensorsOf(model)
    .filter(({ role }) => role === 'buffer')
    .filter((tensor) => !parameterNames(tensor).some((name) => stored.has(name)))
    .map(({ name }) => name);
  return names.length > 0 ? [{ severity: 'note', kind: 'buffers-left-out', names }] : [];
}

/** Names that a strict load in PyTorch requires, aliases and buffers included. */
function strictLoad(model: LanguageModel, stored: StoredNames): ReconciliationNote[] {
  const names = stateDictOf(model)
    .map(({ name }) => name)
    .filter((name) => !stored.has(name));
  return names.length > 0 ? [{ severity: 'warning', kind: 'strict-load', names }] : [];
}

/** Copies in the file of tensors that `model` shares. */
function copiesOf(
  model: LanguageModel,
  stored: StoredNames,
  sameness: TensorEquality,
): StoredName[] {
  return tensorsOf(model).flatMap((tensor) => {
    const [first, ...others] = parameterNames(tensor).flatMap((name) => stored.get(name) ?? []);
    return others.filter(
      (other) =>
        first !== undefined &&
        !isSameView(first.tensor, other.tensor) &&
        sameness(first.tensor, other.tensor) === true,
    );
  });
}

function copyNote(
  kind: 'stored-again' | 'equal-values',
  copies: readonly StoredName[],
): ReconciliationNote[] {
  if (copies.length === 0) return [];
  const bytes = sumOf(copies, ({ tensor }) => tensor.bytes);
  return [{ severity: 'note', kind, names: copies.map(({ own }) => own), bytes }];
}

// Groups of equal faults in several layers.

/** A fault of one tensor, or of all tensors that match a pattern. */
export interface FaultGroup {
  /** Kind of the fault. */
  readonly kind: FaultKind;
  /** `norm.weight`, `layers.{0–31}.srte.freqs`; for complete layers `layers.{24–31}`. */
  readonly pattern: string;
  /** Names in the file; in the description if the tensors are missing. */
  readonly names: readonly string[];
  /** Properties by the description; null where it has no such tensor. */
  readonly expected: TensorProperties | null;
  /** Properties in the file; null where it has no such tensor. */
  readonly found: TensorProperties | null;
  /** Possible cause. */
  readonly hint: string | null;
}

/** Fault kinds of complete layers. */
const OF_LAYERS: ReadonlySet<FaultKind> = new Set(['missing-layers', 'layer-gap', 'extra-layers']);

type Draft = NameGroup<Fault>;

/** Groups sorted by `FAULT_KINDS`, then by the order of the faults. */
export function groupFaults(faults: readonly Fault[]): FaultGroup[] {
  const drafts = groupByPattern(faults, (fault) => ({
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

/** Maximum groups with hints. More faults mean another model, where hints are slow and useless. */
const MOST_HINTS = 200;

/** Likely causes, as far as one group shows them. */
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

function isTransposed(expected: TensorProperties | null, found: TensorProperties | null): boolean {
  return isSameShape(expected?.shape ?? [], (found?.shape ?? []).toReversed());
}

/** The missing tensor whose name is most similar to an extra one; at most a quarter of the name may differ. */
function nearest(extra: Draft, missing: readonly Draft[]): Draft | undefined {
  const extraText = templateText(extra);
  let best: Draft | undefined;
  let least = Number.POSITIVE_INFINITY;
  for (const candidate of missing) {
    const text = templateText(candidate);
    const allowed = Math.floor(Math.max(extraText.length, text.length) / 4);
    if (Math.abs(extraText.length - text.length) > allowed) continue;
    const letters = distance(extraText, text);
    if (letters > allowed) continue;
    // Equal distances: prefer the one with the same shape.
    const shapes = [extra.first.found?.shape ?? [], candidate.first.expected?.shape ?? []] as const;
    const away = letters + (isSameShape(...shapes) ? 0 : 0.5);
    if (away < least) [best, least] = [candidate, away];
  }
  return best;
}

const templateText = ({ template: { before, after } }: Draft) => `${before}#${after}`;
