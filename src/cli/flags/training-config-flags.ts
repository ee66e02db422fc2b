/** Flags for configs of other programs: one that is read, and one that is written. */
import * as Flags from '@oclif/core/flags';
import { EMIT_NAMES, emitNamesFor } from '../../estimate/emit/emitted.js';

const OTHERS = { helpGroup: 'OTHER PROGRAMS' };

/** `--training-config FILE`: settings of a training from the config of another program. */
const trainingConfig = Flags.string({
  ...OTHERS,
  helpValue: 'FILE',
  description:
    'settings from a training config of axolotl, LLaMA-Factory, torchtitan, Megatron-LM, nanotron, litgpt, DeepSpeed, accelerate or transformers; flags take precedence',
});

const emit = (purposes: string) =>
  `print the plan as a command or config of ${purposes}; -o FILE writes it`;

/** Flags of `fit`. */
export const fitProgramFlags = {
  'training-config': trainingConfig,
  emit: Flags.option({
    ...OTHERS,
    options: EMIT_NAMES,
    helpValue: 'PROGRAM',
    description: emit(EMIT_NAMES.join(', ')),
  } as const)(),
};

const TRAINERS = emitNamesFor('training');

/** Flags of `train-plan`. */
export const planProgramFlags = {
  'training-config': trainingConfig,
  emit: Flags.option({
    ...OTHERS,
    options: TRAINERS,
    helpValue: 'PROGRAM',
    description: emit(TRAINERS.join(', ')),
  } as const)(),
};
