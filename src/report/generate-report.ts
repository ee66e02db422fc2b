/** Report of `minimind generate`: the answers of a model, and their figures. */

import { setting } from '../base/text/setting.js';
import { formatInteger, percentText, weightFormText } from '../base/text/units.js';
import { counted, modelName } from '../base/text/words.js';
import { present, sumOf } from '../base/values.js';
import type {
  GenerateResult,
  NamedToken,
  ReportedAnswer,
  ReportedToken,
} from '../language/generation/session.js';
import { engineText } from './doctor-report.js';
import type { Block, Cell, Fact, Report, TableBlock } from './kit/report.js';
import {
  barCell,
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  paragraph,
  percentCell,
  realCell,
  right,
  tableOf,
  valueCell,
  wrapColumn,
} from './kit/report.js';

/** @param isStreamed Whether the text is already on the screen. */
export function generateReport(
  result: GenerateResult,
  { isStreamed }: { readonly isStreamed: boolean },
): Report {
  const { answers } = result;
  const [only] = answers;
  const blocks =
    answers.length === 1 && only ? answerBlocks(only, isStreamed) : [answersTable(answers)];
  return {
    verdict: { text: generationVerdict(result), tone: 'dim' },
    blocks: [{ kind: 'facts', facts: generationFacts(result) }, ...blocks],
    data: answers.length === 1 && only ? tokensTable(only) : answersTable(answers),
  };
}

const ENDS: Readonly<Partial<Record<ReportedAnswer['ended'], string>>> = {
  length: ', ended by the limit',
  stopped: ', stopped by Ctrl-C',
};

/** `128 tokens at 95 tokens/s · prompt of 12 tokens in 31 ms · perplexity 4.21 · least sure " Paris" (3.1 %)`. */
export function figuresText({ figures, tokens, ended }: ReportedAnswer): string {
  const { promptTokens, prefillMilliseconds, tokensPerSecond, perplexity, leastSure } = figures;
  const speed = tokensPerSecond === null ? '' : ` at ${rateText(tokensPerSecond)}`;
  const least = tokens[leastSure.position];
  const end = ENDS[ended] ?? '';
  return [
    `${counted(figures.tokens, 'token')}${speed}${end}`,
    `prompt of ${counted(promptTokens, 'token')} in ${millisecondsText(prefillMilliseconds)}`,
    `perplexity ${perplexity.toPrecision(3)}`,
    ...(least ? [`least sure ${tokenText(least)} (${percentText(leastSure.probability)})`] : []),
  ].join(' · ');
}

/** `likeliest token, int4 in groups of 32`, for a pipe, in which the text is the whole answer. */
export const settingsText = ({ sampling, weightForm, cacheType }: GenerateResult): string =>
  [
    samplingText({ sampling }),
    ...(weightForm ? [weightFormText(weightForm)] : []),
    ...(cacheType ? [`cache in ${cacheType}`] : []),
  ].join(' · ');

/** `likeliest token`, or `temperature 0.8, top-p 0.95, seed 7`. */
function samplingText({ sampling }: Pick<GenerateResult, 'sampling'>): string {
  const { temperature, topK, topP, minP, repetitionPenalty, seed, fromFile } = sampling;
  const penalty = repetitionPenalty === 1 ? [] : [`repetition penalty ${repetitionPenalty}`];
  const settings =
    temperature === 0
      ? ['likeliest token', ...penalty]
      : [
          `temperature ${temperature}`,
          ...(topK > 0 ? [`top-k ${topK}`] : []),
          ...(topP < 1 ? [`top-p ${topP}`] : []),
          ...(minP > 0 ? [`min-p ${minP}`] : []),
          ...penalty,
          `seed ${seed}`,
        ];
  const origin = fromFile.length > 0 ? ` (generation_config.json: ${fromFile.join(', ')})` : '';
  return settings.join(', ') + origin;
}

function generationVerdict(result: GenerateResult): string {
  const { answers } = result;
  const [only] = answers;
  if (answers.length === 1 && only) return figuresText(only);
  const tokens = sumOf(answers, ({ figures }) => figures.tokens);
  return `${formatInteger(answers.length)} answers, ${counted(tokens, 'token')}`;
}

