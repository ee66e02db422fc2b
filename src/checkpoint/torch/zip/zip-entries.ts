import { isUtf8 } from 'node:buffer';
import type { ByteFile } from '../../byte-file.js';
import type { Refuse } from '../../checkpoint-rules.js';
import { quoted, refusal, refuseAt } from '../../checkpoint-rules.js';
import type { DirectoryRange } from './zip-end.js';
import {
  DESCRIPTOR_FLAG,
  EXTRA_HEAD_BYTES,
  RECORD_BYTES,
  SATURATED_16,
  SATURATED_32,
  SIGNATURES,
  STORED,
  ZIP64_EXTRA,
} from './zip-end.js';

/** An entry as the place of a problem. */
export const entryRange = (name: string) => `entry ${quoted(name)}`;

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
      message: `the entry here has the name ${quoted(name)}, which is not valid UTF-8`,
    });
  }
  if (!isPlainPath(name)) {
    throw refusal(path, {
      rule: 'zip-name',
      place: entryRange(name),
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
  { position, bytes, entries }: DirectoryRange,
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
  if (entry.readUInt32LE(0) !== SIGNATURES.entry) {
    throw refuseAt(path, `byte ${at}`)('zip-entry', 'an entry of the directory should begin here');
  }
  const nameEnd = RECORD_BYTES.entry + entry.readUInt16LE(28);
  const nameBytes = entry.subarray(RECORD_BYTES.entry, nameEnd);
  const name = readName(path, nameBytes, at);
  const refuse = refuseAt(path, entryRange(name));

  checkAttributes(entry.readUInt32LE(38), refuse);
  const flags = entry.readUInt16LE(8);
  const method = entry.readUInt16LE(10);
  if ((flags & REFUSED_FLAGS) !== 0) {
    throw refuse('zip-flags', `is encrypted or a patch: its flags are 0x${flags.toString(16)}`);
  }
  if (method !== STORED) {
    throw refuse(
      'zip-method',
      `is compressed by method ${method}, expected ${STORED}, which is none`,
      'unpack it and pack it again without compression (zip -0 -D -r), or save it again with torch.save',
    );
  }
  const extra = entry.subarray(nameEnd, nameEnd + entry.readUInt16LE(30));
  const { bytes, storedBytes, position, disk } = directorySizes(entry, extra, refuse);
  if (bytes !== storedBytes) {
    throw refuse(
      'zip-sizes',
      `has ${storedBytes} bytes in the archive and ${bytes} unpacked, expected the same`,
    );
  }
  if (disk !== 0) {
    throw refuse('zip-entry-disk', `lies on disk ${disk}, expected 0`);
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
  throw refuse(
    'zip-attributes',
    `has the attributes 0x${external.toString(16)} of a folder, a link or a device, expected those of a regular file`,
  );
}

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
    throw refuse(
      'zip-64-extra',
      `has a zip64 field of ${field.length} bytes, expected ${expected}`,
    );
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
function zip64Field(extra: Buffer, refuse: Refuse): Buffer {
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
    throw refuse(
      'zip-extra',
      `has ${extra.length} bytes of extra fields, of which ${at} are whole fields and ${found.length} for zip64`,
    );
  }
  return found[0] ?? ABSENT;
}

/** Location of an entry in the file: its header, and its data up to `end`. */
export interface EntryRange {
  readonly header: number;
  readonly data: number;
  readonly end: number;
  readonly hasDescriptor: boolean;
}

/**
 * Finds the data of entries by their headers. Ignores the header's checksum: PyTorch writes 0 there, and the
 * directory has the real one.
 */
export class HeaderReader {
  readonly #file: ByteFile;
  /** Position of the directory; data must end before it. */
  readonly #limit: number;
  /** Buffer for a header and the longest name, reused for all entries. */
  readonly #scratch = Buffer.alloc(RECORD_BYTES.header + SATURATED_16);

  constructor(file: ByteFile, limit: number) {
    this.#file = file;
    this.#limit = limit;
  }

  /** @throws UserError if the entry's header is missing or belongs to another entry. */
  locate({ name, nameBytes, method, flags, bytes, position }: DirectoryEntry): EntryRange {
    const refuse = refuseAt(this.#file.path, entryRange(name));
    const fixedEnd = position + BigInt(RECORD_BYTES.header);
    if (fixedEnd > this.#limit) {
      throw refuse(
        'zip-header-place',
        `has its header at byte ${position}, but the directory begins at ${this.#limit}`,
      );
    }
    const header = this.#read(Number(position), nameBytes.length);
    if (header.readUInt32LE(0) !== SIGNATURES.header) {
      throw refuse('zip-header', `should have its header at byte ${position}, where none begins`);
    }
    const [ownFlags, ownMethod] = [header.readUInt16LE(6), header.readUInt16LE(8)];
    if (ownFlags !== flags || ownMethod !== method) {
      throw refuse(
        'zip-header-agrees',
        `has flags 0x${ownFlags.toString(16)} and method ${ownMethod} in its header, in the directory 0x${flags.toString(16)} and ${method}`,
      );
    }
    const nameLength = header.readUInt16LE(26);
    if (
      nameLength !== nameBytes.length ||
      !header.subarray(RECORD_BYTES.header).equals(nameBytes)
    ) {
      throw refuse('zip-header-name', `has another name in its header, at byte ${position}`);
    }
    const extraBytes = header.readUInt16LE(28);
    const data = fixedEnd + BigInt(nameLength + extraBytes);
    const end = data + bytes;
    if (end > this.#limit) {
      throw refuse(
        'zip-data-place',
        `has ${bytes} bytes from byte ${data} on, but the directory begins at ${this.#limit}`,
      );
    }
    const hasDescriptor = (flags & DESCRIPTOR_FLAG) !== 0;
    const sizes = HEADER_SIZES.map((at) => header.readUInt32LE(at));
    const isLeftOut = hasDescriptor && sizes.every((size) => size === 0);
    if (!isLeftOut) {
      const extra = () => this.#file.read(Number(data) - extraBytes, extraBytes);
      const own = headerSizes(sizes, extra, refuse);
      if (own.some((size) => size !== bytes)) {
        throw refuse(
          'zip-header-sizes',
          `has ${own.join(' and ')} bytes in its header, in the directory ${bytes}`,
        );
      }
    }
    // Exact: all three are within the file.
    return { header: Number(position), data: Number(data), end: Number(end), hasDescriptor };
  }

  /** Reads the header at `position` and its name, up to the directory. */
  #read(position: number, nameLength: number): Buffer {
    const minimumBytes = RECORD_BYTES.header + nameLength;
    const header = this.#scratch.subarray(0, Math.min(minimumBytes, this.#limit - position));
    this.#file.readInto(header, position);
    return header;
  }
}

/** Offsets of unpacked and packed size in a header, in the order of its zip64 field. */
const HEADER_SIZES = [22, 18] as const;

/** Sizes in a header, from its zip64 field where they are saturated; 0 where the field is too short. */
function headerSizes(sizes: readonly number[], extra: () => Buffer, refuse: Refuse): bigint[] {
  if (!sizes.includes(SATURATED_32)) return sizes.map(BigInt);
  const field = zip64Field(extra(), refuse);
  let at = 0;
  return sizes.map((size) => {
    if (size !== SATURATED_32) return BigInt(size);
    const start = at;
    at += 8;
    return at <= field.length ? field.readBigUInt64LE(start) : 0n;
  });
}
