/** A commit of a repository as a folder: files of the user's cache, of ours, and of the hub. */
import fs from 'node:fs';
import { UserError } from '../errors.js';
import type { MountedFile, MountedFolder } from '../files/mounted.js';
import { downloadLine } from '../text/words.js';
import { DataReader } from './data-reader.js';
import type { HeaderCache } from './header-cache.js';
import { MAX_PARALLEL } from './http-client.js';
import type { HubClient, HubFile } from './hub-client.js';
import type { HubSettings } from './hub-settings.js';
import { FIRST_BYTES, MissingBytes, type MissingSource, RemoteFile } from './remote-file.js';
import { blobNameOf, type UserCache } from './user-cache.js';

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
   * Runs a reader, which may be run again, and fetches what it reads. Its own errors end this quietly: the command that
   * reads next meets them, and reports them.
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
  new UserError('system', `offline, and ${name} of ${repository} is in no cache of this machine`, {
    suggestion: `run once without --offline and HF_HUB_OFFLINE, or download the model: ${downloadLine(repository)}`,
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

/** Runs an action for each item, a bounded number at a time. @throws the first error, when the running ones ended. */
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
