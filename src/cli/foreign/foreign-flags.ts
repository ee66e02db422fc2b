/** Flags of other tools, and their counterparts here. Loaded only for a line with a word that is not one of ours. */
import type { FlagRow } from './flags/flag-row.js';
import { FURTHER_FLAGS } from './flags/further.js';
import { MODELS_AND_SERVING } from './flags/models-and-serving.js';
import { NOT_NEEDED } from './flags/not-needed.js';
import { OWN_COMMANDS } from './flags/own-commands.js';
import { RUNS_AND_ANSWERS } from './flags/runs-and-answers.js';
import { TRAINING } from './flags/training.js';
import { WITHOUT_COUNTERPART } from './flags/without-counterpart.js';

/** All rows, in the order in which meanings are proposed. */
export const FLAGS: readonly FlagRow[] = [
  ...OWN_COMMANDS,
  ...FURTHER_FLAGS,
  ...MODELS_AND_SERVING,
  ...TRAINING,
  ...RUNS_AND_ANSWERS,
  ...WITHOUT_COUNTERPART,
  ...NOT_NEEDED,
];
