import type { ByteFile } from '../byte-file.js';
import { type Refusal, refusal } from '../refusal.js';
import { SAVE_AGAIN } from './advice.js';
import type { DirectoryEntry } from './zip-directory.js';
import { RECORD_BYTES, SATURATED_16, SIGNATURES } from './zip-format.js';
import { entryPlace } from './zip-names.js';

/** Where an entry lies in the file: its header, and its data up to `end`. */
interface EntryPlace {
  readonly header: number;
  readonly data: number;
  readonly end: number;
}

/**
 * Finds the data of entries by the headers in front of them. A header's sizes, checksum and zip64 field
 * are not looked at: PyTorch leaves them 0, and the directory has them.
 */
export class HeaderReader {
  readonly #file: ByteFile;
  /** Where the directory begins, and data must have ended. */
  readonly #limit: number;
  /** Holds a header and the longest name; reading an entry takes no memory of its own. */
  readonly #scratch = Buffer.alloc(RECORD_BYTES.header + SATURATED_16);

  constructor(file: ByteFile, limit: number) {
    this.#file = file;
    this.#limit = limit;
  }

  /** @throws UserError when the entry's header is not there, or not this entry's. */
  locate({ name, nameBytes, method, flags, bytes, position }: DirectoryEntry): EntryPlace {
    const refuse = (broken: Pick<Refusal, 'rule' | 'message'>) =>
      refusal(this.#file.path, { ...broken, place: entryPlace(name), suggestion: SAVE_AGAIN });
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
    const data = fixedEnd + BigInt(nameLength + header.readUInt16LE(28));
    const end = data + bytes;
    if (end > this.#limit) {
      throw refuse({
        rule: 'zip-data-place',
        message: `has ${bytes} bytes from byte ${data} on, but the directory begins at ${this.#limit}`,
      });
    }
    // Exact: all three lie within the file.
    return { header: Number(position), data: Number(data), end: Number(end) };
  }

  /** The header at `position` with as much of its name as lies before the directory. */
  #read(position: number, nameLength: number): Buffer {
    const wanted = RECORD_BYTES.header + nameLength;
    const header = this.#scratch.subarray(0, Math.min(wanted, this.#limit - position));
    this.#file.readInto(header, position);
    return header;
  }
}
