/** Report of `minimind inspect`: a checkpoint's type and tensors. */
import type { TensorGroup } from '../../checkpoint/summary.js';
import { formatBytes, formatInteger } from '../../text/units.js';
import { nameText, shortened } from '../../text/words.js';
import { bytesCell, heading, integerCell, left, note, right, strong } from '../kit/cells.js';
import type { Block, Cell, Report, TableBlock } from '../kit/report.js';
import type { InspectResult } from './inspect-tensors.js';
import {
  contentBlocks,
  moreNote,
  sharingBlocks,
  tensorsBlocks,
  tensorsTable,
} from './inspect-tensors.js';
import { MAX_ROWS } from './inspect-text.js';
import { srteSurveyBlocks } from './srte-survey.js';

interface Options {
  /** Whether each tensor has its own row. */
  readonly listed: boolean;
  /** Whether the output is for programs, which get only the requested data in full. */
  readonly flat: boolean;
}

export function inspectReport(result: InspectResult, { listed, flat }: Options): Report {
  const survey = result.srte ? srteSurveyBlocks(result.srte) : [];
  if (flat) return { blocks: flatBlocks(result, listed, survey) };
  return {
    blocks: [
      heading(`${result.formatName}: ${result.file}`),
      ...originNotes(result),
      totalsTable(result),
      ...(listed ? tensorsBlocks(result) : groupsBlocks(result.groups)),
      ...sharingBlocks(result),
      ...contentBlocks(result),
      ...survey,
    ],
  };
}

/** One table of the tensors, unless the survey was requested. */
function flatBlocks(result: InspectResult, listed: boolean, survey: readonly Block[]) {
  if (listed) return [tensorsTable(result)];
  return survey.length > 0 ? survey : [groupsTable(result.groups)];
}

function originNotes({ files, stateDict, metadata }: InspectResult): Block[] {
  const size = formatBytes(files.reduce((sum, { bytes }) => sum + bytes, 0));
  const strings = Object.entries(metadata).map(([key, value]) => `${key}: ${value}`);
  return [
    note(files.length === 1 ? `One file of ${size}.` : `${files.length} files, ${size} in all.`),
    ...(stateDict.length > 0
      ? [note(`The tensors stand under ${shortened(stateDict.join('.'))}.`)]
      : []),
    ...(strings.length > 0 ? [note(`Metadata: ${shortened(strings.join(', '))}`)] : []),
  ];
}

/** Total, total without duplicates if there are any, and the mixture of dtypes. */
function totalsTable({ totals }: InspectResult): TableBlock {
  const isShared = totals.distinctTensors < totals.tensors;
  const [first, ...others] = totals.dtypes;
  const only = others.length === 0 ? first?.dtype : undefined;
  const row = (label: Cell, tensors: number, elements: number, bytes: number): Cell[] => [
    label,
    integerCell(tensors),
    integerCell(elements),
    bytesCell({ value: bytes }),
  ];
  const nothing: Cell = { text: '' };
  return {
    kind: 'table',
    columns: [
      left('', 'what'),
      right('tensors', 'tensors'),
      right('elements', 'elements'),
      right('bytes', 'bytes'),
    ],
    rows: [
      row(
        strong(`in all${only ? `, ${only}` : ''}`),
        totals.tensors,
        totals.elements,
        totals.bytes,
      ),
      ...(isShared
        ? [
            row(
              strong('distinct'),
              totals.distinctTensors,
              totals.distinctElements,
              totals.distinctBytes,
            ),
          ]
        : []),
      ...(only
        ? []
        : totals.dtypes.map(({ dtype, tensors, elements, bytes }) =>
            row({ text: `  ${dtype}`, value: dtype }, tensors, elements, bytes),
          )),
      ...(totals.storedBytes === totals.distinctBytes
        ? []
        : [[{ text: 'stored' }, nothing, nothing, bytesCell({ value: totals.storedBytes })]]),
    ],
  };
}

const groupsBlocks = (groups: readonly TensorGroup[]): Block[] =>
  groups.length > 0
    ? [
        heading('Tensors by layer'),
        groupsTable(groups.slice(0, MAX_ROWS)),
        ...moreNote(groups.length - MAX_ROWS),
      ]
    : [];

function groupsTable(groups: readonly TensorGroup[]): TableBlock {
  const isRepeated = groups.some(({ layers = [] }) => layers.length > 1);
  return {
    kind: 'table',
    columns: [
      left('group', 'group', true),
      ...(isRepeated ? [right('alike', 'alike')] : []),
      right(isRepeated ? 'tensors each' : 'tensors', 'tensors_each'),
      right(isRepeated ? 'elements each' : 'elements', 'elements_each'),
      right(isRepeated ? 'bytes each' : 'bytes', 'bytes_each'),
      left('dtypes', 'dtypes', true),
    ],
    rows: groups.map((group) => [
      { text: nameText(groupLabel(group)), value: groupLabel(group) },
      ...(isRepeated ? [alikeCell(group)] : []),
      integerCell(group.tensors),
      integerCell(group.elements),
      bytesCell({ value: group.bytes }),
      { text: group.dtypes.join(', ') },
    ]),
  };
}

function alikeCell({ layers = [] }: TensorGroup): Cell {
  return layers.length > 1
    ? { text: formatInteger(layers.length), value: layers.length }
    : { text: '', value: 1 };
}

/** `layers.0 … layers.31`, `layers.0, 2–5, 8`, `embed`. */
function groupLabel({ name, layers }: TensorGroup): string {
  if (layers === undefined) return name;
  const prefix = name === '' ? '' : `${name}.`;
  const [first, ...others] = runsOf(layers);
  if (first === undefined) return name;
  if (others.length === 0) {
    return first.from === first.to
      ? `${prefix}${first.from}`
      : `${prefix}${first.from} … ${prefix}${first.to}`;
  }
  const texts = [first, ...others].map(({ from, to }) =>
    from === to ? `${from}` : `${from}–${to}`,
  );
  return `${prefix}${texts.join(', ')}`;
}

/** Ascending numbers as ranges. */
function runsOf(numbers: readonly number[]): { readonly from: number; readonly to: number }[] {
  const runs: { from: number; to: number }[] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last && number === last.to + 1) last.to = number;
    else runs.push({ from: number, to: number });
  }
  return runs;
}
