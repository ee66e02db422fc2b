/** Data that the command and the build write into the page. */
import type { ExploredModel, ExplorerState } from '../explorer-state.js';
import { readState } from '../explorer-state.js';
import { unpackedText } from './unpack.js';

export interface PageData {
  /** Models to begin with, by family. */
  readonly presets: readonly ExploredModel[];
  readonly state: ExplorerState;
}

export async function readPage(): Promise<PageData> {
  const presets: readonly (readonly [string, string])[] = JSON.parse(await unpackedText('presets'));
  const state = readState(JSON.parse(document.getElementById('state')?.textContent ?? 'null'));
  if (state === undefined) throw new Error('a page without a state');
  return { presets: presets.map(([name, text]) => ({ name, text })), state };
}
