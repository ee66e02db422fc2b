/** What stands in a training checkpoint beside the model, and is not part of what is converted. */
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { LeftOut } from './plan.js';

/** Kept in the output: see `torchFile`. */
const STEP = 'step';
const CONFIG = 'config';

const OPTIMIZER = /optim/i;

/** @param hasConfig Whether the output has the config, or one in its place. */
export function leftOutOf({ content }: Checkpoint, hasConfig: boolean): LeftOut[] {
  return [...content.keys()]
    .filter((key) => key !== STEP && !(key === CONFIG && hasConfig))
    .map((name) => ({ name, why: reasonOf(name) }));
}

function reasonOf(name: string): string {
  if (name === CONFIG) return 'it would not be true of the output, and cannot be read here';
  return OPTIMIZER.test(name)
    ? 'the state of an optimizer belongs to the tensors that it has trained'
    : 'it is not part of the model';
}

/** Training steps, as the file says. */
export function stepOf({ content, metadata }: Checkpoint): number | bigint | null {
  const step = content.get('step') ?? metadata.get('step');
  if (typeof step === 'number' || typeof step === 'bigint') return step;
  return typeof step === 'string' && /^\d{1,15}$/.test(step) ? Number(step) : null;
}
