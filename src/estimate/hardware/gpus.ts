/** Table of all accelerators, and the lookup by exact name. */

import { usageError } from '../../base/errors.js';
import { commandText, setting } from '../../base/text/setting.js';
import { nearest } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { AMD } from './amd.js';
import { GEFORCE } from './geforce.js';
import type { Gpu } from './gpu.js';
import { LAPTOPS } from './laptops.js';
import { NVIDIA_DATA_CENTER } from './nvidia.js';
import { NVIDIA_WORKSTATION } from './nvidia-workstation.js';
import { OTHER_MAKERS } from './other-makers.js';

export const GPUS: readonly Gpu[] = [
  ...NVIDIA_DATA_CENTER,
  ...NVIDIA_WORKSTATION,
  ...GEFORCE,
  ...LAPTOPS,
  ...AMD,
  ...OTHER_MAKERS,
];

/**
 * GPU by name; a user's file precedes the table.
 * @throws UserError with the nearest name if there is none.
 */
export function gpuNamed(name: string, more: readonly Gpu[] = []): Gpu {
  const found = [...more, ...GPUS].find((gpu) => gpu.name === name);
  if (found) return found;
  throw usageError(`unknown GPU ${quote(name)}`, nameSuggestion(name, [...more, ...GPUS]));
}

/** Suggestion for an unknown name. */
export function nameSuggestion(name: string, among: readonly { readonly name: string }[]): string {
  const names = among.map((each) => each.name);
  const lower = name.toLowerCase();
  if (names.includes(lower)) return `did you mean ${lower}?`;
  // A prefix such as `h100` has several matches, none of them close in spelling.
  const longer = names.filter((each) => each.startsWith(`${lower}-`));
  if (longer.length > 1) return `write one of ${longer.join(', ')}`;
  const [only = nearest(name, names)] = longer;
  return only ? `did you mean ${only}?` : `see ${commandText('fit')} ${setting('listGpus')}`;
}
