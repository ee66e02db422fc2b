/** Report of `minimind plan`: the best models of a budget, and the trade-off between depth and width. */
import type { Exact } from '../budget/figure.js';
import type { MeasureName } from '../plan/criteria.js';
import type { Plan, PlanRow } from '../plan/plan-models.js';
import type { SquareRootRule, VocabularyComparison } from '../plan/vocabulary.js';
import {
  formatBytes,
  formatCount,
  formatFlops,
  formatInteger,
  shortCount,
  significant,
} from '../text/units.js';
import { counted, joined, modelName, sentence } from '../text/words.js';
import {
  bar,
  bytesCell,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  percentCell,
  right,
} from './kit/cells.js';
import type { Block, Cell, Column, Report, TableBlock, Tone, Verdict } from './kit/report.js';

/** A plan, with the vocabularies and the rule that the user asked about. */
export interface PlanAnswer extends Plan {
  readonly vocabularies?: VocabularyComparison;
  readonly squareRootRule?: SquareRootRule;
}

/** @param next Command that writes the best model as a config, or shows it. */
export function planReport(
  plan: PlanAnswer,
  { next }: { readonly next?: string | undefined } = {},
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
  return {
    verdict: verdictOf(plan),
    blocks: [
      ...conditionNotes(plan),
      rowTable(plan),
      ...allocationNotes(plan),
      noteOf(legendOf(plan)),
      ...rule,
    ],
    details: [...searchNotes(plan), ...spectrumBlocks(plan), ...explanationNotes(plan)],
    next,
    data: flatTable(plan),
  };
}

/** A property of a model and its format. */
interface Shown {
  readonly column: Column;
  readonly cell: (row: PlanRow) => Cell;
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

function verdictOf({ family, rows, criterion, limits }: Plan): Verdict {
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
        `Inference: ${formatInteger(inference.batch)} × ${formatInteger(inference.context)} tokens, ${inference.dtype}${gpu === null ? '' : `, on ${gpu}`}${memory}.`,
    ),
    ...misfitNotes(plan),
  ];
}

/** How the models were chosen. */
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
    {
      kind: 'note',
      tone: 'bad',
      text:
        `${formatInteger(misfits)} of ${counted(shown.size, 'model')} shown do not fit into the ` +
        `${formatBytes(gpuMemory.value)} of ${gpu ?? 'the GPU'} (no tokens/s). ` +
        `--max-memory ${gpuMemory.value} removes them.`,
    },
  ];
}

// ── Vocabularies ─────────────────────────────────────────────────────────────────────────────────

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
    value === undefined ? dash : { text: formatFlops(Math.round(value)), value };
  return {
    kind: 'table',
    columns: [
      { ...leftColumn('tokenizer', 'tokenizer'), cut: true },
      right('vocab', 'vocabulary'),
      right('params', 'parameters'),
      right('emb.', 'embedding_share'),
      right('tok/char', 'tokens_per_character'),
      right('B/tok', 'bytes_per_token'),
      right('forward', 'forward_flops_per_character'),
      right('training', 'training_flops_per_character'),
    ],
    rows: rows.map((row) => {
      const { model, vocabulary, tokensPerCharacter, bytesPerToken } = row;
      const tone: Tone = row === best ? 'good' : 'plain';
      return [
        { text: tokenizerName(row.tokenizer), value: row.tokenizer, tone },
        { ...integerCell(vocabulary), tone },
        model ? { ...integerCell(model.parameters), text: shortCount(model.parameters) } : dash,
        model ? percentCell(model.embeddingShare) : dash,
        { text: tokensPerCharacter.toFixed(3), value: tokensPerCharacter },
        { text: bytesPerToken.toFixed(2), value: bytesPerToken },
        flops(model?.forwardFlopsPerCharacter),
        { ...flops(model?.trainingFlopsPerCharacter), tone },
      ];
    }),
  };
}

/** The rule of thumb, and why it is wrong. */
const ruleNote = ({ parameters, vocabulary, width, embedding, timesBudget }: SquareRootRule) =>
  noteOf(
    `√${formatInteger(parameters)} × 100 = ${formatInteger(vocabulary)} tokens is not a usable rule: one table of ` +
      `${formatInteger(vocabulary)} × ${formatInteger(width)} has ${shortCount(embedding)} parameters, ${significant(timesBudget)} times the budget.`,
  );

// ── The best ─────────────────────────────────────────────────────────────────────────────────────

const dash: Cell = { text: '–', value: '' };
/** Mark of the row outside the ranking, whose place is 0. */
const RULE_MARK = '*';
const sizeCell = (value: number | null): Cell =>
  value === null ? dash : { text: String(value), value };
const countCell = (value: Exact): Cell => ({ ...integerCell(value), text: formatCount(value) });
const ratioText = (value: number, digits: number) => value.toFixed(digits);
const times = (value: number) => (value < 10 ? `×${value.toFixed(2)}` : `×${value.toFixed(1)}`);

function headsText({ sizes: { heads, keyValueHeads } }: PlanRow): string {
  return keyValueHeads === null ? String(heads) : `${heads}/${keyValueHeads}`;
}

/** `1,234`, with a decimal below 100. */
const rateText = (value: number) =>
  value < 100 ? value.toFixed(1) : formatInteger(Math.round(value));

const rateCell = ({ decode }: PlanRow): Cell =>
  decode === null ? dash : { text: rateText(decode.expected.value), value: decode.expected.value };

