/**
 * Lowers layers to primitives, in order of computation. The cost of a layer kind is defined only here.
 * FLOPs, saved activations, states, tensor cuts, collectives, kernel launches and the largest tensors follow from
 * it.
 */
import type {
  AltUpBlock,
  AltUpMerge,
  AltUpSplit,
  Component,
  GatedConv,
  GatedDelta,
  HybridBlock,
  LanguageModel,
  Layer,
  Mamba,
  PerLayerBranch,
  StateSpaceDual,
} from '../architecture/layer.js';
import {
  inputWidth,
  isProduct,
  normWidth,
  outputWidth,
  sharedInputWidth,
  tensorsOf,
} from '../architecture/walk.js';
import { lowerAttention, lowerLatentAttention } from './lower-attention.js';
import { lowerGatedMlp, lowerMixture, lowerRouter } from './lower-feed-forward.js';
import {
  byLength,
  byRows,
  closingMatmul,
  convolution,
  elementwise,
  gatedNorm,
  gatheredMatmul,
  type LoweringContext,
  lookup,
  matmul,
  norm,
  normStatistics,
  openingMatmuls,
  paramsOf,
  unfusedNorm,
} from './lowering-blocks.js';
import {
  afterSavedInput,
  allReduce,
  dropoutMask,
  type Matmul,
  type Primitive,
  runOf,
  type Saved,
  type Share,
  vectors,
} from './primitive.js';

interface Lowered {
  /** Undefined if any width will do. */
  readonly width: number | undefined;
  readonly primitives: readonly Primitive[];
}

/** Cached, because folds request the same layers repeatedly. */
const known = new WeakMap<Layer, Lowered>();

/**
 * Primitives of a layer and everything below it.
 * @param width Input values per token. Without it, the width of residual sums, dropout masks and standalone
 * activations is arbitrary.
 */
export function primitivesOf(layer: Layer, width?: number): readonly Primitive[] {
  const found = known.get(layer);
  if (found && (width === undefined || found.width === width)) return found.primitives;
  const primitives = lower(layer, { width: width ?? 0, share: 'tokens', component: 'other' });
  known.set(layer, { width, primitives });
  return primitives;
}

/** Values of each token that a layer gives for `width` values. */
export const widthAfter = (layer: Layer, width: number): number =>
  lower(layer, { width, share: 'tokens', component: 'other' }).at(-1)?.output ?? width;

