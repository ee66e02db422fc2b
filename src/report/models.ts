import type { FamilySummary } from '../budget/family-counts.js';
import type { Problem } from '../errors.js';
import type { Report } from './kit/report.js';
import { formatInteger } from './kit/units.js';

/** The families, then a table of presets under the name of each that has any. */
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
