/**
 * Writes zip archives as PyTorch does: entries uncompressed and aligned, checksums and sizes after the data, in
 * one sequential pass. The layout is known before the first byte is written.
 */
import { crc32 } from 'node:zlib';
import type { ByteSink } from '../../../base/files/write-whole.js';
import {
  DESCRIPTOR_FLAG,
  END64_LENGTH,
  EXTRA_HEAD_BYTES,
  RECORD_BYTES,
  SATURATED_16,
  SATURATED_32,
  SIGNATURES,
  STORED,
  ZIP64_EXTRA,
} from './zip-end.js';

/** Consumes the next bytes of an entry; their buffer may be reused after the promise resolves. */
export type ByteConsumer = (bytes: Uint8Array) => Promise<void>;

export interface ZipContent {
  /** Name with its folder: `archive/data/0`. */
  readonly name: string;
  readonly bytes: number;
  /** Passes exactly `bytes` bytes to `take`. */
  fill(take: ByteConsumer): Promise<void>;
}

interface PlacedEntry {
  readonly content: ZipContent;
  /** Position of the entry's header in the file. */
  readonly position: number;
  /** Position of its data. */
  readonly data: number;
}

export interface ZipPlan {
  readonly entries: readonly PlacedEntry[];
  readonly directory: number;
  readonly fileBytes: number;
}

/** Alignment of the data of every entry, as in PyTorch files. */
const ALIGNMENT = 64;

/** PyTorch's extra field for alignment: two letters as ID, another letter as padding. */
const PADDING_EXTRA = 'F'.charCodeAt(0) + ('B'.charCodeAt(0) << 8);
const PADDING = 'Z';

/** Zip version that a reader must support: 2.0 in general, 4.5 for zip64. */
const VERSION = { plain: 20, zip64: 45 } as const;
/** Checksum and sizes follow the data; names are UTF-8. */
const FLAGS = DESCRIPTOR_FLAG | (1 << 11);
/** 1 January 1980, the earliest date in zip. A constant date makes the output reproducible. */
const DATE = (1 << 5) | 1;

/** Size of all records after the directory. */
const END_BYTES = RECORD_BYTES.end64 + RECORD_BYTES.locator64 + RECORD_BYTES.end;

export function planZip(contents: readonly ZipContent[]): ZipPlan {
  const entries: PlacedEntry[] = [];
  let position = 0;
  let directoryBytes = 0;
  for (const content of contents) {
    const unaligned =
      position +
      RECORD_BYTES.header +
      Buffer.byteLength(content.name) +
      headerExtra(content).length +
      EXTRA_HEAD_BYTES;
    const entry = { content, position, data: Math.ceil(unaligned / ALIGNMENT) * ALIGNMENT };
    entries.push(entry);
    directoryBytes += directoryEntry(entry, 0).length;
    position = entry.data + content.bytes + descriptor(content, 0).length;
  }
  return { entries, directory: position, fileBytes: position + directoryBytes + END_BYTES };
}

/**
 * Writes a planned archive to an empty sink.
 * @throws Error if an entry has more or fewer bytes than planned; rethrows errors of the entries.
 */
export async function writeZip(sink: ByteSink, plan: ZipPlan): Promise<void> {
  if (sink.position !== 0) throw new Error(`an archive begins its file, not at ${sink.position}`);
  const directory: Buffer[] = [];
  for (const entry of plan.entries) {
    await sink.write(header(entry));
    const checksum = await writeContent(sink, entry.content);
    await sink.write(descriptor(entry.content, checksum));
    directory.push(directoryEntry(entry, checksum));
  }
  for (const entry of directory) await sink.write(entry);
  await sink.write(endRecords(plan));
}

/** @returns CRC-32 of the content. */
async function writeContent(sink: ByteSink, content: ZipContent): Promise<number> {
  const { name, bytes } = content;
  let checksum = 0;
  let written = 0;
  const expect = (isRight: boolean) => {
    if (!isRight) throw new Error(`${name} was planned with ${bytes} bytes and has ${written}`);
  };
  await content.fill(async (piece) => {
    written += piece.length;
    expect(written <= bytes);
    // Compute the checksum during the write.
    const isWritten = sink.write(piece);
    checksum = crc32(piece, checksum);
    await isWritten;
  });
  expect(written === bytes);
  return checksum;
}

