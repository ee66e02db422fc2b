/**
 * Fetched parts of the hub, by commit: listings, configs and the parts of weight files that hold their index. A commit
 * never changes, so nothing here expires. Each file is written whole or not at all; one that is damaged counts as absent.
 */

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { makeCacheFolder } from '../../base/files/cache-folder.js';
import { removeQuietly } from '../../base/files/file-system.js';
import { jsonOrUndefined } from '../../base/text/json.js';
import { asNumber, isRecord } from '../../base/values.js';
import type { HubFile, Listing } from './hub-client.js';
import { isCommit, isRepositoryPath } from './reference.js';

/** A part of a file. */
export interface CachedRange {
  readonly position: number;
  readonly bytes: Buffer;
}

export interface CachedFile {
  /** Bytes of the whole file. */
  readonly size: number;
  /** Tag of its content; undefined when the hub stated none. */
  readonly tag: string | undefined;
  readonly ranges: readonly CachedRange[];
}

/** Larger files are not read: no header and no listing is. */
const MAX_FILE_BYTES = 2 ** 30;

const FORM = 1;

/** Name of a file for a name of the hub, which can be anything. */
const hashed = (name: string) => createHash('sha256').update(name).digest('hex').slice(0, 40);

export class HeaderCache {
  readonly #folder: string;

  /** @param folder Created when something is kept. */
  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Commit of a branch or tag when it was last requested. */
  commitOf(repository: string, revision: string): string | undefined {
    const value = this.#readJson(this.#refFile(repository, revision));
    const { commit } = isRecord(value) ? value : {};
    return typeof commit === 'string' && isCommit(commit) ? commit : undefined;
  }

  keepCommit(repository: string, revision: string, commit: string): void {
    this.#write(this.#refFile(repository, revision), [
      Buffer.from(`${JSON.stringify({ repository, revision, commit })}\n`),
    ]);
  }

  listing(repository: string, commit: string): Listing | undefined {
    const value = this.#readJson(this.#commitFile(repository, commit, 'listing'));
    const { names, leftOut } = isRecord(value) ? value : {};
    if (!Array.isArray(names) || typeof leftOut !== 'number') return undefined;
    const isWhole = names.every((name) => typeof name === 'string' && isRepositoryPath(name));
    return isWhole ? { commit, names, leftOut } : undefined;
  }

  keepListing(repository: string, listing: Listing): void {
    this.#write(this.#commitFile(repository, listing.commit, 'listing'), [
      Buffer.from(`${JSON.stringify({ repository, ...listing })}\n`),
    ]);
  }

  /** Kept parts of a file: a line of JSON, then the bytes of all parts. */
  file({ repository, commit, name }: HubFile): CachedFile | undefined {
    const bytes = this.#read(this.#commitFile(repository, commit, hashed(name)));
    const end = bytes?.indexOf('\n') ?? -1;
    if (bytes === undefined || end < 0) return undefined;
    const head = parsed(bytes.subarray(0, end));
    if (head?.form !== FORM || head.name !== name || typeof head.size !== 'number')
      return undefined;
    if (!Array.isArray(head.ranges)) return undefined;
    const ranges: CachedRange[] = [];
    let at = end + 1;
    for (const each of head.ranges) {
      const [position, length] = Array.isArray(each) ? each : [];
      if (!isCount(position) || !isCount(length) || position + length > head.size) return undefined;
      ranges.push({ position, bytes: bytes.subarray(at, at + length) });
      at += length;
    }
    const isWhole =
      at === bytes.length && head.sha256 === checksum(ranges.map((each) => each.bytes));
    const tag = typeof head.tag === 'string' ? head.tag : undefined;
    return isWhole ? { size: head.size, tag, ranges } : undefined;
  }

  keepFile({ repository, commit, name }: HubFile, { size, tag, ranges }: CachedFile): void {
    const places = ranges.map(({ position, bytes }) => [position, bytes.length]);
    const parts = ranges.map(({ bytes }) => bytes);
    const head = { form: FORM, name, size, tag, ranges: places, sha256: checksum(parts) };
    this.#write(this.#commitFile(repository, commit, hashed(name)), [
      Buffer.from(`${JSON.stringify(head)}\n`),
      ...parts,
    ]);
  }

  /** Repositories do not have `--` in their names. */
  #repositoryFolder = (repository: string) =>
    path.join(this.#folder, `models--${repository.replace('/', '--')}`);

  #refFile = (repository: string, revision: string) =>
    path.join(this.#repositoryFolder(repository), 'refs', hashed(revision));

  #commitFile = (repository: string, commit: string, name: string) =>
    path.join(this.#repositoryFolder(repository), commit, name);

  #readJson(file: string): unknown {
    const bytes = this.#read(file);
    return bytes && parsed(bytes);
  }

  #read(file: string): Buffer | undefined {
    try {
      const status = fs.statSync(file, { throwIfNoEntry: false });
      if (!status?.isFile() || status.size > MAX_FILE_BYTES) return undefined;
      return fs.readFileSync(file);
    } catch {
      return undefined;
    }
  }

  /** A failed write only means that it is fetched again. */
  #write(file: string, parts: readonly Buffer[]): void {
    const temporary = `${file}.${process.pid}.tmp`;
    try {
      // Files of gated repositories are for their user.
      makeCacheFolder(path.dirname(file));
      const descriptor = fs.openSync(temporary, 'w', 0o600);
      try {
        for (const part of parts) writeAll(descriptor, part);
      } finally {
        fs.closeSync(descriptor);
      }
      fs.renameSync(temporary, file);
    } catch {
      removeQuietly(temporary);
    }
  }
}

