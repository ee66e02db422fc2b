/** Attention as primitives: products, norms of heads, rotation, scores. */
import type {
  Attention,
  Component,
  HeadNorms,
  Indexer,
  LatentAttention,
  NormLayer,
} from '../architecture/layer.js';
import {
  gateWidth,
  inputWidth,
  normWidth,
  sharedInputWidth,
  tensorsOf,
  valueWidth,
} from '../architecture/walk.js';
import {
  byRows,
  closing,
  closingMatmul,
  elementwise,
  matmul,
  norm,
  normStatistics,
  ONE_KERNEL,
  openingMatmuls,
  paramsOf,
  unfusedNorm,
} from './lowering-blocks.js';
import type { Norm, Primitive, Saved, Scores, UnitRun } from './primitive.js';
import { allReduce, runOf, vectors } from './primitive.js';

export function lowerAttention(layer: Attention, component: Component): Primitive[] {
  const { name, inputs, out, heads, keyValueHeads, headDim, queryNorm, keyNorm } = layer;
  const [queries, keys] = [heads * headDim, keyValueHeads * headDim];
  const queryRun = runOf('heads', heads, headDim);
  const keyRun = runOf('key-value heads', keyValueHeads, headDim);
  const valueDim = valueWidth(layer);
  const [outputs, values] = [heads * valueDim, keyValueHeads * valueDim];
  const outputRun = runOf('heads', heads, valueDim);
  const gates = heads * gateWidth(layer);
  const gateRun = runOf('heads', heads, gateWidth(layer));
  const outputVectors = layer.gate ? (gates === outputs ? 4 : 2) : 1;
  const valueRun = runOf('key-value heads', keyValueHeads, valueDim);
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', sharedInputWidth(inputs)),
      ...vectorWidths(outputVectors, ['query_width', queries], ['output_width', outputs]),
      ...(layer.gate && gates !== outputs ? [vectors(2, 'gates', gates, 'width')] : []),
      ...(typeof layer.sharing === 'object'
        ? []
        : vectorWidths(1, ['key_width', keys], ['value_width', values])),
    ],
    source: layer.gate
      ? 'the input; q, the gate before and after its activation, the output of the heads before and after the gate; k and v'
      : 'the input; q and the output of the heads; k and v',
  };
  const rotated: Saved = {
    part: 'unfused',
    vectors: [vectors(1, 'rotated_width', queries + keys, 'width')],
    source: 'q and k before their rotation, as they lie in one tensor with v',
  };
  const repeated: Saved = {
    part: 'repeated',
    vectors: vectorWidths(
      1,
      ['repeated_width', queries - keys],
      ['repeated_value_width', outputs - values],
    ),
    source: 'k and v once for each query head that reads them, in place of once',
  };
  const reads = typeof layer.sharing === 'object';
  const keyRuns = reads ? [] : layer.valuesAreKeys ? [keyRun] : [keyRun, valueRun];
  const made = reads ? queries : queries + keys;
  return [
    ...openingMatmuls(inputs, component, {
      of: name,
      runs: [queryRun, ...(layer.gate ? [gateRun] : []), ...keyRuns],
      saved: [saved],
    }),
    ...(queryNorm
      ? [headNorm(layer, queryNorm, component, ['q', 'query_width', queries], queryRun)]
      : []),
    ...(keyNorm ? [headNorm(layer, keyNorm, component, ['k', 'key_width', keys], keyRun)] : []),
    ...(layer.valueNorm
      ? [headNorm(layer, layer.valueNorm, component, ['v', 'value_width', values], valueRun)]
      : []),
    ...(layer.rotary
      ? [
          elementwise(layer.rotary, component, made, {
            params: layer.rotary.tables,
            saved: 'kind' in inputs ? [rotated] : [],
          }),
        ]
      : []),
    ...(layer.temperature ? [elementwise(layer, component, queries)] : []),
    ...(layer.alibi ? [elementwise(layer.alibi, component, queries)] : []),
    ...(layer.selection ? lowerIndexer(layer.selection) : []),
    {
      ...scores(layer, component),
      output: outputs,
      keyValueHeads,
      headDim,
      valueDim,
      spans: layer.spans,
      latent: undefined,
      capped: layer.softcap !== undefined,
      inFloat32: layer.ownTypeSoftmax !== true,
      ...(layer.keeps && { keeps: layer.keeps }),
      ...(reads && { keeps: 'nothing' }),
      saved: queries > keys ? [repeated] : [],
      ...(layer.sinks && {
        params: [layer.sinks],
        cuts: byRows([layer.sinks], name, runOf('heads', heads)),
      }),
    },
    ...(layer.gate ? [elementwise(layer, component, outputs)] : []),
    ...closing(
      out,
      component,
      name,
      outputRun,
      outputs === queries ? 'query_width' : 'output_width',
    ),
  ];
}