function generationFacts(result: GenerateResult): Fact[] {
  const { file, family, checkpoint, engine, context, weightForm, cacheType } = result;
  const from =
    checkpoint === null ? 'random weights: the text means nothing' : `weights of ${checkpoint}`;
  return [
    {
      name: 'model',
      text: `${file} (${family}), ${from}`,
      ...(checkpoint === null && { tone: 'warning' as const }),
    },
    ...(weightForm ? [{ name: 'weights', text: weightFormText(weightForm) }] : []),
    ...(cacheType ? [{ name: 'cache', text: `keys and values rounded to ${cacheType}` }] : []),
    { name: 'sampling', text: samplingText(result) },
    {
      name: 'engine',
      text: `${engineText(engine)}, context ${formatInteger(context)}`,
    },
  ];
}

function answerBlocks(answer: ReportedAnswer, isStreamed: boolean): Block[] {
  const { draft, against, tokens } = answer;
  const explained = tokens.filter(({ sampling }) => sampling !== null);
  const hasTop = tokens.some(({ top }) => top.length > 0);
  return [
    ...(isStreamed ? [] : [headingBlock('Answer'), paragraph(answerText(answer))]),
    ...(draft ? draftBlocks(answer) : []),
    ...(against ? againstBlocks(answer) : []),
    ...explained.flatMap((token, index) => samplingBlocks(token, index)),
    ...(hasTop ? [headingBlock('Likeliest tokens'), likeliestTable(answer)] : []),
  ];
}

const answerText = ({ text, ids }: Pick<ReportedAnswer, 'text' | 'ids'>) => text ?? ids.join(' ');

function draftBlocks({ draft, figures }: ReportedAnswer): Block[] {
  if (draft === null) return [];
  const { by, proposed, accepted, calls, tokensPerSecondWithout: without } = draft;
  const speed = figures.tokensPerSecond;
  const factor = speed !== null && without !== null ? ` (${(speed / without).toFixed(2)} ×)` : '';
  const drafted = proposed.reduce((sum, each) => sum + each, 0);
  const taken = accepted.reduce((sum, each) => sum + each, 0);
  return [
    headingBlock('Speculative decoding'),
    {
      kind: 'facts',
      facts: [
        {
          name: 'draft',
          text: `${by}, ${formatInteger(taken)} of ${counted(drafted, 'token')} accepted (${percentText(drafted === 0 ? null : taken / drafted)})`,
        },
        {
          name: 'calls',
          text: `${counted(calls, 'call')} of the model for ${counted(figures.tokens, 'token')}`,
        },
        {
          name: 'speed',
          text: `${rateText(speed)} with the draft, ${rateText(without)} without${factor}`,
        },
      ],
    },
    tableOf(proposed, [
      right('position', 'position', (_, index) => integerCell(index + 1)),
      right('proposed', 'proposed', (each) => integerCell(each)),
      right('accepted', 'accepted', (_, index) => integerCell(accepted[index] ?? 0)),
      right('rate', 'rate', (each, index) => percentCell((accepted[index] ?? 0) / each)),
    ]),
  ];
}

/** Maximum rows of a table for people. */
const MOST_PARTINGS = 10;

function againstBlocks({ against }: ReportedAnswer): Block[] {
  if (against === null) return [];
  const { other, tokens, same, partings } = against;
  const [first] = partings;
  const name = modelName(other);
  const text =
    first === undefined
      ? `${name} would write the same ${counted(tokens, 'token')}.`
      : `${name} first differs at token ${first.position + 1}. Same likeliest token: ${formatInteger(same)} of ${formatInteger(tokens)}.`;
  return present([
    headingBlock(`Against ${name}`),
    noteOf(text),
    first !== undefined &&
      tableOf(partings.slice(0, MOST_PARTINGS), [
        right('token', 'position', ({ position }) => integerCell(position + 1)),
        leftColumn('answer', 'answer', ({ own }) => tokenText(own)),
        right('probability', 'probability', ({ own }) => percentCell(own.probability)),
        leftColumn('other', 'other', ({ other: theirs }) => tokenText(theirs)),
        right('its probability', 'other_probability', ({ other: theirs }) =>
          percentCell(theirs.probability),
        ),
      ]),
    partings.length > MOST_PARTINGS &&
      noteOf(
        `${counted(partings.length - MOST_PARTINGS, 'more token')}; ${setting('json')} has all.`,
      ),
  ]);
}

