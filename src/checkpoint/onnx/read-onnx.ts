/**
 * Index of an ONNX file (onnx.proto3 of https://github.com/onnx/onnx): its graph without values. Field numbers are those
 * of ModelProto, GraphProto, NodeProto, AttributeProto, FunctionProto and ValueInfoProto.
 */
import type { ByteFile } from '../byte-file.js';
import type { OpenedFiles } from '../checkpoint.js';
import { exactBytesText, quoted, SMALL_FILE } from '../checkpoint-rules.js';
import { computedTensor } from '../computed-file.js';
import type { StoredTensor } from '../stored-tensor.js';
import { contiguousStrides } from '../stored-tensor.js';
import type { OnnxDescription, OnnxNodeUse, OnnxValueInfo } from './describe-onnx.js';
import { OnnxCounts } from './describe-onnx.js';
import { type ExternalFiles, missingExternal, openExternalFiles } from './external-data.js';
import type { ByteSpan, ProtoField } from './proto-scanner.js';
import { ProtoScanner, WIRE } from './proto-scanner.js';
import { type OnnxTensor, onnxTypeOf, readEntry, readTensorProto } from './tensor-proto.js';

/** A length in a message of Protocol Buffers is below 2 GiB, and so is the file. */
const MAX_FILE_BYTES = 2 ** 31 - 1;
const MAX_DEPTH = 32;
const MAX_TENSORS = { small: 12_000, large: 200_000 };
/** Exported models have up to 100,000. */
const MAX_NODES = 500_000;
const MAX_METADATA = 100_000;
const MAX_VALUES = 10_000;

/**
 * Opens an ONNX model with the files of its external data.
 * @throws UserError that names the violated rule.
 */
export function readOnnx(file: ByteFile): OpenedFiles {
  const scanner = new ProtoScanner(file);
  if (file.size > MAX_FILE_BYTES) {
    throw scanner.refusal(
      'onnx-size',
      `the file has ${exactBytesText(file.size)}, expected at most ${MAX_FILE_BYTES}`,
    );
  }
  const { graph, ...model } = readModel(scanner);
  const reader = new GraphReader(scanner);
  const { inputs, outputs, initializers } = reader.readMain(graph);
  for (const span of model.functions) reader.readFunction(span);
  const tensors = [...initializers.values()];
  const external = openExternalFiles(file, [...tensors, ...reader.innerTensors]);
  const description: OnnxDescription = {
    ...model.about,
    ...reader.counts.description(tensors, reader.innerTensors),
    functions: model.functions.length,
    inputs: inputs.filter(({ name }) => !initializers.has(name)),
    outputs,
    externalFiles: external.described,
  };
  return {
    files: [file, ...external.open.values()],
    index: {
      format: 'onnx',
      tensors: storedTensors(file, tensors, external),
      aliases: new Map(),
      metadata: new Map(Object.entries(model.about.metadata)),
      onnx: { description, uses: reader.uses },
      stateDict: [],
      content: new Map(),
      warnings: [],
    },
  };
}

interface Model {
  readonly about: Pick<
    OnnxDescription,
    'irVersion' | 'producer' | 'producerVersion' | 'operatorSets' | 'metadata'
  >;
  readonly graph: ByteSpan;
  readonly functions: readonly ByteSpan[];
}

function readModel(scanner: ProtoScanner): Model {
  const about = { irVersion: 0, producer: '', producerVersion: '' };
  const operatorSets: { domain: string; version: number }[] = [];
  const metadata = new Map<string, string>();
  const graphs: ByteSpan[] = [];
  const functions: ByteSpan[] = [];
  let entries = 0;
  const countEntry = () => {
    entries++;
    if (entries <= MAX_METADATA) return;
    throw scanner.refusal(
      'onnx-metadata',
      `has more than ${MAX_METADATA} entries of metadata, operator sets and functions`,
    );
  };
  scanner.fields(scanner.whole, (field) => {
    const { number } = field;
    if (number === 8 || number === 14 || number === 25) countEntry();
    if (number === 1) about.irVersion = scanner.integer(field, 'ir_version');
    else if (number === 2) about.producer = scanner.name(field, 'producer_name');
    else if (number === 3) about.producerVersion = scanner.name(field, 'producer_version');
    else if (number === 7) graphs.push(scanner.expect(field, WIRE.bytes, 'graph'));
    else if (number === 8) operatorSets.push(operatorSetOf(scanner, field));
    else if (number === 14) {
      metadata.set(...readEntry(scanner, scanner.expect(field, WIRE.bytes, 'metadata_props')));
    } else if (number === 25) functions.push(scanner.expect(field, WIRE.bytes, 'functions'));
  });
  const [graph, ...others] = graphs;
  if (graph === undefined || others.length > 0) {
    throw scanner.refusal('onnx-graph', `the model has ${graphs.length} graphs, expected one`);
  }
  const all = { ...about, operatorSets, metadata: Object.fromEntries(metadata) };
  return { about: all, graph, functions };
}

