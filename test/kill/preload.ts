/**
 * Loaded before a program (`node --import`): counts its operations on files, and kills it at one of them.
 * MINIMIND_KILL is `count:FILE`, to write how many there were into a file when the process ends, or
 * `before:N` or `after:N`, 1-based. MINIMIND_KILL_SIGNAL is what it is killed with.
 */
import fs from 'node:fs';
import { watchOperations } from './operations.js';

const [when = '', argument = ''] = (process.env.MINIMIND_KILL ?? '').split(/:(.*)/s);
const signal = process.env.MINIMIND_KILL_SIGNAL as NodeJS.Signals;
const write = fs.writeFileSync;
let operations = 0;

function dieAt(moment: string): void {
  // SIGKILL is no request: nothing of this process runs after it. SIGINT waits for its turn.
  if (moment === when && operations === Number(argument)) process.kill(process.pid, signal);
}

await watchOperations({
  before: () => {
    operations++;
    dieAt('before');
  },
  after: () => dieAt('after'),
});
if (when === 'count') process.on('exit', () => write(argument, String(operations)));
