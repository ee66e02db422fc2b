/**
 * Ways to read a text that is longer than the training: what each computes, keeps and sees. Overlapping windows and chunks
 * run the whole model several times; a global model reads one vector per chunk; a sparse mask (Longformer, arXiv
 * 2004.05150) has a window and some tokens that see and are seen by all.
 */

import { usageError } from '../../../base/errors.js';
import { DTYPES, type Dtype } from '../../../base/tensor/dtype.js';
import { setting } from '../../../base/text/setting.js';
import { formatInteger } from '../../../base/text/units.js';
import { counted } from '../../../base/text/words.js';
import type { Layer } from '../../architecture/layer.js';
import type { Scores } from '../../operations/primitive.js';
import { add, ceildiv, type Expression, inputNamed, mul, v } from '../expression.js';
import { type Figure, figure, sumFigure } from '../figure.js';
import { forwardFlopsOf, operationsIn } from '../flops.js';
import { stateOf } from '../state.js';

export type LongTextStrategy =
  | 'full'
  | 'truncation'
  | 'chunks'
  | 'windows'
  | 'hierarchical'
  | 'sparse';

export interface LongTextSetting {
  /** Tokens of the text. */
  readonly context: number;
  /** Tokens that the model reads at once. */
  readonly chunk: number;
  /** Share of a window that the next one reads again. */
  readonly overlap: number;
  /** Tokens that a token sees in the sparse mask; default: half a chunk. */
  readonly window?: number | undefined;
  readonly dtype: Dtype;
}

export interface LongTextRow {
  /** Way of reading the text. */
  readonly strategy: LongTextStrategy;
  /** `windows of 512, 50% overlap`. */
  readonly name: string;
  /** Times that the model runs. @integer @minimum 1 */
  readonly passes: number;
  /** Tokens computed in all passes. @integer @minimum 1 */
  readonly tokens: number;
  /** One forward pass over all of them, with the global model. */
  readonly flops: Figure;
  /** Scores of the largest layer in one pass, where they are stored. */
  readonly scores: Figure;
  /** Keys, values and states of one pass. */
  readonly cache: Figure;
  /** Share of the text that is read. */
  readonly share: number;
  /** Farthest tokens that some computation relates, both included. @integer @minimum 1 */
  readonly reach: number;
  /** This row divided by full attention. */
  readonly ofFull: {
    /** FLOPs of the attention ÷ those of the whole text at once. */
    readonly flops: number;
    /** Bytes of the scores ÷ those of the whole text at once. */
    readonly scores: number;
    /** Bytes of the KV cache ÷ those of the whole text at once. */
    readonly cache: number;
  };
}

export interface LongTexts {
  /** Tokens of the text. @integer @minimum 1 */
  readonly context: number;
  /** Tokens that the model reads at once. @integer @minimum 1 */
  readonly chunk: number;
  /** Share of a window that the next one reads again. */
  readonly overlap: number;
  /** Tokens between the beginnings of two windows. @integer @minimum 1 */
  readonly stride: number;
  /** Tokens that a token sees in the sparse mask. @integer @minimum 1 */
  readonly window: number;
  /** Tokens that see everything in the sparse mask, one for each chunk. @integer @minimum 1 */
  readonly globalTokens: number;
  /** Ways of reading the text. */
  readonly rows: readonly LongTextRow[];
}

/** Passes of one length. */
interface Pass {
  readonly count: number;
  readonly tokens: number;
}

/**
 * Figures of each strategy for one text.
 * @throws UserError for a text that one chunk holds, and an overlap that leaves no step.
 */
export function longTextsOf(model: Layer, setting: LongTextSetting): LongTexts {
  const { context, chunk, overlap } = setting;
  refuseShort(setting);
  const stride = Math.max(1, Math.round(chunk * (1 - overlap)));
  const window = Math.min(context, setting.window ?? Math.max(1, Math.floor(chunk / 2)));
  const chunks = Math.ceil(context / chunk);
  const share = `${formatInteger(Math.round(overlap * 100))}%`;
  const sized = formatInteger(chunk);
  const whole = [{ count: 1, tokens: context }];
  const plain = (
    strategy: LongTextStrategy,
    name: string,
    passes: readonly Pass[],
    reach: number,
  ) => ({
    ...{ strategy, name, reach },
    ...longTextFigures(model, passes, name, setting),
  });
  const rows: Omit<LongTextRow, 'ofFull'>[] = [
    plain('full', 'full attention', whole, context),
    plain('truncation', `first ${counted(chunk, 'token')}`, [{ count: 1, tokens: chunk }], chunk),
    plain('chunks', `chunks of ${sized}`, windowsOf(context, chunk, chunk), chunk),
    plain('windows', `windows, ${share} overlap`, windowsOf(context, chunk, stride), chunk),
    hierarchical(
      plain('hierarchical', 'chunks + global model', windowsOf(context, chunk, chunk), context),
      model,
      chunks,
    ),
    sparse(
      plain(
        'sparse',
        `window ${formatInteger(window)} + ${formatInteger(chunks)} global`,
        whole,
        context,
      ),
      model,
      setting,
      window,
      chunks,
    ),
  ];
  const [full] = rows;
  const of = (row: Omit<LongTextRow, 'ofFull'>, name: 'flops' | 'scores' | 'cache') =>
    Number(row[name].value) / Number(full?.[name].value ?? 1);
  return {
    ...{ context, chunk, overlap, stride, window, globalTokens: chunks },
    rows: rows.map((row) => ({
      ...row,
      ofFull: { flops: of(row, 'flops'), scores: of(row, 'scores'), cache: of(row, 'cache') },
    })),
  };
}