function lower(layer: Layer, around: LoweringContext): Primitive[] {
  const { width, share } = around;
  const component = layer.component ?? around.component;
  const inside: LoweringContext = { width, share: 'tokens', component };
  const saved = (source: string, ...values: Saved['vectors']): Saved => ({
    part: component,
    vectors: values,
    source,
  });
  switch (layer.kind) {
    case 'languageModel':
      return lowerModel(layer, inside);
    case 'hybridBlock':
      return lowerHybridBlock(layer, inside);
    case 'sequence':
      return lowerInTurn(layer.name, layer.layers, inside);
    case 'residual':
      return lowerResidual(layer, inside);
    case 'attention':
      return lowerAttention(layer, component);
    case 'latentAttention': {
      const query = { ...inside, width: inputWidth(layer.keyValueDown) };
      return lowerLatentAttention(layer, component, afterSavedInput(lower(layer.query, query)));
    }
    case 'mamba':
      return lowerMamba(layer, component);
    case 'stateSpaceDual':
      return lowerStateSpaceDual(layer, component);
    case 'gatedDelta':
      return lowerGatedDelta(layer, component);
    case 'gatedConv':
      return lowerGatedConv(layer, component);
    case 'gatedMlp':
      return lowerGatedMlp(layer, component);
    case 'mixtureOfExperts':
      return lowerMixture(layer, component, (each, given) =>
        lower(each, { ...inside, width: given }),
      );
    case 'router':
      return lowerRouter(layer, component, (each, given) =>
        lower(each, { ...inside, width: given }),
      );
    // The mixture that holds them computes some of them.
    case 'packedExperts':
    case 'clampedExperts':
      return [];
    case 'fusedProjection':
      return lower(layer.projection, inside);
    case 'linear':
    case 'transposedLinear': {
      const input = saved('the input', vectors(1, 'input', inputWidth(layer), share));
      return [gatheredMatmul(layer, component, { saved: [input] })];
    }
    case 'alignment': {
      const both = inputWidth(layer.residual);
      return [
        elementwise(layer, component, both, {
          saved: [saved('both branches, concatenated', vectors(1, 'both', both))],
        }),
        ...afterSavedInput(lower(layer.net, { ...inside, width: both })),
        gatheredMatmul(layer.residual, component),
      ];
    }
    case 'gate': {
      const source = 'the input; gate and 1 − gate, and both branches that they multiply; tanh';
      const rank = inputWidth(layer.down);
      const values = saved(
        source,
        vectors(5, 'hidden', inputWidth(layer.up)),
        vectors(1, 'rank', rank),
      );
      // The tensor is small, and a cut would need its own reduction.
      return [
        matmul(layer.up, component, { saved: [values] }),
        elementwise(layer, component, rank),
        matmul(layer.down, component),
      ];
    }
    case 'causalConv':
      return [convolution(layer, component, width)];
    case 'layerNorm': {
      const input = vectors(1, 'hidden', normWidth(layer));
      const all = [saved('the input', input), normStatistics()];
      return [norm(layer, component, width, { saved: all })];
    }
    case 'headNorms':
      return layer.norms.flatMap((each) => lower(each, { ...inside, width: normWidth(each) }));
    case 'sum':
      return lowerBranches(layer, inside);
    case 'rmsNorm': {
      const input = vectors(1, 'hidden', layer.size);
      const all = [saved('the input', input), unfusedNorm(layer, input)];
      return [norm(layer, component, width, { saved: all })];
    }
    case 'gatedRmsNorm':
      return [gatedNorm(layer, component)];
    case 'activation': {
      const input = saved('input of the activation', vectors(1, 'inner', width, share));
      const steps: Saved = {
        part: 'unfused',
        vectors: [vectors(3, 'inner', width, share)],
        source: 'of a GELU made of products, a power and a tanh: x / 2, tanh, and 1 + tanh',
      };
      return [
        elementwise(layer, component, width, { saved: layer.composed ? [input, steps] : [input] }),
      ];
    }
    case 'softcap': {
      const tanh = saved('tanh', vectors(1, 'width', width, share));
      return [elementwise(layer, component, width, { saved: [tanh] })];
    }
    case 'weightedScale':
      return [
        elementwise(layer, component, width, {
          params: [layer.weight],
          saved: [saved('its input', vectors(1, 'width', width, share))],
        }),
      ];
    // Each block computes its own part of them.
    case 'perLayerInputs':
      return [];
    case 'perLayerBranch':
      return lowerPerLayerBranch(layer, component);
    case 'altUpSplit':
    case 'altUpMerge':
      return lowerAltUpEnd(layer, component);
    case 'altUpBlock':
      return lowerAltUpBlock(layer, inside);
    case 'scale':
    case 'alibi':
      return [elementwise(layer, component, width)];
    case 'rotary':
      return [elementwise(layer, component, width, { params: layer.tables })];
    case 'embedding': {
      const [rows = 1, columns = 0] = layer.weight.shape;
      return [
        lookup(
          layer,
          component,
          columns,
          layer.weight,
          { by: 'ids', rows },
          {
            cuts: byRows([layer.weight], layer.name, vocabularyRun(rows)),
            forward: allReduce(columns),
          },
        ),
      ];
    }
    // The embedding's rows are there already: they are what the first block reads.
    case 'embeddingJoin': {
      const [, embedded = 0] = layer.embedding.weight.shape;
      return [elementwise(layer, component, width + embedded, { input: width })];
    }
    case 'learnedPositions': {
      const [rows = 0, columns = 0] = layer.weight.shape;
      const table = { by: 'positions', rows: rows - layer.offset } as const;
      return [lookup(layer, component, columns, layer.weight, table)];
    }
    case 'srteTable': {
      const [, rows = 0, columns = 0] = layer.table.shape;
      return [lookup(layer, component, columns, layer.table, { by: PER_BATCH, rows })];
    }
    case 'srteLowRank': {
      const [, rows = 0, rank = 0] = layer.lowRank.shape;
      return [
        lookup(layer, component, rank, layer.lowRank, { by: PER_BATCH, rows }),
        // All rows of a batch share the table: one product for each position and block.
        matmul(layer.projection, component, { rows: 'positions' }),
      ];
    }
    case 'srteSincos': {
      const columns = 2 * layer.inverseFrequencies.elements;
      const table = { by: PER_BATCH, rows: Number.POSITIVE_INFINITY } as const;
      return [lookup(layer, component, columns, layer.inverseFrequencies, table)];
    }
  }
}

