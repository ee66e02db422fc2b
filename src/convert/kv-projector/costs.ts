/** Size and cost of each projector kind for the same teachers, given by name and sizes or by configs. */

import fs from 'node:fs';
import path from 'node:path';
import { type Problem, usageError } from '../../base/errors.js';
import type { Dtype } from '../../base/tensor/dtype.js';
import { bytesIn } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { quote } from '../../config/quote.js';
import { locateModel, type ModelPlace } from '../../input/model-input/locate.js';
import { loadModelFile } from '../../input/model-input/read-model-file.js';
import { add, inputs, mul, v } from '../../model/budget/expression.js';
import type { Figure } from '../../model/budget/figure.js';
import { figure, sumFigure } from '../../model/budget/figure.js';
import { countParameters } from '../../model/budget/parameters.js';
import type { PublishedReport } from '../../model/budget/published/explanations.js';
import type { AdapterShape, Recommendation, Teacher, TeacherSize } from './projector.js';
import {
  adapterParameters,
  BRANCHES,
  hiddenOf,
  parseTeacher,
  recommendationFor,
  sharedModules,
  sizeInName,
  sizeOfModel,
} from './projector.js';

/** A ratio, or the published recommendation for each teacher's size. */
export type RatioChoice = number | 'recommended';

export interface SizedTeacher extends Teacher {
  readonly size: TeacherSize | null;
}

/** Element types for which memory is reported. */
const MEMORY_DTYPES = ['f32', 'bf16', 'f16'] as const satisfies Dtype[];
type MemoryDtype = (typeof MEMORY_DTYPES)[number];

/** Figures of one teacher in one projector. */
export interface TeacherCosts {
  /** Name of the teacher. */
  readonly teacher: string;
  /** Null for a linear adapter. */
  readonly ratio: number | null;
  /** Width between the linear layers of an elastic adapter. @integer */
  readonly hidden: number | null;
  readonly perAdapter: Figure;
  /** Adapters for K and V together. */
  readonly perTeacher: Figure;
  /** Bytes of the parameters by element type. */
  readonly bytes: Readonly<Record<MemoryDtype, Figure>>;
  /** Published parameters for this kind and ratio; null if there are none. */
  readonly published: PublishedParameters | null;
  /** FLOPs for the keys and values of one token, in all layers; in one layer if their number is unknown. */
  readonly flopsPerToken: Figure;
}

/** One projector for all teachers. */
export interface ProjectorCosts {
  /** Kind of the adapters. */
  readonly kind: AdapterShape['kind'];
  /** Requested ratio; null for a linear projector. */
  readonly ratio: RatioChoice | null;
  /** Figures of each teacher. */
  readonly teachers: readonly TeacherCosts[];
  /** Sums over the teachers. */
  readonly total: {
    readonly parameters: Figure;
    /** Bytes of the parameters by element type. */
    readonly bytes: Readonly<Record<MemoryDtype, Figure>>;
    readonly flopsPerToken: Figure;
  };
}

export interface CostedTeacher {
  /** Name of the teacher. */
  readonly name: string;
  /** Width of its keys and values. @integer */
  readonly width: number;
  /** Its layers; null if unknown. @integer */
  readonly layers: number | null;
  /** Size of the teacher's model; null if unknown. */
  readonly size: TeacherSize | null;
  /** Recommended ratio; null for an unknown size. */
  readonly recommended: Recommendation | null;
}

type RatedTeacher = Pick<CostedTeacher, 'width'> & Partial<Pick<CostedTeacher, 'recommended'>>;

export interface ProjectorComparison {
  /** Width of the student. @integer */
  readonly student: number;
  /** The teachers. */
  readonly teachers: readonly CostedTeacher[];
  /** Figures of each kind and ratio. */
  readonly projectors: readonly ProjectorCosts[];
  /** Teachers of unknown size, which have no recommendation. */
  readonly withoutSize: readonly string[];
}

/**
 * Sizes and costs of projectors.
 * @answer minimind kv-projector params --json
 */
export interface ProjectorParamsResult extends ProjectorComparison {
  readonly schema: 'minimind/kv-projector-params@1';
  /** Explanations of a published number; absent without `--published`. */
  readonly published?: PublishedReport;
}

/**
 * Compares linear projectors with elastic ones.
 * @param student The student's width.
 * @param ratios Ratios of the elastic ones. The recommended one is skipped if a teacher's size is unknown.
 * @throws UserError when a ratio reduces a width to zero.
 */
export function compareProjectors(
  teachers: readonly SizedTeacher[],
  student: number,
  ratios: readonly RatioChoice[],
): ProjectorComparison {
  const costed = teachers.map(({ name, width, layers = null, size }) => ({
    name,
    width,
    layers,
    size,
    recommended: size && recommendationFor(size),
  }));
  const withoutSize = costed.filter(({ size }) => !size).map(({ name }) => name);
  const possible = ratios.filter((ratio) => ratio !== 'recommended' || withoutSize.length === 0);
  return {
    student,
    teachers: costed,
    projectors: [null, ...possible].map((ratio) => projectorCosts(costed, student, ratio)),
    withoutSize,
  };
}

