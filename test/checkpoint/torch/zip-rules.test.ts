import { describe, expect, it } from 'vitest';
import { ZIP_RULES } from '../../../src/checkpoint/checkpoint-rules.js';
import { readTorchArchive } from '../../../src/checkpoint/torch/zip/torch-archive.js';
import { fileOf, ruleBrokenBy } from '../byte-files.js';
import {
  archive,
  descriptor,
  type EntrySpec,
  extra,
  headerAndData,
  inFolder,
  le,
  RECORDS,
  SATURATED,
  whole,
  withEntry,
  withRecords,
  zip64,
} from './zip-builder.js';

const ruleOfBytes = (bytes: Uint8Array) => ruleBrokenBy(() => readTorchArchive(fileOf(bytes)));

const named = (name: string | Uint8Array) => withEntry({ name });

const TWO_63 = 2n ** 63n;

/** Archive with the header of an entry inside the data of another. */
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

/** Files that each break exactly one rule. */
const ATTACKS: readonly Attack[] = [
  ['zip-end', 'nothing', () => Buffer.alloc(0)],
  ['zip-end', 'a cut end', () => whole().subarray(0, -1)],
  ['zip-end', 'a byte at the end', () => Buffer.concat([whole(), le(0, 1)])],
  ['zip-end', 'a comment', () => whole({ comment: 'hello' })],
  ['zip-end', 'a missing comment', () => whole({ end: { commentLength: 1 } })],
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
  ['zip-directory-place', 'a gap after it', () => whole({ gap: le(0, 1) })],
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
  ['zip-directory-entries', 'one too few', () => whole({ end: { entries: 2, entriesOnDisk: 2 } })],
  ['zip-directory-entries', 'one too many', () => whole({ end: { entries: 4, entriesOnDisk: 4 } })],
  [
    'zip-directory-entries',
    'bytes after the last',
    () => whole({ gap: le(0, 60), isGapCounted: true }),
  ],
  ['zip-directory-entries', 'a name beyond it', () => withEntry({ entry: { nameLength: 0xffff } })],
  ['zip-entry', 'another signature', () => withEntry({ entry: { signature: 0x02014b51 } })],
  ['zip-extra', 'half a field', () => withEntry({ extra: le(0, 3) })],
  ['zip-extra', 'a field that is too long', () => withEntry({ extra: le(0x10007, 4) })],
  ['zip-extra', 'two for zip64', () => withEntry({ extra: Buffer.concat([zip64(), zip64()]) })],
  ['zip-64-extra', 'an unused field', () => withEntry({ extra: zip64(4) })],
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
  ['zip-name-once', 'data.pkl in another case', () => named('archive/DATA.PKL')],
  [
    'zip-name-once',
    'data/0 in another case before it',
    () => archive({ entries: inFolder({ ...RECORDS, 'DATA/0': 'evil', 'data/0': 'good' }) }),
  ],
  ...['BYTEORDER', 'DATA/0', '.DATA/version', '.Storage_Alignment'].map(
    (name): Attack => ['zip-name-case', name, () => withEntry({ name: `archive/${name}` })],
  ),
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
  ...(
    [
      ['the bit of MS-DOS for a folder', 0x10],
      ['a folder of Unix', 0o040755 * 2 ** 16],
      ['a symbolic link', 0o120777 * 2 ** 16],
      ['a device', 0o020666 * 2 ** 16],
      ['a pipe', 0o010666 * 2 ** 16],
      ['a regular file with the bit for a folder', 0o100644 * 2 ** 16 + 0x10],
    ] as const
  ).map(
    ([what, external]): Attack => [
      'zip-attributes',
      what,
      () => withEntry({ entry: { external } }),
    ],
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
  ['zip-header-name', 'the name of another entry', () => withEntry({ entry: { position: 0 } })],
  [
    'zip-data-place',
    'one byte in the directory',
    () => withEntry({ entry: { stored: 5, size: 5 } }),
  ],
  ['zip-data-place', 'after a long extra field', () => withEntry({ header: { extraLength: 1 } })],
  [
    'zip-data-place',
    'beyond 2^53',
    () =>
      withEntry({ entry: { stored: SATURATED, size: SATURATED }, extra: zip64(TWO_63, TWO_63) }),
  ],
  ['zip-header-sizes', 'zeros', () => withEntry({ header: { stored: 0, size: 0 } })],
  [
    'zip-header-sizes',
    'another size, and a data descriptor',
    () => withEntry({ flags: 8, header: { size: 3 }, behind: descriptor(4) }),
  ],
  [
    'zip-header-sizes',
    'one zero before a data descriptor',
    () => withEntry({ flags: 8, header: { stored: 0 }, behind: descriptor(4) }),
  ],
  [
    'zip-header-sizes',
    'others in zip64',
    () => withEntry({ header: { stored: SATURATED, size: SATURATED }, headerExtra: zip64(4, 5) }),
  ],
  [
    'zip-header-sizes',
    'none in zip64',
    () => withEntry({ header: { stored: SATURATED, size: SATURATED }, headerExtra: zip64() }),
  ],
  ['zip-overlap', 'an entry in another', nestedEntry],
  ['zip-gap', 'a byte after the last', () => withEntry({ behind: le(0, 1) })],
  [
    'zip-gap',
    'bytes between two',
    () => archive({ entries: inFolder(RECORDS).map((entry) => ({ ...entry, behind: le(0, 1) })) }),
  ],
  ['zip-gap', 'a data descriptor without its flag', () => withEntry({ behind: descriptor(4) })],
  [
    'zip-gap',
    'a data descriptor of another size',
    () => withEntry({ flags: 8, behind: descriptor(5) }),
  ],
  ['zip-gap', 'another in zip64', () => withEntry({ flags: 8, behind: descriptor(5, 8) })],
  [
    'zip-gap',
    'a data descriptor without its signature',
    () => withEntry({ flags: 8, behind: descriptor(4).fill(0, 0, 4) }),
  ],
  [
    'zip-gap',
    'an entry that the directory lacks',
    () => withEntry({ behind: headerAndData({ name: 'archive/data/1', data: 'evil' }) }),
  ],
  [
    'zip-gap',
    'bytes before the first',
    () => archive({ entries: inFolder(RECORDS), before: 'MZ' }),
  ],
  ['zip-content', 'no entries', () => archive({ entries: [] })],
  ['zip-torchscript', 'a module', () => withRecords({ 'constants.pkl': 'x' })],
  ['zip-pickle', 'none', () => withRecords({ 'data.pkl': undefined })],
  ['zip-version-record', 'none', () => withRecords({ version: undefined })],
  ['zip-version', '99, in addition to another', () => withRecords({ '.data/version': '99\n' })],
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

describe('a PyTorch archive', () => {
  it.each(ATTACKS)('is refused by %s: %s', (rule, _, bytes) => {
    expect(ruleOfBytes(bytes())).toBe(rule);
  });

  it('is tested against every rule', () => {
    expect(new Set(ATTACKS.map(([rule]) => rule))).toEqual(new Set(Object.keys(ZIP_RULES)));
  });

  it('is refused with the file, the position and a suggestion', () => {
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
