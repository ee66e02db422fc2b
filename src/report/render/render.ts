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