function projectorCosts(
  teachers: readonly CostedTeacher[],
  student: number,
  ratio: RatioChoice | null,
): ProjectorCosts {
  refuseNoWidth(teachers, ratio);
  const costs = teachers.map((teacher) => teacherCosts(teacher, student, ratio));
  const sumOf = (label: string, unit: Figure['unit'], of: (each: TeacherCosts) => Figure) =>
    sumFigure(
      label,
      unit,
      Object.fromEntries(costs.map((each, index) => [`teacher_${index + 1}`, of(each)])),
      'the sum over the teachers',
    );
  const parameters = sumOf('parameters of all adapters', 'parameters', (each) => each.perTeacher);
  return {
    kind: ratio === null ? 'linear' : 'elastic',
    ratio,
    teachers: costs,
    total: {
      parameters,
      bytes: parameterBytes(parameters, 'all adapters'),
      flopsPerToken: sumOf(
        'FLOPs of a token of all teachers',
        'FLOP',
        (each) => each.flopsPerToken,
      ),
    },
  };
}

/** A linear adapter has no ratio. */
const ratioFor = ({ recommended }: RatedTeacher, choice: RatioChoice | null): number | null =>
  choice === 'recommended' ? (recommended?.ratio ?? null) : choice;

/** @throws UserError that suggests a ratio valid for every teacher. */
export function refuseNoWidth(teachers: readonly RatedTeacher[], choice: RatioChoice | null): void {
  for (const teacher of teachers) {
    const { width } = teacher;
    const ratio = ratioFor(teacher, choice);
    if (ratio === null || hiddenOf(width, ratio) > 0) continue;
    const narrowest = Math.min(...teachers.map((each) => each.width));
    throw usageError(
      `expected a ratio with a hidden width of at least 1, found ${ratio} of width ${width}`,
      `write a ratio of ${leastRatioText(narrowest)} or more`,
    );
  }
}

/** A ratio near the minimum that keeps the width above zero, with the digits that `--ratio` accepts. */
export function leastRatioText(width: number): string {
  const places = Math.ceil(Math.log10(width)) + 1;
  const nearest = Number((1 / width).toFixed(places));
  const ratio = hiddenOf(width, nearest) > 0 ? nearest : nearest + 10 ** -places;
  return ratio.toFixed(places).replace(/\.?0+$/, '');
}

function teacherCosts(
  teacher: CostedTeacher,
  student: number,
  choice: RatioChoice | null,
): TeacherCosts {
  const { name, width, layers } = teacher;
  const ratio = ratioFor(teacher, choice);
  const hidden = ratio === null ? null : hiddenOf(width, ratio);
  const perAdapter = adapterParameters({
    kind: hidden === null ? 'linear' : 'elastic',
    teacherWidth: width,
    studentWidth: student,
    ...(hidden !== null && { hidden }),
  });
  const perTeacher = figure({
    label: 'the adapters of a teacher',
    unit: 'parameters',
    formula: mul(v({ branches: BRANCHES.length }), v({ per_adapter: perAdapter.value })),
    source: 'one adapter for K and one for V',
  });
  return {
    teacher: name,
    ratio,
    hidden,
    perAdapter,
    perTeacher,
    bytes: parameterBytes(perTeacher, 'the adapters of a teacher'),
    published: publishedFor({
      ...{ width, student, ratio },
      perAdapter: perAdapter.value,
    }),
    flopsPerToken: flopsOf(width, student, hidden, layers ?? 1),
  };
}

const parameterBytes = (parameters: Figure, what: string) =>
  Object.fromEntries(
    MEMORY_DTYPES.map((dtype) => [
      dtype,
      figure({
        label: `${what} in ${dtype}`,
        unit: 'bytes',
        formula: mul(
          v({ parameters: parameters.value }),
          v({ bytes_per_value: bytesIn(1, dtype) }),
        ),
        source: 'the width of the type',
      }),
    ]),
  ) as Record<MemoryDtype, Figure>;

/** Matrix products only: norm, SiLU and biases add a few thousandths. */
function flopsOf(width: number, student: number, hidden: number | null, layers: number): Figure {
  const widths = inputs({ teacher_width: width, student_width: student });
  const { teacher_width, student_width } = widths;
  const times = { branches: v({ branches: BRANCHES.length }), layers: v({ layers }) };
  const products =
    hidden === null
      ? mul(teacher_width, student_width)
      : add(mul(teacher_width, v({ hidden })), mul(v({ hidden }), student_width));
  return figure({
    label: 'FLOPs of the keys and values of a token',
    unit: 'FLOP',
    formula: mul(times.branches, times.layers, 2, products),
    inputs: { ...times, ...widths },
    source:
      'a product of matrices is a multiplication and an addition for each pair of values; the rest is left out',
  });
}

