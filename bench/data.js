// `data` on JSON lines, against a plain loop over the lines with the same tokenizer: both parse each line and encode its text.
// MEGABYTES=200 makes a smaller file than 1 GB.

import { spawnSync } from 'node:child_process';
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

export const title =
  'Training data: minimind data against a loop over lines with the same tokenizer';

const TOKENIZER = `${root}fixtures/data/tokenizer/tokenizer.json`;
const MEGABYTES = Number(process.env.MEGABYTES ?? 1000);
const ROUNDS = Number(process.env.ROUNDS ?? 1);

/** The loop, as a program of its own. */
const LOOP = `
import fs from 'node:fs';
import readline from 'node:readline';
import { Tokenizer } from '@huggingface/tokenizers';
const [file, json] = process.argv.slice(1);
const tokenizer = new Tokenizer(JSON.parse(fs.readFileSync(json, 'utf8')), {});
let tokens = 0;
for await (const line of readline.createInterface({ input: fs.createReadStream(file) })) {
  tokens += tokenizer.encode(JSON.parse(line).text, { add_special_tokens: false }).ids.length + 2;
}
const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
console.log(JSON.stringify({ tokens, peak: maxRSS, cpu: (userCPUTime + systemCPUTime) / 1e6 }));
`;

/** Prints the peak memory and the processor time of a command when it ends. */
const USAGE = `process.on('exit', () => {
  const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage();
  process.stderr.write('\\nusage ' + maxRSS + ' ' + (userCPUTime + systemCPUTime) / 1e6 + '\\n');
});`;

export function run() {
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  try {
    const file = path.join(folder, 'corpus.jsonl');
    writeCorpus(file, MEGABYTES * 1e6);
    const bytes = statSync(file).size;
    const rounds = Array.from({ length: ROUNDS }, () => ({
      candidate: runData(file),
      baseline: runLoop(file),
    }));
    const [first] = rounds;
    if (first.candidate.tokens !== first.baseline.tokens) {
      throw new Error(`${first.candidate.tokens} tokens, and ${first.baseline.tokens} of the loop`);
    }
    const least = (which, what) => Math.min(...rounds.map((round) => round[which][what]));
    const seconds = (which) => least(which, 'seconds');
    return {
      megabytes: bytes / 1e6,
      tokens: first.candidate.tokens,
      rounds: ROUNDS,
      seconds: { data: seconds('candidate'), loop: seconds('baseline') },
      megabytesPerSecond: {
        data: bytes / 1e6 / seconds('candidate'),
        loop: bytes / 1e6 / seconds('baseline'),
      },
      timeOfLoop: seconds('candidate') / seconds('baseline'),
      // Less noisy than the time on a busy machine.
      processorTimeOfLoop: least('candidate', 'cpu') / least('baseline', 'cpu'),
      peakMegabytes: {
        data: Math.max(...rounds.map(({ candidate }) => candidate.peak)) / 1e3,
        loop: Math.max(...rounds.map(({ baseline }) => baseline.peak)) / 1e3,
      },
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function timed(args) {
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(process.execPath, args, {
    cwd: root,
    encoding: 'utf8',
    maxBuffer: 1 << 28,
  });
  if (status !== 0) throw new Error(stderr);
  return { seconds: (performance.now() - start) / 1000, stdout, stderr };
}

function runData(file) {
  const { seconds, stdout, stderr } = timed([
    ...['--import', `data:text/javascript,${encodeURIComponent(USAGE)}`],
    ...['bin/run.js', 'data', file, '--tokenizer', TOKENIZER, '--json'],
    ...['--context', '1000000'],
  ]);
  const [, peak, cpu] = /^usage (\d+) (\S+)$/m.exec(stderr) ?? [];
  const { tokens } = JSON.parse(stdout).figures.tokens;
  return { seconds, tokens, peak: Number(peak), cpu: Number(cpu) };
}

function runLoop(file) {
  const { seconds, stdout } = timed(['--input-type=module', '-e', LOOP, file, TOKENIZER]);
  return { seconds, ...JSON.parse(stdout) };
}

/** Lines put together from the texts of the fixtures, a few of them equal. */
function writeCorpus(file, bytes) {
  const texts = readFileSync(`${root}fixtures/data/pretrain.jsonl`, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line).text)
    .concat(readFileSync(`${root}fixtures/tokenizers/text.txt`, 'utf8').split('\n'))
    .filter((text) => text.length > 5);
  const descriptor = openSync(file, 'wx');
  let state = 1;
  const next = () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return state / 2 ** 32;
  };
  for (let written = 0; written < bytes; ) {
    let part = '';
    while (part.length < 1e6) {
      const words = Array.from(
        { length: 1 + Math.floor(next() * 12) },
        () => texts[Math.floor(next() * texts.length)],
      );
      part += `${JSON.stringify({ text: `${Math.floor(next() * 1e9)} ${words.join(' ')}` })}\n`;
    }
    written += writeSync(descriptor, part);
  }
  closeSync(descriptor);
}
