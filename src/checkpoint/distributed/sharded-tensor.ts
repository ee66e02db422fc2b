/** Tensors that are put together from parts in several files when they are read. */
import type { Shape, StoredDtype } from '../../base/tensor/dtype.js';
import { STORED_DTYPES } from '../../base/tensor/dtype.js';
import { sumOf } from '../../base/values.js';
import { ByteFile } from '../byte-file.js';
import type { Refuse } from '../checkpoint-rules.js';
import { reshaped } from '../computed-file.js';
import type { StoredTensor } from '../stored-tensor.js';
import { contiguousStrides, isContiguous, tensorIn } from '../stored-tensor.js';

/** A box of elements in a tensor: first index and size per axis. */
export interface PartBox {
  readonly offsets: readonly number[];
  readonly sizes: Shape;
}

/** A part of a tensor, and where its values are. The tensor of the values has the sizes of the box. */
export interface TensorPart extends PartBox {
  readonly values: StoredTensor;
}

const volumeOf = ({ sizes }: PartBox): number => sizes.reduce((product, size) => product * size, 1);

/** Comparisons of two parts that are made at most; the parts of an even split need far fewer. */
const MAX_COMPARISONS = 5_000_000;

/**
 * Checks that parts cover a tensor, each element once.
 * @param boxes Parts inside the tensor.
 */
export function checkCover(shape: Shape, boxes: readonly PartBox[], refuse: Refuse): void {
  const filled = boxes
    .filter((box) => volumeOf(box) > 0)
    .sort((a, b) => (a.offsets[0] ?? 0) - (b.offsets[0] ?? 0));
  let comparisons = 0;
  for (const [index, box] of filled.entries()) {
    const end = (box.offsets[0] ?? 0) + (box.sizes[0] ?? 1);
    for (let next = index + 1; next < filled.length; next++) {
      const other = filled[next];
      if (other === undefined || (other.offsets[0] ?? 0) >= end) break;
      if (++comparisons > MAX_COMPARISONS) {
        throw refuse('part-count', `has ${boxes.length} parts, too many to compare`);
      }
      if (isOverlapping(box, other)) {
        throw refuse(
          'part-overlap',
          `has two parts that overlap: ${boxText(box)} and ${boxText(other)}`,
        );
      }
    }
  }
  const total = shape.reduce((product, size) => product * size, 1);
  const covered = filled.reduce((sum, box) => sum + volumeOf(box), 0);
  if (covered !== total) {
    throw refuse(
      'part-missing',
      `has parts of ${covered} elements together, expected ${total}`,
      'copy the files of all processes into the folder, or save the checkpoint again',
    );
  }
}

const isOverlapping = (a: PartBox, b: PartBox): boolean =>
  a.offsets.every((from, axis) => {
    const other = b.offsets[axis] ?? 0;
    return from < other + (b.sizes[axis] ?? 0) && other < from + (a.sizes[axis] ?? 0);
  });

export const boxText = ({ offsets, sizes }: PartBox): string =>
  `[${offsets.map((from, axis) => `${from}–${from + (sizes[axis] ?? 0)}`).join(', ')}]`;

/** A part whose values are contiguous bytes of a file. */
interface PlacedPart extends PartBox {
  readonly file: ByteFile;
  /** Position of the first value in the file. */
  readonly position: number;
  /** First axis from which the elements of the part form one run in the whole tensor. */
  readonly runAxis: number;
  /** Strides of the part itself. */
  readonly strides: readonly number[];
}

function placed(part: TensorPart, shape: Shape): PlacedPart {
  const { offsets, sizes, values } = part;
  const isPlain = isContiguous(values) && !values.storage.isBigEndian;
  const { storage, offset, dtype } = isPlain ? values : reshaped(values, values.shape);
  let runAxis = shape.length - 1;
  while (runAxis > 0 && sizes[runAxis] === shape[runAxis]) runAxis--;
  return {
    offsets,
    sizes,
    file: storage.file,
    position: storage.position + (offset * STORED_DTYPES[dtype].bits) / 8,
    runAxis: Math.max(0, runAxis),
    strides: contiguousStrides(sizes),
  };
}

