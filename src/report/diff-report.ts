/** Report of `minimind diff`: what differs in one line, the figures of both sides, and the main differences. */

import { setting } from '../base/text/setting.js';
import {
  formatBytes,
  formatChange,
  formatInteger,
  shortCount,
  significant,
} from '../base/text/units.js';
import { counted, modelName, nameText, shortened } from '../base/text/words.js';
import { inTurn, isRecord, present, sumOf } from '../base/values.js';
import { FORMAT_TITLES } from '../checkpoint/formats.js';
import { ignoredText } from '../checkpoint/reconcile/ignored-tensors.js';
import type { Difference, KeyDifference, KeyPlace } from '../convert/difference/difference.js';
import type { SideSummary } from '../convert/difference/sides.js';
import type {
  LayerDifference,
  TensorDifference,
  TensorForm,
} from '../convert/difference/structure-differences.js';
import type {
  SkippedTensor,
  TensorValueDifference,
  ValueDifferences,
  ValueGroup,
} from '../convert/difference/value-differences.js';
import { layerMap } from './kit/layer-map.js';
import type { HeatMapPicture } from './kit/pictures.js';
import type { Block, Cell, Fact, Field, Report, TableBlock, Verdict } from './kit/report.js';
import {
  cutColumn,
  headingBlock,
  integerCell,
  leftColumn,
  listBlocks,
  MAX_ROWS,
  noteOf,
  percentCell,
  right,
  shapeText,
  tableOf,
  valueCell,
} from './kit/report.js';

type Result = Difference & { readonly schema?: string };

/** Lines of the answer for facts and rows of tables, so that it fits on a screen of 24 lines. */
const LINES = 15;
/** Lines of a table of values for its title and its total. */
const LINES_OF_VALUES = 4;
const MOST_ANSWER_ROWS = 9;
const SCREEN_WIDTH = 80;
/** Maximum characters of a value in a table; JSON has all. */
const MOST_CHARACTERS = 60;

export function diffReport(result: Result): Report {
  const rows = differenceRows(result);
  const verdict = diffVerdict(result);
  const facts = diffFacts(result);
  const room = LINES - screenLines(verdict, facts);
  const ofValues = result.values ? Math.max(1, Math.ceil((room - LINES_OF_VALUES) / 2)) : 0;
  const most = result.values ? room - LINES_OF_VALUES - ofValues : room;
  const shown = foremost(rows, Math.max(1, Math.min(MOST_ANSWER_ROWS, most)));
  const more = rows.length - shown.length;
  const maps = valueMaps(result.values);
  const answer = result.values ? valueAnswer(result.values, ofValues) : { blocks: [], rest: [] };
  const rest = [...(more > 0 ? [`${counted(more, 'more difference')}`] : []), ...answer.rest];
  return {
    verdict,
    blocks: [
      { kind: 'facts', facts },
      ...(shown.length > 0 ? [tableOf(shown, differenceFields(shown))] : []),
      ...answer.blocks,
      ...(rest.length > 0 ? [noteOf(`… ${rest.join(', ')}: ${setting('details')}`)] : []),
    ],
    details: [
      ...(more > 0 ? listBlocks('All differences', rows, differenceFields(rows)) : []),
      ...maps,
      ...(result.values ? valueDetails(result.values) : []),
    ],
    pictures: () => maps,
    more: result.values || result.a.kind === 'config' ? [] : ['values'],
    data: dataTable(rows, result.values),
  };
}

/** Relative differences of all compared tensors by layer. */
function valueMaps(values: Result['values']): HeatMapPicture[] {
  const compared = (values?.tensors ?? []).map(({ name, relativeError }) => ({
    name,
    value: relativeError,
  }));
  return present([layerMap('Relative difference of values by layer', 'share', compared)]);
}

/** Lines of the facts and of the verdict after its first line, on a narrow screen. */
function screenLines({ text }: Verdict, facts: readonly Fact[]): number {
  const widest = Math.max(...facts.map(({ name }) => name.length)) + 4;
  const lines = (length: number, width: number) => Math.max(1, Math.ceil(length / width));
  return (
    lines(text.length, SCREEN_WIDTH - 4) -
    1 +
    sumOf(facts, (fact) => lines(fact.text.length, SCREEN_WIDTH - widest - 2))
  );
}