/** Blocks compute shared layers where they use them. */
function lowerModel(model: LanguageModel, around: LoweringContext): Primitive[] {
  const { embedding, embeddingSteps, blocks, norm, head, logitSteps } = model;
  const width = model.hidden;
  const inTurn = (...layers: readonly Layer[]) => lowerInTurn('', layers, { ...around, width });
  const { output } = matmul(head, around.component);
  return [
    ...inTurn(embedding, ...embeddingSteps),
    ...blocks.flatMap((block) => primitivesOf(block, width)),
    ...inTurn(norm, head, ...logitSteps).map((each) =>
      each.layer === head.name
        ? { ...each, cuts: byRows(each.params, each.layer, vocabularyRun(output)) }
        : each,
    ),
  ];
}

const PER_BATCH = 'positions of a batch';

const vocabularyRun = (rows: number) => runOf('rows of the vocabulary', rows);

/**
 * Lowers layers applied in order. The products before and after an activation form a pair that shares the width
 * between them.
 */
export function lowerInTurn(
  name: string,
  layers: readonly Layer[],
  around: LoweringContext,
): Primitive[] {
  let { width, share }: { width: number; share: Share } = around;
  return layers.flatMap((layer, index) => {
    const primitives = lower(layer, { ...around, width, share });
    width = primitives.at(-1)?.output ?? width;
    if (!isProduct(layer)) return primitives;
    share = layers[index + 1]?.kind === 'activation' ? 'width' : 'tokens';
    return primitives.map((each) =>
      each.kind === 'matmul' ? paired(each, name, layers, index) : each,
    );
  });
}

/** Cuts a product as one of a pair around an activation, if it is one. */
function paired(product: Matmul, of: string, layers: readonly Layer[], index: number): Matmul {
  const isPairWith = (step: 1 | -1) => {
    const other = layers[index + 2 * step];
    return other !== undefined && isProduct(other);
  };
  const { forward: _, backward, ...alone } = product;
  if (layers[index - 1]?.kind === 'activation') {
    const cuts = byLength(product.tensor, of, runOf('inner values', product.input));
    return isPairWith(-1)
      ? { ...alone, cuts, forward: allReduce(product.output) }
      : { ...product, cuts };
  }
  if (layers[index + 1]?.kind !== 'activation') return product;
  const cuts = byRows(product.params, of, runOf('inner values', product.output));
  return isPairWith(1) ? { ...alone, ...(backward && { backward }), cuts } : { ...product, cuts };
}

/**
 * Branches of one input. Each GPU adds its branches' outputs, and one all-reduce sums them (GPT-NeoX, arXiv
 * 2204.06745, section 2.1).
 * The backward pass needs one all-reduce if the branches share a norm. Here each branch has its own norm, as in
 * GPT-NeoX. As in Megatron-LM, the gradient of each norm's output is assumed to be summed before the norm. Every
 * GPU holds the whole norm, so it needs the whole gradient of its weight.
 */
function lowerResidual(
  layer: Extract<Layer, { kind: 'residual' }>,
  inside: LoweringContext,
): Primitive[] {
  const masks = layer.branches.map(() => dropoutMask(inside.width));
  // The next norm's kernel includes the sum.
  return [
    ...branchesOf(layer, inside),
    elementwise(layer, inside.component, inside.width, { launches: 0, saved: masks }),
  ];
}

