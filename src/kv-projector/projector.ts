/** What a projector of keys and values is made of: for each teacher one adapter for K and one for V. */
import { add, inputs, mul, v } from '../budget/expression.js';
import type { Figure } from '../budget/figure.js';
import { figure } from '../budget/figure.js';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import type { Shape } from '../tensor/dtype.js';

// How the tensors of a projector are named, and what shapes they have.

export type Branch = (typeof BRANCHES)[number];

/** Sizes of an adapter that the shapes of its tensors are made of: d_t, d_s, and of an elastic one the hidden width. */
export type Size = 'teacher' | 'student' | 'hidden';

interface Part {
  readonly sizes: readonly Size[];
  readonly isOptional?: boolean;
}

/**
 * The tensors of an adapter, in the order of a state dict: v1 is a `Linear`, v2 a `Sequential` of which 0
 * is the norm, 1 and 4 the linear layers; 2 and 3, SiLU and dropout, have no tensors.
 */
export const ADAPTER_PARTS: Readonly<Record<AdapterKind, Readonly<Record<string, Part>>>> = {
  linear: {
    weight: { sizes: ['student', 'teacher'] },
    bias: { sizes: ['student'], isOptional: true },
  },
  elastic: {
    '0.weight': { sizes: ['teacher'] },
    '0.bias': { sizes: ['teacher'] },
    '1.weight': { sizes: ['hidden', 'teacher'] },
    '1.bias': { sizes: ['hidden'] },
    '4.weight': { sizes: ['student', 'hidden'] },
    '4.bias': { sizes: ['student'] },
  },
};

export interface PartName {
  /** The teacher's, with "_" for "." and "-". */
  readonly module: string;
  readonly branch: Branch;
  /** `weight`, `4.bias`. */
  readonly part: string;
  readonly kind: AdapterKind;
}

const NAME = /^projectors\.([^.]+)\.([KV])\.(.+)$/s;

/** What the name of a tensor says; undefined for one that no projector has. */
export function readPartName(name: string): PartName | undefined {
  const [, module, branch, part = ''] = NAME.exec(name) ?? [];
  const kind = KINDS.find((each) => Object.hasOwn(ADAPTER_PARTS[each], part));
  if (module === undefined || kind === undefined) return undefined;
  return { module, branch: BRANCHES.find((each) => each === branch) ?? 'K', part, kind };
}

export const partName = (module: string, branch: Branch, part: string): string =>
  `projectors.${module}.${branch}.${part}`;

/** The sizes that a tensor's shape states; undefined when it has other axes than its part. */
export function sizesIn(
  kind: AdapterKind,
  part: string,
  shape: Shape,
): ReadonlyMap<Size, number> | undefined {
  const sizes = ADAPTER_PARTS[kind][part]?.sizes ?? [];
  if (sizes.length !== shape.length) return undefined;
  return new Map(sizes.map((size, axis) => [size, shape[axis] ?? 0] as const));
}

/** A model whose keys and values are mapped to a student's width. */
export interface Teacher {
  readonly name: string;
  /** d_t */
  readonly width: number;
  readonly layers?: number;
}

/** v1, one matrix; v2, a bottleneck of a norm and two linear layers. In the order in which the comparison trains them. */
export const KINDS = ['linear', 'elastic'] as const;
export type AdapterKind = (typeof KINDS)[number];

/** Of an elastic adapter's norm: torch.nn.LayerNorm's own. */
export const NORM_EPSILON = 1e-5;

export interface AdapterShape {
  readonly kind: AdapterKind;
  readonly teacherWidth: number;
  readonly studentWidth: number;
  /** Of an elastic adapter. */
  readonly hidden?: number;
  /** Of a linear adapter: none in a saved projector, one in the published verification. */
  readonly bias?: boolean;
}

/** What an adapter maps; each teacher has one for either. */
export const BRANCHES = ['K', 'V'] as const;

/** The width between the two linear layers of an elastic adapter: `int(d_t * mlp_ratio)` in Python. */
export const hiddenOf = (teacherWidth: number, ratio: number): number =>
  Math.trunc(teacherWidth * ratio);

/** A teacher's name as the names of tensors have it, where "." parts them. */
export const moduleName = (teacher: string): string => teacher.replaceAll(/[.-]/g, '_');

/** Names of teachers that a projector cannot tell apart, each with the one before it. */
export function sharedModules(teachers: readonly string[]) {
  const owners = new Map<string, string>();
  return teachers.flatMap((second) => {
    const module = moduleName(second);
    const first = owners.get(module);
    if (first !== undefined) return [{ module, first, second }];
    owners.set(module, second);
    return [];
  });
}

const SOURCE =
  'torch.nn.LayerNorm has 2·d values, torch.nn.Linear out·in, and out more with a bias';

