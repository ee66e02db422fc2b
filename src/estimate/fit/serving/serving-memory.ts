/** Memory of one GPU in serving: exact parts and workspace. */

import { sumOf } from '../../../base/values.js';
import type { LanguageModel } from '../../../model/architecture/layer.js';
import type { Param } from '../../../model/architecture/param.js';
import {
  countedTensors,
  isRouted,
  memoizedBy,
  outputWidth,
  walkCounted,
} from '../../../model/architecture/walk.js';
import { add, type Expression, mul, v } from '../../../model/budget/expression.js';
import type { Figure } from '../../../model/budget/figure.js';
import { type Bounds, type Quantity, quantity } from '../../../model/budget/figure.js';
import { generationOf } from '../../../model/budget/generation.js';
import { activationsOf, unlikeBlocks } from '../../../model/budget/saved-activations.js';
import type { Gpu } from '../../hardware/gpu.js';
import { eachBound, sumBounds } from '../bounds.js';
import { elementsPerGpu } from '../parallelism/parallelism.js';
import {
  type AllocatedTensors,
  channelBytes,
  contextBytes,
  libraryBytes,
  roundingBytes,
} from '../training/gpu-overhead.js';
import { blockBits, servedWeights, storedBitsOf, weightLayout } from './quantized.js';
import { expertSharing, gpusOfReplica, sequencesOfGroup, servingStages } from './serving-axes.js';
import {
  formatKey,
  type SequenceState,
  type ServedLayout,
  type ServingFormat,
  sequenceState,
  valueBytes,
} from './serving-work.js';
import { WEIGHT_DTYPES } from './weight-types.js';

/** Tokens per prefill pass; longer prompts take several passes. */
const PREFILL_CHUNK = 2048;

/** Tokens per block of the KV cache (vLLM, arXiv 2309.06180, section 7.2). */
const CACHE_BLOCK = 16;

export interface WorkspacePart {
  readonly part: string;
  readonly bytes: Bounds;
}

export interface ServingMemory {
  readonly weightParts: readonly { readonly part: string; readonly bytes: Figure }[];
  readonly weights: Figure;
  readonly cachePerSequence: Figure;
  readonly cachePerToken: Figure;
  readonly state: Figure;
  readonly workspaceParts: readonly WorkspacePart[];
  readonly workspace: Bounds;
  readonly total: Bounds;
}

/**
 * Memory as a function of batch and context, for searches; constant parts are computed once. An encoder has no cache, and
 * computes all tokens of all sequences at once.
 */
export function servingMemoryOf(
  served: ServedLayout,
  gpu: Pick<Gpu, 'kind' | 'architecture'>,
): (batch: number, context: number) => ServingMemory {
  const isPass = generationOf(served.model) === 'none';
  const { weights: ofWeights, live, tensors, stage } = onAnyGpu(served.model, served.form);
  const { parts, total: weights } = ofWeights;
  const ofStage = { ...served, model: stage };
  const constant = constantParts(served.form, tensors, gpu);
  // A search for the largest batch asks for one context many times.
  const states = new Map<number, SequenceState>();
  return (whole, context) => {
    const batch = sequencesOfGroup(served.form, whole);
    const kept = states.get(context) ?? sequenceState(ofStage, context);
    states.set(context, kept);
    const { cache, perToken, state } = kept;
    const workspaceParts = [
      ...constant,
      isPass ? passPart(live, batch * context) : activationPart(live, batch, context),
      logitsPart(served.model, isPass ? batch * context : batch),
      ...(isPass ? [] : [pagingPart(perToken, batch)]),
    ];
    const workspace = sumBounds(
      'workspace',
      Object.fromEntries(workspaceParts.map(({ part, bytes }) => [identifier(part), bytes])),
      'sum of the parts',
    );
    return {
      weightParts: parts,
      weights,
      cachePerSequence: cache,
      cachePerToken: perToken,
      state,
      workspaceParts,
      workspace,
      total: totalOf(batch, { weights, cache, state }, workspace),
    };
  };
}

/** Parts that no GPU changes, once for each format: a table and searches ask for many GPUs. */
const onAnyGpu = memoizedBy(formatKey, (model: LanguageModel, form) => {
  const layout = weightLayout(model);
  const stages = form.pipelineParallel ?? 1;
  const at = fullestStage(model, form);
  const stage = stages === 1 ? model : (servingStages(model, stages)[at] ?? model);
  return {
    weights: weightsOf(model, form, at),
    live: liveActivations(stage, form),
    tensors: allottedWeights({ model, form, layout }),
    stage,
  };
});

