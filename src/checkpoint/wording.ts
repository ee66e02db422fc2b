import { quoted } from './safetensors/wording.js';

const MAX_LISTED = 10;

/** Names out of a file or a folder, within a message: the first of them, and how many more there are. */
export function listed(names: readonly string[]): string {
  const shown = names.slice(0, MAX_LISTED).map(quoted).join(', ');
  const more = names.length - MAX_LISTED;
  return more > 0 ? `${shown} and ${more} more` : shown;
}
