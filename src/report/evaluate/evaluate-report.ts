/** Report of `minimind evaluate`. */

import {
  formatInteger,
  formatSequences,
  percentText,
  significant,
  weightFormText,
} from '../../base/text/units.js';
import { counted, modelName, shortened } from '../../base/text/words.js';
import { present } from '../../base/values.js';
import type { EvaluatedModel, EvaluationResult } from '../../language/evaluation/evaluate-files.js';
import type { Estimate } from '../../language/evaluation/token-scores.js';
import { engineText } from '../doctor-report.js';
import type { BarsPicture, LinePlotBlock } from '../kit/pictures.js';
import type { Cell, Fact, Report, TableBlock, Verdict } from '../kit/report.js';
import { headingBlock, integerCell, leftColumn, right, tableOf, valueCell } from '../kit/report.js';
import { expertFacts, expertMap, expertTable } from './expert-load.js';

export function evaluateReport(result: EvaluationResult): Report {
  const { divergence, worstLines } = result;
  const along = alongPlots(result);
  return {
    verdict: evaluationVerdict(result),
    blocks: [
      {
        kind: 'facts',
        facts: [...inputFacts(result), ...lossFacts(result), ...expertFacts(result)],
      },
      ...(divergence ? [divergenceTable(divergence)] : []),
      ...(worstLines && worstLines.length > 0 ? [linesTable(result)] : []),
    ],
    details: [...along, ...expertTable(result), headingBlock('All figures'), figuresTable(result)],
    pictures: () => [...along, ...lineBars(result), ...expertMap(result)],
    data: figuresTable(result),
  };
}

function evaluationVerdict({ model, against, ...found }: EvaluationResult): Verdict {
  const own = { mean: found.perplexity, error: found.perplexityError };
  const bits =
    found.bitsPerByte === null ? '' : `, ${significant(found.bitsPerByte)} bits per byte`;
  const kl = found.divergence
    ? `; KL ${significant(found.divergence.kl.mean)} nats from ${modelName(against?.file ?? '')}`
    : '';
  return { text: `${modelName(model.file)}: perplexity ${withError(own)}${bits}${kl}` };
}

/** `2.51 ± 0.004`; without the error for one value. */
const withError = ({ mean, error }: Estimate, text: (value: number) => string = significant) =>
  error === null ? text(mean) : `${text(mean)} ± ${text(error)}`;

function inputFacts(result: EvaluationResult): Fact[] {
  const { input, context, stride, bos, windows, scored, engine, model, against } = result;
  const { file, tokenizer, texts, tokens, bytes } = input;
  return [
    { name: 'model', text: sideText(model) },
    ...(against ? [{ name: 'against', text: sideText(against) }] : []),
    {
      name: 'text',
      text:
        `${shortened(file, LINE_TEXT)}: ${counted(tokens, 'token')}` +
        (bytes === null
          ? ` in ${counted(texts, 'text')}`
          : `, ${(bytes / tokens).toFixed(2)} bytes per token`),
    },
    ...(tokenizer === null ? [] : [{ name: 'tokenizer', text: tokenizer }]),
    {
      name: 'windows',
      text:
        `${formatSequences(windows, context)}, stride ${formatInteger(stride)}, ` +
        `${bos === null ? 'no BOS' : `BOS ${bos}`}; ${counted(scored, 'token')} scored`,
    },
    {
      name: 'engine',
      text: `${engineText(engine)}${weightsText(result)}, ${significant(scored / result.seconds)} tokens/s`,
    },
  ];
}

const weightsText = ({ weights }: EvaluationResult) =>
  weights ? `, weights ${weightFormText(weights)}` : '';

const sideText = ({ file, family, parameters, checkpoint }: EvaluatedModel) =>
  `${file} (${family}, ${counted(parameters, 'parameter')})${checkpoint === null ? ', random weights' : ''}`;

function lossFacts(result: EvaluationResult): Fact[] {
  const { loss, lossError, perplexityByWord, bitsPerByte, bitsPerByteError, reference } = result;
  return present([
    { name: 'loss', text: `${withError({ mean: loss, error: lossError })} nats per token` },
    reference && {
      name: 'reference',
      text: `loss ${withError(reference.loss)}, perplexity ${withError(reference.perplexity)}`,
    },
    bitsPerByte !== null && {
      name: 'per byte',
      text: `${withError({ mean: bitsPerByte, error: bitsPerByteError })} bits`,
    },
    perplexityByWord !== null && {
      name: 'per word',
      text: `perplexity ${significant(perplexityByWord)}`,
    },
  ]);
}

