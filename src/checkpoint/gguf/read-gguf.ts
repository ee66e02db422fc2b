import { UserError } from '../../base/errors.js';
import { fillLittleEndian, viewOf } from '../../base/tensor/decode-values.js';
import type { Shape } from '../../base/tensor/dtype.js';
import { shapeText } from '../../base/tensor/dtype.js';
import { shortened } from '../../base/text/words.js';
import type { ByteFile } from '../byte-file.js';
import type { FileIndex } from '../checkpoint.js';
import { exactBytesText, quoted, refusal, SMALL_FILE, tensorPlace } from '../checkpoint-rules.js';
import { computedTensor } from '../computed-file.js';
import type { StoredTensor } from '../stored-tensor.js';
import { contiguousStrides } from '../stored-tensor.js';
import { decodeBlocks, isDecodable } from './blocks/decode-blocks.js';
import type { GgmlTypeName } from './ggml-types.js';
import { ggmlType, ggmlTypeOf } from './ggml-types.js';
import type { GgufValue, ScalarType } from './gguf-scanner.js';
import { GgufScanner, SCALAR_BYTES, VALUE_TYPES } from './gguf-scanner.js';

/** First bytes of a file, and the versions that are read; version 1 had other lengths. */
export const GGUF_MAGIC = 'GGUF';
const VERSIONS: readonly number[] = [2, 3];

const MAX_KEYS = 100_000;
/** Mixtures with a tensor for each expert have up to 142,784, in files of many gigabytes. */
const MAX_TENSORS = { small: 12_000, large: 200_000 };
const KEY_BYTES: readonly [number, number] = [1, 65_535];
/** GGML_MAX_NAME of ggml is 64 with the final zero; programs for images set it to 128. */
const NAME_BYTES: readonly [number, number] = [1, 127];
const MAX_RANK = 4;
const MAX_STRING_BYTES = 2 ** 24;

/** Smallest entries: key length, a byte of key, type, a byte; name length, a byte of name, rank, a size, type, offset. */
const MIN_KEY_BYTES = 8 + 1 + 4 + 1;
const MIN_TENSOR_BYTES = 8 + 1 + 4 + 8 + 4 + 8;

/** Elements of the longest array that is kept. Those of vocabularies are only counted. */
const MAX_KEPT_ELEMENTS = 4096;
/** Elements of all arrays that are kept: models have a few such arrays, with a number for each layer. */
const MAX_ALL_KEPT = 2 ** 20;
/** Strings of all arrays. A vocabulary of 262,144 tokens has 800,000 with its merges. */
const MAX_STRINGS = 8_000_000;
/** Bytes of the longest array of strings that is kept. */
const MAX_KEPT_STRINGS = 2 ** 16;

const DEFAULT_ALIGNMENT = 32;
const MIN_ALIGNMENT = 8;

const ALIGNMENT_KEY = 'general.alignment';

/**
 * Index of a GGUF file of version 2 or 3 (docs/gguf.md of ggml). Reads metadata and tensor list, no values. Arrays of
 * vocabularies are skipped.
 * @throws UserError that names the violated rule.
 */
export function readGguf(file: ByteFile): FileIndex {
  const scanner = new GgufScanner(file);
  scanner.skip(GGUF_MAGIC.length);
  checkVersion(scanner);
  const tensorCount = scanner.u64();
  const keyCount = scanner.u64();
  checkCounts(scanner, tensorCount, keyCount);
  const keyValues = readKeyValues(scanner, Number(keyCount));
  const alignment = alignmentIn(scanner, keyValues);
  const entries = readEntries(scanner, Number(tensorCount));
  const dataPosition = alignedUp(scanner.position, alignment);
  const tensors = placeTensors(file, entries, dataPosition, alignment);
  return {
    format: 'gguf',
    tensors,
    aliases: new Map(),
    metadata: new Map(),
    keyValues,
    stateDict: [],
    content: new Map(),
    warnings: tokenIdWarnings(keyValues),
  };
}

export const alignedUp = (position: number, alignment: number): number =>
  Math.ceil(position / alignment) * alignment;

function checkVersion(scanner: GgufScanner): void {
  const version = scanner.u32();
  if (VERSIONS.includes(version)) return;
  const swapped = Buffer.alloc(4);
  swapped.writeUInt32BE(version);
  const isBigEndian = VERSIONS.includes(swapped.readUInt32LE());
  throw scanner.refusal(
    'gguf-version',
    isBigEndian
      ? 'the file is big-endian, and only little-endian ones are read'
      : `the version is ${version}, expected ${VERSIONS.join(' or ')}`,
  );
}

