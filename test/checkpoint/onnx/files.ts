/** ONNX files made by hand: messages of Protocol Buffers, with any field replaced. */

/** Integer of variable length. */
export const varint = (value: bigint | number): Buffer => {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    bytes.push(Number(rest & 0x7fn) | (rest > 0x7fn ? 0x80 : 0));
    rest >>= 7n;
  } while (rest > 0n);
  return Buffer.from(bytes);
};

const tag = (field: number, wire: number) => varint((field << 3) | wire);

export const integer = (field: number, value: bigint | number): Buffer =>
  Buffer.concat([tag(field, 0), varint(value)]);

export const bytes = (field: number, ...parts: readonly (Uint8Array | string)[]): Buffer => {
  const content = Buffer.concat(parts.map((part) => Buffer.from(part as Uint8Array)));
  return Buffer.concat([tag(field, 2), varint(content.length), content]);
};

const entry = (field: number, key: string, value: string) =>
  bytes(field, bytes(1, key), bytes(2, value));

interface TensorParts {
  readonly name?: string | Uint8Array;
  /** TensorProto.DataType. */
  readonly type?: number;
  readonly sizes?: readonly (bigint | number)[];
  readonly data?:
    | { readonly raw: Uint8Array }
    | { readonly floats: readonly number[] }
    | { readonly integers: readonly bigint[]; readonly field?: number }
    | { readonly external: Readonly<Record<string, string>> };
  readonly more?: readonly Buffer[];
}

/** Tensor; by default the float32 vector `w` of two values. */
export function tensorProto({
  name = 'w',
  type = 1,
  sizes = [2],
  data = { raw: Buffer.alloc(8) },
  more = [],
}: TensorParts): Buffer {
  return Buffer.concat([
    ...sizes.map((size) => integer(1, size)),
    integer(2, type),
    bytes(8, name),
    ...dataFields(data),
    ...more,
  ]);
}

function dataFields(data: NonNullable<TensorParts['data']>): Buffer[] {
  if ('raw' in data) return [bytes(9, data.raw)];
  if ('floats' in data) return [bytes(4, new Uint8Array(Float32Array.from(data.floats).buffer))];
  if ('integers' in data) return [bytes(data.field ?? 7, ...data.integers.map(varint))];
  const entries = Object.entries(data.external).map(([key, value]) => entry(13, key, value));
  return [...entries, integer(14, 1)];
}

export const initializer = (parts: TensorParts): Buffer => bytes(5, tensorProto(parts));

interface NodeParts {
  readonly op?: string;
  readonly name?: string;
  readonly inputs?: readonly string[];
  readonly outputs?: readonly string[];
  readonly attributes?: readonly Buffer[];
}

export const node = ({
  op = 'Add',
  name = '',
  inputs = [],
  outputs = [],
  attributes = [],
}: NodeParts): Buffer =>
  bytes(
    1,
    ...inputs.map((each) => bytes(1, each)),
    ...outputs.map((each) => bytes(2, each)),
    bytes(3, name),
    bytes(4, op),
    ...attributes.map((each) => bytes(5, each)),
  );

/** Value of the graph: field 11 for an input, 12 for an output. */
export const value = (field: number, name: string, sizes: readonly (number | string)[]): Buffer => {
  const shape = sizes.map((size) =>
    bytes(1, typeof size === 'number' ? integer(1, size) : bytes(2, size)),
  );
  return bytes(
    field,
    bytes(1, name),
    bytes(2, bytes(1, integer(1, 7), bytes(2, Buffer.concat(shape)))),
  );
};

interface OnnxFile {
  readonly initializers?: readonly Buffer[];
  readonly nodes?: readonly Buffer[];
  readonly values?: readonly Buffer[];
  /** Further fields of the model. */
  readonly more?: readonly Buffer[];
}

/** ONNX file; by default with the float32 vector `w` of two values. */
export function onnx({
  initializers = [initializer({})],
  nodes = [],
  values = [],
  more = [],
}: OnnxFile = {}): Buffer {
  return Buffer.concat([
    integer(1, 9),
    bytes(2, 'by hand'),
    bytes(7, ...nodes, bytes(2, 'main'), ...initializers, ...values),
    bytes(8, bytes(1, ''), integer(2, 20)),
    ...more,
  ]);
}