const isLarge = (value: number) => value >= SATURATED_32;
const in32 = (value: number) => Math.min(value, SATURATED_32);
const in16 = (value: number) => Math.min(value, SATURATED_16);

function header({ content, position, data }: PlacedEntry): Buffer {
  const name = Buffer.from(content.name);
  const extra = headerExtra(content);
  const padding = data - position - RECORD_BYTES.header - name.length - extra.length;
  const paddingBytes = padding - EXTRA_HEAD_BYTES;
  return Buffer.concat([
    fields(
      [4, SIGNATURES.header],
      [2, isLarge(content.bytes) ? VERSION.zip64 : VERSION.plain],
      [2, FLAGS],
      [2, STORED],
      [2, 0],
      [2, DATE],
      [4, 0],
      [4, 0],
      [4, 0],
      [2, name.length],
      [2, extra.length + padding],
    ),
    name,
    extra,
    fields([2, PADDING_EXTRA], [2, paddingBytes]),
    Buffer.alloc(paddingBytes, PADDING),
  ]);
}

/** Zip64 field of a header. Its presence means that the sizes after the data have 64 bits. */
const headerExtra = ({ bytes }: ZipContent): Buffer =>
  zip64Extra(isLarge(bytes) ? [bytes, bytes] : []);

function descriptor({ bytes }: ZipContent, checksum: number): Buffer {
  const width = isLarge(bytes) ? 8 : 4;
  return fields([4, SIGNATURES.descriptor], [4, checksum], [width, bytes], [width, bytes]);
}

function directoryEntry({ content, position }: PlacedEntry, checksum: number): Buffer {
  const name = Buffer.from(content.name);
  const extra = zip64Extra([content.bytes, content.bytes, position].filter(isLarge));
  const version = extra.length > 0 ? VERSION.zip64 : VERSION.plain;
  return Buffer.concat([
    fields(
      [4, SIGNATURES.entry],
      [2, version],
      [2, version],
      [2, FLAGS],
      [2, STORED],
      [2, 0],
      [2, DATE],
      [4, checksum],
      [4, in32(content.bytes)],
      [4, in32(content.bytes)],
      [2, name.length],
      [2, extra.length],
      [2, 0],
      [2, 0],
      [2, 0],
      [4, 0],
      [4, in32(position)],
    ),
    name,
    extra,
  ]);
}

/** Empty for an empty list. */
function zip64Extra(values: readonly number[]): Buffer {
  if (values.length === 0) return Buffer.alloc(0);
  return fields(
    [2, ZIP64_EXTRA],
    [2, 8 * values.length],
    ...values.map((value) => [8, value] as const),
  );
}

/** All three end records: PyTorch writes them even if the first two are not needed. */
function endRecords({ entries, directory, fileBytes }: ZipPlan): Buffer {
  const end64 = fileBytes - END_BYTES;
  const directoryBytes = end64 - directory;
  return fields(
    [4, SIGNATURES.end64],
    [8, Number(END64_LENGTH)],
    [2, VERSION.zip64],
    [2, VERSION.zip64],
    [4, 0],
    [4, 0],
    [8, entries.length],
    [8, entries.length],
    [8, directoryBytes],
    [8, directory],
    [4, SIGNATURES.locator64],
    [4, 0],
    [8, end64],
    [4, 1],
    [4, SIGNATURES.end],
    [2, 0],
    [2, 0],
    [2, in16(entries.length)],
    [2, in16(entries.length)],
    [4, in32(directoryBytes)],
    [4, in32(directory)],
    [2, 0],
  );
}

/** Encodes numbers in sequence, each with its width in bytes. */
function fields(...list: readonly (readonly [2 | 4 | 8, number])[]): Buffer {
  const target = Buffer.alloc(list.reduce((sum, [width]) => sum + width, 0));
  let at = 0;
  for (const [width, value] of list) {
    if (width === 8) target.writeBigUInt64LE(BigInt(value), at);
    else target.writeUIntLE(value, at, width);
    at += width;
  }
  return target;
}