const ROW_COLUMNS: readonly Shown[] = [
  {
    column: right('#', 'place'),
    cell: ({ place }) => (place === 0 ? { text: RULE_MARK } : sizeCell(place)),
  },
  { column: right('layers', 'layers'), cell: ({ sizes }) => sizeCell(sizes.depth) },
  { column: right('width', 'width'), cell: ({ sizes }) => sizeCell(sizes.width) },
  { column: right('heads/KV', 'heads'), cell: (row) => ({ text: headsText(row) }) },
  {
    column: right('FFN', 'feed_forward'),
    cell: ({ sizes }) => sizeCell(sizes.feedForward),
    isIn: ({ sizes }) => sizes.feedForward !== null,
  },
  {
    column: right('rank', 'rank'),
    cell: ({ sizes }) => sizeCell(sizes.rank),
    isIn: ({ sizes }) => sizes.rank !== null,
  },
  { column: right('params', 'parameters'), cell: ({ parameters }) => countCell(parameters.value) },
  { column: right('memory', 'memory_bytes'), cell: ({ memory }) => bytesCell(memory) },
  {
    column: right('tokens/s', 'tokens_per_second'),
    cell: rateCell,
    isIn: ({ decode, misfit }) => decode !== null || misfit !== null,
  },
  {
    column: right('balance', 'off_balance'),
    cell: ({ offBalance: { value } }) => ({ text: times(value), value }),
  },
];

/** Meaning of the columns that the table has. */
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

/** Additional columns for programs. */
const FLAT_COLUMNS: readonly Shown[] = [
  { column: right('', 'place'), cell: ({ place }) => sizeCell(place) },
  { column: right('', 'layers'), cell: ({ sizes }) => sizeCell(sizes.depth) },
  { column: right('', 'width'), cell: ({ sizes }) => sizeCell(sizes.width) },
  { column: right('', 'heads'), cell: ({ sizes }) => sizeCell(sizes.heads) },
  { column: right('', 'kv_heads'), cell: ({ sizes }) => sizeCell(sizes.keyValueHeads) },
  { column: right('', 'head_dim'), cell: ({ sizes }) => sizeCell(sizes.headDim) },
  { column: right('', 'feed_forward'), cell: ({ sizes }) => sizeCell(sizes.feedForward) },
  { column: right('', 'rank'), cell: ({ sizes }) => sizeCell(sizes.rank) },
  { column: right('', 'parameters'), cell: ({ parameters }) => integerCell(parameters.value) },
  { column: right('', 'body_parameters'), cell: ({ body }) => integerCell(body.value) },
  { column: right('', 'weights_bytes'), cell: ({ weights }) => bytesCell(weights) },
  { column: right('', 'kv_cache_bytes'), cell: ({ keyValueCache }) => bytesCell(keyValueCache) },
  { column: right('', 'memory_bytes'), cell: ({ memory }) => bytesCell(memory) },
  { column: right('', 'tokens_per_second'), cell: rateCell },
  {
    column: right('', 'width_per_layer'),
    cell: ({ widthPerLayer: { value } }) => ({ text: String(value), value }),
  },
  {
    column: right('', 'off_balance'),
    cell: ({ offBalance: { value } }) => ({ text: String(value), value }),
  },
];

function tableOf(shown: readonly Shown[], rows: readonly PlanRow[]): TableBlock {
  const columns = shown.filter(({ isIn }) => !isIn || rows.some(isIn));
  return {
    kind: 'table',
    columns: columns.map(({ column }) => column),
    rows: rows.map((row) => columns.map(({ cell }) => cell(row))),
  };
}

const flatTable = ({ rows }: Plan) => tableOf(FLAT_COLUMNS, rows);

const rowTable = ({ rows, allocation }: Plan) =>
  tableOf(ROW_COLUMNS, allocation ? [...rows, allocation.row] : rows);

/** The rule of shares, what it gives, and what the best has. */
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

// ── Deep and thin against shallow and wide ───────────────────────────────────────────────────────

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
  });
  const hasRate = mostRate > 0;
  return [
    headingBlock('From deep and thin to shallow and wide: the best model of each width'),
    {
      kind: 'table',
      columns: [
        right('#', 'place'),
        right('shape', 'shape'),
        right('w/layer', 'width_per_layer'),
        right('balance', 'off_balance'),
        right('state', 'state_bytes'),
        leftColumn('', 'state_bar'),
        ...(hasRate ? [right('tokens/s', 'tokens_per_second'), leftColumn('', 'rate_bar')] : []),
      ],
      rows: rows.map((row) => {
        const { place, sizes, widthPerLayer, offBalance, state } = row;
        const tone: Tone = place === 1 ? 'good' : 'plain';
        return [
          { ...sizeCell(place), tone },
          { text: `${sizes.depth} × ${sizes.width}`, tone },
          { text: ratioText(widthPerLayer.value, 1), value: widthPerLayer.value },
          { text: times(offBalance.value), value: offBalance.value },
          bytesCell(state),
          barCell(cache(row), mostCache),
          ...(hasRate ? [rateCell(row), barCell(rate(row), mostRate)] : []),
        ];
      }),
    },
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

// ── Notes ────────────────────────────────────────────────────────────────────────────────────────

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
  return [
    noteOf(
      'shape: layers × width. w/layer: width per layer. memory: weights, buffers and state, as in minimind profile.',
    ),
    noteOf(
      `balance: how many times deeper or shallower than the balanced depth, ${best.offBalance.formula} with ` +
        `balanced = ${best.balancedDepth.formula} (${best.offBalance.source}).`,
    ),
    ...rateNotes(rows),
    ...(withoutPeak === null ? [] : [noteOf(sentence(withoutPeak))]),
    ...(criterion.measure === 'offBalance'
      ? []
      : [noteOf(`${criterion.name}: ${criterion.title} (${criterion.source}).`)]),
    noteOf('--save best.yaml writes the first row as a config; with --row 2 it writes the second.'),
  ];
}
