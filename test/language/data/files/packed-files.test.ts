import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { openSource } from '../../../../src/language/data/files/source.js';
import { ZstdFrames } from '../../../../src/language/data/files/zstd-frames.js';
import { readWholeText } from '../../../../src/language/data/whole-text.js';
import { ROOT } from '../../../fixtures.js';
import { runHere } from '../../../run-here.js';

const DATA = path.join(ROOT, 'fixtures/data');
const packed = (name: string) => path.join(DATA, 'packed', name);

let folder: string;
beforeAll(() => {
  folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

/** Path of a file with `bytes`. */
function written(name: string, bytes: Uint8Array): string {
  const file = path.join(folder, name);
  fs.writeFileSync(file, bytes);
  return file;
}

async function contentOf(file: string, key?: string): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of openSource(file, () => {}, key).chunks) chunks.push(chunk);
  return Buffer.concat(chunks).toString('utf8');
}

const rowsOf = (text: string): Record<string, unknown>[] =>
  text
    .split('\n')
    .filter((line) => line.trim() !== '')
    .map((line) => JSON.parse(line));

const plain = (name: string) => fs.readFileSync(path.join(DATA, name), 'utf8');

describe('Parquet', () => {
  it.each(['snappy', 'gzip', 'zstd', 'brotli', 'lz4', 'v2'])(
    'has the records of the JSON lines: %s',
    async (form) => {
      const rows = rowsOf(await contentOf(packed(`pretrain-${form}.parquet`)));
      expect(rows).toEqual(rowsOf(plain('pretrain.jsonl')));
    },
  );

  it('has nested records, without the fields that a row lacks', async () => {
    const rows = rowsOf(await contentOf(packed('chat.parquet')));
    expect(rows).toEqual(rowsOf(plain('chat.jsonl')));
  });

  it('has the numbers of lists, and a named column', async () => {
    expect(rowsOf(await contentOf(packed('ids.parquet')))).toEqual(
      [[1, 5, 17, 3], [9, 2], [], [6399]].map((ids) => ({ input_ids: ids })),
    );
    expect(rowsOf(await contentOf(packed('columns.parquet'), 'body'))).toEqual([
      { body: 'a text' },
      {},
    ]);
  });

  it('gives the figures of the JSON lines', async () => {
    const figuresOf = async (file: string) => {
      const { stdout } = await runHere(
        ['data', file, '--tokenizer', `${DATA}/tokenizer`, '--json'],
        {},
      );
      const { figures, faults, files } = JSON.parse(stdout);
      const anyPlace = JSON.stringify(figures).replaceAll(JSON.stringify(file), '"FILE"');
      return { figures: JSON.parse(anyPlace), faults: faults.length, files };
    };
    const table = await figuresOf(packed('chat.parquet'));
    const lines = await figuresOf(path.join(DATA, 'chat.jsonl'));
    expect({ ...table, files: [] }).toEqual({ ...lines, files: [] });
    expect(table.files).toMatchObject([{ packing: 'parquet', isGzip: false, kind: 'chat' }]);
  });

  it('names the columns where none has records', async () => {
    const { code, stderr } = await runHere(['data', packed('columns.parquet')]);
    expect(code).toBe(2);
    expect(stderr).toContain('found body and number');
    expect(stderr).toContain('write --key body');
  });

  it('refuses damaged files in a sentence', { timeout: 60_000 }, async () => {
    const original = fs.readFileSync(packed('chat.parquet'));
    const problems = await Promise.all(
      [0, 1, 2, 3, 4, 5].map(async (seed) => {
        const bytes = Buffer.from(original);
        // The end holds the sizes, offsets and the schema.
        for (let step = 0; step < 4; step++) {
          bytes[bytes.length - 9 - ((seed * 97 + step * 211) % 800)] = 0xff - seed;
        }
        return contentOf(written(`${seed}.parquet`, bytes)).then(
          () => 'read',
          (error: Error) => `${error.name}: ${error.message}`,
        );
      }),
    );
    expect(problems.filter((text) => text.startsWith('UserError: ')).length).toBeGreaterThan(2);
    for (const text of problems) expect(text).toMatch(/^(read$|UserError: .*\.parquet: )/);
  });

  /** A zigzag number of Thrift's compact protocol. */
  const number = (value: number): number[] => {
    const bytes: number[] = [];
    for (let left = value * 2; ; left = Math.floor(left / 128)) {
      if (left < 128) return [...bytes, left];
      bytes.push((left % 128) + 128);
    }
  };

  it.each([
    ['bytes', 2 ** 30, 1, 'has a page of 10 bytes that claims 1073741824 unpacked'],
    ['values', 100, 2 ** 30, /claims more than 8\d{6} values in \d+ bytes/],
  ])('refuses a page that claims too many %s', async (_, unpacked, values, message) => {
    const bytes = fs.readFileSync(packed('pretrain-zstd.parquet'));
    // PageHeader of parquet.thrift: type, sizes, and the header of a data page with plain values.
    const dataPage = [0x15, ...number(values), 0x15, 0, 0x15, 6, 0x15, 6, 0];
    const sizes = [0x15, 0, 0x15, ...number(unpacked), 0x15, ...number(10)];
    bytes.set([...sizes, 0x2c, ...dataPage, 0], 4);
    await expect(contentOf(written('claims.parquet', bytes))).rejects.toThrow(message);
  });

  it('ends the process when the reader stops', async () => {
    const { chunks } = openSource(packed('chat.parquet'), () => {});
    await chunks.next();
    await chunks.return(undefined);
    expect((await chunks.next()).done).toBe(true);
  });
});

