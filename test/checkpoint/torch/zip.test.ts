import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { UserError } from '../../../src/base/errors.js';
import { ByteFile } from '../../../src/checkpoint/byte-file.js';
import { ruleOf } from '../../../src/checkpoint/checkpoint-rules.js';
import { readTorchArchive } from '../../../src/checkpoint/torch/zip/torch-archive.js';
import { fileOf } from '../byte-files.js';
import {
  archive,
  descriptor,
  extra,
  inFolder,
  le,
  RECORDS,
  SATURATED,
  whole,
  withEntry,
  withRecords,
  zip64,
} from './zip-builder.js';

const read = (bytes: Uint8Array) => readTorchArchive(fileOf(bytes));

describe('a PyTorch archive', () => {
  it('has a root folder and the positions of its records', () => {
    const bytes = whole();
    const { root, records, isBigEndian, warnings } = read(bytes);
    expect(root).toBe('archive');
    expect([...records.keys()]).toEqual(['data.pkl', 'version', 'data/0']);
    const { position = 0, bytes: length = 0 } = records.get('data/0') ?? {};
    expect(bytes.subarray(position, position + length).toString()).toBe('abcd');
    expect(isBigEndian).toBe(false);
    expect(warnings).toEqual([]);
  });

  it.each<[string, Buffer]>([
    ['zip64 end records', whole({ end64: {} })],
    [
      'a zip64 end record for all fields',
      whole({
        end64: {},
        end: {
          disk: 0xffff,
          directoryDisk: 0xffff,
          entriesOnDisk: 0xffff,
          entries: 0xffff,
          bytes: SATURATED,
          position: SATURATED,
        },
      }),
    ],
    [
      'zip64 fields for both sizes',
      withEntry({ entry: { stored: SATURATED, size: SATURATED }, extra: zip64(4, 4) }),
    ],
    [
      'zip64 fields for everything',
      withEntry({
        entry: { stored: SATURATED, size: SATURATED, position: SATURATED, disk: 0xffff },
        extra: extra(1, Buffer.concat([le(4, 8), le(4, 8), le(97, 8), le(0, 4)])),
      }),
    ],
    [
      'a header with zip64 and padding',
      withEntry({ headerExtra: Buffer.concat([zip64(0), extra(0x4246, Buffer.from('ZZZ'))]) }),
    ],
    [
      'sizes of a header in zip64',
      withEntry({ header: { stored: SATURATED, size: SATURATED }, headerExtra: zip64(4, 4) }),
    ],
    [
      'the attributes of a regular file',
      withEntry({ entry: { external: 0o100644 * 2 ** 16 + 0x20 } }),
    ],
    ['permissions alone', withEntry({ entry: { external: 0o600 * 2 ** 16 } })],
    ['wrong checksums', withEntry({ entry: { crc: 7 }, header: { crc: 8 } })],
    [
      'sizes after the data',
      withEntry({ flags: 8, header: { stored: 0, size: 0 }, behind: descriptor(4) }),
    ],
    [
      'sizes of 64 bits after the data',
      withEntry({ flags: 8, header: { stored: 0, size: 0 }, behind: descriptor(4, 8) }),
    ],
    ['sizes in the header and after the data', withEntry({ flags: 8, behind: descriptor(4) })],
    ['other extra fields', withEntry({ extra: extra(0x5455, Buffer.from('time')) })],
    ['a flag for names in UTF-8', withEntry({ flags: 0x800 })],
    ['a comment of an entry', withEntry({ comment: Buffer.from('x') })],
  ])('can have %s', (_, bytes) => {
    const { position = 0, bytes: length = 0 } = read(bytes).records.get('data/0') ?? {};
    expect(bytes.subarray(position, position + length).toString()).toBe('abcd');
  });

  it('can have its entries in any order', () => {
    const { records } = read(archive({ entries: inFolder(RECORDS).toReversed() }));
    expect([...records.keys()]).toEqual(['version', 'data.pkl']);
  });

  it('has a warning with some of the unknown records', () => {
    const { warnings } = read(withRecords({ a: '', b: '', c: '', d: '', e: '', 'data/01': '' }));
    expect(warnings).toEqual([
      'ignored, because PyTorch writes no such records: "a", "b", "c" and 2 others',
    ]);
  });

  it('can have the records of newer versions', () => {
    const bytes = withRecords({
      '.format_version': '1',
      '.storage_alignment': '64',
      byteorder: 'little',
      '.data/serialization_id': '0'.repeat(40),
    });
    expect(read(bytes).warnings).toEqual([]);
  });

  it('can be big-endian', () => {
    expect(read(withRecords({ byteorder: 'big' })).isBigEndian).toBe(true);
    expect(read(withRecords({ byteorder: 'little' })).isBigEndian).toBe(false);
  });

  it.each([{ version: '1' }, { version: '10\n' }, { version: undefined, '.data/version': '3' }])(
    'can have its version in %j',
    (records) => {
      expect(read(withRecords(records)).records.has('data.pkl')).toBe(true);
    },
  );

  it('can have any name of its root folder', () => {
    const roots = ['größe 模型', '\ufeffmark', '__proto__', '...', 'a'.repeat(255)];
    for (const root of roots) {
      const entries = Object.entries(RECORDS).map(([name, data]) => ({
        name: `${root}/${name}`,
        data,
      }));
      expect(read(archive({ entries })).root).toBe(root);
    }
  });

  it('can have a record called __proto__', () => {
    const { records } = read(withEntry({ name: 'archive/__proto__' }));
    expect(records.get('__proto__')?.bytes).toBe(4);
  });
});

