/** Cells and blocks that reports are made of. */
import type { Figure } from '../../budget/figure.js';
import {
  formatBinaryBytes,
  formatBytes,
  formatFlops,
  formatInteger,
  formatShare,
} from '../../text/units.js';
import type { Block, Cell, Column } from './report.js';

export const heading = (text: string): Block => ({ kind: 'heading', text });
export const note = (text: string): Block => ({ kind: 'note', text, tone: 'dim' });
export const left = (title: string, key: string, wrap = false): Column => ({ title, key, wrap });
export const right = (title: string, key: string): Column => ({ title, key, align: 'right' });

/** Before what a file has as it is. */
export const CURRENT_MARK = '●';

export const strong = (text: string): Cell => ({ text, tone: 'strong' });

/** CSV holds integers beyond 2^53 − 1 as text, every digit. */
const exactValue = (value: number | bigint) => (typeof value === 'bigint' ? String(value) : value);

export const bytesCell = ({ value }: Pick<Figure, 'value'>): Cell => ({
  text: formatBytes(value),
  value: exactValue(value),
});
export const binaryCell = ({ value }: Pick<Figure, 'value'>): Cell => ({
  text: formatBinaryBytes(value),
  value: Number(value) / 2 ** 30,
});
export const integerCell = (value: number | bigint): Cell => ({
  text: formatInteger(value),
  value: exactValue(value),
});
export const flopsCell = (value: number | bigint): Cell => ({
  text: formatFlops(value),
  value: exactValue(value),
});
export const shareCell = (part: number | bigint, whole: number | bigint): Cell => ({
  text: formatShare(part, whole),
  value: Number(part) / Number(whole),
});

const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];

/**
 * A horizontal bar, `share` (0 to 1; beyond that it is cut) of `width` terminal columns long, to the
 * nearest eighth of a column.
 */
export function bar(share: number, width: number): string {
  const eighths = Math.round(Math.min(1, Math.max(0, share || 0)) * width * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + (EIGHTHS[eighths % 8] ?? '');
}

/**
 * Characters that a terminal obeys, or that a reader cannot see: controls (C0, DEL, C1), line and
 * paragraph separators, lone surrogates, and whatever Unicode says is drawn as nothing (zero-width and
 * bidirectional controls, fillers, tags), except the two selectors that choose an emoji's form.
 */
const UNPRINTABLE =
  /(?![\ufe0e\ufe0f])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

/** The same but line breaks, of which a long JSON text has so many that finding them takes its toll. */
const UNPRINTABLE_IN_LINE = new RegExp(`(?!\\n)${UNPRINTABLE.source}`, UNPRINTABLE.flags);

const SHORT_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

/**
 * `text` on one line, with nothing in it that could move a cursor, change a colour, reorder or hide
 * text: such characters become `\n`, `\r`, `\t`, `\x1b` or `\u{202e}`. Backslashes stay as they are, so
 * this is for people to read, not for programs to undo.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escapeCharacter);
}

/**
 * A JSON text with the same characters written as JSON's own `\uXXXX`, so that it parses to the same
 * value. Line breaks stay: in JSON they stand only between values.
 */
export function printableJson(json: string): string {
  return json.replace(UNPRINTABLE_IN_LINE, (character) => toUtf16(character));
}

function escapeCharacter(character: string): string {
  const short = SHORT_ESCAPES.get(character);
  if (short !== undefined) return short;
  const hex = (character.codePointAt(0) ?? 0).toString(16);
  return hex.length <= 2 ? `\\x${hex.padStart(2, '0')}` : `\\u{${hex}}`;
}

function toUtf16(character: string): string {
  return character
    .split('')
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`)
    .join('');
}
