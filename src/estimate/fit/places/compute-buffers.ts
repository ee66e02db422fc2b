/** Workspace of llama.cpp on a GPU: the buffers of its compute graph, in place of the activations of other programs. */
import type { LanguageModel } from '../../../model/architecture/layer.js';
import {
  expertTensors,
  isRouted,
  memoized,
  outputWidth,
  walkCounted,
} from '../../../model/architecture/walk.js';
import { add, div, inputs, max, mul } from '../../../model/budget/expression.js';
import { type Bounds, quantity } from '../../../model/budget/figure.js';
import { primitivesOf } from '../../../model/operations/lower.js';
import type { Gpu } from '../../hardware/gpu.js';
import { eachBound, sumBounds } from '../bounds.js';
import { servingMemoryOf } from '../serving/serving-memory.js';
import type { ServedLayout } from '../serving/serving-work.js';

/** Tokens of a prompt that pass through the layers at a time (llama.cpp, common/common.h: n_ubatch). */
export const MICRO_BATCH = 512;

/** Parts of the workspace that the compute graph has in its own buffers. */
const OF_GRAPH: ReadonlySet<string> = new Set(['activations', 'logits', 'unfilled cache blocks']);

/** Workspace of a GPU with the output, and of one with blocks alone. */
interface Workspaces {
  readonly workspace: Bounds;
  readonly insideWorkspace: Bounds;
}

export function workspacesOf(
  served: ServedLayout,
  gpu: Gpu,
  { batch, context }: { readonly batch: number; readonly context: number },
): Workspaces {
  const { workspaceParts } = servingMemoryOf(served, gpu)(batch, context);
  const others = workspaceParts.filter(({ part }) => !OF_GRAPH.has(part));
  const withGraph = (hasOutput: boolean) =>
    sumBounds(
      'workspace',
      {
        ...Object.fromEntries(
          others.map(({ part, bytes }) => [part.replace(/\W+/g, '_'), bytes] as const),
        ),
        compute_buffer: computeBuffer(served.model, context, hasOutput),
      },
      'sum of the parts',
    );
  return { workspace: withGraph(true), insideWorkspace: withGraph(false) };
}

/** Share by which the measured buffers differ (fixtures/fit/llama-buffers.json). */
const SPREAD = { lower: 0.92, expected: 1, upper: 1.08 } as const satisfies Record<
  keyof Bounds,
  number
>;

/**
 * Largest moment of the graph for a micro-batch, in float32: logits of all its tokens and the hidden values; or in a block
 * its inner values three times, or with experts their outputs twice; and the mask in 16 bits. Found from the sizes that
 * llama.cpp's own loader states for 12 models (ggml 0.20.2).
 */
function computeBuffer(model: LanguageModel, context: number, hasOutput: boolean): Bounds {
  const { inner, outputs } = widthsOf(model);
  const of = inputs({
    tokens: MICRO_BATCH,
    vocabulary: hasOutput ? outputWidth(model.head) : 0,
    hidden: model.hidden,
    inner,
    outputs,
    context,
  });
  const block = max(
    mul(3, add(of.inner, of.hidden)),
    add(mul(2, of.outputs), of.inner, mul(2, of.hidden)),
  );
  const inBlock = add(block, div(of.context, 2));
  const largest = hasOutput ? max(add(of.vocabulary, of.hidden), inBlock) : inBlock;
  return eachBound(SPREAD, (share) =>
    quantity({
      label: 'compute buffer',
      unit: 'bytes',
      formula: mul(share, 4, of.tokens, largest),
      inputs: of,
      source: 'of the graph of a micro-batch, as llama.cpp reserves it (ggml, gallocr)',
    }),
  );
}

/** Widest values of a token inside a block, and the outputs of all its experts. */
const widthsOf = memoized((model: LanguageModel) => {
  const { hidden } = model;
  const products = model.blocks.flatMap((block) =>
    primitivesOf(block).flatMap((each) =>
      each.kind === 'matmul'
        ? [{ length: each.tensor.shape.at(-1) ?? 1, weights: each.weights }]
        : [],
    ),
  );
  const backwards = products.filter(({ length }) => length !== hidden);
  const experts = walkCounted(model).flatMap(({ layer }) => (isRouted(layer) ? [layer] : []));
  const ofExperts = experts.flatMap((layer) =>
    expertTensors(layer).map(
      ({ tensor }) => layer.router.expertsPerToken * (tensor.shape.at(-1) ?? 1),
    ),
  );
  const perToken = experts.map(({ router }) => router.expertsPerToken);
  const isBackwards = (width: number) => !perToken.some((count) => width === count * hidden);
  const inner = Math.max(
    hidden,
    ...backwards.map(({ weights }) => weights / hidden),
    ...ofExperts.filter(isBackwards),
  );
  const outputs = perToken.length === 0 ? 0 : Math.max(...perToken) * hidden;
  return { inner, outputs };
});
