/** Mutations of torch.save files: of the archive, its records or its pickles. */
import { readTorchArchive } from '../../src/checkpoint/torch/zip/torch-archive.js';
import { fileOf } from '../checkpoint/byte-files.js';
import {
  type ArchiveSpec,
  archive,
  descriptor,
  type EntrySpec,
  headerAndData,
  SATURATED,
  zip64,
} from '../checkpoint/torch/zip-builder.js';
import { type Dice, mutateBytes } from './dice.js';
import { mutatePickle, splitPickles } from './pickles.js';

/** The entries of a valid archive. */
export function entriesOf(bytes: Buffer): EntrySpec[] {
  const { root, records } = readTorchArchive(fileOf(bytes));
  return [...records].map(([name, record]) => ({
    name: `${root}/${name}`,
    data: bytes.subarray(record.position, record.position + record.bytes),
  }));
}

const nameOf = ({ name }: EntrySpec) => Buffer.from(name).toString();
const dataOf = ({ data }: EntrySpec) => Buffer.from(data ?? '');

/** A name in capital letters, except for its folder. */
function otherCase(name: string): string {
  const slash = name.indexOf('/') + 1;
  return name.slice(0, slash) + name.slice(slash).toUpperCase();
}

const ATTRIBUTES = [
  0x10,
  0x20,
  0x08,
  0o120777 * 2 ** 16,
  0o040755 * 2 ** 16,
  0o100644 * 2 ** 16,
] as const;
const WORDS = ['little', 'big', 'LITTLE', '3\n', '10', '0', '1', '64'] as const;

/** Entries that replace an entry, in order. */
type Change = (entry: EntrySpec, dice: Dice, others: readonly EntrySpec[]) => readonly EntrySpec[];

const CHANGES: readonly Change[] = [
  (entry, dice) => [{ ...entry, entry: { external: dice.pick(ATTRIBUTES) } }],
  (entry) => [entry, { ...entry, name: otherCase(nameOf(entry)) }],
  (entry, dice) => [
    { ...entry, name: otherCase(nameOf(entry)), data: mutateBytes(dataOf(entry), dice) },
    entry,
  ],
  (entry) => [{ ...entry, name: otherCase(nameOf(entry)) }],
  (entry, dice) => [entry, { ...entry, data: mutateBytes(dataOf(entry), dice) }],
  (entry, dice) => [{ ...entry, header: { size: dice.below(99), stored: dice.below(99) } }],
  (entry) => [
    {
      ...entry,
      flags: 8,
      header: { size: 0, stored: 0 },
      behind: descriptor(dataOf(entry).length),
    },
  ],
  (entry, dice) => [{ ...entry, flags: 8, behind: descriptor(dice.below(99), dice.pick([4, 8])) }],
  (entry, dice) => [{ ...entry, behind: Buffer.alloc(1 + dice.below(64)) }],
  (entry, dice) => [
    { ...entry, behind: headerAndData({ ...entry, data: mutateBytes(dataOf(entry), dice) }) },
  ],
  (entry, dice) => [
    {
      ...entry,
      headerExtra: Buffer.from(`FB\u0008\0${'Z'.repeat(8)}`),
      comment: Buffer.alloc(dice.below(9)),
    },
  ],
  (entry) => [
    {
      ...entry,
      entry: { size: SATURATED, stored: SATURATED },
      extra: zip64(dataOf(entry).length, dataOf(entry).length),
    },
  ],
  (entry, dice) => [
    {
      ...entry,
      entry: {
        [dice.pick([
          'size',
          'stored',
          'position',
          'flags',
          'crc',
          'method',
          'madeBy',
          'internal',
          'disk',
        ] as const)]: dice.below(300),
      },
    },
  ],
  (entry, dice) => [
    {
      ...entry,
      header: {
        [dice.pick([
          'flags',
          'crc',
          'method',
          'version',
          'time',
          'nameLength',
          'extraLength',
        ] as const)]: dice.below(300),
      },
    },
  ],
  (entry, dice) => [{ ...entry, flags: 1 << dice.below(16) }],
  (entry, dice, others) => [{ ...entry, data: dataOf(dice.pick(others)) }],
  (entry, dice, others) => [{ ...entry, name: nameOf(dice.pick(others)) }],
  (entry, dice) => [{ ...entry, data: mutateBytes(dataOf(entry), dice) }],
  (entry, dice) => [{ ...entry, data: dice.pick(WORDS) }],
  (entry, dice) => [
    entry,
    {
      name: nameOf(entry).replace(
        /[^/]*$/,
        dice.pick([
          'byteorder',
          'BYTEORDER',
          'version',
          '.format_version',
          '.storage_alignment',
          'constants.pkl',
          'x',
        ]),
      ),
      data: dice.pick(WORDS),
    },
  ],
  () => [],
];

/** An archive with one to three changes, mostly of its pickle, which gives the records their meaning. */
export function mutateArchive(entries: readonly EntrySpec[], dice: Dice): Buffer {
  let changed: readonly EntrySpec[] = entries;
  for (let count = dice.pick([1, 1, 2, 3]); count > 0; count--) {
    const chosen = dice.happens(0.5)
      ? changed.findIndex((entry) => nameOf(entry).endsWith('/data.pkl'))
      : dice.below(changed.length);
    const entry = changed[chosen];
    if (entry === undefined) continue;
    const isPickle = nameOf(entry).endsWith('.pkl') && dice.happens(0.8);
    const parts = isPickle
      ? [{ ...entry, data: mutatePickle(dataOf(entry), dice) }]
      : dice.pick(CHANGES)(entry, dice, changed);
    changed = [...changed.slice(0, chosen), ...parts, ...changed.slice(chosen + 1)];
  }
  const bytes = archive({ entries: changed, ...around(dice) });
  return dice.happens(0.05) ? mutateBytes(bytes, dice) : bytes;
}

/** Occasional changes around the entries. */
function around(dice: Dice): Partial<ArchiveSpec> {
  if (dice.happens(0.9)) return {};
  return dice.pick<Partial<ArchiveSpec>>([
    { end64: {} },
    { end64: {}, end: { entries: 0xffff, entriesOnDisk: 0xffff } },
    { before: 'PK' },
    { comment: 'x' },
    { gap: Buffer.alloc(4) },
    { end: { entries: dice.below(9) } },
  ]);
}

/** Pickles of a legacy file: magic, protocol, system, the object and the keys of its storages. */
const LEGACY_PICKLES = 5;

/** A legacy file with one to three changes, mostly of the object. */
export function mutateLegacy(bytes: Buffer, dice: Dice): Buffer {
  const { pickles, rest } = splitPickles(bytes, LEGACY_PICKLES);
  let storages = rest;
  for (let count = dice.pick([1, 1, 2, 3]); count > 0; count--) {
    if (dice.happens(0.2)) storages = mutateBytes(storages, dice);
    else {
      const index = dice.happens(0.8) ? 3 : dice.below(LEGACY_PICKLES);
      pickles.splice(index, 1, mutatePickle(pickles[index] ?? Buffer.alloc(0), dice, true));
    }
  }
  return Buffer.concat([...pickles, storages]);
}