describe('a damaged archive', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  /** Calls `body` with a file of these bytes, and a function that overwrites some of them. */
  function damaging(
    bytes: Uint8Array,
    body: (file: ByteFile, overwrite: (bytes: Uint8Array, position: number) => void) => void,
  ): void {
    const name = path.join(folder, 'damaged.pt');
    fs.writeFileSync(name, bytes);
    const file = ByteFile.open(name);
    const descriptor = fs.openSync(name, 'r+');
    try {
      body(file, (part, position) => fs.writeSync(descriptor, part, 0, part.length, position));
    } finally {
      fs.closeSync(descriptor);
      file.close();
    }
  }

  /** Whether all records lie in the file, or a rule refuses it. */
  function isReadOrRefused(file: ByteFile): boolean {
    try {
      const places = [...readTorchArchive(file).records.values()];
      return places.every(({ position, bytes }) => position >= 0 && position + bytes <= file.size);
    } catch (error) {
      if (error instanceof UserError) return ruleOf(error) !== undefined;
      throw error;
    }
  }

  const small = whole();
  const wide = withEntry(
    { entry: { stored: SATURATED, size: SATURATED }, extra: zip64(4, 4) },
    { end64: {}, end: { entries: 0xffff, position: SATURATED } },
  );

  it.each([
    ['small', small],
    ['with zip64', wide],
  ])('is read or refused with any bit flipped: %s', (_, bytes) => {
    damaging(bytes, (file, overwrite) => {
      for (const [position, byte] of bytes.entries()) {
        for (let bit = 0; bit < 8; bit++) {
          overwrite(Buffer.from([byte ^ (1 << bit)]), position);
          expect(isReadOrRefused(file), `bit ${bit} of byte ${position}`).toBe(true);
        }
        overwrite(Buffer.from([byte]), position);
      }
      expect(readTorchArchive(file).records.size).toBe(3);
    });
  });

  it('is refused if it is cut off anywhere', () => {
    for (let length = 0; length < wide.length; length++) {
      damaging(wide.subarray(0, length), (file) => {
        expect(() => readTorchArchive(file)).toThrow(UserError);
      });
    }
  });

  it('is read or refused with parts copied to another position', () => {
    const place = fc.nat(wide.length - 1);
    damaging(wide, (file, overwrite) => {
      fc.assert(
        fc.property(place, place, fc.integer({ min: 1, max: 100 }), (from, to, length) => {
          const room = Math.min(length, wide.length - Math.max(from, to));
          overwrite(wide.subarray(from, from + room), to);
          expect(isReadOrRefused(file)).toBe(true);
          overwrite(wide, 0);
        }),
        { numRuns: 500 },
      );
    });
  });
});
