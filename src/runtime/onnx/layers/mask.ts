import type { Alibi, Window } from '../../../architecture/layer.js';
import { windowKey } from '../../../architecture/masks.js';
import type { Context } from '../context.js';
import { cachesInPlace, feedPositions, sizeNames } from '../context.js';
import type { GraphValue } from '../graph.js';

/** Additive mask of the scores: 0 where a token sees a key, else −∞. [1, 1, T, S] */
export function mask(context: Context, window: Window | undefined): GraphValue {
  const key = windowKey(window);
  return context.once(`mask:${key}`, () => {
    const { graph } = context;
    const keys = keyPositions(context, window);
    const first = context.feed(`first.${key}`, { kind: 'firstKeys', window });
    const visible = graph.op('And', [
      graph.op('LessOrEqual', [keys, column(context, feedPositions(context))]),
      graph.op('GreaterOrEqual', [keys, column(context, first)]),
    ]);
    const hidden = graph.float(Number.NEGATIVE_INFINITY);
    const scores = graph.op('Where', [visible, graph.float(0), hidden]);
    return graph.op('Unsqueeze', [scores, graph.ints(0, 1)]);
  });
}

/** Some of an attention's heads. */
export interface HeadRange {
  readonly first: number;
  readonly heads: number;
}

/** The same mask plus a distance penalty per head. [1, heads, T, S] */
export function maskWithAlibi(
  context: Context,
  window: Window | undefined,
  { slopes: all }: Alibi,
  { first, heads }: HeadRange,
): GraphValue {
  const { graph, once } = context;
  return once(`alibi:${windowKey(window)}:${all}:${first}:${heads}`, () => {
    const slopes = Float32Array.from(all.slice(first, first + heads));
    const ahead = graph.op('Sub', [
      keyPositions(context, window),
      column(context, feedPositions(context)),
    ]); // [T, S]; where it is positive, the key is masked
    const penalties = graph.op('Mul', [
      graph.cast(ahead, 'f32'),
      graph.op('Unsqueeze', [graph.floats(`slopes:${slopes}`, slopes), graph.ints(1, 2)]),
    ]);
    return graph.op('Add', [penalties, mask(context, window)]);
  });
}

const column = ({ graph }: Context, values: GraphValue): GraphValue =>
  graph.op('Unsqueeze', [values, graph.ints(1)]);

/** [S] */
const keyPositions = (context: Context, window: Window | undefined): GraphValue =>
  context.feed(`keys.${windowKey(window)}`, {
    kind: 'keyPositions',
    window,
    isCached: cachesInPlace(context),
  });

/** State between calls, as far back as `window` reaches. */
export interface PastValues {
  readonly name: string;
  readonly width: number;
  readonly window: Window | undefined;
}

/** Values [B, T, width] after those of former calls, [B, S, width]. */
export function withPast(
  context: Context,
  { name, width, window }: PastValues,
  now: GraphValue,
): GraphValue {
  const { graph, outputs, sizes } = context;
  if (!outputs.states) return now;
  const past = context.feed(name, { kind: 'state', shape: [0, width] });
  const all = graph.sized(graph.op('Concat', [past, now], { attributes: { axis: 1 } }), [
    sizeNames(sizes).batch,
    `S.${windowKey(window)}:${sizes}`,
    width,
  ]);
  const dropped = context.feed(`dropped.${windowKey(window)}`, { kind: 'droppedKeys', window });
  const rest = [dropped, graph.ints(Number.MAX_SAFE_INTEGER), graph.ints(1)];
  outputs.states.set(name, graph.output(graph.op('Slice', [all, ...rest])));
  return all;
}