type NamedWidth = readonly [name: string, width: number];

/** One vector of a first width and `others` of a second; together under the first name where they are equal. */
const vectorWidths = (others: number, [name, width]: NamedWidth, [second, other]: NamedWidth) =>
  width === other
    ? [vectors(1 + others, name, width, 'width')]
    : [vectors(1, name, width, 'width'), vectors(others, second, other, 'width')];

/** A norm per head is whole on every GPU; a norm over all heads is cut with them. */
function headNorm(
  { name: of, headDim }: Attention,
  layer: NormLayer | HeadNorms,
  component: Component,
  [what, widthName, width]: readonly [what: string, widthName: string, width: number],
  run: UnitRun,
): Norm {
  const input = vectors(1, widthName, width, 'width');
  return norm(layer, component, width, {
    saved: [
      { part: component, vectors: [input], source: `${what} before its norm` },
      layer.kind === 'rmsNorm' ? unfusedNorm(layer, input) : normStatistics('width'),
    ],
    cuts: normWidth(layer) > headDim ? byRows(tensorsOf(layer), of, run) : [],
  });
}

const scores = ({ name, heads }: Attention | LatentAttention, component: Component) =>
  ({
    kind: 'scores',
    layer: name,
    component,
    input: 0,
    ...ONE_KERNEL,
    heads,
  }) as const satisfies Partial<Scores>;

/** Products, norms and scores that choose keys. They save nothing, as they have no gradient. */
export function lowerIndexer(layer: Indexer): Primitive[] {
  const { name, query, key, keyNorm, rotary, heads } = layer;
  const { headDim } = rotary;
  const component = 'indexer';
  const isWeighted = layer.kind === 'tokenIndexer';
  const normed = (each: NormLayer, width: number) => norm(each, component, width, { saved: [] });
  return [
    matmul(query, component),
    ...(isWeighted ? [] : [normed(layer.queryNorm, heads * headDim)]),
    matmul(key, component),
    normed(keyNorm, headDim),
    ...(isWeighted ? [matmul(layer.weights, component)] : []),
    elementwise(rotary, component, (heads + 1) * headDim),
    {
      kind: 'indexScores',
      layer: name,
      component,
      input: 0,
      output: 0,
      ...ONE_KERNEL,
      launches: 3,
      heads,
      headDim,
      valueDim: isWeighted ? 1 : 0,
      spans: [{ heads, window: undefined }],
    },
  ];
}

/** @param query Primitives of the query, which reads the same input. */
export function lowerLatentAttention(
  layer: LatentAttention,
  component: Component,
  query: readonly Primitive[],
): Primitive[] {
  const { name, heads, latentRank, nopeDim, valueDim, rotary, sharedDim, latentNorm } = layer;
  const headDim = nopeDim + sharedDim;
  const runOfHeads = (size: number) => runOf('heads', heads, size);
  const hidden = inputWidth(layer.keyValueDown);
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', hidden),
      vectors(2, 'latent_rank', latentRank),
      vectors(2, 'query_width', heads * headDim, 'width'),
      vectors(2, 'value_width', heads * valueDim, 'width'),
    ],
    source:
      'the input; the latent before and after its norm; q, and k with the shared part for every head; v and ' +
      'the output of the heads',
  };
  // The product before the query's last one gives a latent that all heads read.
  const cutQuery = query.map((each, index): Primitive => {
    const { forward: _, backward: __, ...alone } = each;
    const isLast = index === query.length - 1;
    return { ...alone, cuts: isLast ? byRows(each.params, name, runOfHeads(headDim)) : [] };
  });
  return [
    matmul(layer.keyValueDown, component, { saved: [saved], backward: allReduce(hidden) }),
    norm(latentNorm, component, latentRank, {
      saved: [unfusedNorm(latentNorm, vectors(1, 'latent_rank', latentRank))],
    }),
    ...cutQuery,
    matmul(layer.keyValueUp, component, {
      cuts: byRows(paramsOf(layer.keyValueUp), name, runOfHeads(nopeDim + valueDim)),
    }),
    ...(rotary ? [elementwise(rotary, component, heads * headDim, { params: rotary.tables })] : []),
    ...(layer.temperature ? [elementwise(layer, component, heads * headDim)] : []),
    ...(layer.selection && 'kind' in layer.selection ? lowerIndexer(layer.selection) : []),
    {
      ...scores(layer, component),
      output: heads * valueDim,
      keyValueHeads: heads,
      headDim,
      valueDim,
      spans: [{ heads, window: undefined }],
      latent: {
        cached: latentRank + sharedDim,
        multiplied: 2 * latentRank + sharedDim,
        expanded: nopeDim + valueDim,
      },
      capped: false,
      inFloat32: true,
    },
    closingMatmul(layer.out, component, name, runOfHeads(valueDim)),
  ];
}
