import type { Report } from './kit/report.js';

/** What was written, and what to do with it. */
export function initReport(written: {
  readonly preset: string;
  readonly family: string;
  readonly file: string;
}): Report {
  const { preset, family, file } = written;
  return {
    blocks: [
      {
        kind: 'table',
        columns: [
          { title: 'file', key: 'file', wrap: true },
          { title: 'preset', key: 'preset' },
        ],
        rows: [[{ text: file, tone: 'strong' }, { text: preset }]],
      },
      { kind: 'note', text: `Check it: minimind validate ${file}` },
      {
        kind: 'note',
        text: `Completion in an editor: minimind schema ${family} -o ${family}.schema.json`,
      },
    ],
  };
}
