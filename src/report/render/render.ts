import type { Format, RenderOptions, Report } from '../kit/report.js';

export type ReportFormat = Exclude<Format, 'json' | 'github'>;

type Renderer = (report: Report, options: RenderOptions) => string | Promise<string>;

/** Each renderer loads its dependencies on demand. */
const RENDERERS = {
  table: async () => (await import('./table.js')).renderTable,
  csv: async () => (await import('./csv.js')).renderCsv,
  markdown: async () => (await import('./markdown.js')).renderMarkdown,
  html: async () => (await import('./html.js')).renderHtml,
  mermaid: async () => (await import('./mermaid.js')).renderMermaid,
  svg: async () => (await import('./svg.js')).renderSvg,
} as const satisfies Record<ReportFormat, () => Promise<Renderer>>;

/**
 * Renders a report, ending with one newline. It escapes untrusted text from files in every format, so callers need not.
 */
export async function render(
  report: Report,
  format: ReportFormat,
  options: RenderOptions,
): Promise<string> {
  const renderer: Renderer = await RENDERERS[format]();
  return `${await renderer(report, options)}\n`;
}
