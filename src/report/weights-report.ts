/** Reports about models that no family describes: sizes from the headers of their weights. */
import { nextCommand, setting } from '../base/text/setting.js';
import {
  dtypeWord,
  formatBytes,
  formatChange,
  formatInteger,
  shortCount,
} from '../base/text/units.js';
import { counted, joined, modelName, nameText } from '../base/text/words.js';
import { present, sumOf } from '../base/values.js';
import type { TensorGroup } from '../checkpoint/summary.js';
import type {
  WeightsComparison,
  WeightsFitResult,
  WeightsResult,
} from '../estimate/undescribed/undescribed-results.js';
import type { WeightsMemory } from '../estimate/undescribed/weights-memory.js';
import type { RepositoryComponent } from '../input/repository/repository.js';
import type { Block, Cell, Fact, Field, Report } from './kit/report.js';
import {
  bytesCell,
  cutColumn,
  integerCell,
  leftColumn,
  listBlocks,
  moreNote,
  NOTHING,
  noteOf,
  right,
  shapeText,
  shareCell,
  strongCell,
  tableOf,
  valueCell,
  wrapColumn,
} from './kit/report.js';
import { groupName, groupTotal, largestGroups } from './kit/tensor-groups.js';

/** Rows of the answer's table; the details have all. */
const ANSWER_ROWS = 8;

/** Maximum types that a verdict names. */
const MOST_TYPES = 3;

export function weightsReport(result: WeightsResult): Report {
  const { components, dtypes, largest, copies, file, like } = result;
  const [only, ...others] = components;
  const isOne = others.length === 0;
  return {
    verdict: { text: weightsVerdict(result) },
    blocks: [
      { kind: 'facts', facts: weightsFacts(result) },
      ...(isOne && only ? groupsBlocks(only) : componentsBlocks(result)),
    ],
    details: [
      ...listBlocks('Types', dtypes, DTYPE_FIELDS),
      ...listBlocks('Largest tensors', largest, [
        !isOne && cutColumn('component', 'component', ({ component }) => nameText(component)),
        cutColumn('tensor', 'tensor', ({ name }) => nameText(name)),
        leftColumn('type', 'dtype', ({ dtype }) => dtype),
        leftColumn('shape', 'shape', ({ shape }) => shapeText(shape)),
        right('size', 'bytes', ({ bytes }) => bytesCell(bytes)),
      ]),
      ...components.flatMap((each) =>
        listBlocks(isOne ? 'Parts' : `Parts of ${nameText(each.name)}`, each.groups, GROUP_FIELDS),
      ),
      ...listBlocks('Other weights, not counted', copies, [
        cutColumn('file', 'file', (copy) => nameText(copy.file)),
        right('files', 'files', (copy) => integerCell(copy.files)),
        right('size', 'bytes', ({ bytes }) => valueCell(bytes, formatBytes)),
      ]),
    ],
    next:
      like === undefined
        ? nextCommand('fit', [file])
        : nextCommand('profile', [file], { config: like }),
    data: tableOf(components, COMPONENT_FIELDS),
  };
}

/** `109M parameters · 438 MB in f32 · BertModel, counted from the headers of its weights` */
function weightsVerdict({
  parameters,
  bytes,
  dtypes,
  unknownTensors,
  ...model
}: WeightsResult): string {
  const types = dtypes.map(({ dtype }) => dtypeWord(dtype.toLowerCase()));
  const kind = kindText(model);
  const { layout, components } = model;
  const parts = { one: '', listed: '', folders: 'folders', files: 'files' }[layout];
  return [
    ...(parts === '' ? [] : [`${components.length} ${parts}`]),
    `${unknownTensors > 0 ? 'more than ' : ''}${shortCount(parameters)} parameters`,
    `${formatBytes(bytes)} in ${types.length > MOST_TYPES ? `${types.length} types` : types.join(', ')}`,
    `${kind}counted from headers`,
  ].join(' · ');
}

const kindText = (model: Pick<WeightsResult, 'class' | 'modelType'>): string => {
  const kind = model.class ?? model.modelType;
  return kind === null ? '' : `${nameText(kind)}, `;
};