function diffVerdict(result: Result): Verdict {
  const { equal, values, a } = result;
  const scope = a.kind === 'config' ? '' : values ? ' in structure and values' : ' in structure';
  if (equal) return { text: `equal${scope}`, tone: 'good' };
  const parts = [...structureParts(result), ...(values ? [valuesText(values)] : [])];
  return { text: `differs: ${parts.join(' · ')}`, tone: 'warning' };
}

function structureParts({ config, layers, tensors }: Result): string[] {
  const keys = (config?.keys ?? []).length;
  const count = (changes: readonly { readonly names: readonly string[] }[]) =>
    sumOf(changes, ({ names }) => names.length);
  const layerParts = (['added', 'removed'] as const).flatMap((change) => {
    const number = count(layers.filter((each) => each.change === change));
    return number > 0 ? [`${counted(number, 'layer')} ${change}`] : [];
  });
  const isOnlyLayers = keys + tensors.length + layerParts.length === 0;
  const tensorParts = TENSOR_CHANGES.flatMap((change) => {
    const number = count(tensors.filter(({ changes }) => changes.includes(change)));
    return number > 0 ? [`${formatInteger(number)} ${change}`] : [];
  });
  return [
    ...(keys > 0 ? [counted(keys, 'config key')] : []),
    ...layerParts,
    ...(isOnlyLayers && layers.length > 0 ? [`${counted(count(layers), 'layer')} changed`] : []),
    ...(tensorParts.length > 0 ? [`tensors: ${tensorParts.join(', ')}`] : []),
  ];
}

const TENSOR_CHANGES = ['added', 'removed', 'reshaped', 'retyped', 'tied', 'untied'] as const;

/** `values of 12 tensors equal, 3 rounded, 2 different`. */
function valuesText({ total, skipped }: ValueDifferences): string {
  const { tensors, equalTensors, differentTensors } = total;
  const rounded = tensors - equalTensors - differentTensors;
  const parts = [
    ...(equalTensors > 0 ? [`${formatInteger(equalTensors)} equal`] : []),
    ...(rounded > 0 ? [`${formatInteger(rounded)} equal within rounding`] : []),
    ...(differentTensors > 0 ? [`${formatInteger(differentTensors)} different`] : []),
  ];
  const compared = `values of ${counted(tensors, 'tensor')}: ${parts.join(', ') || 'none to compare'}`;
  return skipped.length > 0 ? `${compared}; ${formatInteger(skipped.length)} skipped` : compared;
}

function diffFacts(result: Result): Fact[] {
  const { a, b, sameModel } = result;
  const isStored = a.bytes !== null && b.bytes !== null;
  return present([
    { name: 'before', text: sideText(a) },
    { name: 'after', text: sideText(b) },
    a.parameters !== null && b.parameters !== null
      ? { name: 'parameters', text: changeText(a.parameters, b.parameters, shortCount) }
      : { name: 'values', text: changeText(a.values, b.values, shortCount) },
    { name: 'tensors', text: changeText(a.tensors, b.tensors, formatInteger) },
    ...ignoredFacts(a, b),
    isStored && {
      name: 'size',
      text: changeText(a.bytes ?? 0, b.bytes ?? 0, formatBytes) + typesText(a, b),
    },
    sameModel && { name: 'model', text: 'same settings and layers, read with their defaults' },
    ...comparedFacts(result),
  ]);
}

/** Tensors that are not counted as parameters, once where both sides have the same. */
function ignoredFacts(a: SideSummary, b: SideSummary): Fact[] {
  const [before, after] = [a, b].map(({ ignored }) => ignored && ignoredText(ignored));
  if (before === after) return before === undefined ? [] : [{ name: 'not counted', text: before }];
  return present([
    before !== undefined && { name: 'not counted', text: `before: ${before}` },
    after !== undefined && { name: 'not counted', text: `after: ${after}` },
  ]);
}

function sideText({ path, family, format }: SideSummary): string {
  const about = [...(format ? [FORMAT_TITLES[format]] : []), ...(family ? [family] : [])];
  return about.length > 0 ? `${path} (${about.join(', ')})` : path;
}

