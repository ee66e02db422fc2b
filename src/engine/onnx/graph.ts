import {
  type Attribute,
  ELEMENT_TYPES,
  type ElementType,
  type GraphProto,
  type Initializer,
  type NodeProto,
  type ValueInfo,
} from './proto.js';

/** Name of a value in a graph under construction. */
export type GraphValue = string & { readonly graphValue: true };

/** Name of an omitted input of a node. */
export const LEFT_OUT = '' as GraphValue;

interface NodeOptions {
  readonly attributes?: Readonly<Record<string, Attribute>>;
  /** Domain of the operator; ONNX's own when absent. */
  readonly domain?: string;
}

/** Builds one ONNX graph, node by node. Names are generated and have no meaning outside. */
export class GraphBuilder {
  readonly #nodes: NodeProto[] = [];
  readonly #initializers = new Map<string, Initializer>();
  readonly #inputs = new Map<string, ValueInfo>();
  readonly #outputs = new Map<GraphValue, GraphValue>();
  readonly #declared: ValueInfo[] = [];
  readonly #sized = new Map<GraphValue, ValueInfo>();
  readonly #prefix: string;
  #scope = '';
  #count = 0;

  /** @param prefix Prefix of all names, so that those of a body differ from those of the graph around it. */
  constructor(prefix = '') {
    this.#prefix = prefix;
  }

  /** Names the nodes that `build` adds after a layer. */
  within<T>(scope: string, build: () => T): T {
    const outer = this.#scope;
    this.#scope = scope;
    const result = build();
    this.#scope = outer;
    return result;
  }

  /** A node with one output. */
  op(op: string, inputs: readonly GraphValue[], options: NodeOptions = {}): GraphValue {
    const output = this.#name(op);
    this.#add(op, inputs, [output], options);
    return output;
  }