function checkCounts(scanner: GgufScanner, tensors: number | bigint, keys: number | bigint): void {
  const least = BigInt(keys) * BigInt(MIN_KEY_BYTES) + BigInt(tensors) * BigInt(MIN_TENSOR_BYTES);
  const most = scanner.file.size < SMALL_FILE ? MAX_TENSORS.small : MAX_TENSORS.large;
  if (keys <= MAX_KEYS && tensors <= most && least <= scanner.left) return;
  const found = `${keys} keys and ${tensors} tensors`;
  throw scanner.refusal(
    'gguf-counts',
    keys > MAX_KEYS || tensors > most
      ? `states ${found}, expected at most ${MAX_KEYS} and ${most}`
      : `states ${found}, which take at least ${exactBytesText(least)}, but ${scanner.left} follow`,
  );
}

// Metadata.

function readKeyValues(scanner: GgufScanner, count: number): ReadonlyMap<string, GgufValue> {
  const values = new Map<string, GgufValue>();
  let stringBytes = 0;
  const left = { strings: MAX_STRINGS, kept: MAX_ALL_KEPT };
  for (let index = 0; index < count; index++) {
    scanner.place = `key ${index}`;
    const key = scanner.text('gguf-key', KEY_BYTES);
    scanner.place = `key ${quoted(key)}`;
    if (values.has(key)) throw scanner.refusal('gguf-key-twice', 'found the key twice');
    const value = readValue(scanner, left);
    if (value.type === 'string') stringBytes += value.value.length;
    if (stringBytes > MAX_STRING_BYTES) {
      throw scanner.refusal('gguf-strings', `the strings up to here have more than 16 MiB`);
    }
    values.set(key, value);
  }
  scanner.place = undefined;
  return values;
}

function valueType(scanner: GgufScanner) {
  const id = scanner.u32();
  const type = VALUE_TYPES[id];
  if (type !== undefined) return type;
  throw scanner.refusal(
    'gguf-value-type',
    `the type is ${id}, expected 0 to ${VALUE_TYPES.length - 1}`,
  );
}

/** Elements that the arrays from here on can have. */
interface ElementsLeft {
  strings: number;
  /** Only for arrays that are kept. */
  kept: number;
}

function readValue(scanner: GgufScanner, left: ElementsLeft): GgufValue {
  const type = valueType(scanner);
  if (type === 'array') return readArray(scanner, left);
  if (type === 'string') return { type, value: scanner.text('gguf-string') };
  return { type, value: scanner.scalar(type) };
}

/** An array; the elements of a long one are skipped. */
function readArray(scanner: GgufScanner, left: ElementsLeft): GgufValue {
  const element = valueType(scanner);
  if (element === 'array') {
    throw scanner.refusal('gguf-array', 'has arrays as elements, expected numbers or strings');
  }
  const length = scanner.u64();
  if (element === 'string') {
    if (length > left.strings) {
      throw scanner.refusal(
        'gguf-array-strings',
        `has ${length} strings, expected ${left.strings} at most`,
      );
    }
    left.strings -= Number(length);
  }
  if (length <= MAX_KEPT_ELEMENTS) {
    left.kept -= Number(length);
    if (left.kept < 0) {
      throw scanner.refusal(
        'gguf-array-elements',
        `the arrays of at most ${MAX_KEPT_ELEMENTS} elements up to here have more than ${MAX_ALL_KEPT}`,
      );
    }
  }
  if (element === 'string') return readStrings(scanner, Number(length));
  if (length > MAX_KEPT_ELEMENTS) {
    scanner.skip(BigInt(length) * BigInt(SCALAR_BYTES[element]));
    return { type: 'array', element, length: Number(length), value: null };
  }
  const value = Array.from({ length: Number(length) }, () => scanner.scalar(element as ScalarType));
  return { type: 'array', element, length: Number(length), value };
}

function readStrings(scanner: GgufScanner, length: number): GgufValue {
  const start = scanner.position;
  const kept: string[] = [];
  let isKept = length <= MAX_KEPT_ELEMENTS;
  for (let index = 0; index < length; index++) {
    if (isKept) kept.push(scanner.string());
    else scanner.skip(scanner.stringLength());
    if (scanner.position - start > MAX_KEPT_STRINGS) isKept = false;
  }
  return {
    type: 'array',
    element: 'string',
    length,
    value: isKept ? kept : null,
  };
}

/** Ids of special tokens: `tokenizer.ggml.bos_token_id`. */
const TOKEN_ID_KEY = /^tokenizer\.ggml\..*token_id$/;

