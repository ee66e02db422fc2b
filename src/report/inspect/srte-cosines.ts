/** How alike tables are: numbers for a few, a picture for many. */
import { heading, left, note, right } from '../kit/cells.js';
import type { Block, Cell, TableBlock } from '../kit/report.js';

/** Cosines of each table to each; null where there is none. */
type Cosines = readonly (readonly (number | null)[])[];

/** More columns of numbers than these are not read. */
const MOST_NUMBERS = 8;
/** Columns of a picture, so that it fits a terminal of 80 beside its labels. */
const PICTURE_WIDTH = 68;

/** From such a cosine on, a cell looks so. */
const SHADES = [
  { from: 0.99, sign: '█' },
  { from: 0.9, sign: '▓' },
  { from: 0.5, sign: '▒' },
  { from: 0.1, sign: '░' },
  { from: -0.1, sign: '·' },
  { from: -1, sign: '-' },
] as const;
const NO_COSINE = '?';

const LEGEND = '█ from 0.99, ▓ from 0.9, ▒ from 0.5, ░ from 0.1, · around 0, - below −0.1';

export function cosineBlocks(cosines: Cosines): Block[] {
  const isFew = cosines.length <= MOST_NUMBERS;
  return [
    heading('Cosine similarity of each layer to each'),
    isFew ? numbers(cosines) : picture(cosines),
    ...(isFew ? [] : [note(LEGEND)]),
  ];
}

/** `0.9633`; `–` for none. */
export const cosineCell = (cosine: number | null): Cell =>
  cosine === null ? { text: '–', value: '' } : { text: cosine.toFixed(4), value: cosine };

function numbers(cosines: Cosines): TableBlock {
  return {
    kind: 'table',
    columns: [
      right('layer', 'layer'),
      ...cosines.map((_, layer) => right(String(layer), `cosine_to_layer_${layer}`)),
    ],
    rows: cosines.map((row, layer) => [{ text: String(layer) }, ...row.map(cosineCell)]),
  };
}

/** A line for each layer; when they are too many, for each few of them. */
function picture(cosines: Cosines): TableBlock {
  const groupSize = Math.ceil(cosines.length / PICTURE_WIDTH);
  const groups = grouped(cosines, groupSize);
  const width = Math.max(1, Math.min(2, Math.floor(PICTURE_WIDTH / groups.length)));
  const rows = groups.map((members): Cell[] => {
    const means = groups.map((others) =>
      mean(members.flatMap(({ row }) => others.map(({ index }) => row[index] ?? null))),
    );
    return [
      { text: rangeText(members.map(({ index }) => index)) },
      {
        text: means.map((cosine) => shade(cosine).repeat(width)).join(''),
        value: means.map((cosine) => cosine ?? '').join(' '),
      },
    ];
  });
  return { kind: 'table', columns: [right('layer', 'layer'), left('', 'cosines')], rows };
}

/** The rows and their places, `size` of them together. */
function grouped(cosines: Cosines, size: number) {
  const members = cosines.map((row, index) => ({ row, index }));
  return Array.from({ length: Math.ceil(members.length / size) }, (_, group) =>
    members.slice(group * size, (group + 1) * size),
  );
}

function mean(cosines: readonly (number | null)[]): number | null {
  const known = cosines.filter((cosine) => cosine !== null);
  return known.length === 0 ? null : known.reduce((sum, each) => sum + each, 0) / known.length;
}

const rangeText = (indices: readonly number[]) =>
  indices.length === 1 ? String(indices[0]) : `${indices[0]}–${indices.at(-1)}`;

function shade(cosine: number | null): string {
  if (cosine === null) return NO_COSINE;
  return SHADES.find(({ from }) => cosine >= from)?.sign ?? NO_COSINE;
}