const BAR_WIDTH = 12;

/** The likeliest tokens before and after each filter, with bars on one scale for the first and the last distribution. */
function samplingBlocks(token: ReportedToken, index: number): Block[] {
  const stages = token.sampling ?? [];
  const first = stages[0];
  const last = stages.at(-1);
  if (first === undefined || last === undefined) return [];
  const most = Math.max(...stages.flatMap(({ top }) => top.map(({ probability }) => probability)));
  return [
    headingBlock(
      `Sampling of token ${index + 1}: ${tokenText(token)}, of ${counted(last.kept, 'token')}`,
    ),
    {
      kind: 'table',
      columns: [
        leftColumn('token', 'token'),
        ...stages.flatMap(({ name }, at) => [
          right(name, name.replace(/[^a-z]/g, '_')),
          ...(at === 0 || at === stages.length - 1 ? [leftColumn('', `bar_${at}`)] : []),
        ]),
      ],
      rows: first.top.map((each, row) => [
        { text: tokenText(each), ...(each.id === token.id && { tone: 'strong' as const }) },
        ...stages.flatMap(({ top }, at): Cell[] => {
          const probability = top[row]?.probability ?? 0;
          const shown: Cell =
            probability === 0 ? { text: '–', value: 0 } : percentCell(probability);
          const isEnd = at === 0 || at === stages.length - 1;
          return isEnd ? [shown, barCell(probability / most, BAR_WIDTH)] : [shown];
        }),
      ]),
    },
  ];
}

const likeliestTable = ({ tokens }: ReportedAnswer): TableBlock =>
  tableOf(tokens, [
    right('token', 'position', (_, index) => integerCell(index + 1)),
    leftColumn('text', 'text', (token) => tokenText(token)),
    right('probability', 'probability', (token) => percentCell(Math.exp(token.logprob))),
    wrapColumn('likeliest', 'likeliest', (token) =>
      token.top
        .map((each) => `${tokenText(each)} ${percentText(Math.exp(each.logprob))}`)
        .join('  '),
    ),
  ]);

/** One row for each token, for programs. */
const tokensTable = ({ tokens }: ReportedAnswer): TableBlock =>
  tableOf(tokens, [
    right('position', 'position', (_, index) => integerCell(index)),
    right('id', 'id', ({ id }) => integerCell(id)),
    leftColumn('text', 'text', ({ text }) => text ?? ''),
    right('log-probability', 'logprob', ({ logprob }) => valueCell(logprob)),
    right('probability', 'probability', ({ probability }) => valueCell(probability)),
  ]);

const answersTable = (answers: readonly ReportedAnswer[]): TableBlock =>
  tableOf(answers, [
    right('#', 'number', (_, index) => integerCell(index + 1)),
    wrapColumn('prompt', 'prompt', ({ prompt }) =>
      answerText({ text: prompt.text, ids: prompt.ids }),
    ),
    wrapColumn('answer', 'answer', ({ text, ids }) => answerText({ text, ids })),
    right('tokens', 'tokens', ({ figures }) => integerCell(figures.tokens)),
    right('perplexity', 'perplexity', ({ figures }) => realCell(figures.perplexity)),
    right('tokens/s', 'tokens_per_second', ({ figures }) => realCell(figures.tokensPerSecond)),
    leftColumn('end', 'end', ({ ended }) => ended),
  ]);

/** `" Paris"`, or `#17` without a tokenizer. */
const tokenText = ({ id, text }: NamedToken) => (text === null ? `#${id}` : JSON.stringify(text));

const rateText = (rate: number | null) =>
  rate === null
    ? '– tokens/s'
    : `${rate >= 100 ? formatInteger(Math.round(rate)) : rate.toPrecision(3)} tokens/s`;

const millisecondsText = (milliseconds: number) =>
  milliseconds >= 10_000
    ? `${(milliseconds / 1000).toFixed(1)} s`
    : `${milliseconds >= 10 ? Math.round(milliseconds) : milliseconds.toPrecision(2)} ms`;
