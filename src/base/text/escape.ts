/**
 * Characters that a terminal interprets or a reader cannot see: controls (C0, DEL, C1), line and paragraph
 * separators, lone surrogates, and all invisible Unicode characters (zero-width and bidirectional controls,
 * fillers, tags). Excludes the two selectors of an emoji's form.
 */
const UNPRINTABLE =
  /(?![\ufe0e\ufe0f])[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu;

/** The same without line breaks: a long JSON text has many, and matching them is slow. */
const UNPRINTABLE_IN_LINE = new RegExp(`(?!\\n)${UNPRINTABLE.source}`, UNPRINTABLE.flags);

const SHORT_ESCAPES: ReadonlyMap<string, string> = new Map([
  ['\n', '\\n'],
  ['\r', '\\r'],
  ['\t', '\\t'],
]);

/**
 * `text` on one line, without characters that could move a cursor, change a colour, reorder or hide text. These
 * become `\n`, `\r`, `\t`, `\x1b` or `\u{202e}`. Backslashes are unchanged, so the result is for display and
 * cannot be decoded.
 */
export function printable(text: string): string {
  return text.replace(UNPRINTABLE, escapeCharacter);
}

/**
 * JSON text with the same characters written as JSON's own `\uXXXX`; it parses to the same value. Line breaks
 * stay, because JSON only has them between values.
 */
export function printableJson(json: string): string {
  // Nearly all JSON is ASCII, and this test takes a tenth of the time.
  if (/^[\n -~]*$/.test(json)) return json;
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

/**
 * `value` as JSON, indented by two spaces, with a final newline. Integers beyond ±(2^53 − 1), NaN and infinities
 * become strings, because JSON readers would lose them. Undefined fields are omitted. Invisible and terminal
 * control characters are written as `\uXXXX`.
 * @throws TypeError for values that are not data: a cycle, a function, undefined.
 */
export const toJson = (value: unknown): string => `${jsonText(value)}\n`;

/** The same without the final newline, so that a long text need not be copied to take a part of it. */
function jsonText(value: unknown): string {
  // Almost all values need no replacements, and without a function JSON.stringify takes a fifth of the time.
  const replacer = isExact(value, MOST_LEVELS) ? undefined : exactNumber;
  const json: string | undefined = JSON.stringify(value, replacer, 2);
  if (json === undefined) throw new TypeError(`${typeof value} is not JSON`);
  return printableJson(json);
}

/** Members of an object, and items of a list, that are written at a time. */
const PIECE_MEMBERS = 1000;

/** Text of `toJson` in pieces, because the text of a large object takes far more memory than the object. */
export function* jsonPieces(value: object): Generator<string> {
  let separator = '{';
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    yield* memberPieces(key, member, `${separator}\n`);
    separator = ',';
  }
  yield separator === '{' ? '{}\n' : '\n}\n';
}

function* memberPieces(key: string, member: unknown, separator: string): Generator<string> {
  const parts = partsOfMember(member);
  if (parts === undefined) {
    yield separator;
    yield inner(jsonText({ [key]: member }), 1);
    return;
  }
  const [open, close] = Array.isArray(member) ? '[]' : '{}';
  yield `${separator}  ${printableJson(JSON.stringify(key))}: ${open}`;
  let before = '\n';
  for (const part of parts) {
    // Nested in an object to get the indentation of one level deeper.
    yield before;
    yield inner(jsonText({ '': part }), 2);
    before = ',\n';
  }
  yield `\n  ${close}`;
}

/** Parts of a list or an object that is longer than a piece; undefined for other values. */
function partsOfMember(member: unknown): Iterable<object> | undefined {
  if (typeof member !== 'object' || member === null || 'toJSON' in member) return undefined;
  if (Array.isArray(member)) {
    return member.length > PIECE_MEMBERS ? slicesOf(member, (part) => part) : undefined;
  }
  const own = member as Readonly<Record<string, unknown>>;
  const keys = Object.keys(own).filter((name) => own[name] !== undefined);
  if (keys.length <= PIECE_MEMBERS) return undefined;
  return slicesOf(keys, (part) => {
    // Without a prototype, any name is a key of its own.
    const members: Record<string, unknown> = Object.create(null);
    for (const name of part) members[name] = own[name];
    return members;
  });
}

function* slicesOf<Item>(
  items: readonly Item[],
  of: (part: readonly Item[]) => object,
): Generator<object> {
  for (let at = 0; at < items.length; at += PIECE_MEMBERS) {
    yield of(items.slice(at, at + PIECE_MEMBERS));
  }
}

/** Lines of an object's JSON without the first and last `lines` lines. */
function inner(json: string, lines: number): string {
  let [from, to] = [0, json.length];
  for (let line = 0; line < lines; line++) {
    from = json.indexOf('\n', from) + 1;
    to = json.lastIndexOf('\n', to - 1);
  }
  return json.slice(from, to);
}

/** Depth to which values are searched for numbers that JSON cannot have. */
const MOST_LEVELS = 32;

/** Whether JSON has all numbers in a value of plain data, to a depth. */
function isExact(value: unknown, levels: number): boolean {
  if (typeof value === 'number') {
    return Number.isSafeInteger(value) || (Number.isFinite(value) && !Number.isInteger(value));
  }
  if (typeof value === 'bigint') return false;
  if (typeof value !== 'object' || value === null) return true;
  if (levels === 0 || 'toJSON' in value) return false;
  if (Array.isArray(value)) return value.every((each) => isExact(each, levels - 1));
  for (const key in value) {
    if (!isExact((value as Readonly<Record<string, unknown>>)[key], levels - 1)) return false;
  }
  return true;
}

function exactNumber(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value);
    return Number.isSafeInteger(number) ? number : String(value);
  }
  if (typeof value !== 'number') return value;
  if (!Number.isFinite(value)) return String(value);
  // All digits of the double, where String() would round: 2^63 is 9223372036854775808.
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? String(BigInt(value)) : value;
}

/**
 * Text whose code units each are one character of one column: ASCII, and the signs, lines and blocks of reports. Nearly
 * all text is.
 */
export const ONE_COLUMN_EACH = /^[ -~×·–—−…→●\u2500-\u259f]*$/;
