/** Reports of `minimind kv-projector project` and `convert`. */

import { setting } from '../../base/text/setting.js';
import {
  formatBytes,
  formatInteger,
  percentText,
  shortCount,
  significant,
} from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { present, sumOf } from '../../base/values.js';
import { FORMAT_TITLES } from '../../checkpoint/formats.js';
import type {
  CostedTeacher,
  ProjectorComparison,
  ProjectorCosts,
  TeacherCosts,
} from '../../convert/kv-projector/costs.js';
import type { KvProjection } from '../../convert/kv-projector/project-kv.js';
import type { ProjectorUpgrade } from '../../convert/kv-projector/upgrade-projector.js';
import type {
  ProjectorConversion,
  ProjectorInit,
} from '../../convert/kv-projector/write-projector.js';
import type { PublishedReport } from '../../model/budget/published/explanations.js';
import { LARGE_ERROR } from '../convert/convert-plan.js';
import type { Block, Cell, Column, Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import {
  bytesCell,
  cutColumn,
  flopsCell,
  headingBlock,
  integerCell,
  leftColumn,
  NOTHING,
  noteOf,
  paragraph,
  percentCell,
  right,
  shapeText,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import { explanationBlocks, publishedBlocks } from '../profile/explanation.js';

type Described = KvProjection['projector'];

const projectorFact = ({ path, kind, teachers, studentWidth, parameters }: Described): Fact => ({
  name: 'projector',
  text: `${path} (${kind}, ${counted(teachers.length, 'teacher')}, width ${studentWidth}, ${shortCount(parameters)} parameters)`,
});

/** Rows of the answer's table; the details have all. */
const ANSWER_ROWS = 10;

export function projectionReport(result: KvProjection): Report {
  const { projector, output, bytes, tensors, ignored, products } = result;
  const more = tensors.length - ANSWER_ROWS;
  const nonFinite = sumOf(tensors, (each) => each.output.nonFinite);
  const table = projectionTable(tensors);
  return {
    verdict: {
      text:
        `Wrote ${output}: ${counted(tensors.length, 'tensor')}, ${formatBytes(bytes)}` +
        `${nonFinite > 0 ? `, ${counted(nonFinite, 'value')} not finite` : ''}`,
      tone: nonFinite > 0 ? 'bad' : 'good',
    },
    blocks: [
      {
        kind: 'facts',
        facts: present([
          projectorFact(projector),
          { name: 'products', text: products },
          ignored.length > 0 && {
            name: 'skipped',
            text: `${counted(ignored.length, 'tensor')} of earlier results`,
          },
        ]),
      },
      { ...table, rows: table.rows.slice(0, ANSWER_ROWS) },
      ...(more > 0 ? [noteOf(`… ${more} more: ${setting('details')}`)] : []),
    ],
    details: more > 0 ? [headingBlock('Tensors'), table] : [],
    data: table,
  };
}

const projectionTable = (tensors: KvProjection['tensors']): TableBlock =>
  tableOf(tensors, [
    cutColumn('tensor', 'tensor', (each) => each.output.name),
    leftColumn('input shape', 'shape', (each) => shapeText(each.input.shape)),
    leftColumn('output shape', 'projected_shape', (each) => shapeText(each.output.shape)),
    leftColumn('type', 'dtype', (each) => each.output.dtype),
    right('not finite', 'non_finite', (each) => integerCell(each.output.nonFinite)),
  ]);

export function projectorConversionReport(result: ProjectorConversion): Report {
  const { projector, format, output, container, bytes, arguments: names } = result;
  return {
    verdict: {
      text: `Converted to ${output}: ${FORMAT_TITLES[format]} → ${container}, ${counted(projector.tensors, 'tensor')}, ${formatBytes(bytes)}, all values unchanged`,
      tone: 'good',
    },
    blocks: [
      {
        kind: 'facts',
        facts: [
          projectorFact(projector),
          { name: 'arguments', text: names.join(', ') || 'none in the file' },
        ],
      },
    ],
    data: tableOf(
      [result],
      [
        leftColumn('from', 'from', () => ({ text: FORMAT_TITLES[format], value: format })),
        leftColumn('to', 'to', () => container),
        right('tensors', 'tensors', () => integerCell(projector.tensors)),
        right('parameters', 'parameters', () => integerCell(projector.parameters)),
        right('size', 'bytes', () => bytesCell(bytes)),
        wrapColumn('arguments', 'arguments', () => names.join(', ') || 'none in the file'),
      ],
    ),
  };
}

/** Report of a linear projector in the elastic layout, with its error. */
export function projectorUpgradeReport(result: ProjectorUpgrade): Report {
  const { projector, output, upgrade, arguments: names } = result;
  const { adapters, kv, ratio, dropout } = upgrade;
  const worst = Math.max(...adapters.map(({ error }) => error));
  const exact = Math.max(...adapters.map(({ normedError }) => normedError));
  const isOfFile = adapters.some(({ rows }) => rows === 'file');
  const on = isOfFile ? `rows of ${kv}` : 'normal random rows';
  // Random rows of a small width have means other than zero, so their error is not representative.
  const isLarge = isOfFile && worst > LARGE_ERROR;
  const table = tableOf(adapters, [
    leftColumn('adapter', 'adapter', ({ teacher, branch }) => `${teacher}.${branch}`),
    right('scale', 'scale', ({ scale }) => valueCell(scale, significant)),
    right('shift', 'shift', ({ shift }) => valueCell(shift, significant)),
    leftColumn('compared on', 'rows', ({ rows }) =>
      rows === 'file' ? `keys of ${setting('kv')}` : 'randn',
    ),
    right('error', 'error', ({ error }) => percentCell(error)),
    right('error, normed rows', 'normed_error', ({ normedError }) =>
      valueCell(normedError, (value) => value.toExponential(1)),
    ),
  ]);
  return {
    verdict: {
      text: `Converted to ${output}: linear → elastic, error up to ${percentText(worst)} on ${on}, ${exact.toExponential(1)} on rows of mean 0 and deviation 1`,
      tone: isLarge ? 'warning' : 'good',
    },
    blocks: [
      ...(isLarge
        ? [
            paragraph(
              `Warning: an error of ${percentText(worst)} changes the keys and values of the student. Train the projector further, or keep it linear.`,
              'warning',
            ),
          ]
        : []),
      {
        kind: 'facts',
        facts: [
          projectorFact(projector),
          { name: 'elastic', text: `ratio ${ratio}, dropout ${dropout}, float32` },
          { name: 'arguments', text: names.join(', ') || 'none in the file' },
        ],
      },
      { ...table, rows: table.rows.slice(0, ANSWER_ROWS) },
      noteOf(
        'The norm takes mean and deviation of each row away. Its scale and shift restore one average for all rows' +
          (kv === null ? ` of your keys: give them with ${setting('kv', 'FILE')}.` : '.'),
      ),
    ],
    details: table.rows.length > ANSWER_ROWS ? [headingBlock('Adapters'), table] : [],
    data: table,
  };
}

export function projectorInitReport(result: ProjectorInit): Report {
  const { output, kind, teachers, studentWidth, parameters, bytes, init, seed, ratio } = result;
  const table: TableBlock = tableOf(teachers, [
    wrapColumn('teacher', 'teacher', (each) => each.name),
    right('width', 'width', (each) => integerCell(each.width)),
    right('layers', 'layers', (each) => integerCell(each.layers)),
    right('hidden', 'hidden', (each) => integerCell(each.hidden)),
    right('student', 'student', () => integerCell(studentWidth)),
  ]);
  const rows = table.rows.slice(0, ANSWER_ROWS);
  const more = table.rows.length - rows.length;
  return {
    verdict: {
      text: `Wrote ${output}: ${kind}, ${counted(teachers.length, 'teacher')} → width ${formatInteger(studentWidth)}, ${shortCount(parameters)} parameters, ${formatBytes(bytes)}`,
      tone: 'good',
    },
    blocks: [
      {
        kind: 'facts',
        facts: [
          {
            name: 'values',
            text: `${init}, seed ${seed}${ratio === null ? '' : `, ratio ${ratio}, dropout ${result.dropout}`}`,
          },
          { name: 'arguments', text: result.arguments.join(', ') },
        ],
      },
      { ...table, rows },
      ...(more > 0 ? [noteOf(`… ${more} more: ${setting('json')}`)] : []),
    ],
    data: table,
  };
}

// Report of `minimind kv-projector params`: one row for each kind of projector and teacher.

export function projectorParamsReport(
  result: ProjectorComparison & { readonly published?: PublishedReport },
  { explain }: { readonly explain: boolean },
): Report {
  const { projectors } = result;
  const table = paramsTable(result);
  const more = table.rows.length - PARAMS_ROWS;
  const guidance = guidanceBlocks(result);
  // With one teacher, the screen has room for it.
  const isShort = table.rows.length <= SHORT_ROWS;
  return {
    verdict: paramsVerdict(result),
    blocks: [
      ...(result.published ? publishedBlocks(result.published) : []),
      more > 0 ? totalsOf(result) : table,
      ...(isShort ? guidance : []),
      ...(explain
        ? explanationBlocks(
            Object.fromEntries(projectors.map((each) => [projectorLabel(each), each] as const)),
          )
        : []),
    ],
    details: [
      ...(more > 0 ? [headingBlock('Adapters'), table] : []),
      ...(isShort ? [] : guidance),
      ...projectorNotes(result),
    ],
    more: explain ? [] : ['explain'],
    data: withPublished(table, result),
  };
}

/** Maximum rows of the answer's table; for more teachers, it has only the totals. */
const PARAMS_ROWS = 16;
/** Rows that leave room for the published figures on the screen. */
const SHORT_ROWS = 6;

/** Figures of the published guidance next to the counted ones; empty if none are published. */
function guidanceBlocks({ projectors }: ProjectorComparison): Block[] {
  const rows = projectors
    // The recommended ratio equals one of the others, or is the only one.
    .filter(({ ratio }) => ratio !== 'recommended' || projectors.length === 2)
    .flatMap((projector) =>
      projector.teachers.flatMap((costs): Cell[][] => {
        const { published, teacher, perTeacher } = costs;
        if (published === null) return [];
        return [
          [
            strongCell(shortLabelOf(projector)),
            ...(projector.teachers.length > 1 ? [{ text: teacher }] : []),
            { text: published.text, value: published.parameters },
            integerCell(perTeacher.value),
            { text: published.reason },
          ],
        ];
      }),
    );
  if (rows.length === 0) return [];
  const isMany = projectors.some(({ teachers }) => teachers.length > 1);
  return [
    headingBlock('Published figures'),
    {
      kind: 'table',
      columns: [
        leftColumn('projector', 'projector'),
        ...(isMany ? [wrapColumn('teacher', 'teacher')] : []),
        right('published', 'published'),
        right('K and V', 'parameters'),
        wrapColumn('difference', 'reason'),
      ],
      rows,
    },
  ];
}

/** Adds the published figures to the one table of CSV. */
function withPublished(table: TableBlock, { projectors }: ProjectorComparison): TableBlock {
  const cells = projectors.flatMap(({ teachers }) => [
    ...teachers.map(({ published }): Cell[] =>
      published
        ? [{ text: published.text, value: published.parameters }, { text: published.reason }]
        : [NOTHING, NOTHING],
    ),
    ...(teachers.length > 1 ? [[NOTHING, NOTHING]] : []),
  ]);
  return {
    ...table,
    columns: [
      ...table.columns,
      right('published', 'published'),
      leftColumn('difference', 'reason'),
    ],
    rows: table.rows.map((row, at) => [...row, ...(cells[at] ?? [])]),
  };
}

/** The smallest and the largest projector. */
function paramsVerdict({ student, teachers, projectors }: ProjectorComparison): Verdict {
  const sizes = projectors.map(
    (each) => [each.total.parameters.value, shortLabelOf(each)] as const,
  );
  const [least, ...others] = sizes.toSorted(([a], [b]) => Number(a) - Number(b));
  const most = others.at(-1);
  const range = [least, most].flatMap((each) =>
    each ? [`${shortCount(each[0])} (${each[1]})`] : [],
  );
  const about = `${counted(teachers.length, 'teacher')} → width ${formatInteger(student)}`;
  return { text: `${about}: ${range.join(' to ')}${range.length > 0 ? ' parameters' : ''}` };
}

/** The rows of the table for all teachers together. */
function totalsOf(result: ProjectorComparison): TableBlock {
  const withoutTeachers = (table: TableBlock): TableBlock => ({
    ...table,
    rows: table.rows.filter(([, teacher]) => teacher?.text === TOTAL),
    narrower: table.narrower && withoutTeachers(table.narrower),
  });
  return withoutTeachers(paramsTable(result));
}

const TOTAL = 'total';

const projectorLabel = ({ kind, ratio }: ProjectorCosts): string =>
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
    of: ({ ratio }) => valueCell(ratio),
    ofAll: () => NOTHING,
  },
  {
    column: right('hidden', 'hidden'),
    rooms: ['all'],
    of: ({ hidden }) => integerCell(hidden),
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
    of: ({ bytes }) => bytesCell(bytes.f32.value),
    ofAll: ({ bytes }) => bytesCell(bytes.f32.value),
  },
  {
    column: right('bf16, f16', 'bytes_bf16'),
    rooms: ROOMS,
    of: ({ bytes }) => bytesCell(bytes.bf16.value),
    ofAll: ({ bytes }) => bytesCell(bytes.bf16.value),
  },
  {
    column: right('per token', 'flops_per_token'),
    rooms: ROOMS,
    of: ({ flopsPerToken }) => flopsCell(flopsPerToken.value),
    ofAll: ({ flopsPerToken }) => flopsCell(flopsPerToken.value),
  },
];

