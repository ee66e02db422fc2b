// `convert-checkpoint --to shared` of checkpoints of 1 and 4 GiB, into safetensors and into a PyTorch file,
// beside `cp` and `sync` of the input, from the disk and from the file cache. What is compared is the time
// for each GiB that is read and written. Peak memory is the process's own.

import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  closeSync,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { summary, timeCommand } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));

export const title =
  'Converting 16 layers to a shared table against cp and sync, milliseconds for a GiB read and written';

const GIB = 2 ** 30;
const LAYERS = 16;
const COLUMNS = 1024;
/** Share of the tables in the checkpoint's bytes; the rest are weights, `WEIGHTS` in each layer. */
const TABLE_SHARE = 1 / 3;
const WEIGHTS = 4;
const SIZES = [
  { gibibytes: 1, rounds: 10 },
  { gibibytes: 4, rounds: 5 },
];
/** Times of `cp`, from the disk and from the file cache; less memory than this, and no more of it for a larger input. */
const AIM = { cold: 1.15, warm: 1.5, peakMegabytes: 400, peakDifferenceMegabytes: 30 };

export function run() {
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  try {
    const results = [];
    const peaks = {};
    for (const size of sizesWanted()) {
      const { measured, peak } = ofSize(size, folder);
      results.push(...measured);
      peaks[`${size.gibibytes} GiB`] = peak;
    }
    return { aims: AIM, cold: dropCaches.how, peakMegabytes: peaks, results };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** `BENCH_GIB=1` measures one of them. */
const sizesWanted = () =>
  SIZES.filter(({ gibibytes }) => [undefined, String(gibibytes)].includes(process.env.BENCH_GIB));

function ofSize({ gibibytes, rounds }, folder) {
  const input = path.join(folder, 'in.safetensors');
  writeCheckpoint(input, gibibytes * GIB);
  const copy = path.join(folder, 'copy.safetensors');
  const peak = {};
  const convertTo = (out) => {
    const file = path.join(folder, out);
    const [milliseconds, answer] = timed(() => converted(input, file));
    const moved = statSync(input).size + statSync(file).size;
    peak[out] = Math.max(peak[out] ?? 0, Math.round(answer.memory.peakBytes / 1e6));
    rmSync(file);
    return (milliseconds / moved) * GIB;
  };
  const cp = () => {
    const milliseconds = timeCommand(['sh', '-c', 'cp "$0" "$1" && sync "$1"', input, copy]);
    rmSync(copy);
    return (milliseconds / (2 * statSync(input).size)) * GIB;
  };
  const measured = [];
  for (const [state, prepare] of Object.entries({ cold: dropCaches, warm: fillCache })) {
    const times = { cp: [], 'out.safetensors': [], 'out.pt': [] };
    for (let round = 0; round < rounds; round++) {
      for (const each of Object.keys(times)) {
        prepare(input);
        times[each].push(each === 'cp' ? cp() : convertTo(each));
      }
    }
    for (const out of ['out.safetensors', 'out.pt']) {
      const name = `${gibibytes} GiB, ${state}, into ${path.extname(out)}`;
      measured.push(
        summary({ name, times: { candidate: times[out], baseline: times.cp }, aim: AIM[state] }),
      );
    }
  }
  rmSync(input);
  return { measured, peak };
}

function timed(act) {
  const start = process.hrtime.bigint();
  const value = act();
  return [Number(process.hrtime.bigint() - start) / 1e6, value];
}

function converted(input, out) {
  const args = ['convert-checkpoint', input, out, '--to', 'shared', '--json', '--quiet'];
  const { status, stdout, stderr } = spawnSync(process.execPath, [`${root}bin/run.js`, ...args], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${args.join(' ')}: ${status}\n${stderr}`);
  return JSON.parse(stdout);
}

/** Everything goes where the system lets it be said, else the input alone, as far as the system likes. */
function dropCaches(input) {
  spawnSync('sync');
  if (process.getuid?.() === 0) {
    writeFileSync('/proc/sys/vm/drop_caches', '3');
    dropCaches.how = 'drop_caches';
  } else {
    timeCommand(['dd', `if=${input}`, 'iflag=nocache', 'count=0']);
    dropCaches.how = "posix_fadvise, by dd's nocache";
  }
}

function fillCache(input) {
  spawnSync('sync');
  spawnSync('cat', [input], { stdio: ['ignore', 'ignore', 'ignore'] });
}

/** Float32 tensors of random numbers between 1 and 2, negative ones too. */
function writeCheckpoint(file, bytes) {
  const rowBytes = COLUMNS * 4;
  const rows = (share, count) => Math.floor((bytes * share) / LAYERS / count / rowBytes);
  const shapes = Array.from({ length: LAYERS }, (_, layer) => [
    [`layers.${layer}.srte.freqs`, [1, rows(TABLE_SHARE, 1), COLUMNS]],
    ...Array.from({ length: WEIGHTS }, (_, index) => [
      `layers.${layer}.mixer.${index}.weight`,
      [rows(1 - TABLE_SHARE, WEIGHTS), COLUMNS],
    ]),
  ]).flat();
  let end = 0;
  const entries = shapes.map(([name, shape]) => {
    const start = end;
    end += shape.reduce((product, size) => product * size, 4);
    return [name, { dtype: 'F32', shape, data_offsets: [start, end] }];
  });
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const values = randomBytes(2 ** 24);
  // The exponent of 1, whatever the sign.
  for (let at = 0; at < values.length; at += 4) {
    values[at + 3] = (values[at + 3] & 0x80) | 0x3f;
    values[at + 2] |= 0x80;
  }
  const descriptor = openSync(file, 'wx');
  writeSync(descriptor, length);
  writeSync(descriptor, header);
  for (let at = 0; at < end; at += values.length) {
    writeSync(descriptor, values, 0, Math.min(values.length, end - at));
  }
  closeSync(descriptor);
}
