import { printableJson } from '../kit/cells.js';
import type { Format, RenderOptions, Report } from '../kit/report.js';

/** Formats that are made of a report. */
export type ReportFormat = Exclude<Format, 'json'>;

type Renderer = (report: Report, options: RenderOptions) => string;

/** Each loads what it needs only when it is asked for. */
const RENDERERS = {
  table: async () => (await import('./table.js')).renderTable,
  csv: async () => (await import('./csv.js')).renderCsv,
  markdown: async () => (await import('./markdown.js')).renderMarkdown,
} as const satisfies Record<ReportFormat, () => Promise<Renderer>>;

/**
 * What a report looks like, ending with one newline. Text out of strangers' files is made harmless here,
 * whatever the format: no caller has to think of it.
 */
export async function render(
  report: Report,
  format: ReportFormat,
  options: RenderOptions,
): Promise<string> {
  const renderer: Renderer = await RENDERERS[format]();
  return `${renderer(report, options)}\n`;
}

/**
 * `value` as JSON, indented by two spaces, with a newline at its end. Integers beyond ±(2^53 − 1), NaN and
 * infinities become strings, because JSON's readers would lose them; fields that are undefined are left
 * out; characters that are invisible or obeyed by terminals are written as `\uXXXX`.
 * @throws TypeError for what is no data: a cycle, a function, undefined.
 */
export function toJson(value: unknown): string {
  const json: string | undefined = JSON.stringify(value, exactNumber, 2);
  if (json === undefined) throw new TypeError(`${typeof value} is not JSON`);
  return `${printableJson(json)}\n`;
}

/** Members of an object that are written at a time. */
const PIECE_MEMBERS = 1000;

/** The text of `toJson` in pieces: that of an object with many members takes far more memory than the object. */
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
  const isObject = typeof member === 'object' && member !== null && !Array.isArray(member);
  const own = isObject ? (member as Readonly<Record<string, unknown>>) : {};
  const keys = Object.keys(own).filter((name) => own[name] !== undefined);
  if (keys.length <= PIECE_MEMBERS) {
    yield separator + inner(toJson({ [key]: member }), 1);
    return;
  }
  yield `${separator}  ${printableJson(JSON.stringify(key))}: {`;
  for (let at = 0; at < keys.length; at += PIECE_MEMBERS) {
    const part = keys.slice(at, at + PIECE_MEMBERS).map((name) => [name, own[name]]);
    // One level deeper than it would be alone, as its indentation says.
    yield `${at === 0 ? '\n' : ',\n'}${inner(toJson({ '': Object.fromEntries(part) }), 2)}`;
  }
  yield '\n  }';
}

/** The lines of an object's JSON without the first and last so many. */
function inner(json: string, lines: number): string {
  let [from, to] = [0, json.length - 1];
  for (let line = 0; line < lines; line++) {
    from = json.indexOf('\n', from) + 1;
    to = json.lastIndexOf('\n', to - 1);
  }
  return json.slice(from, to);
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
