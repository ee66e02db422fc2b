/** Lower bounds, estimates and upper bounds as cells, and the memory table shared by training and serving. */

import { formatBytes } from '../../base/text/units.js';
import type { PublishedRange } from '../../estimate/fit/published-range.js';
import type { FitVerdict } from '../../estimate/fit/training/training-fit.js';
import type { GpuKind } from '../../estimate/hardware/gpu.js';
import type { Bounds, ByBound, Quantity } from '../../model/budget/figure.js';
import type { Block, Cell, TableBlock, Tone } from '../kit/report.js';
import { barCell, leftColumn, right, strongCell, valueCell, wrapColumn } from '../kit/report.js';

export type ShownBounds = ByBound<{ readonly value: number | bigint }>;

export const sameBounds = (value: number | bigint): ShownBounds => ({
  lower: { value },
  expected: { value },
  upper: { value },
});

/** Parts with the labels used in their explanations. */
export const labelled = (parts: readonly { readonly bytes: Bounds }[]): MemoryPart[] =>
  parts.map(({ bytes }) => ({ part: bytes.expected.label, bytes }));

export interface MemoryPart {
  readonly part: string;
  readonly bytes: ShownBounds;
}

/** Memory of one use on the fullest GPU or machine. */
export interface UsedMemory {
  /** Parts whose bytes are known exactly. */
  readonly exact: readonly MemoryPart[];
  readonly workspace: readonly MemoryPart[];
  readonly total: Bounds;
  readonly capacity: Quantity;
}

/** Columns of the bar of the whole capacity. */
const BAR_WIDTH = 20;

/** Nouns for the kinds of devices. */
export const NOUNS = {
  nvidia: { each: 'GPU', own: 'the GPU' },
  processor: { each: 'machine', own: 'this machine' },
  other: { each: 'GPU', own: 'the GPU' },
} as const satisfies Record<GpuKind, { readonly each: string; readonly own: string }>;

/** Memory of the fullest GPU or machine: exact parts, workspace, and total compared with the capacity. */
export function memoryTable(
  kind: GpuKind,
  { exact, workspace, total, capacity }: UsedMemory,
): TableBlock {
  const { each, own } = NOUNS[kind];
  const share = (bytes: ShownBounds): Cell =>
    barCell(Number(bytes.expected.value) / capacity.value, BAR_WIDTH);
  const row = ({ part, bytes }: MemoryPart): Cell[] => [
    { text: part },
    ...boundsCells(bytes, bytesText),
    share(bytes),
  ];
  const columns = [wrapColumn(`memory of the fullest ${each}`, 'part'), ...boundsColumns('bytes')];
  const rows: Cell[][] = [
    ...exact.filter(isThere).map(row),
    ...workspace.filter(isThere).map((one) => row({ ...one, part: `+ ${one.part}` })),
    [strongCell('total'), ...boundsCells(total, bytesText), share(total)],
    [
      { text: `${own} has`, tone: 'dim' },
      { text: '', value: '' },
      valueCell(capacity.value, bytesText),
      { text: '', value: '' },
      barCell(1, BAR_WIDTH),
    ],
  ];
  return {
    kind: 'table',
    columns: [...columns, leftColumn('', 'bar')],
    rows,
    narrower: { kind: 'table', columns, rows: rows.map((cells) => cells.slice(0, -1)) },
  };
}

/** Parts that are zero in every bound are omitted. */
const isThere = ({ bytes: { lower, upper } }: MemoryPart): boolean =>
  Number(lower.value) !== 0 || Number(upper.value) !== 0;

export const boundsColumns = (unit: string) => [
  right('lower', `lower_${unit}`),
  right('estimate', `expected_${unit}`),
  right('upper', `upper_${unit}`),
];

export const boundsCells = (bounds: ShownBounds, text: (value: number) => string): Cell[] =>
  [bounds.lower, bounds.expected, bounds.upper].map(({ value }) => valueCell(Number(value), text));

/** `(9 of 10: 106–180; limit 206)`: where published runs lie, and what no program passes; empty without a range. */
export const publishedText = (
  published: Pick<PublishedRange, 'lower' | 'upper'> | null,
  limit: number,
  text: (value: number) => string,
): string =>
  published === null
    ? ''
    : ` (9 of 10: ${text(published.lower)}–${text(Math.min(published.upper, limit))}; limit ${text(limit)})`;

/** `(9 of 10: 4.8 h–7.7 h; limit 2.6 h)`: the same of a time; its bounds where no published run is comparable. */
export const publishedTimeText = (
  published: Pick<PublishedRange, 'lower' | 'upper'> | null,
  { lower, upper }: Readonly<Record<'lower' | 'upper', number>>,
  text: (value: number) => string,
): string =>
  published === null
    ? ` (bounds ${text(lower)}–${text(upper)})`
    : ` (9 of 10: ${text(Math.max(published.lower, lower))}–${text(published.upper)}; limit ${text(lower)})`;

export const bytesText = (bytes: number) => formatBytes(Math.round(bytes));

export const TONES = {
  fits: 'good',
  'may fit': 'warning',
  'does not fit': 'bad',
} as const satisfies Record<FitVerdict, Tone>;

export const verdictHeading = (what: string, verdict: FitVerdict): Block => ({
  kind: 'heading',
  text: `${what}: ${verdict}`,
  tone: TONES[verdict],
});

export interface BoundsRow {
  readonly what: string;
  readonly unit: string;
  /** Values by bound; undefined when there is none. */
  readonly bounds: { readonly [bound in keyof ShownBounds]?: ShownBounds[bound] | undefined };
}

/** `32GB`, as `--ram` takes it. */
export const ramText = (bytes: number): string => `${bytes / 1e9}GB`;
