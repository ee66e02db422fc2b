import { isUtf8 } from 'node:buffer';
import type { UserError } from '../../base/errors.js';
import type { StoredDtype } from '../../base/tensor/dtype.js';
import { STORED_DTYPES, shapeText, storedBytes } from '../../base/tensor/dtype.js';
import type { ByteFile } from '../byte-file.js';
import type { FileIndex } from '../checkpoint.js';
import type { SAFETENSORS_RULES } from '../checkpoint-rules.js';
import {
  exactBytesText,
  FETCH_AGAIN,
  quoted,
  refusal,
  SMALL_FILE,
  tensorPlace,
} from '../checkpoint-rules.js';
import type { JsonRules } from '../json-scanner.js';
import { ARRAY, JsonScanner, OBJECT } from '../json-scanner.js';
import type { StoredTensor } from '../stored-tensor.js';
import { contiguousStrides } from '../stored-tensor.js';

/**
 * Dtypes of the format, in the order in which its library writes tensors: wide ones first. Tensors are then
 * aligned for their dtype when the data begin at a multiple of 8.
 */
export const SAFETENSORS_DTYPES: readonly StoredDtype[] = [
  'U64',
  'I64',
  'F64',
  'C64',
  'F32',
  'U32',
  'I32',
  'BF16',
  'F16',
  'U16',
  'I16',
  'F8_E5M2FNUZ',
  'F8_E4M3FNUZ',
  'F8_E8M0',
  'F8_E4M3',
  'F8_E5M2',
  'I8',
  'U8',
  'F6_E3M2',
  'F6_E2M3',
  'F4',
  'BOOL',
];

/** Maximum dimensions of a tensor, as in NumPy. The format itself has no limit. */
export const MAX_RANK = 64;

const DTYPES_BY_TEXT: ReadonlyMap<string, StoredDtype> = new Map(
  SAFETENSORS_DTYPES.map((dtype) => [dtype, dtype]),
);

/** Header entry of a tensor, before validation. */
interface Entry {
  readonly dtype: StoredDtype;
  readonly shape: readonly number[];
  /** Start and end of the tensor, in bytes from the start of the data. */
  readonly data_offsets: readonly [begin: number, end: number];
}

type PartialEntry = { -readonly [Field in keyof Entry]: Entry[Field] | undefined };

const FIELDS = ['dtype', 'shape', 'data_offsets'] as const satisfies (keyof Entry)[];

/** Field names as interned strings, which makes property look-ups fast. */
const FIELDS_BY_TEXT: ReadonlyMap<string, keyof Entry> = new Map(
  FIELDS.map((field) => [field, field]),
);

/** Reads and validates the header entries of tensors. */
class TensorEntryReader {
  readonly #scanner: JsonScanner;
  readonly #file: ByteFile;
  readonly #dataPosition: number;
  /** Buffer for arrays, which are then copied at their exact length: growing arrays reserve extra memory. */
  readonly #scratch: number[] = [];

  /** @param dataPosition Position of the first byte after the header; offsets are relative to it. */
  constructor(scanner: JsonScanner, file: ByteFile, dataPosition: number) {
    this.#scanner = scanner;
    this.#file = file;
    this.#dataPosition = dataPosition;
  }

