/**
 * Loaded before a program (`node --import`): counts its operations on files, and kills it at one of them. MINIMIND_KILL
 * is `before:N` or `after:N`, 1-based, or `count:FILE` to write the number of operations into a file at the end.
 * MINIMIND_KILL_SIGNAL is the signal.
 */
import fs from 'node:fs';
import { watchOperations } from './operations.js';

const [when = '', argument = ''] = (process.env.MINIMIND_KILL ?? '').split(/:(.*)/s);
const signal = process.env.MINIMIND_KILL_SIGNAL as NodeJS.Signals;
const write = fs.writeFileSync;
let operations = 0;

function dieAt(moment: string): void {
  // After SIGKILL nothing of this process runs. SIGINT is handled later.
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
