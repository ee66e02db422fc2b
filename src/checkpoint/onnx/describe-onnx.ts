/** Contents of an ONNX file other than its tensors: operators, inputs, outputs, and totals by type. */
import { groupBy, sumOf } from '../../base/values.js';
import type { ExternalFile } from './external-data.js';
import type { OnnxTensor } from './tensor-proto.js';

export interface OnnxValueInfo {
  /** Name of the value. */
  readonly name: string;
  /** `int64`; null for a value that is not a tensor, or of an unknown type. */
  readonly type: string | null;
  /** A text is a symbolic size, an empty one an unknown size; null where no shape is stated. @exact */
  readonly shape: readonly (number | string)[] | null;
}

export interface OnnxTypeTotals {
  /** Element type. */
  readonly type: string;
  /** Number of tensors. @count */
  readonly tensors: number;
  /** Their elements. @count */
  readonly elements: number;
  /** Their bytes. @count */
  readonly bytes: number;
}

export interface OnnxDescription {
  /** Version of the format. @integer */
  readonly irVersion: number;
  /** Program that wrote the file. */
  readonly producer: string;
  /** Its version. */
  readonly producerVersion: string;
  /** Operator sets that the graph uses. */
  readonly operatorSets: readonly {
    /** Domain of the operators. */
    readonly domain: string;
    /** Version of the operator set. @integer */
    readonly version: number;
  }[];
  /** Properties that the file names. */
  readonly metadata: Readonly<Record<string, string>>;
  /** Inputs of the graph. */
  readonly inputs: readonly OnnxValueInfo[];
  /** Outputs of the graph. */
  readonly outputs: readonly OnnxValueInfo[];
  /** Nodes of all graphs and functions. @count */
  readonly nodes: number;
  /** Most frequent first. */
  readonly operators: readonly {
    /** Domain of the operator. */
    readonly domain: string;
    /** Type of the operator. */
    readonly operator: string;
    /** Number of nodes. @count */
    readonly count: number;
  }[];
  /** Graphs in attributes of nodes: branches and bodies of loops. @count */
  readonly subgraphs: number;
  /** Functions of the file. @count */
  readonly functions: number;
  /** Initializers of the graph by type, most bytes first. */
  readonly initializers: readonly OnnxTypeTotals[];
  /** Constants of nodes, and initializers of subgraphs. */
  readonly constantTensors: readonly OnnxTypeTotals[];
  /** Sparse initializers, whose values are not read. @count */
  readonly sparseTensors: number;
  /** Files that hold values of the graph. */
  readonly externalFiles: readonly ExternalFile[];
}

/** A node that uses an initializer. */
export interface OnnxNodeUse {
  /** `/model/layers.0/self_attn/q_proj/MatMul` */
  readonly name: string;
  readonly op: string;
  readonly domain: string;
  /** First output. */
  readonly output: string;
  readonly inputs: readonly string[];
  /** Attributes that say how it reads a weight: `transB`, and `K`, `N`, `bits` and `block_size` of quantized ones. */
  readonly integers: Readonly<Record<string, number>>;
  /** Scopes of modules around the node, as a list of Python; empty where they are not stated. */
  readonly scopes: string;
  /** Number of the input that the initializer is. */
  readonly input: number;
}

/** The graph of an ONNX file, for readers that know models. */
export interface OnnxGraph {
  readonly description: OnnxDescription;
  /** Nodes of the main graph that use an initializer, by its name. */
  readonly uses: ReadonlyMap<string, readonly OnnxNodeUse[]>;
}

const MAX_OPERATORS = 10_000;

/** Counts of nodes and graphs. */
export class OnnxCounts {
  subgraphs = 0;
  sparse = 0;
  nodes = 0;
  /** In the order of their first nodes. */
  readonly #operators: { domain: string; operator: string; count: number }[] = [];
  readonly #byName = new Map<string, Map<string, { count: number }>>();

  /** False when there are too many different operators. */
  addNode(domain: string, operator: string): boolean {
    this.nodes++;
    const operators = this.#byName.get(domain) ?? new Map<string, { count: number }>();
    if (operators.size === 0) this.#byName.set(domain, operators);
    const known = operators.get(operator);
    if (known) known.count++;
    else {
      const first = { domain, operator, count: 1 };
      operators.set(operator, first);
      this.#operators.push(first);
    }
    return this.#operators.length <= MAX_OPERATORS;
  }

  description(initializers: readonly OnnxTensor[], constants: readonly OnnxTensor[]) {
    return {
      nodes: this.nodes,
      operators: this.#operators.toSorted((a, b) => b.count - a.count),
      subgraphs: this.subgraphs,
      initializers: totalsOf(initializers),
      constantTensors: totalsOf(constants),
      sparseTensors: this.sparse,
    };
  }
}

const totalsOf = (tensors: readonly OnnxTensor[]): OnnxTypeTotals[] =>
  Array.from(
    groupBy(tensors, ({ type }) => type.name),
    ([type, some]) => ({
      type,
      tensors: some.length,
      elements: sumOf(some, ({ elements }) => elements),
      bytes: sumOf(some, ({ bytes }) => bytes),
    }),
  ).sort((a, b) => b.bytes - a.bytes);
