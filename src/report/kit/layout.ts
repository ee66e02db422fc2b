/**
 * Layout of text in terminal columns: widths, wrapping, cutting. All text is `printable` and without colours. The
 * tables of characters take milliseconds to load, so only renderers import this file.
 */
import stringWidth from 'string-width';
import { ONE_COLUMN_EACH } from '../../base/text/escape.js';

/** Minimum line width: narrower lines are unreadable, and some terminals report 0. */
const NARROWEST = 20;

/** Columns for the layout. A terminal that reports 0 does not know its width. */
export function usableWidth(width: number): number {
  return width > 0 ? Math.max(NARROWEST, width) : Number.POSITIVE_INFINITY;
}

/** Columns of `text` on a terminal. */
export function textWidth(text: string): number {
  return ONE_COLUMN_EACH.test(text) ? text.length : stringWidth(text);
}

let segmenter: Intl.Segmenter | undefined;

/** User-perceived characters, which must not be split. */
export function graphemes(text: string): string[] {
  if (ONE_COLUMN_EACH.test(text)) return text.split('');
  segmenter ??= new Intl.Segmenter('en');
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** Cuts `text` at `width` columns. */
export function clip(text: string, width: number): string {
  return splitAt(graphemes(text), width)[0];
}

/** `layers.0.mlp…down_proj.weight`: cuts the middle of `text`, so that it takes at most `width` columns. */
export function cutMiddle(text: string, width: number): string {
  if (textWidth(text) <= width) return text;
  const characters = graphemes(text);
  const end = Math.max(1, Math.floor((width - 1) / 2));
  const [reversed] = splitAt(characters.toReversed(), end);
  return `${clip(text, Math.max(1, width - 1 - end))}…${graphemes(reversed).reverse().join('')}`;
}

/**
 * Wraps `text` to lines of at most `width` columns, between words; only a word longer than a line is broken. Later
 * lines begin with `hanging`, by default the indentation of the text. No line ends in a space. A word is broken after a
 * dot, slash, underscore or hyphen when that leaves half a line or more.
 */
export function wrap(text: string, width: number, hanging?: string): string[] {
  const whole = text.trimEnd();
  if (width === Number.POSITIVE_INFINITY || textWidth(whole) <= width) return [whole];
  const leading = ' '.repeat(whole.length - whole.trimStart().length);
  const [first, later] = [leading, hanging ?? leading].map((indent) =>
    indent.length * 2 <= width ? indent : '',
  ) as [string, string];

  const lines: string[] = [];
  let line: string | undefined;
  for (const [, gap = '', word = ''] of whole.trimStart().matchAll(/( *)([^ ]+)/g)) {
    const joined = line === undefined ? first + word : line + gap + word;
    if (textWidth(joined) <= width) {
      line = joined;
      continue;
    }
    if (line !== undefined) lines.push(line);
    let rest = graphemes(word);
    for (;;) {
      const indent = lines.length === 0 ? first : later;
      const [head, tail] = splitWord(rest, width - indent.length);
      line = indent + head;
      if (tail.length === 0) break;
      lines.push(line);
      rest = tail;
    }
  }
  if (line !== undefined) lines.push(line);
  return lines.map((each) => each.trimEnd());
}

const JOINTS: ReadonlySet<string> = new Set(['.', '/', '_', '-']);

/** `splitAt` for a word: prefers the separators in names of tensors and files. */
function splitWord(characters: readonly string[], width: number): [string, string[]] {
  const [head, tail] = splitAt(characters, width);
  if (tail.length === 0) return [head, tail];
  const fitting = characters.length - tail.length;
  const joint = characters.slice(0, fitting).findLastIndex((character) => JOINTS.has(character));
  if (joint + 1 < fitting / 2) return [head, tail];
  return [characters.slice(0, joint + 1).join(''), characters.slice(joint + 1)];
}

/** The characters that fit, at least one, and the rest. */
function splitAt(characters: readonly string[], width: number): [string, string[]] {
  let used = 0;
  let count = 0;
  for (const character of characters) {
    used += textWidth(character);
    if (used > width && count > 0) break;
    count++;
  }
  return [characters.slice(0, count).join(''), characters.slice(count)];
}
