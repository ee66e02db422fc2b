import { isUtf8 } from 'node:buffer';
import type { ByteFile } from '../../byte-file.js';
import type { Refusal } from '../../rules.js';
import { quoted, refusal, SAVE_TORCH_AGAIN } from '../../rules.js';
import type { DirectoryPlace } from './zip-end.js';
import {
  EXTRA_HEAD_BYTES,
  RECORD_BYTES,
  SATURATED_16,
  SATURATED_32,
  SIGNATURES,
  STORED,
  ZIP64_EXTRA,
} from './zip-format.js';

/** An entry as the place of a problem. */
export const entryPlace = (name: string) => `entry ${quoted(name)}`;

/**
 * Name of an entry, always decoded as UTF-8: PyTorch compares the bytes of names and ignores the flag.
 * @param position Position of the entry in the file.
 */
function readName(path: string, bytes: Buffer, position: number): string {
  const name = bytes.toString('utf8');
  if (!isUtf8(bytes)) {
    throw refusal(path, {
      rule: 'zip-name-utf8',
      place: `byte ${position}`,
      message: `the entry here has the name ${quoted(name)}, which is no valid UTF-8`,
      suggestion: SAVE_TORCH_AGAIN,
    });
  }
  if (!isPlainPath(name)) {
    throw refusal(path, {
      rule: 'zip-name',
      place: entryPlace(name),
      message:
        'has no plain relative path for a name: control characters, backslashes, drives and empty, . or .. segments are refused',
      suggestion: 'be careful with this file: PyTorch does not write such names',
    });
  }
  return name;
}

/** Whether a name is a safe relative path on every system. */
export function isPlainPath(name: string): boolean {
  return (
    !/[\p{Cc}\\]|^.:/u.test(name) &&
    name.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..')
  );
}

export interface DirectoryEntry {
  readonly name: string;
  readonly nameBytes: Uint8Array;
  readonly method: number;
  readonly flags: number;
  readonly bytes: bigint;
  /** Position of the entry's header in the file. */
  readonly position: bigint;
}

/**
 * Entries of a directory, each checked on its own.
 * @throws UserError at the first invalid entry, or at the end if their number is wrong.
 */
export function* readDirectory(
  file: ByteFile,
  { position, bytes, entries }: DirectoryPlace,
): Generator<DirectoryEntry, void, void> {
  const directory = file.read(position, bytes);
  let count = 0n;
  let at = 0;
  for (; count < entries; count++) {
    const end = endOfEntry(directory, at);
    if (end > bytes) break;
    yield readEntry(file.path, directory.subarray(at, end), position + at);
    at = end;
  }
  if (count !== entries || at !== bytes) {
    throw refusal(file.path, {
      rule: 'zip-directory-entries',
      place: `byte ${position + at}`,
      message: `the directory has ${count} entries in ${at} bytes, expected ${entries} in ${bytes}`,
      suggestion: SAVE_TORCH_AGAIN,
    });
  }
}

/** End of an entry; infinite if its fixed part is incomplete. */
function endOfEntry(directory: Buffer, at: number): number {
  const end = at + RECORD_BYTES.entry;
  if (end > directory.length) return Number.POSITIVE_INFINITY;
  const [name, extra, comment] = [28, 30, 32].map((field) => directory.readUInt16LE(at + field));
  return end + (name ?? 0) + (extra ?? 0) + (comment ?? 0);
}

/** Flags that change the meaning of the bytes: two for encryption, patches, hidden headers. */
const REFUSED_FLAGS = (1 << 0) | (1 << 5) | (1 << 6) | (1 << 13);

/**
 * @param entry The complete bytes of one entry.
 * @param at Position of these bytes in the file.
 */
