/** Text measured and laid out in terminal columns. All of it is `printable` text, without colours. */
import stringWidth from 'string-width';

/** Below this, lines stay as long: nobody reads at ten columns, and some terminals claim to have none. */
const NARROWEST = 20;

/** The columns to lay out for. A terminal that says 0 does not know its width. */
export function usableWidth(width: number): number {
  return width > 0 ? Math.max(NARROWEST, width) : Number.POSITIVE_INFINITY;
}

/**
 * Text of which each code unit is one character of one column: ASCII, and the signs, lines and blocks
 * that reports are drawn with. Nearly all text is; the rest needs tables that take milliseconds to load.
 */
const SIMPLE = /^[ -~×·–—−…→●\u2500-\u259f]*$/;

/** Columns that `text` takes on a terminal. */
export function textWidth(text: string): number {
  return SIMPLE.test(text) ? text.length : stringWidth(text);
}

let segmenter: Intl.Segmenter | undefined;

/** What a reader takes for characters: never to be torn apart. */
export function graphemes(text: string): string[] {
  if (SIMPLE.test(text)) return text.split('');
  segmenter ??= new Intl.Segmenter('en');
  return Array.from(segmenter.segment(text), ({ segment }) => segment);
}

/** `text` cut off at `width` columns. */
export function clip(text: string, width: number): string {
  return splitAt(graphemes(text), width)[0];
}

/**
 * `text` in lines of at most `width` columns, broken between words; a word is broken only when it is
 * longer than a line. Lines after the first begin with `hanging`, by default with as many spaces as the
 * text does. No line ends in a space. A word is broken behind a dot, slash, underscore or hyphen when that
 * leaves half a line or more.
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

/** `splitAt` for a word: names of tensors and files have joints, at which they are still read easily. */
function splitWord(characters: readonly string[], width: number): [string, string[]] {
  const [head, tail] = splitAt(characters, width);
  if (tail.length === 0) return [head, tail];
  const fitting = characters.length - tail.length;
  const joint = characters.slice(0, fitting).findLastIndex((character) => JOINTS.has(character));
  if (joint + 1 < fitting / 2) return [head, tail];
  return [characters.slice(0, joint + 1).join(''), characters.slice(joint + 1)];
}

/** As many characters as fit, at least one, and the rest. */
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
