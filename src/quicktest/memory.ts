/** What a forward pass needs of memory, and what there is. */
import type { LanguageModel, Layer } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import { stagesOf, tensorsOf, walk } from '../architecture/walk.js';
import { activationsOf } from '../budget/activations.js';
import type { EngineInfo, EngineName } from '../runtime/engine.js';
import type { InputSize } from './ids.js';

// Tensors that a layer needs, each once, and how many values they hold.

/** Every tensor that running a layer takes. RoPE's tables are computed wherever they are needed. */
export function neededTensors(layer: Layer): Param[] {
  const computed = new Set(
    walk(layer).flatMap(({ layer: each }) => (each.kind === 'rotary' ? each.tables : [])),
  );
  return tensorsOf(layer).filter((tensor) => !computed.has(tensor));
}

export const elementsIn = (tensors: readonly Param[]) =>
  tensors.reduce((sum, tensor) => sum + tensor.elements, 0);

// Blocks that are alike.

export interface BlockForm {
  /** The first of them. */
  readonly block: Layer;
  /** How many there are. */
  readonly times: number;
}

/** One for all blocks that differ in nothing but names, windows and the values of their weights. */
export function formsOf(blocks: readonly Layer[]): BlockForm[] {
  const forms = new Map<string, BlockForm>();
  for (const block of blocks) {
    const form = tensorsOf(block)
      .map(({ shape }) => shape.join())
      .join(' ');
    const known = forms.get(form);
    forms.set(form, { block: known?.block ?? block, times: (known?.times ?? 0) + 1 });
  }
  return [...forms.values()];
}

export interface MemoryNeed {
  /** In float32. */
  readonly weightBytes: number;
  /** What one block computes, as this engine does, beside the output of every block; or the logits. */
  readonly activationBytes: number;
  /** Of the output of every block, and the logits: what a check keeps while another pass runs. */
  readonly resultBytes: number;
  /** At the peak of a forward pass, with the weights as often as the engine holds them. */
  readonly totalBytes: number;
}

const FLOAT_BYTES = 4;

interface EngineMemory {
  /** How often it holds the weights while it makes them ready. */
  readonly copiesOfWeights: number;
  /** How often what a block computes is there at a time. */
  readonly copiesOfValues: number;
  /** What it takes before it is given anything. */
  readonly ownBytes: number;
  /** Of the scores of attention, with the mask. */
  readonly scoreBytes: (heads: number, size: InputSize) => number;
}

/**
 * Measured on tiny and bench-60m, as test/quicktest/memory.test.ts has it: what is predicted is 0.9 to 1.5 times the peak of a
 * forward pass that takes more than 50 MB.
 */
const ENGINE_MEMORY = {
  onnx: {
    copiesOfWeights: 1.1,
    copiesOfValues: 1,
    ownBytes: 0,
    // All heads of all sequences at once, the whole square also where a window is narrow; making the mask
    // takes as much as four of them.
    scoreBytes: (heads, { batch, tokens }) => (heads * batch + 4) * tokens ** 2 * FLOAT_BYTES,
  },
  tfjs: {
    copiesOfWeights: 2.2,
    copiesOfValues: 2,
    ownBytes: 20e6,
    // One head of one sequence at a time, 512 queries of it: products, masked, and what the softmax makes.
    scoreBytes: (_, { tokens }) => 5 * Math.min(tokens, 512) * tokens * FLOAT_BYTES,
  },
} as const satisfies Record<EngineName, EngineMemory>;

/** Of all of a model at once. */
export const memoryNeed = (model: LanguageModel, size: InputSize, engine: EngineName): MemoryNeed =>
  needOf(model, neededElements(model), size, engine);

/** Of one layer after the other. */
export function streamedNeed(
  model: LanguageModel,
  size: InputSize,
  engine: EngineName,
): MemoryNeed {
  const largest = stagesOf(model).reduce((most, layer) => Math.max(most, neededElements(layer)), 0);
  return needOf(model, largest, size, engine);
}

const neededElements = (layer: Layer): number => elementsIn(neededTensors(layer));

function needOf(
  model: LanguageModel,
  elements: number,
  size: InputSize,
  engine: EngineName,
): MemoryNeed {
  const { copiesOfWeights, copiesOfValues, ownBytes, scoreBytes }: EngineMemory =
    ENGINE_MEMORY[engine];
  const perWidth = FLOAT_BYTES * size.batch * size.tokens;
  const outputs = perWidth * model.norm.weight.elements * model.blocks.length;
  const logits = perWidth * (model.head.weight.shape[0] ?? 0);
  const inBlock = copiesOfValues * blockBytes(model, size) + scoreBytes(mostHeads(model), size);
  const weightBytes = FLOAT_BYTES * elements;
  // The logits are there twice, as the library has them and as values; the blocks are done by then.
  const activationBytes = outputs + Math.max(inBlock, 2 * logits);
  const totalBytes = Math.ceil(ownBytes + copiesOfWeights * weightBytes) + activationBytes;
  return { weightBytes, activationBytes, resultBytes: outputs + logits, totalBytes };
}

/** What a block computes, but for scores and for the states of the scan, of which one is kept here. */
function blockBytes(model: LanguageModel, size: InputSize): number {
  return Math.max(0, ...formsOf(model.blocks).map(({ block }) => bytesOfBlock(model, block, size)));
}

function bytesOfBlock(model: LanguageModel, block: Layer, { batch, tokens }: InputSize): number {
  const { parts } = activationsOf(
    { ...model, blocks: [block] },
    { batch, context: tokens, bytesPerValue: FLOAT_BYTES, recompute: 'selective' },
  );
  return parts
    .filter(({ part }) => part !== 'logits')
    .reduce((sum, { bytes }) => sum + Number(bytes.value), 0);
}

const mostHeads = (model: LanguageModel): number =>
  model.blocks
    .flatMap(walk)
    .reduce(
      (most, { layer }) =>
        layer.kind === 'attention' || layer.kind === 'latentAttention'
          ? Math.max(most, layer.heads)
          : most,
      0,
    );

/** What checks keep beside a pass that runs: the results of the first, and of another. */
const KEPT_RESULTS = 2;
/** The rest is for whatever else the machine does. */
const USABLE_SHARE = 0.8;
/** Where a library cannot use all there is: WebAssembly has 32 bits for an address. */
const PROVIDER_LIMITS: Readonly<Record<string, number>> = { wasm: 4 * 2 ** 30 };

/** Bytes that a model may need here, with this engine. */
export function usableBytes({
  provider,
  memoryBytes = null,
}: Pick<EngineInfo, 'provider'> & Partial<Pick<EngineInfo, 'memoryBytes'>>): number {
  // What is free, or what a container may still have, or the graphics card has, whichever is least.
  const limit = PROVIDER_LIMITS[provider] ?? memoryBytes ?? Number.POSITIVE_INFINITY;
  return Math.floor(USABLE_SHARE * Math.min(process.availableMemory(), limit));
}

export const fits = ({ totalBytes, resultBytes }: MemoryNeed, usable: number): boolean =>
  totalBytes + KEPT_RESULTS * resultBytes <= usable;

/** The most that the process has had in memory, in bytes. */
export const peakBytes = (): number => process.resourceUsage().maxRSS * 1024;
