/** Ready configs of the package. Their files in `configs` are the only place of their sizes. */
import type { Preset } from './family.js';
import { PRESETS } from './preset-data.js';

/** Presets of a family in the order of lists; none for a family that has no folder in `configs`. */
export const presetsOf = (family: string): readonly Preset[] =>
  Object.hasOwn(PRESETS, family) ? (PRESETS[family] ?? []) : [];

/** @throws Error for a preset that the family does not have. */
export function presetDocument(family: string, name: string): Preset['document'] {
  const preset = presetsOf(family).find((each) => each.name === name);
  if (preset === undefined) throw new Error(`unknown preset ${family}/${name}`);
  return preset.document;
}
