import type { FamilySummary } from '../budget/families.js';
import type { Report } from './report.js';
import { formatInteger } from './units.js';

/** A table of presets under the name of each family. */
export function familiesReport({ families }: { families: readonly FamilySummary[] }): Report {
  return {
    blocks: [
      ...families.flatMap(({ name, title, presets }) => [
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
        text: 'minimind init PRESET writes one of them as a commented file to start from.',
      },
    ],
  };
}