function readEntry(path: string, entry: Buffer, at: number): DirectoryEntry {
  const refuse: Refuse = (broken) =>
    refusal(path, { place: `byte ${at}`, suggestion: SAVE_TORCH_AGAIN, ...broken });
  if (entry.readUInt32LE(0) !== SIGNATURES.entry) {
    throw refuse({ rule: 'zip-entry', message: 'an entry of the directory should begin here' });
  }
  const nameEnd = RECORD_BYTES.entry + entry.readUInt16LE(28);
  const nameBytes = entry.subarray(RECORD_BYTES.entry, nameEnd);
  const name = readName(path, nameBytes, at);
  const refuseEntry: Refuse = (broken) => refuse({ place: entryPlace(name), ...broken });

  checkAttributes(entry.readUInt32LE(38), refuseEntry);
  const flags = entry.readUInt16LE(8);
  const method = entry.readUInt16LE(10);
  if ((flags & REFUSED_FLAGS) !== 0) {
    throw refuseEntry({
      rule: 'zip-flags',
      message: `is encrypted or a patch: its flags are 0x${flags.toString(16)}`,
    });
  }
  if (method !== STORED) {
    throw refuseEntry({
      rule: 'zip-method',
      message: `is compressed by method ${method}, expected ${STORED}, which is none`,
      suggestion:
        'unpack it and pack it again without compression (zip -0 -D -r), or save it again with torch.save',
    });
  }
  const extra = entry.subarray(nameEnd, nameEnd + entry.readUInt16LE(30));
  const { bytes, storedBytes, position, disk } = directorySizes(entry, extra, refuseEntry);
  if (bytes !== storedBytes) {
    throw refuseEntry({
      rule: 'zip-sizes',
      message: `has ${storedBytes} bytes in the archive and ${bytes} unpacked, expected the same`,
    });
  }
  if (disk !== 0) {
    throw refuseEntry({ rule: 'zip-entry-disk', message: `lies on disk ${disk}, expected 0` });
  }
  return { name, nameBytes, method, flags, bytes, position };
}

/** MS-DOS folder attribute: PyTorch does not read such an entry, and loads uninitialised memory. */
const FOLDER_ATTRIBUTE = 1 << 4;
/** Unix file types in the highest four bits of a mode: none, and regular file. */
const FILE_KINDS: readonly number[] = [0, 8];

/** @param external MS-DOS attributes in the low half, Unix mode in the high half. */
function checkAttributes(external: number, refuse: Refuse): void {
  if ((external & FOLDER_ATTRIBUTE) === 0 && FILE_KINDS.includes(external >>> 28)) return;
  throw refuse({
    rule: 'zip-attributes',
    message: `has the attributes 0x${external.toString(16)} of a folder, a link or a device, expected those of a regular file`,
  });
}

export type Refuse = (broken: Omit<Refusal, 'place'> & { readonly place?: string }) => Error;

/** Offsets of 32-bit fields that can be saturated, in the order of the zip64 field. */
const WIDENED = { bytes: 24, storedBytes: 20, position: 42 } as const;
/** Offset of a 16-bit field, widened to 32. */
const DISK = 34;

/** Sizes, position and disk of an entry, from its zip64 field where its own fields are saturated. */
function directorySizes(entry: Buffer, extra: Buffer, refuse: Refuse) {
  const field = zip64Field(extra, refuse);
  const missing = Object.values(WIDENED).filter((at) => entry.readUInt32LE(at) === SATURATED_32);
  const isDiskMissing = entry.readUInt16LE(DISK) === SATURATED_16;
  const expected = 8 * missing.length + (isDiskMissing ? 4 : 0);
  if (field.length !== expected) {
    throw refuse({
      rule: 'zip-64-extra',
      message: `has a zip64 field of ${field.length} bytes, expected ${expected}`,
    });
  }
  const read = (at: (typeof missing)[number]) => {
    const index = missing.indexOf(at);
    return index < 0 ? BigInt(entry.readUInt32LE(at)) : field.readBigUInt64LE(8 * index);
  };
  return {
    bytes: read(WIDENED.bytes),
    storedBytes: read(WIDENED.storedBytes),
    position: read(WIDENED.position),
    disk: isDiskMissing ? field.readUInt32LE(8 * missing.length) : entry.readUInt16LE(DISK),
  };
}

const ABSENT = Buffer.alloc(0);

/** Content of the zip64 extra field; empty if there is none. */
export function zip64Field(extra: Buffer, refuse: Refuse): Buffer {
  const found: Buffer[] = [];
  let at = 0;
  while (at + EXTRA_HEAD_BYTES <= extra.length) {
    const start = at + EXTRA_HEAD_BYTES;
    const end = start + extra.readUInt16LE(at + 2);
    if (end > extra.length) break;
    if (extra.readUInt16LE(at) === ZIP64_EXTRA) found.push(extra.subarray(start, end));
    at = end;
  }
  if (at !== extra.length || found.length > 1) {
    throw refuse({
      rule: 'zip-extra',
      message: `has ${extra.length} bytes of extra fields, of which ${at} are whole fields and ${found.length} for zip64`,
    });
  }
  return found[0] ?? ABSENT;
}
