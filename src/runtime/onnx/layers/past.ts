import type { Window } from '../../../architecture/layer.js';
import { windowKey } from '../../../architecture/masks.js';
import type { Context } from '../context.js';
import type { Value } from '../graph.js';

/** What is kept between calls for as long as `window` reaches back. */
export interface Memory {
  readonly name: string;
  readonly width: number;
  readonly window: Window | undefined;
}

/** Values [B, T, width] behind those of former calls, [B, S, width]. */
export function withPast(context: Context, { name, width, window }: Memory, now: Value): Value {
  const { graph, outputs } = context;
  if (!outputs.states) return now;
  const past = context.feed(name, { kind: 'state', shape: [0, width] });
  const all = graph.op('Concat', [past, now], { attributes: { axis: 1 } });
  const dropped = context.feed(`dropped.${windowKey(window)}`, { kind: 'droppedKeys', window });
  const rest = [dropped, graph.ints(Number.MAX_SAFE_INTEGER), graph.ints(1)];
  outputs.states.set(name, graph.output(graph.op('Slice', [all, ...rest])));
  return all;
}
