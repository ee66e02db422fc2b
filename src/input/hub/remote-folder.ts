/** A commit of a repository as a folder: files of the user's cache, of ours, and of the hub. */

import fs from 'node:fs';
import { UserError } from '../../base/errors.js';
import type { ByteRange, MountedFile, MountedFolder } from '../../base/files/mounted.js';
import { downloadLine } from '../../base/text/hub-names.js';
import { setting } from '../../base/text/setting.js';
import { DataReader } from './data-reader.js';
import { MAX_PARALLEL } from './http-client.js';
import {
  blobNameOf,
  type CachedFile,
  type CachedRange,
  type HeaderCache,
  type UserCache,
} from './hub-caches.js';
import type { FetchedRange, HubClient, HubFile } from './hub-client.js';
import type { HubSettings } from './hub-settings.js';

/** Most rounds of reading and fetching what was missing. */
const MAX_ROUNDS = 10_000;

/** Most bytes of all headers of a model: far more than any has, and few enough to keep. */
const MAX_HEADERS = 2 ** 30;

/** Ranges closer than this are fetched together. */
const JOINED_BYTES = 4096;

export interface RemoteFolderOptions {
  readonly repository: string;
  readonly commit: string;
  readonly names: ReadonlySet<string>;
  readonly settings: HubSettings;
  readonly client: HubClient;
  readonly cache: HeaderCache;
  readonly userCache: UserCache;
}

interface Wanted {
  readonly file: RemoteFile;
  readonly position: number;
  readonly length: number;
}

export class RemoteFolder implements MountedFolder {
  readonly names: ReadonlySet<string>;
  readonly #options: RemoteFolderOptions;
  readonly #source: { -readonly [Key in keyof MissingSource]: MissingSource[Key] };
  readonly #remote = new Map<string, RemoteFile>();
  #fetched = 0;

  constructor(options: RemoteFolderOptions) {
    this.#options = options;
    this.names = options.names;
    this.#source = { isPrefetching: false, reader: new DataReader(options.settings) };
  }

  close(): void {
    this.#source.reader.close();
  }

  /** Bytes that came over the network so far, without values of tensors. */
  get bytesFetched(): number {
    return this.#fetched;
  }

  open(name: string): MountedFile {
    const local = this.#localPath(name);
    return local === undefined ? this.#remoteFile(name) : localFile(local);
  }

  async read(name: string, most: number): Promise<Buffer | undefined> {
    const local = this.#localPath(name);
    if (local !== undefined) {
      return fs.statSync(local).size > most ? undefined : fs.readFileSync(local);
    }
    const file = this.#remoteFile(name);
    if (!file.isKnown) await this.#fetch([{ file, position: 0, length: FIRST_BYTES }]);
    if (file.size > most) return undefined;
    const whole = { position: 0, length: file.size };
    await this.#fetch(file.gaps(whole).map((gap) => ({ file, ...gap })));
    const bytes = Buffer.alloc(file.size);
    file.readInto(bytes, 0);
    return bytes;
  }

