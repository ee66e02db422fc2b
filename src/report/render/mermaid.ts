/** The diagram of a report in the language of Mermaid. */
import { mermaidDiagram } from '../draw/mermaid-diagram.js';
import { mainPictures, type Report } from '../kit/report.js';

/**
 * The diagram, without a final newline.
 * @throws Error for a report without a diagram, which is a bug.
 */
export function renderMermaid(report: Report): string {
  const diagram = mainPictures(report).find((picture) => picture.kind === 'diagram');
  if (diagram === undefined) throw new Error('a report without a diagram');
  return mermaidDiagram(diagram);
}