  /** Reads the tensor whose name was just read. */
  read(name: string): StoredTensor {
    const entry = this.#entry(name);
    const { dtype, shape } = entry;
    const [begin, end] = entry.data_offsets;
    const strides = contiguousStrides(shape);
    const elements = this.#elements(name, shape, strides);
    const bytes = storedBytes(elements, dtype);
    if (bytes === undefined) {
      const { bits } = STORED_DTYPES[dtype];
      throw this.#refusal(
        name,
        'st-bytes',
        `${elements} elements of ${bits} bits take no whole number of bytes, or more than 2^53 − 1`,
      );
    }
    if (end - begin !== bytes) {
      throw this.#refusal(
        name,
        'st-span',
        `${dtype} ${shapeText(shape)} takes ${exactBytesText(bytes)}, but the offsets ${begin} to ${end} span ${end - begin}`,
      );
    }
    return {
      kind: 'tensor',
      dtype,
      shape,
      elements,
      strides,
      offset: 0,
      storage: {
        file: this.#file,
        position: this.#dataPosition + begin,
        bytes,
        isBigEndian: false,
      },
      bytes,
    };
  }

  #elements(name: string, shape: readonly number[], strides: readonly number[]): number {
    // Zeros count as ones, so that the strides of a tensor without elements are exact too. All factors are at
    // least 1, so a product beyond the exact integers stays there.
    const extent = (strides[0] ?? 1) * Math.max(1, shape[0] ?? 1);
    if (!Number.isSafeInteger(extent)) {
      throw this.#refusal(
        name,
        'st-elements',
        `the sizes of the shape ${shapeText(shape)} multiply to more than 2^53 − 1`,
      );
    }
    return shape.includes(0) ? 0 : extent;
  }

  #entry(name: string): Entry {
    const scanner = this.#scanner;
    const entry: PartialEntry = { dtype: undefined, shape: undefined, data_offsets: undefined };
    for (let more = scanner.open(OBJECT); more; more = scanner.next(OBJECT)) {
      const field = this.#field(name);
      if (entry[field] !== undefined) {
        throw this.#refusal(name, 'st-field-twice', `found the field ${field} twice`);
      }
      if (field === 'dtype') entry.dtype = this.#dtype(name);
      else if (field === 'shape') entry.shape = this.#shape(name);
      else entry.data_offsets = this.#offsets(name);
    }
    if (!isWhole(entry)) {
      const missing = FIELDS.filter((field) => entry[field] === undefined);
      throw this.#refusal(name, 'st-field-missing', `lacks ${missing.join(' and ')}`);
    }
    return entry;
  }

  #field(name: string): keyof Entry {
    const text = this.#scanner.key();
    const field = FIELDS_BY_TEXT.get(text);
    if (field === undefined) {
      throw this.#refusal(
        name,
        'st-field-unknown',
        `has a field ${quoted(text)}, expected only ${FIELDS.join(', ')}`,
      );
    }
    return field;
  }

  #dtype(name: string): StoredDtype {
    const text = this.#scanner.string();
    const dtype = DTYPES_BY_TEXT.get(text);
    if (dtype === undefined) {
      throw this.#refusal(
        name,
        'st-dtype',
        `the dtype is ${quoted(text)}, expected one of ${SAFETENSORS_DTYPES.join(', ')}`,
      );
    }
    return dtype;
  }

  #shape(name: string): readonly number[] {
    const shape = this.#integers(MAX_RANK);
    if (shape.length > MAX_RANK) {
      throw this.#refusal(
        name,
        'st-rank',
        `the shape has more than ${MAX_RANK} dimensions: ${shapeText(shape.slice(0, 8))} …`,
      );
    }
    return shape;
  }

  #offsets(name: string): readonly [number, number] {
    const offsets = this.#integers(2);
    if (!isPair(offsets)) {
      throw this.#refusal(
        name,
        'st-offsets',
        `expected 2 numbers in data_offsets, found ${offsets.length > 2 ? 'more' : offsets.length}`,
      );
    }
    return offsets;
  }

  /** Reads an array of integers; stops after `most` + 1 of them. */
  #integers(most: number): readonly number[] {
    const scanner = this.#scanner;
    const scratch = this.#scratch;
    let count = 0;
    for (let more = scanner.open(ARRAY); more && count <= most; more = scanner.next(ARRAY)) {
      scratch[count++] = scanner.integer();
    }
    return scratch.slice(0, count);
  }

  #refusal(name: string, rule: keyof typeof SAFETENSORS_RULES, message: string): UserError {
    return refusal(this.#file.path, { rule, place: tensorPlace(name), message });
  }
}

const isWhole = (entry: PartialEntry): entry is Entry =>
  entry.dtype !== undefined && entry.shape !== undefined && entry.data_offsets !== undefined;

const isPair = (numbers: readonly number[]): numbers is readonly [number, number] =>
  numbers.length === 2;

