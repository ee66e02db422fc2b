/** What a graphics card is called. */
import { execFile } from 'node:child_process';
import util from 'node:util';

/** Where the library that computes on it does not tell. */
export const UNNAMED_CARD = 'graphics card';

/** Milliseconds. */
const PATIENCE = 5000;

/** What NVIDIA's driver says of its cards, a name in each line. */
async function askDriver(): Promise<string> {
  const words = ['--query-gpu=name', '--format=csv,noheader'];
  const { stdout } = await util.promisify(execFile)('nvidia-smi', words, { timeout: PATIENCE });
  return stdout;
}

/** The name of what CUDA computes on; which of several different cards that is, nobody says. */
export async function cudaCard(ask = askDriver): Promise<string> {
  const answer = await ask().catch(() => '');
  const names = new Set(answer.split('\n').map((line) => line.trim()));
  names.delete('');
  return [...names].join(' or ') || UNNAMED_CARD;
}
