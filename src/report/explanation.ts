/** How the figures of a profile come about: formula, inputs and source of each. */
import type { Figure } from '../budget/figure.js';
import type { Quantity } from '../budget/quantity.js';
import { heading, integerCell, left, right, strong } from './cells.js';
import type { Block, Cell, TableBlock } from './report.js';
import { formatInteger } from './units.js';

/** Every figure of a result, in the order in which they are shown. */
function* figuresOf(value: unknown): Generator<Figure | Quantity> {
  if (typeof value !== 'object' || value === null) return;
  if ('formula' in value && 'inputs' in value) {
    yield value as Figure | Quantity;
    return;
  }
  for (const inner of Object.values(value)) yield* figuresOf(inner);
}

/**
 * A table for each section; a figure that stands in two is explained in the first.
 * @param sections Results by their name; every figure inside them is explained.
 */
export function explanationBlocks(sections: Readonly<Record<string, unknown>>): Block[] {
  const seen = new Set<string>();
  const isNew = ({ label, formula, inputs }: Figure | Quantity) => {
    const key = `${label} ${formula} ${Object.values(inputs).join()}`;
    return !seen.has(key) && seen.add(key);
  };
  return Object.entries(sections).flatMap(([name, section]) => {
    const figures = [...figuresOf(section)].filter(isNew);
    if (figures.length === 0) return [];
    return [heading(`How the figures come about: ${name}`), explanationTable(figures)];
  });
}

const explanationTable = (figures: readonly (Figure | Quantity)[]): TableBlock => ({
  kind: 'table',
  columns: [
    left('figure', 'figure'),
    right('value', 'value'),
    left('unit', 'unit'),
    left('formula', 'formula', true),
    left('inputs', 'inputs', true),
    left('source', 'source', true),
  ],
  rows: figures.map(({ label, value, unit, formula, inputs, source }) => [
    strong(label),
    numberCell(value),
    { text: unit },
    { text: formula },
    {
      text: Object.entries(inputs)
        .map(([name, input]) => `${name} = ${numberText(input)}`)
        .join('; '),
    },
    { text: source },
  ]),
});

const isWhole = (value: number | bigint): boolean =>
  typeof value === 'bigint' || Number.isSafeInteger(value);

/** Every digit of a whole number, six of any other. */
const numberText = (value: number | bigint): string =>
  isWhole(value) ? formatInteger(value) : Number(Number(value).toPrecision(6)).toString();

const numberCell = (value: number | bigint): Cell =>
  isWhole(value) ? integerCell(value) : { text: numberText(value), value: Number(value) };