function operatorSetOf(scanner: ProtoScanner, field: ProtoField) {
  let [domain, version] = ['', 0];
  scanner.fields(scanner.expect(field, WIRE.bytes, 'opset_import'), (inner) => {
    if (inner.number === 1) domain = scanner.name(inner, 'the domain of an operator set');
    else if (inner.number === 2) version = scanner.integer(inner, 'version');
  });
  return { domain: domain || 'ai.onnx', version };
}

/** Reads graphs: the main one with its tensors and their uses, those inside of nodes for their counts. */
class GraphReader {
  readonly counts = new OnnxCounts();
  /** Uses of initializers of the main graph by nodes of it, by name. */
  readonly uses = new Map<string, OnnxNodeUse[]>();
  /** Tensors in subgraphs, and constants of nodes. */
  readonly innerTensors: OnnxTensor[] = [];
  readonly #scanner: ProtoScanner;
  #initializers: ReadonlyMap<string, OnnxTensor> = new Map();
  readonly #mostTensors: number;
  #tensors = 0;

  constructor(scanner: ProtoScanner) {
    this.#scanner = scanner;
    this.#mostTensors = scanner.file.size < SMALL_FILE ? MAX_TENSORS.small : MAX_TENSORS.large;
  }

  /** @returns Inputs, outputs and initializers of the main graph. */
  readMain(graph: ByteSpan) {
    const scanner = this.#scanner;
    const initializers = new Map<string, OnnxTensor>();
    const inputs: OnnxValueInfo[] = [];
    const outputs: OnnxValueInfo[] = [];
    // Nodes can come before the initializers that they use.
    scanner.fields(graph, (field) => {
      if (field.number === 5) this.#addInitializer(field, initializers);
      else if (field.number === 11) inputs.push(this.#valueInfo(field, inputs.length));
      else if (field.number === 12) outputs.push(this.#valueInfo(field, outputs.length));
    });
    this.#initializers = initializers;
    this.#readNodes(graph, 1);
    return { inputs, outputs, initializers };
  }

  readFunction(span: ByteSpan): void {
    this.#scanner.fields(span, (field) => {
      if (field.number === 7) this.#readNode(field, 2);
    });
  }

