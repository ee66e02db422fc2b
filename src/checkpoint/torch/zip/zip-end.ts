import type { ByteFile } from '../../byte-file.js';
import type { Refuse } from '../../checkpoint-rules.js';
import { refuseAt } from '../../checkpoint-rules.js';

// Records of a zip archive (PKWARE APPNOTE.TXT 6.3.10, sections 4.3 to 4.5), shared by reader and writer. All
// numbers are little-endian.

export const SIGNATURES = {
  header: 0x04034b50,
  descriptor: 0x08074b50,
  entry: 0x02014b50,
  end64: 0x06064b50,
  locator64: 0x07064b50,
  end: 0x06054b50,
} as const;

/** Sizes of the records without names, extra fields and comments. */
export const RECORD_BYTES = {
  header: 30,
  entry: 46,
  end64: 56,
  locator64: 20,
  end: 22,
} as const;

/** The length field of a zip64 end record excludes the signature and itself. */
export const END64_LENGTH = BigInt(RECORD_BYTES.end64 - 12);

/** A 32-bit field with this value refers to the zip64 extra field. */
export const SATURATED_32 = 0xffff_ffff;
export const SATURATED_16 = 0xffff;

/** An extra field starts with its ID and the length of the rest, 16 bits each. */
export const EXTRA_HEAD_BYTES = 4;
/** ID of the extra field for values over 32 bits. */
export const ZIP64_EXTRA = 1;

/** Compression method of uncompressed entries. */
export const STORED = 0;

/** Flag of an entry whose sizes and checksum follow its data. */
export const DESCRIPTOR_FLAG = 1 << 3;
/** Sizes of a data descriptor with signature, for 32-bit and 64-bit sizes. */
export const DESCRIPTOR_BYTES = [16, 24] as const;

export interface DirectoryRange {
  readonly position: number;
  readonly bytes: number;
  /** Number of entries according to the end record. */
  readonly entries: bigint;
}

/** Enough for about 200,000 entries, far more than any model has tensors. */
const MAX_DIRECTORY_BYTES = 16 * 2 ** 20;

/** Offsets of the records in the last bytes of a file that has them all. */
const AT = {
  end64: 0,
  locator64: RECORD_BYTES.end64,
  end: RECORD_BYTES.end64 + RECORD_BYTES.locator64,
} as const;
const TAIL_BYTES = AT.end + RECORD_BYTES.end;

/** Fields of both end records: offset and bytes in each. The zip64 end record has wider ones. */
const FIELDS = {
  disk: { narrow: [4, 2], wide: [16, 4], meaning: 'the number of this disk' },
  directoryDisk: { narrow: [6, 2], wide: [20, 4], meaning: 'the disk of the directory' },
  entriesOnDisk: { narrow: [8, 2], wide: [24, 8], meaning: 'the entries on this disk' },
  entries: { narrow: [10, 2], wide: [32, 8], meaning: 'the entries' },
  bytes: { narrow: [12, 4], wide: [40, 8], meaning: 'the bytes of the directory' },
  position: { narrow: [16, 4], wide: [48, 8], meaning: 'the position of the directory' },
} as const;

type Field = keyof typeof FIELDS;

const FIELD_NAMES = Object.keys(FIELDS) as readonly Field[];

type End = Readonly<Record<Field, bigint>>;

/** Fields of the end record, or of the zip64 end record. */
function endOf(tail: Buffer, record: 'narrow' | 'wide'): End {
  const start = record === 'wide' ? AT.end64 : AT.end;
  const read = (field: Field) => {
    const [at, bytes] = FIELDS[field][record];
    return bytes === 8
      ? tail.readBigUInt64LE(start + at)
      : BigInt(tail.readUIntLE(start + at, bytes));
  };
  return Object.fromEntries(FIELD_NAMES.map((field) => [field, read(field)])) as End;
}

/** Whether a field of the end record refers to the zip64 end record: all of its bits are set. */
const isSaturated = (field: Field, value: bigint) =>
  value === 2n ** BigInt(8 * FIELDS[field].narrow[1]) - 1n;

