/** Texts of all presets, which the build writes into the page of `explore`. */
import { presetNames, readPresetFile } from '../../input/model-input/locate.js';
import { publishedModels } from '../../input/published/published-file.js';
import { FAMILY_NAMES } from '../../model/architecture/families.js';

/** Pairs of a name and a text, by family. */
export function presetTexts(): [string, string][] {
  const published = publishedModels().map(({ preset }) => preset);
  const order = (name: string) => FAMILY_NAMES.findIndex((family) => name.startsWith(`${family}/`));
  const names = [...new Set([...presetNames(), ...published])];
  return names.sort((a, b) => order(a) - order(b)).map((name) => [name, readPresetFile(name).text]);
}