/** Ids that no token of the vocabulary has. Programs that read the file ignore them, or stop. */
function tokenIdWarnings(keyValues: ReadonlyMap<string, GgufValue>): string[] {
  const tokens = keyValues.get('tokenizer.ggml.tokens');
  const count = tokens?.type === 'array' ? tokens.length : 2 ** 32;
  const warnings: string[] = [];
  for (const [key, { type, value }] of keyValues) {
    if (!key.startsWith('tokenizer.ggml.') || !TOKEN_ID_KEY.test(key)) continue;
    const isId = typeof value === 'number' && Number.isInteger(value) && value >= 0;
    if (isId && value < count) continue;
    // Files without a token of this kind have the largest number.
    if (type === 'u32' && value === NO_TOKEN) continue;
    if (warnings.length === MAX_WARNINGS) break;
    const found = type === 'array' ? 'an array' : shortened(String(value));
    warnings.push(
      `key ${quoted(key)} is ${found}, expected the id of a token: 0 to ${count - 1}; it is not used`,
    );
  }
  return warnings;
}

/** LLAMA_TOKEN_NULL of llama.h, −1, in 32 bits. */
const NO_TOKEN = 2 ** 32 - 1;

const MAX_WARNINGS = 10;

function alignmentIn(scanner: GgufScanner, keyValues: ReadonlyMap<string, GgufValue>): number {
  const found = keyValues.get(ALIGNMENT_KEY);
  if (found === undefined) return DEFAULT_ALIGNMENT;
  const value = Number(found.value);
  if (found.type === 'u32' && value >= MIN_ALIGNMENT && Number.isInteger(Math.log2(value))) {
    return value;
  }
  scanner.place = `key ${quoted(ALIGNMENT_KEY)}`;
  throw scanner.refusal(
    'gguf-alignment',
    `is ${found.type} ${quoted(String(found.value))}, expected a power of two of type u32, at least ${MIN_ALIGNMENT}`,
  );
}

// Tensor list.

/** An entry of the list, placed once all are known. */
interface Entry {
  readonly name: string;
  /** Outermost dimension first; the file has it last. */
  readonly shape: readonly number[];
  readonly elements: number;
  readonly type: GgmlTypeName;
  readonly offset: number | bigint;
}

function readEntries(scanner: GgufScanner, count: number): Entry[] {
  const entries: Entry[] = [];
  const names = new Set<string>();
  for (let index = 0; index < count; index++) {
    scanner.place = () => `tensor ${index}`;
    const name = scanner.text('gguf-name', NAME_BYTES);
    scanner.place = () => tensorPlace(name);
    names.add(name);
    if (names.size <= index) throw scanner.refusal('gguf-name-twice', 'found the name twice');
    entries.push(readEntry(scanner, name));
  }
  scanner.place = undefined;
  return entries;
}

function readEntry(scanner: GgufScanner, name: string): Entry {
  const rank = scanner.u32();
  if (rank < 1 || rank > MAX_RANK) {
    throw scanner.refusal('gguf-rank', `has ${rank} dimensions, expected 1 to ${MAX_RANK}`);
  }
  const shape = new Array<number>(rank);
  let extent = 1;
  for (let axis = rank - 1; axis >= 0; axis--) {
    const size = Number(scanner.u64());
    shape[axis] = size;
    extent *= size || 1;
  }
  // A rounded product is never below an exact one that is too large.
  if (extent > Number.MAX_SAFE_INTEGER) {
    throw scanner.refusal('gguf-elements', `the sizes ${shape} multiply to more than 2^53 − 1`);
  }
  const id = scanner.u32();
  const type = ggmlTypeOf(id);
  if (type === undefined) throw scanner.refusal('gguf-type', `the type is ${id}, which is unknown`);
  const { values } = ggmlType(type);
  const length = shape[rank - 1] ?? 0;
  if (length % values !== 0) {
    throw scanner.refusal(
      'gguf-block',
      `${type} has blocks of ${values} values, but the rows of ${shapeText(shape)} have ${length}`,
    );
  }
  return { name, shape, elements: shape.includes(0) ? 0 : extent, type, offset: scanner.u64() };
}

/** Checks the places of all tensors, and gives each its bytes in the file. */
function placeTensors(
  file: ByteFile,
  entries: readonly Entry[],
  dataPosition: number,
  alignment: number,
): ReadonlyMap<string, StoredTensor> {
  let end = 0;
  for (const entry of inOffsetOrder(entries)) {
    const expected = alignedUp(end, alignment);
    if (entry.offset !== expected) {
      const isAligned = BigInt(entry.offset) % BigInt(alignment) === 0n;
      const wanted = isAligned ? expected : `a multiple of ${alignment}`;
      throw refusal(file.path, {
        rule: isAligned ? 'gguf-tiling' : 'gguf-offset',
        place: tensorPlace(entry.name),
        message: `begins at offset ${entry.offset}, expected ${wanted}`,
      });
    }
    end = expected + entryBytes(entry);
  }
  checkEnd(file, dataPosition, end, alignment);
  const tensors = new Map<string, StoredTensor>();
  for (const entry of entries) {
    tensors.set(entry.name, entryTensor(file, entry, dataPosition + Number(entry.offset)));
  }
  return tensors;
}

