/** Report of `minimind plan`: the best models of a budget, and the trade-off between depth and width. */

import { commandText, type NextLine, setting } from '../base/text/setting.js';
import {
  dtypeWord,
  formatBytes,
  formatCount,
  formatFlops,
  formatInteger,
  formatSequences,
  shortCount,
  significant,
} from '../base/text/units.js';
import { counted, joined, modelName, sentence } from '../base/text/words.js';
import { present } from '../base/values.js';
import type { MeasureName } from '../estimate/plan/criteria.js';
import type { Plan, PlanRow } from '../estimate/plan/plan-models.js';
import type { PlanResult } from '../estimate/plan/plan-sweep.js';
import type { SquareRootRule, VocabularyComparison } from '../estimate/plan/vocabulary.js';
import type { Exact } from '../model/budget/figure.js';
import type { Block, Cell, Field, Report, TableBlock, Tone, Verdict } from './kit/report.js';
import {
  bar,
  bytesCell,
  cutColumn,
  headingBlock,
  integerCell,
  leftColumn,
  moreNote,
  NOTHING,
  noteOf,
  paragraph,
  percentCell,
  right,
  tableOf,
  valueCell,
} from './kit/report.js';
import { planPictures } from './plan-pictures.js';

/** @param next Command that writes the best model as a config, or shows it. */
export function planReport(
  plan: Omit<PlanResult, 'schema'>,
  { next }: { readonly next?: NextLine | undefined } = {},
): Report {
  const { vocabularies, squareRootRule } = plan;
  const rule = squareRootRule ? [ruleNote(squareRootRule)] : [];
  if (vocabularies) {
    return {
      verdict: vocabularyVerdict(plan, vocabularies),
      blocks: [...vocabularyBlocks(vocabularies), ...rule],
      details: [
        headingBlock('Models with the best vocabulary'),
        rowTable(plan),
        noteOf(legendOf(plan)),
      ],
      next,
      data: vocabularyTable(vocabularies),
    };
  }
  const most = squareRootRule ? ROWS_WITH_RULE : plan.rows.length;
  return {
    verdict: planVerdict(plan),
    blocks: [
      ...conditionNotes(plan),
      rowTable(plan, most),
      ...moreNote(plan.rows.length - most, 'details'),
      ...allocationNotes(plan),
      noteOf(legendOf(plan)),
      ...rule,
    ],
    details: [
      ...(plan.rows.length > most ? [headingBlock('All models'), rowTable(plan)] : []),
      ...searchNotes(plan),
      ...spectrumBlocks(plan),
      ...explanationNotes(plan),
    ],
    pictures: () => planPictures(plan),
    next,
    data: planTable(plan),
  };
}

/** Rows of the answer above the square root rule, which takes the lines of some rows. */
const ROWS_WITH_RULE = 6;

/** A property of a model and its format. */
interface Shown extends Field<PlanRow> {
  /** Whether the family has it; always, when undefined. */
  readonly isIn?: (row: PlanRow) => boolean;
}

const AXIS_WORDS = {
  parameters: 'parameters',
  body: 'parameters of the body',
  memory: 'memory',
  decode: 'decode speed',
  widthPerLayer: 'width per layer',
  offBalance: 'balance',
} as const satisfies Record<MeasureName, string>;

function planVerdict({ family, rows, criterion, limits }: Plan): Verdict {
  const [best] = rows;
  const limit = shortCount(limits.maxParameters);
  if (!best) return { text: `No ${family} model has at most ${limit} parameters` };
  const { sizes, parameters, memory, decode } = best;
  const rate = decode ? `, ${rateText(decode.expected.value)} tokens/s` : '';
  return {
    text:
      `Best ${family} model by ${criterion.name}: ${counted(sizes.depth, 'layer')} of width ${sizes.width}, ` +
      `${shortCount(parameters.value)} of ${limit} parameters, ${formatBytes(memory.value)}${rate}`,
  };
}

function conditionNotes(plan: Plan): Block[] {
  const { inference, gpu, limits, compared, pareto } = plan;
  const memory = limits.maxMemory === null ? '' : `, in at most ${formatBytes(limits.maxMemory)}`;
  return [
    noteOf(
      `${formatInteger(pareto)} of ${counted(compared, 'candidate')} ${pareto === 1 ? 'is' : 'are'} Pareto-optimal. ` +
        `Inference: ${formatSequences(inference.batch, inference.context)}, ${dtypeWord(inference.dtype)}${gpu === null ? '' : `, on ${gpu}`}${memory}.`,
    ),
    ...misfitNotes(plan),
  ];
}

