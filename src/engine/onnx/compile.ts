/** Compiles a description of a model, or of a part of it, to an ONNX graph. */
import type { LanguageModel, Layer } from '../../model/architecture/layer.js';
import { describedOnly, inputKindOf, mixesTokens } from '../calls.js';
import type { ProgramOptions } from '../engine.js';
import type {
  Context,
  GraphContext,
  InitializerLookup,
  Outputs,
  QuantizedLookup,
  QuantizedWeight,
  Target,
} from './context.js';
import {
  feedPositions,
  flattened,
  ON_CPU,
  rowsWithin,
  scaledBy,
  weightOf,
  whole,
} from './context.js';
import { declarationOf, type Feed } from './feeds.js';
import { GraphBuilder, type GraphValue, LEFT_OUT } from './graph.js';
import { madeInGraph } from './in-graph-feeds.js';
import { logitColumns } from './largest-tensor.js';
import { emitAttention, emitLatentAttention } from './layers/attention/emit-attention.js';
import {
  emitDifferentialAttention,
  emitDynamicMask,
  emitExpertAttention,
} from './layers/attention/emit-attention-kinds.js';
import {
  emitAlignment,
  emitAltUpBlock,
  emitAltUpMerge,
  emitAltUpSplit,
  emitCycles,
  emitGate,
  emitHidden,
  emitHybridBlock,
  emitLanguageModel,
  emitLogits,
  emitNeededLogits,
  emitResidual,
  emitSequence,
  emitSum,
} from './layers/block.js';
import {
  activated,
  capped,
  emitGatedMlp,
  emitGatedRmsNorm,
  emitHeadNorms,
  emitLayerNorm,
  emitRmsNorm,
  emitXielu,
} from './layers/elementwise.js';
import {
  emitEmbedding,
  emitEmbeddingJoin,
  emitLearnedPositions,
  emitPerLayerBranch,
  emitPerLayerInputs,
  emitSinusoidalPositions,
  emitSrteLowRank,
  emitSrteSincos,
  emitSrteTable,
  rotaryAlone,
} from './layers/embeddings.js';
import {
  emitCausalConv,
  emitGatedConv,
  emitGatedDelta,
  emitHeadedMamba,
  emitMamba,
} from './layers/emit-recurrent.js';
import { emitBlockDiagonal, emitGriffin } from './layers/griffin.js';
import { emitKimiDelta, emitLightningAttention } from './layers/linear-attention.js';
import { emitMixtureOfExperts, emitRouter } from './layers/mixture-of-experts.js';
import { emitProjection, fusedParts } from './layers/projections.js';
import { emitRwkvChannelMix, emitRwkvTimeMix } from './layers/rwkv.js';
import { emitStateSpaceDual } from './layers/state-space-dual.js';
import type { GraphProto, Initializer } from './proto.js';
import { lookupName, withFloat16Products } from './quantized-products.js';

/** Graph from outputs of the last block to logits: `rows` [R, C] → `logits` [R, V]. */
export interface LogitsGraph {
  readonly graph: GraphProto;
  readonly rows: GraphValue;
  readonly logits: GraphValue;
  /** V */
  readonly vocabulary: number;
}

/** A graph with its inputs and outputs. */
export interface CompiledGraph extends Outputs {
  readonly graph: GraphProto;
  readonly feeds: ReadonlyMap<string, Feed>;
  /** Output of the layer [B, T, …], or a language model's logits as rows [B · n, ·], in column blocks. */
  readonly output: readonly GraphValue[];
  /** Whether the output is rows. */
  readonly isInRows: boolean;
  /** Graph that makes the logits from rows of the output, if the graph itself does not. */
  readonly logits: LogitsGraph | undefined;
  /** Weight elements in the graph: a weight that occurs twice counts twice. */
  readonly weightElements: number;
  /** Names of these weights. */
  readonly weights: ReadonlySet<string>;
}

/**
 * Compiles a layer and its sublayers.
 * @param place Returns the location of a weight.
 * @param quantized Returns the location of a quantized weight; by default, no weight is quantized.
 */
