/**
 * Strict reader for the zip archives that `torch.save` writes. Reads the directory and the entry headers, not
 * the tensors.
 */
import type { ByteFile } from '../../byte-file.js';
import { quoted, refusal } from '../../checkpoint-rules.js';
import { DESCRIPTOR_BYTES, readEnd, SIGNATURES } from './zip-end.js';
import type { EntryRange } from './zip-entries.js';
import { entryRange, HeaderReader, readDirectory } from './zip-entries.js';

export interface TorchArchive extends RecordFindings {
  /** Folder of all entries. */
  readonly root: string;
  /** Records by name without the root: `data.pkl`, `data/0`. */
  readonly records: ReadonlyMap<string, ZipRecord>;
}

/** A header with its fields, except the padding before the data; APPNOTE.TXT 4.3.7 and 4.5.3. */
const MOST_HEADER_BYTES = 30 + 64;

/**
 * Locates the records of a PyTorch file. Checksums are not verified: PyTorch can omit them.
 * @throws UserError that names the violated rule.
 */
export function readTorchArchive(file: ByteFile): TorchArchive {
  const directory = readEnd(file);
  const headers = new HeaderReader(file, directory.position);
  const records = new Map<string, ZipRecord>();
  const ranges: EntryRange[] = [];
  /** PyTorch ignores the case of names. */
  const folded = new Set<string>();
  let root: string | undefined;
  const entries = [...readDirectory(file, directory)];
  file.willRead(
    entries.map(({ position, nameBytes }) => ({
      position: Math.min(Number(position), directory.position),
      length: MOST_HEADER_BYTES + nameBytes.length,
    })),
  );
  for (const entry of entries) {
    const slash = entry.name.indexOf('/');
    const folder = entry.name.slice(0, Math.max(0, slash));
    root ??= folder;
    if (slash < 0 || folder !== root) {
      throw refusal(file.path, {
        rule: 'zip-root',
        place: entryRange(entry.name),
        message: `does not lie in the one folder that holds all entries${root && ` before it, ${quoted(root)}`}`,
      });
    }
    const name = entry.name.slice(slash + 1);
    if (folded.has(name.toLowerCase())) {
      throw refusal(file.path, {
        rule: 'zip-name-once',
        place: entryRange(entry.name),
        message: 'has the name of an entry before it: PyTorch ignores the case of letters',
      });
    }
    folded.add(name.toLowerCase());
    const place = headers.locate(entry);
    ranges.push(place);
    records.set(name, { position: place.data, bytes: place.end - place.data });
  }
  checkTiling(file, ranges, directory.position);
  return { root: root ?? '', records, ...checkTorchRecords(file, records) };
}

// Checks of the records that make an archive a PyTorch file.

/**
 * Checks that entries follow each other from byte 0 to the directory. Readers that go from header to header
 * then find the same entries as readers of the directory. Only data descriptors may be between entries;
 * alignment padding is an extra field of a header.
 * @param limit Position of the directory.
 */
function checkTiling(file: ByteFile, ranges: readonly EntryRange[], limit: number): void {
  let last: EntryRange | undefined;
  for (const place of ranges.toSorted((a, b) => a.header - b.header)) {
    checkBetween(file, last, place.header);
    last = place;
  }
  if (last) checkBetween(file, last, limit);
}

/** @param next Position of the next entry or of the directory. */
function checkBetween(file: ByteFile, last: EntryRange | undefined, next: number): void {
  const end = last?.end ?? 0;
  if (next < end) {
    throw refusal(file.path, {
      rule: 'zip-overlap',
      place: `byte ${next}`,
      message: `an entry begins here, but one before it ends only at byte ${end}`,
    });
  }
  if (next === end || (last && isDescriptor(file, last, next - end))) return;
  throw refusal(file.path, {
    rule: 'zip-gap',
    place: `byte ${end}`,
    message: `${next - end} bytes here belong to no entry of the directory`,
  });
}

/** Whether the `length` bytes after an entry are its data descriptor: signature, checksum, both sizes. */
function isDescriptor(file: ByteFile, place: EntryRange, length: number): boolean {
  if (!place.hasDescriptor || !DESCRIPTOR_BYTES.some((bytes) => bytes === length)) return false;
  const descriptor = file.read(place.end, length);
  const width = (length - 8) / 2;
  const sizes = [8, 8 + width].map((at) =>
    width === 8 ? descriptor.readBigUInt64LE(at) : BigInt(descriptor.readUInt32LE(at)),
  );
  const bytes = BigInt(place.end - place.data);
  return (
    descriptor.readUInt32LE(0) === SIGNATURES.descriptor && sizes.every((size) => size === bytes)
  );
}

export interface ZipRecord {
  /** Position of the first byte in the file. */
  readonly position: number;
  readonly bytes: number;
}

