/** Inventory of the model for `profile`: block by block and tensor by tensor. */
import type { Figure } from '../../budget/figure.js';
import type { BlockBudget, TensorEntry } from '../../budget/profile-model.js';
import type { Bounds, Quantity } from '../../budget/quantity.js';
import { formatInteger } from '../../text/units.js';
import { MAX_ROWS } from '../inspect/inspect-text.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';
import {
  bytesCell,
  flopsCell,
  headingBlock,
  integerCell,
  leftColumn,
  moreNote,
  noteOf,
  right,
  strongCell,
  tableOf,
  wrapColumn,
} from '../kit/report.js';

const spanText = ({ heads, window, rule }: BlockBudget['spans'][number]) =>
  window === undefined ? `${heads} global` : `${heads} ${rule} (${formatInteger(window)})`;

/** Limited list for people, or all for a program. */
const shownOf = <T>(all: readonly T[], flat: boolean): readonly T[] =>
  flat ? all : all.slice(0, MAX_ROWS);

export function layersBlocks(layers: readonly BlockBudget[], flat: boolean): Block[] {
  const shown = shownOf(layers, flat);
  return [
    headingBlock('Layers'),
    tableOf(shown, [
      leftColumn('layer', 'layer', ({ name }) => name),
      right('parameters', 'parameters', ({ parameters }) => integerCell(parameters.value)),
      right('state', 'state_bytes', ({ state }) => bytesCell(state.value)),
      right('forward', 'forward_flops', ({ forwardFlops }) => flopsCell(forwardFlops.value)),
      wrapColumn('heads', 'heads', ({ spans }) => spans.map(spanText).join(', ')),
    ]),
    ...moreNote(layers.length - shown.length, '--json'),
  ];
}

/** Parameters as a tree of their names; buffers in a separate list. */
export function inventoryBlocks(tensors: readonly TensorEntry[], flat: boolean): Block[] {
  const columns = [
    leftColumn('tensor', 'tensor'),
    right('shape', 'shape'),
    right('values', 'values'),
    wrapColumn('also named', 'aliases'),
  ];
  const cells = ({ name, shape, elements, aliases }: TensorEntry, text: string): Cell[] => [
    { text, value: name },
    { text: `[${shape.join(', ')}]` },
    integerCell(elements),
    { text: aliasText(aliases), value: aliases.join(' ') },
  ];
  const parameters = tensors.filter(({ role }) => role === 'parameter');
  const buffers = tensors.filter(({ role }) => role === 'buffer');
  const [shown, shownBuffers] = [shownOf(parameters, flat), shownOf(buffers, flat)];
  return [
    headingBlock('Tensors'),
    {
      kind: 'table',
      columns,
      rows: flat ? shown.map((each) => cells(each, each.name)) : treeRows(shown, cells),
    },
    ...moreNote(parameters.length - shown.length, '--json'),
    ...(buffers.length > 0
      ? [
          headingBlock('Buffers'),
          {
            kind: 'table' as const,
            columns,
            rows: shownBuffers.map((each) => cells(each, each.name)),
          },
          ...moreNote(buffers.length - shownBuffers.length, '--json'),
        ]
      : []),
  ];
}

/** Each name below the parts that it shares with the previous one. */
function treeRows(
  tensors: readonly TensorEntry[],
  cells: (tensor: TensorEntry, text: string) => Cell[],
): Cell[][] {
  const rows: Cell[][] = [];
  let above: string[] = [];
  for (const tensor of tensors) {
    const parts = tensor.name.split('.');
    const folders = parts.slice(0, -1);
    const shared = folders.findIndex((part, depth) => part !== above[depth]);
    const from = shared < 0 ? folders.length : shared;
    for (const [offset, part] of folders.slice(from).entries()) {
      rows.push([
        { text: `${'  '.repeat(from + offset)}${part}`, value: '', tone: 'dim' },
        { text: '' },
        { text: '' },
        { text: '' },
      ]);
    }
    rows.push(cells(tensor, `${'  '.repeat(folders.length)}${parts.at(-1) ?? ''}`));
    above = folders;
  }
  return rows;
}

function aliasText(aliases: readonly string[]): string {
  const [first, ...others] = aliases;
  if (first === undefined) return '';
  return others.length === 0 ? first : `${first} … (${aliases.length} names)`;
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
export function* figuresOf(value: unknown): Generator<Explained> {
  if (typeof value !== 'object' || value === null) return;
  if (isFigure(value)) {
    yield [value];
    return;
  }
  if (isBounds(value)) {
    yield [value.lower, value.expected, value.upper];
    const { lower, expected, upper, ...others } = value;
    yield* figuresOf(others);
    return;
  }
  for (const inner of Object.values(value)) yield* figuresOf(inner);
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

/** The same as one table, for programs. */
export const explanationData = (sections: Readonly<Record<string, unknown>>): TableBlock =>
  explanationTable(newFigures(sections).flatMap(({ figures }) => figures));

/** The figures of each section that no earlier section has. */
function newFigures(sections: Readonly<Record<string, unknown>>) {
  const seen = new Set<string>();
  const isNew = (figures: Explained) => {
    const key = figures
      .map(({ label, formula, inputs }) => `${label} ${formula} ${Object.values(inputs).join()}`)
      .join();
    return !seen.has(key) && seen.add(key);
  };
  return Object.entries(sections)
    .map(([name, section]) => ({ name, figures: [...figuresOf(section)].filter(isNew) }))
    .filter(({ figures }) => figures.length > 0);
}

function explanationTable(explained: readonly Explained[]): TableBlock {
  const rows = explained.map((figures) => ({
    label: figures[0].label,
    value: valueCell(figures),
    unit: figures[0].unit,
    formula: listed(figures.map(({ formula }) => formula)),
    inputs: inputsText(figures),
    source: listed(figures.map(({ source }) => source)),
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

/** One text when all bounds have the same; else each after the names of its bounds. */
function listed(texts: readonly string[]): string {
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

/** Numbers from here on are shown without decimals. */
const LARGE = 1e6;

/** Every digit of an integer, six of other numbers. */
function numberText(value: number | bigint): string {
  if (isWhole(value)) return formatInteger(value);
  const number = Number(value);
  return Math.abs(number) >= LARGE && Math.abs(number) <= Number.MAX_SAFE_INTEGER
    ? formatInteger(Math.round(number))
    : Number(number.toPrecision(6)).toString();
}

function valueCell(figures: Explained): Cell {
  const [{ value }] = figures;
  if (figures.length === 1) {
    return isWhole(value) ? integerCell(value) : { text: numberText(value), value: Number(value) };
  }
  return { text: besideEachOther(figures.map((each) => numberText(each.value))) };
}
