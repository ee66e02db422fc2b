/** Memory that a forward pass needs, and memory that is available. */

import { usageError } from '../base/errors.js';
import type { WeightForm } from '../base/tensor/group-quantization.js';
import { commandText, setting } from '../base/text/setting.js';
import { formatInteger } from '../base/text/units.js';
import { counted } from '../base/text/words.js';
import { sumOf } from '../base/values.js';
import type { LanguageModel, Layer } from '../model/architecture/layer.js';
import type { Param } from '../model/architecture/param.js';
import {
  isAttention,
  queryHeads,
  stagesOf,
  tensorsOf,
  unreadTensors,
  walk,
} from '../model/architecture/walk.js';
import { quantizedMatrices } from '../model/architecture/weight-matrices.js';
import { activationsOf } from '../model/budget/saved-activations.js';
import { stateOf } from '../model/budget/state.js';
import { MOST_LOGITS, queriesOfBlock } from './block-size.js';
import type { EngineInfo, EngineName } from './engine.js';
import type { InputSize } from './token-ids.js';

/** Every tensor needed to run a layer. */
export function neededTensors(layer: Layer): Param[] {
  const unread = unreadTensors(layer);
  return tensorsOf(layer).filter((tensor) => !unread.has(tensor));
}

export const parameterElements = (tensors: readonly Param[]) =>
  sumOf(tensors, (tensor) => tensor.elements);

/** Blocks of the same form. */
export interface BlockMemory {
  /** The first block of the form. */
  readonly block: Layer;
  /** Number of blocks of the form. */
  readonly times: number;
}

/** One form for all blocks that differ only in names, windows and weight values. */
export function distinctBlocks(blocks: readonly Layer[]): BlockMemory[] {
  const distinct = new Map<string, BlockMemory>();
  for (const block of blocks) {
    const form = tensorsOf(block)
      .map(({ shape }) => shape.join())
      .join(' ');
    const known = distinct.get(form);
    distinct.set(form, { block: known?.block ?? block, times: (known?.times ?? 0) + 1 });
  }
  return [...distinct.values()];
}

export interface MemoryNeed {
  /** Bytes in float32. @count */
  readonly weightBytes: number;
  /** Activations of one block in this engine plus the output of every block; or the logits. @count */
  readonly activationBytes: number;
  /** Output of every block, and the logits: kept by a check during another pass. @count */
  readonly resultBytes: number;
  /** Peak of a forward pass, including the engine's copies of the weights. @count */
  readonly totalBytes: number;
}

const FLOAT_BYTES = 4;

/** Blocks of queries whose memory ONNX Runtime holds at a time. */
const BLOCKS_HELD = 4;

interface EngineMemory {
  /** Copies of the weights while the engine loads them. */
  readonly copiesOfWeights: number;
  /** Copies of a block's activations at the same time. */
  readonly copiesOfValues: number;
  /** Copies of the outputs of all blocks: in the library, and as values. */
  readonly copiesOfOutputs: number;
  /** Bytes of the engine itself. */
  readonly ownBytes: number;
  /** Bytes of the attention scores with the mask. */
  readonly scoreBytes: (attention: AttentionSize, size: InputSize, way: ScoreWay) => number;
  /** Bytes of a pass from those of a block and of the logits, which are apart or part of the graph. */
  readonly peak: (inBlock: number, logits: number, isApart: boolean) => number;
}

/**
 * How ONNX Runtime computes scores: in blocks of queries, see onnx/layers/attention/query-blocks.ts; as a square in one
 * operation, on a graphics card; as a square in steps, in float16; or with a choice of keys, also a square.
 */
type ScoreWay = 'blocks' | 'square' | 'steps' | 'choice';

/** Copies of the scores of all heads, and of one for all heads. */
const COPIES_OF_SCORES: Readonly<Record<ScoreWay, readonly [ofHeads: number, shared: number]>> = {
  blocks: [1, 4],
  square: [1, 4],
  steps: [4, 2],
  choice: [2.5, 4],
};

/** The attention whose scores take the most memory. */
interface AttentionSize {
  readonly heads: number;
  /** Tokens that one of them sees, at most: infinite for one that sees all. */
  readonly window: number;
}

/** Engine that runs a model, by default on the CPU in float32. */
export type Runner = Pick<EngineInfo, 'name'> & Partial<Pick<EngineInfo, 'provider' | 'compute'>>;

/**
 * Measured on tiny and bench-60m, by test/engine/memory.test.ts: the prediction is 0.9 to 1.5 times the peak of a
 * forward pass of more than 50 MB.
 */
