/** Fingerprints of input files, from their contents and never from their times. */
import { createHash } from 'node:crypto';
import { UserError } from '../base/errors.js';
import { ByteFile } from '../checkpoint/byte-file.js';

/** Bytes hashed at both ends of a file: headers, directories of archives. */
const END_BYTES = 64 * 1024;
const SAMPLE_BYTES = 4 * 1024;
const SAMPLES = 4;
const SAMPLED_BYTES = 2 * END_BYTES + SAMPLES * SAMPLE_BYTES;

/**
 * SHA-256 of a file's size, its first and last 64 KiB and four samples between. A change of other bytes that keeps the
 * size is not found.
 * @param wholeBytes Size up to which all bytes of a file are hashed.
 */
export function sampleSha256(
  file: Pick<ByteFile, 'size' | 'readInto'>,
  wholeBytes = SAMPLED_BYTES,
): string {
  const { size } = file;
  const hash = createHash('sha256').update(`${size}\n`);
  const add = (position: number, length: number) => {
    const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - position)));
    file.readInto(bytes, position);
    hash.update(bytes);
  };
  if (size <= wholeBytes) add(0, size);
  else {
    add(0, END_BYTES);
    for (let sample = 1; sample <= SAMPLES; sample++) {
      add(Math.floor((size * sample) / (SAMPLES + 1)), SAMPLE_BYTES);
    }
    add(size - END_BYTES, END_BYTES);
  }
  return hash.digest('hex');
}

/**
 * Path and size of a file, and its fingerprint.
 * @throws UserError for a file that cannot be read.
 */
export function fingerprintOf(
  path: string,
  wholeBytes: number,
): { readonly path: string; readonly bytes: number; readonly sampleSha256: string } {
  const file = ByteFile.open(path);
  try {
    return { path, bytes: file.size, sampleSha256: sampleSha256(file, wholeBytes) };
  } finally {
    file.close();
  }
}

/** Error for an input that is not the one of its plan. */
export const changedInput = (message: string): UserError =>
  new UserError('refused-file', message, {
    suggestion: 'restore the input, or plan again: finished parts of the old plan cannot be used',
  });
