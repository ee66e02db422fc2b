// A conversion in parts of 1,000 shards with 100,000 tensors: processor time of the plan, of a part and of the end, each
// a command of its own. The tensors are small: what is measured is names, files and receipts.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { figure, TELL_USAGE, usageIn } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));

export const title = 'Conversion in parts: 1,000 shards, 100,000 tensors';

const SHARDS = 1000;
const TENSORS = 100;
/** Square matrices of float32. */
const ROWS = 16;
const BYTES = 4 * ROWS * ROWS;
const PARTS = 8;
const ROUNDS = Number(process.env.ROUNDS || 3);
/** Seconds. */
const AIMS = { plan: 3.5, finish: 4.5 };

export function run() {
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  try {
    writeShards(path.join(folder, 'in'));
    const rounds = Array.from({ length: ROUNDS }, () => round(folder));
    const least = (what) => Math.min(...rounds.map((each) => each[what].processorSeconds));
    const row = (what, name) =>
      figure({ name: `${name}, processor time`, value: least(what), unit: 's', aim: AIMS[what] });
    const peakMegabytes = Object.fromEntries(
      Object.keys(rounds[0]).map((what) => [
        what,
        Math.round(Math.max(...rounds.map((each) => each[what].peakMegabytes))),
      ]),
    );
    return {
      peakMegabytes,
      results: [
        row('plan', 'plan'),
        row('firstPart', `part 1 of ${PARTS}`),
        row('lastPart', `part ${PARTS} of ${PARTS}`),
        row('finish', 'finish'),
      ],
    };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function round(folder) {
  const plan = ['--plan', 'plan.json'];
  const convert = (...words) => usageOf(['convert-checkpoint', ...words, '-q'], folder);
  const planned = convert('in', 'out', '--no-config', '--dtype', 'bf16', '--parts', PARTS, ...plan);
  const parts = Array.from({ length: PARTS }, (_, at) => convert(...plan, '--part', at + 1));
  const finish = convert(...plan, '--finish');
  rmSync(path.join(folder, 'out'), { recursive: true });
  rmSync(path.join(folder, 'plan.json'));
  return { plan: planned, firstPart: parts[0], lastPart: parts.at(-1), finish };
}

function usageOf(words, cwd) {
  const { status, stderr } = spawnSync(
    process.execPath,
    ['--import', TELL_USAGE, `${root}bin/run.js`, ...words.map(String)],
    { cwd, stdio: ['ignore', 'ignore', 'pipe'], encoding: 'utf8' },
  );
  if (status !== 0) throw new Error(`${words.join(' ')}: ${status}\n${stderr}`);
  return usageIn(stderr);
}

/** A folder of shards with an index. */
function writeShards(folder) {
  mkdirSync(folder);
  const weights = {};
  for (let shard = 0; shard < SHARDS; shard++) {
    const file = `model-${String(shard + 1).padStart(5, '0')}-of-${String(SHARDS).padStart(5, '0')}.safetensors`;
    const names = Array.from(
      { length: TENSORS },
      (_, at) => `model.layers.${shard}.mlp.experts.${at}.up_proj.weight`,
    );
    const entries = names.map((name, at) => [
      name,
      { dtype: 'F32', shape: [ROWS, ROWS], data_offsets: [BYTES * at, BYTES * (at + 1)] },
    ]);
    for (const name of names) weights[name] = file;
    const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(header.length));
    const values = Buffer.from(new Float32Array(ROWS * ROWS * TENSORS).fill(0.5).buffer);
    writeFileSync(path.join(folder, file), Buffer.concat([length, header, values]));
  }
  const index = { metadata: { total_size: BYTES * SHARDS * TENSORS }, weight_map: weights };
  writeFileSync(path.join(folder, 'model.safetensors.index.json'), JSON.stringify(index));
}
