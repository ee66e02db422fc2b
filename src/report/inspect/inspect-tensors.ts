/** Tables of the tensors of a checkpoint. */

import { setting } from '../../base/text/setting.js';
import { formatBytes, formatInteger } from '../../base/text/units.js';
import { namesText, nameText, shortened } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { SharedBytes } from '../../checkpoint/sharing.js';
import type { Statistics } from '../../checkpoint/statistics.js';
import type { CheckpointSummary, TensorSummary } from '../../checkpoint/summary.js';
import type { ContentEntry, JsonLike } from '../../checkpoint/summary-content.js';
import type { InspectResult } from '../command-results.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';
import {
  bytesCell,
  cutColumn,
  type Field,
  headingBlock,
  integerCell,
  leftColumn,
  listBlocks,
  MAX_ROWS,
  moreNote,
  NOTHING,
  noteOf,
  right,
  shapeText,
  tableOf,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import { mxfp4ValuesOf } from './mxfp4-fact.js';

/** A tensor with its name and the names that share it. */
interface Row extends TensorSummary {
  readonly name: string;
  /** All names of the same tensor, when there are several. */
  readonly names: readonly string[];
}

/** Shown characters of a hash, enough to compare by eye. */
const SHOWN_HASH = 12;

const NAME: Field<Row> = cutColumn('tensor', 'tensor', ({ name }) => valueCell(name, nameText));
/** The type in the file, with its meaning where the bytes of a U8 tensor are scales of MXFP4. */
const dtypeOf = ({ tensors }: InspectResult): Field<Row> =>
  leftColumn('type', 'dtype', ({ dtype, name }) =>
    mxfp4ValuesOf(name, tensors) === undefined ? dtype : { text: `${dtype} (E8M0)`, value: dtype },
  );
const SHAPE: Field<Row> = right('shape', 'shape', ({ shape }) => shortened(shapeText(shape)));
const ELEMENTS: Field<Row> = right('values', 'elements', ({ elements }) => integerCell(elements));
const BYTES: Field<Row> = right('size', 'bytes', ({ bytes }) => bytesCell(bytes));
const SHARED: Field<Row> = cutColumn('shared with', 'shared_with', sharedCell);
const HASH: Field<Row> = leftColumn('sha256', 'sha256', ({ sha256 = '' }) => ({
  text: `${sha256.slice(0, SHOWN_HASH)}…`,
  value: sha256,
}));

const statistic = (title: string, key: string, of: (stats: Statistics) => number | null) =>
  right(title, key, ({ stats }: Row): Cell => {
    const value = stats ? of(stats) : null;
    return valueCell(value, numberText);
  });

const count = (title: string, key: string, of: (stats: Statistics) => number) =>
  right(title, key, ({ stats }: Row): Cell => (stats ? integerCell(of(stats)) : NOTHING));

const STATISTICS: readonly Field<Row>[] = [
  statistic('min', 'min', ({ min }) => min),
  statistic('max', 'max', ({ max }) => max),
  statistic('mean', 'mean', ({ mean }) => mean),
  statistic('deviation', 'standard_deviation', ({ standardDeviation }) => standardDeviation),
  statistic('norm', 'norm', ({ norm }) => norm),
  count('zeros', 'zeros', ({ zeros }) => zeros),
];

const NOT_FINITE: readonly Field<Row>[] = [
  count('NaN', 'nan', ({ nan }) => nan),
  count('+Inf', 'positive_infinity', ({ positiveInfinity }) => positiveInfinity),
  count('−Inf', 'negative_infinity', ({ negativeInfinity }) => negativeInfinity),
];

/** A table of the tensors, and a second one of their statistics: one would be too wide. */
export function tensorsBlocks(result: InspectResult): Block[] {
  const all = Object.keys(result.tensors).length;
  const rows = tensorRows(result, MAX_ROWS);
  const hasHashes = rows.some(({ sha256 }) => sha256 !== undefined);
  const isShared = rows.some(({ names }) => names.length > 1);
  return present([
    headingBlock(tensorsTitle(result, all)),
    tableOf(rows, [
      NAME,
      dtypeOf(result),
      SHAPE,
      BYTES,
      ...(isShared ? [SHARED] : []),
      ...(hasHashes ? [HASH] : []),
    ]),
    ...moreNote(all - rows.length, 'json'),
    hasHashes &&
      noteOf(
        `The first ${SHOWN_HASH} of the 64 characters of each sha256; ${setting('json')} and ${setting('format', 'csv')} have all.`,
      ),
    ...(rows.some(({ stats }) => stats) ? statisticsBlocks(rows) : []),
  ]);
}

/** All data of each tensor, for programs. */
export function tensorsTable(result: InspectResult): TableBlock {
  const rows = tensorRows(result);
  return tableOf(rows, [
    NAME,
    dtypeOf(result),
    SHAPE,
    ELEMENTS,
    BYTES,
    SHARED,
    ...(rows.some(({ sha256 }) => sha256 !== undefined) ? [HASH] : []),
    ...(rows.some(({ stats }) => stats) ? [...STATISTICS, ...NOT_FINITE] : []),
  ]);
}

/** @param most Maximum number of rows. */
function tensorRows({ tensors, shared }: InspectResult, most = Number.POSITIVE_INFINITY): Row[] {
  const sharers = new Map<string, readonly string[]>();
  for (const { kind, names } of shared) {
    if (kind === 'same') for (const name of names) sharers.set(name, names);
  }
  return Object.keys(tensors)
    .slice(0, most)
    .flatMap((name) => {
      const tensor = tensors[name];
      return tensor ? [{ ...tensor, name, names: sharers.get(name) ?? [] }] : [];
    });
}

function tensorsTitle({ filter, totals }: InspectResult, shown: number): string {
  if (filter === undefined) return 'Tensors';
  return `Tensors that match ${shortened(filter)}: ${formatInteger(shown)} of ${formatInteger(totals.tensors)}`;
}

function statisticsBlocks(rows: readonly Row[]): Block[] {
  const allFinite = rows.every(
    ({ stats }) => !stats || stats.nan + stats.positiveInfinity + stats.negativeInfinity === 0,
  );
  const hasComplex = rows.some(({ dtype }) => dtype === 'C64' || dtype === 'C128');
  return [
    headingBlock('Values'),
    tableOf(rows, [NAME, ...STATISTICS, ...(allFinite ? [] : NOT_FINITE)]),
    noteOf(
      allFinite
        ? 'All values are finite.'
        : 'Columns other than NaN and infinities cover the finite values.',
    ),
    ...(hasComplex ? [noteOf('Complex values are counted by their moduli.')] : []),
  ];
}

/** One of the other names, and the number of the rest. */
function sharedCell({ name, names }: Row): Cell {
  const other = names.find((each) => each !== name);
  if (other === undefined) return { text: '', value: '' };
  const shown = nameText(other);
  return { text: names.length > 2 ? `${shown} … (${names.length} names)` : shown, value: shown };
}

/** Three digits, enough to compare by eye; all digits of a shorter hash. */
function numberText(value: number): string {
  if (value < 0) return `−${numberText(-value)}`;
  if (Number.isInteger(value) && value < 1e4) return String(value);
  const text = value >= 1e-3 && value < 1e3 ? value.toPrecision(3) : value.toExponential(2);
  return text.replace('e+', 'e');
}

// Shared tensors, and additional contents of a file.

/** Maximum rows of minor tables; JSON has all. */
const MAX_BESIDE = 100;

const KINDS = {
  same: 'one tensor',
  overlapping: 'overlapping',
} as const satisfies Record<SharedBytes['kind'], string>;

/** Names that share bytes, and names that occur only in the metadata. */
export function sharingBlocks({ shared, aliases }: CheckpointSummary): Block[] {
  const renamed = Object.entries(aliases);
  const rows: Cell[][] = [
    ...shared
      .slice(0, MAX_BESIDE)
      .map(({ kind, names, bytes }) => [
        { text: KINDS[kind] },
        integerCell(names.length),
        bytesCell(bytes),
        { text: namesText(names) },
      ]),
    ...renamed
      .slice(0, MAX_BESIDE)
      .map(([name, meant]) => [
        { text: 'in metadata' },
        { text: '' },
        { text: '' },
        { text: `${nameText(name)} is ${nameText(meant)}` },
      ]),
  ];
  if (rows.length === 0) return [];
  return [
    headingBlock('Shared tensors'),
    {
      kind: 'table',
      columns: [
        leftColumn('kind', 'what'),
        right('names', 'names'),
        right('size', 'bytes'),
        wrapColumn('tensors', 'which'),
      ],
      rows,
    },
    ...moreNote(shared.length + renamed.length - rows.length, 'json'),
  ];
}

export function contentBlocks({ content }: CheckpointSummary): Block[] {
  return listBlocks(
    'Other content',
    Object.entries(content),
    [
      wrapColumn('key', 'key', ([key]) => nameText(key)),
      leftColumn('type', 'type', ([, entry]) => entry.type),
      wrapColumn('value', 'value', ([, entry]) => contentText(entry)),
    ],
    MAX_BESIDE,
  );
}

function contentText({ type, value, tensors, tensorBytes = 0 }: ContentEntry): string {
  if (tensors !== undefined && type !== 'torch.Tensor') {
    const count = tensors === 1 ? 'one tensor' : `${formatInteger(tensors)} tensors`;
    return `${count}, ${formatBytes(tensorBytes)}`;
  }
  const text = plainText(shownContent(value, FORMS.has(type)));
  return type === 'bytes' ? `${text} bytes` : text;
}

/** Types whose plain data is an object of one key, which adds nothing to the type. */
const FORMS: ReadonlySet<string> = new Set(['bytes', 'torch.Tensor', 'torch.storage', 'type']);

/** Content of plain data to show in addition to its type. */
function shownContent(value: JsonLike, isForm: boolean): JsonLike {
  if (typeof value !== 'object' || value === null) return value;
  if (isForm) return Object.values(value)[0] ?? null;
  if (!('object' in value)) return value;
  const { state, args = [] } = value;
  return state ?? (Array.isArray(args) && args.length === 1 ? (args[0] ?? null) : args);
}

/** Maximum characters of a configuration in a table. */
const MAX_PLAIN_TEXT = 160;

/** Plain data in one line, without the outer brackets. */
export function plainText(value: JsonLike): string {
  const line: Line = { parts: [], room: MAX_PLAIN_TEXT };
  write(value, 0, line);
  return shortened(line.parts.join(''), MAX_PLAIN_TEXT);
}

/** Output line with limited room. */
interface Line {
  readonly parts: string[];
  /** Remaining characters. */
  room: number;
}

function put(line: Line, text: string): void {
  line.parts.push(text);
  line.room -= text.length;
}

/** @param depth Depth of the value, which plain data limits. */
function write(value: JsonLike, depth: number, line: Line): void {
  if (typeof value !== 'object' || value === null) {
    put(line, typeof value === 'string' && depth > 0 ? JSON.stringify(value) : String(value));
    return;
  }
  const isList = Array.isArray(value);
  const [open, close] = depth === 0 ? ['', ''] : isList ? ['[', ']'] : ['{', '}'];
  put(line, open);
  for (const [index, [key, item]] of Object.entries(value).entries()) {
    if (line.room < 0) return;
    put(line, `${index > 0 ? ', ' : ''}${isList ? '' : `${key}: `}`);
    write(item, depth + 1, line);
  }
  put(line, close);
}