/**
 * Checksum of the parts of a file. It shows what a crash left incomplete, so that writes need not wait for the disk.
 */
function checksum(parts: readonly Buffer[]): string {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return hash.digest('hex');
}

function writeAll(descriptor: number, bytes: Buffer): void {
  for (let done = 0; done < bytes.length; ) done += fs.writeSync(descriptor, bytes, done);
}

function parsed(bytes: Buffer): Record<string, unknown> | undefined {
  const value = jsonOrUndefined(bytes.toString('utf8'));
  return isRecord(value) ? value : undefined;
}

const isCount = (value: unknown): value is number =>
  Number.isSafeInteger(value) && asNumber(value) >= 0;

// The user's cache of huggingface_hub, which is read and never written.
// https://huggingface.co/docs/huggingface_hub/guides/manage-cache

/** Tag of a file in the cache: blobs are named after it. Undefined where the cache has copies instead of links. */
export const blobNameOf = (file: string): string | undefined =>
  path.basename(path.dirname(file)) === 'blobs' ? path.basename(file) : undefined;

export class UserCache {
  readonly #folder: string;

  constructor(folder: string) {
    this.#folder = folder;
  }

  /** Commit of a branch or tag when the user last downloaded from it; undefined if nothing of that commit is here. */
  commitOf(repository: string, revision: string): string | undefined {
    try {
      const refs = path.join(this.#repository(repository), 'refs');
      const commit = fs.readFileSync(path.join(refs, ...revision.split('/')), 'utf8').trim();
      return isCommit(commit) && this.names(repository, commit).length > 0 ? commit : undefined;
    } catch {
      return undefined;
    }
  }

  /** Paths of the files of a commit that are here. */
  names(repository: string, commit: string): string[] {
    try {
      const folder = this.#snapshot(repository, commit);
      return fs
        .readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .map((name) => name.replaceAll(path.sep, '/'))
        .filter((name) => isRepositoryPath(name) && this.pathOf(repository, commit, name));
    } catch {
      return [];
    }
  }

  /** Place of a file; undefined if it is not here, or is a link that leaves the folder of the repository. */
  pathOf(repository: string, commit: string, name: string): string | undefined {
    try {
      const file = fs.realpathSync(
        path.join(this.#snapshot(repository, commit), ...name.split('/')),
      );
      const home = fs.realpathSync(this.#repository(repository));
      const isInside = file.startsWith(home + path.sep);
      return isInside && fs.statSync(file).isFile() ? file : undefined;
    } catch {
      return undefined;
    }
  }

  #repository = (repository: string) =>
    path.join(this.#folder, `models--${repository.replaceAll('/', '--')}`);

  #snapshot = (repository: string, commit: string) =>
    path.join(this.#repository(repository), 'snapshots', commit);
}