export function compile(
  layer: Layer,
  place: InitializerLookup,
  options: ProgramOptions,
  target: Target = ON_CPU,
  quantized: QuantizedLookup = () => undefined,
): CompiledGraph {
  const graph = new GraphBuilder();
  const feeds = new Map<string, Feed>();
  const weights = new Set<string>();
  const quantizedWeights = new Map<string, QuantizedWeight>();
  const shared = {
    graph,
    target,
    cacheType: options.decoding?.cacheType,
    mostRows: rowLimit(layer, target),
    place(...which: Parameters<InitializerLookup>): Initializer {
      const initializer = place(...which);
      weights.add(initializer.name);
      return initializer;
    },
    quantized(...which: Parameters<QuantizedLookup>): QuantizedWeight | undefined {
      const found = quantized(...which);
      if (found) quantizedWeights.set(found.codes.name, found);
      return found;
    },
    outputs: {
      blocks: options.blocks === false ? undefined : new Map(),
      taps: options.taps ? new Map() : undefined,
      sent: options.sent ? new Map() : undefined,
      states: options.decoding ? new Map() : undefined,
      newRows: new Map(),
    },
    feed(name: string, feed: Feed): GraphValue {
      feeds.set(name, feed);
      const { type, shape } = declarationOf(feed);
      return graph.input(name, type, shape);
    },
    once: onceEach(),
    isForOthers: false,
  } as const;
  const { sizes, inputs } = rootInputs(layer, shared);
  const context = contextOf(shared, sizes);
  const model = layer.kind === 'languageModel' && !options.taps ? layer : undefined;
  const isApart = model !== undefined && hasLogitsApart(options, target);
  const results = (() => {
    if (isApart) return [emitHidden(context, model, inputs[0])];
    if (model) return emitNeededLogits(context, model, ...inputs);
    return [whole(context, context.apply(layer, ...inputs))];
  })();
  const output = results.map((part) => graph.output(part));
  for (const [path, counts] of shared.outputs.sent ?? [])
    shared.outputs.sent?.set(path, graph.output(counts));
  const built = graph.build(layer.name);
  const logits = isApart ? logitsGraph(shared, model) : undefined;
  const { initializers } = graphParts({ graph: built, logits });
  const inFloats = initializers
    .filter(({ name }) => weights.has(name))
    .reduce((sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1), 0);
  const inGroups = [...quantizedWeights.values()];
  const weightElements = inGroups.reduce((sum, each) => sum + each.rows * each.columns, inFloats);
  for (const each of inGroups) {
    for (const name of storedNames(initializers, each)) weights.add(name);
  }
  const made = COMPUTED_IN[target.compute](built, layer);
  return {
    feeds,
    output,
    isInRows: model !== undefined,
    logits,
    weightElements,
    weights,
    ...shared.outputs,
    graph: made,
  };
}

/**
 * Whether the logits are computed by a graph of their own, some rows at a time: ONNX Runtime copies its outputs, and
 * those of a long sequence are its largest value. A decoder asks for few.
 */
const hasLogitsApart = ({ decoding }: ProgramOptions, { provider, compute }: Target): boolean =>
  decoding === undefined && provider === 'cpu' && compute === 'f32';

function logitsGraph(outer: GraphContext, model: LanguageModel): LogitsGraph {
  const graph = new GraphBuilder();
  const shared: GraphContext = {
    ...outer,
    graph,
    once: onceEach(),
    outputs: { blocks: undefined, taps: undefined, states: undefined, newRows: new Map() },
    feed: (name) => {
      throw new Error(`logits depend on ${name}`);
    },
  };
  const rows = graph.input('rows', 'f32', ['R', 'C']);
  const count = graph.op('Shape', [rows], { attributes: { start: 0, end: 1 } });
  const sizes = graph.op('Concat', [graph.ints(1), count], { attributes: { axis: 0 } });
  const parts = emitLogits(contextOf(shared, sizes), model, rows);
  const logits = graph.output(graph.joined(parts));
  const vocabulary = model.head.weight.shape[0] ?? 0;
  return { graph: graph.build(`${model.name} logits`), rows, logits, vocabulary };
}

/** Nodes and initializers of a graph and of that of its logits, those of the same name once. */
export function graphParts({
  graph,
  logits,
}: Pick<CompiledGraph, 'logits' | 'graph'>): Pick<GraphProto, 'nodes' | 'initializers'> {
  const graphs = logits ? [graph, logits.graph] : [graph];
  const named = graphs.flatMap((each) => each.initializers.map((own) => [own.name, own] as const));
  return {
    nodes: graphs.flatMap(({ nodes }) => nodes),
    initializers: [...new Map(named).values()],
  };
}

/** Names of the initializers of a quantized weight, each of its bytes once. */
function storedNames(
  initializers: readonly Initializer[],
  { codes, scales, zeroPoints }: QuantizedWeight,
): string[] {
  const isProduct = initializers.some(({ name }) => name === codes.name);
  return [isProduct ? codes.name : lookupName(codes), scales.name, zeroPoints.name];
}

