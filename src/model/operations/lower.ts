/**
 * Lowers layers to primitives, in order of computation. The cost of a layer kind is defined only here
 * and in `lower-….ts`. FLOPs, saved activations, states, tensor cuts, collectives, kernel launches and the largest tensors follow
 * from it.
 */
import { equalBlocks } from '../architecture/equal-blocks.js';
import type { HybridBlock, LanguageModel, Layer } from '../architecture/layer.js';
import {
  inputWidth,
  isProduct,
  memoized,
  memoizedBy,
  normWidth,
  tensorsOf,
} from '../architecture/walk.js';
import { lowerAltUpBlock, lowerAltUpEnd, lowerPerLayerBranch } from './lower-altup.js';
import { lowerAttention, lowerIndexer, lowerLatentAttention } from './lower-attention.js';
import {
  lowerDifferentialAttention,
  lowerDynamicMask,
  lowerExpertAttention,
  lowerProductKeyExperts,
} from './lower-attention-kinds.js';
import { lowerDescribed } from './lower-described.js';
import { lowerGatedMlp, lowerMixture, lowerRouter } from './lower-feed-forward.js';
import { lowerBlockDiagonal, lowerGriffin } from './lower-griffin.js';
import { lowerKimiDelta, lowerLightningAttention } from './lower-linear-attention.js';
import {
  lowerGatedConv,
  lowerGatedDelta,
  lowerHeadedMamba,
  lowerMamba,
  lowerStateSpaceDual,
} from './lower-recurrent.js';
import { lowerRwkvChannelMix, lowerRwkvTimeMix } from './lower-rwkv.js';
import {
  byLength,
  byRows,
  convolution,
  elementwise,
  gatedNorm,
  gatheredMatmul,
  type LoweringContext,
  lookup,
  matmul,
  norm,
  normStatistics,
  unfusedNorm,
  vocabularyRun,
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

/**
 * Primitives for counts: of a model in parts, those of the layers before its blocks, of one block for all equal ones, and
 * of the layers after. Tensors and names are those of the one block, perhaps of another model. Models can have their
 * blocks in common, so folds remember their results for each part.
 */
export const countedParts: (layer: Layer) => readonly (readonly Primitive[])[] = memoized(
  (layer) =>
    layer.kind === 'languageModel'
      ? modelPrimitives(layer, kindsOfPrimitives)
      : [primitivesOf(layer)],
);

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
      return modelPrimitives(layer, primitivesOfBlocks).flat();
    case 'hybridBlock':
      return lowerHybridBlock(layer, inside);
    case 'cycles':
      return layer.stacks.flatMap((stack, index) => [
        elementwise(layer, component, width, { params: index === 0 ? [layer.initial] : [] }),
        ...lower(stack, inside),
      ]);
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
    case 'expertAttention':
      return lowerExpertAttention(layer, inside, lower);
    case 'differentialAttention':
      return lowerDifferentialAttention(layer, component);
    case 'dynamicMask':
      return lowerDynamicMask(layer, component);
    case 'productKeyExperts':
      return lowerProductKeyExperts(layer, inside, lower);
    case 'tokenIndexer':
    case 'blockIndexer':
      return lowerIndexer(layer);
    case 'mamba':
      return lowerMamba(layer, component, lower);
    case 'headedMamba':
      return lowerHeadedMamba(layer, component);
    case 'stateSpaceDual':
      return lowerStateSpaceDual(layer, component);
    case 'gatedDelta':
      return lowerGatedDelta(layer, component);
    case 'gatedConv':
      return lowerGatedConv(layer, component);
    case 'kimiDelta':
      return lowerKimiDelta(layer, component);
    case 'blockDiagonal':
      return [lowerBlockDiagonal(layer, component)];
    case 'griffinRecurrence':
      return lowerGriffin(layer, component);
    case 'rwkvTimeMix':
      return lowerRwkvTimeMix(layer, component);
    case 'rwkvChannelMix':
      return lowerRwkvChannelMix(layer, component);
    case 'lightningAttention':
      return lowerLightningAttention(layer, component);
    case 'gatedMlp':
      return lowerGatedMlp(layer, component);
    case 'mixtureOfExperts':
      return lowerMixture(layer, inside, lower);
    case 'router':
      return lowerRouter(layer, inside, lower);
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
    case 'xielu': {
      const steps: Saved = {
        part: 'unfused',
        vectors: [vectors(3, 'inner', width, share)],
        source:
          'of xIELU made of elementary steps: α · x, the exponential, and its distance from x',
      };
      const { positive, negative, beta, eps } = layer;
      return [
        elementwise(layer, component, width, {
          params: [positive, negative, beta, eps],
          saved: [saved('input of the activation', vectors(1, 'inner', width, share)), steps],
        }),
      ];
    }
    case 'sinusoidalPositions':
      return [elementwise(layer, component, width)];
    case 'described':
      return lowerDescribed(layer, inside, lower);
    case 'skippedBlock':
      return [elementwise(layer, component, width, { launches: 0, params: tensorsOf(layer) })];
    case 'softcap': {
      const tanh = saved('tanh', vectors(1, 'width', width, share));
      return [elementwise(layer, component, width, { saved: [tanh] })];
    }
    case 'shift':
      return [elementwise(layer, component, width, { params: [layer.bias] })];
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
      return lowerAltUpBlock(layer, inside, lower);
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
function modelPrimitives(
  model: LanguageModel,
  primitivesIn: (blocks: readonly Layer[], width: number) => readonly Primitive[],
): (readonly Primitive[])[] {
  const { embedding, embeddingSteps, blocks, norm, head, logitSteps } = model;
  const width = model.hidden;
  const component = model.component ?? 'other';
  const inTurn = (...layers: readonly Layer[]) =>
    lowerInTurn('', layers, { width, share: 'tokens', component });
  const { output } = matmul(head, component);
  return [
    inTurn(embedding, ...embeddingSteps),
    primitivesIn(blocks, width),
    inTurn(norm, head, ...logitSteps).map((each) =>
      each.layer === head.name
        ? { ...each, cuts: byRows(each.params, each.layer, vocabularyRun(output)) }
        : each,
    ),
  ];
}

const primitivesOfBlocks = (blocks: readonly Layer[], width: number): readonly Primitive[] =>
  blocks.flatMap((block) => primitivesOf(block, width));

const kindsOfPrimitives = memoizedBy(
  (width: number) => width,
  (blocks: readonly Layer[], width): readonly Primitive[] =>
    equalBlocks(blocks).flatMap(({ block, times }) =>
      primitivesOf(block, width).map((each) => ({ ...each, times })),
    ),
);

const PER_BATCH = 'positions of a batch';

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
    share = isActivation(layers[index + 1]) ? 'width' : 'tokens';
    return primitives.map((each) =>
      each.kind === 'matmul' ? paired(each, name, layers, index) : each,
    );
  });
}

const isActivation = (layer: Layer | undefined) =>
  layer?.kind === 'activation' || layer?.kind === 'xielu';

/** Cuts a product as one of a pair around an activation, if it is one. */
function paired(product: Matmul, of: string, layers: readonly Layer[], index: number): Matmul {
  const isPairWith = (step: 1 | -1) => {
    const other = layers[index + 2 * step];
    return other !== undefined && isProduct(other);
  };
  const { forward: _, backward, ...alone } = product;
  if (isActivation(layers[index - 1])) {
    const cuts = byLength(product.tensor, of, runOf('inner values', product.input));
    return isPairWith(-1)
      ? { ...alone, cuts, forward: allReduce(product.output) }
      : { ...product, cuts };
  }
  if (!isActivation(layers[index + 1])) return product;
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
