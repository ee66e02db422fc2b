/**
 * The messages of ONNX that a graph needs, and their encoding. Field numbers after onnx.proto3,
 * https://github.com/onnx/onnx/blob/main/onnx/onnx.proto3.
 */
import { PbfWriter } from 'pbf';

/** TensorProto.DataType. */
export const ELEMENT_TYPES = {
  f32: 1,
  u8: 2,
  i32: 6,
  i64: 7,
  bool: 9,
  f16: 10,
  f64: 11,
  bf16: 16,
} as const;

export type ElementType = keyof typeof ELEMENT_TYPES;

/** Bytes of an initializer: in the model itself, or in a separate file. */
export type InitializerBytes =
  | { readonly raw: Uint8Array }
  | { readonly location: string; readonly offset: number; readonly length: number };

export interface Initializer {
  readonly name: string;
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly bytes: InitializerBytes;
}

/** An input, an output or a value between nodes; a name is a size unknown before a run, an empty one is unnamed. */
export interface ValueInfo {
  readonly name: string;
  readonly type: ElementType;
  readonly shape: readonly (number | string)[];
}

/** A plain number is an integer; a float is marked. */
export type Attribute =
  | number
  | string
  | readonly number[]
  | { readonly float: number }
  | GraphProto;

export interface NodeProto {
  /** Path of its layer, quoted in ONNX Runtime's messages. */
  readonly name: string;
  readonly op: string;
  /** Domain of the operator: empty for ONNX's own. */
  readonly domain: string;
  /** An empty name is an omitted input. */
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
  readonly attributes: Readonly<Record<string, Attribute>>;
}

export interface GraphProto {
  readonly name: string;
  readonly nodes: readonly NodeProto[];
  readonly initializers: readonly Initializer[];
  readonly inputs: readonly ValueInfo[];
  /** Type and shape of a plain name are inferred. */
  readonly outputs: readonly (string | ValueInfo)[];
  /** Values between nodes whose sizes are declared. */
  readonly sized: readonly ValueInfo[];
}

/** Version 9 belongs to operator set 20. */
export const IR_VERSION = 9;

/** Domain of ONNX Runtime's own operators. */
export const MICROSOFT = 'com.microsoft';

export const OPERATOR_SETS = [
  { domain: '', version: 20 },
  { domain: MICROSOFT, version: 1 },
] as const;

/** Encodes a model with one graph for ONNX Runtime. */
export function encodeModel(graph: GraphProto): Uint8Array {
  return encodedMessage((writer) => {
    writeMaker(writer);
    writer.writeMessage(7, writeGraph, graph);
    writeOperatorSets(writer);
  });
}

/** Metadata of a model. */
export interface About {
  /** Version of this program. */
  readonly version: string;
  readonly metadata: ReadonlyMap<string, string>;
}

/** Bytes that are read only when written, in pieces that may reuse their memory. */
export interface LazyBytes {
  readonly length: number;
  readonly pieces: () => Iterable<Uint8Array>;
}

/**
 * Encodes a model in parts, so that weights need not be in memory.
 * @param contentOf Bytes of an initializer to store in the model instead of a reference to a file; undefined to leave
 * it unchanged.
 */
export function encodeInParts(
  graph: GraphProto,
  { version, metadata }: About,
  contentOf: (initializer: Initializer) => LazyBytes | undefined,
): (Uint8Array | LazyBytes)[] {
  const parts = [
    encodedMessage((writer) => writeNodes(graph, writer)),
    ...graph.initializers.flatMap((each) => initializerParts(each, contentOf(each))),
    encodedMessage((writer) => writeEnds(graph, writer)),
  ];
  const head = encodedMessage((writer) => {
    writeMaker(writer);
    writer.writeStringField(3, version);
    writeHeader(writer, 7, totalLength(parts));
  });
  const tail = encodedMessage((writer) => {
    writeOperatorSets(writer);
    for (const entry of metadata) writer.writeMessage(14, writeEntry, entry);
  });
  return [head, ...parts, tail];
}

/** Total bytes. */
export const totalLength = (parts: readonly { readonly length: number }[]): number =>
  parts.reduce((sum, { length }) => sum + length, 0);

function initializerParts(
  initializer: Initializer,
  content: LazyBytes | undefined,
): (Uint8Array | LazyBytes)[] {
  if (content === undefined) {
    return [encodedMessage((writer) => writer.writeMessage(5, writeInitializer, initializer))];
  }
  const inner = encodedMessage((writer) => {
    writeInitializerHead(initializer, writer);
    writeHeader(writer, 9, content.length);
  });
  const outer = encodedMessage((writer) => writeHeader(writer, 5, inner.length + content.length));
  return [outer, inner, content];
}

function encodedMessage(write: (writer: PbfWriter) => void): Uint8Array {
  const writer = new PbfWriter();
  write(writer);
  return writer.finish();
}

/** Wire type of Protocol Buffers for length-delimited fields. */
const LENGTH_DELIMITED = 2;

