import { UserError } from '../errors.js';
import { escapeText } from './quote.js';

/** The largest document that is read, in bytes. A config has a few thousand. */
export const MAX_DOCUMENT_BYTES = 1_000_000;

/** The refusal of a document that is longer than `MAX_DOCUMENT_BYTES`. */
export function tooLarge(file: string): UserError {
  return refuse(
    file,
    'is larger than 1 MB, the most that is read as a config',
    'give a config: a short YAML or JSON file',
  );
}

/**
 * The text of a document: UTF-8, or UTF-16 with a byte order mark, with every line break as `\n` and
 * without the mark.
 *
 * @throws UserError `refused-file` when the bytes are too many or are not text.
 */
export function decode(bytes: Uint8Array | string, file: string): string {
  const size = typeof bytes === 'string' ? Buffer.byteLength(bytes) : bytes.byteLength;
  if (size > MAX_DOCUMENT_BYTES) throw tooLarge(file);
  const raw = typeof bytes === 'string' ? bytes : decodeBytes(Buffer.from(bytes), file);
  const text = (raw.startsWith('\uFEFF') ? raw.slice(1) : raw).replace(/\r\n?/g, '\n');
  if (text.includes('\0')) throw notText(file);
  return text;
}

function decodeBytes(bytes: Buffer, file: string): string {
  if (bytes[0] === 0xff && bytes[1] === 0xfe) return decodeUtf16(bytes, file);
  if (bytes[0] === 0xfe && bytes[1] === 0xff) {
    const even = bytes.length % 2 === 0 ? bytes : Buffer.concat([bytes, Buffer.from([0])]);
    return decodeUtf16(Buffer.from(even).swap16().subarray(0, bytes.length), file);
  }
  if (bytes.includes(0)) throw notText(file);
  const text = bytes.toString('utf8');
  const again = Buffer.from(text, 'utf8');
  if (again.equals(bytes)) return text;
  // What is not UTF-8 became U+FFFD, and so does not come back as it was.
  const offset = bytes.findIndex((byte, i) => byte !== again[i]);
  const line = bytes.subarray(0, offset).filter((byte) => byte === 0x0a).length + 1;
  throw refuse(
    file,
    `is not UTF-8 text: byte ${offset}, on line ${line}, is wrong`,
    'save the file as UTF-8',
  );
}

function decodeUtf16(littleEndian: Buffer, file: string): string {
  try {
    return new TextDecoder('utf-16le', { fatal: true }).decode(littleEndian);
  } catch (cause) {
    if (!(cause instanceof TypeError)) throw cause;
    throw refuse(file, 'begins as UTF-16 text, but is not', 'save the file as UTF-8');
  }
}

function notText(file: string): UserError {
  return refuse(
    file,
    'is not a text file: it contains NUL bytes',
    'give a YAML or JSON file, saved as UTF-8',
  );
}

function refuse(file: string, what: string, suggestion: string): UserError {
  return new UserError('refused-file', `${escapeText(file)} ${what}`, { suggestion });
}
