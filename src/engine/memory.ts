/** Memory that a forward pass needs, and memory that is available. */

import { usageError } from '../base/errors.js';
import type { WeightForm } from '../base/tensor/group-quantization.js';
import { commandText, setting } from '../base/text/setting.js';
import { formatInteger } from '../base/text/units.js';
import { counted, sumOf } from '../base/text/words.js';
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

interface EngineMemory {
  /** Copies of the weights while the engine loads them. */
  readonly copiesOfWeights: number;
  /** Copies of a block's activations at the same time. */
  readonly copiesOfValues: number;
  /** Bytes of the engine itself. */
  readonly ownBytes: number;
  /** Bytes of the attention scores with the mask. */
  readonly scoreBytes: (heads: number, size: InputSize) => number;
}

/**
 * Measured on tiny and bench-60m, by test/engine/memory.test.ts: the prediction is 0.9 to 1.5 times the peak of a
 * forward pass of more than 50 MB.
 */
const ENGINE_MEMORY = {
  onnx: {
    copiesOfWeights: 1.1,
    copiesOfValues: 1,
    ownBytes: 0,
    // All heads of all sequences at once, the whole square also for narrow windows; creating the mask takes the memory
    // of four of them.
    scoreBytes: (heads, { batch, tokens }) => (heads * batch + 4) * tokens ** 2 * FLOAT_BYTES,
  },
  tfjs: {
    copiesOfWeights: 2.2,
    copiesOfValues: 2,
    ownBytes: 20e6,
    // One head of one sequence at a time, 512 queries of it: products, masked products, and softmax.
    scoreBytes: (_, { tokens }) => 5 * Math.min(tokens, 512) * tokens * FLOAT_BYTES,
  },
} as const satisfies Record<EngineName, EngineMemory>;

export const memoryNeed = (model: LanguageModel, size: InputSize, engine: EngineName): MemoryNeed =>
  needOf(model, neededElements(model), size, engine);

/** Memory need layer by layer. */
export function streamedNeed(
  model: LanguageModel,
  size: InputSize,
  engine: EngineName,
): MemoryNeed {
  const largest = stagesOf(model).reduce((most, layer) => Math.max(most, neededElements(layer)), 0);
  return needOf(model, largest, size, engine);
}

const neededElements = (layer: Layer): number => parameterElements(neededTensors(layer));

function needOf(
  model: LanguageModel,
  elements: number,
  size: InputSize,
  engine: EngineName,
): MemoryNeed {
  const { copiesOfWeights, copiesOfValues, ownBytes, scoreBytes }: EngineMemory =
    ENGINE_MEMORY[engine];
  const perWidth = FLOAT_BYTES * size.batch * size.tokens;
  const outputs = perWidth * model.hidden * model.blocks.length;
  const logits = perWidth * (model.head.weight.shape[0] ?? 0);
  const inBlock = copiesOfValues * blockBytes(model, size) + scoreBytes(mostHeads(model), size);
  const weightBytes = FLOAT_BYTES * elements;
  // The logits exist twice, in the library and as values; the blocks are done by then.
  const activationBytes = outputs + Math.max(inBlock, 2 * logits);
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

const mostHeads = (model: LanguageModel): number =>
  model.blocks.flatMap(walk).reduce((most, { layer }) => {
    if (isAttention(layer)) return Math.max(most, queryHeads(layer));
    const isIndexer = layer.kind === 'tokenIndexer' || layer.kind === 'blockIndexer';
    return isIndexer ? Math.max(most, layer.heads) : most;
  }, 0);

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
  engine: EngineName,
): number {
  const { copiesOfWeights } = ENGINE_MEMORY[engine];
  const tokens = Math.min(TOKENS_PER_CALL, totalTokens);
  const need = memoryNeed(model, { batch: 1, tokens }, engine);
  const quantized =
    form && engine === 'onnx' ? parameterElements([...quantizedMatrices(model).keys()]) : 0;
  const saved = form ? quantized * (FLOAT_BYTES - packedBytes(form)) : 0;
  const { total } = stateOf(model, { batch: 1, context: totalTokens, dtype: 'f32' });
  const scores = mostHeads(model) * tokens * (totalTokens - tokens) * FLOAT_BYTES;
  return Math.ceil(need.totalBytes - copiesOfWeights * saved + Number(total.value) + scores);
}

/** @throws UserError when the models do not fit into `usable` bytes. */
export function refuseDecoding(
  models: readonly DecodedModel[],
  totalTokens: number,
  { name }: Pick<EngineInfo, 'name'>,
  usable: number,
): void {
  const bytes = sumOf(models, (each) => decodingBytes(each, totalTokens, name));
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