/** Writes the tag and length of a field. */
function writeHeader(writer: PbfWriter, field: number, length: number): void {
  writer.writeTag(field, LENGTH_DELIMITED);
  writer.writeVarint(length);
}

function writeMaker(writer: PbfWriter): void {
  writer.writeVarintField(1, IR_VERSION);
  writer.writeStringField(2, 'minimind');
}

function writeOperatorSets(writer: PbfWriter): void {
  for (const set of OPERATOR_SETS) writer.writeMessage(8, writeOperatorSet, set);
}

function writeOperatorSet(
  { domain, version }: (typeof OPERATOR_SETS)[number],
  writer: PbfWriter,
): void {
  writer.writeStringField(1, domain);
  writer.writeVarintField(2, version);
}

function writeGraph(graph: GraphProto, writer: PbfWriter): void {
  writeNodes(graph, writer);
  for (const each of graph.initializers) writer.writeMessage(5, writeInitializer, each);
  writeEnds(graph, writer);
}

function writeNodes(graph: GraphProto, writer: PbfWriter): void {
  for (const node of graph.nodes) writer.writeMessage(1, writeNode, node);
  writer.writeStringField(2, graph.name);
}

function writeEnds(graph: GraphProto, writer: PbfWriter): void {
  for (const input of graph.inputs) writer.writeMessage(11, writeValueInfo, input);
  for (const output of graph.outputs) writer.writeMessage(12, writeOutput, output);
  for (const value of graph.sized) writer.writeMessage(13, writeValueInfo, value);
}

function writeNode(node: NodeProto, writer: PbfWriter): void {
  for (const input of node.inputs) writer.writeStringField(1, input);
  for (const output of node.outputs) writer.writeStringField(2, output);
  writer.writeStringField(3, node.name);
  writer.writeStringField(4, node.op);
  for (const attribute of Object.entries(node.attributes)) {
    writer.writeMessage(5, writeAttribute, attribute);
  }
  if (node.domain) writer.writeStringField(7, node.domain);
}

/** AttributeProto.AttributeType. */
const ATTRIBUTE_TYPES = { float: 1, int: 2, string: 3, graph: 5, ints: 7 } as const;

function writeAttribute([name, value]: readonly [string, Attribute], writer: PbfWriter): void {
  writer.writeStringField(1, name);
  writer.writeVarintField(20, ATTRIBUTE_TYPES[writeAttributeValue(value, writer)]);
}

function writeAttributeValue(value: Attribute, writer: PbfWriter): keyof typeof ATTRIBUTE_TYPES {
  if (typeof value === 'number') {
    writer.writeVarintField(3, value);
    return 'int';
  }
  if (typeof value === 'string') {
    writer.writeStringField(4, value);
    return 'string';
  }
  if ('float' in value) {
    writer.writeFloatField(2, value.float);
    return 'float';
  }
  if ('nodes' in value) {
    writer.writeMessage(6, writeGraph, value);
    return 'graph';
  }
  for (const each of value) writer.writeVarintField(8, each);
  return 'ints';
}

/** TensorProto.DataLocation. */
const EXTERNAL = 1;

function writeInitializer(initializer: Initializer, writer: PbfWriter): void {
  const { bytes } = initializer;
  writeInitializerHead(initializer, writer);
  if ('raw' in bytes) {
    writer.writeBytesField(9, bytes.raw);
    return;
  }
  for (const entry of Object.entries(bytes)) writer.writeMessage(13, writeEntry, entry);
  writer.writeVarintField(14, EXTERNAL);
}

function writeInitializerHead({ name, type, shape }: Initializer, writer: PbfWriter): void {
  for (const size of shape) writer.writeVarintField(1, size);
  writer.writeVarintField(2, ELEMENT_TYPES[type]);
  writer.writeStringField(8, name);
}

function writeEntry([key, value]: readonly [string, string | number], writer: PbfWriter): void {
  writer.writeStringField(1, key);
  writer.writeStringField(2, String(value));
}

function writeOutput(output: string | ValueInfo, writer: PbfWriter): void {
  if (typeof output === 'string') writer.writeStringField(1, output);
  else writeValueInfo(output, writer);
}

function writeValueInfo({ name, ...type }: ValueInfo, writer: PbfWriter): void {
  writer.writeStringField(1, name);
  writer.writeMessage(2, writeType, type);
}

type TensorType = Omit<ValueInfo, 'name'>;

function writeType(type: TensorType, writer: PbfWriter): void {
  writer.writeMessage(1, writeTensorType, type);
}

function writeTensorType({ type, shape }: TensorType, writer: PbfWriter): void {
  writer.writeVarintField(1, ELEMENT_TYPES[type]);
  writer.writeMessage(2, writeShape, shape);
}

function writeShape(shape: ValueInfo['shape'], writer: PbfWriter): void {
  for (const size of shape) writer.writeMessage(1, writeDimension, size);
}

function writeDimension(size: number | string, writer: PbfWriter): void {
  if (typeof size === 'number') writer.writeVarintField(1, size);
  else if (size !== '') writer.writeStringField(2, size);
}
