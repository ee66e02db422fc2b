/** Frames of Zstandard data, read without unpacking. Format: RFC 8878, section 3.1. */
import { UserError } from '../../../base/errors.js';
import { formatInteger } from '../../../base/text/units.js';

/** Window of `zstd --long`, the largest that zstd itself unpacks unasked: ZSTD_WINDOWLOG_LIMIT_DEFAULT of zstd.h. */
const MOST_WINDOW_BYTES = 2 ** 27;

const MAGIC = 0xfd2fb528;

/** The first of 16 numbers of frames to skip. */
const SKIPPABLE_MAGIC = 0x184d2a50;

/** Bytes of the fields of a frame header, by their two bits. */
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
const CONTENT_BYTES = [0, 2, 4, 8] as const;

const RLE_BLOCK = 1;

/** Checks the headers of all frames as their bytes pass, because a header can claim a window of gigabytes. */
export class ZstdFrames {
  readonly #name: string;
  /** Header bytes of the frame or block that has begun. */
  #held: number[] = [];
  /** Bytes of content until the next header. */
  #content = 0;
  #isInFrame = false;
  #hasChecksum = false;

  constructor(name: string) {
    this.#name = name;
  }

  /** @throws UserError for a window that is too large, a dictionary, and other data. */
  check(chunk: Uint8Array): void {
    for (let at = 0; at < chunk.length; ) {
      if (this.#content > 0) {
        const skipped = Math.min(this.#content, chunk.length - at);
        this.#content -= skipped;
        at += skipped;
        continue;
      }
      this.#held.push(chunk[at++] ?? 0);
      if (this.#isInFrame) this.#readBlock();
      else this.#readFrame();
    }
  }

  /** @throws UserError when the data ends within a frame. */
  end(): void {
    if (this.#isInFrame || this.#held.length > 0 || this.#content > 0) {
      throw this.#refused('the zstd data is broken or cut short', 'copy the file again');
    }
  }

  #readFrame(): void {
    if (this.#held.length < 5) return;
    const magic = this.#number(0, 4);
    if (magic >= SKIPPABLE_MAGIC && magic < SKIPPABLE_MAGIC + 16) {
      if (this.#held.length < 8) return;
      this.#content = this.#number(4, 4);
      this.#held = [];
      return;
    }
    if (magic !== MAGIC)
      throw this.#refused('has other bytes after its zstd data', 'copy the file again');
    const descriptor = this.#held[4] ?? 0;
    const isSingleSegment = (descriptor & 0x20) !== 0;
    const dictionary = DICTIONARY_BYTES[(descriptor & 3) as 0 | 1 | 2 | 3];
    const contentCode = (descriptor >> 6) as 0 | 1 | 2 | 3;
    const content = contentCode === 0 && isSingleSegment ? 1 : CONTENT_BYTES[contentCode];
    const windowEnd = isSingleSegment ? 5 : 6;
    if (this.#held.length < windowEnd + dictionary + content) return;
    if (this.#number(windowEnd, dictionary) !== 0) {
      throw this.#refused(
        'needs a dictionary of zstd',
        'unpack it first with zstd and its dictionary',
      );
    }
    const contentBytes =
      this.#number(windowEnd + dictionary, content) + (contentCode === 1 ? 256 : 0);
    const window = isSingleSegment ? contentBytes : windowBytes(this.#held[5] ?? 0);
    if (window > MOST_WINDOW_BYTES) {
      throw this.#refused(
        `needs a window of ${formatInteger(window)} bytes, more than ${formatInteger(MOST_WINDOW_BYTES)}`,
        'unpack it first with zstd and a window of this size',
      );
    }
    this.#hasChecksum = (descriptor & 4) !== 0;
    this.#isInFrame = true;
    this.#held = [];
  }

  #readBlock(): void {
    if (this.#held.length < 3) return;
    const header = this.#number(0, 3);
    const isLast = (header & 1) !== 0;
    this.#content = ((header >> 1) & 3) === RLE_BLOCK ? 1 : header >> 3;
    if (isLast && this.#hasChecksum) this.#content += 4;
    this.#isInFrame = !isLast;
    this.#held = [];
  }

  /** A number of `bytes` bytes, little-endian. */
  #number(from: number, bytes: number): number {
    return this.#held.slice(from, from + bytes).reduceRight((sum, byte) => sum * 256 + byte, 0);
  }

  #refused(what: string, suggestion: string): UserError {
    return new UserError('refused-file', `${this.#name}: ${what}`, { suggestion });
  }
}

/** Window_Size of a Window_Descriptor. */
function windowBytes(descriptor: number): number {
  const base = 2 ** (10 + (descriptor >> 3));
  return base + (base / 8) * (descriptor & 7);
}
