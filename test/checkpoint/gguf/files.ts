/** GGUF files made by hand, with any field replaced. */

export const u32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

export const u64 = (value: bigint | number): Buffer => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(value));
  return bytes;
};

export const text = (value: string | Uint8Array): Buffer => {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value;
  return Buffer.concat([u64(bytes.length), bytes]);
};

const UINT32 = 4;
const UINT16 = 2;
const BOOL = 7;
const STRING = 8;
const ARRAY = 9;
export const types = { UINT32, UINT16, BOOL, STRING, ARRAY } as const;

export const key = (name: string | Uint8Array, type: number, value: Uint8Array): Buffer =>
  Buffer.concat([text(name), u32(type), value]);

export const ARCHITECTURE = key('general.architecture', STRING, text('llama'));

export const array = (element: number, length: bigint | number, values: Uint8Array): Buffer =>
  Buffer.concat([u32(element), u64(length), values]);

interface TensorInfo {
  readonly name?: string | Uint8Array;
  /** Innermost size first, as in a file. */
  readonly sizes?: readonly (bigint | number)[];
  readonly rank?: number;
  readonly type?: number;
  readonly offset?: bigint | number;
}

export const tensor = ({ name = 'w', sizes = [4], rank, type = 0, offset = 0 }: TensorInfo) =>
  Buffer.concat([text(name), u32(rank ?? sizes.length), ...sizes.map(u64), u32(type), u64(offset)]);

interface GgufFile {
  readonly magic?: string;
  readonly version?: Buffer;
  readonly tensors?: readonly Buffer[];
  readonly tensorCount?: bigint | number;
  readonly keys?: readonly Buffer[];
  readonly keyCount?: bigint | number;
  readonly alignment?: number;
  /** Bytes after the aligned header. */
  readonly data?: Uint8Array;
}

/** GGUF file; by default with the float32 vector `w` of four values. */
export function gguf({
  magic = 'GGUF',
  version = u32(3),
  tensors = [tensor({})],
  tensorCount = tensors.length,
  keys = [ARCHITECTURE],
  keyCount = keys.length,
  alignment = 32,
  data = Buffer.from(Float32Array.of(1, 2, 3, 4).buffer),
}: GgufFile = {}): Buffer {
  const header = Buffer.concat([
    Buffer.from(magic),
    version,
    u64(tensorCount),
    u64(keyCount),
    ...keys,
    ...tensors,
  ]);
  const padding = Buffer.alloc(Math.ceil(header.length / alignment) * alignment - header.length);
  return Buffer.concat([header, padding, data]);
}

/** Metadata of a file of a split model. */
export const splitKeys = (number: number, count: number, tensors: number): Buffer[] => {
  const u16 = (value: number) => u32(value).subarray(0, 2);
  return [
    ...(number === 0 ? [ARCHITECTURE] : []),
    key('split.no', UINT16, u16(number)),
    key('split.count', UINT16, u16(count)),
    key('split.tensors.count', 5, u32(tensors)),
  ];
};