/** Notes on the method of the search. */
function searchNotes({ axes, criterion, limits: { minParameters, maxParameters } }: Plan): Block[] {
  return [
    noteOf(
      `Models of ${formatCount(minParameters)} to ${formatCount(maxParameters)} parameters. No shown model is beaten in ` +
        `${joined(axes.map(({ measure }) => AXIS_WORDS[measure]))} at once.`,
    ),
    noteOf(`Sorted by ${criterion.name}: ${criterion.title}.`),
  ];
}

/** Notes on the rows of both tables. */
function misfitNotes({ rows, spectrum, gpu, gpuMemory }: Plan): Block[] {
  if (!gpuMemory) return [];
  const shown = new Map([...rows, ...spectrum].map((row) => [row.place, row.misfit]));
  const misfits = [...shown.values()].filter((misfit) => misfit !== null).length;
  if (misfits === 0) return [];
  return [
    paragraph(
      `${formatInteger(misfits)} of ${counted(shown.size, 'model')} shown do not fit into the ` +
        `${formatBytes(gpuMemory.value)} of ${gpu ?? 'the GPU'} (no tokens/s). ` +
        `${setting('maxMemory', gpuMemory.value)} removes them.`,
      'bad',
    ),
  ];
}

function vocabularyVerdict({ family, limits }: Plan, { best }: VocabularyComparison): Verdict {
  const cost = best.model?.trainingFlopsPerCharacter ?? 0;
  return {
    text:
      `Best vocabulary for ${shortCount(limits.maxParameters)} ${family} parameters: ${formatInteger(best.vocabulary)} tokens ` +
      `(${tokenizerName(best.tokenizer)}), ${formatFlops(Math.round(cost))} of training per character`,
  };
}

/** A tokenizer.json has the name of its folder. */
const tokenizerName = (file: string) => modelName(file.replace(/[\\/]tokenizer\.json$/, ''));

const vocabularyBlocks = (comparison: VocabularyComparison): Block[] => [
  vocabularyTable(comparison),
  noteOf(
    `Training and forward: FLOPs per character of the text. All rows have the same body, ${comparison.shape.depth} layers of width ` +
      `${formatInteger(comparison.shape.width)}: the best of the budget with the largest vocabulary that fits.`,
  ),
];

function vocabularyTable({ rows, best }: VocabularyComparison): TableBlock {
  const flops = (value: number | undefined): Cell =>
    value === undefined ? NOTHING : { text: formatFlops(Math.round(value)), value };
  const toneOf = (row: (typeof rows)[number]): Tone => (row === best ? 'good' : 'plain');
  return tableOf(rows, [
    cutColumn('tokenizer', 'tokenizer', (row) => ({
      text: tokenizerName(row.tokenizer),
      value: row.tokenizer,
      tone: toneOf(row),
    })),
    right('vocab', 'vocabulary', (row) => ({ ...integerCell(row.vocabulary), tone: toneOf(row) })),
    right('params', 'parameters', ({ model }) =>
      model ? { ...integerCell(model.parameters), text: shortCount(model.parameters) } : NOTHING,
    ),
    right('emb.', 'embedding_share', ({ model }) =>
      model ? percentCell(model.embeddingShare) : NOTHING,
    ),
    right('tok/char', 'tokens_per_character', ({ tokensPerCharacter: value }) => ({
      text: value.toFixed(3),
      value,
    })),
    right('B/tok', 'bytes_per_token', ({ bytesPerToken: value }) => ({
      text: value.toFixed(2),
      value,
    })),
    right('forward', 'forward_flops_per_character', ({ model }) =>
      flops(model?.forwardFlopsPerCharacter),
    ),
    right('training', 'training_flops_per_character', (row) => ({
      ...flops(row.model?.trainingFlopsPerCharacter),
      tone: toneOf(row),
    })),
  ]);
}

/** The rule of thumb, and the reason why it is wrong. */
const ruleNote = ({ parameters, vocabulary, width, embedding, timesBudget }: SquareRootRule) =>
  noteOf(
    `√${formatInteger(parameters)} × 100 = ${formatInteger(vocabulary)} tokens is not a usable rule: one table of ` +
      `${formatInteger(vocabulary)} × ${formatInteger(width)} has ${shortCount(embedding)} parameters, ${significant(timesBudget)} times the budget.`,
  );

