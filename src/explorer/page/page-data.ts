/** Data that the command and the build write into the page. */
import type { ExploredModel, ExplorerState } from '../explorer-state.js';
import { readState } from '../explorer-state.js';

export interface PageData {
  /** Models to begin with, by family. */
  readonly presets: readonly ExploredModel[];
  readonly state: ExplorerState;
}

export function readPage(): PageData {
  const presets: readonly (readonly [string, string])[] = jsonOf('presets');
  const state = readState(jsonOf('state'));
  if (state === undefined) throw new Error('a page without a state');
  return { presets: presets.map(([name, text]) => ({ name, text })), state };
}

function jsonOf(id: string) {
  return JSON.parse(document.getElementById(id)?.textContent ?? 'null');
}
