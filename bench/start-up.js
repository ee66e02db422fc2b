// What a command costs from cold, against a Node process that does nothing.
import { fileURLToPath } from 'node:url';
import { compare, timeCommand } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const minimind = (...args) => [process.execPath, `${root}bin/run.js`, ...args];
const original = `${root}configs/hybrid/original.yaml`;

const COMMANDS = [
  { name: 'minimind --version', command: minimind('--version') },
  { name: 'minimind --help', command: minimind('--help') },
  { name: 'minimind validate original.yaml', command: minimind('validate', original) },
  { name: 'minimind compare-srte original.yaml', command: minimind('compare-srte', original) },
];

export const title = 'Start-up: a whole command against `node -e 0`';

export function run() {
  const baseline = () => timeCommand([process.execPath, '-e', '0']);
  return COMMANDS.map(({ name, command, aim }) =>
    compare({ name, candidate: () => timeCommand(command), baseline, aim }),
  );
}
