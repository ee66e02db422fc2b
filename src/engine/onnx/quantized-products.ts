/**
 * Products and lookups with weights of 8 or 4 bits, by ONNX Runtime's own operators. `MatMulNBits` at accuracy level 4
 * rounds activations to 8 bits too; the other levels took 4 to 90 times as long on AVX2.
 */

import type { QuantizedRows, WeightForm } from '../../base/tensor/group-quantization.js';
import { groupsIn, packCodes, packedBytes } from '../../base/tensor/group-quantization.js';
import type { Layer } from '../../model/architecture/layer.js';
import { walk } from '../../model/architecture/walk.js';
import type { WeightMatrix } from '../../model/architecture/weight-matrices.js';
import { quantizedPieces } from '../weights/quantized-weights.js';
import type { WeightSource } from '../weights/weights.js';
import type { GraphContext, QuantizedWeight, Rows } from './context.js';
import type { GraphValue } from './graph.js';
import { LEFT_OUT } from './graph.js';
import type { ElementType, GraphProto, Initializer, NodeProto } from './proto.js';
import { ELEMENT_TYPES, MICROSOFT } from './proto.js';

/** Activations as integers of 8 bits. */
const ACCURACY_LEVEL = 4;

/** x [R, in] · weightᵀ [in, out] plus the bias [out]. */
export function quantizedProduct(
  { graph }: GraphContext,
  { form, rows, columns, ...stored }: QuantizedWeight,
  x: GraphValue,
  bias: GraphValue | undefined,
): GraphValue {
  const [codes, scales, zeroPoints] = [stored.codes, stored.scales, stored.zeroPoints].map((each) =>
    graph.initializer(each),
  ) as [GraphValue, GraphValue, GraphValue];
  const inputs = [x, codes, scales, zeroPoints, ...(bias ? [LEFT_OUT, bias] : [])];
  return graph.op('MatMulNBits', inputs, {
    domain: MICROSOFT,
    attributes: {
      K: columns,
      N: rows,
      bits: form.bits,
      block_size: form.group,
      accuracy_level: ACCURACY_LEVEL,
    },
  });
}

/** Name of the codes of a table as a matrix, which has the bytes of `codes`. */
export const lookupName = (codes: Initializer): string => `${codes.name}:rows`;

/** Rows of a table, [n, columns]. @param indices [n] */
export function quantizedLookup(
  { graph }: GraphContext,
  { form, rows, columns, codes, scales, zeroPoints }: QuantizedWeight,
  indices: GraphValue,
): GraphValue {
  const width = groupsIn(columns, form) * form.group;
  const flat: Initializer = {
    ...codes,
    name: lookupName(codes),
    shape: [rows, packedBytes(width, form.bits)],
  };
  const inputs = [flat, scales, zeroPoints].map((each) => graph.initializer(each)) as [
    GraphValue,
    GraphValue,
    GraphValue,
  ];
  const found = graph.op('GatherBlockQuantized', [inputs[0], indices, inputs[1], inputs[2]], {
    domain: MICROSOFT,
    attributes: { bits: form.bits, block_size: form.group, gather_axis: 0, quantize_axis: 1 },
  });
  if (width === columns) return found;
  const bounds = [graph.ints(0), graph.ints(columns), graph.ints(1)] as const;
  return graph.op('Slice', [found, ...bounds]);
}

// The three tensors of a quantized matrix.

export const QUANTIZED_PARTS = ['codes', 'scales', 'zeroPoints'] as const;

export type QuantizedPart = (typeof QUANTIZED_PARTS)[number];

/** One of the tensors: its type, its shape for `rows` rows, and its bytes of these. */
interface PartLayout {
  readonly type: ElementType;
  readonly shape: readonly number[];
  readonly rowBytes: number;
}

export function partLayout(
  part: QuantizedPart,
  { columns }: Pick<WeightMatrix, 'columns'>,
  form: WeightForm,
  rows: number,
): PartLayout {
  const groups = groupsIn(columns, form);
  switch (part) {
    case 'codes': {
      const blob = packedBytes(form.group, form.bits);
      return { type: 'u8', shape: [rows, groups, blob], rowBytes: groups * blob };
    }
    case 'scales':
      return {
        type: 'f32',
        shape: [rows, groups],
        rowBytes: groups * Float32Array.BYTES_PER_ELEMENT,
      };
    case 'zeroPoints': {
      const rowBytes = packedBytes(groups, form.bits);
      return { type: 'u8', shape: [rows, rowBytes], rowBytes };
    }
  }
}

