/** What each kind of layer keeps of a token for the backward pass, but for scores and scan states. */
import type {
  Component,
  LatentAttention,
  Layer,
  MixtureOfExperts,
  RmsNorm,
} from '../architecture/layer.js';
import {
  expertInner,
  expertLayers,
  inputWidth,
  isProduct,
  sharedInputWidth,
  stagesOf,
  widthAfter,
} from '../architecture/walk.js';

/**
 * What GPUs that share a layer have each of a value: their part of its `width` (heads, channels, the inside of
 * a feed-forward network, the vocabulary); all of it, or some of its `tokens` with sequence parallelism; or
 * the `whole` in any case.
 */
type Share = 'width' | 'tokens' | 'whole';

/** `count` vectors of `size` values for each token. */
export interface Vectors {
  readonly count: number;
  /** What the size is called in formulas: `hidden`. */
  readonly name: string;
  readonly size: number;
  readonly share: Share;
  /** Of a value, as a formula over `bytes`; undefined: those of any activation. */
  readonly bytes?: '1' | '4' | '(4 - bytes)';
}

/** Parts that are counted only when they are asked for. */
export type OptionalPart = 'dropout' | 'unfused' | 'repeated';

/** What a layer keeps for each token. */
export interface Kept {
  readonly part: Component | OptionalPart;
  /** The first is what the layer is given, where it keeps that. */
  readonly vectors: readonly Vectors[];
  readonly source: string;
}

const vectors = (count: number, name: string, size: number, share: Share = 'tokens'): Vectors => ({
  count,
  name,
  size,
  share,
});

/** The mask of what dropout meets on the residual stream. */
export const droppedIn = (hidden: number): Kept[] => [
  {
    part: 'dropout',
    vectors: [{ ...vectors(1, 'hidden', hidden), bytes: '1' }],
    source: 'a mask of 1 byte a value, of the embeddings and of each branch (arXiv 2205.05198)',
  },
];

/**
 * What a layer keeps besides scores and scan states. An input that several layers read is told by the
 * layer that stands first: the attention tells of the normed input, the gate of its own and the MLP's.
 * @param width Of what it is given.
 * @param share What each GPU has of that.
 */
