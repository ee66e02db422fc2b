import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { ByteFile } from '../../../src/checkpoint/byte-file.js';
import { ruleOf } from '../../../src/checkpoint/refusal.js';
import { readTorchArchive } from '../../../src/checkpoint/torch/zip.js';
import { ZIP_RULES } from '../../../src/checkpoint/torch/zip-rules.js';
import { UserError } from '../../../src/errors.js';
import { fileOf } from '../byte-files.js';
import {
  type ArchiveSpec,
  archive,
  type EntrySpec,
  extra,
  headerAndData,
  inFolder,
  le,
  RECORDS,
  zip64,
} from './zip-builder.js';

const read = (bytes: Uint8Array) => readTorchArchive(fileOf(bytes));

function ruleBrokenBy(bytes: Uint8Array): string | undefined {
  try {
    read(bytes);
  } catch (error) {
    return ruleOf(error) ?? String(error);
  }
  return undefined;
}

/** A whole file with one more entry, which is last. */
const withEntry = (entry: Partial<EntrySpec>, rest: Partial<ArchiveSpec> = {}) =>
  archive({
    entries: [...inFolder(RECORDS), { name: 'archive/data/0', data: 'abcd', ...entry }],
    ...rest,
  });

/** A whole file with other, more or (undefined) fewer records. */
function withRecords(records: Readonly<Record<string, string | Uint8Array | undefined>>): Buffer {
  const all = Object.entries({ ...RECORDS, ...records });
  const present = all.filter(
    (pair): pair is [string, string | Uint8Array] => pair[1] !== undefined,
  );
  return archive({ entries: inFolder(Object.fromEntries(present)) });
}

const whole = (rest: Partial<ArchiveSpec> = {}) => withEntry({}, rest);
const named = (name: string | Uint8Array) => withEntry({ name });

const SATURATED = 0xffffffff;
const TWO_63 = 2n ** 63n;

/** The header of an entry within the data of the one before it. */
function nestedEntry(): Buffer {
  const inner: EntrySpec = { name: 'archive/data/1', data: 'abcd' };
  const outer: EntrySpec = { name: 'archive/data/0', data: headerAndData(inner) };
  const before = inFolder(RECORDS);
  const start = Buffer.concat(before.map(headerAndData)).length;
  const headerBytes = headerAndData({ ...outer, data: '' }).length;
  const listed = { ...inner, isOnlyListed: true, entry: { position: start + headerBytes } };
  return archive({ entries: [...before, outer, listed] });
}

type Attack = readonly [rule: keyof typeof ZIP_RULES, what: string, bytes: () => Uint8Array];

