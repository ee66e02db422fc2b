/** A plan as people and other programs read it: for each tensor of the output what is done, and to what. */
import { type Alike, groupAlike, templateOf } from '../checkpoint/name-patterns.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import type { Shape, StoredDtype } from '../tensor/dtype.js';
import type { Action, ConversionPlan, PlannedShard, PlannedTensor, SrtePlan } from './plan.js';
import type { SrtePart } from './srte-names.js';
import type { SrteTable } from './srte-tables.js';

/** What is done, the most thorough first. A tensor that is made anew is cast on the way, where it has to be. */
export const STEP_KINDS = [
  'factorised',
  'merged',
  'multiplied-out',
  'averaged',
  'reordered',
  'cut',
  'extended',
  'computed',
  'cast',
  'copied',
] as const;

export type StepKind = (typeof STEP_KINDS)[number];

export interface TensorStep extends Omit<PlannedTensor, 'action'> {
  readonly action: StepKind;
  /** Names of the input. */
  readonly from: readonly string[];
  /** Of those, each once. */
  readonly fromDtypes: readonly StoredDtype[];
  /** The file of the output that it is in. */
  readonly file: string;
}

/** Tensors to which the same is done, those of all layers together. */
export interface StepGroup {
  readonly action: StepKind;
  /** `layers.{0–31}.srte.freqs`; of tensors that are as they were but for the type `layers.{0–31}.…`. */
  readonly pattern: string;
  readonly tensors: number;
  readonly bytes: number;
  readonly fromDtypes: readonly StoredDtype[];
  readonly dtype: StoredDtype;
}

interface PlanSources {
  /** A tensor of the input by its own name. */
  stored(name: string): StoredTensor | undefined;
  /** SRTE tables of the input, by their numbers. */
  readonly tables: readonly SrteTable[];
  readonly shards: readonly PlannedShard[];
}

/** In the order of the plan. */
export function stepsOf(plan: ConversionPlan, sources: PlanSources): TensorStep[] {
  const files = new Map(
    sources.shards.flatMap(({ file, tensors }) => tensors.map((name) => [name, file] as const)),
  );
  return plan.tensors.map(({ action, ...tensor }): TensorStep => {
    const from = namesFrom(action, plan.srte, sources.tables);
    const stored = from.flatMap((name) => sources.stored(name) ?? []);
    return {
      ...tensor,
      action: kindOf(tensor, action, plan.srte, stored),
      from,
      fromDtypes: [...new Set(stored.map(({ dtype }) => dtype))],
      file: files.get(tensor.name) ?? '',
    };
  });
}

function namesFrom(
  action: Action,
  srte: SrtePlan | null,
  tables: readonly SrteTable[],
): readonly string[] {
  switch (action.do) {
    case 'copy':
    case 'fit':
    case 'unpair':
      return [action.from];
    case 'average':
      return action.from;
    case 'compute':
      return [];
    case 'table':
      return (srte?.tables[action.table]?.sources ?? []).flatMap((number) => {
        const { name, projectionName } = tables[number] ?? {};
        return [name, projectionName].filter((each) => each != null);
      });
  }
}

function kindOf(
  { dtype, shape }: { readonly dtype: StoredDtype; readonly shape: Shape },
  action: Action,
  srte: SrtePlan | null,
  [stored]: readonly StoredTensor[],
): StepKind {
  switch (action.do) {
    case 'copy':
      return stored?.dtype === dtype ? 'copied' : 'cast';
    case 'fit':
      return (shape[1] ?? 0) < (stored?.shape[1] ?? 0) ? 'cut' : 'extended';
    case 'unpair':
      return 'reordered';
    case 'average':
      return 'averaged';
    case 'compute':
      return 'computed';
    case 'table':
      return kindOfTable(action.part, srte?.tables[action.table]?.sources.length ?? 0);
  }
}

function kindOfTable(part: SrtePart, sources: number): StepKind {
  if (part !== 'freqs') return 'factorised';
  if (sources === 0) return 'computed';
  return sources === 1 ? 'multiplied-out' : 'merged';
}

/** Kinds of steps of which one wants to know no more than that there are so many. */
const PLAIN: ReadonlySet<StepKind> = new Set(['cast', 'copied']);

/** In the order of `STEP_KINDS`. */
export function groupSteps(steps: readonly TensorStep[]): StepGroup[] {
  const groups = groupAlike(steps, ({ name, action, fromDtypes, dtype }) => {
    const whole = templateOf(name);
    const isPlain = PLAIN.has(action) && whole.number !== undefined;
    return {
      template: isPlain ? { ...whole, after: '.…' } : whole,
      key: JSON.stringify([action, fromDtypes, dtype]),
    };
  });
  return STEP_KINDS.flatMap((kind) => groups.filter(({ first }) => first.action === kind)).map(
    groupOf,
  );
}

const groupOf = ({ pattern, first, members }: Alike<TensorStep>): StepGroup => ({
  action: first.action,
  pattern,
  tensors: members.length,
  bytes: members.reduce((sum, { bytes }) => sum + bytes, 0),
  fromDtypes: first.fromDtypes,
  dtype: first.dtype,
});
