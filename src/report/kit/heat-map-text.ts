/** A heat map with the shades of a terminal: a letter for each column, whose name is in the legend. */
import { printable } from '../../base/text/escape.js';
import { percentText, significant } from '../../base/text/units.js';
import { heatScale, heatShare } from './heat-scale.js';
import { cutMiddle, textWidth, wrap } from './layout.js';
import type { HeatMapPicture } from './pictures.js';
import type { Piece } from './plots.js';

const SHADES = ['·', '░', '▒', '▓', '█'] as const;
const ASCII_SHADES = ['.', ':', '+', '*', '#'] as const;

/** Columns of the names of rows. */
const LONGEST_LABEL = 16;
const CELL = 2;
const USUAL_WIDTH = 80;

/** The lines, at most `width` columns wide. Columns that have no room are left out, and the legend says how many. */
export function drawHeatMapText(
  map: HeatMapPicture,
  width = USUAL_WIDTH,
  isAscii = false,
): Piece[][] {
  const { title, rows, columns, unit } = map;
  const scale = heatScale(map);
  const shades = isAscii ? ASCII_SHADES : SHADES;
  const labels = rows.map(({ label }) => cutMiddle(printable(label), LONGEST_LABEL));
  const left = Math.max(0, ...labels.map(textWidth)) + 2;
  const room = Number.isFinite(width) ? width : USUAL_WIDTH;
  const shown = Math.max(
    1,
    Math.min(columns.length, LETTERS.length, Math.floor((room - left) / CELL)),
  );
  const text = (value: number) => (unit === 'share' ? percentText(value) : significant(value));
  const cellOf = (value: number | null | undefined): string =>
    value == null ? ' ' : (shades[Math.round(heatShare(value, scale) * (shades.length - 1))] ?? '');
  const legend = [
    ...columns.slice(0, shown).map((name, at) => `${LETTERS[at]}=${printable(name)}`),
    ...(columns.length > shown ? [`and ${columns.length - shown} more columns`] : []),
  ];
  const steps = shades.map((shade, step) => {
    const value = scale.least + ((scale.most - scale.least) * step) / (shades.length - 1);
    return `${shade} ${text(value)}`;
  });
  const plain = (line: string): Piece[] => [{ text: line, tone: 'plain' }];
  const dim = (line: string): Piece[] => [{ text: line.trimEnd(), tone: 'dim' }];
  return [
    ...wrap(printable(title), room).map(plain),
    dim(
      ' '.repeat(left) +
        [...LETTERS]
          .slice(0, shown)
          .map((letter) => letter.padEnd(CELL))
          .join(''),
    ),
    ...rows.map(({ values }, at): Piece[] => [
      { text: (labels[at] ?? '').padEnd(left), tone: 'dim' },
      {
        text: Array.from({ length: shown }, (_, index) => cellOf(values[index]).repeat(CELL))
          .join('')
          .trimEnd(),
        tone: 'hue2',
      },
    ]),
    ...wrap(steps.join('  '), room).map(dim),
    ...wrap(legend.join(' '), room).map(dim),
  ];
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
