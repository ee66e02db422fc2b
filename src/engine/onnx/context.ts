import type { CacheType } from '../../base/tensor/dtype.js';
import type { WeightForm } from '../../base/tensor/group-quantization.js';
import type { Layer } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import type { Compute } from '../engine.js';
import type { Feed } from './feeds.js';
import type { GraphBuilder, GraphValue } from './graph.js';
import type { Initializer } from './proto.js';

export interface Target {
  /** Execution provider of ONNX Runtime. */
  readonly provider: 'cpu' | 'webgpu' | 'cuda' | 'dml' | 'coreml';
  /** Largest tensor in bytes that an operation can bind. */
  readonly maxBindingBytes: number;
  /** Number type of products; the graph is built in float32 first, see quantized-products.ts. */
  readonly compute: Compute;
  /** Queries of a block of attention, at most; by default as many as block-size.ts allows. */
  readonly queriesPerBlock?: number;
}

/** Guaranteed size that an operation can bind, where a provider limits it: by WebGPU's specification. */
export const GUARANTEED_BYTES = {
  cpu: Number.POSITIVE_INFINITY,
  webgpu: 2 ** 27,
  cuda: Number.POSITIVE_INFINITY,
  dml: Number.POSITIVE_INFINITY,
  coreml: Number.POSITIVE_INFINITY,
} as const satisfies Record<Target['provider'], number>;

/** The processor, without a limit below its memory. */
export const ON_CPU: Target = {
  provider: 'cpu',
  maxBindingBytes: GUARANTEED_BYTES.cpu,
  compute: 'f32',
};

/** Float32 elements of one tensor that an operation can bind. */
export const mostElements = ({ maxBindingBytes }: Target): number =>
  Math.floor(maxBindingBytes / Float32Array.BYTES_PER_ELEMENT);

/** Tokens for which scores should fit in one operation, if those of one head do. */
const TOKENS = 4096;

/** Number of heads whose scores one operation may compute. */
export const headsAtATime = (target: Target, heads: number): number =>
  Math.min(heads, Math.max(1, Math.floor(mostElements(target) / TOKENS ** 2)));

/** Splits a number into parts of at most the given size. */
export function parts(whole: number, largest: number): number[] {
  const size = Math.min(whole, largest);
  return Array.from({ length: Math.ceil(whole / size) }, (_, index) =>
    Math.min(size, whole - index * size),
  );
}

/** Additional outputs of a graph. */
export interface Outputs {
  /** Outputs of a language model's blocks, by their paths; undefined when not requested. */
  readonly blocks: Map<string, GraphValue> | undefined;
  /** Outputs of all layers, by their paths; undefined when not requested. */
  readonly taps: Map<string, GraphValue> | undefined;
  /** Tokens sent to each expert, [E], by the path of the router; undefined when not requested. */
  readonly sent?: Map<string, GraphValue> | undefined;
  /** States for the next call, by the name of its input; undefined without decoding. */
  readonly states: Map<string, GraphValue> | undefined;
  /** Rows to write into the cache, [T, B, groups, width], by the name of the input that reads it. */
  readonly newRows: Map<string, GraphValue>;
}

/** Some rows of a tensor [.., columns]; all dimensions but the last count rows. */
export interface Rows {
  readonly first: number;
  readonly count: number;
}

/** Location of a tensor, or of some rows of one: [count, columns]. */
export type InitializerLookup = (tensor: Param, rows?: Rows) => Initializer;

/** A weight of 8 or 4 bits, or some rows of one. */
export interface QuantizedWeight {
  readonly form: WeightForm;
  readonly rows: number;
  readonly columns: number;
  /** [rows, groups, bytes of a group] */
  readonly codes: Initializer;
  /** [rows, groups] */
  readonly scales: Initializer;
  /** Packed along a row, [rows, bytes]. */
  readonly zeroPoints: Initializer;
}

