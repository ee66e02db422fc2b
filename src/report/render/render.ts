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
