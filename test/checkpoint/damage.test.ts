/** Small files of every format, damaged in many cheap ways. */
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import { readTensor } from '../../src/checkpoint/view.js';
import { inPackage, readJson } from '../fixtures.js';
import { isWhole, sampled } from '../sampled.js';
import { folderOf } from './temp-folder.js';

const MOST_BYTES = 4000;
/** The lowest bit, the highest or all bits. They alternate, so each byte is damaged in one way. */
const FLIPS = [0x01, 0x80, 0xff];
/** Megabytes that reading files of a few thousand bytes may add to the process. */
const MOST_MEGABYTES = 200;

const { entries } = readJson<{ entries: { path: string; expect: string }[] }>(
  'fixtures/checkpoints/manifest.json',
);
const SMALL = entries
  .filter(({ expect: verdict }) => verdict === 'accept')
  .map((entry) => entry.path)
  .filter((name) => {
    const status = fs.statSync(inPackage('fixtures/checkpoints', name));
    return status.isFile() && status.size <= MOST_BYTES;
  });

const target = path.join(folderOf({ 'damaged.bin': '' }), 'damaged.bin');
const before = process.resourceUsage().maxRSS;
afterAll(() => {
  expect((process.resourceUsage().maxRSS - before) / 1024).toBeLessThan(MOST_MEGABYTES);
});

/** Opens a file with these bytes. It must be refused, or all its tensors must lie inside. */
function tryBytes(bytes: Uint8Array): 'read' | 'refused' {
  fs.writeFileSync(target, bytes);
  return tryFile(bytes.length);
}

function tryFile(length: number): 'read' | 'refused' {
  try {
    const checkpoint = openCheckpoint(target);
    try {
      // There are hundreds of thousands of checks: `expect` would take longer than the reading.
      for (const [name, { storage }] of checkpoint.tensors) {
        if (storage.position < 0 || storage.position + storage.bytes > length) {
          throw new Error(`${name} lies outside of the file`);
        }
      }
      for (const tensor of checkpoint.tensors.values()) readTensor(tensor);
    } finally {
      checkpoint.close();
    }
    return 'read';
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return 'refused';
  }
}

describe.each(SMALL)('%s', (name) => {
  const whole = fs.readFileSync(inPackage('fixtures/checkpoints', name));

  it('is read or refused with each of its bytes flipped in turn', () => {
    const answers = new Set<string>();
    fs.writeFileSync(target, whole);
    // Changes one byte in place, because writing the whole file takes as long as reading it.
    const file = fs.openSync(target, 'r+');
    for (const [position, byte] of sampled([...whole.entries()], 5)) {
      const flipped = byte ^ (FLIPS[position % FLIPS.length] ?? 0);
      fs.writeSync(file, Uint8Array.of(flipped), 0, 1, position);
      answers.add(tryFile(whole.length));
      fs.writeSync(file, Uint8Array.of(byte), 0, 1, position);
    }
    fs.closeSync(file);
    expect(answers).toContain('refused');
  });

  it('is refused if it is cut off anywhere', () => {
    fc.assert(
      fc.property(fc.nat(whole.length - 1), (length) => {
        expect(tryBytes(whole.subarray(0, length))).toBe('refused');
      }),
    );
  });

  it('is read or refused with parts of a file inserted anywhere', () => {
    const place = fc.nat(whole.length);
    fc.assert(
      fc.property(place, place, place, fc.constantFrom(...SMALL), (from, to, at, other) => {
        const donor = fs.readFileSync(inPackage('fixtures/checkpoints', other));
        const part = donor.subarray(Math.min(from, to), Math.max(from, to));
        tryBytes(Buffer.concat([whole.subarray(0, at), part, whole.subarray(at)]));
      }),
      { numRuns: isWhole ? 100 : 20 },
    );
  });
});

it('the damaged files cover every extension', () => {
  expect(new Set(SMALL.map((name) => path.extname(name)))).toEqual(
    new Set(['.safetensors', '.pt', '.pth']),
  );
});