const ENGINE_MEMORY = {
  onnx: {
    copiesOfWeights: 1.1,
    copiesOfValues: 1,
    copiesOfOutputs: 2,
    ownBytes: 0,
    // All heads of all sequences at once, and the mask. Blocks of queries see different numbers of keys, so that they do
    // not take each other's memory.
    scoreBytes({ heads, window }, { batch, tokens }, way) {
      const [ofHeads, shared] = COPIES_OF_SCORES[way];
      const scores = (queries: number, keys: number) =>
        (ofHeads * heads * batch + shared) * queries * Math.min(keys, tokens) * FLOAT_BYTES;
      const square = scores(tokens, tokens);
      if (way !== 'blocks') return square;
      const queries = queriesOfBlock(heads, batch, tokens);
      const blocks = Math.ceil(tokens / queries);
      const ofAll = (square * (blocks + 1)) / (2 * blocks);
      return Math.min(ofAll, BLOCKS_HELD * scores(queries, queries + window));
    },
    // The library holds the memory of the blocks while it computes the logits, some at a time, or all in steps.
    peak: (inBlock, logits, isApart) =>
      inBlock + (isApart ? logits + Math.min(logits, 2 * MOST_LOGITS * FLOAT_BYTES) : 3 * logits),
  },
  tfjs: {
    copiesOfWeights: 2.2,
    copiesOfValues: 2,
    copiesOfOutputs: 1,
    ownBytes: 20e6,
    // One head of one sequence at a time, 512 queries of it: products, masked products, and softmax.
    scoreBytes: (_, { tokens }) => 5 * Math.min(tokens, 512) * tokens * FLOAT_BYTES,
    // The logits exist twice, in the library and as values; the blocks are done by then.
    peak: (inBlock, logits) => Math.max(inBlock, 2 * logits),
  },
} as const satisfies Record<EngineName, EngineMemory>;

export const memoryNeed = (model: LanguageModel, size: InputSize, runner: Runner): MemoryNeed =>
  needOf(model, neededElements(model), size, runner);

/** Memory need layer by layer. */
export function streamedNeed(model: LanguageModel, size: InputSize, runner: Runner): MemoryNeed {
  const largest = stagesOf(model).reduce((most, layer) => Math.max(most, neededElements(layer)), 0);
  return needOf(model, largest, size, runner);
}

const neededElements = (layer: Layer): number => parameterElements(neededTensors(layer));

function needOf(
  model: LanguageModel,
  elements: number,
  size: InputSize,
  runner: Runner,
): MemoryNeed {
  const {
    copiesOfWeights,
    copiesOfValues,
    copiesOfOutputs,
    ownBytes,
    scoreBytes,
    peak,
  }: EngineMemory = ENGINE_MEMORY[runner.name];
  const perWidth = FLOAT_BYTES * size.batch * size.tokens;
  const outputs = perWidth * model.hidden * model.blocks.length;
  const logits = perWidth * (model.head.weight.shape[0] ?? 0);
  const scores = scoreBytes(largestAttention(model), size, scoreWay(model, runner));
  const inBlock = copiesOfValues * blockBytes(model, size) + scores;
  const weightBytes = FLOAT_BYTES * elements;
  const activationBytes = copiesOfOutputs * outputs + peak(inBlock, logits, isPlain(runner));
  const totalBytes = Math.ceil(ownBytes + copiesOfWeights * weightBytes) + activationBytes;
  return { weightBytes, activationBytes, resultBytes: outputs + logits, totalBytes };
}

/** Activations of a block, without scores and with only one of the scan's states. */
function blockBytes(model: LanguageModel, size: InputSize): number {
  return Math.max(
    0,
    ...distinctBlocks(model.blocks).map(({ block }) => bytesOfBlock(model, block, size)),
  );
}

function bytesOfBlock(model: LanguageModel, block: Layer, { batch, tokens }: InputSize): number {
  const { parts } = activationsOf(
    { ...model, blocks: [block] },
    { batch, context: tokens, bytesPerValue: FLOAT_BYTES, recompute: 'selective' },
  );
  return sumOf(
    parts.filter(({ part }) => part !== 'logits'),
    ({ bytes }) => Number(bytes.value),
  );
}

/** Whether it is the CPU in float32, where attention runs in blocks and logits apart. */
const isPlain = ({ provider = 'cpu', compute = 'f32' }: Runner): boolean =>
  provider === 'cpu' && compute === 'f32';

function scoreWay(model: LanguageModel, runner: Runner): ScoreWay {
  if (runner.compute === 'f16') return 'steps';
  if (!isPlain(runner)) return 'square';
  const chooses = model.blocks.flatMap(walk).some(({ layer }) => CHOOSING.has(layer.kind));
  return chooses ? 'choice' : 'blocks';
}

/** Layers that score all keys for all queries at once. */
const CHOOSING: ReadonlySet<Layer['kind']> = new Set([
  'tokenIndexer',
  'blockIndexer',
  'dynamicMask',
] as const);

