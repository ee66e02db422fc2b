/**
 * JSON as Python's `json` reads and writes it: RFC 8259, and the words NaN, Infinity and -Infinity
 * (docs.python.org/3/library/json.html, "Infinite and NaN Number Values"). Published configs have them.
 */

/**
 * Bounds of a text that is read whole. For each level of nesting, `JSON.parse` takes a kilobyte that V8 does not count.
 * A list or an object takes up to fifty times the memory of its two characters. The largest tokenizers have 500,000
 * lists and 600,000 keys.
 */
const JSON_BOUNDS = {
  depth: 512,
  lists: 2_000_000,
  keys: 1_000_000,
  words: 1_000_000,
} as const;

/** A word of Python that is a value, and its place in a text. */
interface Word {
  readonly at: number;
  readonly text: 'NaN' | 'Infinity';
}

const WORD = /(?:Infinity|NaN)(?![\w.+-]|\s*:)/y;
const QUOTE = 34;
const BACKSLASH = 92;

/** End of a text in quotes, after its closing quote. */
function endOfString(text: string, start: number): number {
  for (let at = start + 1; ; at++) {
    at = text.indexOf('"', at);
    if (at < 0) return text.length;
    let escapes = 0;
    while (text.charCodeAt(at - 1 - escapes) === BACKSLASH) escapes++;
    if (escapes % 2 === 0) return at + 1;
  }
}

/** @returns The words that JSON lacks. @throws SyntaxError for a text beyond the bounds. */
function scanned(text: string): readonly Word[] {
  const words: Word[] = [];
  let [depth, lists, keys] = [0, 0, 0];
  for (let at = 0; at < text.length; at++) {
    switch (text.charCodeAt(at)) {
      case QUOTE:
        at = endOfString(text, at) - 1;
        break;
      case 58: // :
        if (++keys > JSON_BOUNDS.keys) throw tooMany('keys', JSON_BOUNDS.keys);
        break;
      case 91: // [
      case 123: // {
        if (++depth > JSON_BOUNDS.depth) {
          throw new SyntaxError(`it nests values more than ${JSON_BOUNDS.depth} deep`);
        }
        if (++lists > JSON_BOUNDS.lists) throw tooMany('lists and objects', JSON_BOUNDS.lists);
        break;
      case 93: // ]
      case 125: // }
        depth--;
        break;
      case 73: // I
      case 78: {
        WORD.lastIndex = at;
        const word = WORD.exec(text)?.[0];
        // A part of a longer word stays, and is an error for JSON.parse.
        if (word === undefined || /[\w.+]/.test(text[at - 1] ?? '')) break;
        if (words.length >= JSON_BOUNDS.words) throw tooMany('NaN and Infinity', JSON_BOUNDS.words);
        words.push({ at, text: word as Word['text'] });
        at += word.length - 1;
      }
    }
  }
  return words;
}

const tooMany = (what: string, most: number) =>
  new SyntaxError(`it has more than ${most.toLocaleString('en-US')} ${what}`);

/** A literal that JavaScript reads as an infinity. */
const INFINITE = '1e999';

/** @throws SyntaxError for another text, and for one beyond `JSON_BOUNDS`. */
export function parseJson(text: string): unknown {
  const words = scanned(text);
  if (words.length === 0) return JSON.parse(text);
  const mark = unusedMark(text);
  const parts: string[] = [];
  let from = 0;
  for (const word of words) {
    parts.push(text.slice(from, word.at), word.text === 'NaN' ? `"${mark}"` : INFINITE);
    from = word.at + word.text.length;
  }
  const standard = parts.join('') + text.slice(from);
  return withNaN(JSON.parse(standard), mark);
}

/** The value with NaN for each mark. `JSON.parse` with a function takes minutes for a long list. */
function withNaN(value: unknown, mark: string): unknown {
  if (value === mark) return Number.NaN;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) {
      if (value[at] === mark) value[at] = Number.NaN;
      else if (typeof value[at] === 'object') withNaN(value[at], mark);
    }
  } else if (typeof value === 'object' && value !== null) {
    const members = value as Record<string, unknown>;
    for (const key of Object.keys(members)) {
      // A plain assignment to __proto__ would not change the member.
      if (members[key] === mark) Object.defineProperty(members, key, { value: Number.NaN });
      else if (typeof members[key] === 'object') withNaN(members[key], mark);
    }
  }
  return value;
}

/** The value of a JSON text; undefined for another text. */
export function jsonOrUndefined(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return undefined;
  }
}

/** Like `JSON.stringify`, which writes null for numbers that are not finite. */
export function formatJson(value: unknown, indent?: number | string): string {
  let isPlain = true;
  const plain = JSON.stringify(
    value,
    (_key, each) => {
      isPlain &&= typeof each !== 'number' || Number.isFinite(each);
      return each;
    },
    indent,
  );
  if (isPlain) return plain;
  const mark = unusedMark(plain);
  const marked = JSON.stringify(
    value,
    (_key, each) => (typeof each === 'number' && !Number.isFinite(each) ? `${mark}${each}` : each),
    indent,
  );
  return marked.replaceAll(new RegExp(`"${mark}(NaN|-?Infinity)"`, 'g'), '$1');
}

/** A word that is not in `text`. */
function unusedMark(text: string): string {
  let mark = 'number:';
  while (text.includes(mark)) mark = `number-${mark}`;
  return mark;
}
