/** Report of `minimind explore`. */
import { formatBytes } from '../base/text/units.js';
import type { ExploreResult } from './command-results.js';
import { noteOf, type Report } from './kit/report.js';

export function exploreReport({ model, against, file, url, bytes }: ExploreResult): Report {
  const models = against === null ? model : `${model} and ${against}`;
  if (file !== null) {
    return {
      verdict: { text: `Wrote ${file}`, tone: 'good' },
      blocks: [noteOf(`${models}, ${formatBytes(bytes)}: open the file in a browser.`)],
    };
  }
  return {
    verdict: { text: `${url}` },
    blocks: [noteOf(`${models}. Served to this machine only, until Ctrl-C.`)],
  };
}
