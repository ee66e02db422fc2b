/**
 * Runs commands on hostile files of several sizes, each in a process of its own, and compares time and memory with the
 * bounds: `npm run test:cost [-- PATTERN]`, for the rows that match, as in `many names .* inspect FILE --hash`. Exits with
 * 1 when a run is beyond them.
 */
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { inPackage, ROOT } from '../fixtures.js';
import { CHECKPOINT_SHAPES } from './checkpoint-shapes.js';
import { DOCUMENT_SHAPES } from './document-shapes.js';
import type { Shape } from './shape.js';

/** Bytes of the files; the rule holds below 16 MB. */
const SIZES = [1_000_000, 2_000_000, 4_000_000, 8_000_000, 15_900_000];
/** Beyond what the same program takes for a small file. */
const MOST_SECONDS = 2;
const MOST_MEGABYTES = 300;
/** A run that has computed this long is ended, and so is one that waits for longer. */
const PATIENCE = { busy: 8, waiting: 90 };

/** Says on a fourth stream what the process has used. */
const PROBE = `data:text/javascript,${encodeURIComponent(
  `import fs from 'node:fs';
  // The system counts the memory of the process that started it as well, unless it says otherwise.
  const peak = () => {
    try { return Number(/VmHWM:\\s+(\\d+)/.exec(fs.readFileSync('/proc/self/status', 'utf8'))[1]); } catch {}
    return process.resourceUsage().maxRSS;
  };
  process.on('exit', () => fs.writeSync(3, JSON.stringify({ ...process.resourceUsage(), maxRSS: peak() })));`,
)}`;

interface Cost {
  readonly seconds: number;
  readonly megabytes: number;
  readonly ending: string;
}

/** What a command costs; infinitely much when it does not end by itself. */
function costOf(args: readonly string[]): Promise<Cost> {
  return new Promise((resolve, reject) => {
    const limited = ['-c', `ulimit -t ${PATIENCE.busy}; exec "$@"`, 'sh', process.execPath];
    const options = ['--max-old-space-size=2000', '--import', PROBE, inPackage('bin/run.js')];
    const start = performance.now();
    const child = spawn('sh', [...limited, ...options, ...args], {
      cwd: ROOT,
      stdio: ['ignore', 'ignore', 'pipe', 'pipe'],
      timeout: PATIENCE.waiting * 1000,
      killSignal: 'SIGKILL',
    });
    let [errors, used] = ['', ''];
    child.stdio[2]?.on('data', (text) => {
      errors += text;
    });
    child.stdio[3]?.on('data', (text) => {
      used += text;
    });
    child.on('error', reject);
    child.on('close', (code, signal) => {
      const elapsed = (performance.now() - start) / 1000;
      const ending = `${signal ?? code} ${/\[[a-z0-9-]+\]/.exec(errors)?.[0] ?? errors.slice(0, 60).trim()}`;
      if (used === '') resolve({ seconds: Infinity, megabytes: Infinity, ending });
      else {
        const { userCPUTime, systemCPUTime, maxRSS } = JSON.parse(used);
        // Waiting for other processes is not its cost, nor are threads that clean up beside it.
        const busy = (userCPUTime + systemCPUTime) / 1e6;
        resolve({ seconds: Math.min(elapsed, busy), megabytes: maxRSS / 1e3, ending });
      }
    });
  });
}

const say = (line: string) => process.stdout.write(`${line}\n`);

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-cost-'));
const pattern = new RegExp(process.argv[2] ?? '');
let failures = 0;

/** @param endless Commands that were ended on a smaller file, to which this adds its own. */
async function check(
  { name, make, commands }: Shape,
  size: number,
  base: Cost,
  endless: Set<readonly string[]>,
): Promise<void> {
  const isAsked = (command: readonly string[]) =>
    pattern.test(`${size} ${name} ${command.join(' ')}`) && !endless.has(command);
  const asked = commands.filter(isAsked);
  if (asked.length === 0) return;
  const place = path.join(folder, 'files');
  fs.mkdirSync(place);
  const file = make(place, size);
  for (const command of asked) {
    const args = command.map((arg) => arg.replace('FILE', file).replace('FOLDER', place));
    const { seconds, megabytes, ending } = await costOf(args);
    const [time, memory] = [seconds - base.seconds, megabytes - base.megabytes];
    // Our own fault is none of the answers that a file can get.
    const isGood = time <= MOST_SECONDS && memory <= MOST_MEGABYTES && !ending.startsWith('70');
    if (!isGood) failures++;
    if (seconds === Infinity) endless.add(command);
    const row = [
      isGood ? 'ok  ' : 'FAIL',
      `${size}`.padStart(9),
      `${time.toFixed(1)} s`.padStart(10),
      `${memory.toFixed(0)} MB`.padStart(11),
      name.padEnd(44),
      command.join(' ').padEnd(40),
      ending,
    ];
    say(row.join(' '));
  }
  fs.rmSync(place, { recursive: true });
}

try {
  const small = inPackage('fixtures/checkpoints/valid/zip_proto5.pt');
  const base = await costOf(['inspect', small]);
  say(`The process itself: ${base.seconds.toFixed(1)} s, ${base.megabytes.toFixed(0)} MB`);
  for (const shape of [...CHECKPOINT_SHAPES, ...DOCUMENT_SHAPES]) {
    const endless = new Set<readonly string[]>();
    for (const size of shape.sizes ?? SIZES) await check(shape, size, base, endless);
  }
} finally {
  fs.rmSync(folder, { recursive: true });
}
say(failures === 0 ? 'All within the bounds' : `${failures} runs beyond the bounds`);
if (failures > 0) process.exitCode = 1;