describe('Zstandard', () => {
  it('unpacks frames with checksums, and skips others', async () => {
    expect(await contentOf(packed('pretrain.jsonl.zst'))).toBe(plain('pretrain.jsonl'));
  });

  it.each([10, 100, 2000])('refuses data cut short after %d bytes', async (length) => {
    const bytes = fs.readFileSync(packed('pretrain.jsonl.zst')).subarray(0, length);
    await expect(contentOf(written('short.zst', bytes))).rejects.toThrow('broken or cut short');
  });

  const frame = (...bytes: number[]) => Uint8Array.from([0x28, 0xb5, 0x2f, 0xfd, ...bytes]);

  it.each([
    ['a window of 2 GiB', frame(0x00, 21 << 3), 'needs a window of 2,147,483,648 bytes'],
    ['a segment of 1 GiB', frame(0xa0, 0, 0, 0, 0x40), 'needs a window of 1,073,741,824 bytes'],
    ['a dictionary', frame(0x01, 0x00, 0x07), 'needs a dictionary of zstd'],
    ['other bytes', Uint8Array.from([1, 2, 3, 4, 5, 6]), 'has other bytes after its zstd data'],
  ])('refuses %s, also when the bytes arrive one by one', (_, bytes, message) => {
    for (const step of [1, 3, bytes.length]) {
      const frames = new ZstdFrames('FILE');
      const check = () => {
        for (let at = 0; at < bytes.length; at += step) frames.check(bytes.subarray(at, at + step));
      };
      expect(check).toThrow(message);
    }
  });

  it('refuses data that unpack to more than 100 times their bytes', async () => {
    // 1,200 blocks of 128 KiB of one byte, each in 4 bytes.
    const block = [0x02, 0x00, 0x10, 0x61];
    const bytes = Uint8Array.from([...frame(0x00, 0x58), ...Array(1200).fill(block).flat()]);
    await expect(contentOf(written('bomb.zst', bytes))).rejects.toThrow(
      /bytes of zstd data unpack to [\d,]+, more than 100 times as many/,
    );
  });
});

describe('a whole text', () => {
  const limits = { most: 1e6, suggestion: 'a part' };

  it('is that of a packed file', async () => {
    expect(await readWholeText(packed('pretrain.jsonl.zst'), limits)).toBe(plain('pretrain.jsonl'));
  });

  it('has an empty line between the rows of a table', async () => {
    const texts = rowsOf(plain('pretrain.jsonl')).map(({ text }) => text);
    expect(await readWholeText(packed('pretrain-v2.parquet'), limits)).toBe(texts.join('\n\n'));
  });

  it('needs a column text, UTF-8 and not too many bytes', async () => {
    await expect(readWholeText(packed('columns.parquet'), limits)).rejects.toThrow(
      'expected a column text, found body and number',
    );
    await expect(
      readWholeText(packed('pretrain.jsonl.zst'), { ...limits, most: 1000 }),
    ).rejects.toThrow('is larger than 0.001 MB');
    await expect(
      readWholeText(written('latin.txt', Uint8Array.from([0x61, 0xe9])), limits),
    ).rejects.toThrow('is not UTF-8 text');
  });
});
