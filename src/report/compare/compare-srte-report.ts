import { setting } from '../../base/text/setting.js';
import {
  countUnit,
  formatBytes,
  formatCount,
  formatInteger,
  formatShare,
  percentText,
  shortCount,
  significant,
} from '../../base/text/units.js';
import { present } from '../../base/values.js';
import type { SrteComparison, SrteRow } from '../../model/budget/srte-comparison.js';
import type { BarsPicture } from '../kit/pictures.js';
import type { Cell, Fact, Report, Verdict } from '../kit/report.js';
import { CURRENT_MARK, leftColumn, NOTHING, noteOf, right, valueCell } from '../kit/report.js';

/** Multiple of the model from which a loss is unreadable as a percentage. */
const LARGE_LOSS = 10;

/** The comparison in the format of the published report: billions and per cent. */
export function srteReport(comparison: SrteComparison): Report {
  const { rows, notes, dtype } = comparison;
  // Presets can be far larger than the file.
  const own = rows.filter(({ kind }) => kind !== 'preset');
  const largest = Math.max(...own.map(({ parameters }) => parameters));
  // Values below a million are shown in full.
  const unit = largest < 1e6 ? '' : countUnit(largest);
  const most = { '': 1e6, K: 1e6, M: 1e9, B: Number.POSITIVE_INFINITY }[unit];
  const count = (value: number): Cell => ({
    text: formatCount(value, Math.abs(value) >= most ? undefined : unit),
    value,
  });
  const share = (part: number, whole: number): Cell => ({
    text: part < -LARGE_LOSS * whole ? '–' : percentText(part / whole, 1),
    value: part / whole,
  });
  const baseline = rows.find(({ id }) => id === 'not-shared')?.parameters ?? 0;
  const savedCells = ({ id, savedParameters: saved }: SrteRow): Cell[] => {
    if (saved === null) return [NOTHING, NOTHING];
    // The row of the baseline.
    if (id === 'not-shared')
      return [
        { ...NOTHING, value: 0 },
        { ...NOTHING, value: 0 },
      ];
    const tone = saved >= 0 ? 'good' : 'bad';
    return [
      { ...count(saved), tone },
      { ...share(saved, baseline), tone },
    ];
  };
  const cells = (row: SrteRow): Cell[] => [
    {
      text: `${row.current ? CURRENT_MARK : ' '} ${row.label}`,
      value: row.id,
      tone: row.current ? 'strong' : 'plain',
    },
    { ...count(row.parameters), tone: 'strong' },
    count(row.srteParameters),
    share(row.srteParameters, row.parameters),
    ...savedCells(row),
    valueCell(row.bytes, formatBytes),
  ];
  return {
    verdict: srteVerdict(rows),
    blocks: [
      { kind: 'facts', facts: [...yamlFacts(rows), ...mostSavedFacts(rows), ...ratioFacts(rows)] },
      {
        kind: 'table',
        columns: [
          leftColumn('  strategy', 'strategy'),
          right('parameters', 'parameters'),
          right('SRTE', 'srte_parameters'),
          right('SRTE %', 'srte_share'),
          right('saved', 'saved_parameters'),
          right('saved %', 'saved_share'),
          { title: dtype, key: `bytes_${dtype}`, align: 'right' },
        ],
        rows: rows.map(cells),
      },
      ...srteNotes(rows, notes),
    ],
    pictures: () => [parameterBars(own)],
  };
}

/** Parameters of each setting of the SRTE. */
const parameterBars = (rows: readonly SrteRow[]): BarsPicture => ({
  kind: 'bars',
  title: 'Parameters by setting of the SRTE',
  unit: 'count',
  bars: rows.map(({ label, parameters, current }) => ({
    label,
    value: parameters,
    tone: current ? 'hue2' : 'hue1',
  })),
  levels: [],
});

/** Compares the file's model with a shared low-rank table, or with the unshared model when it is smaller already. */
function srteVerdict(rows: readonly SrteRow[]): Verdict {
  const own = rows.find(({ current }) => current);
  const unshared = rows.find(({ id }) => id === 'not-shared');
  const lowRank = lowRankOf(rows);
  if (own && own.id === unshared?.id && lowRank && lowRank.parameters < own.parameters) {
    return {
      text: `One shared table of rank ${lowRank.settings.srte_factorized_rank} saves ${savingText(own, lowRank)}`,
    };
  }
  if (own && unshared && own.id !== unshared.id) {
    const saves = own.parameters <= unshared.parameters;
    return {
      text: saves
        ? `This setting saves ${savingText(unshared, own)} against one table per layer`
        : `This model has ${shortCount(own.parameters)} parameters, one table per layer ${shortCount(unshared.parameters)}`,
    };
  }
  const smallest = smallestOf(rows);
  return {
    text: smallest
      ? `Smallest: ${smallest.label}, ${shortCount(smallest.parameters)} parameters`
      : '',
  };
}