  /** A node with two outputs. */
  pair(
    op: string,
    inputs: readonly GraphValue[],
    options: NodeOptions = {},
  ): [GraphValue, GraphValue] {
    const outputs: [GraphValue, GraphValue] = [this.#name(op), this.#name(op)];
    this.#add(op, inputs, outputs, options);
    return outputs;
  }

  /** Splits a value into columns of these sizes. */
  split<const Sizes extends readonly number[]>(
    value: GraphValue,
    sizes: Sizes,
  ): { -readonly [Part in keyof Sizes]: GraphValue } {
    const outputs = sizes.length === 1 ? [value] : sizes.map(() => this.#name('Split'));
    if (outputs.length > 1) {
      this.#add('Split', [value, this.ints(...sizes)], outputs, { attributes: { axis: -1 } });
    }
    return outputs as { -readonly [Part in keyof Sizes]: GraphValue };
  }

  /** Splits a value along an axis into parts whose sizes each run determines: `sizes` [parts]. */
  splitBy(
    value: GraphValue,
    sizes: GraphValue,
    { parts, axis }: { readonly parts: number; readonly axis: number },
  ): GraphValue[] {
    const outputs = Array.from({ length: parts }, () => this.#name('Split'));
    this.#add('Split', [value, sizes], outputs, { attributes: { axis } });
    return outputs;
  }

  /** Joins values along the columns, the reverse of `split`. */
  joined(parts: readonly GraphValue[]): GraphValue {
    const [first = LEFT_OUT, ...others] = parts;
    return others.length > 0 ? this.op('Concat', parts, { attributes: { axis: -1 } }) : first;
  }

  /** An input; one of the same name is declared once. */
  input(name: string, type: ElementType, shape: ValueInfo['shape']): GraphValue {
    const value = `${this.#prefix}${name}` as GraphValue;
    this.#inputs.set(value, { name: value, type, shape });
    return value;
  }

  /** Makes a value an output of the graph, and returns the output's name. */
  output(value: GraphValue): GraphValue {
    const known = this.#outputs.get(value);
    if (known !== undefined) return known;
    // ONNX does not allow an input as an output: a node has to copy it.
    const given = this.#inputs.has(value) ? this.op('Identity', [value]) : value;
    this.#outputs.set(value, given);
    return given;
  }

  /** Makes a value an output with a given name, type and shape. */
  declareOutput(value: GraphValue, output: ValueInfo): void {
    this.#add('Identity', [value], [output.name as GraphValue], {});
    this.#declared.push(output);
  }

  /**
   * Declares the sizes of a value that ONNX Runtime cannot infer. ONNX Runtime reuses memory for values of the same
   * sizes, and compares each value with all free memory. With unknown sizes, nothing is reused, and the time of the
   * search is quadratic in the number of nodes.
   * @param shape Equal names are equal sizes, in every run. An empty name is a size that is inferred.
   */
  sized(value: GraphValue, shape: ValueInfo['shape'], type: ElementType = 'f32'): GraphValue {
    this.#sized.set(value, { name: value, type, shape });
    return value;
  }

  /** A tensor in the graph; one of the same name is stored once. */
  initializer(initializer: Initializer): GraphValue {
    this.#initializers.set(initializer.name, initializer);
    return initializer.name as GraphValue;
  }

  /** Integers, for shapes, axes and bounds [n]. */
  ints(...values: readonly number[]): GraphValue {
    return this.#integers(values, [values.length]);
  }

  /** An integer without dimensions. */
  int(value: number): GraphValue {
    return this.#integers([value], []);
  }

  /** An integer of 32 bits without dimensions. */
  int32(value: number): GraphValue {
    const raw = new Uint8Array(Int32Array.of(value).buffer);
    const name = `${this.#prefix}int32:${value}`;
    return this.initializer({ name, type: 'i32', shape: [], bytes: { raw } });
  }

  /** Floats [n]. */
  floats(name: string, values: Float32Array): GraphValue {
    const raw = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    return this.initializer({
      name: `${this.#prefix}${name}`,
      type: 'f32',
      shape: [values.length],
      bytes: { raw },
    });
  }

  /** Floats of double precision [n]. */
  doubles(...values: readonly number[]): GraphValue {
    const raw = new Uint8Array(Float64Array.from(values).buffer);
    const name = `${this.#prefix}doubles:${values}`;
    return this.initializer({ name, type: 'f64', shape: [values.length], bytes: { raw } });
  }

  /** A float without dimensions. */
  float(value: number): GraphValue {
    const raw = new Uint8Array(Float32Array.of(value).buffer);
    return this.initializer({
      name: `${this.#prefix}float:${value}`,
      type: 'f32',
      shape: [],
      bytes: { raw },
    });
  }

  cast(value: GraphValue, to: ElementType): GraphValue {
    return this.op('Cast', [value], { attributes: { to: ELEMENT_TYPES[to] } });
  }

  /** The graph, without nodes whose results nothing reads. ONNX Runtime would run them. */
  build(name: string): GraphProto {
    const outputs = [...this.#outputs.values(), ...this.#declared.map((output) => output.name)];
    return {
      name,
      nodes: usedNodes(this.#nodes, outputs),
      initializers: [...this.#initializers.values()],
      inputs: [...this.#inputs.values()],
      outputs: [...this.#outputs.values(), ...this.#declared],
      sized: [...this.#sized.values()],
    };
  }

  #add(
    op: string,
    inputs: readonly GraphValue[],
    outputs: readonly GraphValue[],
    { attributes = {}, domain = '' }: NodeOptions,
  ): void {
    const name = `${this.#scope}/${outputs[0]}`;
    this.#nodes.push({ name, op, domain, inputs, outputs, attributes });
  }

  #integers(values: readonly number[], shape: readonly number[]): GraphValue {
    const raw = new Uint8Array(BigInt64Array.from(values, BigInt).buffer);
    const name = `${this.#prefix}ints:[${shape}]:${values}`;
    return this.initializer({ name, type: 'i64', shape, bytes: { raw } });
  }

  #name(op: string): GraphValue {
    return `${this.#prefix}${op}.${this.#count++}` as GraphValue;
  }
}

/** Nodes from which an output follows, in their order. */
function usedNodes(nodes: readonly NodeProto[], outputs: readonly string[]): NodeProto[] {
  const read = new Set(outputs);
  const used = nodes.toReversed().filter((node) => {
    if (!node.outputs.some((output) => read.has(output))) return false;
    for (const value of valuesReadBy(node)) read.add(value);
    return true;
  });
  return used.reverse();
}

/** Inputs of a node, and the values of the graph around them that its bodies use. */
function valuesReadBy({ inputs, attributes }: NodeProto): readonly string[] {
  const bodies = Object.values(attributes).filter(isGraph);
  return [...inputs, ...bodies.flatMap(valuesReadIn)];
}

/** All values that the nodes and outputs of a body name. Names of the body itself differ from those around it. */
const valuesReadIn = ({ nodes, outputs }: GraphProto): readonly string[] => [
  ...nodes.flatMap(valuesReadBy),
  ...outputs.map((output) => (typeof output === 'string' ? output : output.name)),
];

const isGraph = (attribute: Attribute): attribute is GraphProto =>
  typeof attribute === 'object' && 'nodes' in attribute;
