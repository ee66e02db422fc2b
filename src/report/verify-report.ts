import { type NextLine, nextCommand, setting } from '../base/text/setting.js';
import { formatBytes, formatInteger } from '../base/text/units.js';
import { counted, joined, namesText, sentence, shortened } from '../base/text/words.js';
import { inTurn, sumOf } from '../base/values.js';
import { FORMAT_TITLES } from '../checkpoint/formats.js';
import {
  adviceText,
  configDifferenceText,
  FAULT_NAMES,
  propertiesText,
} from '../checkpoint/reconcile/fault-texts.js';
import type { FaultKind, TensorProperties } from '../checkpoint/reconcile/faults.js';
import { ignoredIn, ignoredText } from '../checkpoint/reconcile/ignored-tensors.js';
import type { FaultGroup, ReconciliationNote } from '../checkpoint/reconcile/notes.js';
import type { ConfigDifference, Suggestion } from '../checkpoint/reconcile/reconcile.js';
import type {
  ValueComparison,
  VerifyAnswer,
  VerifyResult,
} from '../input/model-input/checkpoint/verify-checkpoint.js';
import type { BadTensor, ValueScan } from '../input/model-input/scan-values.js';
import { onnxNotes } from './inspect/inspect-formats.js';
import type { Block, Cell, Fact, Field, Report, TableBlock, Verdict } from './kit/report.js';
import {
  cutColumn,
  headingBlock,
  integerCell,
  leftColumn,
  listBlocks,
  moreNote,
  NOTHING,
  noteOf,
  paragraph,
  percentCell,
  right,
  shapeText,
  tableOf,
  wrapColumn,
} from './kit/report.js';

/** Kinds of faults in the order of their names. */
const FAULT_KINDS = Object.keys(FAULT_NAMES) as (keyof typeof FAULT_NAMES)[];

/** Rows of the answer's table, alone and below suggestions; the details have all. */
const ANSWER_ROWS = 10;
const ROWS_BELOW = 5;

export function verifyReport(result: VerifyAnswer): Report {
  const { matches, counts, faults, notes, suggestions, configDifferences } = result;
  const advised = new Set(
    suggestions.flatMap((each) => (each.kind === 'config' ? each.set.map(({ path }) => path) : [])),
  );
  const differences = configDifferences.filter(({ path }) => !advised.has(path));
  const named = new Set(ignoredIn(notes)?.names);
  const isAlone = suggestions.length + differences.length === 0;
  const shown = foremost(faults, isAlone ? ANSWER_ROWS : ROWS_BELOW);
  const more = faults.length - shown.length;
  return {
    verdict: verifyVerdict(result),
    blocks: [
      { kind: 'facts', facts: verifyFacts(result) },
      ...(result.onnx ? onnxNotes(result.onnx) : []),
      ...suggestions.map((each) => adviceBlock(each, counts.faulty)),
      ...notes.map(noteBlock),
      ...differenceBlocks(differences),
      ...(result.scan ? scanBlocks(result.scan) : []),
      ...(result.values ? valueBlocks(result.values, named) : []),
      ...(faults.length > 0 ? [faultTable(shown)] : []),
      ...moreNote(more, 'details'),
    ],
    details: [
      ...(differences.length > 1 ? differences.map(differenceBlock) : []),
      ...(more > 0 ? listBlocks('Faults', faults, faultFields(faults)) : []),
    ],
    next: matches && !result.isNotRun ? quickTest(result) : undefined,
    data: faultTable(faults),
  };
}

/** Undefined for a config from standard input. */
function quickTest({ config, checkpoint }: VerifyResult): NextLine | undefined {
  if (config.startsWith(checkpoint)) return nextCommand('quickTest', [checkpoint]);
  if (!/\.(?:ya?ml|json)$/i.test(config)) return undefined;
  return nextCommand('quickTest', [config], { checkpoint });
}

/** `1 NaN and 2 infinite`. */
const badCounts = ({ nan, infinite }: Pick<BadTensor, 'nan' | 'infinite'>): string =>
  [
    ...(nan > 0 ? [`${formatInteger(nan)} NaN`] : []),
    ...(infinite > 0 ? [`${formatInteger(infinite)} infinite`] : []),
  ].join(' and ');

const badText = (bad: BadTensor | undefined): string =>
  bad ? `${bad.tensor}: ${badCounts(bad)} at ${shapeText(bad.first)}` : '';

/** Maximum rows of broken tensors in the answer. */
const MOST_BAD = 8;

/** `no NaN or infinity in 30 tensors, 495.4 kB`. */
function scanText({ skipped, tensors, bytes, unread, bad }: ValueScan): string {
  if (skipped === 'size')
    return `not searched for NaN, ${formatBytes(bytes)}: ${setting('scan')} does`;
  if (skipped === 'remote')
    return `not searched for NaN, as they are on the hub: ${setting('scan')} does`;
  const others = unread > 0 ? `; ${counted(unread, 'tensor')} of other types not searched` : '';
  const what = bad.length > 0 ? 'searched for NaN' : 'no NaN or infinity';
  return `${what} in ${counted(tensors, 'tensor')}, ${formatBytes(bytes)}${others}`;
}