/** Adjusts a layer's graph to the number type of its products. */
const COMPUTED_IN: Readonly<
  Record<Target['compute'], (graph: GraphProto, layer: Layer) => GraphProto>
> = {
  f32: (graph) => graph,
  f16: withFloat16Products,
};

/**
 * Compiles a language model to a standalone graph for ONNX Runtime: token ids `input_ids` [batch, sequence] of int64
 * in, `logits` [batch, sequence, vocabulary] out. The graph computes all other inputs.
 */
export function compileAlone(
  model: LanguageModel,
  place: InitializerLookup,
  quantized: QuantizedLookup,
): GraphProto {
  const graph = new GraphBuilder();
  const ids = graph.input('input_ids', 'i64', ['batch', 'sequence']);
  const once = onceEach();
  const shared: GraphContext = {
    graph,
    place,
    quantized,
    target: ON_CPU,
    mostRows: (tensor) => rowsWithin(ON_CPU, tensor),
    once,
    isForOthers: true,
    outputs: { blocks: undefined, taps: undefined, states: undefined, newRows: new Map() },
    feed: (name, feed) => once(`feed:${name}`, () => madeInGraph({ graph, once }, ids, feed)),
  };
  const context = contextOf(shared, graph.op('Shape', [ids]));
  const vocabulary = model.head.weight.shape[0] ?? 0;
  graph.declareOutput(whole(context, context.apply(model, ids)), {
    name: 'logits',
    type: 'f32',
    shape: ['batch', 'sequence', vocabulary],
  });
  return { ...graph.build('model'), sized: [] };
}

/**
 * Maximum rows of a weight for one operation. For the head these are columns of the logits, which have a limit of their
 * own.
 */
function rowLimit(layer: Layer, target: Target): GraphContext['mostRows'] {
  if (layer.kind !== 'languageModel') return (tensor) => rowsWithin(target, tensor);
  const columns = logitColumns(target, layer);
  return (tensor) =>
    Math.min(
      rowsWithin(target, tensor),
      tensor === layer.head.weight ? columns : Number.POSITIVE_INFINITY,
    );
}

/** Creates each value only once. */
function onceEach(): GraphContext['once'] {
  const made = new Map<unknown, unknown>();
  return <Made>(key: unknown, make: () => Made): Made => {
    if (!made.has(key)) made.set(key, make());
    return made.get(key) as Made;
  };
}

/** Context of layers whose rows have these sizes. */
function contextOf(shared: GraphContext, sizes: GraphValue): Context {
  const { graph, outputs } = shared;
  const context: Context = {
    ...shared,
    sizes,
    withSizes: (others) => contextOf(shared, others),
    apply(layer, ...inputs) {
      return graph.within(layer.name, () => {
        const own =
          inputKindOf(layer) === 'nothing' ? contextOf(shared, encodingSizes(shared)) : context;
        const value = addLayer(own, layer, inputs);
        outputs.taps?.set(layer.name, graph.output(whole(own, value)));
        return value;
      });
    },
  };
  return context;
}

/** Inputs of the layer to compile, and their sizes. */
function rootInputs(
  layer: Layer,
  shared: GraphContext,
): { sizes: GraphValue; inputs: readonly GraphValue[] } {
  const { graph, feed } = shared;
  const values = (count: number) => {
    const given = Array.from({ length: count }, (_, index) =>
      feed(`input.${index}`, { kind: 'value', index }),
    );
    const sizes = graph.op('Shape', given.slice(0, 1), { attributes: { start: 0, end: 2 } });
    return { sizes, inputs: given.map((value) => flattened({ ...shared, sizes }, value)) };
  };
  switch (inputKindOf(layer)) {
    case 'ids': {
      const ids = feed('ids', { kind: 'ids' });
      return { sizes: graph.op('Shape', [ids]), inputs: [ids] };
    }
    case 'nothing':
      return { sizes: encodingSizes(shared), inputs: [] };
    case 'a value':
      return values(1);
    case 'two values':
      return values(2);
  }
}

/** An SRTE has the rows of a batch of one: 1 and T, [2]. */
function encodingSizes(shared: GraphContext): GraphValue {
  const { graph, once } = shared;
  return once('encoding sizes', () => {
    const tokens = graph.op('Shape', [feedPositions(shared)]);
    return graph.op('Concat', [graph.ints(1), tokens], { attributes: { axis: 0 } });
  });
}