/** Properties of an archive given by its records. */
export interface RecordFindings {
  readonly isBigEndian: boolean;
  /** Unusual but harmless findings. */
  readonly warnings: readonly string[];
}

/** Longer than any record with a word or a number. */
const MAX_WORD_BYTES = 16;

const MAX_SHOWN_NAMES = 3;

/** If both exist, PyTorch reads the second. */
const VERSION_RECORDS = ['version', '.data/version'] as const;

/** caffe2/serialize/inline_container.h, torch/serialization.py */
const KNOWN =
  /^(data\.pkl|data\/[0-9]+|byteorder|version|\.data\/(version|serialization_id)|\.format_version|\.storage_alignment)$/;

/**
 * Reads the records that describe how to read the others.
 * @throws UserError if one is missing, or has an unknown value.
 */
function checkTorchRecords(
  file: ByteFile,
  records: ReadonlyMap<string, ZipRecord>,
): RecordFindings {
  checkCase(file, records);
  checkKind(file, records);
  checkVersion(file, records);
  const byteorder = wordOf(file, records, 'byteorder') ?? 'little';
  if (byteorder !== 'little' && byteorder !== 'big') {
    throw refusal(file.path, {
      rule: 'zip-byteorder',
      place: 'record byteorder',
      message: `says ${quoted(byteorder)}, expected "little" or "big"`,
    });
  }
  const alignment = wordOf(file, records, '.storage_alignment') ?? '64';
  if (!/^[0-9]+$/.test(alignment)) {
    throw refusal(file.path, {
      rule: 'zip-alignment',
      place: 'record .storage_alignment',
      message: `says ${quoted(alignment)}, expected a number`,
    });
  }
  return { isBigEndian: byteorder === 'big', warnings: unknownRecords(records) };
}

/** PyTorch finds records in any case. */
function checkCase(file: ByteFile, records: ReadonlyMap<string, ZipRecord>): void {
  for (const name of records.keys()) {
    if (KNOWN.test(name) || !KNOWN.test(name.toLowerCase())) continue;
    throw refusal(file.path, {
      rule: 'zip-name-case',
      place: `record ${quoted(name)}`,
      message: `PyTorch ignores the case of letters and reads this record as ${quoted(name.toLowerCase())}`,
    });
  }
}

function checkKind(file: ByteFile, records: ReadonlyMap<string, ZipRecord>): void {
  if (records.size === 0) {
    throw refusal(file.path, {
      rule: 'zip-content',
      message: 'is an empty zip archive',
    });
  }
  if (records.has('constants.pkl')) {
    throw refusal(file.path, {
      rule: 'zip-torchscript',
      place: 'record constants.pkl',
      message: 'is a TorchScript module, which is a program and not only weights',
      suggestion: 'load it with torch.jit.load, and save its state_dict() instead',
    });
  }
  if (!records.has('data.pkl')) {
    throw refusal(file.path, {
      rule: 'zip-pickle',
      message: 'is a zip archive without data.pkl, and so not written by torch.save',
      suggestion: 'if weights are packed in it, unpack it first',
    });
  }
}

function checkVersion(file: ByteFile, records: ReadonlyMap<string, ZipRecord>): void {
  const versions = VERSION_RECORDS.filter((name) => records.has(name));
  if (versions.length === 0) {
    throw refusal(file.path, {
      rule: 'zip-version-record',
      message: 'has neither a record version nor .data/version',
    });
  }
  for (const name of versions) {
    const version = wordOf(file, records, name) ?? '';
    if (/^([1-9]|10)\n?$/.test(version)) continue;
    throw refusal(file.path, {
      rule: 'zip-version',
      place: `record ${name}`,
      message: `says ${quoted(version)}, expected a number from 1 to 10`,
      suggestion: 'save it with an older PyTorch, or with its defaults',
    });
  }
}

/** Text of a small record, cut if it is larger; undefined if there is none. */
function wordOf(
  file: ByteFile,
  records: ReadonlyMap<string, ZipRecord>,
  name: string,
): string | undefined {
  const record = records.get(name);
  if (record === undefined) return undefined;
  const isWhole = record.bytes <= MAX_WORD_BYTES;
  const text = file
    .read(record.position, Math.min(record.bytes, MAX_WORD_BYTES))
    .toString('latin1');
  return isWhole ? text : `${text}…`;
}

/** Warnings about records that PyTorch does not write; their content is not read. */
function unknownRecords(records: ReadonlyMap<string, ZipRecord>): string[] {
  const names = [...records.keys()].filter((name) => !KNOWN.test(name));
  if (names.length === 0) return [];
  const shown = names.slice(0, MAX_SHOWN_NAMES).map(quoted).join(', ');
  const more =
    names.length > MAX_SHOWN_NAMES ? ` and ${names.length - MAX_SHOWN_NAMES} others` : '';
  return [`ignored, because PyTorch writes no such records: ${shown}${more}`];
}