export function keptBy(
  layer: Layer,
  width: number,
  part: Component = 'other',
  share: Share = 'tokens',
): Kept[] {
  const own = layer.component ?? part;
  const all = (layers: readonly Layer[]) => layers.flatMap((child) => keptBy(child, width, own));
  const kept = (source: string, ...values: Vectors[]): Kept[] => [
    { part: own, vectors: values, source },
  ];
  switch (layer.kind) {
    case 'languageModel':
      return keptInTurn(stagesOf(layer), layer.norm.weight.elements);
    case 'hybridBlock': {
      const { inputNorm, mamba, attention, alignment, gate, fusion, mlp, outputNorm } = layer;
      const optional = alignment ? [alignment] : [];
      return [
        ...all([inputNorm, mamba, attention, ...optional, gate, fusion]),
        ...withoutInput(keptBy(mlp, width, own)),
        ...all([outputNorm]),
        // Of what the fusion adds, and the MLP.
        ...droppedIn(outputNorm.weight.elements),
        ...droppedIn(outputNorm.weight.elements),
      ];
    }
    case 'mamba':
      return kept(
        'its input; x and residual before and after SiLU and convolution (5 inner), step before and after ' +
          'softplus (2), output of the scan and its gated product (2); low-rank step, B and C',
        vectors(1, 'hidden', inputWidth(layer.inProj)),
        vectors(9, 'inner', layer.innerSize, 'width'),
        vectors(1, 'step_rank', layer.stepRank, 'whole'),
        vectors(2, 'state', layer.stateSize, 'whole'),
      );
    case 'attention': {
      const [queries, keys] = [layer.heads * layer.headDim, layer.keyValueHeads * layer.headDim];
      return [
        ...kept(
          'its input; q and the output of the heads; k and v',
          vectors(1, 'hidden', sharedInputWidth(layer.inputs)),
          vectors(2, 'query_width', queries, 'width'),
          vectors(2, 'key_width', keys, 'width'),
        ),
        ...(layer.queryNorm
          ? [
              ...kept('q before its norm', vectors(1, 'query_width', queries, 'width')),
              ...unfusedNorm(layer.queryNorm, vectors(1, 'query_width', queries, 'width')),
            ]
          : []),
        ...(layer.keyNorm
          ? [
              ...kept('k before its norm', vectors(1, 'key_width', keys, 'width')),
              ...unfusedNorm(layer.keyNorm, vectors(1, 'key_width', keys, 'width')),
            ]
          : []),
        ...(layer.rotary && 'kind' in layer.inputs
          ? [
              {
                part: 'unfused' as const,
                vectors: [vectors(1, 'rotated_width', queries + keys, 'width')],
                source: 'q and k before their rotation, as they lie in one tensor with v',
              },
            ]
          : []),
        ...(queries > keys
          ? [
              {
                part: 'repeated' as const,
                vectors: [vectors(2, 'repeated_width', queries - keys, 'width')],
                source: 'k and v once for each query head that reads them, in place of once',
              },
            ]
          : []),
      ];
    }
    case 'latentAttention':
      return [...latentAttentionKept(layer, own), ...latentQueryKept(layer, own)];
    case 'gatedMlp': {
      const inner = inputWidth(layer.down);
      return kept(
        'its input; gate before and after the activation, what it multiplies, and the product (4 inner)',
        vectors(1, 'hidden', sharedInputWidth(layer.inputs)),
        vectors(4, 'inner', inner, 'width'),
      );
    }
    case 'mixtureOfExperts':
      return mixtureKept(layer, own);
    case 'router':
      return kept(
        'its input; the scores of all experts; those of the chosen',
        vectors(1, 'hidden', layer.weight.shape[1] ?? 0),
        vectors(1, 'experts', layer.weight.shape[0] ?? 0),
        vectors(1, 'chosen', layer.expertsPerToken),
      );
    case 'alignment':
      return [
        ...kept('both branches, concatenated', vectors(1, 'both', inputWidth(layer.residual))),
        ...withoutInput(keptBy(layer.net, inputWidth(layer.residual), own)),
      ];
    case 'gate':
      return kept(
        'its input; gate and 1 − gate, and both branches that they multiply; tanh',
        vectors(5, 'hidden', inputWidth(layer.up)),
        vectors(1, 'rank', inputWidth(layer.down)),
      );
    case 'residual': {
      // Every branch is given the same.
      const [first, ...others] = layer.branches.map((branch) => keptBy(branch, width, own));
      const masks = layer.branches.flatMap(() => droppedIn(width));
      return [...(first ?? []), ...others.flatMap(withoutInput), ...masks];
    }
    case 'sequence':
      return keptInTurn(layer.layers, width, own);
    case 'activation':
      return [
        ...kept('what an activation is given', vectors(1, 'inner', width, share)),
        ...(layer.composed
          ? [
              {
                part: 'unfused' as const,
                vectors: [vectors(3, 'inner', width, share)],
                source: 'of a GELU made of products, a power and a tanh: x / 2, tanh, and 1 + tanh',
              },
            ]
          : []),
      ];
    case 'softcap':
      return kept('tanh', vectors(1, 'width', width, share));
    case 'fusedProjection':
      return all([layer.projection]);
    case 'linear':
    case 'transposedLinear':
      return kept('its input', vectors(1, 'input', inputWidth(layer), share));
    case 'layerNorm':
      return [
        ...kept('its input', vectors(1, 'hidden', layer.weight.elements)),
        {
          part: 'unfused',
          vectors: [{ ...vectors(2, 'statistic', 1), bytes: '4' }],
          source: 'mean and deviation of LayerNorm',
        },
      ];
    case 'rmsNorm': {
      const input = vectors(1, 'hidden', layer.weight.elements);
      return [...kept('its input', input), ...unfusedNorm(layer, input)];
    }
    case 'embedding':
    case 'scale':
    case 'learnedPositions':
    case 'packedExperts':
    case 'alibi':
    case 'causalConv':
    case 'rotary':
    case 'srteTable':
    case 'srteLowRank':
    case 'srteSincos':
      return [];
  }
}