/** Mark of the row outside the ranking, whose place is 0. */
const RULE_MARK = '*';
const countCell = (value: Exact): Cell => ({ ...integerCell(value), text: formatCount(value) });
const times = (value: number) => (value < 10 ? `×${value.toFixed(2)}` : `×${value.toFixed(1)}`);

function headsText({ sizes: { heads, keyValueHeads } }: PlanRow): string {
  return keyValueHeads === null ? String(heads) : `${heads}/${keyValueHeads}`;
}

/** `1,234`; one decimal below 100. */
const rateText = (value: number) =>
  value < 100 ? value.toFixed(1) : formatInteger(Math.round(value));

const rateCell = ({ decode }: PlanRow): Cell => valueCell(decode?.expected.value ?? null, rateText);

const ROW_COLUMNS: readonly Shown[] = [
  right('#', 'place', ({ place }) => (place === 0 ? RULE_MARK : valueCell(place))),
  right('layers', 'layers', ({ sizes }) => valueCell(sizes.depth)),
  right('width', 'width', ({ sizes }) => valueCell(sizes.width)),
  right('heads/KV', 'heads', headsText),
  {
    ...right('FFN', 'feed_forward', ({ sizes }) => valueCell(sizes.feedForward)),
    isIn: ({ sizes }) => sizes.feedForward !== null,
  },
  {
    ...right('rank', 'rank', ({ sizes }) => valueCell(sizes.rank)),
    isIn: ({ sizes }) => sizes.rank !== null,
  },
  right('params', 'parameters', ({ parameters }) => countCell(parameters.value)),
  right('memory', 'memory_bytes', ({ memory }) => bytesCell(memory.value)),
  {
    ...right('tokens/s', 'tokens_per_second', rateCell),
    isIn: ({ decode, misfit }) => decode !== null || misfit !== null,
  },
  right('balance', 'off_balance', ({ offBalance: { value } }) => valueCell(value, times)),
];

/** Meanings of the table's columns. */
function legendOf({ rows }: Plan): string {
  const has = (of: (sizes: PlanRow['sizes']) => number | null) =>
    rows.some(({ sizes }) => of(sizes) !== null);
  return [
    has((sizes) => sizes.keyValueHeads)
      ? 'heads/KV: query / key-value heads.'
      : 'heads/KV: attention heads.',
    ...(has((sizes) => sizes.feedForward) ? ['FFN: feed-forward width.'] : []),
    ...(has((sizes) => sizes.rank) ? ['rank: of the SRTE.'] : []),
    'balance: ×1 is best.',
  ].join(' ');
}

/** All columns, for programs. */
const FLAT_COLUMNS: readonly Field<PlanRow>[] = [
  right('', 'place', ({ place }) => valueCell(place)),
  right('', 'layers', ({ sizes }) => valueCell(sizes.depth)),
  right('', 'width', ({ sizes }) => valueCell(sizes.width)),
  right('', 'heads', ({ sizes }) => valueCell(sizes.heads)),
  right('', 'kv_heads', ({ sizes }) => valueCell(sizes.keyValueHeads)),
  right('', 'head_dim', ({ sizes }) => valueCell(sizes.headDim)),
  right('', 'feed_forward', ({ sizes }) => valueCell(sizes.feedForward)),
  right('', 'rank', ({ sizes }) => valueCell(sizes.rank)),
  right('', 'parameters', ({ parameters }) => integerCell(parameters.value)),
  right('', 'body_parameters', ({ body }) => integerCell(body.value)),
  right('', 'weights_bytes', ({ weights }) => bytesCell(weights.value)),
  right('', 'kv_cache_bytes', ({ keyValueCache }) => bytesCell(keyValueCache.value)),
  right('', 'memory_bytes', ({ memory }) => bytesCell(memory.value)),
  right('', 'tokens_per_second', rateCell),
  right('', 'width_per_layer', ({ widthPerLayer: { value } }) => valueCell(value)),
  right('', 'off_balance', ({ offBalance: { value } }) => valueCell(value)),
];

const planTable = ({ rows }: Plan) => tableOf(rows, FLAT_COLUMNS);

function rowTable({ rows, allocation }: Plan, most = rows.length): TableBlock {
  const best = rows.slice(0, most);
  const shown = allocation ? [...best, allocation.row] : best;
  return tableOf(
    shown,
    ROW_COLUMNS.filter(({ isIn }) => !isIn || shown.some(isIn)),
  );
}