  #addInitializer(field: ProtoField, initializers: Map<string, OnnxTensor>): void {
    const scanner = this.#scanner;
    this.#countTensor();
    const tensor = readTensorProto(scanner, scanner.expect(field, WIRE.bytes, 'initializer'));
    if (initializers.has(tensor.name)) {
      throw scanner.refusal(
        'onnx-name-twice',
        `found the initializer ${quoted(tensor.name)} twice`,
      );
    }
    initializers.set(tensor.name, tensor);
  }

  #countTensor(): void {
    this.#tensors++;
    if (this.#tensors <= this.#mostTensors) return;
    throw this.#scanner.refusal('onnx-tensors', `has more than ${this.#mostTensors} tensors`);
  }

  #readNodes(graph: ByteSpan, depth: number): void {
    const scanner = this.#scanner;
    if (depth > MAX_DEPTH) {
      throw scanner.refusal('onnx-depth', `graphs are nested more than ${MAX_DEPTH} deep`);
    }
    scanner.fields(graph, (field) => {
      if (field.number === 1) this.#readNode(field, depth);
      else if (field.number === 15) this.counts.sparse++;
      else if (field.number === 5 && depth > 1) this.#addInner(field, 'initializer');
    });
  }

  #addInner(field: ProtoField, what: string): void {
    this.#countTensor();
    const span = this.#scanner.expect(field, WIRE.bytes, what);
    this.innerTensors.push(readTensorProto(this.#scanner, span));
  }

  #readNode(field: ProtoField, depth: number): void {
    const scanner = this.#scanner;
    const inputs: string[] = [];
    const node = { name: '', op: '', domain: '', output: '', scopes: '', inputs };
    let integers = NO_INTEGERS;
    scanner.fields(scanner.expect(field, WIRE.bytes, 'node'), (inner) => {
      const { number } = inner;
      if (number === 1) inputs.push(scanner.name(inner, 'an input'));
      else if (number === 2) node.output ||= scanner.name(inner, 'an output');
      else if (number === 3) node.name = scanner.name(inner, 'the name of a node');
      else if (number === 4) node.op = scanner.name(inner, 'op_type');
      else if (number === 7) node.domain = scanner.name(inner, 'domain');
      else if (number === 5) {
        const attribute = this.#readAttribute(inner, depth);
        if (KEPT_ATTRIBUTES.has(attribute.name)) {
          integers = { ...integers, [attribute.name]: attribute.integer };
        }
      } else if (number === 9) {
        const [key, value] = readEntry(
          scanner,
          scanner.expect(inner, WIRE.bytes, 'metadata_props'),
        );
        if (key === SCOPES_KEY) node.scopes = value;
      }
    });
    if (this.counts.nodes === MAX_NODES) {
      throw scanner.refusal('onnx-nodes', `has more than ${MAX_NODES} nodes`);
    }
    if (!this.counts.addNode(node.domain || 'ai.onnx', node.op)) {
      throw scanner.refusal('onnx-operators', 'has more than 10,000 different operators');
    }
    if (depth === 1) this.#addUses(node, integers);
  }

  #addUses(node: Omit<OnnxNodeUse, 'input' | 'integers'>, integers: OnnxNodeUse['integers']): void {
    for (let input = 0; input < node.inputs.length; input++) {
      const name = node.inputs[input] ?? '';
      if (!this.#initializers.has(name)) continue;
      const known = this.uses.get(name);
      // The output of an Identity is another name of the tensor.
      if (node.op === 'Identity') this.#countTensor();
      if (known === undefined) this.uses.set(name, [{ ...node, integers, input }]);
      else if (known.length < MAX_USES || node.op === 'Identity') {
        known.push({ ...node, integers, input });
      }
    }
  }

  #readAttribute(field: ProtoField, depth: number) {
    const scanner = this.#scanner;
    const attribute = { name: '', integer: 0 };
    scanner.fields(scanner.expect(field, WIRE.bytes, 'attribute'), (inner) => {
      const { number } = inner;
      if (number === 1) attribute.name = scanner.name(inner, 'the name of an attribute');
      else if (number === 3) attribute.integer = scanner.integer(inner, 'i');
      else if (number === 5 || number === 10) this.#addInner(inner, 'a tensor of an attribute');
      else if (number === 6 || number === 11) {
        this.counts.subgraphs++;
        this.#readNodes(scanner.expect(inner, WIRE.bytes, 'a graph of an attribute'), depth + 1);
      }
    });
    return attribute;
  }

  /** Type and shape of an input or an output; null for sequences, maps and the like. */
  #valueInfo(field: ProtoField, count: number): OnnxValueInfo {
    const scanner = this.#scanner;
    if (count >= MAX_VALUES) {
      throw scanner.refusal('onnx-values', `has more than ${MAX_VALUES} inputs or outputs`);
    }
    let name = '';
    let type: string | null = null;
    let shape: (number | string)[] | null = null;
    const within = (span: ProtoField, what: string, visit: (field: ProtoField) => void) =>
      scanner.fields(scanner.expect(span, WIRE.bytes, what), visit);
    within(field, 'a value', (inner) => {
      if (inner.number === 1) name = scanner.name(inner, 'the name of a value');
      if (inner.number !== 2) return;
      within(inner, 'a type', (kind) => {
        if (kind.number !== 1) return;
        within(kind, 'a tensor type', (part) => {
          if (part.number === 1)
            type = onnxTypeOf(scanner.integer(part, 'elem_type'))?.name ?? null;
          else if (part.number === 2) shape = this.#shape(part);
        });
      });
    });
    return { name, type, shape };
  }

  /** Sizes; a name is a symbolic one, an empty name an unknown one. */
  #shape(field: ProtoField): (number | string)[] {
    const scanner = this.#scanner;
    const sizes: (number | string)[] = [];
    scanner.fields(scanner.expect(field, WIRE.bytes, 'shape'), (dimension) => {
      if (dimension.number !== 1) return;
      let size: number | string = '';
      scanner.fields(scanner.expect(dimension, WIRE.bytes, 'dim'), (inner) => {
        if (inner.number === 1) size = scanner.integer(inner, 'dim_value');
        else if (inner.number === 2) size = scanner.name(inner, 'dim_param');
      });
      if (sizes.length < 64) sizes.push(size);
    });
    return sizes;
  }
}

