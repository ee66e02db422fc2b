/** Reads the values of a stored tensor as contiguous little-endian bytes, for any strides and byte order. */
import { STORED_DTYPES } from '../base/tensor/dtype.js';
import {
  contiguousStrides,
  isContiguous,
  type StoredBytes,
  type StoredTensor,
} from './stored-tensor.js';

/** Number of rows of a tensor [rows, …]; a scalar is one row. */
export const rowCount = ({ shape }: StoredTensor): number => shape[0] ?? 1;

/** Bytes per row when contiguous; 0 for a tensor without elements. */
export const rowBytes = (tensor: StoredTensor): number =>
  tensor.elements === 0 ? 0 : tensor.bytes / rowCount(tensor);

/** Number of pieces read ahead: the next one can start while one waits for its thread. */
const PIECES_AHEAD = 3;

/** Bytes per read of scattered values and of read-ahead. */
const BLOCK_BYTES = 1 << 20;

/** Bytes per piece of scattered values, and maximum size of the storages cached for them. */
const SCATTERED_BYTES = 16 * BLOCK_BYTES;

/**
 * Reads `rows` rows from `firstRow` into `target`, which must have exactly their size.
 * @throws RangeError if the rows or the target do not fit the tensor.
 * @throws UserError if reading fails.
 */
export function readRows(
  tensor: StoredTensor,
  firstRow: number,
  rows: number,
  target: Uint8Array,
): void {
  const start = firstRow * rowBytes(tensor);
  const length = rows * rowBytes(tensor);
  if (firstRow < 0 || rows < 0 || firstRow + rows > rowCount(tensor)) {
    throw new RangeError(`rows ${firstRow} to ${firstRow + rows} of ${rowCount(tensor)}`);
  }
  if (target.length !== length || !Number.isInteger(start) || !Number.isInteger(length)) {
    throw new RangeError(`${length} bytes from ${start} on, into ${target.length}`);
  }
  if (length === 0) return;
  if (isContiguous(tensor)) {
    tensor.storage.file.readInto(target, dataPosition(tensor) + start);
  } else {
    gatherRows(tensor, firstRow, rows, target);
  }
  toLittleEndian(tensor, target);
}

/** Asynchronous `readRows` for contiguous values. */
export async function readRowsAsync(
  tensor: StoredTensor,
  firstRow: number,
  rows: number,
  target: Uint8Array,
): Promise<void> {
  if (!isContiguous(tensor)) {
    readRows(tensor, firstRow, rows, target);
    return;
  }
  const position = dataPosition(tensor) + firstRow * rowBytes(tensor);
  await tensor.storage.file.readIntoAsync(target, position);
  toLittleEndian(tensor, target);
}

export function readTensor(tensor: StoredTensor): Uint8Array {
  const target = new Uint8Array(tensor.bytes);
  if (tensor.elements > 0) readRows(tensor, 0, rowCount(tensor), target);
  return target;
}

/**
 * Passes the bytes of a tensor to `take` in order, in pieces of complete elements. The buffer of a piece is
 * reused for later pieces.
 * @param chunkBytes Approximate maximum bytes per piece.
 */
export async function streamTensor(
  tensor: StoredTensor,
  take: (bytes: Uint8Array) => void | Promise<void>,
  chunkBytes = BLOCK_BYTES,
): Promise<void> {
  for await (const chunk of readInChunks(tensor, chunkBytes)) await take(chunk);
}

/** The bytes of a tensor in pieces, as for `streamTensor`. */
export async function* readInChunks(
  tensor: StoredTensor,
  chunkBytes = BLOCK_BYTES,
): AsyncGenerator<Uint8Array, undefined> {
  if (tensor.elements === 0) return;
  if (isContiguous(tensor)) {
    yield* contiguousChunks(tensor, chunkBytes);
    return;
  }
  // Larger pieces need fewer reads when the values are scattered over their storage.
  for (const piece of tensorPieces(tensor, (SCATTERED_BYTES / BLOCK_BYTES) * chunkBytes)) {
    yield readTensor(piece);
    await yieldToEventLoop();
  }
}

/**
 * Splits a tensor in order into pieces of at most `most` bytes. The cuts depend only on shape and dtype, so
 * pieces of equal tensors correspond. The recursion depth is at most the number of axes.
 */
