/** A file of the hub of which only some parts are here. */
import { UserError } from '../errors.js';
import type { ByteRange, MountedFile } from '../files/mounted.js';
import type { DataReader } from './data-reader.js';
import type { CachedFile, CachedRange } from './header-cache.js';
import type { FetchedRange, HubFile } from './hub-client.js';

/** First bytes of a file that are fetched at once: most headers are shorter. */
export const FIRST_BYTES = 64 * 1024;

/** Most bytes that are fetched beyond the requested ones, when a reader goes on. */
const MOST_GROWTH = 8 * 2 ** 20;

/** Longest range of a header: longer ones are not an index of tensors. */
const MAX_RANGE = 512 * 2 ** 20;

/** Bytes that a reader needs and that have to be fetched first. It never leaves this folder. */
export class MissingBytes extends Error {
  constructor(readonly wanted: ReadonlyMap<RemoteFile, readonly ByteRange[]>) {
    super('bytes of a remote file were read before they were fetched');
    this.name = 'MissingBytes';
  }
}

/** Whether and how bytes that are not here can be had. */
export interface MissingSource {
  /** Whether the caller fetches what is missing and tries again. */
  readonly isPrefetching: boolean;
  readonly reader: DataReader;
}

export class RemoteFile implements MountedFile {
  readonly #place: HubFile;
  readonly localPath = undefined;
  readonly #source: MissingSource;
  /** In their order, without overlaps, and apart from each other. */
  #ranges: CachedRange[];
  #size: number | undefined;
  #tag: string | undefined;

  constructor(place: HubFile, source: MissingSource, known: CachedFile | undefined) {
    this.#place = place;
    this.#source = source;
    this.#size = known?.size;
    this.#tag = known?.tag;
    this.#ranges = [...(known?.ranges ?? [])];
  }

  /** Content of the file as far as it is here, for the cache. */
  get cached(): CachedFile {
    return { size: this.size, tag: this.#tag, ranges: this.#ranges };
  }

  get place(): HubFile {
    return { ...this.#place, tag: this.#tag };
  }

  get contentTag(): string | undefined {
    return this.#tag;
  }

  get isKnown(): boolean {
    return this.#size !== undefined;
  }

  get size(): number {
    if (this.#size === undefined) {
      throw new MissingBytes(new Map([[this, [{ position: 0, length: FIRST_BYTES }]]]));
    }
    return this.#size;
  }

  /** The first digits of the commit: a commit never changes. */
  get version(): number {
    return Number.parseInt(this.place.commit.slice(0, 12), 16);
  }

  readInto(target: Uint8Array, position: number): void {
    if (this.#copied(target, position)) return;
    this.#refuseBeyondEnd(target, position);
    if (this.#source.isPrefetching) {
      throw new MissingBytes(new Map([[this, [{ position, length: target.length }]]]));
    }
    this.#source.reader.readInto(this.place, this.size, target, position);
  }

  async readIntoAsync(target: Uint8Array, position: number): Promise<void> {
    if (this.#copied(target, position)) return;
    this.#refuseBeyondEnd(target, position);
    await this.#source.reader.readIntoAsync(this.place, this.size, target, position);
  }

  willRead(ranges: readonly ByteRange[]): void {
    if (!this.#source.isPrefetching) return;
    const { size } = this;
    const inside = ranges
      .map(({ position, length }) => ({ position, length: Math.min(length, size - position) }))
      .filter(({ length }) => length > 0);
    if (inside.some((range) => this.gaps(range).length > 0)) {
      throw new MissingBytes(new Map([[this, inside]]));
    }
  }

  /**
   * Bytes to fetch for a range: the parts that are not here. A part that continues one that is here grows with
   * it, so that a long header takes few requests.
   */
  gaps({ position, length }: ByteRange): ByteRange[] {
    if (length > MAX_RANGE) {
      throw new UserError(
        'refused-file',
        `${this.place.name}: its index has ${length} bytes or more`,
        {
          suggestion: 'check that this is a checkpoint',
        },
      );
    }
    const end = Math.min(position + length, this.#size ?? Number.POSITIVE_INFINITY);
    const gaps: ByteRange[] = [];
    let at = position;
    for (const range of this.#ranges) {
      const rangeEnd = range.position + range.bytes.length;
      if (rangeEnd <= at || range.position >= end) continue;
      if (range.position > at) gaps.push({ position: at, length: range.position - at });
      at = rangeEnd;
    }
    if (at < end) gaps.push({ position: at, length: Math.max(end - at, this.#growth(at)) });
    return gaps;
  }

  #growth(position: number): number {
    const before = this.#ranges.find((each) => each.position + each.bytes.length === position);
    const next = this.#ranges.find((each) => each.position > position)?.position ?? this.#size ?? 0;
    const growth = Math.min(before?.bytes.length ?? 0, MOST_GROWTH);
    return Math.max(0, Math.min(growth, next - position));
  }

  /** Keeps a part that was fetched. */
  add(position: number, { bytes, size, tag }: FetchedRange): void {
    this.#size = size;
    this.#tag ??= tag;
    const all = [...this.#ranges, { position, bytes }].sort((a, b) => a.position - b.position);
    const joined: CachedRange[] = [];
    for (const range of all) {
      const last = joined.at(-1);
      const end = last && last.position + last.bytes.length;
      if (last === undefined || end === undefined || end < range.position) joined.push(range);
      else if (end < range.position + range.bytes.length) {
        const rest = range.bytes.subarray(end - range.position);
        joined[joined.length - 1] = { ...last, bytes: Buffer.concat([last.bytes, rest]) };
      }
    }
    this.#ranges = joined;
  }

  #copied(target: Uint8Array, position: number): boolean {
    const end = position + target.length;
    const found = this.#ranges.find(
      (each) => each.position <= position && each.position + each.bytes.length >= end,
    );
    if (found) target.set(found.bytes.subarray(position - found.position, end - found.position));
    return found !== undefined || target.length === 0;
  }

  #refuseBeyondEnd(target: Uint8Array, position: number): void {
    if (position + target.length <= this.size) return;
    throw new RangeError(`${this.place.name} is read beyond its ${this.size} bytes`);
  }
}
