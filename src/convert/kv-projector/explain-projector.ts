/** Explains a published number of a projector by its designs, and by what publications leave out or count once. */

import { bytesIn } from '../../base/tensor/dtype.js';
import { formatBytes, formatInteger, significant } from '../../base/text/units.js';
import type {
  PublishedBytes,
  PublishedCount,
  PublishedRatio,
} from '../../config/parse-published.js';
import { isRatio } from '../../config/parse-published.js';
import type {
  CountingError,
  Explanation,
  PublishedReport,
} from '../../model/budget/published/explanations.js';
import { judged } from '../../model/budget/published/explanations.js';
import { judgedRatios } from '../../model/budget/published/published-ratios.js';
import type { ProjectorComparison, ProjectorCosts, TeacherCosts } from './costs.js';
import { PUBLISHED_WIDTHS } from './costs.js';
import { adapterParameters, BRANCHES, hiddenOf } from './projector.js';

type ProjectorExplanation = Explanation<bigint>;

const TYPES = ['f32', 'bf16', 'i8'] as const;

/**
 * Tries each design, per adapter, per teacher and in total, with and without norm and biases; for a ratio or a
 * percentage each pair of designs.
 */
export function explainProjector(
  comparison: ProjectorComparison,
  published: PublishedCount | PublishedBytes | PublishedRatio,
): PublishedReport {
  if (isRatio(published)) {
    const { unit } = published;
    const all = designRatios(comparison, unit);
    return { unit, difference: null, ...judgedRatios(all, published) };
  }
  const { projectors, teachers, student } = comparison;
  const widths = new Map(teachers.map(({ name, width }) => [name, width]));
  const counts = projectors.flatMap((projector) => [
    ...projector.teachers.flatMap((costs) =>
      adapterCounts(costs, projector, widths.get(costs.teacher) ?? 0, student),
    ),
    ...publishedCounts(
      projector,
      (teacher) =>
        widths.get(teacher) === PUBLISHED_WIDTHS.teacher && student === PUBLISHED_WIDTHS.student,
    ),
    ...(teachers.length > 1
      ? [
          explainedProjector(
            'total',
            `${projectorLabel(projector)}, all teachers`,
            projector.total.parameters.value,
            1,
          ),
        ]
      : []),
  ]);
  const all = published.unit === 'bytes' ? counts.flatMap(inBytes) : counts;
  return { unit: published.unit ?? 'parameters', difference: null, ...judged(all, published) };
}

/** Counts of the adapters in the published figures, if a teacher has another width. */
function publishedCounts(
  projector: ProjectorCosts,
  isOwnWidth: (teacher: string) => boolean,
): ProjectorExplanation[] {
  const { teacher: width, student } = PUBLISHED_WIDTHS;
  return projector.teachers.flatMap(({ ratio, perTeacher, teacher, published }) => {
    if (ratio === null || published === null || isOwnWidth(teacher)) return [];
    const hidden = hiddenOf(width, ratio);
    const shape = { kind: 'elastic', teacherWidth: width, studentWidth: student, hidden } as const;
    const count = adapterParameters(shape).value;
    const text =
      `${projectorLabel(projector)}: one adapter of ${formatInteger(width)} → ${formatInteger(student)}, not those of ${teacher}, ` +
      `which have ${formatInteger(perTeacher.value)} for K and V`;
    return [explainedProjector(`published: ${projectorLabel(projector)}`, text, count, 1.8)];
  });
}

/** Count of an adapter, or of K and V of a teacher, in a design. */
interface DesignCount {
  readonly label: string;
  readonly adapters: number;
  readonly value: number;
  /** Set for a linear adapter with a bias, which is not saved. */
  readonly hasBias?: true;
}

/** Ratios of each design to each other one, for equal and different numbers of adapters. */
function designRatios(
  { projectors, student }: ProjectorComparison,
  unit: PublishedRatio['unit'],
): Explanation<number>[] {
  const teachers = new Set(
    projectors.flatMap((projector) => projector.teachers.map(({ teacher }) => teacher)),
  );
  return [...teachers].flatMap((teacher) => {
    const designs = projectors.flatMap((projector): DesignCount[] => {
      const costs = projector.teachers.find((each) => each.teacher === teacher);
      if (costs === undefined || projector.ratio === 'recommended') return [];
      const one = Number(costs.perAdapter.value);
      const label = projectorLabel(projector);
      const whole = [
        { label, adapters: 1, value: one },
        { label, adapters: BRANCHES.length, value: Number(costs.perTeacher.value) },
      ];
      const withBias = {
        label: `${label} with a bias`,
        adapters: 1,
        value: one + student,
        hasBias: true,
      } as const;
      return projector.ratio === null ? [...whole, withBias] : whole;
    });
    return designs.flatMap((a) =>
      designs.filter((b) => b.label !== a.label).flatMap((b) => designRatio(teacher, a, b, unit)),
    );
  });
}

