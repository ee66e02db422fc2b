/** Reads files of the user completely, with a size limit and without blocking system calls. */
import { constants, type Stats } from 'node:fs';
import { type FileHandle, open } from 'node:fs/promises';
import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { UserError, usageError } from '../errors.js';
import { refuseUnconfined } from './confined-reads.js';
import { codeOf, missingAdvice, systemAdvice } from './file-system.js';
import { noteInput } from './input-registry.js';
import { refuseLinkOutside } from './linked-files.js';
import { mountedPath } from './mounted.js';

export interface ReadOptions {
  readonly most: number;
  /** Whether the file was found in a folder, not named by the user. It must then be a regular file in that folder. */
  readonly isFound?: boolean;
}

/**
 * Bytes of a file, pipe or device; undefined if there are more than `most`, even if the reported size is smaller.
 * @throws UserError `refused-file` if a found file is not regular. System errors otherwise, EISDIR for a folder.
 */
export async function readFileAtMost(
  path: string,
  { most, isFound = false }: ReadOptions,
): Promise<Buffer | undefined> {
  const mounted = mountedPath(path);
  if (mounted?.folder.names.has(mounted.name)) return mounted.folder.read(mounted.name, most);
  const handle = await openToRead(path);
  try {
    const status = await handleStatus(handle);
    if (isFound) {
      if (!status.isFile()) throw notRegular(path, status);
      refuseLinkOutside(path);
    }
    if (status.size > most) return undefined;
    noteInput(path, await handle.stat({ bigint: true }));
    return await readStreamAtMost(status.isFile() ? chunks(handle) : arriving(handle, path), most);
  } finally {
    await handle.close();
  }
}

/**
 * Bytes of a file, pipe or device that the user named, in pieces.
 * @throws UserError if it cannot be read.
 */
export async function* fileChunks(path: string): AsyncGenerator<Uint8Array> {
  let handle: FileHandle | undefined;
  try {
    handle = await openToRead(path);
    const status = await handleStatus(handle);
    noteInput(path, await handle.stat({ bigint: true }));
    yield* status.isFile() ? chunks(handle) : arriving(handle, path);
  } catch (cause) {
    throw cannotReadText(path, cause);
  } finally {
    await handle?.close();
  }
}

/** All bytes of a stream; undefined, without reading on, if there are more than `most`. */
export async function readStreamAtMost(
  stream: AsyncIterable<Uint8Array | string>,
  most: number,
): Promise<Buffer | undefined> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream) {
    const part = Buffer.from(chunk);
    parts.push(part);
    size += part.length;
    if (size > most) return undefined;
  }
  return Buffer.concat(parts, size);
}

/** A blocking open of a pipe would wait for its writer, in a thread that keeps the process alive. */
function openToRead(path: string): Promise<FileHandle> {
  refuseUnconfined(path);
  return open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
}

async function handleStatus(handle: FileHandle): Promise<Stats> {
  const status = await handle.stat();
  if (!status.isDirectory()) return status;
  throw Object.assign(new Error('EISDIR: is a directory'), { code: 'EISDIR' });
}

function notRegular(path: string, status: Stats): UserError {
  const kind = status.isFIFO() ? 'a named pipe' : 'a device or a socket';
  return new UserError('refused-file', `expected a regular file at ${path}, found ${kind}`, {
    suggestion: 'remove it, or name the file to read',
  });
}

/** Reads until the end: a pipe or device has no size, and a file may be growing. */
async function* chunks(handle: FileHandle): AsyncGenerator<Uint8Array> {
  for (;;) {
    const { bytesRead, buffer } = await handle.read({ buffer: Buffer.alloc(64 * 1024) });
    if (bytesRead === 0) return;
    yield buffer.subarray(0, bytesRead);
  }
}

/** Pause before the next read of an empty pipe, milliseconds. */
const PIPE_PAUSE = 20;

/** Variant of `chunks` that polls with non-blocking reads. */
async function* arriving(handle: FileHandle, path: string): AsyncGenerator<Uint8Array> {
  // An empty read from a named pipe can mean that no writer has opened it yet. Anonymous pipes, as in
  // `<(command)`, have a writer from the start, and devices have an end.
  let isWritten = !(await handle.stat()).isFIFO() || /^\/(dev|proc)\//.test(resolve(path));
  for (;;) {
    let isAtEnd = isWritten;
    try {
      for await (const chunk of chunks(handle)) {
        isAtEnd = isWritten = true;
        yield chunk;
      }
    } catch (error) {
      // No data is available yet.
      if (codeOf(error) !== 'EAGAIN') throw error;
      isAtEnd = false;
    }
    if (isAtEnd) return;
    await sleep(PIPE_PAUSE);
  }
}

interface ReadTextOptions {
  readonly most: number;
  readonly suggestion: string;
  /** Advice on a missing file, if its folder has no file with the same ending. */
  readonly missing?: string;
  /** Whether the file was found in a folder, as for `readFileAtMost`. */
  readonly isFound?: boolean;
}

/**
 * Text of a file that the user named, or that was found.
 * @throws UserError if it cannot be read, is too large, or is not UTF-8.
 */
export async function readText(
  path: string,
  { most, suggestion, missing, isFound = false }: ReadTextOptions,
): Promise<string> {
  let bytes: Buffer | undefined;
  try {
    bytes = await readFileAtMost(path, { most, isFound });
  } catch (cause) {
    throw cannotReadText(path, cause, missing);
  }
  return decodedText(path, bytes, { most, suggestion });
}

/** Text of the bytes of a file. @throws UserError if they are not UTF-8, or undefined because there are too many. */
export function decodedText(
  path: string,
  bytes: Uint8Array | undefined,
  { most, suggestion }: Pick<ReadTextOptions, 'most' | 'suggestion'>,
): string {
  if (bytes === undefined) {
    const message = `${path} is larger than ${most / 1e6} MB, the most that is read`;
    throw new UserError('refused-file', message, { suggestion });
  }
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch (cause) {
    if (!(cause instanceof TypeError && 'code' in cause && cause.code === NOT_UTF8)) throw cause;
    const message = `${path} is not UTF-8 text`;
    throw new UserError('refused-file', message, { cause, suggestion: 'save it as UTF-8' });
  }
}

const NOT_UTF8 = 'ERR_ENCODING_INVALID_ENCODED_DATA';

const MISSING = ['ENOENT', 'ENOTDIR', 'ENAMETOOLONG', 'ERR_INVALID_ARG_VALUE'];

function cannotReadText(path: string, cause: unknown, missing?: string): unknown {
  if (!(cause instanceof Error) || cause instanceof UserError || !('code' in cause)) return cause;
  const code = String(cause.code);
  if (MISSING.includes(code)) {
    const suggestion = missingAdvice(path) ?? missing;
    return usageError(`there is no file or folder ${path || "''"}`, suggestion, cause);
  }
  if (code !== 'EISDIR') {
    const advice = systemAdvice(code, 'file');
    return new UserError('system', `cannot read ${path}: ${cause.message}`, {
      cause,
      ...(advice && { suggestion: advice }),
    });
  }
  return usageError(`${path} is a folder where a file should be`, 'name a file in it', cause);
}
