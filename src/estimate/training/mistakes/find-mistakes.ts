/** Mistakes that ruin a training: the one table of checks, each with its reason and what to write. */

import type { Severity } from '../../../base/errors.js';
import { formatInteger } from '../../../base/text/units.js';
import type { TrainingKey } from '../../../model/architecture/training-section.js';
import { DATA_CHECKS } from './data-checks.js';
import { OPTIMIZER_CHECKS } from './optimizer-checks.js';
import type { PlanCheck, PlanFacts } from './plan-check.js';
import { SCALER_CHECKS } from './scaler-checks.js';
import { SCHEDULE_CHECKS } from './schedule-checks.js';

export interface Mistake {
  /** Name of the check. */
  readonly check: MistakeName;
  /** Mistake in a few words. */
  readonly title: string;
  /** Whether it is an error or a warning. */
  readonly severity: Severity;
  /** Setting that is wrong, or that is missing. */
  readonly key: TrainingKey;
  /** Where it is: `training.warmup_steps` or `--warmup`. */
  readonly place: string;
  /** Reason why it is a mistake. */
  readonly reason: string;
  /** Line to write. */
  readonly fix: string;
}

/** All checks, in the order of the answer. */
export const PLAN_CHECKS = {
  ...SCHEDULE_CHECKS,
  ...OPTIMIZER_CHECKS,
  ...SCALER_CHECKS,
  ...DATA_CHECKS,
  'nothing-saved': {
    title: 'no checkpoint within the run',
    severity: 'warning',
    key: 'save_steps',
    find: ({ settings: { values }, size }) =>
      values.save_steps === undefined || values.save_steps <= size.steps
        ? undefined
        : {
            reason: `save_steps ${formatInteger(values.save_steps)} is more than the ${formatInteger(size.steps)} steps of the run`,
            fix: `save_steps: ${Math.max(1, Math.round(size.steps / 10))}`,
          },
  },
  contradiction: {
    title: 'setting with two values',
    severity: 'error',
    key: 'max_steps',
    find: ({ settings: { contradictions } }) => {
      const [first] = contradictions;
      return first === undefined
        ? undefined
        : {
            key: first.setting,
            reason: `${first.key} is another name of ${first.first}, with another value; ${first.first} counts`,
            fix: `only ${first.first}`,
          };
    },
  },
} as const satisfies Record<string, PlanCheck>;

export type MistakeName = keyof typeof PLAN_CHECKS;

export const MISTAKE_NAMES = Object.keys(PLAN_CHECKS) as MistakeName[];

/** All mistakes of a plan, errors first. */
export function findMistakes(facts: PlanFacts): Mistake[] {
  const found = MISTAKE_NAMES.flatMap((name): Mistake[] => {
    const check: PlanCheck = PLAN_CHECKS[name];
    const result = check.find(facts);
    if (result === undefined) return [];
    const { values } = facts.settings;
    const keys = [check.key, ...(check.others ?? [])];
    const key = result.key ?? keys.find((each) => values[each] !== undefined) ?? check.key;
    const { title, severity } = check;
    const { reason, fix } = result;
    return [{ check: name, title, severity, key, place: facts.settings.placeOf(key), reason, fix }];
  });
  const rank = ({ severity }: Mistake) => (severity === 'error' ? 0 : 1);
  return found.toSorted((a, b) => rank(a) - rank(b));
}