export function* tensorPieces(
  tensor: StoredTensor,
  most: number,
): Generator<StoredTensor, undefined> {
  if (tensor.bytes <= most) {
    yield tensor;
    return;
  }
  const rows = rowCount(tensor);
  const fitting = Math.floor(most / rowBytes(tensor));
  if (fitting === 0) {
    for (let row = 0; row < rows; row++) yield* tensorPieces(rowAt(tensor, row), most);
    return;
  }
  // Multiples of four where possible: four values of any dtype are whole bytes.
  const atOnce = fitting < 4 ? fitting : fitting - (fitting % 4);
  for (let row = 0; row < rows; row += atOnce) {
    yield narrow(tensor, 0, row, Math.min(atOnce, rows - row));
  }
}

/** The part of a tensor with `count` indexes from `first` along an axis. */
export function narrow(
  tensor: StoredTensor,
  axis: number,
  first: number,
  count: number,
): StoredTensor {
  const size = tensor.shape[axis] ?? 1;
  const shape = tensor.shape.with(axis, count);
  return {
    ...tensor,
    shape,
    elements: size === 0 ? 0 : (tensor.elements / size) * count,
    offset: tensor.offset + first * (tensor.strides[axis] ?? 0),
    bytes: size === 0 ? 0 : (tensor.bytes / size) * count,
  };
}

/** One row without its axis. */
function rowAt(tensor: StoredTensor, row: number): StoredTensor {
  const { shape, strides, ...rest } = narrow(tensor, 0, row, 1);
  return { ...rest, shape: shape.slice(1), strides: strides.slice(1) };
}

/** Reads the next pieces while the caller processes the current one. */
async function* contiguousChunks(
  tensor: StoredTensor,
  chunkBytes: number,
): AsyncGenerator<Uint8Array, undefined> {
  const { file } = tensor.storage;
  const position = dataPosition(tensor);
  // A multiple of every element size, packed dtypes included.
  const size = Math.min(tensor.bytes, Math.max(48, chunkBytes - (chunkBytes % 48)));
  if (tensor.bytes <= size) {
    const whole = file.read(position, tensor.bytes);
    toLittleEndian(tensor, whole);
    yield whole;
    return;
  }
  const pieces = Math.ceil(tensor.bytes / size);
  const buffers = Array.from({ length: Math.min(pieces, PIECES_AHEAD + 1) }, () =>
    takeBuffer(size),
  );
  const request = (index: number) => {
    const start = index * size;
    const buffer = buffers[index % buffers.length] ?? new Uint8Array();
    const piece = buffer.subarray(0, Math.min(size, tensor.bytes - start));
    const read = file.readIntoAsync(piece, position + start);
    // The error is thrown later, when the read is awaited.
    read.catch(() => {});
    return { piece, read };
  };
  const requests = buffers.slice(1).map((_, index) => request(index));
  for (let index = 0; index < pieces; index++) {
    const next = requests.shift() ?? request(index);
    await next.read;
    // Reuse the buffer of the previous piece.
    const ahead = index + buffers.length - 1;
    if (ahead < pieces) requests.push(request(ahead));
    toLittleEndian(tensor, next.piece);
    yield next.piece;
  }
  // Not after an early exit: some reads are still running.
  freeBuffers.push(...buffers.filter(({ length }) => length === BLOCK_BYTES));
}

/** Buffers to reuse: new pages from the system cost as much time as reading. */
const freeBuffers: Uint8Array[] = [];

const takeBuffer = (size: number): Uint8Array =>
  (size <= BLOCK_BYTES && freeBuffers.pop()) || new Uint8Array(Math.max(size, BLOCK_BYTES));

/** Yields to signals and timers. */
export const yieldToEventLoop = () => new Promise<void>((resolve) => setImmediate(resolve));

function dataPosition({ storage, offset, dtype }: StoredTensor): number {
  return storage.position + (offset * STORED_DTYPES[dtype].bits) / 8;
}

/** Swaps the bytes of each word in place if the file is big-endian. */
function toLittleEndian({ storage, dtype }: StoredTensor, bytes: Uint8Array): void {
  if (!storage.isBigEndian) return;
  const words = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const { wordBytes } = STORED_DTYPES[dtype];
  if (wordBytes === 2) words.swap16();
  else if (wordBytes === 4) words.swap32();
  else if (wordBytes === 8) words.swap64();
}

/** A box of elements: first index and size per axis. */
interface Box {
  readonly from: readonly number[];
  readonly size: readonly number[];
}

