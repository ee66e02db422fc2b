/** What of all that is counted is never there at once: a step has several moments, and one of them is the fullest. */
import { inputWidth, outputWidth } from '../../architecture/walk.js';
import { type Bounds, quantity } from '../../budget/quantity.js';
import { optimizerReplicas, updateTemporary } from './step-limits.js';
import { gradientBytesOf } from './training-setting.js';
import type { Situation, Workspace } from './training-workspace.js';

/**
 * In the order of a backward pass. Gradients of a lone micro-batch come as activations go, and a block runs again when the
 * logits have gone; those of several micro-batches stay.
 */
const MOMENTS = [
  // The loss.
  'staying + activations + unfused - one_block + gathered + loss',
  // The head.
  'staying + head + activations + unfused - one_block - logits + gathered + loss / 2',
  // The last block.
  'max(staying, head) + activations + unfused - logits + gathered + block',
  // The first one.
  'gradients + (activations + unfused - logits - one_block) / blocks + one_block + gathered + block',
  // The embedding.
  'gradients + added',
  // The update of the weights.
  'gradients + update',
];

const FULLEST = `max(${MOMENTS.join(', ')}) - (gradients + activations + unfused + gathered + loss + block + added + beyond)`;

/** What is taken off the sum of all that is counted; undefined where all of it can be there at once. */
export function apartBytes(situation: Situation, workspace: Workspace): Bounds | undefined {
  const { parallelism } = situation;
  const isLone = parallelism.microBatches === 1;
  const label = 'what is never there at once';
  const inputs = exactInputs(situation);
  const bounds: Bounds = {
    lower: quantity({
      label,
      unit: 'bytes',
      formula: isLone
        ? '0 - min(one_block, logits) - min(gradients, activations - min(one_block, logits))'
        : '0 - min(one_block, logits)',
      inputs,
      source:
        'gradients of a lone micro-batch come as activations go (PyTorch, zero_grad sets them to None); a block ' +
        'runs again when the logits have gone',
    }),
    expected: quantity({
      label,
      unit: 'bytes',
      formula: FULLEST,
      inputs: {
        ...inputs,
        staying: isLone ? 0 : inputs.gradients,
        ...temporaryInputs(situation, workspace, 'expected'),
      },
      source: `${ORDER}; gradients of a lone micro-batch come one by one`,
    }),
    upper: quantity({
      label,
      unit: 'bytes',
      formula: FULLEST,
      inputs: {
        ...inputs,
        staying: inputs.gradients,
        ...temporaryInputs(situation, workspace, 'upper'),
      },
      source: `${ORDER}; gradients are there from the start, set to zero`,
    }),
  };
  return Object.values(bounds).every(({ value }) => value === 0) ? undefined : bounds;
}

const ORDER =
  'the fullest moment of a step in place of all that is counted: loss, head, last block, first block, embedding, ' +
  'update (the order of a backward pass in PyTorch)';

/** What is counted exactly, of which parts come and go. */
function exactInputs(situation: Situation) {
  const { stage, memory } = situation;
  const exactly = (name: 'gradients' | 'activations') =>
    Number(memory.parts.find(({ part }) => part === name)?.bytes.value ?? 0);
  const kept = (name: 'oneBlock' | 'logits') =>
    Number(memory.activations.parts.find(({ part }) => part === name)?.bytes.value ?? 0);
  return {
    gradients: exactly('gradients'),
    activations: exactly('activations'),
    logits: kept('logits'),
    one_block: kept('oneBlock'),
    blocks: stage.to - stage.from,
    // With ZeRO a whole one is counted among what is gathered.
    head: Math.min(headGradient(situation), exactly('gradients')),
  };
}

/** What comes on top, by one of the bounds. */
function temporaryInputs(
  { setting, parallelism, memory }: Situation,
  workspace: Workspace,
  which: 'expected' | 'upper',
) {
  const of = (name: string) =>
    workspace.parts.find(({ part }) => part === name)?.bytes[which].value ?? 0;
  return {
    unfused: of('unfused'),
    gathered: of('gathered'),
    loss: of('loss'),
    block: of('blockGradients'),
    added: of('added'),
    beyond: of('update'),
    update: updateTemporary(which, {
      optimizer: setting.optimizer,
      gradientBytes: gradientBytesOf(setting),
      parameters: memory.parameters.value,
      replicas: optimizerReplicas(setting, parallelism),
    }),
  };
}

/** Of the whole weight at once, where a stage has the head. */
function headGradient({ model, setting, parallelism, stage }: Situation): number {
  if (stage.to < model.blocks.length) return 0;
  const rows = Math.ceil(outputWidth(model.head) / parallelism.tensor);
  return gradientBytesOf(setting) * rows * inputWidth(model.head);
}