/** `25.8M → 104M (×4.0)`, or one figure if both are equal. */
function changeText(before: number, after: number, format: (value: number) => string): string {
  if (before === after) return format(before);
  const change = formatChange(after, before);
  return `${format(before)} → ${format(after)}${change && ` (${change})`}`;
}

function typesText(a: SideSummary, b: SideSummary): string {
  const [before, after] = [a.types, b.types].map((types) => types.join(', '));
  return before === after ? ` (${before})` : ` (${before} → ${after})`;
}

/** Limits of the comparison: keys and names that were not compared as written. */
function comparedFacts({ config, prefix, a, b }: Result): Fact[] {
  const lacking = [a, b].find((side) => side.config === null);
  return present([
    config?.compared === 'read' && {
      name: 'keys',
      text: 'compared as read, with defaults: the files have different forms',
    },
    config === null &&
      lacking && { name: 'keys', text: `not compared: ${modelName(lacking.path)} has no config` },
    prefix && {
      name: 'names',
      text: `compared without ${JSON.stringify(shortened(prefix.prefix))} of ${prefix.side === 'a' ? 'before' : 'after'}`,
    },
  ]);
}

const RANKS = { key: 0, layer: 1, tensor: 2, setting: 3, inner: 4 } as const;

interface Row {
  readonly section: 'key' | 'layer' | 'tensor';
  readonly change: string;
  readonly name: string;
  readonly count: number;
  readonly before: string;
  readonly after: string;
  /** Exact values for programs; texts are shortened. */
  readonly exact: { readonly before: string; readonly after: string };
  readonly lines?: { readonly before: number | undefined; readonly after: number | undefined };
  /**
   * The answer takes rows with the lowest ranks first; `RANKS.inner` is the rank of rows that another row summarises.
   */
  readonly rank: number;
}

function differenceRows({ config, layers, tensors }: Result): Row[] {
  const whole = layers
    .filter(({ change }) => change !== 'changed')
    .flatMap(({ names }) => names.map((name) => `${name}.`));
  const isInner = ({ names: [name = ''] }: TensorDifference) =>
    whole.some((layer) => name.startsWith(layer) || name.includes(`.${layer}`));
  const reshaped = new Set(
    tensors
      .filter(({ changes }) => changes.includes('reshaped'))
      .flatMap(({ names }) => names.flatMap(modulesAbove)),
  );
  const isReshaped = ({ names }: LayerDifference) => names.every((name) => reshaped.has(name));
  return [
    ...(config?.keys ?? []).map(keyRow),
    ...layers.flatMap((each) => layerRows(each, isReshaped(each))),
    ...tensors.map((each) => tensorRow(each, isInner(each))),
  ];
}

/** Modules around a tensor, the whole model included. */
const modulesAbove = (name: string): string[] => {
  const parts = name.split('.');
  return parts.map((_, index) => parts.slice(0, index).join('.'));
};

function keyRow({ change, path, before, after, isSameValue }: KeyDifference): Row {
  return {
    section: 'key',
    change: isSameValue ? `key ${change}, same value` : `key ${change}`,
    name: path,
    count: 1,
    before: keyText(before),
    after: keyText(after),
    exact: { before: exactText(before), after: exactText(after) },
    lines: { before: before.line, after: after.line },
    rank: RANKS.key,
  };
}

function keyText(place: KeyPlace): string {
  if (place.value === undefined) return '–';
  const text = shortened(exactText(place), MOST_CHARACTERS);
  return place.isDefault ? `${text} (default)` : text;
}

const exactText = ({ value }: KeyPlace): string =>
  value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);

/** @param isReshaped Whether all of them have tensors of another shape, which already shows most differences. */
function layerRows(
  { change, pattern, names, kinds, settings }: LayerDifference,
  isReshaped: boolean,
): Row[] {
  const count = names.length;
  const row = { section: 'layer', name: pattern || 'model', count, rank: RANKS.layer } as const;
  if (settings.length === 0) {
    const [before, after] = [kinds.before ?? '', kinds.after ?? ''];
    return [
      {
        ...row,
        change: `layer ${change}`,
        before: change === 'added' ? '–' : before,
        after: change === 'removed' ? '–' : after,
        exact: { before, after },
      },
    ];
  }
  return settings.map(({ name, before, after }) => ({
    ...row,
    rank: isReshaped ? RANKS.inner : RANKS.setting,
    change: `layer ${name}`,
    before: settingValueText(before),
    after: settingValueText(after),
    exact: { before: before ?? '', after: after ?? '' },
  }));
}

