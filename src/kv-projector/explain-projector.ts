/** Explains a published number of a projector by its designs, and by what publications leave out or count once. */

import type {
  CountingError,
  Explanation,
  PublishedReport,
} from '../budget/published/explain-published.js';
import { isNear, MOST_EXPLANATIONS, ranked } from '../budget/published/explain-published.js';
import type { PublishedBytes, PublishedCount } from '../config/parse-number.js';
import { bytesIn } from '../tensor/dtype.js';
import { formatBytes, formatInteger } from '../text/units.js';
import type { ProjectorComparison, ProjectorCosts, TeacherCosts } from './costs.js';
import { BRANCHES } from './projector.js';

type ProjectorExplanation = Explanation<bigint>;

const TYPES = ['f32', 'bf16', 'i8'] as const;

/** Tries each design, per adapter, per teacher and in total, with and without norm and biases. */
export function explainProjector(
  { projectors, teachers, student }: ProjectorComparison,
  published: PublishedCount | PublishedBytes,
): PublishedReport<bigint> {
  const widths = new Map(teachers.map(({ name, width }) => [name, width]));
  const counts = projectors.flatMap((projector) => [
    ...projector.teachers.flatMap((costs) =>
      adapterCounts(costs, projector, widths.get(costs.teacher) ?? 0, student),
    ),
    ...(teachers.length > 1
      ? [
          explained(
            'total',
            `${labelOf(projector)}, all teachers`,
            projector.total.parameters.value,
            1,
          ),
        ]
      : []),
  ]);
  const all = published.unit === 'bytes' ? counts.flatMap(inBytes) : counts;
  return {
    unit: published.unit ?? 'parameters',
    value: published.value,
    tolerance: published.tolerance,
    difference: null,
    explanations: ranked(all.filter(isNear(published)), published.value).slice(
      0,
      MOST_EXPLANATIONS,
    ),
    tried: all.length,
  };
}

const labelOf = ({ kind, ratio }: ProjectorCosts): string =>
  ratio === null ? kind : `${kind}, ratio ${ratio}`;

const explained = (
  id: string,
  text: string,
  value: number | bigint,
  weight: number,
): ProjectorExplanation => ({ value: BigInt(value), reasons: [{ id, text, weight }] });

/** An adapter and a teacher, each as it is and with other parts. */
function adapterCounts(
  { teacher, perAdapter, perTeacher, hidden }: TeacherCosts,
  projector: ProjectorCosts,
  width: number,
  student: number,
): ProjectorExplanation[] {
  const name = `${labelOf(projector)}, ${teacher}`;
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