/** Bytes of one of the tensors, for quantized rows. */
export function partBytes(
  part: QuantizedPart,
  { columns, codes, scales, zeroPoints }: QuantizedRows,
  form: WeightForm,
): Uint8Array {
  const groups = groupsIn(columns, form);
  switch (part) {
    case 'codes':
      return packCodes(codes, groups * form.group, form.bits);
    case 'scales':
      return new Uint8Array(Float32Array.from(scales).buffer);
    case 'zeroPoints':
      return packCodes(zeroPoints, groups, form.bits);
  }
}

/** Bytes of one of the tensors of a matrix, in pieces. */
export function* partPieces(
  part: QuantizedPart,
  source: WeightSource,
  matrix: WeightMatrix,
  form: WeightForm,
  { first, count }: Rows = { first: 0, count: matrix.rows },
): Generator<Uint8Array> {
  for (const piece of quantizedPieces(source, matrix, form, first, count)) {
    yield partBytes(part, piece, form);
  }
}

/**
 * The initializers of a quantized matrix, or of some rows of it.
 * @param place Initializer of a part of all rows.
 */
export function quantizedWeight(
  matrix: WeightMatrix,
  form: WeightForm,
  rows: Rows | undefined,
  place: (part: QuantizedPart) => Initializer,
): QuantizedWeight {
  const { first, count } = rows ?? { first: 0, count: matrix.rows };
  const initializer = (part: QuantizedPart): Initializer => {
    const whole = place(part);
    if (rows === undefined) return whole;
    const { shape, rowBytes } = partLayout(part, matrix, form, count);
    const { bytes } = whole;
    const [from, length] = [first * rowBytes, count * rowBytes];
    return {
      ...whole,
      name: `${whole.name}:${first}+${count}`,
      shape,
      bytes:
        'raw' in bytes
          ? { raw: bytes.raw.subarray(from, from + length) }
          : { ...bytes, offset: bytes.offset + from, length },
    };
  };
  return {
    form,
    rows: count,
    columns: matrix.columns,
    codes: initializer('codes'),
    scales: initializer('scales'),
    zeroPoints: initializer('zeroPoints'),
  };
}

// Products in float16 and everything else in float32, like PyTorch's autocast
// (https://docs.pytorch.org/docs/stable/amp.html#cuda-op-specific-behavior). Operands and results of a product are
// rounded to float16; norms, softmax, masks, rotary angles and activations use float32. Weights and values above 65,504
// become infinite.

/**
 * Operators that are matrix products, from any layer. All their inputs are of one type, so a bias is rounded, too.
 * `MultiHeadAttention` contains a softmax and adds a mask to its scores: for float16 products scores.ts splits it into
 * steps.
 */
const PRODUCTS: ReadonlySet<string> = new Set(['Gemm', 'MatMul', 'FusedMatMul']);

/**
 * Layers whose own products stay in float32, but not those of their sublayers. A router is cheap, and its choice
 * depends on the last bit when two experts score almost the same. In float16 a token of fixtures/minimind/v2-moe was
 * routed to another expert, which changed its logits by a third of the largest. See "selective precision" in section
 * 2.4 of https://arxiv.org/abs/2101.03961. The state of a scan is a sum over all tokens.
 */
const EXACT: ReadonlySet<Layer['kind']> = new Set([
  'router',
  'mamba',
  'headedMamba',
  'stateSpaceDual',
] as const);

/**
 * The graph of a layer with its products in float16. A value is rounded once for all products that read it, a weight
 * when the session is created. Bodies of operators, such as a scan's, stay unchanged.
 */
export function withFloat16Products(graph: GraphProto, layer: Layer): GraphProto {
  const rounded = roundedAlready(graph);
  const exact = new Set(
    walk(layer).flatMap(({ layer: { kind, name } }) => (EXACT.has(kind) ? [name] : [])),
  );
  const nodes = graph.nodes.flatMap((node) =>
    PRODUCTS.has(node.op) && !exact.has(layerOf(node)) ? inFloat16(node, rounded) : [node],
  );
  return { ...graph, nodes: withoutUnread(nodes, graph) };
}

/** Path of the layer of a node, encoded in its name by the graph builder. */
const layerOf = ({ name }: NodeProto): string => name.slice(0, name.lastIndexOf('/'));

/** Names of the weights stored in float16, by the name of their float32 value. */
function roundedAlready({ nodes, initializers }: GraphProto): Map<string, string> {
  const stored = new Set(initializers.flatMap(({ name, type }) => (type === 'f16' ? [name] : [])));
  return new Map(
    nodes.flatMap(({ op, inputs: [from = ''], outputs: [to = ''] }) =>
      op === 'Cast' && stored.has(from) ? [[to, from] as const] : [],
    ),
  );
}

