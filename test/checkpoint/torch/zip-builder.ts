/**
 * Builds zip archives that can lie in any field, independently of the writer under test. Layouts after
 * PKWARE's APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.14 to 4.3.16.
 */

/** An integer of `width` bytes, little-endian; what does not fit is cut. */
export function le(value: number | bigint, width: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
  return bytes.subarray(0, width);
}

/** An extra field. */
export const extra = (id: number, content: Uint8Array) =>
  Buffer.concat([le(id, 2), le(content.length, 2), content]);

/** The zip64 extra field with these values of 8 bytes. */
export const zip64 = (...values: readonly (number | bigint)[]) =>
  extra(1, Buffer.concat(values.map((value) => le(value, 8))));

type Numbers = Readonly<Record<string, readonly [width: number, value: number | bigint]>>;
type Lies<Fields extends Numbers> = { readonly [Name in keyof Fields]?: number | bigint };

/** The fields in their order, with the lies in place of the truth. */
function fields<Fields extends Numbers>(truth: Fields, lies: Lies<Fields> = {}): Buffer {
  return Buffer.concat(
    Object.entries(truth).map(([name, [width, value]]) => le(lies[name] ?? value, width)),
  );
}

const headerFields = (
  flags: number,
  method: number,
  size: number,
  name: number,
  extras: number,
) => ({
  signature: [4, 0x04034b50] as const,
  version: [2, 20] as const,
  flags: [2, flags] as const,
  method: [2, method] as const,
  time: [2, 0] as const,
  date: [2, 0] as const,
  crc: [4, 0] as const,
  stored: [4, size] as const,
  size: [4, size] as const,
  nameLength: [2, name] as const,
  extraLength: [2, extras] as const,
});

const entryFields = (
  entry: { flags: number; method: number; size: number; position: number },
  lengths: { name: number; extra: number; comment: number },
) => ({
  signature: [4, 0x02014b50] as const,
  madeBy: [2, 0] as const,
  version: [2, 0] as const,
  flags: [2, entry.flags] as const,
  method: [2, entry.method] as const,
  time: [2, 0] as const,
  date: [2, 0] as const,
  crc: [4, 0] as const,
  stored: [4, entry.size] as const,
  size: [4, entry.size] as const,
  nameLength: [2, lengths.name] as const,
  extraLength: [2, lengths.extra] as const,
  commentLength: [2, lengths.comment] as const,
  disk: [2, 0] as const,
  internal: [2, 0] as const,
  external: [4, 0] as const,
  position: [4, entry.position] as const,
});

const endFields = (width: 2 | 4, count: number, bytes: number, position: number) => {
  const wide = width === 4;
  return {
    disk: [width, 0] as const,
    directoryDisk: [width, 0] as const,
    entriesOnDisk: [wide ? 8 : 2, count] as const,
    entries: [wide ? 8 : 2, count] as const,
    bytes: [wide ? 8 : 4, bytes] as const,
    position: [wide ? 8 : 4, position] as const,
  };
};

const end64Head = {
  signature: [4, 0x06064b50],
  length: [8, 44],
  madeBy: [2, 45],
  version: [2, 45],
} as const;

const locatorFields = (position: number) => ({
  signature: [4, 0x07064b50] as const,
  disk: [4, 0] as const,
  position: [8, position] as const,
  disks: [4, 1] as const,
});

export interface EntrySpec {
  readonly name: string | Uint8Array;
  readonly data?: string | Uint8Array;
  /** In the header and in the directory. */
  readonly flags?: number;
  readonly method?: number;
  /** Lies of the directory. */
  readonly entry?: Lies<ReturnType<typeof entryFields>>;
  readonly extra?: Uint8Array;
  readonly comment?: Uint8Array;
  /** Lies of the header. */
  readonly header?: Lies<ReturnType<typeof headerFields>>;
  readonly headerName?: string | Uint8Array;
  readonly headerExtra?: Uint8Array;
  /** Between its data and the next entry. */
  readonly behind?: Uint8Array;
  /** Whether the directory has the entry and nothing else has: its header lies where `entry` says. */
  readonly isOnlyListed?: boolean;
}