/** RMSNorm as transformers writes it: in float32, and the normalised input is multiplied by the weight. */
const unfusedNorm = ({ offset }: RmsNorm, input: Vectors): Kept[] => [
  {
    part: 'unfused',
    vectors: [
      { ...input, bytes: '(4 - bytes)' },
      // With an offset the product is in float32, too.
      offset === 0 ? input : { ...input, bytes: '4' },
      { ...vectors(1, 'statistic', 1, input.share), bytes: '4' },
    ],
    source: 'of RMSNorm its input in float32, the normalised input, and the deviation',
  },
];

/** Of layers that follow each other. Between a product before an activation and the next, the width is split. */
export function keptInTurn(
  layers: readonly Layer[],
  width: number,
  part?: Component,
  share: Share = 'tokens',
): Kept[] {
  let [before, has] = [width, share];
  return layers.flatMap((layer, index) => {
    const kept = keptBy(layer, before, part, has);
    before = widthAfter(layer, before);
    if (isProduct(layer)) has = layers[index + 1]?.kind === 'activation' ? 'width' : 'tokens';
    return kept;
  });
}

/** What is kept besides an input that is kept already. */
export function withoutInput([first, ...others]: readonly Kept[]): Kept[] {
  const vectors = first?.vectors.slice(1) ?? [];
  return first && vectors.length > 0 ? [{ ...first, vectors }, ...others] : others;
}

function latentAttentionKept(layer: LatentAttention, part: Component): Kept[] {
  const { heads, latentRank, nopeDim, valueDim, rotary } = layer;
  const values = [
    vectors(1, 'hidden', inputWidth(layer.keyValueDown)),
    vectors(2, 'latent_rank', latentRank),
    vectors(2, 'query_width', heads * (nopeDim + rotary.headDim), 'width'),
    vectors(2, 'value_width', heads * valueDim, 'width'),
  ];
  const source =
    'its input; the latent before and after its norm; q, and k with the shared part for every head; v and ' +
    'the output of the heads';
  const latent = vectors(1, 'latent_rank', latentRank);
  return [{ part, vectors: values, source }, ...unfusedNorm(layer.latentNorm, latent)];
}

/** Its first layer reads what the keys and values are made of too. */
function latentQueryKept({ query, keyValueDown }: LatentAttention, part: Component): Kept[] {
  return withoutInput(keptBy(query, inputWidth(keyValueDown), part));
}

/** A chosen expert is given a copy of its tokens, and its output is kept to be weighted. */
function mixtureKept(layer: MixtureOfExperts, part: Component): Kept[] {
  const { router, experts, shared, sharedGate } = layer;
  const hidden = router.weight.shape[1] ?? 0;
  const inside = shared.flatMap((each) => withoutInput(keptBy(each, hidden, part)));
  const gate: Kept = {
    part: sharedGate?.component ?? part,
    vectors: [vectors(1, 'hidden', hidden), vectors(1, 'gates', 1)],
    source: 'the shared output before its gate, and the gate',
  };
  const chosen = router.expertsPerToken;
  const routed: Kept = {
    part: expertPart(experts, part),
    vectors: [
      vectors(2 * chosen, 'hidden', hidden, 'whole'),
      vectors(4 * chosen, 'expert_inner', expertInner(layer), 'width'),
    ],
    source:
      'of each expert that a token goes to: its copy of the input and its output; gate before and after the ' +
      'activation, what it multiplies, and the product',
  };
  return [...keptBy(router, hidden, part), routed, ...inside, ...(sharedGate ? [gate] : [])];
}

const expertPart = (experts: MixtureOfExperts['experts'], part: Component) =>
  expertLayers(experts)[0]?.component ?? part;
