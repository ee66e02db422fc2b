/**
 * JSON as Python's `json` reads and writes it: RFC 8259, and the words NaN, Infinity and -Infinity
 * (docs.python.org/3/library/json.html, "Infinite and NaN Number Values"). Published configs have them.
 */

/** A text in quotes, closed or not, or a word of Python that is a value. */
const TOKEN = /"(?:[^"\\]|\\.)*(?:"|$)|(?<![\w.+-])(?:-?Infinity|NaN)(?![\w.+-]|\s*:)/gs;

/** A literal that JavaScript reads as an infinity. */
const INFINITE = '1e999';

/** @throws SyntaxError for another text. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    if (!/Infinity|NaN/.test(text)) throw cause;
    const mark = unusedMark(text);
    const standard = text.replace(TOKEN, (token) =>
      token === 'NaN' ? `"${mark}"` : token.replace(/^(-?)Infinity$/, `$1${INFINITE}`),
    );
    if (!standard.includes(mark)) return JSON.parse(standard);
    return JSON.parse(standard, (_key, value) => (value === mark ? Number.NaN : value));
  }
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
