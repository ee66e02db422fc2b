/** Report of the sampling of given logits: the distribution before and after each filter. */

import { formatInteger, percentText } from '../base/text/units.js';
import { counted } from '../base/text/words.js';
import type { GivenDistribution } from '../language/generation/given-distribution.js';
import type { Cell, Report } from './kit/report.js';
import { integerCell, noteOf, percentCell, right, tableOf, valueCell } from './kit/report.js';

/** Sums of printed probabilities differ from 1 by their rounding. */
const ROUNDED = 0.005;

/** Rows of the answer; the rest is in the details. */
const MOST_ROWS = 12;

export function samplingReport(result: GivenDistribution): Report {
  const { from, values, stages, kept, sum } = result;
  const [first, last] = [stages[0], stages.at(-1)];
  const entropy = `entropy ${first?.entropy.toFixed(2)} → ${last?.entropy.toFixed(2)} bits`;
  const rows = values
    .map((value, token) => ({ token, value }))
    .sort((a, b) => b.value - a.value || a.token - b.token);
  const table = (shown: typeof rows) =>
    tableOf(shown, [
      right('token', 'token', ({ token }) => integerCell(token)),
      right(from === 'logits' ? 'logit' : 'given', 'value', ({ value }) =>
        valueCell(value, String),
      ),
      ...stages.map(({ name, probabilities }) =>
        right<(typeof rows)[number]>(
          samplingTitle(name, result),
          name.replaceAll(/[^a-z]/g, '_'),
          ({ token }): Cell => {
            const probability = probabilities[token] ?? 0;
            return probability === 0 ? { text: '–', value: 0 } : percentCell(probability);
          },
        ),
      ),
    ]);
  const isUneven = sum !== null && Math.abs(sum - 1) > 1e-9;
  const sumText = `The given probabilities have the sum ${sum?.toPrecision(6).replace(/\.?0+$/, '')}, and are divided by it${
    isUneven && Math.abs(sum - 1) > ROUNDED
      ? ': they are no distribution, or one of them is wrong'
      : ''
  }.`;
  const names = kept.map(({ token, probability }) => `${token} (${percentText(probability)})`);
  return {
    verdict: {
      text: `${formatInteger(kept.length)} of ${counted(values.length, 'token')} can be drawn · ${entropy}`,
    },
    blocks: [
      table(rows.slice(0, MOST_ROWS)),
      noteOf(
        `Kept, divided by their sum: ${names.slice(0, MOST_ROWS).join(', ')}${names.length > MOST_ROWS ? ', …' : ''}.`,
      ),
      ...(isUneven ? [noteOf(sumText)] : []),
    ],
    ...(rows.length > MOST_ROWS && { details: [table(rows)] }),
  };
}

/** `top-p 0.9` */
function samplingTitle(
  name: GivenDistribution['stages'][number]['name'],
  { from, settings }: GivenDistribution,
): string {
  const values = {
    temperature: settings.temperature,
    'top-k': settings.topK,
    'top-p': settings.topP,
    'min-p': settings.minP,
    'repetition penalty': settings.repetitionPenalty,
  };
  if (name === 'softmax') return from === 'logits' ? 'softmax' : 'probability';
  return `${name} ${values[name]}`;
}
