/**
 * Records of a zip archive (PKWARE APPNOTE.TXT 6.3.10, sections 4.3 to 4.5), shared by reader and writer. All
 * numbers are little-endian.
 */

export const SIGNATURES = {
  header: 0x04034b50,
  descriptor: 0x08074b50,
  entry: 0x02014b50,
  end64: 0x06064b50,
  locator64: 0x07064b50,
  end: 0x06054b50,
} as const;

/** Sizes of the records without names, extra fields and comments. */
export const RECORD_BYTES = {
  header: 30,
  entry: 46,
  end64: 56,
  locator64: 20,
  end: 22,
} as const;

/** The length field of a zip64 end record excludes the signature and itself. */
export const END64_LENGTH = BigInt(RECORD_BYTES.end64 - 12);

/** A 32-bit field with this value refers to the zip64 extra field. */
export const SATURATED_32 = 0xffff_ffff;
export const SATURATED_16 = 0xffff;

/** An extra field starts with its ID and the length of the rest, 16 bits each. */
export const EXTRA_HEAD_BYTES = 4;
/** ID of the extra field for values over 32 bits. */
export const ZIP64_EXTRA = 1;

/** Compression method of uncompressed entries. */
export const STORED = 0;

/** Flag of an entry whose sizes and checksum follow its data. */
export const DESCRIPTOR_FLAG = 1 << 3;
/** Sizes of a data descriptor with signature, for 32-bit and 64-bit sizes. */
export const DESCRIPTOR_BYTES = [16, 24] as const;
