/** Report of `minimind attention`: methods by context, ratios to plain attention, published ratios. */

import { setting } from '../base/text/setting.js';
import {
  dtypeWord,
  formatBytes,
  formatInteger,
  percentText,
  significant,
} from '../base/text/units.js';
import { counted, joined, modelName } from '../base/text/words.js';
import { groupBy } from '../base/values.js';
import type { AttentionAnswer, AttentionSpeed } from '../estimate/fit/training/attention-time.js';
import type {
  AttentionRow,
  ComparedFigure,
  FoundRatio,
  RatioMatch,
} from '../model/budget/attention/attention-result.js';
import type { NormOperations } from '../model/budget/norm-operations.js';
import type { Block, Cell, Fact, Report, TableBlock, Verdict } from './kit/report.js';
import {
  bytesCell,
  CURRENT_MARK,
  flopsCell,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  right,
  tableOf,
  valueCell,
} from './kit/report.js';
import { longTextNotes, longTextTable, longTextVerdict } from './long-texts.js';
import { explanationBlocks } from './profile/explanation.js';

const FIGURES = {
  scores: { title: 'scores', unit: 'bytes', cell: bytesCell },
  traffic: { title: 'HBM traffic', unit: 'bytes', cell: bytesCell },
  flops: { title: 'FLOPs', unit: 'flop', cell: flopsCell },
  cache: { title: 'KV cache', unit: 'bytes', cell: bytesCell },
} as const satisfies Record<
  ComparedFigure,
  { title: string; unit: string; cell: (value: number | bigint) => Cell }
>;

const NAMES = Object.keys(FIGURES) as ComparedFigure[];

type Context = AttentionAnswer['contexts'][number];

/** @param explain Whether to derive each figure. */
export function attentionReport(result: AttentionAnswer, explain: boolean): Report {
  const { contexts, published, longTexts } = result;
  const longest = contexts.at(-1);
  return {
    verdict: longTexts
      ? longTextVerdict(result.file, longTexts)
      : longest && attentionVerdict(result, longest),
    blocks: [
      noteOf(attentionSettingText(result)),
      ...(longTexts ? [longTextTable(longTexts)] : methodBlocks(contexts, result.speeds ?? [])),
      ...(published ? publishedBlocks(published, contexts.length) : []),
      ...(longTexts ? [] : [noteOf(normText(result.norms))]),
      ...(explain ? explanationBlocks(sectionsOf(result)) : []),
    ],
    details: [
      ...(longTexts ? longTextNotes(longTexts) : []),
      ...contexts.flatMap((each) => [
        headingBlock(contextText(each)),
        methodTable(each, 'values'),
        ...(each === longest ? [] : [methodTable(each, 'ratios')]),
      ]),
      ...EXPLANATIONS.map(noteOf),
    ],
    more: explain ? [] : ['explain'],
    data: longTexts ? longTextTable(longTexts) : attentionTable(result),
  };
}

/** Methods at the longest context, and ratios by context. */
function methodBlocks(
  contexts: AttentionAnswer['contexts'],
  speeds: readonly AttentionSpeed[],
): Block[] {
  const longest = contexts.at(-1);
  return [...(longest ? [methodTable(longest, 'both')] : []), ...byContext(contexts, speeds)];
}

const contextText = ({ context }: Context) => `${formatInteger(context)} tokens`;

function attentionVerdict({ file }: AttentionAnswer, longest: Context): Verdict {
  const [plain, flash] = longest.rows;
  if (!plain || !flash) return { text: modelName(file) };
  return {
    text:
      `${modelName(file)} at ${contextText(longest)}: plain attention stores ${formatBytes(plain.scores.value)} of scores ` +
      `per layer and moves ${formatBytes(plain.traffic.value)}; flash moves ${formatBytes(flash.traffic.value)}`,
  };
}