/** Numbers with few digits; structures as JSON. */
function settingValueText(json: string | null): string {
  if (json === null) return '–';
  // The comparison wrote the text, from a config that was read within bounds.
  const value: unknown = JSON.parse(json);
  if (typeof value === 'string') return value;
  if (typeof value === 'number' && !Number.isInteger(value))
    return value.toPrecision(5).replace(/\.?0+($|e)/, '$1');
  const only = Array.isArray(value) && value.length === 1 ? value[0] : value;
  return shortened(isRecord(only) ? fieldsText(only) : JSON.stringify(only), MOST_CHARACTERS);
}

const fieldsText = (fields: Record<string, unknown>): string =>
  Object.entries(fields)
    .map(([key, value]) => `${key} ${isRecord(value) ? fieldsText(value) : JSON.stringify(value)}`)
    .join(', ');

function tensorRow(
  { changes, pattern, names, before, after }: TensorDifference,
  isInner: boolean,
): Row {
  return {
    section: 'tensor',
    change: changes.join(', '),
    name: pattern,
    count: names.length,
    before: formText(before, after),
    after: formText(after, before),
    exact: { before: formText(before), after: formText(after) },
    rank: isInner ? RANKS.inner : RANKS.tensor,
  };
}

/** Text of a form: `F32 [97, 32]`. @param other The other side, if parts that both share are omitted. */
function formText(form: TensorForm | null, other: TensorForm | null = null): string {
  if (form === null) return '–';
  const { type, shape, sharedWith } = form;
  const text = [type, shapeText(shape)].filter(Boolean).join(' ');
  if (other === null) return sharedWith === null ? text : `${text} = ${sharedWith}`;
  const isTied = sharedWith !== null && other.sharedWith === null;
  // If only the tie differs, the shape carries no information.
  const isAlike = text === [other.type, shapeText(other.shape)].filter(Boolean).join(' ');
  if (isTied) return isAlike ? `= ${sharedWith}` : `${text} = ${sharedWith}`;
  return isAlike && other.sharedWith !== null ? 'its own' : text;
}

/** Rows for the answer: the first ones of each rank in turn; inner layers only if there is room. */
function foremost(rows: readonly Row[], most: number): readonly Row[] {
  const ofRank = (rank: number) => rows.filter((row) => row.rank === rank);
  const { inner, ...outer } = RANKS;
  const order = [...inTurn(Object.values(outer).map(ofRank)), ...ofRank(inner)];
  const shown = new Set(order.slice(0, most));
  return rows.filter((row) => shown.has(row));
}

function differenceFields(rows: readonly Row[]): (Field<Row> | false)[] {
  const hasLines = rows.some(
    ({ lines }) => lines?.before !== undefined || lines?.after !== undefined,
  );
  const hasCounts = rows.some(({ count }) => count > 1);
  return [
    leftColumn('difference', 'difference', (row) => row.change),
    cutColumn('name', 'name', (row) => nameText(row.name)),
    hasCounts &&
      right('count', 'count', (row) =>
        row.section === 'key' ? { text: '' } : integerCell(row.count),
      ),
    cutColumn('before', 'before', (row) => row.before),
    cutColumn('after', 'after', (row) => row.after),
    hasLines && leftColumn('lines', 'lines', linesText),
  ];
}

/** `3`, or `3 → 4` where they differ; a side without the key is `–`. */
function linesText({ lines }: Row): string {
  if (lines === undefined || (lines.before === undefined && lines.after === undefined)) return '';
  if (lines.before === lines.after) return String(lines.before);
  return `${lines.before ?? '–'} → ${lines.after ?? '–'}`;
}

/** The components with the largest distances, and the number of the others. */
function valueAnswer({ components, total }: ValueDifferences, most: number) {
  const apart = furthest(components.filter(({ equal, elements }) => equal < elements));
  const shown = apart.slice(0, most);
  const more = apart.length - shown.length;
  return {
    blocks: shown.length === 0 ? [] : [groupTable([...shown, total], 'component')],
    rest: more > 0 ? [counted(more, 'more component')] : [],
  };
}

