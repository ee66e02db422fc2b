/** The same fault in many layers, told once. */
import { distance } from 'fastest-levenshtein';
import { type Alike, groupAlike, type Template, templateOf } from '../checkpoint/name-patterns.js';
import { isSameShape } from '../tensor/shape.js';
import { FAULT_KINDS, type Fault, type FaultKind, type Said } from './fault.js';
import { quantizedPart } from './quantized.js';

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
