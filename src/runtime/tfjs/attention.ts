import { alibiSlopes } from '../../architecture/alibi.js';
import type { Attention, HeadSpan } from '../../architecture/layer.js';
import { attend, type HeadGroup, type HeadKeys } from './attend.js';
import { headKeys, splitHeads } from './head-keys.js';
import type { Tensor2D, Tensor3D } from './library.js';
import { projected } from './projections.js';
import { rotate } from './rotary.js';
import type { Run } from './run.js';

/** u [B, T, H] → [B, T, H]. */
export function attention(run: Run, layer: Attention, u: Tensor3D): Tensor3D {
  const { tf } = run;
  const { queryNorm, keyNorm, rotary, headDim } = layer;
  const normed = (norm: typeof queryNorm, x: Tensor3D) => (norm ? run.apply(norm, x) : x);
  // The rotary layer turns two values: it has no single one to be kept, and is no step of its own.
  const turned = (x: Tensor3D) => (rotary ? rotate(run, rotary, x) : x);
  const [q, k, v] = projected(run, layer.inputs, u) as [Tensor3D, Tensor3D, Tensor3D];
  const queries: Tensor3D = tf.mul(turned(normed(queryNorm, q)), layer.scale); // (B, T, heads · d)
  const keys = headKeys(run, layer, turned(normed(keyNorm, k)), v);
  const heads = splitHeads(tf, queries, headDim);
  let first = 0;
  const spans = layer.spans.flatMap((span) => {
    const groups = groupsOf(layer, span, first, heads, keys);
    first += span.heads;
    return span.heads === 0 ? [] : [attend(run, groups, { ...span, softcap: layer.softcap })];
  });
  return run.apply(layer.out, tf.concat(spans, 2)); // of (B, T, heads · d)
}

/** The heads of a span, which begins at the head `first`, by the keys that they share; of each sequence. */
function groupsOf(
  { heads, keyValueHeads, alibi }: Attention,
  span: HeadSpan,
  first: number,
  queries: readonly Tensor2D[],
  keys: readonly HeadKeys[],
): HeadGroup[][] {
  const sharing = heads / keyValueHeads;
  const slopes = alibi && [...alibiSlopes(heads)];
  const end = first + span.heads;
  return Array.from({ length: queries.length / heads }, (_, sequence) => {
    const groups: HeadGroup[] = [];
    const [own, ownKeys] = [sequence * heads, sequence * keyValueHeads];
    for (let from = first; from < end; ) {
      const group = Math.floor(from / sharing);
      const to = Math.min((group + 1) * sharing, end);
      groups.push({
        ...(keys[ownKeys + group] as HeadKeys),
        queries: queries.slice(own + from, own + to),
        slopes: slopes?.slice(from, to),
      });
      from = to;
    }
    return groups;
  });
}