/** Branches that share one norm: the kernel of the next norm includes their sum, too. */
function lowerBranches(
  layer: Extract<Layer, { kind: 'sum' }>,
  inside: LoweringContext,
): Primitive[] {
  const branches = branchesOf(layer, inside);
  const width = branches.at(-1)?.output ?? inside.width;
  return [
    ...branches,
    elementwise(layer, inside.component, width, {
      launches: 0,
      params: (layer.unread ?? []).flatMap(tensorsOf),
    }),
  ];
}

function branchesOf(
  layer: Extract<Layer, { kind: 'residual' | 'sum' }>,
  inside: LoweringContext,
): Primitive[] {
  let isSummed = false;
  return layer.branches.flatMap((branch, index) => {
    const primitives = lower(branch, inside);
    const last = primitives.at(-1);
    if (last?.forward?.kind === 'allReduce') {
      const { forward: _, ...unsummed } = last;
      if (isSummed) primitives[primitives.length - 1] = unsummed;
      isSummed = true;
    }
    return index === 0 ? primitives : afterSavedInput(primitives);
  });
}

function lowerHybridBlock(block: HybridBlock, inside: LoweringContext): Primitive[] {
  const { inputNorm, srte, mamba, attention, alignment, gate, fusion, mlp, outputNorm } = block;
  const all = (...layers: readonly Layer[]) => layers.flatMap((each) => lower(each, inside));
  // Dropout masks of the fusion's output and the MLP's output.
  const masks = [1, 2].map(() => dropoutMask(normWidth(outputNorm)));
  return [
    ...all(inputNorm, srte, mamba, attention, ...(alignment ? [alignment] : []), gate, fusion),
    ...afterSavedInput(lower(mlp, inside)),
    ...all(outputNorm).map((each) => ({ ...each, saved: [...each.saved, ...masks] })),
  ];
}

/** The values of one block are one of as many equal parts of the shared table and product. */
/**
 * As in vLLM, the table is cut by its rows and the product for all blocks by its outputs. The products of the block read
 * or add to whole per-layer inputs: they are whole on every GPU.
 */
function lowerPerLayerBranch(layer: PerLayerBranch, component: Component): Primitive[] {
  const { gate, projection, inputs } = layer;
  const { width, layers, table, norm: values } = inputs;
  const [rows = 1] = table.weight.shape;
  const made: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', inputWidth(inputs.projection)), vectors(2, 'per_layer', width)],
    source: 'the embedding; the product before and after its norm',
  };
  const branch: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', inputWidth(gate)), vectors(4, 'per_layer', width)],
    source: 'the input; the gate before and after its activation, the values, and their product',
  };
  return [
    matmul(gate, component, { saved: [branch] }),
    lookup(
      layer,
      component,
      width,
      table.weight,
      { by: 'ids', rows },
      {
        cuts: byRows([table.weight], table.name, vocabularyRun(rows)),
        forward: allReduce(width),
      },
    ),
    gatheredMatmul(inputs.projection, component, {
      forward: { kind: 'allGather', width },
      output: width,
      weights: inputs.projection.weight.elements / layers,
      saved: [made],
    }),
    norm(values, component, width),
    elementwise(layer, component, width, { launches: 3 }),
    matmul(projection, component),
  ];
}

/** Each product is cut by its outputs, as in vLLM. */
function lowerAltUpEnd(layer: AltUpSplit | AltUpMerge, component: Component): Primitive[] {
  const { kind, projections } = layer;
  const [first] = projections;
  if (!first) return [];
  const hidden = inputWidth(first);
  const all = (projections.length + 1) * hidden;
  const products: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', hidden), vectors(2 * projections.length, 'hidden', hidden)],
    source: 'the input; each product before and after its scaling',
  };
  return [
    ...projections.map((each, index) =>
      gatheredMatmul(each, component, { saved: index === 0 ? [products] : [] }),
    ),
    elementwise(layer, component, kind === 'altUpSplit' ? all : hidden, {
      launches: 4 * projections.length,
    }),
  ];
}

