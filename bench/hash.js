// `inspect --hash` of a file of 1 GB, against the system's own sha256sum of the same bytes, both from the
// file cache.

import { spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { closeSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { compare, timeCommand } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));

export const title = 'Hashing: inspect --hash of 1 GB against sha256sum';

/** Measured ratio, 0.30, and a little for noise. */
const AIM = 0.35;
const TENSORS = 64;
const TENSOR_BYTES = 16 * 2 ** 20;

export function run() {
  if (spawnSync('sha256sum', ['--version']).status !== 0) return { skipped: 'no sha256sum here' };
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  try {
    const file = path.join(folder, 'model.safetensors');
    writeModel(file);
    const result = compare({
      name: 'inspect --hash',
      candidate: () =>
        timeCommand([process.execPath, `${root}bin/run.js`, 'inspect', file, '--hash', '--json']),
      baseline: () => timeCommand(['sha256sum', file]),
      aim: AIM,
      rounds: 10,
    });
    return { results: [result] };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function writeModel(file) {
  const entries = Array.from({ length: TENSORS }, (_, index) => [
    `layers.${index}.weight`,
    {
      dtype: 'BF16',
      shape: [2048, TENSOR_BYTES / 4096],
      data_offsets: [index * TENSOR_BYTES, (index + 1) * TENSOR_BYTES],
    },
  ]);
  const header = Buffer.from(JSON.stringify(Object.fromEntries(entries)));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const descriptor = openSync(file, 'wx');
  writeSync(descriptor, length);
  writeSync(descriptor, header);
  const values = randomBytes(TENSOR_BYTES);
  for (let index = 0; index < TENSORS; index++) writeSync(descriptor, values);
  closeSync(descriptor);
}
