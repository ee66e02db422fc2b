/** The families with their presets. */
import fs from 'node:fs';
import { codeOf } from '../base/files/file-system.js';
import type { FamilySummary } from '../model/budget/family-counts.js';

/** The build writes it into the folder above each built module. Above the sources there is none. */
const BUILT = new URL('../families.json', import.meta.url);

/** As the build counted them: building all presets takes over a second. From the sources, they are counted here. */
export async function listFamilies(): Promise<readonly FamilySummary[]> {
  try {
    return JSON.parse(fs.readFileSync(BUILT, 'utf8'));
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    const { describeFamilies } = await import('../model/budget/family-counts.js');
    return describeFamilies();
  }
}
