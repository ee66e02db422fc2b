/** What a forward pass needs of memory, and what there is. */
import type { LanguageModel } from '../architecture/layer.js';
import { activationsOf } from '../budget/activations.js';
import type { EngineInfo } from '../runtime/engine.js';
import { neededTensors } from './created.js';
import type { InputSize } from './ids.js';

export interface MemoryNeed {
  /** In float32. */
  readonly weightBytes: number;
  /** What one block computes, the output of every block, and the logits. */
  readonly activationBytes: number;
  readonly totalBytes: number;
}

const FLOAT_BYTES = 4;

export function memoryNeed(model: LanguageModel, { batch, tokens }: InputSize): MemoryNeed {
  const values = neededTensors(model).reduce((sum, { elements }) => sum + elements, 0);
  const weightBytes = FLOAT_BYTES * values;
  const outputs = FLOAT_BYTES * batch * tokens * model.norm.weight.elements * model.blocks.length;
  const activationBytes = outputs + largestBlockBytes(model, batch, tokens);
  return { weightBytes, activationBytes, totalBytes: weightBytes + activationBytes };
}

/** Of the largest block, with norm and logits. The scan keeps one state here, not one for every step. */
function largestBlockBytes(model: LanguageModel, batch: number, tokens: number): number {
  const setting = {
    batch,
    context: tokens,
    bytesPerValue: FLOAT_BYTES,
    recompute: 'none',
  } as const;
  const [widest] = model.blocks;
  if (!widest) return 0;
  const { parts } = activationsOf({ ...model, blocks: [widest] }, setting);
  return parts
    .filter(({ part }) => part !== 'scanStates')
    .reduce((sum, { bytes }) => sum + Number(bytes.value), 0);
}

/** While it is made ready, an engine may hold its weights a second time, packed for its products. */
const COPIES_OF_WEIGHTS = 2;
/** The rest is for whatever else the machine does. */
const USABLE_SHARE = 0.8;
/** Where a library cannot use all there is: WebAssembly has 32 bits for an address. */
const PROVIDER_LIMITS: Readonly<Record<string, number>> = { wasm: 4 * 2 ** 30 };

/** Bytes that a model may need here, with this engine. */
export function usableBytes({ provider }: Pick<EngineInfo, 'provider'>): number {
  // What is free, or what a container may still have, whichever is less.
  const limit = PROVIDER_LIMITS[provider] ?? Number.POSITIVE_INFINITY;
  return Math.floor(USABLE_SHARE * Math.min(process.availableMemory(), limit));
}

export const fits = ({ weightBytes, activationBytes }: MemoryNeed, usable: number): boolean =>
  COPIES_OF_WEIGHTS * weightBytes + activationBytes <= usable;

/** The most that the process has had in memory, in bytes. */
export const peakBytes = (): number => process.resourceUsage().maxRSS * 1024;
