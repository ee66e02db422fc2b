/** Structure of a key-value projector: for each teacher, one adapter for K and one for V. */

import { usageError } from '../../base/errors.js';
import type { Shape } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { type Container, endingsOf } from '../../checkpoint/formats.js';
import { quote } from '../../config/quote.js';
import { add, inputs, mul, v } from '../../model/budget/expression.js';
import type { Figure } from '../../model/budget/figure.js';
import { figure } from '../../model/budget/figure.js';

/** Containers that programs read projectors from. */
export const PROJECTOR_CONTAINERS = ['safetensors', 'pt'] as const satisfies readonly Container[];

/** Endings of the names of their files. */
export const PROJECTOR_ENDINGS: readonly string[] = PROJECTOR_CONTAINERS.flatMap(endingsOf);

// Tensor names and shapes of a projector.

export type Branch = (typeof BRANCHES)[number];

/** Sizes that define an adapter's tensor shapes: d_t, d_s, and the hidden width of an elastic one. */
export type AdapterSize = 'teacher' | 'student' | 'hidden';

interface AdapterPart {
  readonly sizes: readonly AdapterSize[];
  readonly isOptional?: boolean;
}

/**
 * Tensors of an adapter, in state dict order. v1 is a `Linear`. v2 is a `Sequential`: 0 is the norm, 1 and 4 the
 * linear layers; 2 and 3, SiLU and dropout, have no tensors.
 */