/** The parameters of one adapter. */
export function adapterParameters(shape: AdapterShape): Figure {
  const { kind, teacherWidth, studentWidth, hidden = 0, bias = false } = shape;
  const widths = inputs({ teacher_width: teacherWidth, student_width: studentWidth });
  const { teacher_width, student_width } = widths;
  switch (kind) {
    case 'linear':
      return figure({
        label: bias ? 'one linear adapter with bias' : 'one linear adapter',
        unit: 'parameters',
        formula: add(mul(teacher_width, student_width), ...(bias ? [student_width] : [])),
        source: SOURCE,
      });
    case 'elastic': {
      const inner = v({ hidden });
      return figure({
        label: 'one elastic adapter',
        unit: 'parameters',
        formula: add(
          mul(2, teacher_width),
          mul(teacher_width, inner),
          inner,
          mul(inner, student_width),
          student_width,
        ),
        inputs: widths,
        source: SOURCE,
      });
    }
  }
}

// Teachers as a user writes them, and what is published for their sizes.

const WRITTEN = /^(.+):(\d+)(?:x(\d+))?$/s;

/**
 * A teacher written as NAME:WIDTH or NAME:WIDTHxLAYERS. Undefined when it is neither, as a path would be.
 * @throws UserError when a size is none.
 */
export function parseTeacher(text: string): Teacher | undefined {
  const [, name, width, layers] = WRITTEN.exec(text) ?? [];
  if (name === undefined) return undefined;
  const sizes = [width, layers].filter((size) => size !== undefined).map(Number);
  if (sizes.some((size) => !Number.isSafeInteger(size) || size < 1 || size > MOST)) {
    throw new UserError('usage', `--teacher: ${quote(text)} has a size that is none`, {
      suggestion: 'write its width and layers as in --teacher Qwen2-14B:5120x40',
    });
  }
  const [ownWidth = 0, ownLayers] = sizes;
  return { name, width: ownWidth, ...(ownLayers !== undefined && { layers: ownLayers }) };
}

/** Of widths and layers: so that every width times 16 is exact. */
const MOST = 2 ** 31;

/** The size of a model, in parameters. */
export interface TeacherSize {
  readonly parameters: number;
  /** Its name says it, or its config was counted. */
  readonly from: 'name' | 'config';
}

/** `14B`, `8x7B`; what is active at a time, as A3B in Qwen3-30B-A3B, is no size. */
const SIZE_IN_NAME = /(?<![\d.]|[-_]a)(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z\d])/i;

/** The size that a name states, as `14B` in Qwen2-14B. Of 8x7B it is the product, and what experts share counts often. */
export function sizeInName(name: string): TeacherSize | undefined {
  const [, experts = '1', number, unit = ''] = SIZE_IN_NAME.exec(name) ?? [];
  if (number === undefined) return undefined;
  const scale = unit.toLowerCase() === 'b' ? 1e9 : 1e6;
  return { parameters: Math.round(Number(experts) * Number(number) * scale), from: 'name' };
}

/** A name is the size in few digits: what is further from the count than this is the size of something else. */
const NAME_TOLERANCE = 0.05;

/**
 * The size of a model whose parameters are counted. Guidance is for models by the size in their names, which says 14B of
 * 13.96 billion: where a ratio depends on that, the name counts.
 */
export function sizeOfModel(name: string, parameters: number): TeacherSize {
  const counted: TeacherSize = { parameters, from: 'config' };
  const named = sizeInName(name);
  if (named === undefined) return counted;
  const isSameModel = Math.abs(named.parameters - parameters) <= NAME_TOLERANCE * parameters;
  const isSameRatio = recommendationFor(named).ratio === recommendationFor(counted).ratio;
  return isSameModel && !isSameRatio ? named : counted;
}

/** The published guidance for teachers from so many parameters on, the largest first. */
const GUIDANCE = [
  { from: 30e9, ratio: 2 },
  { from: 14e9, ratio: 1 },
  { from: 0, ratio: 0.5 },
] as const;

/** What is called a model of 70 billion has up to so many; beyond, nothing is published. */
const GUIDANCE_ENDS = 71e9;

export interface Recommendation {
  readonly ratio: number;
  /** Whether the teacher is larger than any that something is published for. */
  readonly isBeyond: boolean;
}

/** The ratio for a teacher's size: from exactly 14 billion on 1, from exactly 30 billion on 2. */
export function recommendationFor({ parameters }: TeacherSize): Recommendation {
  const ratio = GUIDANCE.find(({ from }) => parameters >= from)?.ratio ?? 0.5;
  return { ratio, isBeyond: parameters > GUIDANCE_ENDS };
}
