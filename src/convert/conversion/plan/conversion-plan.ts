/**
 * The plan of a conversion as data: the source of the values of every output tensor. It is made from indexes and
 * configs only, printed by a dry run, and executed by `execute`.
 */

import type { Problem } from '../../../base/errors.js';
import type { Shape, StoredDtype } from '../../../base/tensor/dtype.js';
import type { WeightForm } from '../../../base/tensor/group-quantization.js';
import { sumOf } from '../../../base/values.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import type { WritableBlocks } from '../../../checkpoint/gguf/blocks/encode-blocks.js';
import type { GgufKeyValues } from '../../../checkpoint/gguf/gguf-scanner.js';
import type { ImportanceMatrix } from '../../../checkpoint/gguf/imatrix.js';
import type { NameGroup, StoredName } from '../../../checkpoint/names.js';
import { groupByPattern, templateOf } from '../../../checkpoint/names.js';
import type { PackedPart } from '../../../checkpoint/packed-weights.js';
import type { StoredTensor } from '../../../checkpoint/stored-tensor.js';
import type { Formula } from '../../../model/architecture/rotary-scaling.js';
import type { SrteLayout } from '../../../model/architecture/srte-layout.js';
import type { Extension, Tie } from '../conversion-choices.js';
import type { CheckpointTarget, ConversionJob } from '../job.js';
import type { SrtePlan, SrteSource } from '../srte/srte-plan.js';
import type { SrtePart, StoredSrteTable } from '../srte/srte-tables.js';
import type { SourceConfig, TargetConfig } from './model-configs.js';

/** A tensor of the input under the output's name. */
export interface SourceTensor extends StoredName {
  /** Attention heads whose rows must be reordered for RoPE (see legacy/old-minimind-names.ts). */
  readonly heads?: number;
}

export type SourceTensors = ReadonlyMap<string, SourceTensor>;

/** The input of a job, and the SRTE and config of its output. */
export interface ConversionInput {
  readonly job: ConversionJob;
  readonly place: CheckpointTarget;
  /** The config of the input; undefined when there is none. */
  readonly source: SourceConfig | undefined;
  /** The config given by `--target`. */
  readonly target: TargetConfig | undefined;
  /** Undefined when the input has no SRTE. */
  readonly srte: SrteSource | undefined;
  /** The SRTE of the output; the rank of a pair is null while unknown. */
  readonly layout: SrteLayout | undefined;
  readonly tensors: SourceTensors;
  /** Tensors of an old naming scheme that today's files lack. */
  readonly dropped: readonly Omission[];
  readonly warnings: readonly Problem[];
}

/** Source of the values of a tensor. Names are the input's own. */
export type Action =
  /** One tensor, unchanged except for the dtype. */
  | { readonly do: 'copy'; readonly from: string }
  /** The first rows of a table or of a pair's rows; additional ones by `extension`. */
  | {
      readonly do: 'fit';
      readonly from: string;
      readonly rows: number;
      readonly extension: Extension | null;
    }
  /** The rows of each attention head, converted from neighbouring pairs for RoPE to two halves. */
  | { readonly do: 'unpair'; readonly from: string; readonly heads: number }
  /** The mean of two tensors, value by value. */
  | { readonly do: 'average'; readonly from: readonly [string, string] }
  /** A part of a table of `SrtePlan.tables`. */
  | { readonly do: 'table'; readonly table: number; readonly part: SrtePart }
  /** A part of a packed weight; `weight` is the planned tensor of floats. */
  | {
      readonly do: 'quantize';
      readonly weight: PlannedTensor;
      readonly part: PackedPart;
      readonly form: WeightForm;
    }
  /** A buffer computed from the configuration. */
  | { readonly do: 'compute' };

export interface PlannedTensor {
  /** Name of the tensor. */
  readonly name: string;
  /** Other names of the same values. */
  readonly aliases: readonly string[];
  /** Whether it is learned. */
  readonly role: 'parameter' | 'buffer';
  /** Element type, as safetensors names it. */
  readonly dtype: StoredDtype;
  /** Sizes of the dimensions. @count */
  readonly shape: Shape;
  /** Bytes of the values. @count */
  readonly bytes: number;
  readonly action: Action;
  /** Blocks in which a GGUF file stores the values. */
  readonly blocks?: WritableBlocks;
}

/** A tensor or another entry of the input that the output lacks. */
export interface Omission {
  readonly name: string;
  readonly why: string;
}

/** An embedding and a head that become one tensor. */
export interface PlannedTie {
  /** Name of the output's tensor. */
  readonly name: string;
  /** The input's names of the embedding and the head. */
  readonly from: readonly [string, string];
  /** Tensor whose values are kept, or their mean. */
  readonly values: Tie;
}

/** Metadata of the GGUF file of an output. */
export interface GgufOutput {
  readonly architecture: string;
  readonly keyValues: GgufKeyValues;
  /** Importances of the inputs of matrices, by the names of the output: [experts · columns]. */
  readonly importances?: ImportanceMatrix;
  /** SHA-256 of the importances. */
  readonly importanceSha256?: string;
}

/** The weights that become packed, and the modules that stay floats. */
export interface QuantizationPlan {
  readonly form: WeightForm;
  /** Names of the weights. */
  readonly weights: readonly string[];
  /** Modules of linear layers and routers that stay floats: the list `ignore` of the config. */
  readonly ignored: readonly string[];
}

