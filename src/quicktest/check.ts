/** What checks there are: each runs a model, measures something and judges it. */
import type { Finding } from './finding.js';
import type { Subject } from './subject.js';

/** Every check, in the order in which they run, and what it tells. */
export const CHECKS = {
  created: 'the engine received what is described',
  forward: 'logits of the right shape, all finite',
  causality: 'no logit changes with a later token',
  batch: 'the rows of a batch do not see each other',
  repeat: 'two runs give the same',
  timing: 'how fast it is, and where the time goes',
  srte: 'rows of the right shape, and whose they are',
  cache: 'decoding step by step gives what the full forward pass does',
  float16: 'how far float16 is from float32, and what it saves',
  'cross-check': 'the other engine gives the same',
} as const satisfies Record<string, string>;

export type CheckName = keyof typeof CHECKS;

export const CHECK_NAMES = Object.keys(CHECKS) as readonly CheckName[];

export type Check = (subject: Subject) => Promise<Finding>;

export interface CheckResult extends Finding {
  readonly check: CheckName;
  readonly seconds: number;
}