function attentionSettingText({
  setting: asked,
  layers,
  heads,
  keyHeads,
  headDim,
  contexts,
  gpu,
}: AttentionAnswer) {
  const [flash] = contexts.at(-1)?.rows.filter(({ tile }) => tile) ?? [];
  const tile = flash?.tile ? `, tiles of ${flash.tile.rows} × ${flash.tile.columns}` : '';
  const before = contexts.slice(0, -1).map(({ context }) => context);
  const others = before.map((context) => formatInteger(context));
  return (
    `${counted(layers, 'layer')}, ${counted(heads, 'head')} of ${headDim}, ${counted(keyHeads, 'key head')}; ` +
    `one sequence in ${dtypeWord(asked.dtype)}${tile} (${gpu ?? formatBytes(asked.onChip.bytes)}).` +
    (others.length > 0
      ? ` ${joined(others)} ${before.at(-1) === 1 ? 'token' : 'tokens'}: ${setting('details')}.`
      : '')
  );
}

const normText = ({ layerNorm, rmsNorm, width, saved }: NormOperations) =>
  `RMSNorm of ${formatInteger(width)} values: ${formatInteger(rmsNorm.operations.value)} operations, ` +
  `${percentText(saved)} fewer than LayerNorm (${formatInteger(layerNorm.operations.value)}).`;

const EXPLANATIONS = [
  `${CURRENT_MARK} the model. ÷: plain attention divided by the row. Projections are the same for all, and left out.`,
  'scores: memory of one layer; with tiles, the maximum and sum of each query. HBM traffic, FLOPs, KV cache: all layers.',
  'Scores count as computed, masked ones included. A causal kernel that skips masked tiles does half the work of flash.',
  'window and hierarchical store a band of scores; the mask alone, without such a kernel, saves nothing but cache.',
  'hierarchical: heads with half a window back, and global heads. block-sparse: the first block, the one before, its own.',
  'time: of a forward pass; the first ratio is with a fused softmax, the second with one kernel per operation.',
  'reach: tokens that the last one can read from through all attention layers.',
];

/** `÷ 1`, `÷ 5.20`, `÷ 1,024`. */
const ratioText = (ratio: number) => `÷ ${ratioNumber(ratio)}`;

function ratioNumber(ratio: number): string {
  if (ratio === Number.POSITIVE_INFINITY) return '∞';
  if (Math.abs(ratio - 1) < 5e-4) return '1';
  return ratio >= 1000 ? formatInteger(Math.round(ratio)) : significant(ratio);
}

const ratioCell = (ratio: number): Cell => ({
  text: ratioText(ratio),
  value: ratio,
  tone: ratio > 1.0005 ? 'good' : ratio < 0.9995 ? 'bad' : 'dim',
});

/** Values with their ratios; where that is too wide, ratios below the values of plain attention. */
function methodTable({ rows }: Context, form: 'both' | 'values' | 'ratios'): TableBlock {
  const cellOf = (row: AttentionRow, name: ComparedFigure, at: number): Cell => {
    const value = FIGURES[name].cell(row[name].value);
    if (form === 'values' || at === 0) return value;
    const ratio = ratioCell(row.ratios[name]);
    return form === 'ratios' ? ratio : { ...ratio, text: `${value.text} ${ratio.text}` };
  };
  const table = tableOf(rows, [
    leftColumn('  method', 'method', ({ isModel, name }) => ({
      text: `${isModel ? CURRENT_MARK : ' '} ${name}`,
      tone: isModel ? 'strong' : 'plain',
    })),
    ...NAMES.map((name) =>
      right(FIGURES[name].title, name, (row: AttentionRow, at) => cellOf(row, name, at)),
    ),
    right('reach', 'reach', ({ reach }) => integerCell(reach.value)),
  ]);
  return form === 'both'
    ? { ...table, narrower: methodTable({ context: 0, rows }, 'ratios') }
    : table;
}

