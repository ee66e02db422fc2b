import { readdir } from 'node:fs/promises';
import { basename, dirname, extname, join } from 'node:path';
import { type ErrorCode, UserError } from '../base/errors.js';
import { missingReason, systemAdvice } from '../base/files/file-system.js';
import { noteStandardInput } from '../base/files/input-registry.js';
import { readFileAtMost, readStreamAtMost } from '../base/files/read-file.js';
import { asText } from '../base/values.js';
import { type ConfigDocument, parseDocument } from './document.js';
import { nearest } from './nearest.js';
import { escapeText, quote } from './quote.js';
import { MAX_DOCUMENT_BYTES, tooLarge } from './source.js';

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

/** The error for a file that cannot be read, with advice. */
async function explain(cause: unknown, file: string, advice?: string): Promise<unknown> {
  if (cause instanceof UserError || !(cause instanceof Error && 'code' in cause)) return cause;
  const failure = (code: ErrorCode, what: string, suggestion: string | undefined) =>
    new UserError(code, what, { cause, suggestion });
  const systemCode = asText(cause.code);
  const name = quote(file, 200);
  switch (systemCode) {
    case 'ENOENT':
    case 'ENOTDIR':
    case 'ENAMETOOLONG':
    case 'ERR_INVALID_ARG_VALUE': {
      const similar = async () => (systemCode === 'ENOENT' ? similarFile(file) : undefined);
      const suggestion = missingReason(file) ?? (await similar()) ?? advice;
      return failure('usage', `there is no file ${name}`, suggestion);
    }
    case 'EISDIR':
      return failure('usage', `this is a folder: ${name}`, 'name a file in it');
    case 'EACCES':
      return failure(
        'system',
        `no permission to read ${name}`,
        'check the permissions of the file',
      );
    default:
      return failure(
        'system',
        `cannot read ${name}: ${escapeText(cause.message, 200)}`,
        systemAdvice(systemCode, 'file'),
      );
  }
}

/** Names a file in the same folder with a similar name. The extension only breaks ties, because all configs share it. */
async function similarFile(path: string): Promise<string | undefined> {
  const folder = dirname(path);
  const wanted = basename(path);
  try {
    const entries = await readdir(folder, { withFileTypes: true });
    const names = entries.filter((entry) => !entry.isDirectory()).map(({ name }) => name);
    const stemOf = (name: string) => basename(name, extname(name));
    const stems = names.map(stemOf);
    const stem = stems.includes(wanted) ? wanted : nearest(stemOf(wanted), stems);
    const alike = names.filter((name) => stemOf(name) === stem);
    const found = alike.find((name) => extname(name) === extname(wanted)) ?? alike[0];
    if (found === undefined) return undefined;
    const near = folder === '.' && !path.startsWith('.') ? found : join(folder, found);
    return `did you mean ${quote(near, 200)}?`;
  } catch {
    // No suggestion without access to the folder.
    return undefined;
  }
}
