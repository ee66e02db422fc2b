/**
 * Importance matrices of llama.cpp: for each matrix of a model, the mean square of each of its inputs. Read are the GGUF
 * files of llama-imatrix and the older .dat files (common/imatrix-loader.cpp and tools/quantize/quantize.cpp of
 * llama.cpp, commits 0a32c5e and 03161a4).
 */
import { isUtf8 } from 'node:buffer';
import { decodeValues } from '../../base/tensor/decode-values.js';
import { formatInteger } from '../../base/text/units.js';
import { ByteFile } from '../byte-file.js';
import { exactBytesText, quoted, SMALL_FILE } from '../checkpoint-rules.js';
import type { StoredTensor } from '../stored-tensor.js';
import { readTensor } from '../view.js';
import { GgufScanner } from './gguf-scanner.js';
import { GGUF_MAGIC, readGguf } from './read-gguf.js';

/** Importances by the name of the matrix in llama.cpp, those of experts one after the other: [experts · columns]. */
export type ImportanceMatrix = ReadonlyMap<string, Float32Array>;

const MOST_ENTRIES = { small: 12_000, large: 200_000 };
const MOST_NAME_BYTES = 127;

/** Smallest entry of a .dat file: length and a byte of the name, calls, length, a value. */
const MIN_ENTRY_BYTES = 4 + 1 + 4 + 4 + 4;

/**
 * Largest mean square: the search multiplies sums of importances in float32, where those of 1e17 are infinite. Inputs of
 * language models stay below a million.
 */
const MOST = 1e12;

/** Ends of the names of sums and counts in a GGUF file. */
const [SUMS, COUNTS] = ['.in_sum2', '.counts'];

/**
 * Reads a file whole: it takes as much memory as it has bytes.
 * @throws UserError that names the violated rule.
 */
export function readImatrix(path: string): ImportanceMatrix {
  const file = ByteFile.open(path);
  try {
    const isGguf =
      file.size >= GGUF_MAGIC.length &&
      file.read(0, GGUF_MAGIC.length).toString('latin1') === GGUF_MAGIC;
    return isGguf ? readSums(file) : readOlder(file);
  } finally {
    file.close();
  }
}

/** Entries of a GGUF file: sums of squares, divided by the number of tokens of each expert. */
function readSums(file: ByteFile): ImportanceMatrix {
  const { tensors } = readGguf(file);
  const scanner = new GgufScanner(file);
  const found = new Map<string, Float32Array>();
  for (const [name, sums] of tensors) {
    if (!name.endsWith(SUMS)) continue;
    const matrix = name.slice(0, -SUMS.length);
    scanner.place = `entry ${quoted(matrix)}`;
    checkName(scanner, Buffer.byteLength(matrix));
    const counts = tensors.get(`${matrix}${COUNTS}`);
    if (
      counts === undefined ||
      ![sums, counts].every(({ dtype, encoding }) => dtype === 'F32' && encoding === undefined) ||
      counts.elements === 0 ||
      sums.elements % counts.elements !== 0
    ) {
      throw scanner.refusal('imatrix-pair', 'has no counts that belong to its sums');
    }
    checkLength(scanner, sums.elements);
    found.set(matrix, means(scanner, numbersOf(sums), numbersOf(counts)));
  }
  scanner.place = 'the number of entries';
  checkEntries(scanner, found.size, 0);
  return found;
}

function numbersOf(tensor: StoredTensor): Float32Array {
  const numbers = new Float64Array(tensor.elements);
  decodeValues('F32', readTensor(tensor), numbers);
  return Float32Array.from(numbers);
}

/** Means of each expert's values; 1 for an expert that no token reached. */
function means(scanner: GgufScanner, sums: Float32Array, counts: Float32Array): Float32Array {
  checkValues(scanner, counts);
  checkValues(scanner, sums);
  const columns = sums.length / counts.length;
  return checkedMeans(
    scanner,
    sums.map((sum, index) => {
      const count = Math.round(counts[Math.floor(index / columns)] ?? 0);
      return count > 0 ? Math.fround(sum / count) : 1;
    }),
  );
}

