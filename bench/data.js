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
import { summary, TELL_USAGE, usageIn } from './measure.js';

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
console.log(tokens);
`;

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
    const of = (which, what) => rounds.map((round) => round[which][what]);
    const row = (name, what, aim) =>
      summary({
        name: `data against a loop, ${name}`,
        times: { candidate: of('candidate', what), baseline: of('baseline', what) },
        aim,
      });
    return {
      megabytes: bytes / 1e6,
      tokens: first.candidate.tokens,
      peakMegabytes: {
        data: Math.max(...of('candidate', 'peakMegabytes')),
        loop: Math.max(...of('baseline', 'peakMegabytes')),
      },
      // The processor time is less noisy on a busy machine, but threads spend more of it in less time.
      results: [row('time', 'milliseconds', 0.6), row('processor time', 'processorMilliseconds')],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function timed(args) {
  const start = performance.now();
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['--import', TELL_USAGE, ...args],
    { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28 },
  );
  if (status !== 0) throw new Error(stderr);
  const milliseconds = performance.now() - start;
  const { processorSeconds, peakMegabytes } = usageIn(stderr);
  return {
    milliseconds,
    processorMilliseconds: 1e3 * processorSeconds,
    peakMegabytes,
    answer: JSON.parse(stdout),
  };
}

function runData(file) {
  const words = ['data', file, '--tokenizer', TOKENIZER, '--json', '--context', '1000000'];
  const { answer, ...spent } = timed(['bin/run.js', ...words]);
  return { ...spent, tokens: answer.figures.tokens.tokens };
}

function runLoop(file) {
  const { answer, ...spent } = timed(['--input-type=module', '-e', LOOP, file, TOKENIZER]);
  return { ...spent, tokens: answer };
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
