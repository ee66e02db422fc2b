import { readdir } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { type ErrorCode, UserError } from '../errors.js';
import { missingReason, systemAdvice } from '../files/file-system.js';
import { noteStandardInput } from '../files/input-registry.js';
import { readFileAtMost, readStreamAtMost } from '../files/read-file.js';
import { type ConfigDocument, parseDocument } from './document.js';
import { nearest } from './nearest.js';
import { escapeText, quote } from './quote.js';
import { MAX_DOCUMENT_BYTES, tooLarge } from './source.js';

/** User errors by the system's error code. All other codes are system errors. */
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

interface ReadDocumentOptions {
  readonly stdin?: AsyncIterable<Uint8Array | string>;
  /** Whether minimind found the file instead of the user naming it; it must then be a regular file. */
  readonly isFound?: boolean;
  /** Advice on a missing file, where no file has a similar name. */
  readonly advice?: string;
  /** Name for messages and results instead of the path. */
  readonly name?: string;
}

/**
 * Reads and parses the document at the path `source`; `-` is standard input, named `<stdin>`. Reads at most
 * `MAX_DOCUMENT_BYTES`, regardless of the reported file size.
 *
 * @throws UserError `usage` for a missing file, `system` for a failed read, `refused-file` and `invalid-config` as
 * `parseDocument`.
 */
export async function readDocument(
  source: string,
  { stdin = process.stdin, isFound = false, advice, name = source }: ReadDocumentOptions = {},
): Promise<ConfigDocument> {
  const file = source === '-' ? '<stdin>' : name;
  const most = MAX_DOCUMENT_BYTES;
  let bytes: Uint8Array | undefined;
  if (source === '-') noteStandardInput();
  try {
    bytes = await (source === '-'
      ? readStreamAtMost(stdin, most)
      : readFileAtMost(source, { most, isFound }));
  } catch (cause) {
    throw await explain(cause, file, advice);
  }
  if (bytes === undefined) throw tooLarge(file);
  return parseDocument(bytes, file);
}

async function explain(cause: unknown, file: string, advice?: string): Promise<unknown> {
  if (cause instanceof UserError || !(cause instanceof Error)) return cause;
  const systemCode = 'code' in cause ? String(cause.code) : undefined;
  if (systemCode === undefined) return cause;
  const failure = Object.hasOwn(FAILURES, systemCode) ? FAILURES[systemCode] : undefined;
  if (failure === undefined) {
    const message = `cannot read ${quote(file, 200)}: ${escapeText(cause.message, 200)}`;
    return new UserError('system', message, {
      cause,
      suggestion: systemAdvice(systemCode, 'file'),
    });
  }
  const isMissing = failure.code === 'usage' && systemCode !== 'EISDIR';
  const reason = isMissing ? missingReason(file) : undefined;
  const near =
    systemCode === 'ENOENT' && reason === undefined ? await similarFile(file) : undefined;
  const other = failure.suggestion ?? (isMissing ? advice : undefined);
  const suggestion = reason ?? (near === undefined ? other : `did you mean ${quote(near, 200)}?`);
  return new UserError(failure.code, `${failure.what} ${quote(file, 200)}`, { cause, suggestion });
}

/** File in the same folder with a similar name. The extension only breaks ties, because all configs share it. */
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
    // No suggestion without access to the folder.
    return undefined;
  }
}
