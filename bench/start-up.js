// What a command costs from cold, against a Node process that does nothing.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { installNode, NODE_VERSIONS, run as runProgram } from '../scripts/node-binaries.js';
import { compare, timeCommand } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const original = `${root}configs/hybrid/original.yaml`;

const COMMANDS = [
  { name: '--version', args: ['--version'] },
  { name: '--help', args: ['--help'], aim: 1.8 },
  { name: 'profile llama-3.1-8b', args: ['profile', 'llama-3.1-8b'], aim: 3 },
  {
    name: 'compare llama-3.1-8b qwen3-8b',
    args: ['compare', 'llama-3.1-8b', 'qwen3-8b'],
    aim: 3,
  },
  {
    name: 'fit llama-3.1-8b --gpu 4090',
    args: ['fit', 'llama-3.1-8b', '--gpu', '4090'],
    aim: 4.5,
  },
  { name: 'profile original.yaml', args: ['profile', original] },
  { name: 'validate original.yaml', args: ['validate', original] },
  { name: 'compare-srte original.yaml', args: ['compare-srte', original] },
];

export const title = 'Start-up: a whole command against `node -e 0`';

/** @param options `nodes`: whether to measure with several versions of Node, fetched from npm. */
export async function run({ nodes = false } = {}) {
  if (!nodes) return { results: measure(process.execPath, '') };
  const work = mkdtempSync(path.join(tmpdir(), 'minimind-node-'));
  try {
    const results = [];
    for (const version of NODE_VERSIONS) {
      const node = path.join(await installNode(version, work), 'node');
      const exact = await runProgram(node, ['--version'], { capture: true });
      results.push(...measure(node, `Node ${exact}: `));
    }
    return { results };
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

function measure(node, prefix) {
  const baseline = () => timeCommand([node, '-e', '0']);
  return COMMANDS.map(({ name, args, aim }) =>
    compare({
      name: `${prefix}minimind ${name}`,
      candidate: () => timeCommand([node, `${root}bin/run.js`, ...args]),
      baseline,
      aim,
    }),
  );
}
