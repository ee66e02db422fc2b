// Mutation test: changes the sources in small ways, one at a time, and reports the changes that no test notices.
//   npm run test:mutants -- [MUTANTS=40] [SEED=1] [FILE…]
// A mutant gets its nearest tests in groups until one fails that passes without it. It exists only in the process that runs
// the tests, which take commands from the sources, and not in dist/: tests that start the built program do not count. A
// survivor is a missing test or a change without effect.
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { createVitest } from 'vitest/node';
import { mutantsOf } from './mutants.js';
import { nearestTests, readImporters } from './nearest-tests.js';

const FOLDERS = [
  'src/model/architecture',
  'src/model/budget',
  'src/model/operations',
  'src/estimate/fit',
  'src/estimate/hardware',
  'src/estimate/plan',
  'src/estimate/comparison',
  'src/estimate/training',
  'src/checkpoint',
  'src/model/quantization',
];

const KINDS = ['number', 'comparison', 'arithmetic', 'condition', 'result', 'removal'];

/** Test files of one run, and runs of a mutant. */
const [GROUP, GROUPS] = [4, 5];

/** Time of one run. An endless loop counts as noticed. */
const SECONDS = 900;

const root = fileURLToPath(new URL('../..', import.meta.url));
const [count = '40', seed = '1', ...only] = process.argv.slice(2);

/** Random numbers below 1 from a seed (mulberry32). */
function randomFrom(start) {
  let state = start >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let hash = Math.imul(state ^ (state >>> 15), state | 1);
    hash ^= hash + Math.imul(hash ^ (hash >>> 7), hash | 61);
    return ((hash ^ (hash >>> 14)) >>> 0) / 2 ** 32;
  };
}

function sourceFiles() {
  if (only.length > 0) return only;
  return FOLDERS.flatMap((folder) =>
    readdirSync(path.join(root, folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => `${folder}/${name.replaceAll(path.sep, '/')}`)
      .sort(),
  );
}

/** Mutants of all kinds in turn, each once. */
function choose(all, random) {
  const byKind = KINDS.map((kind) => all.filter((each) => each.kind === kind));
  const chosen = [];
  for (let turn = 0; chosen.length < Math.min(Number(count), all.length); turn++) {
    const left = byKind[turn % KINDS.length];
    if (left.length > 0) chosen.push(...left.splice(Math.floor(random() * left.length), 1));
  }
  return chosen;
}

/** Runs the tests of mutants in one instance of vitest, which keeps the modules that it has transformed. */
class Tests {
  #vitest;
  #ended = [];
  /** Whether each test file passes without a mutant. */
  #passes = new Map();

  async open() {
    const onTestModuleEnd = (module) => this.#ended.push(module);
    // Only failures count: on a busy machine, a time limit of a test would look like one.
    const limits = { testTimeout: 1000 * SECONDS, hookTimeout: 1000 * SECONDS };
    const options = { mode: 'mutants', watch: false, bail: 1, maxWorkers: 1, ...limits };
    this.#vitest = await createVitest('test', { ...options, reporters: [{ onTestModuleEnd }] });
  }

  close() {
    return this.#vitest.close();
  }

  /** The first of these test files that fails; `null` after the time limit, undefined where all pass. */
  async #failing(mutant, tests) {
    const vitest = this.#vitest;
    process.env.MINIMIND_MUTANT = JSON.stringify(mutant);
    if (mutant.file) vitest.invalidateFile(mutant.file);
    // The number of failures that ends a run would count those of earlier mutants.
    vitest.state.filesMap.clear();
    vitest.state.idMap.clear();
    this.#ended = [];
    const specifications = await vitest.globTestSpecifications(tests);
    let isLate = false;
    const stop = async () => {
      isLate = true;
      vitest.cancelCurrentRun('keyboard-input');
      // The second time kills a process that does not answer.
      await vitest.cancelCurrentRun('keyboard-input');
    };
    const timer = setTimeout(stop, SECONDS * 1000);
    try {
      await vitest.runTestSpecifications(specifications, false);
    } finally {
      clearTimeout(timer);
      process.env.MINIMIND_MUTANT = '{}';
      if (mutant.file) vitest.invalidateFile(mutant.file);
      process.exitCode = 0;
    }
    if (isLate) return null;
    const failed = this.#ended.find((module) => module.state() === 'failed');
    return failed && path.relative(root, failed.moduleId).replaceAll(path.sep, '/');
  }

  async #passesAlone(test) {
    if (!this.#passes.has(test)) {
      this.#passes.set(test, (await this.#failing({}, [test])) === undefined);
      if (!this.#passes.get(test))
        process.stdout.write(`left out, fails without a mutant: ${test}\n`);
    }
    return this.#passes.get(test);
  }

  /** The test file that notices a mutant, "time limit", or undefined. */
  async killer(mutant, tests) {
    for (let at = 0; at < Math.min(tests.length, GROUP * GROUPS); at += GROUP) {
      let left = tests.slice(at, at + GROUP).filter((test) => this.#passes.get(test) !== false);
      while (left.length > 0) {
        const failing = await this.#failing(mutant, left);
        if (failing === undefined) break;
        if (failing === null) return 'time limit';
        if (await this.#passesAlone(failing)) return failing;
        left = left.filter((test) => test !== failing);
      }
    }
    return undefined;
  }
}

let isInterrupted = false;
process.on('SIGINT', () => {
  isInterrupted = true;
});

const oneLine = (text) => text.replaceAll(/\s+/g, ' ').slice(0, 60);
const importers = readImporters(root);
const all = sourceFiles().flatMap((file) => {
  const whole = path.join(root, file);
  return mutantsOf(whole, readFileSync(whole, 'utf8'));
});
const results = [];
const tests = new Tests();
await tests.open();
for (const mutant of choose(all, randomFrom(Number(seed)))) {
  const file = path.relative(root, mutant.file).replaceAll(path.sep, '/');
  const nearest = nearestTests(file, importers);
  const killer = await tests.killer(mutant, nearest);
  if (isInterrupted) break;
  results.push(killer !== undefined);
  const change = `${oneLine(mutant.before)} → ${oneLine(mutant.after)}`;
  process.stdout.write(
    `${killer ? 'killed  ' : nearest.length > 0 ? 'survived' : 'untested'}  ${file}:${mutant.line}  ${mutant.kind}: ${change}${killer ? `  (${killer})` : ''}\n`,
  );
}
await tests.close();
const killed = results.filter(Boolean).length;
process.stdout.write(`${killed} of ${results.length} mutants killed, of ${all.length} possible\n`);
process.exitCode = isInterrupted ? 130 : Number(killed < results.length);
