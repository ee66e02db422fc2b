import type { FamilySummary } from '../budget/family-counts.js';
import type { Problem } from '../errors.js';
import type { OnnxValue } from '../runtime/engine.js';
import type { WrittenExport } from '../runtime/export-files.js';
import { formatBytes, formatInteger } from '../text/units.js';
import { counted } from '../text/words.js';
import { left, note } from './kit/cells.js';
import type { Cell, Report } from './kit/report.js';

/** The families, each followed by a table of its presets if there are any. */
export function familiesReport({ families }: { families: readonly FamilySummary[] }): Report {
  return {
    blocks: [
      { kind: 'heading', text: 'Families' },
      {
        kind: 'table',
        columns: [
          { title: 'model.family', key: 'family' },
          { title: 'config.json', key: 'hugging_face' },
          { title: 'what models these are', key: 'title', wrap: true },
        ],
        rows: families.map(({ name, title, huggingFace }) => [
          { text: name, tone: 'strong' as const },
          { text: huggingFace ? 'read' : '–', value: huggingFace },
          { text: title },
        ]),
      },
      ...families.filter(hasPresets).flatMap(({ name, title, presets }) => [
        { kind: 'heading' as const, text: `${name}: ${title}` },
        {
          kind: 'table' as const,
          columns: [
            { title: 'preset', key: 'preset' },
            { title: 'parameters', key: 'parameters', align: 'right' as const },
            { title: 'what it is', key: 'title', wrap: true },
          ],
          rows: presets.map((preset) => [
            { text: `${name}/${preset.name}`, tone: 'strong' as const },
            { text: formatInteger(preset.parameters), value: preset.parameters },
            { text: preset.title },
          ]),
        },
      ]),
      {
        kind: 'note',
        text:
          'minimind init PRESET writes one of them as a commented file to start from. A config.json of Hugging Face, ' +
          'or its folder, is taken wherever a config is, by its model_type.',
      },
    ],
  };
}

const hasPresets = ({ presets }: FamilySummary) => presets.length > 0;

/** The written file and next steps. */
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

interface ValidFile {
  readonly file: string;
  readonly family: string;
  readonly parameters: number;
  readonly warnings: readonly Problem[];
}

/** One row per file. */
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

// Report of `minimind export`: the files, inputs and outputs, and requirements for running them.

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
