/** Fingerprints of input files, from contents and never from times. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';

/** Bytes hashed at both ends of a file: headers, directories of archives. */
const END_BYTES = 64 * 1024;
const SAMPLE_BYTES = 4 * 1024;
const SAMPLES = 4;
const SAMPLED_BYTES = 2 * END_BYTES + SAMPLES * SAMPLE_BYTES;

/** An open file. */
export interface SampledFile {
  readonly size: number;
  readonly readInto: (bytes: Uint8Array, position: number) => void;
}

/**
 * SHA-256 of a file's size, its first and last 64 KiB and four samples between. A change of other bytes that keeps the
 * size is not found.
 * @param wholeBytes Size up to which all bytes of a file are hashed.
 */
export function sampleSha256(file: SampledFile, wholeBytes = SAMPLED_BYTES): string {
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

/** Path and size of a file, and its fingerprint. @throws System errors. */
export function fingerprintOf(
  path: string,
  wholeBytes: number,
): { readonly path: string; readonly bytes: number; readonly sampleSha256: string } {
  const descriptor = fs.openSync(path, 'r');
  try {
    const { size } = fs.fstatSync(descriptor);
    const readInto = (bytes: Uint8Array, position: number) => {
      for (let at = 0; at < bytes.length; ) {
        const read = fs.readSync(descriptor, bytes, at, bytes.length - at, position + at);
        if (read === 0) return;
        at += read;
      }
    };
    return { path, bytes: size, sampleSha256: sampleSha256({ size, readInto }, wholeBytes) };
  } finally {
    fs.closeSync(descriptor);
  }
}
