// Benchmarks of this checkout and of another revision in turns: `npm run bench -- --compare REV`.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { median } from './measure.js';
import { aligned } from './table.js';

const root = fileURLToPath(new URL('..', import.meta.url));

/**
 * Prints the medians of both for each row of the benchmarks, and the ratio of this checkout to the other. The other one
 * is measured by the programs of this `bench/`.
 * @param pairs How often each of them runs a benchmark.
 */
export function compareRevisions({ revision, names, pairs }) {
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  const other = path.join(folder, 'other');
  try {
    checkOut(revision, other);
    const cells = names.flatMap((name) => {
      const rounds = Array.from({ length: pairs }, () => [rowsOf(root, name), rowsOf(other, name)]);
      return compared(name, rounds);
    });
    console.log(aligned(['', '', 'here', revision, 'ratio, median', 'least', 'most'], cells));
  } finally {
    spawnSync('git', ['-C', root, 'worktree', 'remove', '--force', other], { stdio: 'ignore' });
    rmSync(folder, { recursive: true, force: true });
  }
}

function checkOut(revision, place) {
  const call = (program, args, cwd) => execFileSync(program, args, { cwd, stdio: 'ignore' });
  console.error(`building ${revision}`);
  call('git', ['worktree', 'add', '--detach', place, revision], root);
  const [own, others] = [root, place].map((each) =>
    readFileSync(path.join(each, 'package-lock.json'), 'utf8'),
  );
  if (own === others)
    cpSync(path.join(root, 'node_modules'), path.join(place, 'node_modules'), {
      recursive: true,
      verbatimSymlinks: true,
    });
  else call('npm', ['ci', '--ignore-scripts'], place);
  call('npm', ['run', 'build'], place);
  cpSync(path.join(root, 'bench'), path.join(place, 'bench'), { recursive: true });
}

/** Rows of one run of a benchmark in a checkout, by their names; none where it cannot be run there. */
function rowsOf(place, name) {
  const words = [path.join(place, 'bench/run.js'), name, '--json'];
  const { status, stdout, stderr } = spawnSync(process.execPath, words, {
    cwd: place,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) {
    console.error(`${name} in ${place}: ${stderr.trim().split('\n').at(-1)}`);
    return new Map();
  }
  return new Map(JSON.parse(stdout).map((row) => [row.name, row]));
}

/** Milliseconds of what is measured, or a figure. */
const measuredIn = (row) => row.value ?? row.milliseconds.median.candidate;

function compared(benchmark, rounds) {
  const names = [...rounds[0][0].keys()];
  return names.flatMap((name) => {
    const found = rounds
      .map((both) => both.map((rows) => rows.get(name)))
      .filter((both) => both.every((row) => row !== undefined))
      .map((both) => both.map(measuredIn));
    if (found.length === 0) return [];
    const ratios = found.map(([here, other]) => here / other);
    const unit = rounds[0][0].get(name).unit ?? 'ms';
    const middle = (at) => `${median(found.map((both) => both[at])).toPrecision(3)} ${unit}`;
    const told = [median(ratios), Math.min(...ratios), Math.max(...ratios)];
    return [
      [benchmark, name, middle(0), middle(1), ...told.map((ratio) => `${ratio.toFixed(2)} ×`)],
    ];
  });
}