export interface ArchiveSpec {
  /** Before the first entry. */
  readonly before?: string;
  readonly entries: readonly EntrySpec[];
  /** Between the directory and the end records; counted as part of the directory when `counted`. */
  readonly gap?: Uint8Array;
  readonly isGapCounted?: boolean;
  /** Lies of the end record. */
  readonly end?: Lies<ReturnType<typeof endFields>> & {
    signature?: number;
    commentLength?: number;
  };
  /** Lies of the zip64 end record; without one it is left out. */
  readonly end64?: Lies<ReturnType<typeof endFields>> & Lies<typeof end64Head>;
  readonly locator?: Lies<ReturnType<typeof locatorFields>>;
  readonly comment?: string;
}

/** A data descriptor that says so many bytes, in fields of `width` bytes. */
export const descriptor = (bytes: number, width: 4 | 8 = 4) =>
  Buffer.concat([le(0x08074b50, 4), le(7, 4), le(bytes, width), le(bytes, width)]);

/** The header of an entry and its data. */
export function headerAndData(spec: EntrySpec): Buffer {
  const { flags = 0, method = 0, headerExtra = Buffer.alloc(0) } = spec;
  const name = Buffer.from(spec.headerName ?? spec.name);
  const data = Buffer.from(spec.data ?? '');
  const truth = headerFields(flags, method, data.length, name.length, headerExtra.length);
  return Buffer.concat([
    fields(truth, spec.header),
    name,
    headerExtra,
    data,
    spec.behind ?? Buffer.alloc(0),
  ]);
}

function directoryEntry(spec: EntrySpec, position: number): Buffer {
  const { flags = 0, method = 0, comment = Buffer.alloc(0) } = spec;
  const name = Buffer.from(spec.name);
  const extras = spec.extra ?? Buffer.alloc(0);
  const size = Buffer.from(spec.data ?? '').length;
  const lengths = { name: name.length, extra: extras.length, comment: comment.length };
  return Buffer.concat([
    fields(entryFields({ flags, method, size, position }, lengths), spec.entry),
    name,
    extras,
    comment,
  ]);
}

export function archive(spec: ArchiveSpec): Buffer {
  const { before = '', entries, gap = Buffer.alloc(0), isGapCounted = false, comment = '' } = spec;
  const bodies: Buffer[] = [];
  const directory: Buffer[] = [];
  let position = before.length;
  for (const entry of entries) {
    directory.push(directoryEntry(entry, position));
    if (entry.isOnlyListed) continue;
    bodies.push(headerAndData(entry));
    position += bodies.at(-1)?.length ?? 0;
  }
  const listed = Buffer.concat(directory);
  const bytes = listed.length + (isGapCounted ? gap.length : 0);
  const { signature = 0x06054b50, commentLength = comment.length } = spec.end ?? {};
  return Buffer.concat([
    Buffer.from(before),
    ...bodies,
    listed,
    gap,
    ...(spec.end64 || spec.locator
      ? [
          fields(end64Head, spec.end64),
          fields(endFields(4, entries.length, bytes, position), spec.end64),
          fields(locatorFields(position + listed.length + gap.length), spec.locator),
        ]
      : []),
    le(signature, 4),
    fields(endFields(2, entries.length, bytes, position), spec.end),
    le(commentLength, 2),
    Buffer.from(comment),
  ]);
}

/** The records of the smallest file that PyTorch could have written: `None`. */
export const RECORDS: Readonly<Record<string, string | Uint8Array>> = {
  'data.pkl': Buffer.from([0x80, 2, 0x4e, 0x2e]),
  version: '3\n',
};

/** Entries for records by name, all in one folder. */
export const inFolder = (records: Readonly<Record<string, string | Uint8Array>>): EntrySpec[] =>
  Object.entries(records).map(([name, data]) => ({ name: `archive/${name}`, data }));

/** A whole file with one more entry, which is last. */
export const withEntry = (entry: Partial<EntrySpec>, rest: Partial<ArchiveSpec> = {}) =>
  archive({
    entries: [...inFolder(RECORDS), { name: 'archive/data/0', data: 'abcd', ...entry }],
    ...rest,
  });

/** A whole file with other, more or (undefined) fewer records. */
export function withRecords(
  records: Readonly<Record<string, string | Uint8Array | undefined>>,
): Buffer {
  const all = Object.entries({ ...RECORDS, ...records });
  const present = all.filter(
    (pair): pair is [string, string | Uint8Array] => pair[1] !== undefined,
  );
  return archive({ entries: inFolder(Object.fromEntries(present)) });
}

export const whole = (rest: Partial<ArchiveSpec> = {}) => withEntry({}, rest);

/** A field of 32 bits that stands for one of 64 elsewhere. */
export const SATURATED = 0xffffffff;