/**
 * Checks that tensors follow one another without gaps from the start of the data to the end of the file. Empty
 * tensors may be anywhere between two tensors. (Offsets near 2^53 may be rounded; they are beyond the end of
 * any file, so they fail anyway.)
 * @param dataPosition Position of the data in the file.
 * @throws UserError if bytes belong to no tensor or to two, or are missing.
 */
function checkTiling(
  file: ByteFile,
  tensors: ReadonlyMap<string, StoredTensor>,
  dataPosition: number,
): void {
  let end = dataPosition;
  for (const tensor of inFileOrder([...tensors.values()])) {
    const { position, bytes } = tensor.storage;
    if (position !== end) {
      const wrong =
        position > end
          ? `${exactBytesText(position - end)} before it belong to no tensor`
          : 'it overlaps the one before it';
      throw refusal(file.path, {
        rule: 'st-tiling',
        place: tensorPlace(storedName(tensor, tensors)),
        message: `begins at offset ${position - dataPosition}, expected ${end - dataPosition}: ${wrong}`,
      });
    }
    end = position + bytes;
  }
  if (end !== file.size) {
    throw refusal(file.path, {
      rule: 'st-data-end',
      place: `byte ${Math.min(end, file.size)}`,
      message:
        end > file.size
          ? `the file ends here, ${exactBytesText(end - file.size)} before its last tensor does`
          : `the last tensor ends here, but the file goes on for ${exactBytesText(file.size - end)}`,
      suggestion: FETCH_AGAIN,
    });
  }
}

const byPlace = ({ storage: a }: StoredTensor, { storage: b }: StoredTensor) =>
  a.position - b.position || a.bytes - b.bytes;

/** Sorts in place. Most files are already in order, and checking is faster than sorting. */
function inFileOrder(tensors: StoredTensor[]): StoredTensor[] {
  const isSorted = tensors.every((tensor, index) => {
    const before = tensors[index - 1];
    return before === undefined || byPlace(before, tensor) <= 0;
  });
  return isSorted ? tensors : tensors.sort(byPlace);
}

function storedName(named: StoredTensor, tensors: ReadonlyMap<string, StoredTensor>): string {
  for (const [name, tensor] of tensors) if (tensor === named) return name;
  return '';
}

/** Size of the length field before the header. */
export const LENGTH_FIELD_BYTES = 8;

/** Limit of the format. */
export const MAX_HEADER_BYTES = 100_000_000;

/** Length of `{}`. */
const MIN_HEADER_BYTES = 2;

const OPENING_BRACE = 0x7b;

/**
 * Header of a safetensors file, checked to be UTF-8; the data follow it.
 * @throws UserError if there is none, or it extends beyond the file.
 */
function readHeader(file: ByteFile): Buffer {
  if (file.size < LENGTH_FIELD_BYTES) {
    throw refusal(file.path, {
      rule: 'st-length-field',
      message: `has ${exactBytesText(file.size)}, fewer than the ${LENGTH_FIELD_BYTES} that a file begins with`,
      suggestion: FETCH_AGAIN,
    });
  }
  const declared = file.read(0, LENGTH_FIELD_BYTES).readBigUInt64LE();
  if (declared < MIN_HEADER_BYTES || declared > MAX_HEADER_BYTES) {
    throw refusal(file.path, {
      rule: 'st-header-length',
      place: 'byte 0',
      message: `the header has ${exactBytesText(declared)} by its length field, expected ${MIN_HEADER_BYTES} to ${MAX_HEADER_BYTES}`,
      suggestion: 'check that this is a safetensors file',
    });
  }
  const length = Number(declared);
  const present = file.size - LENGTH_FIELD_BYTES;
  if (length > present) {
    throw refusal(file.path, {
      rule: 'st-header-whole',
      place: 'byte 0',
      message: `the header has ${exactBytesText(length)} by its length field, but only ${present} follow`,
      suggestion: FETCH_AGAIN,
    });
  }
  const header = file.read(LENGTH_FIELD_BYTES, length);
  if (header[0] !== OPENING_BRACE) {
    throw refusal(file.path, {
      rule: 'st-header-start',
      place: 'header byte 0',
      message: `the header begins with byte ${header[0]}, expected ${OPENING_BRACE}, which is "{"`,
    });
  }
  if (!isUtf8(header)) {
    throw refusal(file.path, {
      rule: 'st-header-utf8',
      message: 'the header has bytes that are not UTF-8',
    });
  }
  return header;
}