function gatherRows(
  tensor: StoredTensor,
  firstRow: number,
  rows: number,
  target: Uint8Array,
): void {
  const rest = tensor.shape.slice(1);
  const whole: Box = {
    from: [firstRow, ...rest.map(() => 0)],
    size: [rows, ...rest],
  };
  const { storage } = tensor;
  if (storage.bytes <= SCATTERED_BYTES) {
    gatherBox(tensor, whole, firstRow, target, keptBytes(storage), 0);
    return;
  }
  const width = elementBytes(tensor);
  const boxes = [whole];
  for (let box = boxes.pop(); box; box = boxes.pop()) {
    const bytes = spanOf(tensor, box) * width;
    if (bytes > BLOCK_BYTES) boxes.push(...halves(tensor, box));
    else {
      const start = firstOf(tensor, box) * width;
      const span = storage.file.read(storage.position + start, bytes);
      gatherBox(tensor, box, firstRow, target, span, start);
    }
  }
}

/** Cache of small storages with scattered values, most recent last: a file can have many views of each. */
const kept = new Map<StoredBytes, Uint8Array>();
let keptSize = 0;

function keptBytes(storage: StoredBytes): Uint8Array {
  const known = kept.get(storage);
  if (known) return known;
  const bytes = storage.file.read(storage.position, storage.bytes);
  keptSize += bytes.length;
  for (const [oldest, { length }] of kept) {
    if (keptSize <= SCATTERED_BYTES) break;
    kept.delete(oldest);
    keptSize -= length;
  }
  kept.set(storage, bytes);
  return bytes;
}

const elementBytes = ({ dtype }: StoredTensor) => STORED_DTYPES[dtype].bits / 8;

/** Number of storage elements from the first of a box to its last. */
function spanOf({ strides }: StoredTensor, { size }: Box): number {
  return size.reduce((span, count, axis) => span + (count - 1) * (strides[axis] ?? 0), 1);
}

/** Splits a box along the axis with the largest extent in the storage, so that each half is more compact. */
function halves({ strides }: StoredTensor, { from, size }: Box): [Box, Box] {
  const reach = size.map((count, axis) => (count - 1) * (strides[axis] ?? 0));
  const axis = reach.indexOf(Math.max(...reach));
  const first = Math.ceil((size[axis] ?? 0) / 2);
  const [at, count] = [from[axis] ?? 0, size[axis] ?? 0];
  return [
    { from, size: size.with(axis, first) },
    { from: from.with(axis, at + first), size: size.with(axis, count - first) },
  ];
}

/** Storage index of the first element of a box. */
const firstOf = ({ strides, offset }: StoredTensor, { from }: Box): number =>
  from.reduce((sum, at, axis) => sum + at * (strides[axis] ?? 0), offset);

/**
 * Copies each element of a box to its place in the rows from `firstRow`.
 * @param bytes Part of the storage, from its byte `start`.
 */
function gatherBox(
  tensor: StoredTensor,
  box: Box,
  firstRow: number,
  target: Uint8Array,
  bytes: Uint8Array,
  start: number,
): void {
  const { strides, shape } = tensor;
  const width = elementBytes(tensor);
  const first = firstOf(tensor, box) * width - start;
  const index = box.size.map(() => 0);
  const steps = contiguousStrides(shape);
  const base = box.from.reduce(
    (sum, at, axis) => sum + (axis === 0 ? at - firstRow : at) * (steps[axis] ?? 0),
    0,
  );
  const last = box.size.length - 1;
  const [inner, stride] = [box.size[last] ?? 1, strides[last] ?? 0];
  do {
    let source = 0;
    let place = base;
    for (let axis = 0; axis < last; axis++) {
      source += (index[axis] ?? 0) * (strides[axis] ?? 0);
      place += (index[axis] ?? 0) * (steps[axis] ?? 0);
    }
    for (let column = 0; column < inner; column++) {
      const from = first + (source + column * stride) * width;
      const to = (place + column) * width;
      for (let byte = 0; byte < width; byte++) target[to + byte] = bytes[from + byte] ?? 0;
    }
  } while (advance(index, box.size, last));
}

/** Advances to the next index over the axes before `last`, in row-major order; false after the final one. */
function advance(index: number[], size: readonly number[], last: number): boolean {
  for (let axis = last - 1; axis >= 0; axis--) {
    const next = (index[axis] ?? 0) + 1;
    if (next < (size[axis] ?? 0)) {
      index[axis] = next;
      return true;
    }
    index[axis] = 0;
  }
  return false;
}