function refuseShort({ context, chunk, overlap }: LongTextSetting): void {
  if (context <= chunk) {
    throw usageError(
      `${setting('chunk')}: expected fewer tokens than the text of ${formatInteger(context)}, found ${formatInteger(chunk)}`,
      `write a longer text, as in ${setting('context', 16 * chunk)}`,
    );
  }
  if (overlap < 1) return;
  throw usageError(
    `${setting('overlap')}: expected less than the whole window, found 100%`,
    `write it as in ${setting('overlap', '50%')}`,
  );
}

/** Windows from the first token to the last one, the last of them shorter where the text ends. */
function windowsOf(context: number, chunk: number, stride: number): Pass[] {
  const count = 1 + Math.ceil((context - chunk) / stride);
  const last = context - (count - 1) * stride;
  return last === chunk
    ? [{ count, tokens: chunk }]
    : [
        { count: count - 1, tokens: chunk },
        { count: 1, tokens: last },
      ];
}

const scoresIn = (model: Layer): readonly Scores[] =>
  operationsIn(model).filter((each): each is Scores => each.kind === 'scores');

/** All scores of a model without windows, masked ones included. */
function longTextFigures(
  model: Layer,
  passes: readonly Pass[],
  name: string,
  { context, dtype }: LongTextSetting,
): Omit<LongTextRow, 'strategy' | 'name' | 'reach' | 'ofFull'> {
  const most = Math.max(...passes.map(({ tokens }) => tokens));
  const computed = passes.reduce((sum, { count, tokens }) => sum + count * tokens, 0);
  const parts = passes.map(({ count, tokens }) => {
    const forward = forwardFlopsOf(model, { batch: count, context: tokens, causal: false });
    return [`passes_of_${tokens}`, forward.total] as const;
  });
  return {
    passes: passes.reduce((sum, { count }) => sum + count, 0),
    tokens: computed,
    flops: sumFigure(`${name}: forward passes`, 'FLOP', Object.fromEntries(parts), FLOPS_SOURCE),
    scores: scoresFigure(model, name, dtype, mul(v({ tokens: most }), v({ keys: most }))),
    cache: stateOf(model, { batch: 1, context: most, dtype }).total.reworded({
      label: `${name}: keys, values and states of one pass`,
    }),
    share: Math.min(1, computed / context),
  };
}

const FLOPS_SOURCE = 'projections, scores and head of all passes, masked scores included';

const scoresFigure = (model: Layer, name: string, dtype: Dtype, pairs: Expression): Figure => {
  const heads = Math.max(...scoresIn(model).map((each) => each.heads));
  return figure({
    label: `${name}: scores of one layer in one pass`,
    unit: 'bytes',
    formula: ceildiv(mul(v({ heads }), pairs, v({ bits: DTYPES[dtype].bits })), 8),
    source: 'scores of each head, with masked ones; a kernel in tiles stores none',
  });
};

/** Adds the layers of the model over one vector per chunk, without embedding and head. */
function hierarchical<Row extends Omit<LongTextRow, 'ofFull'>>(
  row: Row,
  model: Layer,
  chunks: number,
): Row {
  const layers = operationsIn(model).filter(({ component }) => !ENDS.has(component));
  const { total } = forwardFlopsOf(layers, { batch: 1, context: chunks, causal: false });
  return {
    ...row,
    passes: row.passes + 1,
    tokens: row.tokens + chunks,
    flops: sumFigure(
      row.flops.label,
      'FLOP',
      { chunks: row.flops, global_model: total },
      `the chunks, and the layers of the model over ${formatInteger(chunks)} means of chunks; a smaller global model costs less`,
    ),
  };
}

const ENDS: ReadonlySet<string> = new Set(['embedding', 'head', 'positions']);

/** Replaces the scores: each token sees a window and the global tokens, which see all. */
function sparse<Row extends Omit<LongTextRow, 'ofFull'>>(
  row: Row,
  model: Layer,
  { context, dtype }: LongTextSetting,
  window: number,
  globals: number,
): Row {
  const all = scoresIn(model);
  const others = operationsIn(model).filter(({ kind }) => kind !== 'scores');
  const { total } = forwardFlopsOf(others, { batch: 1, context, causal: false });
  const [tokens, width] = [v({ context }), v({ window })];
  const global = v({ global_tokens: globals });
  const pairs =
    window + 2 * globals < context ? mul(tokens, add(width, global, global)) : mul(tokens, tokens);
  const perPair = all.reduce((sum, each) => sum + each.heads * (each.headDim + each.valueDim), 0);
  const kept = Math.min(context, window + globals);
  return {
    ...row,
    flops: figure({
      label: row.flops.label,
      unit: 'FLOP',
      formula: add(
        inputNamed('without_scores', total.value),
        mul(2, v({ values_per_pair: perPair }), pairs),
      ),
      source:
        'local and global scores of the sparse mask: context · (window + 2 · global tokens) (arXiv 2004.05150, section 3)',
    }),
    scores: scoresFigure(model, row.name, dtype, pairs),
    cache: stateOf(model, { batch: 1, context: kept, dtype }).total.reworded({
      label: `${row.name}: keys and values of the window and the global tokens`,
    }),
  };
}
