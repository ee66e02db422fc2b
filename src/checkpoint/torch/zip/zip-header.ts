import type { ByteFile } from '../../byte-file.js';
import { refusal, SAVE_TORCH_AGAIN } from '../../rules.js';
import type { DirectoryEntry, Refuse } from './zip-directory.js';
import { entryPlace, zip64Field } from './zip-directory.js';
import {
  DESCRIPTOR_FLAG,
  RECORD_BYTES,
  SATURATED_16,
  SATURATED_32,
  SIGNATURES,
} from './zip-format.js';

/** Location of an entry in the file: its header, and its data up to `end`. */
export interface EntryPlace {
  readonly header: number;
  readonly data: number;
  readonly end: number;
  readonly hasDescriptor: boolean;
}

/**
 * Finds the data of entries by their headers. Ignores the header's checksum: PyTorch writes 0 there, and the
 * directory has the real one.
 */
export class HeaderReader {
  readonly #file: ByteFile;
  /** Position of the directory; data must end before it. */
  readonly #limit: number;
  /** Buffer for a header and the longest name, reused for all entries. */
  readonly #scratch = Buffer.alloc(RECORD_BYTES.header + SATURATED_16);

  constructor(file: ByteFile, limit: number) {
    this.#file = file;
    this.#limit = limit;
  }

  /** @throws UserError if the entry's header is missing or belongs to another entry. */
  locate({ name, nameBytes, method, flags, bytes, position }: DirectoryEntry): EntryPlace {
    const refuse: Refuse = (broken) =>
      refusal(this.#file.path, {
        place: entryPlace(name),
        suggestion: SAVE_TORCH_AGAIN,
        ...broken,
      });
    const fixedEnd = position + BigInt(RECORD_BYTES.header);
    if (fixedEnd > this.#limit) {
      throw refuse({
        rule: 'zip-header-place',
        message: `has its header at byte ${position}, but the directory begins at ${this.#limit}`,
      });
    }
    const header = this.#read(Number(position), nameBytes.length);
    if (header.readUInt32LE(0) !== SIGNATURES.header) {
      throw refuse({
        rule: 'zip-header',
        message: `should have its header at byte ${position}, where none begins`,
      });
    }
    const [ownFlags, ownMethod] = [header.readUInt16LE(6), header.readUInt16LE(8)];
    if (ownFlags !== flags || ownMethod !== method) {
      throw refuse({
        rule: 'zip-header-agrees',
        message: `has flags 0x${ownFlags.toString(16)} and method ${ownMethod} in its header, in the directory 0x${flags.toString(16)} and ${method}`,
      });
    }
    const nameLength = header.readUInt16LE(26);
    if (
      nameLength !== nameBytes.length ||
      !header.subarray(RECORD_BYTES.header).equals(nameBytes)
    ) {
      throw refuse({
        rule: 'zip-header-name',
        message: `has another name in its header, at byte ${position}`,
      });
    }
    const extraBytes = header.readUInt16LE(28);
    const data = fixedEnd + BigInt(nameLength + extraBytes);
    const end = data + bytes;
    if (end > this.#limit) {
      throw refuse({
        rule: 'zip-data-place',
        message: `has ${bytes} bytes from byte ${data} on, but the directory begins at ${this.#limit}`,
      });
    }
    const hasDescriptor = (flags & DESCRIPTOR_FLAG) !== 0;
    const sizes = HEADER_SIZES.map((at) => header.readUInt32LE(at));
    const isLeftOut = hasDescriptor && sizes.every((size) => size === 0);
    if (!isLeftOut) {
      const extra = () => this.#file.read(Number(data) - extraBytes, extraBytes);
      const own = headerSizes(sizes, extra, refuse);
      if (own.some((size) => size !== bytes)) {
        throw refuse({
          rule: 'zip-header-sizes',
          message: `has ${own.join(' and ')} bytes in its header, in the directory ${bytes}`,
        });
      }
    }
    // Exact: all three are within the file.
    return { header: Number(position), data: Number(data), end: Number(end), hasDescriptor };
  }

  /** Reads the header at `position` and its name, up to the directory. */
  #read(position: number, nameLength: number): Buffer {
    const wanted = RECORD_BYTES.header + nameLength;
    const header = this.#scratch.subarray(0, Math.min(wanted, this.#limit - position));
    this.#file.readInto(header, position);
    return header;
  }
}

/** Offsets of unpacked and packed size in a header, in the order of its zip64 field. */
const HEADER_SIZES = [22, 18] as const;

/** Sizes in a header, from its zip64 field where they are saturated; 0 where the field is too short. */
function headerSizes(sizes: readonly number[], extra: () => Buffer, refuse: Refuse): bigint[] {
  if (!sizes.includes(SATURATED_32)) return sizes.map(BigInt);
  const field = zip64Field(extra(), refuse);
  let at = 0;
  return sizes.map((size) => {
    if (size !== SATURATED_32) return BigInt(size);
    const start = at;
    at += 8;
    return at <= field.length ? field.readBigUInt64LE(start) : 0n;
  });
}