/** Weights on a GPU, of all blocks or of a stage. */
function weightsOf(model: LanguageModel, form: ServingFormat, at: number) {
  const stages = form.pipelineParallel ?? 1;
  const layout = weightLayout(model);
  const held = stages === 1 ? undefined : tensorsOfStage(model, { stages, at });
  return servedWeights(
    layout,
    form.weights,
    form.tensorParallel,
    held && ((tensor) => held.has(tensor)),
    expertSharing(form),
  );
}

/** The stage with the most weights and the largest cache of a token. */
function fullestStage(model: LanguageModel, form: ServingFormat): number {
  const stages = form.pipelineParallel ?? 1;
  if (stages === 1) return 0;
  const sizes = servingStages(model, stages).map((_, at) =>
    Number(weightsOf(model, form, at).total.value),
  );
  return sizes.indexOf(Math.max(...sizes));
}

/** Tensors of a stage: its blocks, and what is before or after all blocks. */
function tensorsOfStage(
  model: LanguageModel,
  { stages, at }: { readonly stages: number; readonly at: number },
): ReadonlySet<Param> {
  const { embedding, embeddingSteps, norm, head, logitSteps } = model;
  const blocks = servingStages(model, stages)[at]?.blocks ?? [];
  const layers = [
    ...(at === 0 ? [embedding, ...embeddingSteps] : []),
    ...blocks,
    ...(at === stages - 1 ? [norm, head, ...logitSteps] : []),
  ];
  return new Set(layers.flatMap(countedTensors).map(({ tensor }) => tensor));
}

function totalOf(
  batch: number,
  { weights, cache, state }: Readonly<Record<'weights' | 'cache' | 'state', Figure>>,
  workspace: Bounds,
): Bounds {
  return eachBound(workspace, ({ value }) =>
    quantity({
      label: 'memory of serving',
      unit: 'bytes',
      formula: add(
        v({ weights: weights.value }),
        mul(v({ batch }), add(v({ cache: cache.value }), v({ state: state.value }))),
        v({ workspace: value }),
      ),
      source: 'weights once, cache and states per sequence, and the workspace',
    }),
  );
}

function constantParts(
  form: ServingFormat,
  tensors: readonly AllocatedTensors[],
  gpu: Pick<Gpu, 'kind' | 'architecture'>,
): WorkspacePart[] {
  const rounding = { part: 'rounding of the allocator', bytes: roundingBytes(gpu, tensors) };
  const links = { part: 'buffers of all-reduces', bytes: channelBytes(1, gpu) };
  return [
    { part: 'driver context and kernels', bytes: contextBytes(gpu) },
    { part: 'workspace of matrix products', bytes: libraryBytes(gpu) },
    rounding,
    ...(gpusOfReplica(form) > 1 ? [links] : []),
  ];
}

/** Tensors on one GPU; the experts of a layer are two allocations: into the inner width, and back. */
function allottedWeights({ model, layout, form }: ServedLayout): AllocatedTensors[] {
  const { bits, otherBits, blocks } = WEIGHT_DTYPES[form.weights.dtype];
  const bitsOf = (tensor: Param) => {
    const stored = storedBitsOf(tensor, layout, form.weights);
    if (stored !== undefined) return stored / tensor.elements;
    if (form.weights.stored !== undefined) return otherBits;
    const matrix = layout.quantised.get(tensor);
    if (blocks && (matrix || layout.tables.has(tensor))) {
      const columns = matrix?.length ?? tensor.shape[1] ?? 1;
      return blockBits(tensor, columns, layout, blocks).bits / 10_000;
    }
    return matrix ? bits : otherBits;
  };
  const gpus = form.tensorParallel;
  const bytesOf = (tensor: Param) =>
    (elementsPerGpu(tensor.elements, layout.cutFor(tensor, gpus), gpus) * bitsOf(tensor)) / 8;
  const mixtures = walkCounted(model).filter(({ layer }) => isRouted(layer)).length;
  const ofExperts = sumOf(
    layout.owned.filter(({ tensor }) => layout.experts.has(tensor)),
    ({ tensor, count }) => count * bytesOf(tensor),
  );
  return [
    ...layout.owned
      .filter(({ tensor }) => !layout.experts.has(tensor))
      .map(({ tensor, count }) => ({ count, bytes: bytesOf(tensor) })),
    ...(mixtures > 0 ? [{ count: 2 * mixtures, bytes: ofExperts / (2 * mixtures) }] : []),
  ];
}

