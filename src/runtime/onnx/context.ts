import type { Layer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import type { Compute } from '../engine.js';
import type { Feed } from './feeds.js';
import type { GraphBuilder, Value } from './graph.js';
import type { Initializer } from './proto.js';

/** What leaves a graph under more than its own name. */
export interface Outputs {
  /** Of the blocks of a language model, by their paths; undefined when they are not wanted. */
  readonly blocks: Map<string, Value> | undefined;
  /** Of all layers, by their paths; undefined when they are not wanted. */
  readonly taps: Map<string, Value> | undefined;
  /** What the next call gets, by the name of its input; undefined when each call stands alone. */
  readonly states: Map<string, Value> | undefined;
}

/** Where a tensor is, or one part of a tensor [parts, …]. */
export type Place = (tensor: Param, part?: number) => Initializer;

/** What all functions that add to a graph share. */
export interface Shared {
  readonly graph: GraphBuilder;
  readonly outputs: Outputs;
  readonly place: Place;
  /** What products will be computed in; the graph is made in float32 first, see float16.ts. */
  readonly compute: Compute;
  /** Whether others than ONNX Runtime check the graph: what it has for itself is told by its domain then. */
  readonly isForOthers: boolean;
  /** An input of the graph; one of the same name is the same. */
  readonly feed: (name: string, feed: Feed) => Value;
  /** What `make` adds to the graph, added once for the same key. */
  readonly once: <Made>(key: unknown, make: () => Made) => Made;
}

/**
 * What the functions that add a layer need. Values between layers are rows [B·T, C], so that a linear
 * layer is one product. An SRTE's are rows [T, H]: they are the same for the whole batch.
 */
export interface Context extends Shared {
  /** Adds a layer, and what it holds. */
  readonly apply: (layer: Layer, ...inputs: readonly Value[]) => Value;
  /** What the rows are rows of: B and T, [2]. */
  readonly sizes: Value;
  /** The same for layers whose rows are rows of something else. */
  readonly withSizes: (sizes: Value) => Context;
}

/** A weight as float32. */
export function weightOf({ graph, place, once }: Shared, tensor: Param): Value {
  return once(tensor, () => asFloats(graph, place(tensor)));
}

/** One of the equal parts that a weight has along its first axis, as float32. */
export function weightPart({ graph, place, once }: Shared, tensor: Param, part: number): Value {
  return once(`${part}:${tensor.name}`, () => asFloats(graph, place(tensor, part)));
}

function asFloats(graph: GraphBuilder, initializer: Initializer): Value {
  const value = graph.initializer(initializer);
  return initializer.type === 'f32' ? value : graph.cast(value, 'f32');
}

/** Rows of a weight along an axis, as float32. A table of half precision is not converted as a whole. */
export function weightRows(
  { graph, place }: Shared,
  tensor: Param,
  indices: Value,
  axis: number,
): Value {
  const initializer = place(tensor);
  const table = graph.initializer(initializer);
  const rows = graph.op('Gather', [table, indices], { attributes: { axis } });
  return initializer.type === 'f32' ? rows : graph.cast(rows, 'f32');
}

/** Position of each token of the call, [T]. */
export const positionsOf = ({ feed }: Shared): Value => feed('positions', { kind: 'positions' });

/** Rows [B·T, …] → [B, T, ...rest], where a rest of −1 is what there is. */
export function unfolded({ graph, once, sizes }: Context, rows: Value, ...rest: number[]): Value {
  const shape = once(`shape:${sizes}:${rest}`, () =>
    graph.op('Concat', [sizes, graph.ints(...rest)], { attributes: { axis: 0 } }),
  );
  return graph.op('Reshape', [rows, shape]);
}

/** [B, T, …] → rows [B·T, …] of two dimensions. */
export const folded = ({ graph }: Shared, value: Value): Value =>
  graph.op('Flatten', [value], { attributes: { axis: 2 } });

/** A layer's rows as they leave the graph, [B, T, C]. */
export const whole = (context: Context, rows: Value): Value =>
  context.once(`whole:${rows}`, () => unfolded(context, rows, -1));

/** Value · number. */
export function scaled({ graph }: Shared, value: Value, factor: number): Value {
  return factor === 1 ? value : graph.op('Mul', [value, graph.float(factor)]);
}

/** The second and third of four dimensions change places. */
export const swapped = ({ graph }: Shared, value: Value): Value =>
  graph.op('Transpose', [value], { attributes: { perm: [0, 2, 1, 3] } });