/** Header key that is not a tensor. */
export const METADATA_KEY = '__metadata__';

/** Maximum keys of the metadata. Real files have a few hundred; ten million would take gigabytes. */
const MAX_METADATA = 100_000;

/** Maximum number of tensors. The largest models have 100,000 in all shards together. */
export const MAX_TENSORS = { small: 100_000, large: 200_000 };

/** Real names have a few hundred bytes at most. Sorting and printing them takes many times their size. */
const MAX_KEY_BYTES = 2 ** 16;

const HEADER_RULES: JsonRules = {
  syntax: 'st-header-json',
  integer: 'st-integer',
  padding: 'st-padding',
  loneSurrogate: 'st-surrogate',
  keyBytes: { rule: 'st-name-length', most: MAX_KEY_BYTES },
};

/** Content of a header. */
export interface HeaderEntries {
  /** Tensors by name, in header order. Each is checked alone; gaps and overlaps are not checked yet. */
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  readonly metadata: ReadonlyMap<string, string>;
}

/** @throws UserError if the header is not strict JSON, or an entry is not valid. */
function readEntries(file: ByteFile, header: Buffer): HeaderEntries {
  const scanner = new JsonScanner({
    file: file.path,
    bytes: header,
    part: 'header',
    rules: HEADER_RULES,
  });
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
    // The size does not grow for a repeated name. Checking before would look up each name twice.
    if (tensors.size + (metadata === undefined ? 0 : 1) !== members) {
      throw refusal(file.path, {
        rule: 'st-name-twice',
        place: tensorPlace(name),
        message: 'found the name twice in the header, expected once',
      });
    }
  }
  scanner.end();
  return { tensors, metadata: metadata ?? new Map() };
}

function readMetadata(file: string, scanner: JsonScanner): Map<string, string> {
  const metadata = new Map<string, string>();
  for (let more = scanner.open(OBJECT); more; more = scanner.next(OBJECT)) {
    const key = scanner.key();
    if (metadata.has(key)) {
      throw refusal(file, {
        rule: 'st-metadata-twice',
        place: METADATA_KEY,
        message: `found the key ${quoted(key)} twice, expected once`,
      });
    }
    if (metadata.size === MAX_METADATA) {
      throw refusal(file, {
        rule: 'st-metadata-size',
        place: METADATA_KEY,
        message: `has more than ${MAX_METADATA} keys`,
      });
    }
    metadata.set(key, scanner.string());
  }
  return metadata;
}

/**
 * Index of a safetensors file. Reads only the header and checks all rules of the format
 * (https://huggingface.co/docs/safetensors), some more strictly than other readers: SAFETENSORS_RULES lists them.
 *
 * Memory: up to about ten times the header, which has at most 100 MB. No number in the header makes an allocation
 * larger.
 * @throws UserError if the file violates a rule.
 */
export function readSafetensors(file: ByteFile): FileIndex {
  const header = readHeader(file);
  const { tensors, metadata } = readEntries(file, header);
  checkTiling(file, tensors, LENGTH_FIELD_BYTES + header.length);
  return {
    format: 'safetensors',
    tensors,
    aliases: aliasesIn(metadata, tensors),
    metadata,
    stateDict: [],
    content: new Map(),
    warnings: [],
  };
}

/** Key of the library that a file is for; never a tensor name. */
export const FORMAT_KEY = 'format';

/** Metadata entries for tied tensors that are not stored: their name, and the name of the tensor they equal. */
export function aliasesIn(
  metadata: ReadonlyMap<string, string>,
  tensors: ReadonlyMap<string, StoredTensor>,
): Map<string, string> {
  const aliases = new Map<string, string>();
  for (const [key, value] of metadata) {
    if (key !== FORMAT_KEY && !tensors.has(key) && tensors.has(value)) aliases.set(key, value);
  }
  return aliases;
}
