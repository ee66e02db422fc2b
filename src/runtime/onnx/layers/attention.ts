/** Shapes: B batch, T tokens of the call, S keys, R = B·T rows, d width of a head. */
import type { Attention, HeadSpan, Projection } from '../../../architecture/layer.js';
import { windowKey } from '../../../architecture/masks.js';
import { productsOf } from '../../../architecture/walk.js';
import { type Context, folded, unfolded } from '../context.js';
import { LEFT_OUT, type Value } from '../graph.js';
import { MICROSOFT } from '../proto.js';
import { mask } from './mask.js';
import { rotary } from './rotary.js';

/** u [R, H] → [R, H]. */
export function attention(context: Context, layer: Attention, u: Value): Value {
  const { graph, apply } = context;
  const spans = spansOf(layer);
  const [q, k, v] = productsOf(layer.inputs) as [Projection, Projection, Projection];
  const turned = (x: Value) => (layer.rotary ? rotary(context, layer.rotary, x) : x);
  const queries = columns(context, spans, turned(apply(q, u)));
  const keyRows = turned(apply(k, u));
  const keys = columns(context, spans, forEachHead(context, layer, keyRows));
  const values = columns(context, spans, forEachHead(context, layer, apply(v, u)));
  const results = spans.map((span, index) =>
    attend(
      context,
      span,
      [queries, keys, values].map((parts) => parts[index] ?? LEFT_OUT),
    ),
  );
  return apply(layer.out, folded(context, graph.joined(results)));
}

/** Heads that see equally far. */
interface Span extends HeadSpan {
  /** Of what is kept for it between calls. */
  readonly name: string;
  /** Columns of its queries, keys and values. */
  readonly width: number;
}

const spansOf = ({ name, spans, headDim }: Attention): Span[] =>
  spans
    .map((span, index) => ({ ...span, name: `${name}.${index}`, width: span.heads * headDim }))
    .filter(({ heads }) => heads > 0);

/** Rows [R, H] → for each span its columns, [B, T, width]. */
function columns(context: Context, spans: readonly Span[], rows: Value): Value[] {
  const widths = spans.map(({ width }) => width);
  return context.graph.split(unfolded(context, rows, -1), widths);
}

/** Keys or values [R, keyValueHeads · d] → [R, heads · d]: each for the query heads that share it. */
function forEachHead(context: Context, layer: Attention, rows: Value): Value {
  const { graph } = context;
  const { heads, keyValueHeads, headDim } = layer;
  if (heads === keyValueHeads) return rows;
  const single = graph.op('Reshape', [rows, graph.ints(-1, keyValueHeads, 1, headDim)]);
  const repeated = graph.op('Expand', [single, graph.ints(1, 1, heads / keyValueHeads, 1)]);
  return graph.op('Reshape', [repeated, graph.ints(-1, heads * headDim)]);
}

/** Queries, keys and values [B, T, width] → [B, T, width]. Divides the scores by √d. */
function attend(context: Context, span: Span, [q = LEFT_OUT, k = LEFT_OUT, v = LEFT_OUT]: Value[]) {
  const inputs = [q, withPast(context, span, 'keys', k), withPast(context, span, 'values', v)];
  return context.graph.op(
    'MultiHeadAttention',
    [...inputs, LEFT_OUT, LEFT_OUT, mask(context, span.window)],
    { domain: MICROSOFT, attributes: { num_heads: span.heads } },
  );
}

/** Keys or values [B, T, width] behind those of former calls, [B, S, width]. */
function withPast(context: Context, { name, width, window }: Span, what: string, now: Value) {
  const { graph, outputs } = context;
  if (!outputs.states) return now;
  const input = `${name}.${what}`;
  const past = context.feed(input, { kind: 'state', shape: [0, width] });
  const all = graph.op('Concat', [past, now], { attributes: { axis: 1 } });
  const dropped = context.feed(`dropped.${windowKey(window)}`, { kind: 'droppedKeys', window });
  const rest = [dropped, graph.ints(Number.MAX_SAFE_INTEGER), graph.ints(1)];
  outputs.states.set(input, graph.output(graph.op('Slice', [all, ...rest])));
  return all;
}
