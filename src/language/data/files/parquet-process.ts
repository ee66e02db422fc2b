/**
 * Process that reads a Parquet file and writes its rows as JSON lines to stdout. Runs of a Parquet file can claim any
 * number of values, so its reader needs limits of memory and time, which only a process has.
 */
import { once } from 'node:events';
import { type FileHandle, open } from 'node:fs/promises';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { decompress as unzstd } from 'fzstd';
import type { ColumnMetaData, Compressors, FileMetaData, RowGroup } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';
import { parquetMetadataAsync } from 'hyparquet/src/metadata.js';
import { parquetRead } from 'hyparquet/src/read.js';
import { snappyUncompress } from 'hyparquet/src/snappy.js';
import { decompressLz4, decompressLz4Raw } from 'hyparquet-compressors';
import { shortened } from '../../../base/text/words.js';
import { RECORD_KEYS } from '../record-keys.js';

/** Message to the parent: bytes of a row group that has been read, or the reason why nothing more is. */
export type ParquetMessage = { readonly bytes: number } | { readonly problem: string };

/** Maximum values of a column of a row group. Runs of one value need no bytes, others at least a bit. */
const MOST_VALUES = { free: 8_000_000, perByte: 100 } as const;

/** Maximum ratio of unpacked to packed bytes of a page, beyond the first ones; gzip has at most 1032. */
const PAGE_BOUNDS = { ratio: 1100, first: 1_000_000 } as const;

/** Bytes of a piece of output. */
const PIECE_BYTES = 1 << 18;

/** A part of a file whose content the reader must not follow. */
class Damage extends Error {}

interface OpenFile {
  readonly byteLength: number;
  slice(start: number, end?: number): Promise<ArrayBuffer>;
}

async function parquetFile(handle: FileHandle): Promise<OpenFile> {
  const { size } = await handle.stat();
  return {
    byteLength: size,
    async slice(start, end = size) {
      if (!(start >= 0 && end >= start && end <= size)) {
        throw new Damage(`names bytes ${start} to ${end} of a file of ${size}`);
      }
      const bytes = new Uint8Array(end - start);
      for (let done = 0; done < bytes.length; ) {
        const { bytesRead } = await handle.read(bytes, done, bytes.length - done, start + done);
        if (bytesRead === 0) throw new Damage('became shorter while it was read');
        done += bytesRead;
      }
      return bytes.buffer;
    },
  };
}

/** @throws Damage for a page that claims more bytes than it can unpack to. */
function checkPageBytes(packed: number, unpacked: number): void {
  const { first, ratio } = PAGE_BOUNDS;
  if (unpacked >= 0 && unpacked <= first + ratio * packed) return;
  throw new Damage(`has a page of ${packed} bytes that claims ${unpacked} unpacked`);
}

/** A page unpacked by `unpack`, within the bounds. */
const bounded =
  (unpack: (packed: Uint8Array, bytes: number) => Uint8Array) =>
  (packed: Uint8Array, bytes: number): Uint8Array => {
    checkPageBytes(packed.length, bytes);
    return unpack(packed, bytes);
  };

const compressors: Compressors = {
  SNAPPY: bounded((packed, bytes) => {
    const page = new Uint8Array(bytes);
    snappyUncompress(packed, page);
    return page;
  }),
  GZIP: bounded((packed, maxOutputLength) => gunzipSync(packed, { maxOutputLength })),
  BROTLI: bounded((packed, maxOutputLength) => brotliDecompressSync(packed, { maxOutputLength })),
  ZSTD: bounded((packed, bytes) => unzstd(packed, new Uint8Array(bytes))),
  LZ4: bounded(decompressLz4),
  LZ4_RAW: bounded(decompressLz4Raw),
};

/** Columns with records: the named one, or those of all kinds; undefined for all columns where there are none. */
function chosenColumns({ schema }: FileMetaData, key: string | undefined): string[] | undefined {
  const names = topLevelNames(schema);
  const wanted = key === undefined ? RECORD_KEYS : [key];
  const found = wanted.filter((name) => names.includes(name));
  return found.length === 0 ? undefined : found;
}

