import type { SrteComparison, SrteRow } from '../../budget/srte-comparison.js';
import {
  countUnit,
  formatBytes,
  formatCount,
  formatInteger,
  formatShare,
} from '../../text/units.js';
import { CURRENT_MARK } from '../kit/cells.js';
import type { Cell, Report } from '../kit/report.js';

const NOTHING: Cell = { text: '–', value: '' };

/** The comparison in the format of the published report: billions and per cent. */
export function srteReport(comparison: SrteComparison & { readonly file: string }): Report {
  const { file, rows, notes, dtype } = comparison;
  const largest = Math.max(...rows.map(({ parameters }) => parameters));
  // Values below a million are shown in full.
  const unit = largest < 1e6 ? '' : countUnit(largest);
  const count = (value: number): Cell => ({ text: formatCount(value, unit), value });
  const share = (part: number, whole: number): Cell => ({
    text: formatShare(part, whole),
    value: part / whole,
  });
  const baseline = rows.find(({ id }) => id === 'not-shared')?.parameters ?? 0;
  const savedCells = ({ id, savedParameters: saved }: SrteRow): Cell[] => {
    if (saved === null) return [NOTHING, NOTHING];
    // The baseline row.
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
    { text: formatBytes(row.bytes), value: row.bytes },
  ];
  return {
    blocks: [
      { kind: 'heading', text: `SRTE strategies for ${file}` },
      {
        kind: 'table',
        columns: [
          { title: '  strategy', key: 'strategy' },
          { title: 'total', key: 'parameters', align: 'right' },
          { title: 'SRTE', key: 'srte_parameters', align: 'right' },
          { title: 'share', key: 'srte_share', align: 'right' },
          { title: 'saved', key: 'saved_parameters', align: 'right' },
          { title: 'share', key: 'saved_share', align: 'right' },
          { title: dtype, key: `bytes_${dtype}`, align: 'right' },
        ],
        rows: rows.map(cells),
      },
      ...notesOf(rows, notes, dtype),
    ],
  };
}

function notesOf(rows: readonly SrteRow[], notes: readonly string[], dtype: string) {
  const unshared = rows.find(({ id }) => id === 'not-shared');
  const has = (kind: SrteRow['kind']) => rows.some((row) => row.kind === kind);
  const recommended = rows.find(({ id }) => id === 'recommended');
  return [
    `${CURRENT_MARK} as in the file. ` +
      (unshared
        ? `Saved against not shared: ${formatInteger(unshared.parameters)} parameters. `
        : '') +
      `Bytes of the parameters in ${dtype}, buffers not counted.`,
    ...(recommended
      ? [
          `Recommended: ${formatInteger(recommended.settings.max_position_embeddings)} positions, shared, ` +
            `rank ${recommended.settings.srte_factorized_rank}, head tied to the embedding.`,
        ]
      : []),
    ...(has('lever')
      ? ['Rows for positions, vocabulary and tying change that alone; the rest is as in the file.']
      : []),
    ...(has('preset')
      ? [
          'Presets are whole configurations of their own; their authors call aggressive "about 7B", which it is not.',
        ]
      : []),
    ...notes,
  ].map((text) => ({ kind: 'note' as const, text, tone: 'dim' as const }));
}