/** The table and its narrower variants. */
function paramsTable(
  result: ProjectorComparison,
  [room, ...narrower]: readonly [Room, ...Room[]] = ROOMS,
): TableBlock {
  const { projectors, teachers } = result;
  const figures = FIGURES.filter(({ rooms }) => rooms.includes(room));
  const [next, ...rest] = narrower;
  const label = room === 'all' ? projectorLabel : shortLabelOf;
  return {
    kind: 'table',
    columns: [
      leftColumn('projector', 'projector'),
      (room === 'least' ? wrapColumn : leftColumn)('teacher', 'teacher'),
      ...figures.map(({ column }) => column),
    ],
    rows: projectors.flatMap((projector) =>
      present([
        ...projector.teachers.map((costs) => [
          strongCell(label(projector)),
          { text: costs.teacher },
          ...figures.map(({ of }) => of(costs)),
        ]),
        teachers.length > 1 && [
          strongCell(label(projector)),
          strongCell(TOTAL),
          ...figures.map(({ ofAll }) => ofAll(projector.total)),
        ],
      ]),
    ),
    narrower: next && paramsTable(result, [next, ...rest]),
  };
}

function projectorNotes({ teachers, withoutSize }: ProjectorComparison): Block[] {
  const beyond = teachers.filter(({ recommended }) => recommended?.isBeyond);
  return present([
    ...teachers.map((teacher) => noteOf(teacherText(teacher))),
    noteOf(
      'Columns per adapter, K and V: parameters. bf16, f16: bytes; f32 takes twice the bytes.',
    ),
    noteOf('Hidden width of an elastic adapter: the teacher’s width times the ratio.'),
    noteOf(
      'FLOPs per token: matrix products for K and V of one token in every layer of the teacher.',
    ),
    withoutSize.length > 0 &&
      noteOf(
        `No recommended ratio: unknown size of ${withoutSize.join(', ')}. Put the size in the name, as in Qwen2-14B.`,
      ),
    beyond.length > 0 &&
      noteOf(`The published guidance ends at 70B: ${beyond.map(({ name }) => name).join(', ')}.`),
  ]);
}

function teacherText({ name, width, layers, size, recommended }: CostedTeacher): string {
  const depth = layers === null ? 'layers unknown, 1 counted' : counted(layers, 'layer');
  const published =
    size && recommended
      ? `, ${shortCount(size.parameters)} parameters (from its ${size.from}), recommended ratio ${recommended.ratio}`
      : '';
  return `${name}: width ${formatInteger(width)}, ${depth}${published}.`;
}