function divergenceTable({
  kl,
  sameTop,
  rmsProbabilityChange,
  meanProbabilityChange,
  lossChange,
}: NonNullable<EvaluationResult['divergence']>): TableBlock {
  const row = (name: string, text: string): Cell[] => [{ text: name }, { text }];
  return {
    kind: 'table',
    columns: [leftColumn('against', 'measure'), right('value', 'value')],
    rows: [
      row('KL(against ‖ model), mean', `${withError(kl)} nats`),
      row(
        'KL median · 99% · max',
        [kl.median, kl.percentile99, kl.max].map(significant).join(' · '),
      ),
      row('same top token', withError(sameTop, percentText)),
      row('RMS change of the probability', withError(rmsProbabilityChange, percentText)),
      row('mean change of the probability', withError(meanProbabilityChange, percentText)),
      row('change of the loss', `${withError(lossChange)} nats`),
    ],
  };
}

/** Maximum characters of a shown line. */
const LINE_TEXT = 48;

function linesTable({ worstLines, divergence }: EvaluationResult): TableBlock {
  const measure = divergence ? 'KL' : 'loss';
  return tableOf(worstLines ?? [], [
    right('line', 'line', ({ line }) => integerCell(line)),
    right(`mean ${measure}`, `mean_${measure.toLowerCase()}`, ({ mean }) =>
      valueCell(mean, significant),
    ),
    right('tokens', 'tokens', ({ tokens }) => integerCell(tokens)),
    leftColumn('worst lines', 'text', ({ text }) => ({
      text: shortened(text.trim(), LINE_TEXT),
      value: text,
    })),
  ]);
}

/** Where in the texts the model is bad: a point for each run of tokens, at its last one. */
function alongPlots({ alongText, divergence, scored }: EvaluationResult): LinePlotBlock[] {
  const { tokens, means } = alongText;
  if (means.length < 2) return [];
  const measure = divergence ? 'KL' : 'Loss';
  const each = tokens > 1 ? `, mean of ${formatInteger(tokens)} tokens each` : '';
  return [
    {
      kind: 'line plot',
      title: `${measure} along the text in nats${each}`,
      x: { title: 'scored tokens', unit: 'count', from: 0 },
      y: { from: 0 },
      curves: [
        {
          label: measure,
          tone: 'hue1',
          points: means.map((mean, index) => [Math.min(scored, (index + 1) * tokens), mean]),
        },
      ],
    },
  ];
}

function lineBars({ worstLines, divergence }: EvaluationResult): BarsPicture[] {
  if (!worstLines || worstLines.length === 0) return [];
  return [
    {
      kind: 'bars',
      title: `Mean ${divergence ? 'KL' : 'loss'} of the worst lines, in nats`,
      bars: worstLines.map(({ line, text, mean }) => ({
        label: `${formatInteger(line)}: ${shortened(text.trim(), LINE_TEXT)}`,
        value: mean,
      })),
      levels: [],
    },
  ];
}

/** One figure per row, with its standard error. */
function figuresTable(result: EvaluationResult): TableBlock {
  const { divergence, reference } = result;
  const row = (name: string, mean: number | null, error: number | null = null): Cell[] => [
    { text: name },
    valueCell(mean, significant),
    valueCell(error, significant),
  ];
  const estimate = (name: string, { mean, error }: Estimate) => row(name, mean, error);
  return {
    kind: 'table',
    columns: [
      leftColumn('figure', 'figure'),
      right('value', 'value'),
      right('standard error', 'standard_error'),
    ],
    rows: [
      row('loss', result.loss, result.lossError),
      row('perplexity', result.perplexity, result.perplexityError),
      row('perplexity by word', result.perplexityByWord),
      row('bits per byte', result.bitsPerByte, result.bitsPerByteError),
      row('tokens scored', result.scored),
      ...(reference
        ? [
            estimate('reference loss', reference.loss),
            estimate('reference perplexity', reference.perplexity),
          ]
        : []),
      ...(divergence
        ? [
            estimate('KL(reference ‖ model)', divergence.kl),
            row('KL median', divergence.kl.median),
            row('KL 99%', divergence.kl.percentile99),
            row('KL maximum', divergence.kl.max),
            estimate('KL(model ‖ reference)', divergence.reverseKl),
            estimate('same top token', divergence.sameTop),
            estimate('RMS change of the probability', divergence.rmsProbabilityChange),
            estimate('mean change of the probability', divergence.meanProbabilityChange),
            estimate('change of the loss', divergence.lossChange),
          ]
        : []),
    ],
  };
}