/** Each breaks its rule and no other. */
const ATTACKS: readonly Attack[] = [
  ['zip-end', 'nothing', () => Buffer.alloc(0)],
  ['zip-end', 'a cut end', () => whole().subarray(0, -1)],
  ['zip-end', 'a byte behind', () => Buffer.concat([whole(), le(0, 1)])],
  ['zip-end', 'a comment', () => whole({ comment: 'hello' })],
  ['zip-end', 'a comment that is not there', () => whole({ end: { commentLength: 1 } })],
  ['zip-end', 'another signature', () => whole({ end: { signature: 0x06054b51 } })],
  ['zip-64-locator', 'a place one off', () => whole({ locator: { position: 1 } })],
  ['zip-64-locator', 'a place beyond 2^53', () => whole({ locator: { position: TWO_63 } })],
  ['zip-64-end', 'another signature', () => whole({ end64: { signature: 0x06064b51 } })],
  ['zip-64-end', 'another length', () => whole({ end64: { length: 45 } })],
  ['zip-64-end', 'a length beyond 2^53', () => whole({ end64: { length: TWO_63 + 44n } })],
  ...(['disk', 'directoryDisk', 'entriesOnDisk', 'entries', 'bytes', 'position'] as const).map(
    (field): Attack => [
      'zip-64-agrees',
      `another ${field} in the end record`,
      () => whole({ end64: {}, end: { [field]: 1 } }),
    ],
  ),
  ['zip-one-disk', 'disk 1', () => whole({ end: { disk: 1 } })],
  ['zip-one-disk', 'a directory on disk 1', () => whole({ end: { directoryDisk: 1 } })],
  ['zip-one-disk', 'entries on others', () => whole({ end: { entriesOnDisk: 2 } })],
  ['zip-one-disk', 'disk 1 in zip64', () => whole({ end64: { disk: 1 }, end: { disk: 0xffff } })],
  ['zip-one-disk', 'a locator on disk 1', () => whole({ locator: { disk: 1 } })],
  ['zip-one-disk', 'two disks', () => whole({ locator: { disks: 2 } })],
  ['zip-directory-place', 'a gap behind it', () => whole({ gap: le(0, 1) })],
  ['zip-directory-place', 'a gap before zip64', () => whole({ gap: le(0, 1), end64: {} })],
  ['zip-directory-place', 'bytes before all', () => Buffer.concat([le(0, 1), whole()])],
  [
    'zip-directory-place',
    'a place beyond 2^53',
    () => whole({ end64: { position: TWO_63 }, end: { position: SATURATED } }),
  ],
  [
    'zip-directory-size',
    'long comments',
    () => {
      const comment = Buffer.alloc(0xffff);
      const many = Array.from({ length: 256 }, (_, i) => ({ name: `archive/data/${i}`, comment }));
      return archive({ entries: [...inFolder(RECORDS), ...many] });
    },
  ],
  [
    'zip-directory-entries',
    'one fewer than there are',
    () => whole({ end: { entries: 2, entriesOnDisk: 2 } }),
  ],
  [
    'zip-directory-entries',
    'one more than there are',
    () => whole({ end: { entries: 4, entriesOnDisk: 4 } }),
  ],
  [
    'zip-directory-entries',
    'bytes behind the last',
    () => whole({ gap: le(0, 60), isGapCounted: true }),
  ],
  ['zip-directory-entries', 'a name beyond it', () => withEntry({ entry: { nameLength: 0xffff } })],
  ['zip-entry', 'another signature', () => withEntry({ entry: { signature: 0x02014b51 } })],
  ['zip-extra', 'half a field', () => withEntry({ extra: le(0, 3) })],
  ['zip-extra', 'a field that reaches beyond', () => withEntry({ extra: le(0x10007, 4) })],
  ['zip-extra', 'two for zip64', () => withEntry({ extra: Buffer.concat([zip64(), zip64()]) })],
  ['zip-64-extra', 'a field for nothing', () => withEntry({ extra: zip64(4) })],
  ['zip-64-extra', 'no field', () => withEntry({ entry: { stored: SATURATED, size: SATURATED } })],
  [
    'zip-64-extra',
    'a field too short',
    () => withEntry({ entry: { stored: SATURATED, size: SATURATED }, extra: zip64(4) }),
  ],
  [
    'zip-64-extra',
    'a field too long',
    () => withEntry({ entry: { stored: SATURATED, size: SATURATED }, extra: zip64(4, 4, 0) }),
  ],
  ['zip-64-extra', 'no field for the disk', () => withEntry({ entry: { disk: 0xffff } })],
  ['zip-name-utf8', 'a lone byte', () => named(Buffer.from('archive/data/\xff', 'latin1'))],
  ['zip-name-utf8', 'a long spelling', () => named(Buffer.from('archive/\xc0\xaf', 'latin1'))],
  ...[
    '/archive/data/0',
    '',
    'archive/',
    'archive//data/0',
    'archive/../x',
    'archive/data/..',
    'archive/./x',
    '../archive/x',
    'archive/data\\0',
    'archive/a\0b',
    'archive/a\nb',
    'archive/a\x7fb',
    'archive/a\x85b',
    'C:/data/0',
  ].map((name): Attack => ['zip-name', JSON.stringify(name), () => named(name)]),
  ['zip-name-once', 'data.pkl twice', () => named('archive/data.pkl')],
  ['zip-root', 'another folder', () => named('other/data/0')],
  ['zip-root', 'a folder that differs by case', () => named('Archive/data/0')],
  ['zip-root', 'none', () => named('readme')],
  ['zip-root', 'none at all', () => archive({ entries: [{ name: 'data.pkl' }] })],
  ...[8, 12, 14, 93, 95, 99].map(
    (method): Attack => ['zip-method', `${method}`, () => withEntry({ method })],
  ),
  ...[0, 5, 6, 13].map(
    (bit): Attack => ['zip-flags', `bit ${bit}`, () => withEntry({ flags: 2 ** bit })],
  ),
  ['zip-sizes', 'larger unpacked', () => withEntry({ entry: { stored: 3 } })],
  ['zip-sizes', 'smaller unpacked', () => withEntry({ entry: { size: 3 } })],
  [
    'zip-sizes',
    'one apart beyond 2^53',
    () =>
      withEntry({
        entry: { stored: SATURATED, size: SATURATED },
        extra: zip64(TWO_63, TWO_63 + 1n),
      }),
  ],
  ['zip-entry-disk', '1', () => withEntry({ entry: { disk: 1 } })],
  [
    'zip-entry-disk',
    '1 in zip64',
    () => withEntry({ entry: { disk: 0xffff }, extra: extra(1, le(1, 4)) }),
  ],
  ['zip-header-place', 'in the directory', () => withEntry({ entry: { position: 150 } })],
  [
    'zip-header-place',
    'beyond 2^53',
    () => withEntry({ entry: { position: SATURATED }, extra: zip64(TWO_63) }),
  ],
  ['zip-header', 'another signature', () => withEntry({ header: { signature: 0x04034b51 } })],
  ['zip-header-agrees', 'another method', () => withEntry({ header: { method: 8 } })],
  ['zip-header-agrees', 'another flag', () => withEntry({ header: { flags: 1 } })],
  ['zip-header-name', 'another', () => withEntry({ headerName: 'archive/data/9' })],
  ['zip-header-name', 'a shorter', () => withEntry({ headerName: 'archive/data/' })],
  ['zip-header-name', 'a longer', () => withEntry({ headerName: 'archive/data/01' })],
  ['zip-header-name', 'that of another entry', () => withEntry({ entry: { position: 0 } })],
  [
    'zip-data-place',
    'one byte in the directory',
    () => withEntry({ entry: { stored: 5, size: 5 } }),
  ],
  ['zip-data-place', 'behind a long extra', () => withEntry({ header: { extraLength: 1 } })],
  [
    'zip-data-place',
    'beyond 2^53',
    () =>
      withEntry({ entry: { stored: SATURATED, size: SATURATED }, extra: zip64(TWO_63, TWO_63) }),
  ],
  ['zip-overlap', 'an entry in another', nestedEntry],
  ['zip-content', 'no entries', () => archive({ entries: [] })],
  ['zip-torchscript', 'a module', () => withRecords({ 'constants.pkl': 'x' })],
  ['zip-pickle', 'none', () => withRecords({ 'data.pkl': undefined })],
  ['zip-version-record', 'none', () => withRecords({ version: undefined })],
  ...[
    '',
    '0',
    '11',
    '03',
    '-1',
    '3.0',
    '3\n\n',
    'x',
    `${' '.repeat(16)}3`,
    `3${'\0'.repeat(16)}`,
  ].map(
    (version): Attack => ['zip-version', JSON.stringify(version), () => withRecords({ version })],
  ),
  ...['', 'LITTLE', 'little\n', 'middle', 'little'.padEnd(17)].map(
    (byteorder): Attack => [
      'zip-byteorder',
      JSON.stringify(byteorder),
      () => withRecords({ byteorder }),
    ],
  ),
  ...['', '-1', '6e1', '64\n', '1'.repeat(17)].map(
    (alignment): Attack => [
      'zip-alignment',
      JSON.stringify(alignment),
      () => withRecords({ '.storage_alignment': alignment }),
    ],
  ),
];