/** Names of the children of the root. A schema is a list in depth-first order, with the number of children of each. */
function topLevelNames(schema: FileMetaData['schema']): string[] {
  const names: string[] = [];
  let at = 1;
  const skip = (): void => {
    for (let left = 1; left > 0 && at < schema.length; left--)
      left += schema[at++]?.num_children ?? 0;
  };
  for (let left = schema[0]?.num_children ?? 0; left > 0 && at < schema.length; left--) {
    names.push(schema[at]?.name ?? '');
    skip();
  }
  return names;
}

/** Column chunks of a row group with the chosen columns. */
const chunksOf = ({ columns }: RowGroup, chosen: readonly string[] | undefined): ColumnMetaData[] =>
  columns.flatMap(({ meta_data: each }) =>
    each && (chosen === undefined || chosen.includes(each.path_in_schema[0] ?? '')) ? [each] : [],
  );

/** Checks the headers of all pages. @throws Damage where they claim more than their bytes can hold. */
async function checkPages(file: OpenFile, chunk: ColumnMetaData): Promise<void> {
  const start = Number(chunk.dictionary_page_offset || chunk.data_page_offset);
  const bytes = Number(chunk.total_compressed_size);
  const view = new DataView(await file.slice(start, start + bytes));
  const reader = { view, offset: 0 };
  const most = MOST_VALUES.free + MOST_VALUES.perByte * bytes;
  let values = 0;
  while (reader.offset < view.byteLength - 1) {
    const header = parquetHeader(reader);
    const { data_page_header: first, data_page_header_v2: second } = header;
    const claimed = (first ?? second ?? header.dictionary_page_header)?.num_values ?? 0;
    values += claimed;
    const size = header.compressed_page_size;
    if (!(claimed >= 0 && size >= 0)) throw new Damage('has a page with a negative size');
    checkPageBytes(size, header.uncompressed_page_size);
    if (values > most) throw new Damage(`claims more than ${most} values in ${bytes} bytes`);
    if (reader.offset + size > view.byteLength) throw new Damage('has a page beyond its column');
    reader.offset += size;
  }
}

/** A value as JSON has it. A null is left out: a row has all fields that some row has. */
function jsonValue(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint')
    return Number.isSafeInteger(Number(value)) ? Number(value) : `${value}`;
  if (value === null) return undefined;
  if (value instanceof Uint8Array) return Buffer.from(value).toString('base64');
  return ArrayBuffer.isView(value) ? Array.from(value as Int32Array) : value;
}

async function write(text: string): Promise<void> {
  if (!process.stdout.write(text)) await once(process.stdout, 'drain');
}

async function writeRows(path: string, key: string | undefined): Promise<void> {
  const handle = await open(path);
  const file = await parquetFile(handle);
  const metadata = await parquetMetadataAsync(file);
  const columns = chosenColumns(metadata, key);
  let rowStart = 0;
  for (const group of metadata.row_groups) {
    const rows = Number(group.num_rows);
    const chunks = chunksOf(group, columns);
    for (const chunk of chunks) await checkPages(file, chunk);
    const rowEnd = rowStart + rows;
    let read: Record<string, unknown>[] = [];
    await parquetRead({
      file,
      metadata,
      compressors,
      rowStart,
      rowEnd,
      rowFormat: 'object',
      ...(columns && { columns }),
      onComplete: (found: Record<string, unknown>[]) => {
        read = found;
      },
    });
    rowStart = rowEnd;
    let piece = '';
    for (const row of read) {
      piece += `${JSON.stringify(row, jsonValue)}\n`;
      if (piece.length < PIECE_BYTES) continue;
      await write(piece);
      piece = '';
    }
    await write(piece);
    const bytes = chunks.reduce((sum, chunk) => sum + Number(chunk.total_compressed_size), 0);
    process.send?.({ bytes } satisfies ParquetMessage);
    // Without a column that has records, one row shows the names of all columns.
    if (columns === undefined) break;
  }
  await handle.close();
}

const [path = '', key] = process.argv.slice(2);
writeRows(path, key)
  .catch((error: unknown) => {
    const text = shortened(error instanceof Error ? error.message : String(error), 200);
    const problem = error instanceof Damage ? text : `the Parquet data is damaged: ${text}`;
    process.send?.({ problem } satisfies ParquetMessage);
    process.exitCode = 1;
  })
  .finally(() => process.disconnect?.());
