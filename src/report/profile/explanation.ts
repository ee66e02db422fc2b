/** Explanations of figures with formula, inputs and source, and of a published number. */

import {
  formatBytes,
  formatFlops,
  formatInteger,
  percentText,
  significant,
} from '../../base/text/units.js';
import type { Bounds, Figure, Quantity } from '../../model/budget/figure.js';
import type { PublishedReport } from '../../model/budget/published/explanations.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';
import {
  headingBlock,
  integerCell,
  leftColumn,
  noteOf,
  right,
  strongCell,
  tableOf,
  wrapColumn,
} from '../kit/report.js';

/** Methods of counting that give a published number. */
export function publishedBlocks(published: PublishedReport): Block[] {
  const { unit, value, upTo, difference, explanations, nearest = [], tried } = published;
  const shown = [value, ...(upTo === undefined ? [] : [upTo])]
    .map((each) => givenText(unit, each))
    .join(' to ');
  const away =
    difference === null ? '' : ` (${difference >= 0n ? '+' : ''}${formatInteger(difference)})`;
  const [best] = explanations;
  if (!best) {
    return [
      headingBlock(`Published: ${shown}${away}`),
      noteOf(
        `None of the ${tried} combinations of common errors gives this number.${truthText(published)}`,
      ),
      ...(nearest.length === 0
        ? []
        : [tableOf(nearest, explanationColumns(unit, 'nearest figure'))]),
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
    tableOf(explanations, explanationColumns(unit, 'likely reason')),
    noteOf(`${formatInteger(tried)} combinations tried, the most likely first.`),
  ];
}

const explanationColumns = (unit: PublishedReport['unit'], title: string) => [
  wrapColumn<PublishedReport['explanations'][number]>(title, 'reason', ({ reasons }) =>
    reasons.map(({ text }) => text).join('; and '),
  ),
  right<PublishedReport['explanations'][number]>('gives', 'value', ({ value: gives }) => ({
    text: publishedText(unit, gives),
    value: typeof gives === 'bigint' ? String(gives) : gives,
  })),
];

/** Difference of a count from the true one; empty for other units. */
function truthText({ value, difference }: PublishedReport): string {
  if (difference === null || Number(value) === 0) return '';
  const truth = BigInt(value) - difference;
  const ratio = Number(value) / Number(truth);
  const away =
    ratio >= 1 ? `${significant(ratio)} × as high` : `${significant(1 / ratio)} × too low`;
  return ` The model has ${formatInteger(truth)} parameters: the number is ${away}.`;
}

/** A number as published; ratios and shares have all their digits. */
function givenText(unit: PublishedReport['unit'], value: bigint | number): string {
  const digits = { maximumSignificantDigits: MOST_DIGITS };
  const given = (times: number) => (Number(value) * times).toLocaleString('en-US', digits);
  if (unit === 'share') return `${given(100)}%`;
  return unit === 'ratio' && Number(value) < 10 ** MOST_DIGITS
    ? `${given(1)} ×`
    : publishedText(unit, value);
}

/** Maximum digits of a published quotient. More digits result from a division. */
const MOST_DIGITS = 6;

function publishedText(unit: PublishedReport['unit'], value: bigint | number): string {
  switch (unit) {
    case 'parameters':
      return formatInteger(value);
    case 'change':
      return `${value > 0 ? '+' : ''}${formatInteger(value)}`;
    case 'flops':
      return formatFlops(value);
    case 'bytes':
      return formatBytes(value);
    case 'ratio':
      return `${significant(Number(value))} ×`;
    case 'share':
      return percentText(Number(value), 1);
  }
}

// Explanations of a profile's figures: formula, inputs and source of each.

/** A figure, or its lower, expected and upper bounds. */
type Explained = readonly [Figure | Quantity] | readonly [Quantity, Quantity, Quantity];

const BOUNDS = ['lower', 'expected', 'upper'] as const satisfies readonly (keyof Bounds)[];

const isFigure = (value: unknown): value is Figure | Quantity =>
  typeof value === 'object' && value !== null && 'formula' in value && 'inputs' in value;

const isBounds = (value: object): value is Bounds =>
  BOUNDS.every((name) => isFigure((value as Partial<Bounds>)[name]));

/** Every figure of a result, in display order. */
export function* explainedFigures(value: unknown): Generator<Explained> {
  if (typeof value !== 'object' || value === null) return;
  if (isFigure(value)) {
    yield [value];
    return;
  }
  if (isBounds(value)) {
    yield [value.lower, value.expected, value.upper];
    const { lower, expected, upper, ...others } = value;
    yield* explainedFigures(others);
    return;
  }
  for (const inner of Object.values(value)) yield* explainedFigures(inner);
}

/**
 * A table for each section; a figure in two sections is explained in the first.
 * @param sections Results by name; every figure inside them is explained.
 */
export const explanationBlocks = (sections: Readonly<Record<string, unknown>>): Block[] =>
  newFigures(sections).flatMap(({ name, figures }) => {
    const hasBounds = figures.some((each) => each.length === BOUNDS.length);
    return [
      headingBlock(`How the figures are computed: ${name}`),
      ...(hasBounds ? [noteOf(`Where there are three, they are ${BOUNDS.join(' / ')}.`)] : []),
      explanationTable(figures),
    ];
  });

/** The explanations as one table, for programs. */
export const explanationData = (sections: Readonly<Record<string, unknown>>): TableBlock =>
  explanationTable(newFigures(sections).flatMap(({ figures }) => figures));

/** The figures of each section that are in no earlier section. */
function newFigures(sections: Readonly<Record<string, unknown>>) {
  const seen = new Set<string>();
  const isNew = (figures: Explained) => {
    const key = figures
      .map(({ label, formula, inputs }) => `${label} ${formula} ${Object.values(inputs).join()}`)
      .join();
    return !seen.has(key) && seen.add(key);
  };
  return Object.entries(sections)
    .map(([name, section]) => ({ name, figures: [...explainedFigures(section)].filter(isNew) }))
    .filter(({ figures }) => figures.length > 0);
}

function explanationTable(explained: readonly Explained[]): TableBlock {
  const rows = explained.map((figures) => ({
    label: figures[0].label,
    value: boundsCell(figures),
    unit: figures[0].unit,
    formula: explanationList(figures.map(({ formula }) => formula)),
    inputs: inputsText(figures),
    source: explanationList(figures.map(({ source }) => source)),
  }));
  return {
    ...tableOf(rows, [
      leftColumn('figure', 'figure', ({ label }) => strongCell(label)),
      right('value', 'value', ({ value }) => value),
      leftColumn('unit', 'unit', ({ unit }) => unit),
      wrapColumn('formula', 'formula', ({ formula }) => formula),
      wrapColumn('inputs', 'inputs', ({ inputs }) => inputs),
      wrapColumn('source', 'source', ({ source }) => source),
    ]),
    narrower: tableOf(rows, [
      wrapColumn('figure', 'figure', ({ label, value, unit }) =>
        strongCell(`${label}: ${value.text} ${unit}`),
      ),
      wrapColumn(
        'formula, with inputs; source',
        'derivation',
        ({ formula, inputs, source }) =>
          `${formula}${inputs === '' ? '' : `, with ${inputs}`}; ${source}`,
      ),
    ]),
  };
}

/** One text if it is the same for all bounds; otherwise each text after the names of its bounds. */
function explanationList(texts: readonly string[]): string {
  const [first = '', ...others] = texts;
  if (others.every((text) => text === first)) return first;
  return [...new Set(texts)]
    .map((text) => {
      const names = BOUNDS.filter((_, index) => texts[index] === text);
      return `${names.join(' and ')}: ${text}`;
    })
    .join('; ');
}

function inputsText(figures: Explained): string {
  const names = new Set(figures.flatMap(({ inputs }) => Object.keys(inputs)));
  return [...names]
    .map((name) => {
      const values = figures.map(({ inputs }) => {
        const value = inputs[name];
        return value === undefined ? '–' : numberText(value);
      });
      return `${name} = ${besideEachOther(values)}`;
    })
    .join('; ');
}

const besideEachOther = (texts: readonly string[]): string =>
  new Set(texts).size === 1 ? (texts[0] ?? '') : texts.join(' / ');

const isWhole = (value: number | bigint): boolean =>
  typeof value === 'bigint' || Number.isSafeInteger(value);

/** Numbers from this size on have no decimals. */
const LARGE = 1e6;

/** Every digit of an integer, six of other numbers. */
function numberText(value: number | bigint): string {
  if (isWhole(value)) return formatInteger(value);
  const number = Number(value);
  return Math.abs(number) >= LARGE && Math.abs(number) <= Number.MAX_SAFE_INTEGER
    ? formatInteger(Math.round(number))
    : Number(number.toPrecision(6)).toString();
}

function boundsCell(figures: Explained): Cell {
  const [{ value }] = figures;
  if (figures.length === 1) {
    return isWhole(value) ? integerCell(value) : { text: numberText(value), value: Number(value) };
  }
  return { text: besideEachOther(figures.map((each) => numberText(each.value))) };
}