/** Entries in the order of their offsets, which nearly all files have. */
function inOffsetOrder(entries: readonly Entry[]): readonly Entry[] {
  const isSorted = entries.every(
    ({ offset }, index) => index === 0 || offset >= (entries[index - 1]?.offset ?? 0),
  );
  if (isSorted) return entries;
  return entries.toSorted((a, b) => (a.offset < b.offset ? -1 : a.offset > b.offset ? 1 : 0));
}

function checkEnd(
  file: ByteFile,
  dataPosition: number,
  dataBytes: number,
  alignment: number,
): void {
  const end = dataPosition + dataBytes;
  // Without tensors a file can end with its metadata.
  if (dataBytes === 0 && file.size <= dataPosition) return;
  if (file.size >= end && file.size <= dataPosition + alignedUp(dataBytes, alignment)) return;
  throw refusal(file.path, {
    rule: 'gguf-data-end',
    place: `byte ${Math.min(end, file.size)}`,
    message:
      file.size < end
        ? `the file ends here, ${exactBytesText(end - file.size)} before its last tensor does`
        : `the last tensor ends here, but the file goes on for ${exactBytesText(file.size - end)}`,
  });
}

function entryBytes({ elements, type }: Entry): number {
  const { values, bytes } = ggmlType(type);
  return (elements / values) * bytes;
}

function entryTensor(file: ByteFile, entry: Entry, position: number): StoredTensor {
  const { type, shape, elements } = entry;
  const { dtype } = ggmlType(type);
  const bytes = entryBytes(entry);
  if (dtype === undefined) return decodedTensor(file, { type, shape, elements, position, bytes });
  const storage = { file, position, bytes, isBigEndian: false };
  const strides = contiguousStrides(shape);
  return { kind: 'tensor', dtype, shape, elements, strides, offset: 0, storage, bytes };
}

const FLOAT_BYTES = 4;

/** Bytes of blocks decoded at a time. */
const PIECE_BYTES = 2 ** 18;

/** Blocks of a file. */
interface StoredBlocks {
  readonly type: GgmlTypeName;
  readonly shape: Shape;
  readonly elements: number;
  readonly position: number;
  readonly bytes: number;
}

/** A tensor of blocks as float32 values, decoded where they are read. */
function decodedTensor(file: ByteFile, blocks: StoredBlocks): StoredTensor {
  const { type, shape, elements, position, bytes } = blocks;
  return computedTensor(file, {
    ...{ dtype: 'F32', shape, elements },
    bytes: elements * FLOAT_BYTES,
    encoding: { type, file, position, bytes, isUnreadable: !isDecodable(type) },
    fill: (target, from) => fillDecoded(file, blocks, target, from),
  });
}

/** @param from Position in the decoded bytes, of a whole value. */
function fillDecoded(file: ByteFile, stored: StoredBlocks, target: Uint8Array, from: number): void {
  const { type, position } = stored;
  if (!isDecodable(type)) throw undecodable(file, type);
  const { values, bytes: blockBytes } = ggmlType(type);
  const first = from / FLOAT_BYTES;
  const end = first + target.length / FLOAT_BYTES;
  const piece = Math.max(1, Math.floor(PIECE_BYTES / blockBytes));
  for (let block = Math.floor(first / values); block * values < end; block += piece) {
    const count = Math.min(piece, Math.ceil(end / values) - block);
    const floats = new Float32Array(count * values);
    decodeBlocks(type, file.read(position + block * blockBytes, count * blockBytes), floats);
    const start = Math.max(first, block * values);
    const stop = Math.min(end, (block + count) * values);
    const part = target.subarray((start - first) * FLOAT_BYTES, (stop - first) * FLOAT_BYTES);
    const wanted = floats.subarray(start - block * values, stop - block * values);
    fillLittleEndian(part, FLOAT_BYTES, (words) => viewOf(Float32Array, words).set(wanted));
  }
}

const undecodable = (file: ByteFile, type: GgmlTypeName) =>
  new UserError('refused-file', `${file.path} has values of type ${type}, which cannot be read`, {
    suggestion:
      'use a file of another type, such as Q8_0, Q6_K or Q4_K; names, shapes and sizes can be shown',
  });
