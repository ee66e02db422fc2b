/** Kills a program that writes an output at many moments, and checks the files that it leaves. */
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildSync } from 'esbuild';

/** Ends a program at once, or like Ctrl-C, which it can handle. */
type KillSignal = 'SIGKILL' | 'SIGINT';

/** A program to kill. All paths are within the folder of a run, which is created anew for each kill. */
export interface KillTest {
  /** Puts the inputs and an old output into the folder. */
  readonly prepare: (folder: string) => void;
  /** Arguments of `node`: a script and its own arguments. */
  readonly args: (folder: string) => readonly string[];
  /** The same to resume, again with --force where an old output is replaced. */
  readonly resumeArgs: (folder: string) => readonly string[];
  /** Relative paths of the output: the main file or folder first, then companions. */
  readonly output: readonly [string, ...string[]];
  /** Kills from outside, spread over the duration of a run. */
  readonly kills: number;
  /** SIGKILL by default. */
  readonly signal?: KillSignal | undefined;
  /** Kills at operations: before or after those at these positions, from 0 to 1 of all; or before and after each. */
  readonly operations: readonly number[] | 'each';
}

/** Counts of the states after kills. */
export interface KillReport {
  operations: number;
  old: number;
  new: number;
  /** Runs that had ended before they could be killed. */
  ended: number;
}

type Hashes = Readonly<Record<string, string>>;

/**
 * Kills a program and checks each time that the old or the new output is whole, in its place or in the staging folder.
 * Nothing else may have changed. A resumed run must end with the same files as an undisturbed one.
 * @throws Error that names the failed kill.
 */
export async function runKills(test: KillTest): Promise<KillReport> {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-kill-'));
  try {
    return await killAll(test, root, bundled('preload.ts', root));
  } finally {
    fs.rmSync(root, { recursive: true, force: true });
  }
}

/** Bundles a TypeScript module of this folder into a program that `node` can run. */
export function bundled(name: string, folder: string): string {
  const outfile = path.join(folder, name.replace('.ts', '.mjs'));
  const entry = fileURLToPath(new URL(name, import.meta.url));
  buildSync({ entryPoints: [entry], outfile, bundle: true, platform: 'node', format: 'esm' });
  return outfile;
}

async function killAll(test: KillTest, root: string, preload: string): Promise<KillReport> {
  const { signal = 'SIGKILL' } = test;
  const folder = path.join(root, 'run');
  const renew = () => {
    fs.rmSync(folder, { recursive: true, force: true });
    fs.mkdirSync(folder);
    test.prepare(folder);
  };
  const start = (args: readonly string[], kill = '') =>
    spawn(process.execPath, [...(kill ? ['--import', preload] : []), ...args], {
      cwd: folder,
      env: { ...process.env, MINIMIND_KILL: kill, MINIMIND_KILL_SIGNAL: signal },
      stdio: ['ignore', 'ignore', 'pipe'],
    });

  renew();
  const before = hashesIn(folder);
  const counted = path.join(root, 'operations');
  await succeed(start(test.args(folder), `count:${counted}`));
  const operations = Number(fs.readFileSync(counted, 'utf8'));
  const undisturbed = hashesIn(folder);

  renew();
  const begun = performance.now();
  await succeed(start(test.args(folder)));
  const duration = performance.now() - begun;
  expectEqual(hashesIn(folder), undisturbed, 'two undisturbed runs');

  const report: KillReport = { operations, old: 0, new: 0, ended: 0 };
  const check = async (child: ChildProcess, when: string) => {
    const end = await ended(child);
    const left = hashesIn(folder);
    const isHandled = signal === 'SIGINT' && end.code === INTERRUPTED;
    if (isHandled) expectTidy(test.output, left, end, when);
    else if (end.signal !== signal) {
      expectSuccess(end, when);
      report.ended++;
    }
    const state = stateOf(test.output, before, undisturbed, left, when);
    report[state]++;
    const resumed = await ended(start(test.resumeArgs(folder)));
    // A run may refuse to replace a complete output: without a journal, nothing shows that it is the one to resume.
    const isDone = state === 'new' && !(journalOf(test.output) in left);
    if (!isDone || resumed.code !== USAGE) expectSuccess(resumed, `resumed after ${when}`);
    expectEqual(hashesIn(folder), undisturbed, `resumed after ${when}`);
  };
  for (const point of killPoints(operations, test.operations)) {
    renew();
    await check(start(test.args(folder), point), point);
  }
  for (let kill = 0; kill < test.kills; kill++) {
    renew();
    const delay = ((kill + Math.random()) / test.kills) * duration;
    const child = start(test.args(folder));
    const timer = setTimeout(() => child.kill(signal), delay);
    await check(child, `killed after ${delay.toFixed(1)} of ${duration.toFixed(1)} ms`);
    clearTimeout(timer);
  }
  return report;
}