describe('a PyTorch archive is refused', () => {
  it.each(ATTACKS)('by %s: %s', (rule, _, bytes) => {
    expect(ruleBrokenBy(bytes())).toBe(rule);
  });

  it('by every rule that there is', () => {
    expect(new Set(ATTACKS.map(([rule]) => rule))).toEqual(new Set(Object.keys(ZIP_RULES)));
  });

  it('with the file, the place and what to do', () => {
    const file = fileOf(withEntry({ method: 8 }));
    expect(() => readTorchArchive(file)).toThrow(
      expect.objectContaining({
        problems: [
          {
            severity: 'error',
            file: file.path,
            path: 'entry "archive/data/0"',
            message: 'is compressed by method 8, expected 0, which is none',
            rule: 'zip-method',
            suggestion: expect.stringContaining('without compression'),
          },
        ],
      }),
    );
  });
});

describe('a PyTorch archive', () => {
  it('is a root and the places of its records', () => {
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
      'sizes and a checksum in the header that are wrong',
      withEntry({ header: { crc: 7, stored: 7, size: 7 } }),
    ],
    ['a wrong checksum', withEntry({ entry: { crc: 7 } })],
    ['other extra fields', withEntry({ extra: extra(0x5455, Buffer.from('time')) })],
    ['sizes behind the data, and UTF-8', withEntry({ flags: 0x808 })],
    ['a comment of an entry', withEntry({ comment: Buffer.from('x') })],
  ])('can have %s', (_, bytes) => {
    const { position = 0, bytes: length = 0 } = read(bytes).records.get('data/0') ?? {};
    expect(bytes.subarray(position, position + length).toString()).toBe('abcd');
  });

  it('can have its entries in any order', () => {
    const { records } = read(archive({ entries: inFolder(RECORDS).toReversed() }));
    expect([...records.keys()]).toEqual(['version', 'data.pkl']);
  });

  it('tells names apart by case, and does not take one for the other', () => {
    const { records, warnings } = read(withRecords({ 'DATA.PKL': 'x' }));
    expect(records.get('data.pkl')?.bytes).toBe(4);
    expect(warnings).toEqual(['ignored, because PyTorch writes no such records: "DATA.PKL"']);
  });

  it('warns of what PyTorch does not write, and shows some of it', () => {
    const { warnings } = read(withRecords({ a: '', b: '', c: '', d: '', e: '', 'data/01': '' }));
    expect(warnings).toEqual([
      'ignored, because PyTorch writes no such records: "a", "b", "c" and 2 others',
    ]);
  });

  it('knows all records of newer versions', () => {
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
    'can say its version as %j',
    (records) => {
      expect(read(withRecords(records)).records.has('data.pkl')).toBe(true);
    },
  );

  it('can have any name for its folder', () => {
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

  /** Hands `body` a file with these bytes, and a way to write over some of them. */
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

  /** Whether all records lie in the file, or it is refused by a rule. */
  function endsWell(file: ByteFile): boolean {
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
  ])('with any bit flipped: %s', (_, bytes) => {
    damaging(bytes, (file, overwrite) => {
      for (const [position, byte] of bytes.entries()) {
        for (let bit = 0; bit < 8; bit++) {
          overwrite(Buffer.from([byte ^ (1 << bit)]), position);
          expect(endsWell(file), `bit ${bit} of byte ${position}`).toBe(true);
        }
        overwrite(Buffer.from([byte]), position);
      }
      expect(readTorchArchive(file).records.size).toBe(3);
    });
  });

  it('cut anywhere is refused', () => {
    for (let length = 0; length < wide.length; length++) {
      damaging(wide.subarray(0, length), (file) => {
        expect(() => readTorchArchive(file)).toThrow(UserError);
      });
    }
  });

  it('with parts of it anywhere else', () => {
    const place = fc.nat(wide.length - 1);
    damaging(wide, (file, overwrite) => {
      fc.assert(
        fc.property(place, place, fc.integer({ min: 1, max: 100 }), (from, to, length) => {
          const room = Math.min(length, wide.length - Math.max(from, to));
          overwrite(wide.subarray(from, from + room), to);
          expect(endsWell(file)).toBe(true);
          overwrite(wide, 0);
        }),
        { numRuns: 500 },
      );
    });
  });
});
