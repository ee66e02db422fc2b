/** The families with their presets. */
import fs from 'node:fs';
import { codeOf } from '../base/files/file-system.js';
import type { FamilySummary } from '../model/budget/family-counts.js';

/** File that the build writes into the folder above each built module. It does not exist above the sources. */
const BUILT = new URL('../families.json', import.meta.url);

/**
 * The families as counted by the build, because building all presets takes over a second. From the sources, they are
 * counted here.
 */
export async function listFamilies(): Promise<readonly FamilySummary[]> {
  try {
    return JSON.parse(fs.readFileSync(BUILT, 'utf8'));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    const { countFamilies } = await import('./count-families.js');
    return countFamilies();
  }
}