function weightsFacts(result: WeightsResult): Fact[] {
  const { file, reason, memory, bufferValues, unknownTensors, copies, missing } = result;
  const { low, high } = memory.inference;
  return present([
    { name: 'file', text: file },
    {
      name: 'inference',
      text: `${formatBytes(low)} to ${formatBytes(high)} (wide: what inputs need is unknown)`,
    },
    {
      name: 'training',
      text: `more than ${formatBytes(memory.trainingState)}: 16 bytes a parameter, and activations`,
    },
    bufferValues > 0 && {
      name: 'buffers',
      text: `${formatInteger(bufferValues)} further values, such as positions and statistics`,
    },
    unknownTensors > 0 && {
      name: 'not counted',
      text: `${counted(unknownTensors, 'tensor')} of integers in an unknown packing`,
    },
    missing.length > 0 && {
      name: 'missing',
      text: `${joined(missing.slice(0, MOST_MISSING).map(nameText))}${missing.length > MOST_MISSING ? `, and ${missing.length - MOST_MISSING} more` : ''}: the totals lack them`,
      tone: 'warning' as const,
    },
    copies.length > 0 && { name: 'other weights', text: copiesText(result) },
    { name: 'not known', text: `FLOPs, KV cache and speed: ${reason}` },
  ]);
}

/** Missing parts in a line. */
const MOST_MISSING = 4;

/** Names of the first copies. */
const LISTED = 2;

function copiesText({ copies }: WeightsResult): string {
  const shown = copies.slice(0, LISTED).map(({ file }) => nameText(file));
  const more = copies.length - shown.length;
  const also = more > 0 ? [...shown, `${more} more`] : shown;
  return `${joined(also)}: not counted`;
}

const GROUP_FIELDS: readonly Field<TensorGroup>[] = [
  cutColumn('part', 'part', (group) => nameText(groupName(group))),
  right('tensors', 'tensors', (group) => integerCell(groupTotal(group, 'tensors'))),
  right('values', 'values', (group) => integerCell(groupTotal(group, 'elements'))),
  right('size', 'bytes', (group) => bytesCell(groupTotal(group, 'bytes'))),
  wrapColumn('types', 'dtypes', (group) => group.dtypes.join(', ')),
];

/** The largest parts of a model, in the order of its tensors. */
function groupsBlocks({ groups, bytes, tensors, dtypes }: RepositoryComponent): Block[] {
  const shown = largestGroups(groups, ANSWER_ROWS);
  const values = sumOf(dtypes, ({ elements }) => elements);
  return [
    tableOf(
      shown,
      [
        ...GROUP_FIELDS.slice(0, -1),
        right('share', 'share', (group: TensorGroup) =>
          shareCell(groupTotal(group, 'bytes'), bytes),
        ),
      ],
      [
        totalRow([
          integerCell(tensors),
          integerCell(values),
          bytesCell(bytes),
          shareCell(bytes, bytes),
        ]),
      ],
    ),
    ...moreNote(groups.length - shown.length, 'details'),
  ];
}

const totalRow = (cells: readonly Cell[]): Cell[] => [
  strongCell('total'),
  ...cells.map((cell): Cell => ({ ...cell, tone: 'strong' })),
];

const COMPONENT_FIELDS: readonly Field<RepositoryComponent>[] = [
  cutColumn('component', 'component', ({ name }) => nameText(name)),
  cutColumn('class', 'class', (each) => (each.class === null ? NOTHING : nameText(each.class))),
  right('parameters', 'parameters', ({ parameters }) => integerCell(parameters)),
  right('size', 'bytes', ({ bytes }) => bytesCell(bytes)),
  wrapColumn('types', 'dtypes', ({ dtypes }) => dtypes.map(({ dtype }) => dtype).join(', ')),
];

function componentsBlocks({ components, parameters, bytes }: WeightsResult): Block[] {
  const shown = components.slice(0, ANSWER_ROWS);
  const total = totalRow([{ text: '' }, integerCell(parameters), bytesCell(bytes), { text: '' }]);
  return [
    tableOf(shown, COMPONENT_FIELDS, [total]),
    ...moreNote(components.length - shown.length, 'json'),
  ];
}