  willOpen(names: readonly string[]): void {
    if (!this.#source.isPrefetching) return;
    const files = names
      .filter((name) => this.#localPath(name) === undefined)
      .map((name) => this.#remoteFile(name))
      .filter(({ isKnown }) => !isKnown);
    if (files.length === 0) return;
    const first = [{ position: 0, length: FIRST_BYTES }];
    throw new MissingBytes(new Map(files.map((file) => [file, first])));
  }

  /**
   * Runs a reader, which may be run again, and fetches what it reads. Its own errors end this without a message,
   * because the next read of the command reports them.
   * @param watch Called with the number of finished requests of a round, and with all of them.
   * @throws UserError when something cannot be fetched.
   */
  async prefetch(
    read: () => void,
    watch: (done: number, total: number) => void = () => {},
  ): Promise<void> {
    for (let round = 0; round < MAX_ROUNDS; round++) {
      const missing = this.#missing(read);
      if (missing === undefined) return;
      const wanted = [...missing.wanted].flatMap(([file, ranges]) =>
        joinedRanges(ranges.flatMap((range) => file.gaps(range))).map((gap) => ({ file, ...gap })),
      );
      await this.#fetch(wanted, watch);
    }
    throw new Error('the reader asks for bytes without end');
  }

  #missing(read: () => void): MissingBytes | undefined {
    this.#source.isPrefetching = true;
    try {
      read();
    } catch (error) {
      if (error instanceof MissingBytes) return error;
      if (!(error instanceof UserError)) throw error;
    } finally {
      this.#source.isPrefetching = false;
    }
    return undefined;
  }

  async #fetch(
    wanted: readonly Wanted[],
    watch: (done: number, total: number) => void = () => {},
  ): Promise<void> {
    const [first] = wanted;
    if (first === undefined) return;
    const { settings, client, cache, repository } = this.#options;
    if (settings.isOffline) throw notHere(first.file.place);
    let done = 0;
    watch(done, wanted.length);
    await inParallel(wanted, async ({ file, position, length }) => {
      this.#fetched += length;
      if (this.#fetched > MAX_HEADERS) {
        throw new UserError('refused-file', `the index of ${repository} has more than 1 GiB`, {
          suggestion: `download the model: ${downloadLine(repository)}`,
        });
      }
      const fetched = await client.range(file.place, position, length);
      file.add(position, fetched);
      this.#fetched += fetched.bytes.length - length;
      watch(++done, wanted.length);
    });
    for (const file of new Set(wanted.map((each) => each.file))) {
      cache.keepFile(file.place, file.cached);
    }
  }

  #remoteFile(name: string): RemoteFile {
    const known = this.#remote.get(name);
    if (known) return known;
    const { repository, commit, cache } = this.#options;
    const place: HubFile = { repository, commit, name };
    const file = new RemoteFile(place, this.#source, cache.file(place));
    this.#remote.set(name, file);
    return file;
  }

  #localPath(name: string): string | undefined {
    const { repository, commit, userCache } = this.#options;
    return userCache.pathOf(repository, commit, name);
  }
}

function localFile(path: string): MountedFile {
  const { size, mtimeMs } = fs.statSync(path);
  const never = () => {
    throw new Error(`${path} is read from the disk`);
  };
  return {
    size,
    version: mtimeMs,
    localPath: path,
    contentTag: blobNameOf(path),
    readInto: never,
    readIntoAsync: async () => never(),
    willRead: () => {},
  };
}

const notHere = ({ repository, name }: HubFile) =>
  new UserError('system', `offline, and no cache of this machine has ${name} of ${repository}`, {
    suggestion: `run once without ${setting('offline')} and HF_HUB_OFFLINE, or download the model: ${downloadLine(repository)}`,
  });

/** Ranges in their order, with small holes between them filled. */
function joinedRanges(
  ranges: readonly { readonly position: number; readonly length: number }[],
): { readonly position: number; readonly length: number }[] {
  const joined: { position: number; length: number }[] = [];
  for (const { position, length } of ranges.toSorted((a, b) => a.position - b.position)) {
    const last = joined.at(-1);
    if (last && position <= last.position + last.length + JOINED_BYTES) {
      last.length = Math.max(last.length, position + length - last.position);
    } else joined.push({ position, length });
  }
  return joined;
}

/**
 * Runs an action for each item, a bounded number at a time.
 * @throws the first error, after the running actions have ended.
 */
async function inParallel<Item>(
  items: readonly Item[],
  act: (item: Item) => Promise<void>,
): Promise<void> {
  const queue = items.values();
  const failures: unknown[] = [];
  const work = async () => {
    for (const item of queue) {
      if (failures.length > 0) return;
      await act(item).catch((error) => failures.push(error));
    }
  };
  await Promise.all(Array.from({ length: Math.min(MAX_PARALLEL, items.length) }, work));
  if (failures.length > 0) throw failures[0];
}

// A file of the hub of which only some parts are here.

/** First bytes of a file that are fetched at once: most headers are shorter. */
const FIRST_BYTES = 64 * 1024;

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

/** Source of bytes that are not on this machine. */
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