/** Location of a quantized weight, or of some rows of one; undefined for a weight in float32. */
export type QuantizedLookup = (tensor: Param, rows?: Rows) => QuantizedWeight | undefined;

/** State shared by all functions that add to a graph. */
export interface GraphContext {
  readonly graph: GraphBuilder;
  readonly outputs: Outputs;
  readonly place: InitializerLookup;
  readonly quantized: QuantizedLookup;
  readonly target: Target;
  /** Type of cached keys and values; undefined for float32. */
  readonly cacheType?: CacheType | undefined;
  /** Rows of a weight that one operation may bind; at least one. */
  readonly mostRows: (tensor: Param) => number;
  /** Whether other tools than ONNX Runtime check the graph: its own operators then need their domain. */
  readonly isForOthers: boolean;
  /** Adds an input of the graph; inputs of the same name are one. */
  readonly feed: (name: string, feed: Feed) => GraphValue;
  /** Result of `make`, added to the graph once per key. */
  readonly once: <Made>(key: unknown, make: () => Made) => Made;
}

/**
 * Context of the functions that add a layer. Values between layers are rows [B·T, C], so that a linear layer is one
 * product. An SRTE's rows are [T, H]: they are the same for the whole batch.
 */
export interface Context extends GraphContext {
  /** Adds a layer and its sublayers. */
  readonly apply: (layer: Layer, ...inputs: readonly GraphValue[]) => GraphValue;
  /** Sizes B and T of the rows, [2]. */
  readonly sizes: GraphValue;
  /** The same context for layers whose rows have other sizes. */
  readonly withSizes: (sizes: GraphValue) => Context;
}

export function weightOf({ graph, place, once }: GraphContext, tensor: Param): GraphValue {
  return once(tensor, () => asFloats(graph, place(tensor)));
}

/** Rows of a weight for one operation. */
interface WeightRows extends Rows {
  /** Float32 value, [count, columns]. */
  readonly value: GraphValue;
}

/** All rows of a weight, or some of them, in blocks small enough for one operation. */
export function weightBlocks(
  shared: GraphContext,
  tensor: Param,
  rows = allRows(tensor),
): WeightRows[] {
  return rowBlocks(shared, tensor, rows).map((block) => ({
    ...block,
    value: isWhole(tensor, block) ? weightOf(shared, tensor) : weightBlock(shared, tensor, block),
  }));
}

function weightBlock({ graph, place, once }: GraphContext, tensor: Param, rows: Rows): GraphValue {
  const key = `${rows.first}+${rows.count}:${tensor.name}`;
  return once(key, () => asFloats(graph, place(tensor, rows)));
}

function rowBlocks({ mostRows }: GraphContext, tensor: Param, { first, count }: Rows): Rows[] {
  let next = first;
  return parts(count, mostRows(tensor)).map((size) => {
    const start = next;
    next += size;
    return { first: start, count: size };
  });
}

export const columnsOf = ({ shape }: Param): number => shape.at(-1) ?? 1;

const allRows = (tensor: Param): Rows => ({
  first: 0,
  count: tensor.elements / columnsOf(tensor),
});

const isWhole = (tensor: Param, { count }: Rows): boolean =>
  tensor.shape.length === 2 && count === tensor.shape[0];

function asFloats(graph: GraphBuilder, initializer: Initializer): GraphValue {
  const value = graph.initializer(initializer);
  return initializer.type === 'f32' ? value : graph.cast(value, 'f32');
}

/** Number of rows of a weight that one operation may bind. */
export const rowsWithin = (target: Target, tensor: Param): number =>
  Math.max(1, Math.floor(mostElements(target) / columnsOf(tensor)));

/**
 * Rows of a weight [.., rows, columns] with all other dimensions 1, as float32 [n, columns]. A table of half precision
 * is not converted as a whole.
 * @param indices [n], of int32 where the table may be too large for one operation.
 */
