/** What `minimind kv-projector params` prints: a row for each way of building a projector, and teacher. */
import type {
  CostedTeacher,
  ProjectorComparison,
  ProjectorCosts,
  TeacherCosts,
} from '../kv-projector/costs.js';
import { bytesCell, flopsCell, heading, integerCell, left, note, right, strong } from './cells.js';
import { explanationBlocks } from './explanation.js';
import type { Block, Cell, Report, TableBlock } from './report.js';
import { formatCount, formatInteger } from './units.js';
import { counted } from './wording.js';

interface Options {
  readonly explain: boolean;
  /** Whether the reader is a program, for which one table with all values is best. */
  readonly flat: boolean;
}

const NOTHING: Cell = { text: '–', value: '' };

export function projectorParamsReport(
  result: ProjectorComparison,
  { explain, flat }: Options,
): Report {
  if (flat) return { blocks: [tableOf(result)] };
  const { student, teachers, projectors } = result;
  return {
    blocks: [
      heading(`Projectors of ${counted(teachers.length, 'teacher')} to a width of ${student}`),
      tableOf(result),
      ...notesOf(result),
      ...(explain
        ? explanationBlocks(
            Object.fromEntries(projectors.map((each) => [labelOf(each), each] as const)),
          )
        : []),
    ],
  };
}

const labelOf = ({ kind, ratio }: ProjectorCosts): string =>
  ratio === null ? kind : `${kind}, ratio ${ratio}`;

function tableOf({ projectors, teachers }: ProjectorComparison): TableBlock {
  return {
    kind: 'table',
    columns: [
      left('projector', 'projector'),
      left('teacher', 'teacher'),
      right('ratio', 'ratio'),
      right('hidden', 'hidden'),
      right('per adapter', 'parameters_per_adapter'),
      right('K and V', 'parameters'),
      right('f32', 'bytes_f32'),
      right('bf16, f16', 'bytes_bf16'),
      right('per token', 'flops_per_token'),
    ],
    rows: projectors.flatMap((projector) => [
      ...projector.teachers.map((each) => teacherRow(projector, each)),
      ...(teachers.length > 1 ? [totalRow(projector)] : []),
    ]),
  };
}

const teacherRow = (projector: ProjectorCosts, costs: TeacherCosts): Cell[] => [
  strong(labelOf(projector)),
  { text: costs.teacher },
  costs.ratio === null ? NOTHING : { text: String(costs.ratio), value: costs.ratio },
  costs.hidden === null ? NOTHING : integerCell(costs.hidden),
  integerCell(costs.perAdapter.value),
  integerCell(costs.perTeacher.value),
  bytesCell(costs.bytes.f32),
  bytesCell(costs.bytes.bf16),
  flopsCell(costs.flopsPerToken.value),
];

const totalRow = (projector: ProjectorCosts): Cell[] => [
  strong(labelOf(projector)),
  { text: 'all', tone: 'strong' },
  NOTHING,
  NOTHING,
  NOTHING,
  integerCell(projector.total.parameters.value),
  bytesCell(projector.total.bytes.f32),
  bytesCell(projector.total.bytes.bf16),
  flopsCell(projector.total.flopsPerToken.value),
];

function notesOf({ teachers, withoutSize }: ProjectorComparison): Block[] {
  const beyond = teachers.filter(({ recommended }) => recommended?.isBeyond);
  return [
    ...teachers.map((teacher) => note(teacherText(teacher))),
    note('FLOPs of the matrix products, for K and V of one token in every layer of its teacher.'),
    ...(withoutSize.length > 0
      ? [
          note(
            `No ratio is recommended: the size of ${withoutSize.join(', ')} is unknown. A name such as Qwen2-14B says it.`,
          ),
        ]
      : []),
    ...(beyond.length > 0
      ? [note(`The published guidance ends at 70B: ${beyond.map(({ name }) => name).join(', ')}.`)]
      : []),
  ];
}

function teacherText({ name, width, layers, size, recommended }: CostedTeacher): string {
  const depth = layers === null ? 'one layer counted' : counted(layers, 'layer');
  const published =
    size && recommended
      ? `; ${formatCount(size.parameters)} parameters by its ${size.from}, for which ratio ${recommended.ratio} is published`
      : '';
  return `${name}: width ${formatInteger(width)}, ${depth}${published}.`;
}