/** Adds one layer. @param inputs Its inputs. */
function addLayer(
  context: Context,
  layer: Layer,
  [x = LEFT_OUT, y = LEFT_OUT]: readonly GraphValue[],
): GraphValue {
  switch (layer.kind) {
    case 'languageModel':
      return emitLanguageModel(context, layer, x);
    case 'hybridBlock':
      return emitHybridBlock(context, layer, x);
    case 'cycles':
      return emitCycles(context, layer, x);
    case 'sequence':
      return emitSequence(context, layer.layers, x);
    case 'sinusoidalPositions':
      return emitSinusoidalPositions(context, layer, x);
    case 'described':
      throw describedOnly(layer);
    case 'skippedBlock':
      return x;
    case 'sum':
      return emitSum(context, layer, x);
    case 'residual':
      return emitResidual(context, layer, x);
    case 'embedding':
      return emitEmbedding(context, layer, x);
    case 'embeddingJoin':
      return emitEmbeddingJoin(context, layer, x);
    case 'learnedPositions':
      return emitLearnedPositions(context, layer, x);
    case 'linear':
    case 'transposedLinear':
      return emitProjection(context, layer, x);
    case 'fusedProjection':
      return context.graph.joined(fusedParts(context, layer, x));
    case 'layerNorm':
      return emitLayerNorm(context, layer, x);
    case 'headNorms':
      return emitHeadNorms(context, layer, x);
    case 'rmsNorm':
      return emitRmsNorm(context, layer, x);
    case 'gatedRmsNorm':
      return emitGatedRmsNorm(context, layer, x, y);
    case 'activation':
      return activated(context, layer.fn, x);
    case 'xielu':
      return emitXielu(context, layer, x);
    case 'scale':
      return scaledBy(context, x, layer.factor);
    case 'altUpSplit':
      return emitAltUpSplit(context, layer, x);
    case 'altUpMerge':
      return emitAltUpMerge(context, layer, x);
    case 'altUpBlock':
      return emitAltUpBlock(context, layer, x);
    case 'shift':
      return context.graph.op('Add', [x, weightOf(context, layer.bias)]);
    case 'weightedScale':
      return context.graph.op('Mul', [x, weightOf(context, layer.weight)]);
    case 'perLayerInputs':
      return emitPerLayerInputs(context, layer, x);
    case 'perLayerBranch':
      return emitPerLayerBranch(context, layer, x);
    case 'softcap':
      return capped(context, x, layer.cap);
    case 'gatedMlp':
      return emitGatedMlp(context, layer, x);
    case 'router':
      return emitRouter(context, layer, x);
    case 'mixtureOfExperts':
      return emitMixtureOfExperts(context, layer, x);
    case 'causalConv':
      return emitCausalConv(context, layer, x);
    case 'mamba':
      return emitMamba(context, layer, x);
    case 'headedMamba':
      return emitHeadedMamba(context, layer, x);
    case 'stateSpaceDual':
      return emitStateSpaceDual(context, layer, x);
    case 'gatedDelta':
      return emitGatedDelta(context, layer, x);
    case 'gatedConv':
      return emitGatedConv(context, layer, x);
    case 'kimiDelta':
      return emitKimiDelta(context, layer, x);
    case 'blockDiagonal':
      return emitBlockDiagonal(context, layer, x);
    case 'griffinRecurrence':
      return emitGriffin(context, layer, x);
    case 'rwkvTimeMix':
      return emitRwkvTimeMix(context, layer, x);
    case 'rwkvChannelMix':
      return emitRwkvChannelMix(context, layer, x);
    case 'lightningAttention':
      return emitLightningAttention(context, layer, x);
    case 'rotary':
      return rotaryAlone(context, layer, x);
    case 'attention':
      return emitAttention(context, layer, x);
    case 'latentAttention':
      return emitLatentAttention(context, layer, x);
    case 'expertAttention':
      return emitExpertAttention(context, layer, x);
    case 'differentialAttention':
      return emitDifferentialAttention(context, layer, x);
    case 'dynamicMask':
      return emitDynamicMask(context, layer, x);
    case 'productKeyExperts':
      throw mixesTokens(layer.name);
    case 'srteTable':
      return emitSrteTable(context, layer);
    case 'srteLowRank':
      return emitSrteLowRank(context, layer);
    case 'srteSincos':
      return emitSrteSincos(context, layer);
    case 'alignment':
      return emitAlignment(context, layer, x, y);
    case 'gate':
      return emitGate(context, layer, x);
    case 'packedExperts':
    case 'clampedExperts':
    case 'alibi':
    case 'tokenIndexer':
    case 'blockIndexer':
      throw new Error(`a ${layer.kind} computes nothing by itself: it belongs to what holds it`);
  }
}
