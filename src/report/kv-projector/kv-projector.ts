/** Reports of `minimind kv-projector project` and `convert`. */

import { FILE_FORMATS } from '../../checkpoint/formats.js';
import type { ProjectorConversion } from '../../kv-projector/convert-projector.js';
import type {
  CostedTeacher,
  ProjectorComparison,
  ProjectorCosts,
  TeacherCosts,
} from '../../kv-projector/costs.js';
import type { KvProjection } from '../../kv-projector/project-kv.js';
import { formatBytes, formatCount, formatInteger } from '../../text/units.js';
import { counted } from '../../text/words.js';
import {
  bytesCell,
  flopsCell,
  heading,
  integerCell,
  left,
  note,
  right,
  strong,
} from '../kit/cells.js';
import type { Block, Cell, Column, Report, TableBlock } from '../kit/report.js';
import { explanationBlocks } from '../profile/inventory.js';

type Described = KvProjection['projector'];

const projectorText = ({ path, kind, teachers, studentWidth, parameters }: Described): string =>
  `${path}: ${kind}, ${counted(teachers.length, 'teacher')}, width ${studentWidth}, ${formatInteger(parameters)} parameters.`;

export function projectionReport(result: KvProjection): Report {
  const { projector, output, bytes, tensors, ignored, products } = result;
  return {
    blocks: [
      { kind: 'heading', text: `done: ${output}`, tone: 'good' },
      note(projectorText(projector)),
      {
        kind: 'table',
        columns: [
          left('tensor', 'tensor', true),
          left('of', 'shape'),
          left('becomes', 'projected_shape'),
          left('type', 'dtype'),
          right('not finite', 'non_finite'),
        ],
        rows: tensors.map((each) => [
          { text: each.output.name },
          { text: `[${each.input.shape.join(', ')}]` },
          { text: `[${each.output.shape.join(', ')}]` },
          { text: each.output.dtype },
          integerCell(each.output.nonFinite),
        ]),
      },
      note(
        `${formatBytes(bytes)}, products by ${products}.${ignored.length > 0 ? ` Left alone: ${counted(ignored.length, 'tensor')} of results.` : ''}`,
      ),
    ],
  };
}

export function projectorConversionReport(result: ProjectorConversion): Report {
  const { projector, format, output, container, bytes, arguments: names } = result;
  return {
    blocks: [
      { kind: 'heading', text: `done: ${output}`, tone: 'good' },
      note(projectorText(projector)),
      {
        kind: 'table',
        columns: [
          left('from', 'from'),
          left('to', 'to'),
          right('tensors', 'tensors'),
          right('parameters', 'parameters'),
          right('size', 'bytes'),
          left('arguments', 'arguments', true),
        ],
        rows: [
          [
            { text: FILE_FORMATS[format].title, value: format },
            { text: container },
            integerCell(projector.tensors),
            integerCell(projector.parameters),
            bytesCell({ value: bytes }),
            { text: names.join(', ') || 'none in the file' },
          ],
        ],
      },
    ],
  };
}

// Report of `minimind kv-projector params`: one row for each kind of projector and teacher.

interface Options {
  readonly explain: boolean;
  /** Whether to output one table with all values, for programs. */
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

/** `elastic 0.5`, `recommended` */
const shortLabelOf = ({ kind, ratio }: ProjectorCosts): string => {
  if (ratio === null) return kind;
  return ratio === 'recommended' ? ratio : `${kind} ${ratio}`;
};

/** Variants of the table; each omits more. */
const ROOMS = ['all', 'less', 'least'] as const;
type Room = (typeof ROOMS)[number];

/** A column of figures: a cell for one teacher, and one for the total. */
interface FigureColumn {
  readonly column: Column;
  readonly rooms: readonly Room[];
  readonly of: (costs: TeacherCosts) => Cell;
  readonly ofAll: (total: ProjectorCosts['total']) => Cell;
}

const FIGURES: readonly FigureColumn[] = [
  {
    column: right('ratio', 'ratio'),
    rooms: ['all'],
    of: ({ ratio }) => (ratio === null ? NOTHING : { text: String(ratio), value: ratio }),
    ofAll: () => NOTHING,
  },
  {
    column: right('hidden', 'hidden'),
    rooms: ['all'],
    of: ({ hidden }) => (hidden === null ? NOTHING : integerCell(hidden)),
    ofAll: () => NOTHING,
  },
  {
    column: right('per adapter', 'parameters_per_adapter'),
    rooms: ['all', 'less'],
    of: ({ perAdapter }) => integerCell(perAdapter.value),
    ofAll: () => NOTHING,
  },
  {
    column: right('K and V', 'parameters'),
    rooms: ROOMS,
    of: ({ perTeacher }) => integerCell(perTeacher.value),
    ofAll: ({ parameters }) => integerCell(parameters.value),
  },
  {
    column: right('f32', 'bytes_f32'),
    rooms: ['all'],
    of: ({ bytes }) => bytesCell(bytes.f32),
    ofAll: ({ bytes }) => bytesCell(bytes.f32),
  },
  {
    column: right('bf16, f16', 'bytes_bf16'),
    rooms: ROOMS,
    of: ({ bytes }) => bytesCell(bytes.bf16),
    ofAll: ({ bytes }) => bytesCell(bytes.bf16),
  },
  {
    column: right('per token', 'flops_per_token'),
    rooms: ROOMS,
    of: ({ flopsPerToken }) => flopsCell(flopsPerToken.value),
    ofAll: ({ flopsPerToken }) => flopsCell(flopsPerToken.value),
  },
];

/** The table and its narrower variants. */
function tableOf(
  result: ProjectorComparison,
  [room, ...narrower]: readonly [Room, ...Room[]] = ROOMS,
): TableBlock {
  const { projectors, teachers } = result;
  const figures = FIGURES.filter(({ rooms }) => rooms.includes(room));
  const [next, ...rest] = narrower;
  const label = room === 'all' ? labelOf : shortLabelOf;
  return {
    kind: 'table',
    columns: [
      left('projector', 'projector'),
      left('teacher', 'teacher', room === 'least'),
      ...figures.map(({ column }) => column),
    ],
    rows: projectors.flatMap((projector) => [
      ...projector.teachers.map((costs) => [
        strong(label(projector)),
        { text: costs.teacher },
        ...figures.map(({ of }) => of(costs)),
      ]),
      ...(teachers.length > 1
        ? [
            [
              strong(label(projector)),
              strong('all'),
              ...figures.map(({ ofAll }) => ofAll(projector.total)),
            ],
          ]
        : []),
    ]),
    narrower: next && tableOf(result, [next, ...rest]),
  };
}

function notesOf({ teachers, withoutSize }: ProjectorComparison): Block[] {
  const beyond = teachers.filter(({ recommended }) => recommended?.isBeyond);
  return [
    ...teachers.map((teacher) => note(teacherText(teacher))),
    note(
      'Per adapter, and for K and V: parameters. bf16, f16: the bytes that they take as such; in f32 they take twice that.',
    ),
    note(
      'An elastic adapter narrows the teacher’s width to the ratio times that, its hidden width, before it leads to the student’s.',
    ),
    note(
      'Per token: FLOPs of the matrix products, for K and V of one token in every layer of its teacher.',
    ),
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
