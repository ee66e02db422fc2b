/** Shapes: B batch, T tokens of the call, S keys, R = B·T rows, d width of a head. */
import type { Attention, HeadSpan, RmsNorm } from '../../../architecture/layer.js';
import { type Context, folded, sizeNames, unfolded } from '../context.js';
import { LEFT_OUT, type Value } from '../graph.js';
import type { HeadRange } from './mask.js';
import { mask, maskWithAlibi, withPast } from './mask.js';
import { projected } from './projections.js';
import { rotary } from './rotary.js';
import { attend, forEachHead } from './scores.js';

/** u [R, H] → [R, H]. */
export function attention(context: Context, layer: Attention, u: Value): Value {
  const { graph, apply } = context;
  const { heads, keyValueHeads, headDim, queryNorm, keyNorm } = layer;
  const [q = LEFT_OUT, k = LEFT_OUT, v = LEFT_OUT] = projected(context, layer.inputs, u);
  const queries = normed(context, queryNorm, q, heads * headDim);
  const keys = normed(context, keyNorm, k, keyValueHeads * headDim);
  const given = {
    queries: turned(context, layer, queries, heads),
    keys: turned(context, layer, keys, keyValueHeads),
    values: unfolded(context, v, keyValueHeads * headDim),
  };
  const results = partsOf(context, layer, given).map((part) => attendPart(context, layer, part));
  return apply(layer.out, folded(context, graph.joined(results)));
}

/** Over each head of x [R, heads · d], or over all of them when its weight is as wide. */
function normed(
  { graph, apply, sizes }: Context,
  norm: RmsNorm | undefined,
  x: Value,
  width: number,
) {
  if (!norm) return x;
  if (norm.weight.elements === width) return apply(norm, x);
  const { elements } = norm.weight;
  const { rows } = sizeNames(sizes);
  const perHead = graph.sized(graph.op('Reshape', [x, graph.ints(-1, elements)]), [
    `${rows}·${width / elements}`,
    elements,
  ]);
  const together = graph.op('Reshape', [apply(norm, perHead), graph.ints(-1, width)]);
  return graph.sized(together, [rows, width]);
}

/** x [R, heads · d] → [B, T, heads · d] */
function turned(context: Context, layer: Attention, x: Value, heads: number): Value {
  const rows = unfolded(context, x, heads * layer.headDim);
  return layer.rotary ? rotary(context, layer.rotary, rows, heads) : rows;
}

/** Queries, keys and values of heads with the same window, [B, T, ·]. */
interface Part extends HeadRange, Pick<HeadSpan, 'window'>, Given {
  /** Name of its state between calls. */
  readonly name: string;
  readonly keyValueHeads: number;
}

interface Given {
  readonly queries: Value;
  readonly keys: Value;
  readonly values: Value;
}

/** Groups of heads by window, each with its own keys and values. */
function partsOf(context: Context, layer: Attention, given: Given): Part[] {
  const { name, keyValueHeads, headDim } = layer;
  const spans = spansOf(layer);
  const [only, ...others] = spans;
  if (only && others.length === 0) {
    return [{ ...only, ...given, name: `${name}.0`, keyValueHeads }];
  }
  const split = (value: Value) =>
    context.graph.split(
      value,
      spans.map(({ heads }) => heads * headDim),
    );
  const queries = split(given.queries);
  const keys = split(forEachHead(context, layer, given.keys, headDim));
  const values = split(forEachHead(context, layer, given.values, headDim));
  return spans.map((span, index) => ({
    ...span,
    name: `${name}.${index}`,
    keyValueHeads: span.heads,
    queries: queries[index] ?? LEFT_OUT,
    keys: keys[index] ?? LEFT_OUT,
    values: values[index] ?? LEFT_OUT,
  }));
}

function spansOf({ spans }: Attention): (HeadSpan & HeadRange)[] {
  let end = 0;
  return spans
    .filter(({ heads }) => heads > 0)
    .map((span) => {
      const first = end;
      end += span.heads;
      return { ...span, first };
    });
}

/** → [B, T, heads · d] */
function attendPart(context: Context, layer: Attention, part: Part): Value {
  const { headDim, scale, softcap, alibi } = layer;
  const { name, window, keyValueHeads } = part;
  const memory = { width: keyValueHeads * headDim, window };
  return attend(
    context,
    { ...part, keyDim: headDim, valueDim: headDim, scale, softcap },
    {
      queries: part.queries,
      keys: withPast(context, { ...memory, name: `${name}.keys` }, part.keys),
      values: withPast(context, { ...memory, name: `${name}.values` }, part.values),
      bias: ({ first, heads }) =>
        alibi
          ? maskWithAlibi(context, window, alibi, { first: part.first + first, heads })
          : mask(context, window),
    },
  );
}