/**
 * The streams are mixed value by value: work that FLOPs of products do not count. The products are small, and whole on
 * every GPU.
 */
function lowerAltUpBlock(layer: AltUpBlock, around: LoweringContext): Primitive[] {
  const { routerNorm, router, prediction, correction, inner, perLayer } = layer;
  const { component } = around;
  const hidden = inputWidth(router);
  const streams = inputWidth(correction);
  const all = streams * hidden;
  const own = router.component ?? component;
  const mixed = (count: number, source: string): Saved => ({
    part: own,
    vectors: [vectors(count * streams, 'hidden', hidden), vectors(2, 'streams', streams)],
    source,
  });
  const routed = [
    ...lower(routerNorm, { ...around, width: hidden, component: own }),
    matmul(router, own),
  ];
  const inside = { ...around, width: hidden };
  return [
    ...routed,
    matmul(prediction, own, { saved: [mixed(1, 'the streams; the router before and after tanh')] }),
    elementwise(layer, own, all, { launches: 3 }),
    ...lower(inner, inside),
    ...routed,
    matmul(correction, own, {
      saved: [mixed(1, 'the predicted streams; the router before and after tanh')],
    }),
    elementwise(layer, own, all, { params: [layer.outputScale], launches: 4 }),
    ...lower(perLayer, inside),
    elementwise(layer, own, all, { launches: 1 }),
  ];
}

function lowerMamba(layer: Mamba, component: Component): Primitive[] {
  const { name, stateLog, skip, inProj, conv, xProj, dtProj, outProj, stepRank } = layer;
  const { innerSize: inner, stateSize: state } = layer;
  const channels = runOf('channels', inner);
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', inputWidth(inProj)),
      vectors(9, 'inner', inner, 'width'),
      vectors(1, 'step_rank', stepRank, 'whole'),
      vectors(2, 'state', state, 'whole'),
    ],
    source:
      'the input; x and residual before and after SiLU and convolution (5 inner), step before and after ' +
      'softplus (2), output of the scan and its gated product (2); low-rank step, B and C',
  };
  return [
    matmul(inProj, component, {
      cuts: byRows(paramsOf(inProj), name, channels, channels),
      backward: allReduce(inputWidth(inProj)),
      saved: [saved],
    }),
    convolution(conv, component, inner, name),
    // Every GPU needs the whole step, B and C.
    closingMatmul(xProj, component, name, channels, { backward: allReduce(outputWidth(xProj)) }),
    ...layer.innerNorms.flatMap((each) =>
      lower(each, { width: each.size, share: 'whole', component }),
    ),
    matmul(dtProj, component, { cuts: byRows(paramsOf(dtProj), name, channels) }),
    {
      kind: 'scan',
      layer: name,
      component,
      input: inner,
      output: inner,
      params: [stateLog, skip],
      saved: [],
      cuts: byRows([stateLog, skip], name, channels),
      launches: 1,
      inner,
      state,
      decays: 'values',
      inFloat32: layer.float32State,
    },
    closingMatmul(outProj, component, name, channels),
  ];
}