export function weightRows(shared: GraphContext, tensor: Param, indices: GraphValue): GraphValue {
  const { graph, place } = shared;
  const [whole, ...others] = rowBlocks(shared, tensor, allRows(tensor));
  if (others.length === 0) return gathered(graph, place(tensor), indices);
  const found = (rows: Rows) => {
    const offset = graph.op('Sub', [indices, graph.int32(rows.first)]);
    const within = graph.op('Min', [
      graph.op('Max', [offset, graph.int32(0)]),
      graph.int32(rows.count - 1),
    ]);
    return gathered(graph, place(tensor, rows), within);
  };
  return others.reduce(
    (before, rows) => {
      const isHere = graph.op('GreaterOrEqual', [indices, graph.int32(rows.first)]);
      return graph.op('Where', [
        graph.op('Unsqueeze', [isHere, graph.ints(1)]),
        found(rows),
        before,
      ]);
    },
    found(whole ?? allRows(tensor)),
  );
}

function gathered(graph: GraphBuilder, table: Initializer, indices: GraphValue): GraphValue {
  const axis = table.shape.length - 2;
  const rows = graph.op('Gather', [graph.initializer(table), indices], { attributes: { axis } });
  const flat = axis === 0 ? rows : graph.op('Squeeze', [rows, graph.ints(0)]);
  return table.type === 'f32' ? flat : graph.cast(flat, 'f32');
}

/**
 * Whether keys and values are cached in place: only on the CPU in float32, without taps. Other devices have their own
 * memory, so each call would copy the cache. Products of float16 would convert all of it. Taps need the keys of all
 * tokens.
 */
export const cachesInPlace = ({ outputs, target }: GraphContext): boolean =>
  outputs.states !== undefined &&
  outputs.taps === undefined &&
  target.provider === 'cpu' &&
  target.compute === 'f32';

/** Position of each token of the call, [T]. */
export const feedPositions = ({ feed }: GraphContext): GraphValue =>
  feed('positions', { kind: 'positions' });

/** Rows [B·T, …] → [B, T, ...rest], where a rest of −1 is inferred. */
export function unflattenedRows(
  { graph, once, sizes }: Context,
  rows: GraphValue,
  ...rest: number[]
): GraphValue {
  const shape = once(`shape:${sizes}:${rest}`, () =>
    graph.op('Concat', [sizes, graph.ints(...rest)], { attributes: { axis: 0 } }),
  );
  const { batch, tokens } = sizeNames(sizes);
  const known = rest.map((size) => (size === -1 ? '' : size));
  return graph.sized(graph.op('Reshape', [rows, shape]), [batch, tokens, ...known]);
}

/** Names of the sizes B, T and B·T in a graph. */
export const sizeNames = (sizes: GraphValue) => ({
  batch: `B:${sizes}`,
  tokens: `T:${sizes}`,
  rows: `R:${sizes}`,
});

/** [B, T, …] → rows [B·T, …] of two dimensions. */
export const flattened = (
  { graph, sizes }: Pick<Context, 'graph' | 'sizes'>,
  value: GraphValue,
): GraphValue =>
  graph.sized(graph.op('Flatten', [value], { attributes: { axis: 2 } }), [
    sizeNames(sizes).rows,
    '',
  ]);

/** A layer's rows as the graph outputs them, [B, T, C]. */
export const whole = (context: Context, rows: GraphValue): GraphValue =>
  context.once(`whole:${rows}`, () => unflattenedRows(context, rows, -1));

export function scaledBy({ graph }: GraphContext, value: GraphValue, factor: number): GraphValue {
  return factor === 1 ? value : graph.op('Mul', [value, graph.float(factor)]);
}

/** Swaps the second and third of four dimensions. */
export const swapped = ({ graph }: GraphContext, value: GraphValue): GraphValue =>
  graph.op('Transpose', [value], { attributes: { perm: [0, 2, 1, 3] } });
