/** Reads saved projectors: assigns a checkpoint's tensors to adapters and checks them. */

import type { Problem } from '../../base/errors.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import { STORED_DTYPES, shapeText } from '../../base/tensor/dtype.js';
import { counted, shortened } from '../../base/text/words.js';
import { sumOf } from '../../base/values.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { quotedNames } from '../../checkpoint/checkpoint-rules.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import type { ConstructorArguments, ErrorCollector } from './arguments.js';
import { constructorArguments, errorCollector } from './arguments.js';
import type { AdapterKind, AdapterSize, Branch } from './projector.js';
import {
  ADAPTER_PARTS,
  BRANCHES,
  hiddenOf,
  moduleName,
  partName,
  readPartName,
  sharedModules,
  sizesIn,
} from './projector.js';

/** The tensors and sizes of one adapter. */
export interface SavedAdapter {
  readonly module: string;
  readonly branch: Branch;
  readonly kind: AdapterKind;
  /** Tensors by name within the adapter, in state dict order. */
  readonly parts: ReadonlyMap<string, StoredTensor>;
  readonly teacherWidth: number;
  readonly studentWidth: number;
  /** Only for an elastic adapter. */
  readonly hidden: number | undefined;
}

export interface SavedProjector {
  /** Path as the user wrote it. */
  readonly path: string;
  readonly kind: AdapterKind;
  readonly studentWidth: number;
  /** Sorted by the constructor's arguments, else as in the file; K before V. */
  readonly adapters: readonly SavedAdapter[];
  readonly parameters: number;
  /** Constructor arguments, as far as the file has them. */
  readonly arguments: ConstructorArguments;
  /** Harmless irregularities. */
  readonly warnings: readonly string[];
}

/** Maximum teachers: far more than any projector has, and few enough to display. */
const MOST_TEACHERS = 10_000;

const NAMES_ADVICE =
  'a projector has projectors.TEACHER.K.weight (v1), or projectors.TEACHER.K.0.weight, .0.bias, .1.… and .4.… (v2), and the same for V';

/**
 * Reads the projector in a checkpoint.
 * @throws UserError with every tensor that is missing, extra or misshapen.
 */
export function savedProjector(checkpoint: Checkpoint): SavedProjector {
  const complain = errorCollector(checkpoint.path);
  const groups = groupsIn(checkpoint, complain);
  const adapters = [...groups.values()].flatMap((branches) =>
    BRANCHES.flatMap((branch) => adapterOf(branches, branch, complain) ?? []),
  );
  const [first] = adapters;
  if (first) checkTogether(adapters, first, complain);
  const args = constructorArguments(checkpoint, complain);
  complain.end();
  if (first === undefined) {
    complain(undefined, 'holds no tensors of a projector', NAMES_ADVICE);
    throw complain.error();
  }
  return {
    path: checkpoint.path,
    kind: first.kind,
    studentWidth: first.studentWidth,
    adapters: inOrder(adapters, args),
    parameters: sumOf(adapters, (adapter) => savedParameters(adapter)),
    arguments: args,
    warnings: [...checkpoint.warnings, ...contradictions(adapters, first, args)],
  };
}

/** Restores the constructor's order, because safetensors files sort by name. */
function inOrder(adapters: readonly SavedAdapter[], { teachers }: ConstructorArguments) {
  const wanted = new Set(adapters.map(({ module }) => module));
  const places = new Map<string, number>();
  for (const teacher of teachers.keys()) {
    const module = moduleName(teacher);
    if (wanted.has(module) && !places.has(module)) places.set(module, places.size);
  }
  const placeOf = ({ module }: SavedAdapter) => places.get(module) ?? places.size;
  return adapters.toSorted((a, b) => placeOf(a) - placeOf(b));
}

const savedParameters = ({ parts }: SavedAdapter) =>
  sumOf([...parts.values()], ({ elements }) => elements);

/** Tensors of a teacher by branch and part. */
interface Branches {
  readonly module: string;
  readonly tensors: ReadonlyMap<Branch, Map<string, StoredTensor>>;
  readonly kinds: Set<AdapterKind>;
}