export interface ConversionPlan {
  /** Distinct tensors in the order of the state dict. */
  readonly tensors: readonly PlannedTensor[];
  /** All names in the order of the state dict, including aliases. */
  readonly names: readonly string[];
  /** Null when the SRTE is unchanged. */
  readonly srte: SrtePlan | null;
  /** Null when nothing is tied. */
  readonly tie: PlannedTie | null;
  /** Absent when no weight becomes packed. */
  readonly quantization?: QuantizationPlan;
  readonly leftOut: readonly Omission[];
  /** Remarks for the user. */
  readonly notes: readonly string[];
  /** Formulas of the computable buffers, by their names. */
  readonly formulas: ReadonlyMap<string, Formula>;
  /** The config of the output; undefined without a description. */
  readonly config: TargetConfig | undefined;
  /** Whether an unreadable config still describes the output. */
  readonly keepsConfig: boolean;
  /** Metadata of a GGUF file; absent for other containers. */
  readonly gguf?: GgufOutput;
}

/** Kinds of steps, the largest changes first. A computed tensor is also cast if necessary. */
export const STEP_KINDS = [
  'factorised',
  'merged',
  'quantized',
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
  /** Way of making the tensor; computed values are also cast if the type differs. */
  readonly action: StepKind;
  /** Names in the input. */
  readonly from: readonly string[];
  /** Distinct types of those tensors. */
  readonly fromDtypes: readonly StoredDtype[];
  /** The file of the output that contains it. */
  readonly file: string;
}

/** Tensors with the same step, over all layers. */
export interface StepGroup {
  /** Way of making the tensors; computed values are also cast if the type differs. */
  readonly action: StepKind;
  /** `layers.{0–31}.srte.freqs`; `layers.{0–31}.…` for tensors whose values are unchanged except for the type. */
  readonly pattern: string;
  /** Number of tensors. @count */
  readonly tensors: number;
  /** Their bytes. @count */
  readonly bytes: number;
  /** Element types in the input. */
  readonly fromDtypes: readonly StoredDtype[];
  /** Element type in the output. */
  readonly dtype: StoredDtype | WritableBlocks;
}

/**
 * The step for each tensor, in the order of the plan.
 * @param outputs The files of the output, with the tensors in each.
 */
export function tensorSteps(
  plan: ConversionPlan,
  { job: { checkpoint }, srte }: ConversionInput,
  outputs: readonly { readonly name: string; readonly tensors: readonly string[] }[],
): TensorStep[] {
  const files = new Map<string, string>();
  for (const file of outputs) for (const name of file.tensors) files.set(name, file.name);
  const tables = srte?.tables?.tables ?? [];
  return plan.tensors.map((tensor): TensorStep => {
    const { action } = tensor;
    const from = namesFrom(action, plan.srte, tables);
    const stored = from.flatMap((name) => tensorNamed(name, checkpoint) ?? []);
    return {
      ...tensor,
      action: actionKind(tensor, action, plan.srte, stored),
      from,
      fromDtypes: distinctDtypes(stored),
      file: files.get(tensor.name) ?? '',
    };
  });
}

function distinctDtypes([first, ...others]: readonly StoredTensor[]): readonly StoredDtype[] {
  if (first === undefined) return [];
  // Nearly all tensors have a single source.
  if (others.length === 0) return [first.dtype];
  return [...new Set([first, ...others].map(({ dtype }) => dtype))];
}

/** A tensor by its own name, or by an alias in the metadata. */
export const tensorNamed = (
  name: string,
  { tensors, aliases }: Pick<Checkpoint, 'tensors' | 'aliases'>,
): StoredTensor | undefined => tensors.get(name) ?? tensors.get(aliases.get(name) ?? '');

function namesFrom(
  action: Action,
  srte: SrtePlan | null,
  tables: readonly StoredSrteTable[],
): readonly string[] {
  switch (action.do) {
    case 'copy':
    case 'fit':
    case 'unpair':
      return [action.from];
    case 'average':
      return action.from;
    case 'quantize':
      return namesFrom(action.weight.action, srte, tables);
    case 'compute':
      return [];
    case 'table':
      return (srte?.tables[action.table]?.sources ?? []).flatMap((number) => {
        const { name, projectionName } = tables[number] ?? {};
        return [name, projectionName].filter((each) => each != null);
      });
  }
}

function actionKind(
  { dtype, shape, blocks }: Pick<PlannedTensor, 'dtype' | 'shape' | 'blocks'>,
  action: Action,
  srte: SrtePlan | null,
  [stored]: readonly StoredTensor[],
): StepKind {
  switch (action.do) {
    case 'copy':
      return stored?.dtype === dtype && blocks === undefined ? 'copied' : 'cast';
    case 'fit':
      return (shape[1] ?? 0) < (stored?.shape[1] ?? 0) ? 'cut' : 'extended';
    case 'unpair':
      return 'reordered';
    case 'average':
      return 'averaged';
    case 'quantize':
      return 'quantized';
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

/** Kinds of steps that are only counted. */
const PLAIN: ReadonlySet<StepKind> = new Set(['cast', 'copied']);

/** Groups in the order of `STEP_KINDS`. */
export function groupSteps(steps: readonly TensorStep[]): StepGroup[] {
  const groups = groupByPattern(steps, ({ name, action, fromDtypes, dtype, blocks }) => {
    const whole = templateOf(name);
    const isPlain = PLAIN.has(action) && whole.number !== undefined;
    return {
      template: isPlain ? { ...whole, after: '.…' } : whole,
      key: `${action} ${fromDtypes} ${blocks ?? dtype}`,
    };
  });
  return STEP_KINDS.flatMap((kind) => groups.filter(({ first }) => first.action === kind)).map(
    stepGroup,
  );
}

const stepGroup = ({ pattern, first, members }: NameGroup<TensorStep>): StepGroup => ({
  action: first.action,
  pattern,
  tensors: members.length,
  bytes: sumOf(members, ({ bytes }) => bytes),
  fromDtypes: first.fromDtypes,
  dtype: first.blocks ?? first.dtype,
});
