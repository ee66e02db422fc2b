/** Keys and values as a cache of another type returns them; see `cache-types.ts`. */
import { CACHE_BLOCK } from '../../../../model/budget/cache-widths.js';
import type { Context } from '../../context.js';
import type { GraphValue } from '../../graph.js';

/** Smallest divisor of a block, far below the scales of float16: a block of zeros stays zeros. */
const LEAST = 1e-30;

/** Rounds rows of heads, [B, T, K · d], to the type of the cache; unchanged without one. */
export function asCached(context: Context, rows: GraphValue): GraphValue {
  const { graph, cacheType } = context;
  switch (cacheType) {
    case undefined:
      return rows;
    case 'f16':
      return graph.cast(graph.cast(rows, 'f16'), 'f32');
    case 'q8_0':
      return inBlocks(context, rows, (blocks) => eightBits(context, blocks));
    case 'q4_0':
      return inBlocks(context, rows, (blocks) => fourBits(context, blocks));
  }
}

function inBlocks(
  { graph }: Context,
  rows: GraphValue,
  round: (blocks: GraphValue) => GraphValue,
): GraphValue {
  const blocks = graph.op('Reshape', [rows, graph.ints(0, 0, -1, CACHE_BLOCK)]);
  return graph.op('Reshape', [round(blocks), graph.op('Shape', [rows])]);
}

/** Codes times the scale as float16 stores it. */
const scaled = ({ graph }: Context, codes: GraphValue, scale: GraphValue): GraphValue =>
  graph.op('Mul', [codes, graph.cast(graph.cast(scale, 'f16'), 'f32')]);

/** Q8_0: 127 steps to the largest value, halves away from zero (ggml: quantize_row_q8_0_ref). */
function eightBits(context: Context, blocks: GraphValue): GraphValue {
  const { graph } = context;
  const size = graph.op('ReduceMax', [graph.op('Abs', [blocks]), graph.ints(-1)]);
  const scale = graph.op('Div', [size, graph.float(127)]);
  const inverse = graph.op('Div', [graph.float(1), graph.op('Max', [scale, graph.float(LEAST)])]);
  const steps = graph.op('Mul', [blocks, inverse]);
  const whole = graph.op('Floor', [graph.op('Add', [graph.op('Abs', [steps]), graph.float(0.5)])]);
  return scaled(context, graph.op('Mul', [graph.op('Sign', [steps]), whole]), scale);
}

/** Q4_0: the value of largest size has the code −8 (ggml: quantize_row_q4_0_ref). */
function fourBits(context: Context, blocks: GraphValue): GraphValue {
  const { graph } = context;
  const high = graph.op('ReduceMax', [blocks, graph.ints(-1)]);
  const low = graph.op('ReduceMin', [blocks, graph.ints(-1)]);
  const isHigh = graph.op('Greater', [high, graph.op('Neg', [low])]);
  const scale = graph.op('Div', [graph.op('Where', [isHigh, high, low]), graph.float(-8)]);
  const isZero = graph.op('Less', [graph.op('Abs', [scale]), graph.float(LEAST)]);
  const inverse = graph.op('Div', [
    graph.float(1),
    graph.op('Where', [isZero, graph.float(1), scale]),
  ]);
  const steps = graph.op('Add', [graph.op('Mul', [blocks, inverse]), graph.float(8.5)]);
  const codes = graph.op('Min', [graph.op('Floor', [steps]), graph.float(15)]);
  return scaled(context, graph.op('Sub', [codes, graph.float(8)]), scale);
}