/** A row for each context and method, for programs. */
function attentionTable({ contexts }: AttentionAnswer): TableBlock {
  const all = contexts.flatMap(({ context, rows }) => rows.map((row) => ({ ...row, context })));
  return tableOf(all, [
    right('context', 'context_tokens', ({ context }) => integerCell(context)),
    leftColumn('method', 'method', ({ method }) => method),
    leftColumn('name', 'name', ({ name }) => name),
    leftColumn('model', 'is_model', ({ isModel }) => valueCell(isModel)),
    ...NAMES.map((name) =>
      right(FIGURES[name].title, `${name}_${FIGURES[name].unit}`, (row: AttentionRow) =>
        FIGURES[name].cell(row[name].value),
      ),
    ),
    ...NAMES.map((name) =>
      right(`÷ ${FIGURES[name].title}`, `${name}_ratio`, ({ ratios }: AttentionRow) =>
        ratioCell(ratios[name]),
      ),
    ),
    right('reach', 'reach_tokens', ({ reach }) => integerCell(reach.value)),
  ]);
}

/** Figures whose ratio changes with the context. */
const GROWING = [
  ['flash', 'traffic'],
  ['window', 'scores'],
  ['hierarchical', 'scores'],
] as const;

/** `flash   HBM traffic ÷ 4.43 at 512, 5.63 at 2,048, 6.32 at 8,192`. */
function byContext(
  contexts: AttentionAnswer['contexts'],
  speeds: readonly AttentionSpeed[],
): Block[] {
  // The table has the ratios of a single context.
  const growing = contexts.length > 1 ? GROWING : [];
  const ratios = growing.map(([method, figure]) => {
    const texts = contexts.flatMap(({ context, rows }) => {
      const row = rows.find((each) => each.method === method);
      return row ? [`${ratioNumber(row.ratios[figure])} at ${formatInteger(context)}`] : [];
    });
    return { name: method, text: `${FIGURES[figure].title} ÷ ${texts.join(' · ')}` };
  });
  const facts = [...speedFacts(speeds), ...ratios];
  return facts.length === 0 ? [] : [{ kind: 'facts', facts }];
}

/** `time ÷ 1.02–1.12 at 512 · 1.11–1.51 at 2,048 (estimate)`, of a forward pass. */
const speedFacts = (speeds: readonly AttentionSpeed[]): Fact[] =>
  speeds.length === 0
    ? []
    : [
        {
          name: 'flash',
          text: `time ÷ ${speeds
            .map(
              ({ context, ratios: [fused, eager] }) =>
                `${significant(fused)}–${significant(eager)} at ${formatInteger(context)}`,
            )
            .join(' · ')} (estimate)`,
        },
      ];

const MOST_MATCHES = 2;

const ratioSubject = ({ figure, name, context }: FoundRatio) =>
  `${FIGURES[figure].title} of ${name} at ${formatInteger(context)} tokens`;

/** A text for each row and figure, with its contexts. */
function matchTexts(matches: readonly FoundRatio[], contexts: number): string[] {
  const groups = groupBy(matches, ({ figure, name }) => `${FIGURES[figure].title} of ${name}`);
  return [...groups].map(([text, found]) =>
    found.length === contexts
      ? text
      : `${text} at ${joined(found.map(({ context }) => formatInteger(context)))} tokens`,
  );
}

const publishedBlocks = (published: readonly RatioMatch[], contexts: number): Block[] => [
  {
    kind: 'facts',
    facts: published.map(({ published: value, matches, nearest }) => {
      const texts = matchTexts(matches, contexts);
      const others = texts.length - MOST_MATCHES;
      return {
        name: `${value} ×`,
        text:
          matches.length > 0
            ? texts.slice(0, MOST_MATCHES).join('; ') +
              (others > 0 ? `; ${others} more: ${setting('json')}` : '')
            : `no such ratio${nearest ? `; nearest ${significant(nearest.ratio)} ×: ${ratioSubject(nearest)}` : ''}`,
        tone: matches.length > 0 ? 'good' : 'bad',
      };
    }),
  },
];

/** Figures by section, to explain. */
const sectionsOf = ({ contexts, norms, longTexts }: AttentionAnswer): Record<string, unknown> => ({
  ...(longTexts && { 'long texts': longTexts.rows }),
  ...Object.fromEntries(contexts.map((each) => [contextText(each), each.rows])),
  norms,
});
