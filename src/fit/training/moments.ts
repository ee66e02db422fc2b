/** What of all that is counted is never there at once: a step has several moments, and one of them is the fullest. */
import { inputWidth, outputWidth } from '../../architecture/walk.js';
import {
  add,
  div,
  type Exact,
  type Expression,
  type Input,
  inputs,
  max,
  min,
  sub,
} from '../../budget/expression.js';
import { type Bounds, quantity } from '../../budget/quantity.js';
import { optimizerReplicas, updateTemporary } from './step-limits.js';
import { gradientBytesOf } from './training-setting.js';
import type { Situation, Workspace } from './training-workspace.js';

/**
 * The fullest moment of a step, in the order of a backward pass, in place of all that is counted. Gradients of a lone
 * micro-batch come as activations go, and a block runs again when the logits have gone; those of several micro-batches
 * stay.
 */
function fullest(of: Readonly<Record<CountedName | TemporaryName | 'staying', Input>>): Expression {
  const kept = add(of.activations, of.unfused);
  const moments = {
    loss: add(of.staying, sub(kept, of.one_block), of.gathered, of.loss),
    head: add(
      of.staying,
      of.head,
      sub(kept, of.one_block, of.logits),
      of.gathered,
      div(of.loss, 2),
    ),
    lastBlock: add(max(of.staying, of.head), sub(kept, of.logits), of.gathered, of.block),
    firstBlock: add(
      of.gradients,
      div(sub(kept, of.logits, of.one_block), of.blocks),
      of.one_block,
      of.gathered,
      of.block,
    ),
    embedding: add(of.gradients, of.added),
    update: add(of.gradients, of.update),
  };
  const counted = add(of.gradients, kept, of.gathered, of.loss, of.block, of.added, of.beyond);
  return sub(max(...Object.values(moments)), counted);
}

/** What is taken off the sum of all that is counted; undefined where all of it can be there at once. */
export function apartBytes(situation: Situation, workspace: Workspace): Bounds | undefined {
  const { parallelism } = situation;
  const isLone = parallelism.microBatches === 1;
  const shared = { label: 'what is never there at once', unit: 'bytes' } as const;
  const counted = inputs(exactInputs(situation));
  const { gradients, activations, logits, one_block } = counted;
  const again = min(one_block, logits);
  const bound = (which: 'expected' | 'upper', staying: Exact, source: string) => {
    const all = {
      ...counted,
      ...inputs({ staying }),
      ...inputs(temporaryInputs(situation, workspace, which)),
    };
    return quantity({ ...shared, formula: fullest(all), inputs: all, source });
  };
  const bounds: Bounds = {
    lower: quantity({
      ...shared,
      formula: isLone ? sub(0, again, min(gradients, sub(activations, again))) : sub(0, again),
      inputs: counted,
      source:
        'gradients of a lone micro-batch come as activations go (PyTorch, zero_grad sets them to None); a block ' +
        'runs again when the logits have gone',
    }),
    expected: bound(
      'expected',
      isLone ? 0 : gradients.value,
      `${ORDER}; gradients of a lone micro-batch come one by one`,
    ),
    upper: bound(
      'upper',
      gradients.value,
      `${ORDER}; gradients are there from the start, set to zero`,
    ),
  };
  return Object.values(bounds).every(({ value }) => value === 0) ? undefined : bounds;
}

type CountedName = keyof ReturnType<typeof exactInputs>;
type TemporaryName = keyof ReturnType<typeof temporaryInputs>;

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