function groupsIn({ tensors }: Checkpoint, complain: ErrorCollector): Map<string, Branches> {
  const groups = new Map<string, Branches>();
  const unknownNames: string[] = [];
  for (const [name, tensor] of tensors) {
    const found = readPartName(name);
    if (found === undefined) {
      unknownNames.push(name);
      continue;
    }
    const { module, branch, part, kind } = found;
    const group = groups.get(module) ?? newGroup(module);
    groups.set(module, group);
    group.kinds.add(kind);
    group.tensors.get(branch)?.set(part, tensor);
  }
  if (groups.size > MOST_TEACHERS) {
    complain(
      undefined,
      `has adapters of ${groups.size} teachers, expected ${MOST_TEACHERS} at most`,
    );
  }
  if (unknownNames.length > 0) {
    complain(
      undefined,
      `has tensors that belong to no projector: ${quotedNames(unknownNames)}`,
      NAMES_ADVICE,
    );
  }
  return groups;
}

const newGroup = (module: string): Branches => ({
  module,
  tensors: new Map(BRANCHES.map((branch) => [branch, new Map()] as const)),
  kinds: new Set(),
});

function adapterOf(
  { module, tensors, kinds }: Branches,
  branch: Branch,
  complain: ErrorCollector,
): SavedAdapter | undefined {
  const [kind, other] = kinds;
  if (kind === undefined) return undefined;
  if (other !== undefined) {
    if (branch === 'K') complain(partName(module, branch, 'weight'), BOTH_KINDS);
    return undefined;
  }
  const own = tensors.get(branch) ?? new Map<string, StoredTensor>();
  const parts = new Map<string, StoredTensor>();
  const sizes = new Map<AdapterSize, { readonly value: number; readonly said: string }>();
  let isWhole = true;
  for (const [part, { isOptional }] of Object.entries(ADAPTER_PARTS[kind])) {
    const name = partName(module, branch, part);
    const tensor = own.get(part);
    if (tensor === undefined) {
      if (isOptional) continue;
      complain(name, 'is missing', 'save the whole state dict of the projector');
      isWhole = false;
      continue;
    }
    parts.set(part, tensor);
    isWhole = checkPart(name, kind, part, tensor, sizes, complain) && isWhole;
  }
  if (!isWhole) return undefined;
  return {
    module,
    branch,
    kind,
    parts,
    teacherWidth: sizes.get('teacher')?.value ?? 0,
    studentWidth: sizes.get('student')?.value ?? 0,
    hidden: sizes.get('hidden')?.value,
  };
}

const BOTH_KINDS = 'conflicts with tensors of an elastic adapter of the same teacher';

/** Checks a tensor's shape and type against its part and the sizes of earlier tensors. */
function checkPart(
  name: string,
  kind: AdapterKind,
  part: string,
  { shape, dtype }: StoredTensor,
  sizes: Map<AdapterSize, { readonly value: number; readonly said: string }>,
  complain: ErrorCollector,
): boolean {
  const expected = ADAPTER_PARTS[kind][part]?.sizes.join(', ') ?? '';
  const said = sizesIn(kind, part, shape);
  if (said === undefined || shape.includes(0)) {
    complain(name, `has shape ${shapeText(shape)}, expected [${expected}]`);
    return false;
  }
  if (STORED_DTYPES[dtype].kind !== 'float') {
    complain(name, `is ${dtype}, expected floats`);
    return false;
  }
  for (const [size, value] of said) {
    const before = sizes.get(size);
    if (before === undefined) sizes.set(size, { value, said: part });
    else if (before.value !== value) {
      complain(
        name,
        `has shape ${shapeText(shape)}, expected [${expected}] with ${size} ${before.value} as in ${before.said}`,
      );
      return false;
    }
  }
  return true;
}

