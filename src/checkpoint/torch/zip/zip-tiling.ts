import type { ByteFile } from '../../byte-file.js';
import { refusal } from '../../refusal.js';
import { SAVE_AGAIN } from '../advice.js';
import { DESCRIPTOR_BYTES, SIGNATURES } from './zip-format.js';
import type { EntryPlace } from './zip-header.js';

/**
 * Checks that entries follow each other from byte 0 to the directory, so that readers that go from one
 * header to the next find the same entries as those that read the directory. Only data descriptors may
 * stand between them; padding for alignment is an extra field of a header.
 * @param limit Where the directory begins.
 */
export function checkTiling(file: ByteFile, places: readonly EntryPlace[], limit: number): void {
  let last: EntryPlace | undefined;
  for (const place of places.toSorted((a, b) => a.header - b.header)) {
    checkBetween(file, last, place.header);
    last = place;
  }
  if (last) checkBetween(file, last, limit);
}

/** @param next Where the next entry begins, or the directory. */
function checkBetween(file: ByteFile, last: EntryPlace | undefined, next: number): void {
  const end = last?.end ?? 0;
  if (next < end) {
    throw refusal(file.path, {
      rule: 'zip-overlap',
      place: `byte ${next}`,
      message: `an entry begins here, but one before it ends only at byte ${end}`,
      suggestion: SAVE_AGAIN,
    });
  }
  if (next === end || (last && isDescriptor(file, last, next - end))) return;
  throw refusal(file.path, {
    rule: 'zip-gap',
    place: `byte ${end}`,
    message: `${next - end} bytes here belong to no entry of the directory`,
    suggestion: SAVE_AGAIN,
  });
}

/** Whether the `length` bytes after an entry are its data descriptor: its signature, a checksum, both sizes. */
function isDescriptor(file: ByteFile, place: EntryPlace, length: number): boolean {
  if (!place.hasDescriptor || !DESCRIPTOR_BYTES.some((bytes) => bytes === length)) return false;
  const descriptor = file.read(place.end, length);
  const width = (length - 8) / 2;
  const sizes = [8, 8 + width].map((at) =>
    width === 8 ? descriptor.readBigUInt64LE(at) : BigInt(descriptor.readUInt32LE(at)),
  );
  const bytes = BigInt(place.end - place.data);
  return (
    descriptor.readUInt32LE(0) === SIGNATURES.descriptor && sizes.every((size) => size === bytes)
  );
}