/** Entries of a .dat file: name, calls, sums; a count of chunks and the name of the data can follow. */
function readOlder(file: ByteFile): ImportanceMatrix {
  const scanner = new GgufScanner(file);
  scanner.place = 'the number of entries';
  const count = nextInteger(scanner);
  checkEntries(scanner, count, count * MIN_ENTRY_BYTES);
  const found = new Map<string, Float32Array>();
  for (let index = 0; index < count; index++) {
    scanner.place = `entry ${index}`;
    const name = nameOf(scanner);
    scanner.place = `entry ${quoted(name)}`;
    if (found.has(name)) throw scanner.refusal('imatrix-name-twice', 'found the name twice');
    const calls = nextInteger(scanner);
    if (calls < 0) throw wrongValue(scanner, `states ${formatInteger(calls)} calls`);
    const length = nextInteger(scanner);
    checkLength(scanner, length);
    const bytes = taken(scanner, 4 * length);
    const numbers = new Float64Array(length);
    decodeValues('F32', bytes, numbers);
    const sums = Float32Array.from(numbers);
    checkValues(scanner, sums);
    const values = calls > 0 ? sums.map((sum) => sum / calls) : sums;
    found.set(name, checkedMeans(scanner, values));
  }
  readEnd(scanner);
  return found;
}

/** The end of a .dat file: nothing, the number of chunks, or that and the name of the data. */
function readEnd(scanner: GgufScanner): void {
  scanner.place = 'the end of the file';
  if (scanner.left > 0) nextInteger(scanner);
  if (scanner.left > 0) taken(scanner, Math.max(0, nextInteger(scanner)));
  if (scanner.left === 0) return;
  throw notWhole(
    scanner,
    `has ${exactBytesText(scanner.left)} after the last entry that belong to nothing`,
  );
}

function nameOf(scanner: GgufScanner): string {
  const length = nextInteger(scanner);
  checkName(scanner, length);
  const bytes = taken(scanner, length);
  checkName(scanner, length, isUtf8(bytes));
  return bytes.toString('utf8');
}

/** @param length Bytes of the name. */
function checkName(scanner: GgufScanner, length: number, isText = true): void {
  if (length >= 1 && length <= MOST_NAME_BYTES && isText) return;
  const problem = isText
    ? `the name has ${length} bytes, expected 1 to ${MOST_NAME_BYTES}`
    : 'the name has bytes that are not UTF-8';
  throw scanner.refusal('imatrix-name', problem);
}

function checkLength(scanner: GgufScanner, values: number): void {
  if (values < 1) throw scanner.refusal('imatrix-length', `states ${values} values`);
}

function nextInteger(scanner: GgufScanner): number {
  return taken(scanner, 4).readInt32LE();
}

/** The next bytes. */
function taken(scanner: GgufScanner, bytes: number): Buffer {
  const { position, left, file } = scanner;
  if (bytes > left) {
    throw notWhole(
      scanner,
      `needs ${exactBytesText(bytes)}, but only ${formatInteger(left)} follow`,
    );
  }
  scanner.skip(bytes);
  return file.read(position, bytes);
}

/** @param bytes Bytes that the entries take at least. */
function checkEntries(scanner: GgufScanner, entries: number, bytes: number): void {
  const most = scanner.file.size < SMALL_FILE ? MOST_ENTRIES.small : MOST_ENTRIES.large;
  if (entries >= 1 && entries <= most && bytes <= scanner.left) return;
  throw scanner.refusal(
    'imatrix-entries',
    `is ${formatInteger(entries)}, expected 1 to ${formatInteger(most)} and bytes for all; is it an importance matrix?`,
  );
}

/** @throws UserError for values that no search can weigh with. */
function checkedMeans(scanner: GgufScanner, values: Float32Array): Float32Array {
  const wrong = values.find((value) => value > MOST);
  if (wrong !== undefined) {
    throw wrongValue(scanner, `has the mean square ${wrong}, expected at most ${MOST}`);
  }
  if (values.every((value) => value === 0)) {
    throw scanner.refusal('imatrix-zero', 'has only zeros, which say nothing about its matrix');
  }
  return values;
}

function checkValues(scanner: GgufScanner, values: Float32Array): void {
  const wrong = values.find((value) => !(value >= 0 && value < Number.POSITIVE_INFINITY));
  if (wrong === undefined) return;
  throw wrongValue(scanner, `has the value ${wrong}`);
}

const wrongValue = (scanner: GgufScanner, problem: string) =>
  scanner.refusal('imatrix-value', problem);

const notWhole = (scanner: GgufScanner, problem: string) =>
  scanner.refusal('imatrix-whole', problem);