/** The rule of shares: its result, compared with the best model. */
function allocationNotes({ allocation }: Plan): Block[] {
  if (!allocation) return [];
  const { rule, shares, best } = allocation;
  const text = ({ embedding, attention, feedForward }: typeof shares, digits: number) =>
    `${[embedding, attention, feedForward].map((share) => (share * 100).toFixed(digits)).join('/')}%`;
  return [
    noteOf(
      `${RULE_MARK} ${text(rule, 0)} embeddings/attention/FFN: ${text(shares, 1)}. Row 1: ${text(best, 1)}.`,
    ),
  ];
}

const MOST_IN_SPECTRUM = 14;
const BAR_WIDTH = 10;

function spectrumBlocks({ spectrum }: Plan): Block[] {
  const rows = thinnedOut(spectrum);
  if (rows.length < 2) return [];
  const most = (of: (row: PlanRow) => number) => Math.max(...rows.map(of));
  const cache = ({ state }: PlanRow) => Number(state.value);
  const rate = ({ decode }: PlanRow) => decode?.expected.value ?? 0;
  const [mostCache, mostRate] = [most(cache), most(rate)];
  const barCell = (value: number, of: number): Cell => ({
    text: of > 0 ? bar(value / of, BAR_WIDTH) : '',
    value: '',
    ...(of > 0 && { share: value / of }),
  });
  const hasRate = mostRate > 0;
  const toneOf = ({ place }: PlanRow): Tone => (place === 1 ? 'good' : 'plain');
  return [
    headingBlock('From deep and thin to shallow and wide: the best model of each width'),
    tableOf(rows, [
      right('#', 'place', (row) => ({ ...valueCell(row.place), tone: toneOf(row) })),
      right('shape', 'shape', (row) => ({
        text: `${row.sizes.depth} × ${row.sizes.width}`,
        tone: toneOf(row),
      })),
      right('w/layer', 'width_per_layer', ({ widthPerLayer: { value } }) => ({
        text: value.toFixed(1),
        value,
      })),
      right('balance', 'off_balance', ({ offBalance: { value } }) => valueCell(value, times)),
      right('state', 'state_bytes', ({ state }) => bytesCell(state.value)),
      leftColumn('', 'state_bar', (row) => barCell(cache(row), mostCache)),
      hasRate && right('tokens/s', 'tokens_per_second', rateCell),
      hasRate && leftColumn('', 'rate_bar', (row) => barCell(rate(row), mostRate)),
    ]),
  ];
}

/** Evenly spaced rows, including both ends and the best. */
function thinnedOut(rows: readonly PlanRow[]): readonly PlanRow[] {
  const step = (rows.length - 1) / (MOST_IN_SPECTRUM - 1);
  if (step <= 1) return rows;
  const kept = new Set(
    Array.from({ length: MOST_IN_SPECTRUM }, (_, index) => Math.round(index * step)),
  );
  return rows.filter(({ place }, index) => kept.has(index) || place === 1);
}

function rateNotes(rows: readonly PlanRow[]): Block[] {
  const rated = rows.find(({ decode }) => decode !== null);
  if (!rated?.decode) return [];
  const { place, decode } = rated;
  return [
    noteOf(
      `tokens/s: an estimate. Row ${place}: lower bound ${rateText(decode.lower.value)}, ` +
        `upper bound ${rateText(decode.upper.value)} (roofline).`,
    ),
  ];
}

function explanationNotes({ rows, criterion, withoutPeak }: Plan): Block[] {
  const [best] = rows;
  if (!best) return [];
  return present([
    noteOf(
      `shape: layers × width. w/layer: width per layer. memory: weights, buffers and state, as in ${commandText('profile')}.`,
    ),
    noteOf(
      `balance: how many times deeper or shallower than the balanced depth, ${best.offBalance.formula} with ` +
        `balanced = ${best.balancedDepth.formula} (${best.offBalance.source}).`,
    ),
    ...rateNotes(rows),
    withoutPeak !== null && noteOf(sentence(withoutPeak)),
    criterion.measure !== 'offBalance' &&
      noteOf(`${criterion.name}: ${criterion.title} (${criterion.source}).`),
    noteOf(
      `${setting('save', 'best.yaml')} writes the first row as a config; with ${setting('row', '2')} it writes the second.`,
    ),
  ]);
}