/**
 * Reads the records at the end of an archive.
 * @throws UserError if they are missing, contradict each other, or the directory does not end right before them.
 */
export function readEnd(file: ByteFile): DirectoryRange {
  const tail = readTail(file);
  /** File position of an offset in the tail. */
  const position = (offset: number) => file.size - TAIL_BYTES + offset;
  const at: RefuseAt = (offset) => refuseAt(file.path, `byte ${Math.max(0, position(offset))}`);

  if (tail.readUInt32LE(AT.end) !== SIGNATURES.end || tail.readUInt16LE(AT.end + 20) !== 0) {
    throw at(AT.end)(
      'zip-end',
      'the file does not end with the end record of a zip archive without a comment: it was cut short, or something follows',
    );
  }
  const has64 = tail.readUInt32LE(AT.locator64) === SIGNATURES.locator64;
  if (has64) checkEnd64(tail, position(AT.end64), at);
  const end = endOf(tail, has64 ? 'wide' : 'narrow');
  checkOneDisk(end, has64 ? tail : undefined, at);

  const start = has64 ? AT.end64 : AT.end;
  if (end.position + end.bytes !== BigInt(position(start))) {
    throw at(start)(
      'zip-directory-place',
      `the directory has ${end.bytes} bytes from byte ${end.position} on, but should end here`,
    );
  }
  if (end.bytes > MAX_DIRECTORY_BYTES) {
    throw at(start)(
      'zip-directory-size',
      `the directory has ${end.bytes} bytes, expected at most ${MAX_DIRECTORY_BYTES}`,
    );
  }
  // Exact: both are within the file.
  return { position: Number(end.position), bytes: Number(end.bytes), entries: end.entries };
}

/** The last bytes of the file, zero-padded at the front when it is shorter. */
function readTail(file: ByteFile): Buffer {
  const tail = Buffer.alloc(TAIL_BYTES);
  const present = Math.min(file.size, TAIL_BYTES);
  file.readInto(tail.subarray(TAIL_BYTES - present), file.size - present);
  return tail;
}

/** @param offset Offset in the tail. */
type RefuseAt = (offset: number) => Refuse;

/** @param position Expected position of the zip64 end record. */
function checkEnd64(tail: Buffer, position: number, at: RefuseAt): void {
  const located = tail.readBigUInt64LE(AT.locator64 + 8);
  if (located !== BigInt(position)) {
    throw at(AT.locator64)(
      'zip-64-locator',
      `the zip64 end record is said to be at byte ${located}, expected ${position}`,
    );
  }
  const length = tail.readBigUInt64LE(AT.end64 + 4);
  if (tail.readUInt32LE(AT.end64) !== SIGNATURES.end64 || length !== END64_LENGTH) {
    throw at(AT.end64)('zip-64-end', `a zip64 end record of length ${END64_LENGTH} should be here`);
  }
  const narrow = endOf(tail, 'narrow');
  const wide = endOf(tail, 'wide');
  const differing = FIELD_NAMES.find(
    (field) => !isSaturated(field, narrow[field]) && narrow[field] !== wide[field],
  );
  if (differing !== undefined) {
    throw at(AT.end64)(
      'zip-64-agrees',
      `the zip64 end record says ${wide[differing]} for ${FIELDS[differing].meaning}, and the end record ${narrow[differing]}`,
    );
  }
}

/** @param tail Present if the file has a zip64 locator. */
function checkOneDisk(end: End, tail: Buffer | undefined, at: RefuseAt): void {
  const locatorDisk = tail?.readUInt32LE(AT.locator64 + 4) ?? 0;
  const disks = tail?.readUInt32LE(AT.locator64 + 16) ?? 1;
  const isOne =
    end.disk === 0n &&
    end.directoryDisk === 0n &&
    end.entriesOnDisk === end.entries &&
    locatorDisk === 0 &&
    disks === 1;
  if (!isOne) {
    throw at(AT.end)(
      'zip-one-disk',
      'expected an archive in one part, found end records of several parts',
    );
  }
}
