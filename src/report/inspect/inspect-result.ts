import type { CheckpointSummary } from '../../checkpoint/summary.js';
import type { SrteSurvey } from '../../conversion/srte/srte-survey.js';

/** Everything that `minimind inspect` found out. */
export interface InspectResult extends CheckpointSummary {
  /** The glob that the names in `tensors` match, when there is one. */
  readonly filter?: string;
  readonly srte?: SrteSurvey;
}