export const ADAPTER_PARTS: Readonly<Record<AdapterKind, Readonly<Record<string, AdapterPart>>>> = {
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

export interface ParsedPartName {
  /** Teacher name with "_" for "." and "-". */
  readonly module: string;
  readonly branch: Branch;
  /** `weight`, `4.bias`. */
  readonly part: string;
  readonly kind: AdapterKind;
}

const NAME = /^projectors\.([^.]+)\.([KV])\.(.+)$/s;

/** Parses a tensor name; undefined if it does not belong to a projector. */
export function readPartName(name: string): ParsedPartName | undefined {
  const [, module, branch, part = ''] = NAME.exec(name) ?? [];
  const kind = ADAPTER_KINDS.find((each) => Object.hasOwn(ADAPTER_PARTS[each], part));
  if (module === undefined || kind === undefined) return undefined;
  return { module, branch: BRANCHES.find((each) => each === branch) ?? 'K', part, kind };
}

export const partName = (module: string, branch: Branch, part: string): string =>
  `projectors.${module}.${branch}.${part}`;

/** Sizes given by a tensor's shape; undefined for the wrong number of axes. */
export function sizesIn(
  kind: AdapterKind,
  part: string,
  shape: Shape,
): ReadonlyMap<AdapterSize, number> | undefined {
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

/** v1, one matrix; v2, a bottleneck of a norm and two linear layers. In the training order of the comparison. */
export const ADAPTER_KINDS = ['linear', 'elastic'] as const;
export type AdapterKind = (typeof ADAPTER_KINDS)[number];

/** A value of each adapter. */
export interface ByAdapter<Value> extends Readonly<Record<AdapterKind, Value>> {
  /** Value of the linear adapter. */
  readonly linear: Value;
  /** Value of the elastic adapter. */
  readonly elastic: Value;
}

/** Epsilon of an elastic adapter's norm, the default of torch.nn.LayerNorm. */
export const NORM_EPSILON = 1e-5;

export interface AdapterShape {
  readonly kind: AdapterKind;
  readonly teacherWidth: number;
  readonly studentWidth: number;
  /** Only for an elastic adapter. */
  readonly hidden?: number;
  /** Only for a linear adapter: absent in saved projectors, present in the published verification. */
  readonly bias?: boolean;
}

/** Inputs of adapters; each teacher has one adapter for each. */
export const BRANCHES = ['K', 'V'] as const;

/** Width between the two linear layers of an elastic adapter: `int(d_t * mlp_ratio)` in Python. */
export const hiddenOf = (teacherWidth: number, ratio: number): number =>
  Math.trunc(teacherWidth * ratio);

/** A teacher's name in tensor names, where "." is a separator. */
export const moduleName = (teacher: string): string => teacher.replaceAll(/[.-]/g, '_');

/** Teacher names with the same module name, each with the earlier one. */
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

// Teacher arguments, and published recommendations for their sizes.

const WRITTEN = /^(.+):(\d+)(?:x(\d+))?$/s;

/**
 * Parses a teacher written as NAME:WIDTH or NAME:WIDTHxLAYERS. Undefined for other text, such as a path.
 * @throws UserError for an invalid size.
 */
export function parseTeacher(text: string): Teacher | undefined {
  const [, name, width, layers] = WRITTEN.exec(text) ?? [];
  if (name === undefined) return undefined;
  const sizes = [width, layers].filter((size) => size !== undefined).map(Number);
  if (sizes.some((size) => !Number.isSafeInteger(size) || size < 1 || size > MOST)) {
    throw usageError(
      `${setting('teacher')}: expected sizes from 1 to ${formatInteger(MOST)}, found ${quote(text)}`,
      `write its width and layers as in ${setting('teacher', 'Qwen2-14B:5120x40')}`,
    );
  }
  const [ownWidth = 0, ownLayers] = sizes;
  return { name, width: ownWidth, ...(ownLayers !== undefined && { layers: ownLayers }) };
}

/** Maximum width and layers, which keeps 16 times any width exact. */
const MOST = 2 ** 31;

/** Size of a model, in parameters. */
export interface TeacherSize {
  /** Parameters of the teacher. @integer */
  readonly parameters: number;
  /** Source: the name, or a counted config. */
  readonly from: 'name' | 'config';
}

/** `14B`, `8x7B`; active parameters, such as A3B in Qwen3-30B-A3B, do not count. */
const SIZE_IN_NAME = /(?<![\d.]|[-_]a)(?:(\d{1,3})x)?(\d{1,4}(?:\.\d{1,3})?)([bm])(?![a-z\d])/i;

/** Size in a name, such as `14B` in Qwen2-14B. 8x7B gives the product, which counts shared parts repeatedly. */
export function sizeInName(name: string): TeacherSize | undefined {
  const [, experts = '1', number, unit = ''] = SIZE_IN_NAME.exec(name) ?? [];
  if (number === undefined) return undefined;
  const scale = unit.toLowerCase() === 'b' ? 1e9 : 1e6;
  return { parameters: Math.round(Number(experts) * Number(number) * scale), from: 'name' };
}

/** Names round the size to few digits; a larger relative difference from the count means another size. */
const NAME_TOLERANCE = 0.05;

/**
 * Size of a model with counted parameters. Published recommendations use the size in the name, such as 14B for 13.96
 * billion. If the two lead to different ratios, the name takes precedence.
 */
export function sizeOfModel(name: string, parameters: number): TeacherSize {
  const counted: TeacherSize = { parameters, from: 'config' };
  const named = sizeInName(name);
  if (named === undefined) return counted;
  const isSameModel = Math.abs(named.parameters - parameters) <= NAME_TOLERANCE * parameters;
  const isSameRatio = recommendationFor(named).ratio === recommendationFor(counted).ratio;
  return isSameModel && !isSameRatio ? named : counted;
}

/** Published recommendations by minimum number of parameters, largest first. */
const GUIDANCE = [
  { from: 30e9, ratio: 2 },
  { from: 14e9, ratio: 1 },
  { from: 0, ratio: 0.5 },
] as const;

/** Maximum parameters of a model called 70B; nothing is published beyond. */
const GUIDANCE_ENDS = 71e9;

export interface Recommendation {
  /** Hidden width ÷ teacher width. */
  readonly ratio: number;
  /** Whether the teacher is larger than any with a published recommendation. */
  readonly isBeyond: boolean;
}

/** Ratio for a teacher's size: 1 from exactly 14 billion, 2 from exactly 30 billion. */
export function recommendationFor({ parameters }: TeacherSize): Recommendation {
  const ratio = GUIDANCE.find(({ from }) => parameters >= from)?.ratio ?? 0.5;
  return { ratio, isBeyond: parameters > GUIDANCE_ENDS };
}
