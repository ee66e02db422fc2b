/** The description of a model, or of a part of it, as an ONNX graph. */
import type { Layer } from '../../architecture/layer.js';
import type { Param } from '../../architecture/param.js';
import type { LoadOptions } from '../engine.js';
import { inputsOf } from '../inputs.js';
import { type Context, folded, type Outputs, positionsOf, type Shared, whole } from './context.js';
import { declarationOf, type Feed } from './feeds.js';
import { GraphBuilder, LEFT_OUT, type Value } from './graph.js';
import { attention } from './layers/attention.js';
import { embedding, layerNorm, linear } from './layers/basic.js';
import { alignment, gate, hybridBlock, languageModel } from './layers/block.js';
import { causalConv, mamba } from './layers/mamba.js';
import { rotary } from './layers/rotary.js';
import { srteLowRank, srteSincos, srteTable } from './layers/srte.js';
import type { GraphProto, Initializer } from './proto.js';

/** A graph, and what goes into it and comes out of it. */
export interface CompiledGraph extends Outputs {
  readonly graph: GraphProto;
  /** What each of its inputs gets. */
  readonly feeds: ReadonlyMap<string, Feed>;
  /** What the layer computes. */
  readonly output: Value;
  /** Of the weights that stand in the graph: one that stands there twice counts twice. */
  readonly weightElements: number;
}

/**
 * Compiles a layer and all below it.
 * @param place Says where a weight is.
 */
export function compile(
  layer: Layer,
  place: (tensor: Param) => Initializer,
  options: LoadOptions,
): CompiledGraph {
  const graph = new GraphBuilder();
  const feeds = new Map<string, Feed>();
  const made = new Map<unknown, unknown>();
  const weights = new Set<string>();
  const shared = {
    graph,
    place(tensor: Param): Initializer {
      const initializer = place(tensor);
      weights.add(initializer.name);
      return initializer;
    },
    outputs: {
      blocks: new Map(),
      taps: options.taps ? new Map() : undefined,
      states: options.decoding ? new Map() : undefined,
    },
    feed(name: string, feed: Feed): Value {
      feeds.set(name, feed);
      const { type, shape } = declarationOf(feed);
      return graph.input(name, type, shape);
    },
    once<Made>(key: unknown, make: () => Made): Made {
      if (!made.has(key)) made.set(key, make());
      return made.get(key) as Made;
    },
  } as const;
  const { sizes, inputs } = rootInputs(layer, shared);
  const context = contextOf(shared, sizes);
  const output = graph.output(whole(context, context.apply(layer, ...inputs)));
  const built = graph.build(layer.name);
  const weightElements = built.initializers
    .filter(({ name }) => weights.has(name))
    .reduce((sum, { shape }) => sum + shape.reduce((product, size) => product * size, 1), 0);
  return { feeds, output, weightElements, ...shared.outputs, graph: built };
}

/** For layers whose rows have these sizes. */
function contextOf(shared: Shared, sizes: Value): Context {
  const { graph, outputs } = shared;
  const context: Context = {
    ...shared,
    sizes,
    apply(layer, ...inputs) {
      return graph.within(layer.name, () => {
        const own =
          inputsOf(layer) === 'nothing' ? contextOf(shared, encodingSizes(shared)) : context;
        const value = addLayer(own, layer, inputs);
        outputs.taps?.set(layer.name, graph.output(whole(own, value)));
        return value;
      });
    },
  };
  return context;
}

/** What the layer to compile is given, and the sizes of it. */
function rootInputs(layer: Layer, shared: Shared): { sizes: Value; inputs: readonly Value[] } {
  const { graph, feed } = shared;
  const values = (count: number) => {
    const given = Array.from({ length: count }, (_, index) =>
      feed(`input.${index}`, { kind: 'value', index }),
    );
    const sizes = graph.op('Shape', given.slice(0, 1), { attributes: { start: 0, end: 2 } });
    return { sizes, inputs: given.map((value) => folded(shared, value)) };
  };
  switch (inputsOf(layer)) {
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

/** An SRTE's rows are those of a batch of one: 1 and T, [2]. */
function encodingSizes(shared: Shared): Value {
  const { graph, once } = shared;
  return once('encoding sizes', () => {
    const tokens = graph.op('Shape', [positionsOf(shared)]);
    return graph.op('Concat', [graph.ints(1), tokens], { attributes: { axis: 0 } });
  });
}

/** Adds one layer. @param inputs As many as it takes. */
function addLayer(
  context: Context,
  layer: Layer,
  [x = LEFT_OUT, y = LEFT_OUT]: readonly Value[],
): Value {
  switch (layer.kind) {
    case 'languageModel':
      return languageModel(context, layer, x);
    case 'hybridBlock':
      return hybridBlock(context, layer, x);
    case 'sequence':
      return layer.layers.reduce((value, each) => context.apply(each, value), x);
    case 'embedding':
      return embedding(context, layer, x);
    case 'linear':
      return linear(context, layer, x);
    case 'layerNorm':
      return layerNorm(context, layer, x);
    case 'activation':
      return context.graph.op('Gelu', [x]);
    case 'transposedLinear':
    case 'fusedProjection':
    case 'rmsNorm':
    case 'scale':
    case 'softcap':
    case 'learnedPositions':
    case 'residual':
    case 'gatedMlp':
    case 'router':
    case 'packedExperts':
    case 'mixtureOfExperts':
    case 'alibi':
    case 'latentAttention':
      throw new Error(`${layer.kind} is not supported yet`);
    case 'causalConv':
      return causalConv(context, layer, x);
    case 'mamba':
      return mamba(context, layer, x);
    case 'rotary':
      return rotary(context, layer, x);
    case 'attention':
      return attention(context, layer, x);
    case 'srteTable':
      return srteTable(context, layer);
    case 'srteLowRank':
      return srteLowRank(context, layer);
    case 'srteSincos':
      return srteSincos(context, layer);
    case 'alignment':
      return alignment(context, layer, x, y);
    case 'gate':
      return gate(context, layer, x);
  }
}
