import type { ByteRange } from '../../files/mounted.js';
import { ByteFile } from '../byte-file.js';

/** Bytes at the beginning and the end that are read at once: the records of an archive around its values. */
const EDGE_BYTES = 1024;

/** Ranges that are read of each part: its beginning and its end. */
export function edgesOf(start: number, length: number): ByteRange[] {
  const edge = Math.min(EDGE_BYTES, length);
  return [
    { position: start, length: edge },
    { position: start + length - edge, length: edge },
  ];
}

/** A part of a file, as a file: one archive of several that follow each other. */
export class FileSlice extends ByteFile {
  readonly origin: ByteFile;
  /** Position of the first byte in the file. */
  readonly start: number;
  #head: Buffer | undefined;
  #tail: Buffer | undefined;

  constructor(origin: ByteFile, start: number, length: number) {
    super(origin.path, { size: length, mtimeMs: origin.changedAt });
    this.origin = origin;
    this.start = start;
  }

  /** Reads of single records would take most of the time of opening thousands of small archives. */
  override readInto(target: Uint8Array, position: number): void {
    const end = position + target.length;
    const edge = Math.min(EDGE_BYTES, this.size);
    if (end <= edge) {
      this.#head ??= this.origin.read(this.start, edge);
      target.set(this.#head.subarray(position, end));
    } else if (position >= this.size - edge && end <= this.size) {
      const from = this.size - edge;
      this.#tail ??= this.origin.read(this.start + from, edge);
      target.set(this.#tail.subarray(position - from, end - from));
    } else this.#readPlaced(target, position);
  }

  override async readIntoAsync(target: Uint8Array, position: number): Promise<void> {
    this.#readPlaced(target, position);
  }

  override hasChanged(): boolean {
    return this.origin.hasChanged();
  }

  override close(): void {
    // The file is closed by its owner.
  }

  #readPlaced(target: Uint8Array, position: number): void {
    if (position + target.length > this.size) throw new RangeError('read beyond the end of a part');
    this.origin.readInto(target, this.start + position);
  }
}
