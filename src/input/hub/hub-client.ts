/** The two routes of the hub that are used: the description of a revision, and the files of a commit. */

import { UserError, usageError } from '../../base/errors.js';
import { downloadLine } from '../../base/text/hub-names.js';
import { parseJson } from '../../base/text/json.js';
import { shortened } from '../../base/text/words.js';
import { quote } from '../../config/quote.js';
import {
  type HttpAnswer,
  HttpClient,
  isUntrusted,
  NO_NETWORK,
  numberIn,
  retryAfter,
  TransferError,
} from './http-client.js';
import type { HubSettings } from './hub-settings.js';
import { isCommit, isRepositoryPath } from './reference.js';

/** A repository at a commit. */
export interface Listing {
  readonly commit: string;
  /** Paths of all files that can be files on every system. */
  readonly names: readonly string[];
  /** Other names of the listing. */
  readonly leftOut: number;
}

export interface FetchedRange {
  readonly bytes: Buffer;
  /** Bytes of the whole file. */
  readonly size: number;
  /** Tag of the content that the hub states: of a large file its SHA-256. Undefined when the answer has none. */
  readonly tag?: string | undefined;
}

/** A file of a commit. */
export interface HubFile {
  readonly repository: string;
  readonly commit: string;
  readonly name: string;
  /** Tag of its content when it was first read: a file with another one is refused. */
  readonly tag?: string | undefined;
}

/** The listing of a repository with 100,000 files has about 10 MB. */
export const MAX_LISTING_BYTES = 24_000_000;
const MAX_FILES = 200_000;

const MAX_SIZE = 2 ** 46;

const RETRIED: ReadonlySet<number> = new Set([408, 425, 429, 500, 502, 503, 504]);

export class HubClient {
  readonly #settings: HubSettings;
  readonly #http: HttpClient;
  /** Size and ETags of each file when it was first seen; every server has tags of its own. */
  readonly #seen = new Map<string, { readonly size: number; readonly tags: Map<string, string> }>();
  /** Final addresses of files after their redirects. */
  readonly #places = new Map<string, URL>();
  readonly #withoutNetwork: (repository: string) => string | undefined;
  #bytesFetched = 0;

  /** @param withoutNetwork Advice for a repository that cannot be reached, if there is any. */
  constructor(
    settings: HubSettings,
    withoutNetwork: (repository: string) => string | undefined = () => undefined,
  ) {
    this.#settings = settings;
    this.#withoutNetwork = withoutNetwork;
    this.#http = new HttpClient(settings);
  }

  /** Bytes of all bodies so far. */
  get bytesFetched(): number {
    return this.#bytesFetched;
  }

  close(): void {
    this.#http.close();
  }