/** The most heads of an attention or an indexer, and the widest window. */
function largestAttention(model: LanguageModel): AttentionSize {
  let [heads, window] = [0, 0];
  for (const { layer } of model.blocks.flatMap(walk)) {
    if (isAttention(layer)) heads = Math.max(heads, queryHeads(layer));
    else if (layer.kind === 'tokenIndexer' || layer.kind === 'blockIndexer') {
      heads = Math.max(heads, layer.heads);
    } else continue;
    const spans = 'spans' in layer ? layer.spans : [{ heads: 1, window: undefined }];
    for (const span of spans) {
      if (span.heads > 0) window = Math.max(window, span.window?.tokens ?? Infinity);
    }
  }
  return { heads, window };
}

/** Results that checks keep during another pass: the first, and another one. */
const KEPT_RESULTS = 2;
/** Share of the free memory that a model may use; the rest is for other programs. */
const USABLE_SHARE = 0.8;
/** Limits of libraries: WebAssembly has 32-bit addresses. */
const PROVIDER_LIMITS: Readonly<Record<string, number>> = { wasm: 4 * 2 ** 30 };

/** Bytes that a model may use here with this engine. */
export function usableBytes({
  provider,
  memoryBytes = null,
}: Pick<EngineInfo, 'provider'> & Partial<Pick<EngineInfo, 'memoryBytes'>>): number {
  // The smallest of the free memory, a container's limit and the graphics card's memory.
  const limit = PROVIDER_LIMITS[provider] ?? memoryBytes ?? Number.POSITIVE_INFINITY;
  return Math.floor(USABLE_SHARE * Math.min(process.availableMemory(), limit));
}

export const fitsInMemory = ({ totalBytes, resultBytes }: MemoryNeed, usable: number): boolean =>
  totalBytes + KEPT_RESULTS * resultBytes <= usable;

/** A model that reads and writes sequences. */
export interface DecodedModel {
  readonly model: LanguageModel;
  /** Quantization of the matrices; float32 when absent. */
  readonly form?: WeightForm | undefined;
}

/** Tokens of one call of a decoder, at most. */
const TOKENS_PER_CALL = 256;

/** Bytes of a quantized matrix for each of its values: packed bits, and a scale for each group. */
const packedBytes = ({ bits, group }: WeightForm) => bits / 8 + FLOAT_BYTES / group;

/** Peak bytes of decoding a sequence: weights, caches and states for all tokens, activations of one call. */
export function decodingBytes(
  { model, form }: DecodedModel,
  totalTokens: number,
  runner: Runner,
): number {
  const { name } = runner;
  const { copiesOfWeights } = ENGINE_MEMORY[name];
  const tokens = Math.min(TOKENS_PER_CALL, totalTokens);
  const need = memoryNeed(model, { batch: 1, tokens }, runner);
  const quantized =
    form && name === 'onnx' ? parameterElements([...quantizedMatrices(model).keys()]) : 0;
  const saved = form ? quantized * (FLOAT_BYTES - packedBytes(form)) : 0;
  const { total } = stateOf(model, { batch: 1, context: totalTokens, dtype: 'f32' });
  const { heads } = largestAttention(model);
  const scores = heads * tokens * (totalTokens - tokens) * FLOAT_BYTES;
  return Math.ceil(need.totalBytes - copiesOfWeights * saved + Number(total.value) + scores);
}

/** @throws UserError when the models do not fit into `usable` bytes. */
export function refuseDecoding(
  models: readonly DecodedModel[],
  totalTokens: number,
  runner: Runner,
  usable: number,
): void {
  const bytes = sumOf(models, (each) => decodingBytes(each, totalTokens, runner));
  if (bytes <= usable) return;
  const isQuantized = models.some(({ form }) => form?.bits === 4);
  throw usageError(
    `expected at most ${gigabytes(usable)}, the memory that can be used here, found ${gigabytes(bytes)} for ` +
      `${counted(models.length, 'model')} with a context of ${counted(totalTokens, 'token')}`,
    `write ${isQuantized ? '' : `${setting('weights', 'int4')}, or `}a smaller ${setting('context')}; ${commandText('fit')} shows hardware that is large enough`,
  );
}

/** Error for activations that exceed the memory, at any model size. */
export const activationsTooLarge = (
  { batch, tokens }: InputSize,
  { activationBytes, totalBytes }: MemoryNeed,
  usable: number,
  fitsTfjs: boolean,
) =>
  usageError(
    `${formatInteger(batch)} × ${formatInteger(tokens)} tokens need ${gigabytes(activationBytes)} for activations, ` +
      `${gigabytes(totalBytes)} with the weights; ${gigabytes(usable)} is available`,
    `write a smaller ${setting('batch')} or ${setting('context')}${fitsTfjs ? `, or ${setting('engine', 'tfjs')}, which needs less` : ''}`,
  );

export const gigabytes = (bytes: number) => `${(bytes / 1e9).toFixed(1)} GB`;

export const peakBytes = (): number => process.resourceUsage().maxRSS * 1024;
