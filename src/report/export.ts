/** What `minimind export` prints: the files, what goes in and comes out, and what a program needs to run them. */
import type { OnnxValue } from '../runtime/engine.js';
import type { WrittenExport } from '../runtime/export-files.js';
import { formatBytes, formatInteger } from '../text/units.js';
import { counted } from '../text/words.js';
import { left, note } from './kit/cells.js';
import type { Cell, Report } from './kit/report.js';

interface ExportResult extends WrittenExport {
  readonly config: string;
  readonly family: string;
  readonly checkpoint: string | null;
  readonly seed: number | null;
  readonly positions: number;
}

export function exportReport(result: ExportResult): Report {
  return {
    blocks: [
      { kind: 'heading', text: `done: ${result.files[0]?.path ?? ''}`, tone: 'good' },
      note(`${result.config} (${result.family}), ${weightsText(result)}.`),
      {
        kind: 'table',
        columns: [left('what', 'what'), left('name', 'name', true), left('is', 'is', true)],
        rows: rowsOf(result),
      },
      note(
        `Batch and sequence are free; the model was made for at most ${counted(result.positions, 'token')}. The ` +
          'operators of com.microsoft need ONNX Runtime, in whichever language.',
      ),
    ],
  };
}

const weightsText = ({ checkpoint, seed }: ExportResult): string =>
  checkpoint === null ? `random weights, seed ${seed}` : `weights of ${checkpoint}`;

function rowsOf({ files, inputs, outputs, operatorSets, operators, weights }: ExportResult) {
  const row = (what: string, name: string, is: string): Cell[] =>
    [what, name, is].map((text) => ({ text }));
  const nodes = (domain: string) => {
    const own = operators.filter((each) => each.domain === domain);
    const count = own.reduce((sum, each) => sum + each.count, 0);
    return `${counted(count, 'node')} of ${counted(own.length, 'operator')}`;
  };
  return [
    ...files.map(({ path, bytes }) => row('file', path, formatBytes(bytes))),
    ...inputs.map((each) => row('input', each.name, valueText(each))),
    ...outputs.map((each) => row('output', each.name, valueText(each))),
    ...operatorSets.map(({ domain, version }) =>
      row('operators', domain, `version ${version}: ${nodes(domain)}`),
    ),
    row(
      'weights',
      'float32',
      `${counted(weights.tensors, 'tensor')}, ${formatInteger(weights.elements)} values, ${formatBytes(weights.bytes)}`,
    ),
  ];
}

const valueText = ({ type, shape }: OnnxValue): string => `${type} [${shape.join(', ')}]`;