function killPoints(operations: number, requested: KillTest['operations']): string[] {
  const around = (operation: number) => [`before:${operation + 1}`, `after:${operation + 1}`];
  if (requested === 'each') return Array.from({ length: operations }, (_, i) => around(i)).flat();
  return requested.flatMap((place) => {
    const operation = Math.floor(place * operations);
    return around(operation)[operation % 2] ?? [];
  });
}

interface End {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stderr: string;
}

function ended(child: ChildProcess): Promise<End> {
  let stderr = '';
  child.stderr?.on('data', (text) => {
    stderr += text;
  });
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code, signal) => resolve({ code, signal, stderr }));
  });
}

/** Exit codes of a user error and of Ctrl-C. */
const USAGE = 2;
const INTERRUPTED = 130;

async function succeed(child: ChildProcess): Promise<void> {
  expectSuccess(await ended(child), 'undisturbed');
}

function expectSuccess({ code, signal, stderr }: End, when: string): void {
  if (code !== 0) throw new Error(`${when}: exit code ${code ?? signal}: ${stderr}`);
}

/** Expects that a program that handles the signal leaves no partial files, and reports the files that it keeps. */
function expectTidy(
  output: KillTest['output'],
  found: Hashes,
  { stderr }: End,
  when: string,
): void {
  const half = Object.keys(found).find((name) => /\.(unfinished|tmp|new)$|lock/.test(name));
  if (half !== undefined) throw new Error(`${when}: leaves ${half}`);
  const isKept = journalOf(output) in found;
  if (isKept !== stderr.includes('--resume')) {
    throw new Error(
      `${when}: ${isKept ? 'keeps something' : 'keeps nothing'}, and says "${stderr}"`,
    );
  }
}

/** Hashes of all files, by their relative paths. */
function hashesIn(folder: string): Hashes {
  const entries = fs.readdirSync(folder, { recursive: true, withFileTypes: true });
  const files = entries
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  const hash = (file: string) => createHash('sha256').update(fs.readFileSync(file)).digest('hex');
  return Object.fromEntries(
    files.map((file) => [path.relative(folder, file), hash(file)] as const).sort(),
  );
}

const stagingOf = ([main]: KillTest['output']) => `.${main}.minimind`;
const journalOf = (output: KillTest['output']) => `${stagingOf(output)}/journal.json`;

const isIn = (name: string, place: string) => name === place || name.startsWith(`${place}/`);

/** The output that is whole. @throws Error when another file has changed, or neither output is whole. */
function stateOf(
  output: KillTest['output'],
  old: Hashes,
  undisturbed: Hashes,
  found: Hashes,
  when: string,
): 'old' | 'new' {
  const staging = stagingOf(output);
  const isOutput = (name: string) => output.some((place) => isIn(name, place));
  const others = (hashes: Hashes) =>
    pick(hashes, (name) => !isOutput(name) && !isIn(name, staging));
  expectEqual(others(found), others(old), `other files, ${when}`);
  const inPlace = pick(found, isOutput);
  const oldOutput = pick(old, isOutput);
  const newOutput = pick(undisturbed, isOutput);
  if (isSame(inPlace, newOutput)) return 'new';
  if (isSame(inPlace, oldOutput)) return 'old';
  // Killed while it moved files: each old file is in its place or was moved aside.
  const isKept = ([name, hash]: [string, string]) =>
    found[name] === hash || found[`${staging}/replaced/${name}`] === hash;
  if (Object.entries(oldOutput).every(isKept)) return 'old';
  throw new Error(`${when}: neither output is whole: ${JSON.stringify(found)}`);
}

const pick = (hashes: Hashes, isPicked: (name: string) => boolean): Hashes =>
  Object.fromEntries(Object.entries(hashes).filter(([name]) => isPicked(name)));

const isSame = (a: Hashes, b: Hashes) => JSON.stringify(a) === JSON.stringify(b);

function expectEqual(found: Hashes, expected: Hashes, when: string): void {
  if (isSame(found, expected)) return;
  throw new Error(`${when}: ${JSON.stringify(found)} instead of ${JSON.stringify(expected)}`);
}