function scanBlocks({ bad, beyondFloat16 }: ValueScan): Block[] {
  const first = beyondFloat16[0];
  const others = beyondFloat16.length - 1;
  return [
    ...(bad.length > 0
      ? [
          headingBlock('Weights with NaN or infinities, in the order of the model'),
          tableOf(bad.slice(0, MOST_BAD), [
            leftColumn('tensor', 'tensor', ({ tensor }) => tensor),
            leftColumn('type', 'dtype', ({ dtype }) => dtype.toLowerCase()),
            leftColumn('shape', 'shape', ({ shape }) => shapeText(shape)),
            leftColumn('values', 'values', (each) => badCounts(each)),
            leftColumn('first at', 'first', (each) => shapeText(each.first)),
          ]),
          ...moreNote(Math.max(0, bad.length - MOST_BAD), 'json'),
        ]
      : []),
    ...(first
      ? [
          noteOf(
            `Beyond 65,504, the largest float16: ${counted(first.values, 'value')} of ${first.tensor}` +
              `${others > 0 ? ` and those of ${counted(others, 'other tensor')}` : ''}. float16 makes them infinite.`,
          ),
        ]
      : []),
  ];
}

/** Distance from the original by type. @param named Names that a note already has. */
function valueBlocks(values: ValueComparison, named: ReadonlySet<string>): Block[] {
  const { original, compared, missing, reshaped, types } = values;
  const ignored = values.ignored.filter((name) => !named.has(name));
  const beyond = values.beyond.filter((name) => !reshaped.includes(name));
  return [
    headingBlock(`Values against ${shortened(original)}: ${counted(compared, 'tensor')}`),
    types.length === 0
      ? noteOf(
          reshaped.length > 0
            ? 'No tensor has the same shape in both: they are not checkpoints of one model.'
            : 'No tensor is in both: they are not checkpoints of one model.',
        )
      : tableOf(types, [
          leftColumn('type', 'type', ({ type }) => type),
          right('tensors', 'tensors', ({ tensors }) => integerCell(tensors)),
          right('largest error', 'relative_error', ({ relativeError }) =>
            percentCell(relativeError),
          ),
          right('limit', 'limit', ({ limit }) => percentCell(limit)),
          wrapColumn('in tensor', 'worst', ({ worst }) => worst),
        ]),
    ...(beyond.length > 0 ? [noteOf(`Beyond the error of their type: ${namesText(beyond)}.`)] : []),
    ...(reshaped.length > 0 ? [noteOf(`Of another shape: ${namesText(reshaped)}.`)] : []),
    ...(missing.length > 0 ? [noteOf(`In only one of the two: ${namesText(missing)}.`)] : []),
    ...(ignored.length > 0
      ? [noteOf(`In only one of the two, and ignored by transformers: ${namesText(ignored)}.`)]
      : []),
  ];
}

function verifyVerdict({ matches, counts, faults, values, scan }: VerifyAnswer): Verdict {
  const beyond = (values?.beyond.length ?? 0) + (values?.missing.length ?? 0);
  if (faults.length === 0 && beyond > 0) {
    return { text: `values differ: ${counted(beyond, 'tensor')}`, tone: 'bad' };
  }
  const broken = scan?.bad ?? [];
  if (faults.length === 0 && broken.length > 0) {
    return {
      text: `broken weights: ${counted(broken.length, 'tensor')} of ${formatInteger(counts.tensors)} with NaN or infinities, first ${badText(broken[0])}`,
      tone: 'bad',
    };
  }
  if (matches) return { text: `matches: ${counted(counts.tensors, 'tensor')}`, tone: 'good' };
  const kinds = FAULT_KINDS.flatMap((kind) => {
    const number = sumOf(
      faults.filter((fault) => fault.kind === kind),
      countOf,
    );
    return number > 0 ? [countText(kind, number)] : [];
  });
  const what =
    kinds.length > 0
      ? kinds.join(', ')
      : `the tensors match, but ${setting('strict')} refuses warnings`;
  return { text: `does not match: ${what}`, tone: 'bad' };
}

/** `2 missing`, `1 extra layer`. */
const countText = (kind: FaultKind, number: number): string =>
  isOfLayers(kind)
    ? counted(number, LAYERS[kind])
    : `${formatInteger(number)} ${FAULT_NAMES[kind]}`;

const LAYERS = {
  'missing-layers': 'missing layer',
  'layer-gap': 'skipped layer',
  'extra-layers': 'extra layer',
} as const satisfies Partial<Record<FaultKind, string>>;

const isOfLayers = (kind: FaultKind): kind is keyof typeof LAYERS => kind in LAYERS;