  /**
   * The commit of a revision and the files in it.
   * @throws UserError when there is none, it is not public, or the hub cannot be reached.
   */
  async listing(repository: string, revision: string): Promise<Listing> {
    const url = new URL(
      `${this.#settings.endpoint}/api/models/${repository}/revision/${encodeURIComponent(revision)}`,
    );
    const subject = { repository, revision };
    return this.#guarded(subject, async () => {
      const answer = await this.#http.get(url, { accept: 'application/json' });
      if (answer.status !== 200) throw this.#refused(answer, subject);
      const body = await answer.body(MAX_LISTING_BYTES);
      this.#bytesFetched += body.length;
      return listingIn(body, this.host, subject);
    });
  }

  get host(): string {
    return new URL(this.#settings.endpoint).host;
  }

  /**
   * Bytes of a file from `position` on, at most `length`. The file may end before.
   * @throws UserError when the server does not answer with exactly these.
   */
  async range(file: HubFile, position: number, length: number): Promise<FetchedRange> {
    const range = `bytes=${position}-${position + length - 1}`;
    return this.#guarded(file, async () => {
      const answer = await this.#open(file, { range });
      if (answer.status === 416) {
        answer.abort();
        const size = numberIn(/^bytes \*\/(\d+)$/.exec(answer.headers['content-range'] ?? '')?.[1]);
        if (size === 0 && position === 0) {
          return { bytes: Buffer.alloc(0), size, tag: this.#tagOf(answer) };
        }
        throw this.#unsound(file, `answers that the file ends before byte ${position}`);
      }
      if (answer.status !== 206) {
        answer.abort();
        if (answer.status !== 200) throw this.#refused(answer, file);
        throw this.#unsound(file, 'answers a request for a part with the whole file');
      }
      const size = this.#checked(file, answer, position, length);
      const expected = Math.min(length, size - position);
      const bytes = await answer.body(expected);
      this.#bytesFetched += bytes.length;
      if (bytes.length < expected) {
        throw new TransferError(`the answer has ${bytes.length} of ${expected} bytes`);
      }
      return { bytes, size, tag: this.#tagOf(answer) };
    });
  }

  /** Requests a file, at the final address of an earlier request as long as that works. */
  async #open(file: HubFile, headers: Readonly<Record<string, string>>): Promise<HttpAnswer> {
    const { repository, commit, name } = file;
    const known = this.#places.get(cacheKey(file));
    if (known) {
      const answer = await this.#http.get(known, headers);
      if (answer.status === 206) return answer;
      answer.abort();
      this.#places.delete(cacheKey(file));
    }
    const path = name.split('/').map(encodeURIComponent).join('/');
    const url = new URL(`${this.#settings.endpoint}/${repository}/resolve/${commit}/${path}`);
    const answer = await this.#http.get(url, headers);
    const stated = answer.allHeaders['x-repo-commit'];
    if (stated !== undefined && stated !== commit) {
      answer.abort();
      throw this.#unsound(file, `answers with commit ${quote(String(stated), 50)}`);
    }
    if (answer.status === 206 && answer.url.href !== url.href) {
      this.#places.set(cacheKey(file), answer.url);
    }
    return answer;
  }

  /** Size of a file by the headers of a range. @throws UserError when they contradict themselves, or earlier ones. */
  #checked(file: HubFile, answer: HttpAnswer, position: number, length: number): number {
    const text = answer.headers['content-range'] ?? '';
    const [, from, to, total] = /^bytes (\d{1,15})-(\d{1,15})\/(\d{1,15})$/.exec(text) ?? [];
    const size = Number(total);
    const end = Math.min(position + length, size);
    const isRange = Number(from) === position && Number(to) === end - 1 && size <= MAX_SIZE;
    const linked = numberIn(headerOf(answer, 'x-linked-size'));
    const problem = !isRange
      ? `answers with the range ${quote(text, 60)} instead of bytes ${position}-${position + length - 1}`
      : linked !== undefined && linked !== size
        ? `states ${linked} bytes for the file and serves ${size}`
        : undefined;
    if (problem !== undefined) {
      answer.abort();
      throw this.#unsound(file, problem);
    }
    const before = this.#seen.get(cacheKey(file)) ?? { size, tags: new Map() };
    const { etag } = answer.headers;
    const tag = etag === undefined ? undefined : before.tags.get(answer.url.host);
    if (before.size !== size || (tag !== undefined && tag !== etag)) {
      answer.abort();
      throw this.#unsound(file, 'serves another file than a moment ago');
    }
    const stated = this.#tagOf(answer);
    if (file.tag !== undefined && stated !== undefined && stated !== file.tag) {
      answer.abort();
      throw this.#unsound(file, 'serves other content than when this commit was first read');
    }
    if (etag !== undefined) before.tags.set(answer.url.host, etag);
    this.#seen.set(cacheKey(file), before);
    return size;
  }

  /**
   * Tag of the content; undefined without one. ETags of a store do not identify the content
   * (huggingface_hub/file_download.py, get_hf_file_metadata).
   */
  #tagOf(answer: HttpAnswer): string | undefined {
    const own = answer.url.host === this.host ? answer.headers.etag : undefined;
    const tag = headerOf(answer, 'x-linked-etag') ?? own ?? '';
    // SHA-1 of a Git blob, or SHA-256. Other tags can be those of one server of several.
    return /^(?:W\/)?"?([0-9a-f]{40}|[0-9a-f]{64})"?$/.exec(tag)?.[1];
  }

  #unsound = ({ repository, name }: HubFile, what: string): UserError =>
    new UserError('system', `${this.host} ${what}, for ${name} of ${repository}`, {
      suggestion: `try again later, or download the model: ${downloadLine(repository)}`,
    });

  /** Runs a request with retries. @throws UserError when all fail. */
  async #guarded<T>(subject: Subject, act: () => Promise<T>): Promise<T> {
    try {
      return await this.#http.repeated(act);
    } catch (error) {
      throw error instanceof TransferError ? this.#failed(error, subject) : error;
    }
  }

  #failed(error: TransferError, { repository }: Subject): UserError {
    const isAbsent = NO_NETWORK.has(error.code ?? '');
    const download = `download the model: ${downloadLine(repository)}`;
    const suggestion = isUntrusted(error)
      ? 'behind a proxy that decrypts, write the certificate of its authority into a file, and set NODE_EXTRA_CA_CERTS=FILE'
      : isAbsent
        ? `check the network and HTTPS_PROXY, or ${this.#withoutNetwork(repository) ?? 'name a model on this machine'}`
        : error.retryAfter !== undefined
          ? `try again in ${Math.ceil(error.retryAfter)} s, or log in for a higher limit: hf auth login`
          : error.isFinal
            ? download
            : `try again, or ${download}`;
    const message = `cannot read ${repository} from the hub: ${error.message}`;
    return new UserError('system', message, { cause: error, suggestion });
  }

  /** The error of an answer other than the expected one. */
  #refused(answer: HttpAnswer, subject: Subject): Error {
    answer.abort();
    const { status, headers } = answer;
    const { repository, name } = subject;
    const revision = subject.revision ?? subject.commit;
    const { endpoint, token } = this.#settings;
    if (RETRIED.has(status)) {
      const wait = retryAfter(headers['retry-after']);
      const why = status === 429 ? 'too many requests' : `status ${status}`;
      return new TransferError(`${answer.url.host} answers: ${why}`, {
        retryAfter: wait ?? (status === 429 ? 1 : undefined),
      });
    }
    const code = headers['x-error-code'];
    const usage = (message: string, suggestion: string) => usageError(message, suggestion);
    const logIn = 'log in with hf auth login, or set HF_TOKEN';
    if (code === 'GatedRepo' || (status === 403 && name !== undefined)) {
      const page = `${endpoint}/${repository}`;
      return token === undefined
        ? usage(
            `${repository} is gated: its files need a token, found none`,
            `accept its conditions at ${page}, then ${logIn}`,
          )
        : usage(
            `${repository} is gated, and the token has no access to it`,
            `accept its conditions at ${page} with the account of the token`,
          );
    }
    if (
      code === 'RevisionNotFound' ||
      (status === 404 && revision !== undefined && code === undefined && revision !== 'main')
    ) {
      if (isCommit(revision ?? '')) {
        return usage(
          `${repository} has no commit ${revision}, or has it no longer`,
          `leave the commit out for the default branch: hf:${repository}; a plan of parts that names it cannot go on`,
        );
      }
      return usage(
        `${repository} has no revision ${quote(revision ?? '', 100)}`,
        `leave the revision out for the default branch: hf:${repository}`,
      );
    }
    if (code === 'EntryNotFound' || (status === 404 && name !== undefined)) {
      return usage(
        `${repository} has no file ${quote(name ?? '', 200)} in this revision`,
        `see its files at ${endpoint}/${repository}/tree/main`,
      );
    }
    if (status === 401 || status === 403 || status === 404) {
      const message =
        token === undefined
          ? `${this.host} has no public model ${quote(repository)}`
          : `${this.host} has no model ${quote(repository)} that the token can read`;
      return usage(
        message,
        token === undefined
          ? `check the spelling; for a private model ${logIn}`
          : 'check the spelling, and the account of the token: hf auth whoami',
      );
    }
    return new UserError('system', `${answer.url.host} answers with status ${status}`, {
      suggestion: `try again later, or download the model: ${downloadLine(repository)}`,
    });
  }
}

