import type { SrteComparison, SrteRow } from '../budget/srte.js';
import type { Cell, Report, Tone } from './report.js';
import { countUnit, formatBytes, formatCount, formatInteger, formatShare } from './units.js';

const CURRENT_MARK = '●';

/** The comparison as the published report prints it: billions and per cent. */
export function srteReport(comparison: SrteComparison & { readonly file: string }): Report {
  const { file, rows, notes, dtype } = comparison;
  const unit = countUnit(Math.max(...rows.map(({ parameters }) => parameters)));
  const count = (value: number): Cell => ({ text: formatCount(value, unit), value });
  const share = (part: number, whole: number): Cell => ({
    text: formatShare(part, whole),
    value: part / whole,
  });
  const baseline = rows[0]?.parameters ?? 0;
  const cells = (row: SrteRow): Cell[] => [
    {
      text: `${row.current ? CURRENT_MARK : ' '} ${row.label}`,
      value: row.id,
      tone: row.current ? 'strong' : 'plain',
    },
    { ...count(row.parameters), tone: 'strong' },
    count(row.srteParameters),
    share(row.srteParameters, row.parameters),
    ...(row.id === 'not-shared'
      ? [
          { text: '–', value: 0 },
          { text: '–', value: 0 },
        ]
      : [
          { ...count(row.savedParameters), tone: tone(row.savedParameters) },
          { ...share(row.savedParameters, baseline), tone: tone(row.savedParameters) },
        ]),
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

const tone = (saved: number): Tone => (saved >= 0 ? 'good' : 'bad');

function notesOf(rows: readonly SrteRow[], notes: readonly string[], dtype: string) {
  const first = rows[0];
  const has = (kind: SrteRow['kind']) => rows.some((row) => row.kind === kind);
  const recommended = rows.find(({ id }) => id === 'recommended');
  return [
    `${CURRENT_MARK} as in the file. Saved against not shared: ${formatInteger(first?.parameters ?? 0)} parameters. ` +
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
