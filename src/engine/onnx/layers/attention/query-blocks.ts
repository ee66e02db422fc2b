/**
 * Attention of long sequences, in a loop over blocks of queries: its memory then grows with the number of keys, not with
 * its square. A block leaves out the keys that none of its queries sees, half of them without a window.
 *
 * Shapes: B batch, T tokens, n blocks of c queries, S keys of a block, d width of a head.
 */
import { LEAST_QUERIES, MOST_SCORES } from '../../../block-size.js';
import type { Context } from '../../context.js';
import type { GraphValue } from '../../graph.js';
import { GraphBuilder, LEFT_OUT } from '../../graph.js';
import { chunked, chunksOf, joinedChunks } from '../chunks.js';
import type { AttendedAtOnce, QueriesAndKeys, ScoreHeads } from './attended.js';
import { type PositionBias, type Sight, seenBias, sightOf } from './masks.js';

/**
 * Whether attention runs in blocks: only on the CPU, which has memory for whole loops, in float32. Calls of a decoder
 * are short, and an exported graph is simpler without a loop.
 */
export const runsInBlocks = ({ target, outputs, isForOthers }: Context): boolean =>
  target.provider === 'cpu' &&
  target.compute === 'f32' &&
  outputs.states === undefined &&
  !isForOthers;

/**
 * → [B, T, heads · valueDim].
 * @param attendAtOnce Adds the attention of a block to the graph of its context.
 */
export function attendInBlocks(
  context: Context,
  { heads, keyDim, valueDim }: ScoreHeads,
  { queries, keys, values }: QueriesAndKeys,
  bias: PositionBias,
  attendAtOnce: (block: Context, attended: AttendedAtOnce) => GraphValue,
): GraphValue {
  const { graph, once, sizes } = context;
  const { queriesPerBlock } = context.target;
  const blocks = chunksOf(context, `${heads} heads`, (batch) => {
    if (queriesPerBlock !== undefined) return graph.ints(queriesPerBlock);
    const tokens = graph.op('Gather', [sizes, graph.ints(1)]);
    const scores = graph.op('Mul', [graph.op('Mul', [batch, tokens]), graph.ints(heads)]);
    const fit = graph.op('Div', [graph.ints(MOST_SCORES), scores]);
    return graph.op('Max', [fit, graph.ints(LEAST_QUERIES)]);
  });
  const inBlocks = chunked(context, blocks, queries, heads * keyDim);
  const sight = sightOf(context, bias.window);
  /** [T] → [n · c]; positions after the last token are its own, so that they see something. */
  const extended = (positions: GraphValue) =>
    once(`extended:${positions}:${blocks.missing}`, () => {
      const pads = graph.op('Concat', [graph.ints(0), blocks.missing], { attributes: { axis: 0 } });
      return graph.op('Pad', [positions, pads], { attributes: { mode: 'edge' } });
    });
  const [own, first] = [extended(sight.queries), extended(sight.first)];

  const prefix = `${inBlocks}/`;
  const inner = new GraphBuilder(prefix);
  const index = inner.input('index', 'i64', []);
  const goesOn = inner.input('goes_on', 'bool', []);
  const start = inner.op('Mul', [blocks.length, index]); // [1]
  const end = inner.op('Add', [start, blocks.length]);
  const slice = (value: GraphValue, from: GraphValue, axis: number) =>
    inner.op('Slice', [value, from, end, inner.ints(axis)]);
  const seen = slice(first, start, 0);
  const from = inner.cast(inner.op('ReduceMin', [seen]), 'i64'); // [1]
  const view: Sight = {
    queries: slice(own, start, 0),
    first: seen,
    keys: slice(sight.keys, from, 0),
  };
  const block: Context = {
    ...context,
    graph: inner,
    sizes: prefix as GraphValue,
    once: (_, make) => make(),
  };
  const result = attendAtOnce(block, {
    queries: inner.op('Gather', [inBlocks, index], { attributes: { axis: 1 } }), // [B, c, ·]
    keys: slice(keys, from, 1),
    values: slice(values, from, 1),
    bias: seenBias(inner, view, bias, { first: 0, heads }),
  });
  inner.output(goesOn);
  inner.output(result);
  const body = inner.build('block of queries');
  const y = graph.op('Loop', [blocks.count, LEFT_OUT], { attributes: { body } }); // [n, B, c, ·]
  return joinedChunks(context, y, heads * valueDim);
}
