/**
 * Builds zip archives with false values in any field, independently of the tested writer. Layouts follow PKWARE's
 * APPNOTE.TXT, sections 4.3.7, 4.3.12 and 4.3.14 to 4.3.16.
 */

/** Integer of `width` bytes, little-endian; higher bytes are dropped. */
export function le(value: number | bigint, width: number): Buffer {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)));
  return bytes.subarray(0, width);
}

/** Extra field. */
export const extra = (id: number, content: Uint8Array) =>
  Buffer.concat([le(id, 2), le(content.length, 2), content]);

/** Extra field of zip64 with these values of 8 bytes. */
export const zip64 = (...values: readonly (number | bigint)[]) =>
  extra(1, Buffer.concat(values.map((value) => le(value, 8))));

type Numbers = Readonly<Record<string, readonly [width: number, value: number | bigint]>>;
type FalseValues<Fields extends Numbers> = { readonly [Name in keyof Fields]?: number | bigint };

/** Bytes of the fields, with false values in place of the true ones. */
function fields<Fields extends Numbers>(
  truth: Fields,
  falseValues: FalseValues<Fields> = {},
): Buffer {
  return Buffer.concat(
    Object.entries(truth).map(([name, [width, value]]) => le(falseValues[name] ?? value, width)),
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
  /** Flags of the header and of the directory. */
  readonly flags?: number;
  readonly method?: number;
  /** False values of the directory. */
  readonly entry?: FalseValues<ReturnType<typeof entryFields>>;
  readonly extra?: Uint8Array;
  readonly comment?: Uint8Array;
  /** False values of the header. */
  readonly header?: FalseValues<ReturnType<typeof headerFields>>;
  readonly headerName?: string | Uint8Array;
  readonly headerExtra?: Uint8Array;
  /** Bytes between its data and the next entry. */
  readonly behind?: Uint8Array;
  /** Whether only the directory has the entry, with the position of its header in `entry`. */
  readonly isOnlyListed?: boolean;
}

export interface ArchiveSpec {
  /** Text before the first entry. */
  readonly before?: string;
  readonly entries: readonly EntrySpec[];
  /** Bytes between the directory and the end records; part of the directory if `isGapCounted`. */
  readonly gap?: Uint8Array;
  readonly isGapCounted?: boolean;
  /** False values of the end record. */
  readonly end?: FalseValues<ReturnType<typeof endFields>> & {
    signature?: number;
    commentLength?: number;
  };
  /** False values of the zip64 end record, which is left out by default. */
  readonly end64?: FalseValues<ReturnType<typeof endFields>> & FalseValues<typeof end64Head>;
  readonly locator?: FalseValues<ReturnType<typeof locatorFields>>;
  readonly comment?: string;
}

/** Data descriptor of `bytes`, in fields of `width` bytes. */
export const descriptor = (bytes: number, width: 4 | 8 = 4) =>
  Buffer.concat([le(0x08074b50, 4), le(7, 4), le(bytes, width), le(bytes, width)]);

/** Header of an entry, followed by its data. */
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

/** Records of the smallest PyTorch file: `None`. */
export const RECORDS: Readonly<Record<string, string | Uint8Array>> = {
  'data.pkl': Buffer.from([0x80, 2, 0x4e, 0x2e]),
  version: '3\n',
};

/** Entries of records by name, all in one folder. */
export const inFolder = (records: Readonly<Record<string, string | Uint8Array>>): EntrySpec[] =>
  Object.entries(records).map(([name, data]) => ({ name: `archive/${name}`, data }));

/** Valid file with one more entry at the end. */
export const withEntry = (entry: Partial<EntrySpec>, rest: Partial<ArchiveSpec> = {}) =>
  archive({
    entries: [...inFolder(RECORDS), { name: 'archive/data/0', data: 'abcd', ...entry }],
    ...rest,
  });

/** Valid file with replaced, additional or (undefined) missing records. */
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

/** Value of a field of 32 bits that refers to a field of 64 bits. */
export const SATURATED = 0xffffffff;