/** Live bytes per token of a prefill. */
interface Live {
  readonly stream: number;
  readonly largestPart: number;
  readonly block: number;
}

/** Live activations of the largest block; equal blocks are computed once. */
function liveActivations(model: LanguageModel, form: ServingFormat): Live {
  const bytesPerValue = valueBytes(form);
  const stream = model.hidden * bytesPerValue;
  const setting = {
    batch: 1,
    context: 1,
    bytesPerValue,
    recompute: 'selective',
    tensor: form.tensorParallel,
  } as const;
  let [largestPart, block] = [0, 0];
  for (const each of unlikeBlocks(model)) {
    const { parts } = activationsOf({ ...model, blocks: [each] }, setting);
    const inBlock = parts
      .filter(({ part }) => part !== 'logits' && part !== 'head')
      .map((part) => Number(part.bytes.value));
    largestPart = Math.max(largestPart, ...inBlock);
    block = Math.max(
      block,
      inBlock.reduce((total, value) => total + value, 0),
    );
  }
  return { stream, largestPart, block };
}

function activationPart(
  { stream, largestPart, block }: Live,
  batch: number,
  context: number,
): WorkspacePart {
  // Decoding has one token per sequence, a prefill a chunk of tokens.
  const tokens = {
    lower: batch,
    expected: prefilled(batch, context),
    upper: prefilled(batch, context),
  };
  const live = { lower: 0, expected: largestPart, upper: block };
  const part = 'activations';
  return {
    part,
    bytes: eachBound(tokens, (count, name) =>
      bytes(
        part,
        mul(v({ tokens: count }), add(v({ stream }), v({ live: live[name] }))),
        `lower: the residual stream of a step of decoding; expected: a prefill of up to ${PREFILL_CHUNK} tokens, the ` +
          `stream and the largest part of a block; upper: all of a block at once`,
      ),
    ),
  };
}

/** Activations of a pass over all tokens at once. */
function passPart({ stream, largestPart, block }: Live, tokens: number): WorkspacePart {
  const live = { lower: stream, expected: largestPart, upper: block };
  const part = 'activations';
  return {
    part,
    bytes: eachBound(live, (value) =>
      bytes(
        part,
        mul(v({ tokens }), add(v({ stream }), v({ live: value }))),
        'of all tokens; lower: the residual stream twice; expected: it and the largest part of a block; upper: it and all of a block',
      ),
    ),
  };
}

const prefilled = (batch: number, context: number) =>
  Math.max(batch, Math.min(PREFILL_CHUNK, context));

/** Sampling needs float32 logits, with their softmax in place or as a copy. */
function logitsPart({ head }: LanguageModel, batch: number): WorkspacePart {
  const copies = { lower: 1, expected: 2, upper: 3 };
  return {
    part: 'logits',
    bytes: eachBound(copies, (count) =>
      bytes(
        'logits',
        mul(4, v({ copies: count }), v({ batch }), v({ vocabulary: outputWidth(head) })),
        'in float32 for each sequence; expected: and their softmax; upper: both sorted as well',
      ),
    ),
  };
}

/** Unused part of each sequence's last cache block. */
function pagingPart(perToken: Figure, batch: number): WorkspacePart {
  const unused = { lower: 0, expected: (CACHE_BLOCK - 1) / 2, upper: CACHE_BLOCK - 1 };
  return {
    part: 'unfilled cache blocks',
    bytes: eachBound(unused, (tokens) =>
      bytes(
        'unfilled cache blocks',
        mul(v({ batch }), v({ tokens }), v({ per_token: perToken.value })),
        `caches are allotted in blocks of ${CACHE_BLOCK} tokens (vLLM, arXiv 2309.06180); lower: none is left unfilled; ` +
          'expected: half a block; upper: all but one token',
      ),
    ),
  };
}

const bytes = (label: string, formula: Expression, source: string): Quantity =>
  quantity({ label, unit: 'bytes', formula, source });

const identifier = (text: string) => text.replace(/\W+/g, '_');
