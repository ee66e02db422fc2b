import { constants } from 'node:fs';
import { type FileHandle, open, readdir, stat } from 'node:fs/promises';
import { basename, dirname, extname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type ErrorCode, UserError } from '../errors.js';
import { noteInput } from '../files/inputs.js';
import { MAX_DOCUMENT_BYTES, tooLarge } from './decode.js';
import { type ConfigDocument, parseDocument } from './document.js';
import { nearest } from './nearest.js';
import { escapeText, quote } from './quote.js';

/** What the system calls a failure, and what it is to the user. All others are the system's. */
const FAILURES: Readonly<Record<string, { code: ErrorCode; what: string; suggestion?: string }>> = {
  ENOENT: { code: 'usage', what: 'there is no file' },
  ENOTDIR: { code: 'usage', what: 'there is no file' },
  ENAMETOOLONG: { code: 'usage', what: 'there is no file' },
  ERR_INVALID_ARG_VALUE: { code: 'usage', what: 'there is no file' },
  EISDIR: { code: 'usage', what: 'this is a folder:', suggestion: 'name a file in it' },
  EACCES: {
    code: 'system',
    what: 'no permission to read',
    suggestion: 'check the permissions of the file',
  },
};

/**
 * Reads and parses the document at the path `source`; `-` is standard input, named `<stdin>`. Never
 * reads more than `MAX_DOCUMENT_BYTES`, whatever the file claims about its size.
 *
 * @throws UserError `usage` when there is no such file, `system` when it cannot be read,
 * `refused-file` and `invalid-config` as `parseDocument`.
 */
export async function readDocument(
  source: string,
  stdin: AsyncIterable<Uint8Array | string> = process.stdin,
): Promise<ConfigDocument> {
  const file = source === '-' ? '<stdin>' : source;
  let bytes: Uint8Array;
  try {
    bytes = source === '-' ? await readAll(stdin, file) : await readPath(source);
  } catch (cause) {
    throw await explain(cause, file);
  }
  return parseDocument(bytes, file);
}

/** Milliseconds between two looks into a pipe that has nothing to read yet. */
const PIPE_PAUSE = 20;

async function readPath(path: string): Promise<Uint8Array> {
  const status = await stat(path);
  if (status.isDirectory()) throw Object.assign(new Error(), { code: 'EISDIR' });
  if (status.size > MAX_DOCUMENT_BYTES) throw tooLarge(path);
  const isPipe = status.isFIFO();
  // Opening a pipe waits for its writer, in a thread that the process cannot end without.
  const flags = isPipe ? constants.O_RDONLY | constants.O_NONBLOCK : constants.O_RDONLY;
  const handle = await open(path, flags);
  try {
    noteInput(path, await handle.stat({ bigint: true }));
    return await readAll(isPipe ? pipeChunks(handle, path) : chunks(handle), path);
  } finally {
    await handle.close();
  }
}

/** Reads by itself, for a pipe or a device has no size and a file may be growing. */
async function* chunks(handle: FileHandle): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.alloc(64 * 1024) });
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

/** As `chunks`, for a pipe that is read without waiting in the system: it is asked again and again. */
async function* pipeChunks(handle: FileHandle, path: string): AsyncGenerator<Uint8Array> {
  // Of a pipe with a name, nothing to read means at first that nobody writes yet. The pipes that have
  // none, as in `<(command)`, are written from the beginning.
  let isWritten = /^\/(dev|proc)\//.test(resolve(path));
  for (;;) {
    let isAtEnd = isWritten;
    try {
      for await (const chunk of chunks(handle)) {
        isAtEnd = isWritten = true;
        yield chunk;
      }
    } catch (error) {
      if (!isWaiting(error)) throw error;
      isAtEnd = false;
    }
    if (isAtEnd) return;
    await sleep(PIPE_PAUSE);
  }
}

/** Whether a read failed only because there is nothing yet. */
function isWaiting(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'EAGAIN';
}

async function readAll(
  stream: AsyncIterable<Uint8Array | string>,
  file: string,
): Promise<Uint8Array> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const part = Buffer.from(chunk);
    parts.push(part);
    size += part.length;
    if (size > MAX_DOCUMENT_BYTES) throw tooLarge(file);
  }
  return Buffer.concat(parts);
}

async function explain(cause: unknown, file: string): Promise<unknown> {
  if (cause instanceof UserError || !(cause instanceof Error)) return cause;
  const systemCode = 'code' in cause ? String(cause.code) : undefined;
  if (systemCode === undefined) return cause;
  const failure = Object.hasOwn(FAILURES, systemCode) ? FAILURES[systemCode] : undefined;
  if (failure === undefined) {
    const message = `cannot read ${quote(file, 200)}: ${escapeText(cause.message, 200)}`;
    return new UserError('system', message, { cause });
  }
  const near = systemCode === 'ENOENT' ? await similarFile(file) : undefined;
  const suggestion = near === undefined ? failure.suggestion : `did you mean ${quote(near, 200)}?`;
  return new UserError(failure.code, `${failure.what} ${quote(file, 200)}`, {
    cause,
    ...(suggestion === undefined ? {} : { suggestion }),
  });
}

/**
 * A file of the same folder with nearly the same name; the extension counts only among files that are
 * equally near, for all configs share it.
 */
async function similarFile(path: string): Promise<string | undefined> {
  const folder = dirname(path);
  const wanted = basename(path);
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const names = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
    const stemOf = (name: string) => basename(name, extname(name));
    const stems = names.map(stemOf);
    const stem = stems.includes(wanted) ? wanted : nearest(stemOf(wanted), stems);
    const near = names.filter((name) => stemOf(name) === stem);
    const found = near.find((name) => extname(name) === extname(wanted)) ?? near[0];
    if (found === undefined) return undefined;
    return folder === '.' && !path.startsWith('.') ? found : join(folder, found);
  } catch {
    // A suggestion is a courtesy: without the folder there is none.
    return undefined;
  }
}
