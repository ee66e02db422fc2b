/**
 * Assembler of pickles, for bytes that no pickler writes. Opcodes are those of Python's Lib/pickletools.py; by default
 * `storage`, `tensor` and `legacy` make the output of torch.save.
 */

export const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};
export const u64 = (value: bigint) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt.asUintN(64, value));
  return bytes;
};

type Part = Uint8Array | number | string;

/** Concatenates parts: a number is one byte, a string its UTF-8. */
export const join = (...parts: readonly Part[]): Buffer =>
  Buffer.concat(
    parts.map((part) => {
      if (typeof part === 'number') return BYTES.subarray(part, part + 1);
      return typeof part === 'string' ? Buffer.from(part) : part;
    }),
  );

/** Every byte. */
const BYTES = Uint8Array.from({ length: 256 }, (_, byte) => byte);

export const MARK = 0x28;
export const STOP = 0x2e;
export const NONE = 0x4e;
export const TRUE = 0x88;
export const FALSE = 0x89;
export const EMPTY_LIST = 0x5d;
export const EMPTY_DICT = 0x7d;
export const EMPTY_SET = 0x8f;
export const EMPTY_TUPLE = 0x29;
export const TUPLE = 0x74;
export const TUPLE1 = 0x85;
export const TUPLE2 = 0x86;
export const APPEND = 0x61;
export const APPENDS = 0x65;
export const SETITEM = 0x73;
export const SETITEMS = 0x75;
export const ADDITEMS = 0x90;
export const REDUCE = 0x52;
export const BUILD = 0x62;
export const NEWOBJ = 0x81;
export const BINPERSID = 0x51;
export const STACK_GLOBAL = 0x93;
export const FROZENSET = 0x91;
export const MEMOIZE = 0x94;

export const pickle = (...parts: readonly Part[]) => join(0x80, 2, ...parts, STOP);
export const text = (value: string) => join(0x58, u32(Buffer.byteLength(value)), value);
export const global = (module: string, name: string) => join(0x63, `${module}\n${name}\n`);
export const put = (index: number) => join(0x71, index);
export const get = (index: number) => join(0x68, index);
export const float = (value: number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeDoubleBE(value);
  return join(0x47, bytes);
};
/** LONG1 with `width` bytes. */
export function int(value: number | bigint, width = 8): Buffer {
  const digits = Buffer.alloc(width);
  let rest = BigInt.asUintN(8 * width, BigInt(value));
  for (let index = 0; index < width; index++) {
    digits[index] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return join(0x8a, width, digits);
}
export const tuple = (...items: readonly Part[]) => join(MARK, ...items, TUPLE);
export const dict = (...pairs: readonly Part[]) => join(EMPTY_DICT, MARK, ...pairs, SETITEMS);
export const call = (callee: Part, ...args: readonly Part[]) =>
  join(callee, tuple(...args), REDUCE);

interface StorageParts {
  readonly tag?: Part;
  readonly type?: Part;
  readonly key?: Part;
  readonly location?: Part;
  readonly length?: Part;
  readonly view?: Part;
}

/** Storage; by default of four floats under key 0. */
export function storage(parts: StorageParts = {}): Buffer {
  const {
    tag = text('storage'),
    type = global('torch', 'FloatStorage'),
    key = text('0'),
    location = text('cpu'),
    length = int(4),
    view,
  } = parts;
  return join(
    tuple(tag, type, key, location, length, ...(view === undefined ? [] : [view])),
    BINPERSID,
  );
}

interface TensorParts {
  readonly storage?: Part;
  readonly offset?: Part;
  readonly size?: Part;
  readonly stride?: Part;
  readonly requiresGrad?: Part;
  /** Arguments after the hooks. */
  readonly rest?: readonly Part[];
  readonly by?: Part;
}

/** Tensor; by default [4] on `storage`. */
export function tensor(parts: TensorParts = {}): Buffer {
  const {
    storage: on = storage(),
    offset = int(0),
    size = tuple(int(4)),
    stride = tuple(int(1)),
    requiresGrad = FALSE,
    rest = [],
    by = global('torch._utils', '_rebuild_tensor_v2'),
  } = parts;
  return call(by, on, offset, size, stride, requiresGrad, dict(), ...rest);
}

/** Legacy file; by default with a valid header. */
export function legacy(
  object: Uint8Array,
  keys: readonly string[],
  data: readonly Part[],
  header: { magic?: Part; protocol?: Part; system?: Part } = {},
): Buffer {
  const {
    magic = int(0x1950a86a20f9469cfc6cn, 10),
    protocol = int(1001),
    system = dict(text('little_endian'), TRUE),
  } = header;
  return join(
    pickle(magic),
    pickle(protocol),
    pickle(system),
    object,
    pickle(EMPTY_LIST, MARK, ...keys.map(text), APPENDS),
    ...data,
  );
}

/** Storage of a legacy file: its length and its values. */
export const legacyData = (length: bigint, bytes: number) =>
  join(u64(length), Buffer.alloc(bytes, 1));