/** Heads are whole on a GPU; with fewer groups than GPUs, several have the same B and C. */
function lowerStateSpaceDual(layer: StateSpaceDual, component: Component): Primitive[] {
  const { name, stepBias, stateLog, skip, inProj, conv, norm, outProj } = layer;
  const { heads, headDim, stateSize: state, groups } = layer;
  const inner = heads * headDim;
  const values = runOf('heads', heads, headDim);
  const shared = runOf('key-value heads', groups, state);
  const steps = runOf('heads', heads);
  const mixed = convolution(conv, component, inner + 2 * groups * state, name);
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', inputWidth(inProj)),
      vectors(norm ? 4 : 7, 'inner', inner, 'width'),
      vectors(6, 'shared', groups * state, 'width'),
      vectors(2, 'heads', heads, 'width'),
    ],
    source:
      'its input; x, B and C before and after convolution and activation, the step before and after softplus, ' +
      `x times its step${norm ? '' : '; the gate before and after its activation, and the output of the scan'}`,
  };
  return [
    matmul(inProj, component, {
      cuts: byRows(paramsOf(inProj), name, values, values, shared, shared, steps),
      backward: allReduce(inputWidth(inProj)),
      saved: [saved],
    }),
    { ...mixed, cuts: byRows(mixed.params, name, values, shared, shared) },
    {
      kind: 'scan',
      layer: name,
      component,
      input: inner,
      output: inner,
      params: [stepBias, stateLog, skip],
      saved: [],
      cuts: byRows([stepBias, stateLog, skip], name, steps),
      launches: 1,
      inner,
      state,
      decays: 'heads',
      inFloat32: true,
    },
    norm
      ? gatedNorm(norm, component, { of: name, run: values })
      : elementwise(layer, component, inner),
    closingMatmul(outProj, component, name, values, {
      saved: [
        { part: component, vectors: [vectors(1, 'inner', inner, 'width')], source: 'its input' },
      ],
    }),
  ];
}

/** Heads are whole on a GPU; with fewer key heads than GPUs, several have the same queries and keys. */
function lowerGatedDelta(layer: GatedDelta, component: Component): Primitive[] {
  const { name, stepBias, stateLog, inputs, convs, norm, outProj } = layer;
  const { keyHeads, keyDim, valueHeads, valueDim } = layer;
  const [keys, inner] = [keyHeads * keyDim, valueHeads * valueDim];
  const keyRun = runOf('key-value heads', keyHeads, keyDim);
  const valueRun = runOf('heads', valueHeads, valueDim);
  const steps = runOf('heads', valueHeads);
  const runs = [keyRun, keyRun, valueRun];
  const mixed = convs.map((conv, index) => {
    const lowered = convolution(conv, component, conv.weight.shape[0] ?? 0, name);
    const own = convs.length === 1 ? runs : runs.slice(index, index + 1);
    return { ...lowered, cuts: byRows(lowered.params, name, ...own) };
  });
  const saved: Saved = {
    part: component,
    vectors: [
      vectors(1, 'hidden', sharedInputWidth(inputs)),
      vectors(8, 'keys', keys, 'width'),
      vectors(3, 'inner', inner, 'width'),
      vectors(4, 'heads', valueHeads, 'width'),
    ],
    source:
      'its input; q and k before and after convolution, activation and division by their length; v before and after ' +
      'convolution and activation; β and the step before and after their functions',
  };
  return [
    ...openingMatmuls(inputs, component, {
      of: name,
      runs: [keyRun, keyRun, valueRun, valueRun, steps, steps],
      saved: [saved],
    }),
    ...mixed,
    {
      kind: 'scan',
      layer: name,
      component,
      input: inner,
      output: inner,
      params: [stepBias, stateLog],
      saved: [],
      cuts: byRows([stepBias, stateLog], name, steps),
      launches: 1,
      inner,
      state: keyDim,
      decays: 'delta',
      inFloat32: true,
    },
    gatedNorm(norm, component, { of: name, run: valueRun }),
    closingMatmul(outProj, component, name, valueRun, {
      saved: [
        { part: component, vectors: [vectors(1, 'inner', inner, 'width')], source: 'its input' },
      ],
    }),
  ];
}

function lowerGatedConv(layer: GatedConv, component: Component): Primitive[] {
  const { name, conv, inProj, outProj } = layer;
  const hidden = inputWidth(inProj);
  const channels = runOf('channels', hidden);
  const saved: Saved = {
    part: component,
    vectors: [vectors(1, 'hidden', hidden), vectors(6, 'channels', hidden, 'width')],
    source: 'its input; B, C, x, B · x, the output of the convolution and C times it',
  };
  return [
    matmul(inProj, component, {
      cuts: byRows(paramsOf(inProj), name, channels, channels, channels),
      backward: allReduce(hidden),
      saved: [saved],
    }),
    elementwise(layer, component, hidden),
    convolution(conv, component, hidden, name),
    elementwise(layer, component, hidden),
    closingMatmul(outProj, component, name, channels),
  ];
}