function designRatio(
  teacher: string,
  a: DesignCount,
  b: DesignCount,
  unit: PublishedRatio['unit'],
): Explanation<number>[] {
  const value = a.value / b.value;
  const isLike = a.adapters === b.adapters;
  const like = (value * b.adapters) / a.adapters;
  const each = ({ label, adapters }: DesignCount) =>
    `${label}, ${adapters === 1 ? 'one adapter' : 'K and V'}`;
  const text = `${teacher}: ${each(a)} ÷ ${each(b)}`;
  const reason: CountingError = {
    id: `${text}`,
    text,
    weight: (isLike ? 1 : 1.3) + (a.adapters > 1 && isLike ? 0.1 : 0) + (b.hasBias ? 0.05 : 0),
  };
  const uneven: CountingError = {
    id: 'adapters',
    text: `this compares two adapters with one: like for like ${significant(like)} ×`,
    weight: 0.2,
  };
  const reasons = isLike ? [reason] : [reason, uneven];
  if (unit === 'ratio' || value > 1) return [{ value, reasons }];
  const saved = {
    ...reason,
    id: `${text}: saved`,
    text: `${each(a)} in place of ${each(b)}: the part saved`,
  };
  return [
    { value, reasons },
    { value: 1 - value, reasons: [saved, ...reasons.slice(1)] },
  ];
}

const projectorLabel = ({ kind, ratio }: ProjectorCosts): string =>
  ratio === null ? kind : `${kind}, ratio ${ratio}`;

const explainedProjector = (
  id: string,
  text: string,
  value: number | bigint,
  weight: number,
): ProjectorExplanation => ({ value: BigInt(value), reasons: [{ id, text, weight }] });

/** Counts of an adapter and of a teacher, unchanged and with other parts. */
function adapterCounts(
  { teacher, perAdapter, perTeacher, hidden }: TeacherCosts,
  projector: ProjectorCosts,
  width: number,
  student: number,
): ProjectorExplanation[] {
  const name = `${projectorLabel(projector)}, ${teacher}`;
  const whole = [
    {
      id: 'teacher',
      adapters: BRANCHES.length,
      value: BigInt(perTeacher.value),
      text: `${name}: K and V`,
      weight: 1,
    },
    {
      id: 'adapter',
      adapters: 1,
      value: BigInt(perAdapter.value),
      text: `${name}: one adapter, K or V alone; a teacher has ${formatInteger(perTeacher.value)}`,
      weight: 1.1,
    },
  ];
  const bias = BigInt(student) + BigInt(hidden ?? 0);
  const changes: readonly (CountingError & { readonly adds: bigint })[] =
    hidden === null
      ? [{ id: 'bias', text: 'with a bias', weight: 0.5, adds: bias }]
      : [
          { id: 'no-norm', text: 'without the norm', weight: 0.5, adds: -2n * BigInt(width) },
          { id: 'no-bias', text: 'without the biases', weight: 0.5, adds: -bias },
          {
            id: 'no-norm-bias',
            text: 'without norm and biases',
            weight: 0.7,
            adds: -bias - 2n * BigInt(width),
          },
        ];
  return whole.flatMap(({ id, adapters, value, text, weight }) => {
    const reason = { id: `${id}: ${name}`, text, weight };
    return [
      { value, reasons: [reason] },
      ...changes.map(({ adds, ...change }) => ({
        value: value + BigInt(adapters) * adds,
        reasons: [reason, change],
      })),
    ];
  });
}

/** The bytes of a count in each type, and the count itself, called bytes. */
function inBytes({ value, reasons }: ProjectorExplanation): ProjectorExplanation[] {
  const bytes = TYPES.map((dtype, index) => ({
    value: BigInt(bytesIn(Number(value), dtype)),
    reasons: [...reasons, { id: dtype, text: `in ${dtype}`, weight: 0.1 * (index + 1) }],
  }));
  const [, half] = bytes;
  const text = `the number of values, called bytes: in bf16 it is ${formatBytes(half?.value ?? 0n)}`;
  return [...bytes, { value, reasons: [...reasons, { id: 'elements', text, weight: 0.5 }] }];
}
