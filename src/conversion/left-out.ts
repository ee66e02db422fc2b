/** What stands in a training checkpoint beside the model, and is not part of what is converted. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { LeftOut } from './plan.js';

/** Kept in the output: see `torchFile`. */
const KEPT = new Set(['step', 'config']);

const OPTIMIZER = /optim/i;

export function leftOutOf({ content }: Checkpoint): LeftOut[] {
  return [...content.keys()]
    .filter((key) => !KEPT.has(key))
    .map((name) => ({
      name,
      why: OPTIMIZER.test(name)
        ? 'the state of an optimizer belongs to the tensors that it has trained'
        : 'it is not part of the model',
    }));
}

/** Training steps, as the file says. */
export function stepOf({ content, metadata }: Checkpoint): number | bigint | null {
  const step = content.get('step') ?? metadata.get('step');
  if (typeof step === 'number' || typeof step === 'bigint') return step;
  return typeof step === 'string' && /^\d{1,15}$/.test(step) ? Number(step) : null;
}
