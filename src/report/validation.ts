import type { Problem } from '../errors.js';
import type { Report } from './kit/report.js';
import { formatInteger } from './kit/units.js';

interface ValidFile {
  readonly file: string;
  readonly family: string;
  readonly parameters: number;
  readonly warnings: readonly Problem[];
}

/** A line for each file. */
export function validationReport({ files }: { files: readonly ValidFile[] }): Report {
  return {
    blocks: [
      {
        kind: 'table',
        columns: [
          { title: 'file', key: 'file', wrap: true },
          { title: 'verdict', key: 'verdict' },
          { title: 'family', key: 'family' },
          { title: 'parameters', key: 'parameters', align: 'right' },
          { title: 'warnings', key: 'warnings', align: 'right' },
        ],
        rows: files.map(({ file, family, parameters, warnings }) => [
          { text: file },
          { text: 'valid', tone: 'good' },
          { text: family },
          { text: formatInteger(parameters), value: parameters },
          {
            text: warnings.length === 0 ? '–' : String(warnings.length),
            value: warnings.length,
            ...(warnings.length > 0 && { tone: 'warning' }),
          },
        ]),
      },
    ],
  };
}
