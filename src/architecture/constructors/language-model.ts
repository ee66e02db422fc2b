/** The root of a model and its blocks, within limits. */
import type { LanguageModel, Layer } from '../layer.js';
import { checkEach, checkElements, checkLayers, checkNames } from '../param.js';
import { sumOfTensors } from '../walk.js';

/** Parts of a model; parts that most models lack are optional. */
type ModelParts = Pick<LanguageModel, 'embedding' | 'blocks' | 'norm' | 'head' | 'positions'> &
  Partial<Pick<LanguageModel, 'embeddingSteps' | 'shared' | 'logitSteps' | 'hidden'>>;

/** @throws LimitError for too many tensor names, or more than 2^53 − 1 stored values. */
export function languageModel(parts: ModelParts): LanguageModel {
  const model: LanguageModel = {
    kind: 'languageModel',
    name: '',
    embedding: parts.embedding,
    embeddingSteps: parts.embeddingSteps ?? [],
    shared: parts.shared ?? [],
    blocks: parts.blocks,
    norm: parts.norm,
    head: parts.head,
    logitSteps: parts.logitSteps ?? [],
    positions: parts.positions,
    hidden: parts.hidden ?? parts.embedding.weight.shape[1] ?? 0,
  };
  checkNames('model', namesIn(model));
  checkElements(
    'model',
    sumOfTensors(model, ({ elements }) => elements),
  );
  return model;
}

/** Names of `count` blocks: `layers.0`, `layers.1`, … @throws LimitError for too many blocks. */
export function blockNames(prefix: string, count: number, countPath: string): string[] {
  checkLayers(countPath, count);
  return Array.from({ length: count }, (_, index) => `${prefix}.${index}`);
}

/**
 * Expands blocks in order. The size of the first block rules out an absurd number of blocks before they are built.
 * Growing blocks are checked on the way.
 */
export function stack<Block extends Layer>(
  names: readonly string[],
  countPath: string,
  make: (name: string, index: number) => Block,
): Block[] {
  const blocks: Block[] = [];
  let held = 0;
  for (const [index, name] of names.entries()) {
    const block = make(name, index);
    // A state dict names each tensor of a block.
    held += sumOfTensors(block, () => 1);
    if (index === 0) checkEach(countPath, names.length, held);
    checkNames(countPath, held);
    blocks.push(block);
  }
  return blocks;
}

const namesIn = (layer: Layer) => sumOfTensors(layer, ({ aliases }) => 1 + aliases.length);