const DTYPE_FIELDS: readonly Field<WeightsResult['dtypes'][number]>[] = [
  leftColumn('type', 'dtype', ({ dtype }) => dtype),
  right('tensors', 'tensors', ({ tensors }) => integerCell(tensors)),
  right('values', 'elements', ({ elements }) => integerCell(elements)),
  right('size', 'bytes', ({ bytes }) => bytesCell(bytes)),
];

// ── fit ──────────────────────────────────────────────────────────────────────────────────────────

export function weightsFitReport(result: WeightsFitResult): Report {
  const { rows, memory, reason } = result;
  const fields: Field<(typeof rows)[number]>[] = [
    leftColumn('GPU', 'gpu', ({ name }) => strongCell(name)),
    right('memory', 'memory_bytes', ({ memoryBytes }) => bytesCell(Math.round(memoryBytes))),
    leftColumn('inference', 'inference', ({ inference }) => inferenceCell(inference)),
    leftColumn('training', 'training', ({ training }) => inferenceCell(training)),
  ];
  return {
    verdict: { text: fitVerdictText(result) },
    blocks: [
      {
        kind: 'facts',
        facts: [
          { name: 'inference', text: inferenceRange(memory) },
          { name: 'not known', text: `KV cache and speed: ${reason}` },
        ],
      },
      tableOf(rows, fields),
      noteOf(
        'Inference fits where twice the weights and 2 GB fit. Training may fit where 16 bytes a parameter fit; its activations are unknown.',
      ),
    ],
    data: tableOf(rows, fields),
  };
}

const inferenceRange = ({ inference: { low, high } }: WeightsMemory): string =>
  `${formatBytes(low)} (weights) to ${formatBytes(high)} (wide: what inputs need is unknown)`;

function fitVerdictText({ file, parameters, bytes, rows }: WeightsFitResult): string {
  const model = `${modelName(file)} (${shortCount(parameters)} parameters, ${formatBytes(bytes)})`;
  const [only, ...others] = rows;
  if (only && others.length === 0) return `${model}: inference ${only.inference} on ${only.title}`;
  const first = rows.find(({ inference }) => inference === 'fits');
  return first
    ? `${model}: inference needs ${first.name}`
    : `${model}: inference needs more than any listed GPU`;
}

const inferenceCell = (verdict: WeightsFitResult['rows'][number]['inference']): Cell => {
  if (verdict === 'fits') return { text: verdict, tone: 'good' };
  return verdict === 'may fit'
    ? { text: verdict, tone: 'warning' }
    : { text: 'no', value: verdict, tone: 'dim' };
};

// ── compare ──────────────────────────────────────────────────────────────────────────────────────

export function weightsComparisonReport({ rows }: WeightsComparison): Report {
  const [first] = rows;
  const fields: Field<(typeof rows)[number]>[] = [
    cutColumn('model', 'model', ({ file }) => nameText(modelName(file))),
    cutColumn('kind', 'kind', ({ kind }) => (kind === null ? NOTHING : nameText(kind))),
    right('parameters', 'parameters', ({ parameters }) => integerCell(parameters)),
    right('change', 'change', ({ parameters }, index) =>
      index === 0 || first === undefined
        ? { text: '' }
        : {
            text: formatChange(parameters, first.parameters),
            value: parameters / first.parameters - 1,
          },
    ),
    right('weights', 'bytes', ({ bytes }) => bytesCell(bytes)),
    wrapColumn('types', 'dtypes', ({ dtypes }) => dtypes.join(', ')),
  ];
  const smallest = rows.toSorted((a, b) => a.parameters - b.parameters)[0];
  return {
    verdict: {
      text: `${counted(rows.length, 'model')}; the smallest is ${modelName(smallest?.file ?? '')} with ${shortCount(smallest?.parameters ?? 0)} parameters`,
    },
    blocks: [
      tableOf(rows, fields),
      noteOf(
        `Sizes only: no family describes ${joined(rows.filter(({ isDescribed }) => !isDescribed).map(({ file }) => modelName(file)))}. ${setting('details')} of minimind profile has the parts.`,
      ),
    ],
    data: tableOf(rows, fields),
  };
}
