/** A check of a training plan, and the facts that it uses. */

import type { Severity } from '../../../base/errors.js';
import type { TrainingKey } from '../../../model/architecture/training-section.js';
import type { GroupRuleName, OptimizerGroup } from '../optimizer-groups.js';
import type { RunSize } from '../run-size.js';
import type { LearningRate } from '../schedules.js';
import type { TrainingSettings } from '../training-settings.js';
import type { Underflow } from '../underflow.js';

/** Facts of a plan that the checks use. */
export interface PlanFacts {
  readonly settings: TrainingSettings;
  readonly size: RunSize;
  readonly rate: LearningRate;
  readonly rule: GroupRuleName;
  readonly weightDecay: number;
  readonly groups: readonly OptimizerGroup[];
  /** Parameters of the model, and its width and vocabulary. */
  readonly parameters: number;
  readonly width: number;
  readonly vocabulary: number;
  /** Highest id of the data; undefined where it was not read. */
  readonly highestId: number | undefined;
  /** Share of gradients that fp16 loses; undefined in other types without measured gradients. */
  readonly underflow: (Underflow & { readonly isMeasured: boolean }) | undefined;
}

/** One mistake that ruins a run, and how to find it. */
export interface PlanCheck {
  readonly title: string;
  /** `error`: the run fails or is wasted; `warning`: it is likely worse than it could be. */
  readonly severity: Severity;
  readonly key: TrainingKey;
  /** Other keys that can be the wrong one, in order of precedence. */
  readonly others?: readonly TrainingKey[];
  find(facts: PlanFacts): FoundMistake | undefined;
}

interface FoundMistake {
  readonly reason: string;
  readonly fix: string;
  /** Key that is wrong, where it is not that of the check. */
  readonly key?: TrainingKey;
}