/** A product with casts of its operands before it and of its result after it. Adds to `rounded`. */
function inFloat16(product: NodeProto, rounded: Map<string, string>): NodeProto[] {
  const operands = new Set(product.inputs.filter((each) => each !== '' && !rounded.has(each)));
  const before = [...operands].map((operand) => {
    rounded.set(operand, `${operand}.f16`);
    return cast(operand, `${operand}.f16`, 'f16', product);
  });
  const [output = ''] = product.outputs;
  rounded.set(output, `${output}.f16`);
  const inputs = product.inputs.map((each) => rounded.get(each) ?? each);
  return [
    ...before,
    { ...product, inputs, outputs: [`${output}.f16`] },
    cast(`${output}.f16`, output, 'f32', product),
  ];
}

/** @param product The product that needs the cast. */
const cast = (from: string, to: string, type: 'f16' | 'f32', { name }: NodeProto): NodeProto => ({
  name: `${name}/${type}:${from}`,
  op: 'Cast',
  domain: '',
  inputs: [from],
  outputs: [to],
  attributes: { to: ELEMENT_TYPES[type] },
});

/** Nodes without casts whose result is unused. */
function withoutUnread(nodes: readonly NodeProto[], graph: GraphProto): NodeProto[] {
  const read = new Set([...namesRead(nodes), ...graph.outputs.map(outputName)]);
  return nodes.filter(({ op, outputs }) => op !== 'Cast' || outputs.some((each) => read.has(each)));
}

export const outputName = (output: GraphProto['outputs'][number]): string =>
  typeof output === 'string' ? output : output.name;

/** Names that nodes read, including those that bodies read from the graph around them. */
function* namesRead(nodes: readonly NodeProto[]): Generator<string> {
  for (const { inputs, attributes } of nodes) {
    yield* inputs;
    for (const each of Object.values(attributes)) {
      if (typeof each === 'object' && 'nodes' in each) {
        yield* namesRead(each.nodes);
        yield* each.outputs.map(outputName);
      }
    }
  }
}

const ELEMENT_BYTES = {
  u8: 1,
  f16: 2,
  bf16: 2,
  f32: 4,
  i32: 4,
  bool: 1,
  i64: 8,
  f64: 8,
} as const satisfies Record<ElementType, number>;

const TYPES_BY_NUMBER: ReadonlyMap<unknown, ElementType> = new Map(
  (Object.keys(ELEMENT_TYPES) as ElementType[]).map((type) => [ELEMENT_TYPES[type], type]),
);

/**
 * Bytes of a graph's weights on the device. A weight is held in each element type that an operator reads: it is cast
 * when the session is created, and the original is freed. With ONNX Runtime 1.30 a weight of 115 MB took 110 MB of the
 * WebGPU provider's memory in float32 and 56 MB in float16; on the CPU, one of 256 MB took the same in either.
 * @param weights Names of the initializers that count.
 * @param hasFloat16 Whether the provider has products of float16. ONNX Runtime's CPU provider has none on x64: it
 * computes in float32 and rounds, and casts the weights back when the session is created.
 */
export function heldBytes(
  { nodes, initializers }: Pick<GraphProto, 'nodes' | 'initializers'>,
  weights: ReadonlySet<string>,
  hasFloat16: boolean,
): number {
  const held = new Map([...weights].map((name) => [name, new Set<ElementType>()]));
  const known = new Map(
    initializers
      .filter(({ name }) => weights.has(name))
      .map(({ name, type }) => [name, { weight: name, type }] as const),
  );
  for (const { op, inputs, outputs, attributes } of nodes) {
    for (const { weight, type } of inputs.flatMap((each) => known.get(each) ?? [])) {
      const casted = op === 'Cast' ? TYPES_BY_NUMBER.get(attributes.to) : undefined;
      if (casted !== undefined) known.set(outputs[0] ?? '', { weight, type: casted });
      // Gather reads rows of a table in their stored type.
      else held.get(weight)?.add(hasFloat16 || type !== 'f16' || op === 'Gather' ? type : 'f32');
    }
  }
  return initializers.reduce((sum, { name, shape }) => {
    const elements = shape.reduce((product, size) => product * size, 1);
    const types = [...(held.get(name) ?? [])];
    return sum + elements * types.reduce((bytes, type) => bytes + ELEMENT_BYTES[type], 0);
  }, 0);
}