interface Subject {
  readonly repository: string;
  readonly revision?: string;
  readonly commit?: string;
  readonly name?: string;
}

const cacheKey = ({ repository, commit, name }: HubFile) => `${repository}@${commit}/${name}`;

/** A header of the answer or of a redirect to it, which states facts of the file that its store does not know. */
function headerOf({ allHeaders }: HttpAnswer, name: string): string | undefined {
  const value = allHeaders[name];
  return typeof value === 'string' ? value : undefined;
}

/** @throws UserError when it is not the description of this revision. */
function listingIn(body: Buffer, host: string, { repository, revision = '' }: Subject): Listing {
  const refused = (what: string) =>
    new UserError('system', `${host} describes ${repository} in an unknown form: ${what}`, {
      suggestion: 'check HF_ENDPOINT',
    });
  let value: unknown;
  try {
    value = parseJson(body.toString('utf8'));
  } catch (cause) {
    throw refused(`it is not JSON: ${shortened((cause as Error).message, 100)}`);
  }
  const { sha, siblings } = Object(value) as { sha?: unknown; siblings?: unknown };
  if (typeof sha !== 'string' || !isCommit(sha)) throw refused('it states no commit');
  if (isCommit(revision) && sha !== revision) throw refused('it is of another commit');
  if (!Array.isArray(siblings)) throw refused('it lists no files');
  if (siblings.length > MAX_FILES) throw refused(`it lists more than ${MAX_FILES} files`);
  const given: unknown[] = siblings.map((each) => Object(each).rfilename);
  const names = given.filter(
    (name): name is string => typeof name === 'string' && isRepositoryPath(name),
  );
  return { commit: sha, names: [...new Set(names)], leftOut: given.length - names.length };
}

