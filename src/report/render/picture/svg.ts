/**
 * The frame of pictures. Sizes and colours are attributes, so that a picture keeps them where a policy forbids styles.
 * A style adds the colours of dark screens.
 */
import { printable } from '../../../base/text/escape.js';
import { cutMiddle, textWidth } from '../../kit/layout.js';
import type { Tone } from '../../kit/tones.js';
import { type Child, element, type Markup, styleElement } from '../markup.js';

/** Width of all pictures, in pixels where there is room. */
export const WIDTH = 680;

export const FONT_SIZE = 13;

/** Mean width of a character. Fonts differ, so texts have some room. */
const CHARACTER = 7.3;

export const LINE_HEIGHT = 17;

/** Colours on a light ground and on a dark one. */
const COLOURS = {
  ink: ['#1c2127', '#e4e7eb'],
  dim: ['#59626e', '#a2abb6'],
  good: ['#18713c', '#6cc78d'],
  bad: ['#b3261e', '#ff8f86'],
  warning: ['#8a5300', '#e5b052'],
  hue1: ['#2a6fbb', '#6ba8ec'],
  hue2: ['#b4540a', '#e59255'],
  hue3: ['#2b7d4f', '#62b98a'],
  hue4: ['#8b4bb8', '#c091e6'],
  hue5: ['#b0306a', '#e980ac'],
} as const satisfies Record<string, readonly [light: string, dark: string]>;

const GROUNDS = ['#ffffff', '#15181c'] as const;

/** Attributes that colour an element, which then draws in `currentColor`. */
export function colour(tone: Tone): { readonly class?: string; readonly color?: string } {
  if (tone === 'plain' || tone === 'strong') return {};
  return { class: tone, color: COLOURS[tone][0] };
}

/** A picture: what is drawn and how high it is. */
export interface Drawing {
  readonly height: number;
  readonly content: Child;
}

/** A picture within a page, which has the colours of the page. */
export const inlineSvg = (title: string, { height, content }: Drawing): Markup =>
  element('svg', { ...frame(height), fill: 'currentColor' }, element('title', {}, title), content);

/** Height of the title in a file. */
const TITLE_HEIGHT = 28;
const MARGIN = 12;

/** A picture as a file: with its title, its ground and its colours. */
export function svgFile(title: string, { height, content }: Drawing): string {
  const lines = titleLines(title);
  const top = MARGIN + TITLE_HEIGHT + (lines.length - 1) * LINE_HEIGHT;
  const [width, whole] = [WIDTH + 2 * MARGIN, top + height + MARGIN];
  const svg = element(
    'svg',
    {
      xmlns: 'http://www.w3.org/2000/svg',
      ...frame(whole, width),
      class: 'ink',
      color: COLOURS.ink[0],
      fill: 'currentColor',
    },
    element('title', {}, title),
    styleElement(FILE_STYLE),
    element('rect', { class: 'ground', width, height: whole, fill: GROUNDS[0] }),
    lines.map((line, index) =>
      label(line, { x: MARGIN, y: MARGIN + FONT_SIZE + index * LINE_HEIGHT, 'font-weight': 600 }),
    ),
    element('g', { transform: `translate(${MARGIN} ${top})` }, content),
  );
  return svg.text;
}

/** At most two lines. */
function titleLines(title: string): string[] {
  const lines = wrapped(printable(title), Math.floor(WIDTH / CHARACTER));
  return lines.length > 2 ? [lines[0] ?? '', `${lines[1]} …`] : lines;
}

function wrapped(text: string, columns: number): string[] {
  const lines: string[] = [];
  for (const word of cutWords(text, columns)) {
    const last = lines.at(-1);
    if (last !== undefined && textWidth(`${last} ${word}`) <= columns)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

const cutWords = (text: string, columns: number) =>
  text.split(/ +/).map((word) => cutMiddle(word, columns));

const FILE_STYLE = `.ink{color:${COLOURS.ink[0]}}@media (prefers-color-scheme: dark) {${Object.entries(
  COLOURS,
)
  .map(([name, [, dark]]) => `.${name}{color:${dark}}`)
  .join('')}.ground{fill:${GROUNDS[1]}}}`;

const frame = (height: number, width = WIDTH) => ({
  viewBox: `0 0 ${width} ${height}`,
  width,
  height,
  role: 'img',
  'font-family': 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif',
  'font-size': FONT_SIZE,
});

/** Columns of text that fit into a width. */
const columnsIn = (width: number): number => Math.floor(width / CHARACTER + ROUNDING);

/** Errors of sums of widths. */
const ROUNDING = 1e-6;

/** Estimated width of a text. */
export const estimatedWidth = (text: string): number => textWidth(printable(text)) * CHARACTER;

interface LabelPlace {
  readonly x: number;
  readonly y: number;
  readonly 'text-anchor'?: 'middle' | 'end';
  readonly 'font-weight'?: number;
  readonly class?: string;
  readonly color?: string;
  readonly fill?: string;
  readonly transform?: string;
}

/** A text, cut in its middle where it is wider than `room`. */
export function label(text: string, place: LabelPlace, room = Number.POSITIVE_INFINITY): Markup {
  const shown = printable(text);
  return element(
    'text',
    { ...place, x: round(place.x), y: round(place.y) },
    room === Number.POSITIVE_INFINITY ? shown : cutMiddle(shown, Math.max(1, columnsIn(room))),
  );
}

/** Attributes of dim text. */
export const DIM = { ...colour('dim'), fill: 'currentColor' } as const;

/** A coordinate to a tenth of a pixel. */
export const round = (value: number): number => Math.round(value * 10) / 10;

/** An entry of a legend. */
export interface LegendEntry {
  readonly label: string;
  readonly tone: Tone;
  readonly swatch: 'area' | 'line' | 'dashes' | 'dot';
  readonly dash?: string | undefined;
}

const SWATCH = 18;
const ENTRY_GAP = 18;

/** A legend in as many lines as it takes. */
export function legend(entries: readonly LegendEntry[]): Drawing {
  let [x, y] = [0, 0];
  const content = entries.map((entry) => {
    const room = WIDTH - SWATCH - 6;
    const width = SWATCH + 6 + Math.min(room, estimatedWidth(entry.label));
    if (x > 0 && x + width > WIDTH) [x, y] = [0, y + LINE_HEIGHT + 2];
    const drawn = [
      swatch(entry, x, y + LINE_HEIGHT / 2),
      label(entry.label, { x: x + SWATCH + 6, y: y + FONT_SIZE }, room),
    ];
    x += width + ENTRY_GAP;
    return drawn;
  });
  return { height: entries.length === 0 ? 0 : y + LINE_HEIGHT + 10, content };
}

function swatch({ swatch: kind, tone, dash }: LegendEntry, x: number, y: number): Markup {
  if (kind === 'area') {
    return element('rect', {
      ...colour(tone),
      x: round(x + 3),
      y: y - 6,
      width: 12,
      height: 12,
      fill: 'currentColor',
    });
  }
  if (kind === 'dot') {
    return element('circle', {
      ...colour(tone),
      cx: round(x + SWATCH / 2),
      cy: y,
      r: 4,
      fill: 'currentColor',
    });
  }
  return element('line', {
    ...colour(tone),
    x1: round(x),
    x2: round(x + SWATCH),
    y1: y,
    y2: y,
    stroke: 'currentColor',
    'stroke-width': 2,
    'stroke-dasharray': kind === 'dashes' ? (dash ?? '5 3') : dash,
  });
}
