/**
 * Products in float16, all between them in float32: what PyTorch's autocast makes of a model
 * (https://docs.pytorch.org/docs/stable/amp.html#cuda-op-specific-behavior). The operands of a product are
 * rounded to float16 and so is what it gives; norms, softmax, masks, rotary angles and activations see float32
 * alone. What is above 65,504 becomes infinite, in a weight as in a value.
 */
import type { Layer } from '../../architecture/layer.js';
import { walk } from '../../architecture/walk.js';
import type { ElementType, GraphProto, NodeProto } from './proto.js';
import { ELEMENT_TYPES } from './proto.js';

/**
 * Operators that are products of matrices, wherever they are from. All their inputs are of one type, so a
 * bias is rounded, too. `MultiHeadAttention` has a softmax inside, and adds a mask to its scores: where
 * products are in float16 it is taken apart, in scores.ts.
 */
const PRODUCTS: ReadonlySet<string> = new Set(['Gemm', 'MatMul', 'FusedMatMul']);

/**
 * Layers whose own products stay in float32; those of the layers that they hold do not. A router's choice
 * hangs by the last bit where two experts are nearly as good, and costs next to nothing: in float16 a token of
 * fixtures/minimind/v2-moe went elsewhere, which moved its logits by a third of the largest. Others compute it in
 * float32 for that reason, see "selective precision" in section 2.4 of https://arxiv.org/abs/2101.03961. The
 * state of a scan is a sum over all tokens.
 */
const EXACT: ReadonlySet<Layer['kind']> = new Set(['router', 'mamba'] as const);

/**
 * The graph of a layer with its products in float16. A value is rounded once, however many products read it,
 * and a weight is rounded when the session is made. Bodies of operators, such as that of a scan, stay as they
 * are.
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

/** The path of the layer that a node was made for, as the graph's builder has it. */
const layerOf = ({ name }: NodeProto): string => name.slice(0, name.lastIndexOf('/'));

/** What of a graph is there in float16, by the name of the same in float32: weights that are stored so. */
function roundedAlready({ nodes, initializers }: GraphProto): Map<string, string> {
  const stored = new Set(initializers.flatMap(({ name, type }) => (type === 'f16' ? [name] : [])));
  return new Map(
    nodes.flatMap(({ op, inputs: [from = ''], outputs: [to = ''] }) =>
      op === 'Cast' && stored.has(from) ? [[to, from] as const] : [],
    ),
  );
}

/** A product, its operands before it, and what it gives as float32 behind it. Adds to `rounded`. */
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

/** @param product For which it is. */
const cast = (from: string, to: string, type: 'f16' | 'f32', { name }: NodeProto): NodeProto => ({
  name: `${name}/${type}:${from}`,
  op: 'Cast',
  domain: '',
  inputs: [from],
  outputs: [to],
  attributes: { to: ELEMENT_TYPES[type] },
});

/** Without casts whose result nobody reads any more. */
function withoutUnread(nodes: readonly NodeProto[], graph: GraphProto): NodeProto[] {
  const read = new Set([...namesRead(nodes), ...graph.outputs.map(nameOf)]);
  return nodes.filter(({ op, outputs }) => op !== 'Cast' || outputs.some((each) => read.has(each)));
}

const nameOf = (output: GraphProto['outputs'][number]): string =>
  typeof output === 'string' ? output : output.name;

/** Those that bodies read of the graph around them included. */
function* namesRead(nodes: readonly NodeProto[]): Generator<string> {
  for (const { inputs, attributes } of nodes) {
    yield* inputs;
    for (const each of Object.values(attributes)) {
      if (typeof each === 'object' && 'nodes' in each) {
        yield* namesRead(each.nodes);
        yield* each.outputs.map(nameOf);
      }
    }
  }
}

const ELEMENT_BYTES = {
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
 * Bytes that the weights of a graph take where it is computed. A weight is held in each element type in which
 * something reads it: it is cast when the session is made, and what it was cast from is let go. With ONNX
 * Runtime 1.30 a weight of 115 MB took 110 MB of the WebGPU provider's memory in float32 and 56 MB in float16;
 * on the CPU, one of 256 MB took as much in either.
 * @param weights Names of the initializers that count.
 * @param hasFloat16 Whether what computes has products of float16. ONNX Runtime's CPU provider has none on
 * x64: it computes in float32 and rounds, and casts the weights back when the session is made.
 */
export function heldBytes(
  { nodes, initializers }: GraphProto,
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
      // Rows of a table are taken out of it as they are.
      else held.get(weight)?.add(hasFloat16 || type !== 'f16' || op === 'Gather' ? type : 'f32');
    }
  }
  return initializers.reduce((sum, { name, shape }) => {
    const elements = shape.reduce((product, size) => product * size, 1);
    const types = [...(held.get(name) ?? [])];
    return sum + elements * types.reduce((bytes, type) => bytes + ELEMENT_BYTES[type], 0);
  }, 0);
}
