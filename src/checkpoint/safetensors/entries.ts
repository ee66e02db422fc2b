import type { ByteFile } from '../byte-file.js';
import { refusal } from '../refusal.js';
import type { StoredTensor } from '../stored-tensor.js';
import { quoted, tensorPlace } from '../wording.js';
import { SAVE_AGAIN } from './advice.js';
import { LENGTH_FIELD_BYTES } from './header.js';
import { HeaderScanner, OBJECT } from './scanner.js';
import { TensorEntryReader } from './tensor-entry.js';

/** The member of a header that is no tensor. */
export const METADATA_KEY = '__metadata__';

/** The most keys of the metadata. Real files have a few hundred; ten million would take gigabytes. */
const MAX_METADATA = 100_000;

/** The most tensors. The largest models have 100,000, over all their shards. */
const MAX_TENSORS = { small: 100_000, large: 200_000 };
/** Bytes up to which a file is small. */
const SMALL_FILE = 16e6;

/** What a header says. */
export interface HeaderEntries {
  /** By name, in the header's order. Each is right in itself; that they tile the data is not checked yet. */
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly metadata: ReadonlyMap<string, string>;
}

/** @throws UserError when the header is no strict JSON, or what it says of a tensor cannot be. */
export function readEntries(file: ByteFile, header: Buffer): HeaderEntries {
  const scanner = new HeaderScanner(file.path, header);
  const entries = new TensorEntryReader(scanner, file, LENGTH_FIELD_BYTES + header.length);
  const tensors = new Map<string, StoredTensor>();
  let metadata: Map<string, string> | undefined;
  const most = file.size < SMALL_FILE ? MAX_TENSORS.small : MAX_TENSORS.large;
  let members = 0;
  for (let more = scanner.open(OBJECT); more; more = scanner.next(OBJECT)) {
    const name = scanner.key();
    if (name === METADATA_KEY) metadata = readMetadata(file.path, scanner);
    else tensors.set(name, entries.read(name));
    members++;
    if (tensors.size > most) {
      throw refusal(file.path, {
        rule: 'st-tensors',
        place: tensorPlace(name),
        message: `the header has more than ${most} tensors`,
        suggestion: 'save the model in shards',
      });
    }
    // A name that was there already has added nothing. Asking beforehand would look up each name twice.
    if (tensors.size + (metadata === undefined ? 0 : 1) !== members) {
      throw refusal(file.path, {
        rule: 'st-name-twice',
        place: tensorPlace(name),
        message: 'the name stands twice in the header, expected once',
        suggestion: SAVE_AGAIN,
      });
    }
  }
  scanner.end();
  return { tensors, metadata: metadata ?? new Map() };
}

function readMetadata(file: string, scanner: HeaderScanner): Map<string, string> {
  const metadata = new Map<string, string>();
  for (let more = scanner.open(OBJECT); more; more = scanner.next(OBJECT)) {
    const key = scanner.key();
    if (metadata.has(key)) {
      throw refusal(file, {
        rule: 'st-metadata-twice',
        place: METADATA_KEY,
        message: `the key ${quoted(key)} stands twice, expected once`,
        suggestion: SAVE_AGAIN,
      });
    }
    if (metadata.size === MAX_METADATA) {
      throw refusal(file, {
        rule: 'st-metadata-size',
        place: METADATA_KEY,
        message: `has more than ${MAX_METADATA} keys`,
        suggestion: SAVE_AGAIN,
      });
    }
    metadata.set(key, scanner.string());
  }
  return metadata;
}