/**
 * The whole tensor of parts that cover it, contiguous.
 * @param parts Checked with `checkCover`; all of the dtype.
 */
export function shardedTensor(
  path: string,
  dtype: StoredDtype,
  shape: Shape,
  parts: readonly TensorPart[],
): StoredTensor {
  const filled = parts.filter((part) => volumeOf(part) > 0);
  const [only] = filled;
  // One file has the whole tensor: it is read like any other.
  if (only && filled.length === 1 && isContiguous(only.values)) {
    return { ...only.values, shape, strides: contiguousStrides(shape) };
  }
  const changedAt = filled.reduce(
    (last, { values }) => Math.max(last, values.storage.file.changedAt),
    0,
  );
  return tensorOfParts(path, dtype, shape, changedAt, () => filled);
}

/**
 * The whole tensor of parts that cover it, contiguous.
 * @param parts Called when values are read: the parts of all tensors together can be millions.
 */
export function tensorOfParts(
  path: string,
  dtype: StoredDtype,
  shape: Shape,
  changedAt: number,
  parts: () => readonly TensorPart[],
): StoredTensor {
  const elements = shape.reduce((product, size) => product * size, 1);
  const bytes = (elements * STORED_DTYPES[dtype].bits) / 8;
  const file = new ShardedFile(path, { size: bytes, mtimeMs: changedAt }, dtype, shape, parts);
  return tensorIn(file, dtype, shape);
}

/** Bytes of a part that a read of the whole tensor needs. */
interface PartRead {
  readonly part: PlacedPart;
  /** Position in the file of the part. */
  readonly from: number;
  readonly bytes: number;
  /** Position in the target; undefined if they are not one run of the whole tensor. */
  readonly at: number | undefined;
}

/** The bytes of a tensor as a file that does not exist: a read of a range reads the parts that lie in it. */
class ShardedFile extends ByteFile {
  /** The parts of the tensor that was read last. */
  static #recent: { readonly file: ShardedFile; readonly parts: readonly PlacedPart[] } | undefined;

  readonly #width: number;
  readonly #shape: Shape;
  readonly #strides: readonly number[];
  readonly #makeParts: () => readonly TensorPart[];

  constructor(
    path: string,
    status: { readonly size: number; readonly mtimeMs: number },
    dtype: StoredDtype,
    shape: Shape,
    parts: () => readonly TensorPart[],
  ) {
    super(path, status);
    this.#width = STORED_DTYPES[dtype].bits / 8;
    this.#shape = shape;
    this.#strides = contiguousStrides(shape);
    this.#makeParts = parts;
  }