// Ranges of remote files, fetched ahead of a reader that goes through a file in order.

/** Bytes of one request. */
const PIECE_BYTES = 4 * 2 ** 20;

/** Most bytes that are requested before they are read. */
const MOST_AHEAD = 4 * PIECE_BYTES;

/** Most pieces that are kept, which a reader that comes back finds. */
const MOST_PIECES = 12;

interface Piece {
  readonly position: number;
  readonly end: number;
  readonly bytes: Promise<Buffer>;
}

/** Progress of one reader in a file. */
interface Stream {
  pieces: Piece[];
  /** Position after the last byte that was read. */
  next: number;
  /** Bytes read in order. */
  run: number;
}

/** @throws as `HubClient.range`. */
type FetchRange = (file: HubFile, position: number, length: number) => Promise<FetchedRange>;

/**
 * Reads remote files ahead. A read that begins where the last one of its file ended is answered from pieces that were
 * requested in advance. These are as many as were read in order so far, so that a reader that jumps fetches little that
 * it does not read.
 */
export class ReadAhead {
  readonly #fetch: FetchRange;
  readonly #streams = new Map<string, Stream>();

  constructor(fetch: FetchRange) {
    this.#fetch = fetch;
  }

  async read(file: HubFile, size: number, position: number, length: number): Promise<Buffer> {
    const key = `${file.repository}@${file.commit}/${file.name}`;
    const known = this.#streams.get(key);
    const isOnward = known?.next === position;
    const stream: Stream = { pieces: known?.pieces ?? [], run: isOnward ? known.run : 0, next: 0 };
    this.#streams.set(key, stream);
    const end = position + length;
    const ahead = Math.min(stream.run, MOST_AHEAD);
    const needed: Piece[] = [];
    for (let at = position; at < Math.min(size, end + ahead); ) {
      // A piece can be here from before a jump.
      let piece = stream.pieces.find((each) => each.position <= at && at < each.end);
      if (piece === undefined) {
        const wanted = ahead > 0 ? PIECE_BYTES : Math.min(PIECE_BYTES, end - at);
        piece = this.#piece(file, at, Math.min(wanted, size - at));
        stream.pieces.push(piece);
      }
      if (at < end) needed.push(piece);
      at = piece.end;
    }
    stream.next = end;
    stream.run += length;
    stream.pieces = stream.pieces
      .filter((piece) => piece.end !== end && !(piece.position >= position && piece.end < end))
      .slice(-MOST_PIECES);
    try {
      const parts: Buffer[] = [];
      let at = position;
      for (const piece of needed) {
        const bytes = await piece.bytes;
        parts.push(bytes.subarray(at - piece.position, end - piece.position));
        at = piece.end;
      }
      return parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts);
    } catch (error) {
      this.#streams.delete(key);
      throw error;
    }
  }

  #piece(file: HubFile, position: number, length: number): Piece {
    const bytes = this.#fetch(file, position, length).then((range) => range.bytes);
    // The error appears when the piece is read.
    bytes.catch(() => {});
    return { position, end: position + length, bytes };
  }
}
