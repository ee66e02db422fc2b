/** Counts of all presets, for lists. */
import {
  publishedDocument,
  publishedModels,
  publishedTitle,
} from '../input/published/published-file.js';
import { type FamilyName, loadFamily } from '../model/architecture/families.js';
import {
  describeFamilies,
  type FamilySummary,
  type PresetSummary,
} from '../model/budget/family-counts.js';
import { countParameters } from '../model/budget/parameters.js';

/** Every family with its presets and published models, which takes some seconds. */
export async function countFamilies(): Promise<FamilySummary[]> {
  const families = await describeFamilies();
  const models = publishedModels();
  return Promise.all(
    families.map(async (family) => {
      const { schema, build } = await loadFamily(family.name as FamilyName);
      const own = models.filter((each) => each.family === family.name);
      const inFiles = family.presets.map((preset): PresetSummary => {
        const published = own.find(({ name }) => name === preset.name);
        return published ? { ...preset, series: published.series } : preset;
      });
      const others = own
        .filter(({ row }) => row.preset === undefined)
        .map((model): PresetSummary => {
          const described = build(schema.parse(publishedDocument(model)));
          const { parameters } = countParameters(described);
          const { name, series } = model;
          return { name, title: publishedTitle(model, parameters), parameters, series };
        });
      return { ...family, presets: [...inFiles, ...others] };
    }),
  );
}