  get #parts(): readonly PlacedPart[] {
    if (ShardedFile.#recent?.file !== this) {
      const parts = this.#makeParts().map((part) => placed(part, this.#shape));
      ShardedFile.#recent = { file: this, parts };
    }
    return ShardedFile.#recent?.parts ?? [];
  }

  override get isComputed(): boolean {
    return true;
  }

  override readInto(target: Uint8Array, position: number): void {
    const page = new Page();
    for (const { part, from, bytes, at } of this.#reads(target, position)) {
      if (at !== undefined) page.readInto(target, at, bytes, part.file, from);
      else this.#scatter(part, part.file.read(from, bytes), target, position);
    }
  }

  override async readIntoAsync(target: Uint8Array, position: number): Promise<void> {
    const reads = this.#reads(target, position);
    const scattered = sumOf(reads, ({ at, bytes }) => (at === undefined ? bytes : 0));
    const scratch = takeScratch(scattered);
    let used = 0;
    await Promise.all(
      reads.map(async ({ part, from, bytes, at }) => {
        if (at !== undefined) {
          return part.file.readIntoAsync(target.subarray(at, at + bytes), from);
        }
        const span = new Uint8Array(scratch, used, bytes);
        used += bytes;
        await part.file.readIntoAsync(span, from);
        this.#scatter(part, span, target, position);
      }),
    );
    if (scratch.byteLength === SCRATCH_BYTES) freeScratch.push(scratch);
  }

  override hasChanged(): boolean {
    return this.#parts.some(({ file }) => file.hasChanged());
  }

  override close(): void {
    // The files of the parts are closed by their owner.
  }

  override locate(): string {
    throw new Error(`values of ${this.path} lie in several files`);
  }

  /** The bytes of each part that a range needs: they follow each other in the part, as the order of both is the same. */
  #reads(target: Uint8Array, position: number): PartRead[] {
    const first = position / this.#width;
    const end = (position + target.length) / this.#width;
    const reads: PartRead[] = [];
    for (const part of this.#parts) {
      const from = this.#elementsBefore(part, first);
      const count = this.#elementsBefore(part, end) - from;
      if (count === 0) continue;
      const start = (part.offsets[0] ?? 0) * (this.#strides[0] ?? 1) + from - first;
      reads.push({
        part,
        from: part.position + from * this.#width,
        bytes: count * this.#width,
        at: part.runAxis > 0 ? undefined : start * this.#width,
      });
    }
    return reads;
  }

  /** Number of elements of a part before an element of the whole tensor, in row-major order. */
  #elementsBefore({ offsets, sizes, strides, runAxis }: PlacedPart, element: number): number {
    let rest = element;
    let before = 0;
    for (let axis = 0; axis <= runAxis; axis++) {
      const stride = this.#strides[axis] ?? 1;
      const from = offsets[axis] ?? 0;
      const size = sizes[axis] ?? 1;
      const own = strides[axis] ?? 1;
      if (axis === runAxis) {
        return before + Math.min(Math.max(rest - from * stride, 0), size * own);
      }
      const index = Math.floor(rest / stride);
      if (index < from) return before;
      if (index >= from + size) return before + size * own;
      before += (index - from) * own;
      rest -= index * stride;
    }
    return before;
  }

  /** Copies the bytes of a part in a range to their places: run by run, which follow each other in the part. */
  #scatter(part: PlacedPart, span: Uint8Array, target: Uint8Array, position: number): void {
    const { offsets, sizes, runAxis } = part;
    const end = position + target.length;
    let at = 0;
    const visit = (axis: number, whole: number): void => {
      const stride = (this.#strides[axis] ?? 1) * this.#width;
      const start = whole + (offsets[axis] ?? 0) * stride;
      const size = sizes[axis] ?? 1;
      if (axis === runAxis) {
        const from = Math.max(start, position);
        const bytes = Math.min(start + size * stride, end) - from;
        if (bytes <= 0) return;
        target.set(span.subarray(at, at + bytes), from - position);
        at += bytes;
        return;
      }
      const first = Math.max(0, Math.floor((position - start) / stride));
      const last = Math.min(size, Math.ceil((end - start) / stride));
      for (let index = first; index < last; index++) visit(axis + 1, start + index * stride);
    };
    visit(0, 0);
  }
}

/** The last bytes of a file that were read for a small part: parts of a tensor often follow each other. */
class Page {
  static readonly #bytes = 4096;
  #file: ByteFile | undefined;
  #start = 0;
  #content: Uint8Array = new Uint8Array(0);

  /** Reads `bytes` bytes from a position of a file to the place `at` in the target. */
  readInto(target: Uint8Array, at: number, bytes: number, file: ByteFile, position: number): void {
    if (bytes >= Page.#bytes / 4) {
      file.readInto(target.subarray(at, at + bytes), position);
      return;
    }
    const isHere =
      this.#file === file &&
      position >= this.#start &&
      position + bytes <= this.#start + this.#content.length;
    if (!isHere) {
      const ahead = Math.min(Page.#bytes, file.size - position);
      this.#content = file.read(position, Math.max(bytes, ahead));
      [this.#file, this.#start] = [file, position];
    }
    const from = position - this.#start;
    for (let byte = 0; byte < bytes; byte++) target[at + byte] = this.#content[from + byte] ?? 0;
  }
}

/** Buffers to reuse: new pages from the system cost as much time as reading. */
const freeScratch: ArrayBuffer[] = [];
const SCRATCH_BYTES = 2 ** 20;

const takeScratch = (bytes: number): ArrayBuffer =>
  (bytes <= SCRATCH_BYTES && freeScratch.pop()) || new ArrayBuffer(Math.max(bytes, SCRATCH_BYTES));
