/** Explanations of a published number, as `--published` shows them. */
import type { PublishedReport } from '../../budget/published/explain-published.js';
import { formatBytes, formatInteger, percentText, significant } from '../../text/units.js';
import type { Block } from '../kit/report.js';
import { headingBlock, noteOf, right, tableOf, wrapColumn } from '../kit/report.js';

/** Ways of counting that give a published number. */
export function publishedBlocks(published: PublishedReport): Block[] {
  const { unit, value, difference, explanations, tried } = published;
  const shown = publishedText(unit, value);
  const away =
    difference === null ? '' : ` (${difference >= 0n ? '+' : ''}${formatInteger(difference)})`;
  const [best] = explanations;
  if (!best) {
    return [
      headingBlock(`Published: ${shown}${away}`),
      noteOf(`None of the ${tried} combinations of common errors gives this number.`),
    ];
  }
  if (best.reasons.length === 0) {
    return [
      headingBlock(`Published: ${shown}`),
      noteOf(
        `That is the number of parameters, ${publishedText(unit, best.value)}, to every digit given.`,
      ),
    ];
  }
  return [
    headingBlock(`Published: ${shown}${away}`),
    tableOf(explanations, [
      wrapColumn('likely reason', 'reason', ({ reasons }) =>
        reasons.map(({ text }) => text).join('; and '),
      ),
      right('gives', 'value', ({ value: gives }) => ({
        text: publishedText(unit, gives),
        value: typeof gives === 'bigint' ? String(gives) : gives,
      })),
    ]),
    noteOf(`${formatInteger(tried)} combinations tried, the most likely first.`),
  ];
}

function publishedText(unit: PublishedReport['unit'], value: bigint | number): string {
  switch (unit) {
    case 'parameters':
      return formatInteger(value);
    case 'bytes':
      return formatBytes(value);
    case 'ratio':
      return `${significant(Number(value))} ×`;
    case 'share':
      return percentText(Number(value), 1);
  }
}