const NO_INTEGERS: OnnxNodeUse['integers'] = {};

/** Attributes that say how a node reads a weight. */
const KEPT_ATTRIBUTES: ReadonlySet<string> = new Set(['transB', 'K', 'N', 'bits', 'block_size']);

/** Uses of a tensor that are kept. */
const MAX_USES = 4;

/** Scopes of modules around a node, as the exporter of PyTorch 2.5 and later writes them. */
const SCOPES_KEY = 'pkg.torch.onnx.name_scopes';

// Values.

function storedTensors(
  file: ByteFile,
  tensors: readonly OnnxTensor[],
  { open }: ExternalFiles,
): ReadonlyMap<string, StoredTensor> {
  const stored = new Map<string, StoredTensor>();
  /** Tensors at one place share a storage. */
  const places = new Map<string, StoredTensor['storage']>();
  for (const tensor of tensors) {
    const made = storedTensor(file, tensor, open, places);
    if (made) stored.set(tensor.name, made);
  }
  return stored;
}

/** Undefined for types whose values are not read, and for a number of elements that ends within a byte. */
function storedTensor(
  file: ByteFile,
  { type, shape, elements, bytes, data }: OnnxTensor,
  open: ExternalFiles['open'],
  places: Map<string, StoredTensor['storage']>,
): StoredTensor | undefined {
  const { dtype } = type;
  if (dtype === undefined || (elements * type.bits) % 8 !== 0) return undefined;
  const form = { dtype, shape, elements, bytes };
  if (data.kind === 'varints') return integerTensor(file, form, data.spans);
  const source = data.kind === 'external' ? open.get(data.location) : file;
  if (source === undefined) {
    const location = data.kind === 'external' ? data.location : '';
    const fill = () => {
      throw missingExternal(file, location);
    };
    return computedTensor(file, { ...form, fill });
  }
  const tensor = { kind: 'tensor', ...form, strides: contiguousStrides(shape), offset: 0 } as const;
  const storageAt = (position: number) => ({ file: source, position, bytes, isBigEndian: false });
  if (data.kind !== 'external') {
    // Fields of a message never share bytes.
    return { ...tensor, storage: storageAt(data.kind === 'data' ? data.span.from : 0) };
  }
  const key = `${data.location}\0${data.offset}\0${bytes}`;
  const storage = places.get(key) ?? storageAt(data.offset);
  if (bytes > 0) places.set(key, storage);
  return { ...tensor, storage };
}

/** Values stored as integers of variable length, decoded whole when they are first read. */
function integerTensor(
  file: ByteFile,
  form: Pick<StoredTensor, 'dtype' | 'shape' | 'elements' | 'bytes'>,
  spans: readonly ByteSpan[],
): StoredTensor {
  let decoded: Uint8Array | undefined;
  return computedTensor(file, {
    ...form,
    fill(target, position) {
      decoded ??= decodedIntegers(file, form, spans);
      target.set(decoded.subarray(position, position + target.length));
    },
  });
}

function decodedIntegers(
  file: ByteFile,
  { dtype, bytes }: Pick<StoredTensor, 'dtype' | 'bytes'>,
  spans: readonly ByteSpan[],
): Uint8Array {
  const scanner = new ProtoScanner(file);
  const words = Buffer.alloc(bytes);
  let at = 0;
  // The bits of the value: a float16 is stored as the integer of its bits.
  const width = WIDTHS[dtype] ?? 1;
  for (const span of spans) {
    scanner.varints(span, (low, high) => {
      if (width === 1) words[at] = low;
      else if (width === 2) words.writeUInt16LE(low & 0xffff, at);
      else words.writeUInt32LE(low, at);
      if (width === 8) words.writeUInt32LE(high, at + 4);
      at += width;
    });
  }
  return words;
}

/** Bytes of an element in memory. */
const WIDTHS: Readonly<Partial<Record<StoredTensor['dtype'], number>>> = {
  ...{ I64: 8, U64: 8, I32: 4, U32: 4, I16: 2, U16: 2, F16: 2, BF16: 2 },
};
