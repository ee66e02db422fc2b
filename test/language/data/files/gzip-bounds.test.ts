import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, it } from 'vitest';
import { UNPACKING_BOUNDS } from '../../../../src/language/data/files/packing.js';
import { openSource } from '../../../../src/language/data/files/source.js';

/** Bytes that a gzip file of some members of 1 MB unpacks to. */
async function unpackedBytes(member: Buffer, members: number): Promise<number> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  const file = path.join(folder, 'text.jsonl.gz');
  try {
    fs.writeFileSync(file, Buffer.concat(Array(members).fill(gzipSync(member))));
    let bytes = 0;
    for await (const chunk of openSource(file, () => {}).chunks) bytes += chunk.length;
    return bytes;
  } finally {
    fs.rmSync(folder, { recursive: true });
  }
}

it('refuses gzip data that unpack to more than 100 times their bytes', async () => {
  await expect(unpackedBytes(Buffer.alloc(1_000_000), 130)).rejects.toThrow(
    /its first [\d,]+ bytes of gzip data unpack to 100,[\d,]+, more than 100 times as many/,
  );
});

it('reads a small file of any ratio, and a large one of a usual ratio', async () => {
  expect(await unpackedBytes(Buffer.alloc(1_000_000), 90)).toBe(90_000_000);
  const text = Buffer.from(
    Array.from({ length: 20_000 }, (_, at) => `{"text": "line ${at * 7919}"}\n`).join(''),
  );
  const members = Math.ceil((1.1 * UNPACKING_BOUNDS.first) / text.length);
  expect(await unpackedBytes(text, members)).toBe(members * text.length);
});
