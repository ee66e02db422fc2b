import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { crc32 } from 'node:zlib';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import type { ByteSink } from '../../../src/base/files/write-whole.js';
import { ByteFile } from '../../../src/checkpoint/byte-file.js';
import { readTorchArchive } from '../../../src/checkpoint/torch/zip/torch-archive.js';
import { planZip, writeZip, type ZipContent } from '../../../src/checkpoint/torch/zip/write-zip.js';
import { fileOf } from '../byte-files.js';
import { MemorySink } from '../safetensors/tensors.js';
import { RECORDS } from './zip-builder.js';

const content = (name: string, data: string | Uint8Array): ZipContent => {
  const bytes = Buffer.from(data);
  return { name, bytes: bytes.length, fill: (take) => take(bytes) };
};

const torchContents = Object.entries(RECORDS).map(([name, data]) =>
  content(`archive/${name}`, data),
);

async function written(contents: readonly ZipContent[]): Promise<Buffer> {
  const sink = new MemorySink();
  const plan = planZip(contents);
  await writeZip(sink, plan);
  expect(sink.position).toBe(plan.fileBytes);
  return sink.bytes();
}

/** Checksums in the directory, by name. APPNOTE.TXT, 4.3.12. */
function checksumsOf(archive: Buffer): Record<string, number> {
  const checksums: Record<string, number> = {};
  let at = archive.readUInt32LE(archive.length - 6);
  while (archive.readUInt32LE(at) === 0x02014b50) {
    const [name, extra, comment] = [28, 30, 32].map((field) => archive.readUInt16LE(at + field));
    const end = at + 46 + (name ?? 0);
    checksums[archive.toString('utf8', at + 46, end)] = archive.readUInt32LE(at + 16);
    at = end + (extra ?? 0) + (comment ?? 0);
  }
  return checksums;
}

describe('a written archive', () => {
  it('is read with the same data, at multiples of 64', async () => {
    const names = fc.uniqueArray(fc.stringMatching(/^[a-zé模]{1,90}$/), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(names, fc.array(fc.uint8Array({ maxLength: 300 })), async (all, data) => {
        const extra = all.map((name, i) => [`x/${name}`, data[i] ?? new Uint8Array()] as const);
        const bytes = await written([
          ...torchContents,
          ...extra.map(([name, value]) => content(`archive/${name}`, value)),
        ]);
        const { records } = readTorchArchive(fileOf(bytes));
        for (const [name, value] of [...Object.entries(RECORDS), ...extra]) {
          const { position = -1, bytes: length = -1 } = records.get(name) ?? {};
          expect(position % 64).toBe(0);
          expect(bytes.subarray(position, position + length)).toEqual(Buffer.from(value));
        }
        expect(records.size).toBe(2 + extra.length);
      }),
      { numRuns: 50 },
    );
  });

  it('has the checksums of its data, also if pieces of it share their memory', async () => {
    const memory = Buffer.alloc(4);
    const inPieces: ZipContent = {
      name: 'archive/pieces',
      bytes: 12,
      async fill(take) {
        for (const piece of ['abcd', 'efgh', 'ijkl']) {
          memory.write(piece);
          await take(memory);
        }
      },
    };
    expect(checksumsOf(await written([content('archive/empty', ''), inPieces]))).toEqual({
      'archive/empty': 0,
      'archive/pieces': crc32('abcdefghijkl'),
    });
  });

  it('is the same every time', async () => {
    expect(await written(torchContents)).toEqual(await written(torchContents));
  });

  it.each([
    ['few', 3],
    ['many', 5],
  ])('throws a bug for too %s bytes in an entry', async (_, length) => {
    const lying = { ...content('archive/x', Buffer.alloc(length)), bytes: 4 };
    await expect(written([lying])).rejects.toThrow(
      `archive/x was planned with 4 bytes and has ${length}`,
    );
  });

  it('stops reading an entry without an end', async () => {
    const endless: ZipContent = {
      name: 'archive/x',
      bytes: 4,
      async fill(take) {
        for (;;) await take(Buffer.alloc(3));
      },
    };
    await expect(written([endless])).rejects.toThrow('planned with 4 bytes and has 6');
  });

  it('must begin its file', async () => {
    const sink = new MemorySink();
    await sink.write(Buffer.from('x'));
    await expect(writeZip(sink, planZip(torchContents))).rejects.toThrow('begins its file');
    expect(sink.position).toBe(1);
  });
});

describe('an archive beyond 4 GiB', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  /** File with holes for the zeros of long pieces, which take no space on the disk. */
  class SparseSink implements ByteSink {
    position = 0;
    readonly #descriptor: number;

    constructor(descriptor: number) {
      this.#descriptor = descriptor;
    }

    async write(bytes: Uint8Array): Promise<void> {
      if (bytes.length < 2 ** 20)
        fs.writeSync(this.#descriptor, bytes, 0, bytes.length, this.position);
      this.position += bytes.length;
    }
  }

  const zeros = (name: string, bytes: number): ZipContent => ({
    name,
    bytes,
    async fill(take) {
      const piece = Buffer.alloc(2 ** 26);
      for (let left = bytes; left > 0; left -= piece.length) {
        await take(left < piece.length ? piece.subarray(0, left) : piece);
      }
    },
  });

  it('has sizes and positions in zip64 fields, and is read', async () => {
    const name = path.join(folder, 'large.pt');
    const open = fs.openSync(name, 'w');
    const size = 2 ** 32 - 1;
    const plan = planZip([
      zeros('archive/data/0', size),
      content('archive/data/1', 'behind'),
      ...torchContents,
    ]);
    await writeZip(new SparseSink(open), plan);
    fs.closeSync(open);
    expect(fs.statSync(name).size).toBe(plan.fileBytes);

    const file = ByteFile.open(name);
    const { records } = readTorchArchive(file);
    expect(records.get('data/0')).toEqual({ position: 128, bytes: size });
    // The header has a zip64 field, so the sizes after the data have 64 bits: APPNOTE.TXT, 4.3.9.2.
    expect(file.read(44, 4)).toEqual(Buffer.from([1, 0, 16, 0]));
    const descriptor = file.read(128 + size, 24);
    expect(descriptor.readUInt32LE()).toBe(0x08074b50);
    expect([descriptor.readBigUInt64LE(8), descriptor.readBigUInt64LE(16)]).toEqual([
      BigInt(size),
      BigInt(size),
    ]);
    const { position = 0, bytes = 0 } = records.get('data/1') ?? {};
    expect(position).toBeGreaterThan(2 ** 32);
    expect(position % 64).toBe(0);
    expect(file.read(position, bytes).toString()).toBe('behind');
    file.close();
  });
});