/** `8.58B parameters (38.8%): 22.1B → 13.6B`. */
const savingText = (from: SrteRow, to: SrteRow) =>
  `${shortCount(from.parameters - to.parameters)} parameters ` +
  `(${formatShare(from.parameters - to.parameters, from.parameters)}): ` +
  `${shortCount(from.parameters)} → ${shortCount(to.parameters)}`;

/** The row with the fewest parameters, the first of equal ones. */
const smallestOf = (rows: readonly SrteRow[]) =>
  rows.reduce<SrteRow | undefined>(
    (least, row) => (least && least.parameters <= row.parameters ? least : row),
    undefined,
  );

const lowRanksOf = (rows: readonly SrteRow[]) =>
  rows.filter(({ id }) => id.startsWith('shared-rank-'));

/** The shared low-rank table that saves most; it changes no other setting of the file. */
const lowRankOf = (rows: readonly SrteRow[]) => smallestOf(lowRanksOf(rows));

/** The strategy that saves most and its other changes, if it is not the low-rank table. */
function mostSavedFacts(rows: readonly SrteRow[]): Fact[] {
  const unshared = rows.find(({ id }) => id === 'not-shared');
  const most = smallestOf(rows.filter(({ kind }) => kind === 'strategy'));
  const lowRank = lowRankOf(rows);
  if (!unshared || !most || !lowRank || most.id === lowRank.id) return [];
  const { max_position_embeddings: positions, tie_word_embeddings: tied } = most.settings;
  const others = present([
    positions !== unshared.settings.max_position_embeddings &&
      `with ${formatInteger(positions)} positions`,
    tied !== unshared.settings.tie_word_embeddings && `with ${tied ? 'a tied' : 'an untied'} head`,
    most.srteParameters === 0 && 'without a learned table',
  ]);
  const saved = unshared.parameters - most.parameters;
  const share = formatShare(saved, unshared.parameters);
  return [
    {
      name: 'saves most',
      text: [`${most.label}, ${shortCount(saved)} (${share})`, ...others].join(', '),
    },
  ];
}

/** The settings of the shared low-rank table as YAML, unless the file is smaller. */
function yamlFacts(rows: readonly SrteRow[]): Fact[] {
  const lowRank = lowRankOf(rows);
  const own = rows.find(({ current }) => current);
  if (!lowRank || !own || own.parameters <= lowRank.parameters) return [];
  const { srte_factorized_rank: rank } = lowRank.settings;
  return [
    {
      name: 'YAML',
      text: `model: {srte_share_across_layers: true, srte_factorized_rank: ${rank}}`,
    },
  ];
}

/** Savings and ratios of the strategies that publications compare. */
function ratioFacts(rows: readonly SrteRow[]): Fact[] {
  const named = ['shared', 'recommended', lowRankOf(rows)?.id, lowRanksOf(rows)[0]?.id];
  const shown = rows.filter(
    ({ id, kind, current }) =>
      kind === 'strategy' && id !== 'not-shared' && (current || named.includes(id)),
  );
  const listed = (name: string, textOf: (row: SrteRow) => string | undefined): Fact[] => {
    const texts = shown.flatMap((row) => {
      const text = textOf(row);
      return text === undefined ? [] : [`${text} ${row.label.replace(/^shared, /, '')}`];
    });
    return texts.length > 0 ? [{ name, text: texts.join(' · ') }] : [];
  };
  return [
    ...listed('SRTE saved', ({ savedSrteShare: saved }) =>
      saved === null || saved < 0 ? undefined : percentText(saved),
    ),
    ...listed('ratio', ({ ratio }) => (ratio === null ? undefined : `${significant(ratio)} ×`)),
    // The ratio depends on the rows: a shorter table is smaller even without a rank.
    ...listed('full table', ({ tableRatio: ratio, settings }) =>
      ratio === null
        ? undefined
        : `${significant(ratio)} × at ${formatInteger(settings.max_position_embeddings)} rows,`,
    ),
  ];
}

function srteNotes(rows: readonly SrteRow[], notes: readonly string[]) {
  const has = (kind: SrteRow['kind']) => rows.some((row) => row.kind === kind);
  const recommended = rows.find(({ id }) => id === 'recommended');
  return present([
    `${CURRENT_MARK} as in the file. Savings and ratios are against the model that is not shared.`,
    rows.some(({ tableRatio }) => tableRatio !== null) &&
      'Full table: its parameters over those of the low rank, with equally many rows.',
    lowRanksOf(rows).length > 1 &&
      `Proposed is the rank that saves most; inspect ${setting('srte')} shows what a rank loses.`,
    recommended &&
      `Recommended: ${formatInteger(recommended.settings.max_position_embeddings)} positions, shared, ` +
        `rank ${recommended.settings.srte_factorized_rank}, tied head.`,
    has('lever') && 'Rows for positions, vocabulary and tying change that setting alone.',
    has('preset') && 'Presets are whole configs. Aggressive is published as "about 7B".',
    ...notes,
  ]).map(noteOf);
}