/** Checks the kind and widths shared by the adapters of one projector. */
function checkTogether(
  adapters: readonly SavedAdapter[],
  first: SavedAdapter,
  complain: ErrorCollector,
): void {
  const widths = new Map<string, SavedAdapter>();
  for (const adapter of adapters) {
    const { module, branch, kind, studentWidth, teacherWidth } = adapter;
    const [part = ''] = adapter.parts.keys();
    const name = partName(module, branch, part);
    if (kind !== first.kind) {
      complain(name, `is ${kind}, expected ${first.kind} as for ${first.module}`);
    } else if (studentWidth !== first.studentWidth) {
      complain(
        name,
        `has student width ${studentWidth}, expected ${first.studentWidth} as for ${first.module}`,
      );
    }
    const other = widths.get(module);
    widths.set(module, other ?? adapter);
    if (other !== undefined && other.teacherWidth !== teacherWidth) {
      complain(
        name,
        `has teacher width ${teacherWidth}, expected ${other.teacherWidth} as for ${other.branch}`,
      );
    }
  }
}

/** Differences between constructor arguments and tensors; the tensors take precedence. */
function contradictions(
  adapters: readonly SavedAdapter[],
  { studentWidth }: SavedAdapter,
  args: ConstructorArguments,
): string[] {
  const said: string[] = [];
  if (args.studentWidth !== undefined && args.studentWidth !== studentWidth) {
    said.push(`student_d_model is ${args.studentWidth}, but the tensors have ${studentWidth}`);
  }
  for (const each of otherHidden(adapters, args.ratio)) said.push(each);
  for (const { module, first, second } of sharedModules([...args.teachers.keys()])) {
    said.push(
      `teacher_configs has ${JSON.stringify(first)} and ${JSON.stringify(second)}, which share the adapters of ${module}`,
    );
  }
  const others: string[] = [];
  const byModule = new Map(adapters.map((adapter) => [adapter.module, adapter] as const).reverse());
  for (const [name, width] of args.teachers) {
    const adapter = byModule.get(moduleName(name));
    if (adapter === undefined) {
      others.push(JSON.stringify(shortened(name)));
    } else if (width !== undefined && width !== adapter.teacherWidth) {
      said.push(
        `teacher_configs says width ${width} of ${JSON.stringify(name)}, its tensors ${adapter.teacherWidth}`,
      );
    }
  }
  if (others.length > 0) {
    const names = others.slice(0, 3).join(', ');
    const more = others.length > 3 ? ` and ${counted(others.length - 3, 'more name')}` : '';
    said.push(
      `teacher_configs has ${names}${more}, but no tensors for ${others.length > 1 ? 'them' : 'it'}`,
    );
  }
  return said;
}

/** Adapters whose hidden width does not match the ratio. */
function otherHidden(adapters: readonly SavedAdapter[], ratio: number | undefined): string[] {
  if (ratio === undefined) return [];
  return adapters.flatMap(({ module, branch, teacherWidth, hidden }) => {
    const expected = hiddenOf(teacherWidth, ratio);
    if (hidden === undefined || hidden === expected) return [];
    return [
      `mlp_ratio ${ratio} makes a hidden width of ${expected}, but that of ${partName(module, branch, '1')} is ${hidden}`,
    ];
  });
}

/** A saved projector in short. */
export interface ProjectorFacts {
  /** Path of the file. */
  readonly path: string;
  /** Kind of its adapters. */
  readonly kind: AdapterKind;
  /** Width of the student. @count */
  readonly studentWidth: number;
  /** Teachers as the names of tensors have them, with `_` for `.` and `-`. */
  readonly teachers: readonly string[];
  /** Number of tensors. @count */
  readonly tensors: number;
  /** Elements of all tensors. @count */
  readonly parameters: number;
}

/** Facts of a saved projector for reports. */
export const describedProjector = ({
  path,
  kind,
  studentWidth,
  adapters,
  parameters,
}: SavedProjector): ProjectorFacts => ({
  path,
  kind,
  studentWidth,
  teachers: [...new Set(adapters.map(({ module }) => module))],
  tensors: sumOf(adapters, ({ parts }) => parts.size),
  parameters,
});

export const projectorWarnings = (file: string, messages: readonly string[]): Problem[] =>
  messages.map((message) => ({ severity: 'warning', file, message }));

/** Options shared by commands on saved projectors. */
export interface ProjectorSurroundings {
  /** Whether to replace the output. */
  readonly force: boolean;
  readonly warn: (warnings: readonly Problem[]) => Promise<void>;
  readonly display: ProgressDisplay;
}
