// Mutation test: changes the sources in small ways, one at a time, and reports the changes that no test notices.
//   npm run test:mutants -- [MUTANTS=40] [SEED=1] [FILE…]
// A mutant gets its nearest tests in groups until one fails. It exists only in the process that runs the tests, and not in
// dist/: tests of whole commands do not count. All tests must pass without a mutant. A survivor is a missing test or a change without effect.
import { spawn } from 'node:child_process';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
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

/** Test files of one process, and processes of a mutant. */
const [GROUP, GROUPS] = [4, 5];

/** Time of one process. An endless loop counts as noticed. */
const SECONDS = 240;

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

/** Exit code of vitest on a mutant; null after the time limit. */
function runTests(mutant, tests) {
  const vitest = path.join(root, 'node_modules/vitest/vitest.mjs');
  const flags = [
    'run',
    '--mode',
    'mutants',
    '--bail',
    '1',
    '--maxWorkers',
    '1',
    '--reporter',
    'dot',
  ];
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [vitest, ...flags, ...tests], {
      cwd: root,
      stdio: 'ignore',
      detached: true,
      env: { ...process.env, MINIMIND_MUTANT: JSON.stringify(mutant) },
    });
    const stop = () => process.kill(-child.pid, 'SIGKILL');
    const timer = setTimeout(stop, SECONDS * 1000);
    process.once('SIGINT', stop);
    child.on('close', (code) => {
      clearTimeout(timer);
      process.off('SIGINT', stop);
      resolve(code);
    });
  });
}

async function isKilled(mutant, tests) {
  for (let at = 0; at < Math.min(tests.length, GROUP * GROUPS); at += GROUP) {
    if ((await runTests(mutant, tests.slice(at, at + GROUP))) !== 0) return true;
  }
  return false;
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
for (const mutant of choose(all, randomFrom(Number(seed)))) {
  const file = path.relative(root, mutant.file).replaceAll(path.sep, '/');
  const tests = nearestTests(file, importers);
  const killed = await isKilled(mutant, tests);
  if (isInterrupted) break;
  results.push(killed);
  const change = `${oneLine(mutant.before)} → ${oneLine(mutant.after)}`;
  process.stdout.write(
    `${killed ? 'killed  ' : tests.length > 0 ? 'survived' : 'untested'}  ${file}:${mutant.line}  ${mutant.kind}: ${change}\n`,
  );
}
const killed = results.filter(Boolean).length;
process.stdout.write(`${killed} of ${results.length} mutants killed, of ${all.length} possible\n`);
process.exitCode = isInterrupted ? 130 : Number(killed < results.length);
