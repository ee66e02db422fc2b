/**
 * The records of a zip archive, from PKWARE's APPNOTE.TXT 6.3.10, sections 4.3 to 4.5: what the reader
 * and the writer agree on. All numbers are little-endian.
 */

/** What each record begins with. */
export const SIGNATURES = {
  header: 0x04034b50,
  descriptor: 0x08074b50,
  entry: 0x02014b50,
  end64: 0x06064b50,
  locator64: 0x07064b50,
  end: 0x06054b50,
} as const;

/** Bytes of each record without what follows it: names, extra fields and comments. */
export const RECORD_BYTES = {
  header: 30,
  entry: 46,
  end64: 56,
  locator64: 20,
  end: 22,
} as const;

/** The length that a zip64 end record gives counts neither its signature nor itself. */
export const END64_LENGTH = BigInt(RECORD_BYTES.end64 - 12);

/** A field of 32 bits with this value stands for one in the zip64 extra field. */
export const SATURATED_32 = 0xffff_ffff;
export const SATURATED_16 = 0xffff;

/** An extra field begins with its identity and the length of the rest, 16 bits each. */
export const EXTRA_HEAD_BYTES = 4;
/** The extra field for what does not fit into 32 bits. */
export const ZIP64_EXTRA = 1;

/** The method of entries that are not compressed. */
export const STORED = 0;

/** The flag of an entry whose sizes and checksum follow its data. */
export const DESCRIPTOR_FLAG = 1 << 3;
/** Bytes of a data descriptor with its signature: sizes of 32 bits, or of 64. */
export const DESCRIPTOR_BYTES = [16, 24] as const;