/** Number of layers for a fault of complete layers, otherwise of tensors. */
const countOf = ({ kind, names, pattern }: FaultGroup): number =>
  isOfLayers(kind) ? layersIn(pattern) : names.length;

/** Number of layers in `layers.{24–31}` or `layers.5`. */
const layersIn = (pattern: string): number =>
  sumOf(
    pattern.matchAll(/(\d+)(?:–(\d+))?/g),
    ([, from, to]) => Number(to ?? from) - Number(from) + 1,
  );

function verifyFacts({
  checkpoint,
  config,
  format,
  family,
  stateDict,
  prefix,
  counts,
  scan,
}: VerifyResult): Fact[] {
  const where = stateDict.length > 0 ? `, state dict ${shortened(stateDict.join('.'))}` : '';
  const stripped = prefix === '' ? '' : `, prefix ${JSON.stringify(shortened(prefix))} ignored`;
  return [
    {
      name: 'checkpoint',
      text: `${checkpoint} (${FORMAT_TITLES[format]}, ${counted(counts.stored, 'name')}${where}${stripped})`,
    },
    { name: 'config', text: `${config} (${family})` },
    ...(scan ? [{ name: 'values', text: scanText(scan) }] : []),
  ];
}

/** Faults for the answer: the first ones of each kind, so that no kind is hidden. */
function foremost(faults: readonly FaultGroup[], most: number): readonly FaultGroup[] {
  const byKind = FAULT_KINDS.map((kind) => faults.filter((fault) => fault.kind === kind));
  const shown = new Set(inTurn(byKind).slice(0, most));
  return byKind.flat().filter((fault) => shown.has(fault));
}

const faultTable = (faults: readonly FaultGroup[]): TableBlock =>
  tableOf(faults, faultFields(faults));

function faultFields(faults: readonly FaultGroup[]): (Field<FaultGroup> | false)[] {
  const hasHints = faults.some(({ hint }) => hint !== null);
  return [
    leftColumn('fault', 'fault', ({ kind }) => ({
      text: FAULT_NAMES[kind],
      value: kind,
      tone: 'bad',
    })),
    cutColumn('tensors', 'tensors', ({ pattern }) => shortened(pattern)),
    right('count', 'count', ({ names }) => integerCell(names.length)),
    wrapColumn('expected', 'described', ({ expected }) => saidCell(expected)),
    wrapColumn('found', 'found', ({ found }) => saidCell(found)),
    hasHints && wrapColumn('hint', 'remark', ({ hint }) => hint ?? ''),
  ];
}

const saidCell = (said: TensorProperties | null): Cell =>
  said === null ? NOTHING : { text: propertiesText(said) };

function adviceBlock(suggestion: Suggestion, faulty: number): Block {
  const { leaves } = suggestion;
  const rest =
    leaves === 0
      ? 'This explains all differences.'
      : `${formatInteger(leaves)} of ${counted(faulty, 'tensor')} still differ.`;
  return paragraph(`→ ${adviceText(suggestion)} ${rest}`);
}

const NOTES = {
  'buffers-left-out': ({ names }) =>
    `${counted(names.length, 'buffer')} not stored, computed from the config: ${namesText(names)}.`,
  'strict-load': ({ names }) =>
    `PyTorch’s load_state_dict(strict=True) also requires ${counted(names.length, 'name')}: ${namesText(names)}.`,
  'stored-again': ({ names, bytes = 0 }) =>
    `${counted(names.length, 'tied tensor')} stored twice (${namesText(names)}): ${formatBytes(bytes)} more than needed.`,
  'equal-values': ({ names, bytes = 0 }) =>
    `${counted(names.length, 'tensor')} equal to another tensor (${namesText(names)}): tying saves ${formatBytes(bytes)}.`,
  'kept-by-others': ({ names, bytes = 0, what = '' }) =>
    `${counted(names.length, 'tensor')} not used by the model (${namesText(names)}), ${formatBytes(bytes)}: ${what}.`,
  'ignored-by-transformers': ({ names, patterns = [], bytes = 0 }) =>
    sentence(ignoredText({ names, patterns, bytes })),
} as const satisfies Record<ReconciliationNote['kind'], (note: ReconciliationNote) => string>;

const noteBlock = (each: ReconciliationNote): Block =>
  paragraph(NOTES[each.kind](each), each.severity === 'warning' ? 'warning' : 'dim');

/** One difference with its values, or the names of several. */
function differenceBlocks(differences: readonly ConfigDifference[]): Block[] {
  if (differences.length <= 1) return differences.map(differenceBlock);
  const paths = differences.map(({ path }) => shortened(path));
  const [first, second] = paths;
  const shown =
    paths.length > 3 ? `${first}, ${second} and ${paths.length - 2} more` : joined(paths);
  return [paragraph(`The config inside the checkpoint has other values: ${shown}.`, 'warning')];
}

const differenceBlock = (difference: ConfigDifference): Block =>
  paragraph(`The ${configDifferenceText(difference)}.`, 'warning');
