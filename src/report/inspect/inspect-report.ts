/** Report of `minimind inspect`: a checkpoint's type and tensors. */

import { type NextLine, nextCommand } from '../../base/text/setting.js';
import { dtypeWord, formatBytes, shortCount } from '../../base/text/units.js';
import { counted, joined, namesText, nameText, shortened } from '../../base/text/words.js';
import { present, runsOf, sumOf } from '../../base/values.js';
import type { AdapterDescription } from '../../checkpoint/adapter/adapter.js';
import { ignoredText } from '../../checkpoint/reconcile/ignored-tensors.js';
import type { TensorGroup } from '../../checkpoint/summary.js';
import type { InspectResult } from '../command-results.js';
import type { TreemapPicture } from '../kit/pictures.js';
import type { Block, Cell, Fact, Field, Report, TableBlock, Verdict } from '../kit/report.js';
import {
  bytesCell,
  cutColumn,
  drawnBar,
  headingBlock,
  integerCell,
  leftColumn,
  listBlocks,
  moreNote,
  right,
  shareCell,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from '../kit/report.js';
import { groupName, groupTotal, largestGroups } from '../kit/tensor-groups.js';
import {
  ggufComponents,
  ggufDetails,
  ggufFacts,
  onnxDetails,
  onnxFacts,
} from './inspect-formats.js';
import { contentBlocks, sharingBlocks, tensorsBlocks, tensorsTable } from './inspect-tensors.js';
import { MXFP4_DTYPE, mxfp4Fact } from './mxfp4-fact.js';
import { srteData, srteSurveyBlocks, srteSurveyDetails } from './srte-survey.js';

/** @param options.listed Whether each tensor has its own row. */
export function inspectReport(
  result: InspectResult,
  { listed }: { readonly listed: boolean },
): Report {
  const { srte, groups } = result;
  return {
    verdict: inspectVerdict(result),
    blocks: [
      { kind: 'facts', facts: inspectFacts(result) },
      ...(srte ? srteSurveyBlocks(srte) : []),
      ...(listed ? tensorsBlocks(result) : []),
      ...(srte || listed
        ? []
        : result.gguf
          ? [ggufComponents(result.gguf)]
          : componentsBlocks(result, result.onnx?.components)),
    ],
    details: [
      ...(srte ? srteSurveyDetails(srte) : []),
      headingBlock('Totals'),
      totalsTable(result),
      ...listBlocks('Components', groups, groupFields(groups)),
      ...sharingBlocks(result),
      ...contentBlocks(result),
      ...(result.gguf ? ggufDetails(result.gguf) : []),
      ...(result.onnx ? onnxDetails(result.onnx) : []),
    ],
    pictures: () => [sizeMap(groups)],
    more: listed ? [] : ['tensors'],
    next: nextStep(result),
    // Only CSV has this table, which can be long.
    get data() {
      if (listed) return tensorsTable(result);
      return srte ? srteData(srte) : tableOf(groups, groupFields(groups));
    },
  };
}

/** Bytes of the components, all layers together. */
const sizeMap = (groups: readonly TensorGroup[]): TreemapPicture => ({
  kind: 'treemap',
  title: 'Bytes by component',
  unit: 'bytes',
  root: {
    label: 'all tensors',
    children: groups.map((group) => ({
      label: nameText(groupName(group)),
      value: groupTotal(group, 'bytes'),
    })),
  },
});

function inspectVerdict(result: InspectResult): Verdict {
  const { formatName, files, totals } = result;
  const size = sumOf(files, ({ bytes }) => bytes);
  const types = totals.dtypes.map(({ dtype }) => dtypeWord(dtype.toLowerCase()));
  const parts = [
    ...(result.adapter ? ['LoRA adapter'] : []),
    formatName,
    formatBytes(size),
    // The constants of a graph are not tensors of its model.
    counted(
      result.onnx ? totalsIn(result.onnx.components).tensors : totals.distinctTensors,
      'tensor',
    ),
    valuesText(result),
    types.length > MOST_TYPES ? `${types.length} types` : types.join(', '),
    modelText(result),
  ];
  return { text: parts.filter(Boolean).join(' · ') };
}

/** Maximum types that a verdict names. */
const MOST_TYPES = 3;

/**
 * Number of values or parameters. Buffers are not parameters; without a config, it is unknown which tensors are
 * buffers.
 */
function valuesText({ parameters, totals, adapter }: InspectResult): string {
  if (adapter) return `${shortCount(adapter.parameters)} parameters`;
  return parameters === undefined
    ? `${shortCount(totals.distinctElements)} values`
    : `${shortCount(parameters)} parameters`;
}

function modelText({ model }: InspectResult): string {
  if (!model) return '';
  const { family, srte } = model;
  return [
    ...(family === null ? [] : [`${family} model`]),
    ...(srte ? [`${srte.sharing}${FORMS[srte.form]} SRTE`] : []),
  ].join(', ');
}

const FORMS = { table: '', 'low-rank': ' low-rank', sincos: ' sine and cosine' } as const;

function inspectFacts(result: InspectResult): Fact[] {
  const { file, files, stateDict, metadata, totals, shared, aliases, content, model } = result;
  const strings = Object.entries(metadata).filter(
    ([key]) => !Object.hasOwn(aliases, key) && key !== FORMAT_KEY,
  );
  const others = Object.keys(content);
  const same = shared.filter(({ kind }) => kind === 'same');
  const overlapping = shared.length - same.length;
  const unused = totals.storedBytes - totals.distinctBytes;
  return present([
    { name: 'file', text: files.length > 1 ? `${file} (${files.length} files)` : file },
    model?.config != null && model.config !== file && { name: 'config', text: model.config },
    result.like !== undefined && {
      name: 'config',
      text: `none; the tensors are those of ${result.like}`,
    },
    ...(result.gguf ? ggufFacts(result.gguf) : []),
    ...(result.onnx ? onnxFacts(result.onnx) : []),
    ...(result.adapter ? adapterFacts(result.adapter) : []),
    totals.dtypes.some(({ dtype }) => dtype === MXFP4_DTYPE) && mxfp4Fact(result.tensors),
    stateDict.length > 0 && { name: 'state dict', text: shortened(stateDict.join('.')) },
    (same.length > 0 || Object.keys(aliases).length > 0) && {
      name: 'shared',
      text: sharedText(result),
    },
    overlapping > 0 && { name: 'overlapping', text: `${counted(overlapping, 'group')} of tensors` },
    model?.ignored && { name: 'not counted', text: ignoredText(model.ignored) },
    unused > 0 && {
      name: 'unused',
      text: `${formatBytes(unused)} of the stored data is in no tensor`,
    },
    others.length > 0 && { name: 'also holds', text: listText(others) },
    strings.length > 0 && {
      name: 'metadata',
      text: shortened(listText(strings.map(([key, value]) => `${key}: ${value}`))),
    },
  ]);
}

function adapterFacts(adapter: AdapterDescription): Fact[] {
  const { rank, alpha, rankStabilised, targets, replaced, base, unread } = adapter;
  return present([
    {
      name: 'adapter',
      text: `rank ${rank}, alpha ${alpha}${rankStabilised ? ', scaled by 1/√rank' : ''}`,
    },
    targets !== null && {
      name: 'targets',
      text: typeof targets === 'string' ? nameText(targets) : listText(targets),
    },
    replaced.length > 0 && { name: 'replaces', text: listText(replaced) },
    { name: 'base', text: base === null ? 'not named' : nameText(base) },
    unread.length > 0 && { name: 'not merged', text: listText(unread) },
  ]);
}

/** Key of all safetensors files that PyTorch reads, without further information. */
const FORMAT_KEY = 'format';

/** Maximum entries that a fact names. */
const LISTED = 6;

const listText = (texts: readonly string[]): string =>
  texts.length > LISTED
    ? `${texts.slice(0, LISTED).map(nameText).join(', ')} and ${texts.length - LISTED} more`
    : joined(texts.map(nameText));

/** `embed, head`, `3 tensors with 9 names`. */
function sharedText({ shared, aliases }: InspectResult): string {
  const groups = [
    ...shared.filter(({ kind }) => kind === 'same').map(({ names }) => names),
    ...Object.entries(aliases).map(([alias, name]) => [name, alias]),
  ];
  const [only, ...others] = groups;
  if (only !== undefined && others.length === 0) return `${namesText(only)} are one tensor`;
  const names = sumOf(groups, (each) => each.length);
  return `${counted(groups.length, 'tensor')} with ${counted(names, 'name')}`;
}

/** Rows of the answer's table; the details have all. */
const ANSWER_ROWS = 10;
/** Columns of the bar of the largest component. */
const BAR_WIDTH = 12;

/**
 * The largest components, in the order of the checkpoint.
 * @param groups Components to show: of an ONNX file, those of its model.
 */
function componentsBlocks(result: InspectResult, groups = result.groups): Block[] {
  const totals = { ...result.totals, ...(result.onnx && totalsIn(groups)) };
  if (groups.length === 0) return [];
  const shown = largestGroups(groups, ANSWER_ROWS);
  const more = groups.length - shown.length;
  const most = Math.max(1, ...shown.map((group) => groupTotal(group, 'bytes')));
  return [
    tableOf(
      shown,
      [
        cutColumn('component', 'component', (group) => nameText(groupName(group))),
        right('tensors', 'tensors', (group) => integerCell(groupTotal(group, 'tensors'))),
        right('values', 'values', (group) => integerCell(groupTotal(group, 'elements'))),
        right('size', 'bytes', (group) => bytesCell(groupTotal(group, 'bytes'))),
        right('share', 'share', (group) => shareCell(groupTotal(group, 'bytes'), totals.bytes)),
        leftColumn('', 'bar', (group) => drawnBar(groupTotal(group, 'bytes') / most, BAR_WIDTH)),
      ],
      [
        [
          strongCell('total'),
          { ...integerCell(totals.tensors), tone: 'strong' },
          { ...integerCell(totals.elements), tone: 'strong' },
          { ...bytesCell(totals.bytes), tone: 'strong' },
          shareCell(totals.bytes, totals.bytes),
          { text: '' },
        ],
        ...distinctRow(result),
      ],
    ),
    ...moreNote(more, 'details'),
  ];
}

/** Totals with shared tensors once, as the verdict counts them; no row if no tensor is shared. */
function distinctRow({ totals, onnx }: InspectResult): Cell[][] {
  if (onnx || totals.distinctTensors === totals.tensors) return [];
  return [
    [
      strongCell('distinct'),
      { ...integerCell(totals.distinctTensors), tone: 'strong' },
      { ...integerCell(totals.distinctElements), tone: 'strong' },
      { ...bytesCell(totals.distinctBytes), tone: 'strong' },
      shareCell(totals.distinctBytes, totals.bytes),
      { text: '' },
    ],
  ];
}

/** Totals of the tensors of a model, without the constants of its graph. */
const totalsIn = (groups: readonly TensorGroup[]) => ({
  tensors: sumOf(groups, (group) => groupTotal(group, 'tensors')),
  elements: sumOf(groups, (group) => groupTotal(group, 'elements')),
  bytes: sumOf(groups, (group) => groupTotal(group, 'bytes')),
});

function nextStep({ file, model, like, srte }: InspectResult): NextLine | undefined {
  if (model?.config != null) return nextCommand('verify', [file]);
  if (like !== undefined) return nextCommand('verify', [like, file]);
  return model?.srte && !srte ? nextCommand('inspect', [file], { srte: true }) : undefined;
}

/** Total, total without duplicates if there are any, and the mixture of dtypes. */
function totalsTable({ totals }: InspectResult): TableBlock {
  const isShared = totals.distinctTensors < totals.tensors;
  const [first, ...others] = totals.dtypes;
  const only = others.length === 0 ? first?.dtype : undefined;
  const rows = present([
    { label: strongCell(`total${only ? `, ${only}` : ''}`), ...totals },
    isShared && {
      label: strongCell('distinct'),
      tensors: totals.distinctTensors,
      elements: totals.distinctElements,
      bytes: totals.distinctBytes,
    },
    ...(only
      ? []
      : totals.dtypes.map(({ dtype, ...counts }) => ({
          label: { text: `  ${dtype}`, value: dtype },
          ...counts,
        }))),
  ]);
  const isAllUsed = totals.storedBytes === totals.distinctBytes;
  const empty: Cell = { text: '' };
  return tableOf(
    rows,
    [
      leftColumn('', 'what', ({ label }) => label),
      right('tensors', 'tensors', ({ tensors }) => integerCell(tensors)),
      right('values', 'elements', ({ elements }) => integerCell(elements)),
      right('size', 'bytes', ({ bytes }) => bytesCell(bytes)),
    ],
    isAllUsed ? [] : [[{ text: 'stored' }, empty, empty, bytesCell(totals.storedBytes)]],
  );
}

/** Columns of the components. */
function groupFields(groups: readonly TensorGroup[]): (Field<TensorGroup> | false)[] {
  const isRepeated = groups.some(({ layers = [] }) => layers.length > 1);
  return [
    cutColumn('component', 'group', (group) => valueCell(groupLabel(group), nameText)),
    isRepeated && right('layers', 'alike', (group) => alikeCell(group)),
    right(isRepeated ? 'tensors each' : 'tensors', 'tensors_each', (group) =>
      integerCell(group.tensors),
    ),
    right(isRepeated ? 'values each' : 'values', 'elements_each', (group) =>
      integerCell(group.elements),
    ),
    right(isRepeated ? 'size each' : 'size', 'bytes_each', (group) => bytesCell(group.bytes)),
    wrapColumn('types', 'dtypes', (group) => group.dtypes.join(', ')),
  ];
}

function alikeCell({ layers = [] }: TensorGroup): Cell {
  return layers.length > 1 ? integerCell(layers.length) : { text: '', value: 1 };
}

/** `layers.0 … layers.31`, `layers.0, 2–5, 8`, `embed`. */
function groupLabel(group: TensorGroup): string {
  const { name, layers = [] } = group;
  const [first, ...others] = runsOf(layers);
  if (first === undefined) return name;
  const [from, to] = first;
  if (others.length > 0 || from === to) return groupName(group);
  const prefix = name === '' ? '' : `${name}.`;
  return `${prefix}${from} … ${prefix}${to}`;
}
