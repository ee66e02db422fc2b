import { isUtf8 } from 'node:buffer';
import type { ByteFile } from '../byte-file.js';
import { refusal } from '../refusal.js';
import { bytesText, FETCH_AGAIN } from '../wording.js';
import { SAVE_AGAIN } from './advice.js';

/** Of the field before the header, which holds the header's length. */
export const LENGTH_FIELD_BYTES = 8;

/** The format's own limit. */
export const MAX_HEADER_BYTES = 100_000_000;

/** `{}` */
const MIN_HEADER_BYTES = 2;

const OPENING_BRACE = 0x7b;

/**
 * The header of a safetensors file, which is valid UTF-8; the data begin behind it.
 * @throws UserError when there is none, or it reaches beyond the file.
 */
export function readHeader(file: ByteFile): Buffer {
  if (file.size < LENGTH_FIELD_BYTES) {
    throw refusal(file.path, {
      rule: 'st-length-field',
      message: `has ${bytesText(file.size)}, fewer than the ${LENGTH_FIELD_BYTES} that a file begins with`,
      suggestion: FETCH_AGAIN,
    });
  }
  const declared = file.read(0, LENGTH_FIELD_BYTES).readBigUInt64LE();
  if (declared < MIN_HEADER_BYTES || declared > MAX_HEADER_BYTES) {
    throw refusal(file.path, {
      rule: 'st-header-length',
      place: 'byte 0',
      message: `the header has ${bytesText(declared)} by its length field, expected ${MIN_HEADER_BYTES} to ${MAX_HEADER_BYTES}`,
      suggestion: 'check that this is a safetensors file',
    });
  }
  const length = Number(declared);
  const present = file.size - LENGTH_FIELD_BYTES;
  if (length > present) {
    throw refusal(file.path, {
      rule: 'st-header-whole',
      place: 'byte 0',
      message: `the header has ${bytesText(length)} by its length field, but only ${present} follow`,
      suggestion: FETCH_AGAIN,
    });
  }
  const header = file.read(LENGTH_FIELD_BYTES, length);
  if (header[0] !== OPENING_BRACE) {
    throw refusal(file.path, {
      rule: 'st-header-start',
      place: 'header byte 0',
      message: `the header begins with byte ${header[0]}, expected ${OPENING_BRACE}, which is "{"`,
      suggestion: SAVE_AGAIN,
    });
  }
  if (!isUtf8(header)) {
    throw refusal(file.path, {
      rule: 'st-header-utf8',
      message: 'the header holds bytes that are no UTF-8',
      suggestion: SAVE_AGAIN,
    });
  }
  return header;
}
