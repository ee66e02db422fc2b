import type { Window } from '../../../architecture/layer.js';
import { windowKey } from '../../../architecture/masks.js';
import { type Context, positionsOf } from '../context.js';
import type { Value } from '../graph.js';

/** What is added to the scores: 0 where a token sees a key, else −∞. [1, 1, T, S] */
export function mask(context: Context, window: Window | undefined): Value {
  const key = windowKey(window);
  return context.once(`mask:${key}`, () => {
    const { graph } = context;
    const column = (value: Value) => graph.op('Unsqueeze', [value, graph.ints(1)]);
    const keys = context.feed(`keys.${key}`, { kind: 'keyPositions', window });
    const first = context.feed(`first.${key}`, { kind: 'firstKeys', window });
    const visible = graph.op('And', [
      graph.op('LessOrEqual', [keys, column(positionsOf(context))]),
      graph.op('GreaterOrEqual', [keys, column(first)]),
    ]);
    const hidden = graph.float(Number.NEGATIVE_INFINITY);
    const scores = graph.op('Where', [visible, graph.float(0), hidden]);
    return graph.op('Unsqueeze', [scores, graph.ints(0, 1)]);
  });
}
