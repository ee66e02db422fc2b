/** Runs before each test file. */
import fc from 'fast-check';
import { afterAll, afterEach, beforeEach } from 'vitest';
import { spellAsFlags } from '../src/cli/flag-spelling.js';
import { endFile, endTest } from './cleanup.js';
import './equal-numbers.js';
import { isWhole } from './sampled.js';
import { shortenFailure } from './short-failures.js';

// A process of shared files has the program twice, built and as sources, each with cleanup at the exit.
process.setMaxListeners(20);

// The same change passes or fails again; `npm run test:sweeps` looks for other values.
if (!isWhole) fc.configureGlobal({ ...fc.readConfigureGlobal(), seed: 1 });

// As the command line does: most tests read the texts of its answers.
spellAsFlags();
afterEach(endTest);
afterEach(({ task }) => task.result?.errors?.forEach(shortenFailure));
// Thousands of files take long to remove on a busy machine.
afterAll(endFile, 120_000);

/** Memory of a process that has loaded a command. */
const COMMAND_BYTES = 80e6;

/** Memory of the process at the start of the test. Memory of earlier tests does not belong to the command. */
let testBytes = 0;

const measured = process.memoryUsage.rss as (() => number) & { ofProcess?: () => number };
// Files that share a process run this file again.
const rss = measured.ofProcess ?? measured;
process.memoryUsage.rss = Object.assign(() => COMMAND_BYTES + Math.max(0, rss() - testBytes), {
  ofProcess: rss,
});
beforeEach(() => {
  testBytes = rss();
});