/** Teachers of the command line. */
interface LoadedTeachers {
  readonly teachers: readonly SizedTeacher[];
  readonly warnings: readonly Problem[];
}

/**
 * Loads the teachers of `--teacher`, in order.
 * @throws UserError for a teacher that is neither a name with sizes nor a config, or two that would share an
 * adapter.
 */
export async function loadTeachers(written: readonly string[]): Promise<LoadedTeachers> {
  const teachers: SizedTeacher[] = [];
  const warnings: Problem[] = [];
  for (const text of written) {
    const teacher = parseTeacher(text);
    if (teacher) {
      teachers.push({ ...teacher, size: sizeInName(teacher.name) ?? null });
      continue;
    }
    const loaded = await teacherOf(text);
    teachers.push(loaded.teacher);
    warnings.push(...loaded.warnings);
  }
  refuseShared(teachers.map(({ name }) => name));
  return { teachers, warnings };
}

/** @throws UserError when two teachers would share an adapter. */
function refuseShared(names: readonly string[]): void {
  const [pair] = sharedModules(names);
  if (pair === undefined) return;
  const { module, first, second } = pair;
  const problem =
    first === second
      ? `${quote(first)} occurs twice`
      : `${quote(first)} and ${quote(second)} are both called ${quote(module)} in a projector`;
  throw usageError(
    `${setting('teacher')}: ${problem}`,
    `give each teacher a name of its own, as in ${setting('teacher', 'other:5120x40')}`,
  );
}

async function teacherOf(file: string) {
  const place = locateModel(file);
  if (!fs.existsSync(place.config)) {
    throw usageError(
      `${setting('teacher')}: ${quote(file)} has no sizes and is not a file`,
      `write its name, width and layers as in ${setting('teacher', 'Qwen2-14B:5120x40')}, or a config or preset`,
    );
  }
  const { model, warnings } = await loadModelFile(place);
  const name = configName(place);
  const teacher: SizedTeacher = {
    name,
    width: model.hidden,
    layers: model.blocks.length,
    size: sizeOfModel(name, countParameters(model).parameters),
  };
  return { teacher, warnings };
}

/** A folder, or the folder of a config.json, gives its name; any other file its name without extension. */
function configName(place: ModelPlace): string {
  const file = path.resolve(place.kind === 'preset' ? place.config : place.path);
  const { name, dir, base } = path.parse(file);
  if ('listing' in place && Array.isArray(place.listing)) return base;
  return base === 'config.json' ? path.basename(dir) : name;
}

// Published parameters of adapters, with the reason why they differ from the counted ones.

/** Widths of the adapters in all published figures. */
export const PUBLISHED_WIDTHS = { teacher: 5120, student: 1536 } as const;

interface Published {
  /** Null for a linear adapter. */
  readonly ratio: number | null;
  /** Published number of parameters. */
  readonly parameters: number;
  /** As published. */
  readonly text: string;
}

/** The guidance gives the elastic figures per teacher; the verification gives the linear one. */
const PUBLISHED: readonly Published[] = [
  { ratio: null, parameters: 7_865_856, text: '7,865,856' },
  { ratio: 0.5, parameters: 17e6, text: 'about 17M' },
  { ratio: 1, parameters: 34_095_616, text: '34,095,616' },
  { ratio: 2, parameters: 68e6, text: 'about 68M' },
];

interface PublishedParameters extends Pick<Published, 'parameters' | 'text'> {
  /** Reason why it is not the number of parameters of the teacher's adapters. */
  readonly reason: string;
}

/** Counted parameters of an adapter, and the sizes that determine them. */
interface Counted {
  readonly width: number;
  readonly student: number;
  readonly ratio: number | null;
  readonly perAdapter: number | bigint;
}

/** Published figure for an adapter kind and ratio; null where none is published. */
function publishedFor(counted: Counted): PublishedParameters | null {
  const { width, student, ratio, perAdapter } = counted;
  const published = PUBLISHED.find((each) => each.ratio === ratio);
  const isSame = width === PUBLISHED_WIDTHS.teacher && student === PUBLISHED_WIDTHS.student;
  // The published guidance gives its elastic figures without regard to the teacher's width.
  if (published === undefined || (ratio === null && !isSame)) return null;
  const { parameters, text } = published;
  if (ratio === null) {
    const bias = formatInteger(student);
    return { parameters, text, reason: `one adapter with a bias of ${bias}; saved ones have none` };
  }
  const reason = isSame
    ? `one adapter (${formatInteger(perAdapter)}), published per teacher, which has two`
    : `one adapter of ${formatInteger(PUBLISHED_WIDTHS.teacher)} → ${formatInteger(PUBLISHED_WIDTHS.student)}, not two of ` +
      `${formatInteger(width)} → ${formatInteger(student)}`;
  return { parameters, text, reason };
}