const furthest = (groups: readonly ValueGroup[]): ValueGroup[] =>
  groups.toSorted((x, y) => y.relativeError - x.relativeError);

function groupTable(groups: readonly ValueGroup[], title: string): TableBlock {
  return tableOf(groups, [
    cutColumn(title, title, (group) => ({
      text: nameText(group.name),
      ...(group.name === 'total' && { tone: 'strong' }),
    })),
    right('tensors', 'tensors', (group) => integerCell(group.tensors)),
    right('equal', 'equal_share', (group) =>
      percentCell(group.elements === 0 ? null : group.equal / group.elements),
    ),
    right('largest', 'largest_difference', (group) => numberCell(group.largest)),
    right('relative error', 'relative_error', (group) => percentCell(group.relativeError)),
  ]);
}

const numberCell = (value: number): Cell => valueCell(value, significant);

const VERDICTS = {
  equal: { text: 'equal', tone: 'good' },
  rounding: { text: 'within rounding' },
  different: { text: 'different', tone: 'warning' },
} as const satisfies Record<TensorValueDifference['verdict'], Cell>;

function valueDetails({ layers, tensors, components, skipped }: ValueDifferences): Block[] {
  return [
    noteOf(
      'equal: share of the values; largest: largest absolute difference; relative error: of the Frobenius norms.',
    ),
    headingBlock('Values by component'),
    groupTable(components.slice(0, MAX_ROWS), 'component'),
    headingBlock('Values by layer'),
    groupTable(layers.slice(0, MAX_ROWS), 'layer'),
    ...listBlocks('Values by tensor', tensors, [
      cutColumn('tensor', 'tensor', ({ name }) => nameText(name)),
      leftColumn('types', 'types', typePair),
      leftColumn('values', 'values', ({ verdict }) => VERDICTS[verdict]),
      right('equal', 'equal_share', ({ elements, equal }) =>
        percentCell(elements === 0 ? null : equal / elements),
      ),
      right('largest', 'largest_difference', ({ largest }) => numberCell(largest)),
      right('relative error', 'relative_error', ({ relativeError }) => percentCell(relativeError)),
      right('limit', 'limit', ({ limit }) =>
        limit === 0 ? { text: '–', value: 0 } : percentCell(limit),
      ),
    ]),
    ...listBlocks('Skipped: the values of a type cannot be read', skipped, [
      cutColumn('tensor', 'tensor', (each) => nameText(each.name)),
      leftColumn('types', 'types', typePair),
    ]),
  ];
}

const typePair = ({ types: { before, after } }: SkippedTensor): string =>
  before === after ? before : `${before} → ${after}`;

/** Every difference, and every tensor whose values were compared. */
function dataTable(rows: readonly Row[], values: ValueDifferences | null): TableBlock {
  const titles = [
    ...['section', 'change', 'name', 'count', 'before', 'after', 'line_before', 'line_after'],
    ...['elements', 'equal_elements', 'largest_difference', 'relative_error', 'limit'],
  ];
  const empty = (count: number): Cell[] => Array.from({ length: count }, () => ({ text: '' }));
  return {
    kind: 'table',
    columns: titles.map((title) => leftColumn(title, title)),
    rows: [
      ...rows.map((row): Cell[] => [
        { text: row.section },
        { text: row.change },
        { text: row.name },
        integerCell(row.count),
        { text: row.exact.before },
        { text: row.exact.after },
        { text: String(row.lines?.before ?? '') },
        { text: String(row.lines?.after ?? '') },
        ...empty(5),
      ]),
      ...(values?.tensors ?? []).map((each): Cell[] => [
        { text: 'values' },
        { text: each.verdict },
        { text: each.name },
        integerCell(1),
        { text: each.types.before },
        { text: each.types.after },
        ...empty(2),
        integerCell(each.elements),
        integerCell(each.equal),
        numberCell(each.largest),
        percentCell(each.relativeError),
        valueCell(each.limit),
      ]),
      ...(values?.skipped ?? []).map((each): Cell[] => [
        { text: 'values' },
        { text: 'skipped' },
        { text: each.name },
        integerCell(1),
        { text: each.types.before },
        { text: each.types.after },
        ...empty(7),
      ]),
    ],
  };
}
