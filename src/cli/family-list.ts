/** The families with their presets. */
import fs from 'node:fs';
import type { FamilySummary } from '../budget/family-counts.js';
import { codeOf } from '../files/file-system.js';

/** The build writes it into the folder above each built module. Above the sources there is none. */
const BUILT = new URL('../families.json', import.meta.url);

/** As the build counted them: building all presets takes over a second. From the sources, they are counted here. */
export async function listFamilies(): Promise<readonly FamilySummary[]> {
  try {
    return JSON.parse(fs.readFileSync(BUILT, 'utf8'));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    const { describeFamilies } = await import('../budget/family-counts.js');
    return describeFamilies();
  }
}
