/** Methods of a training whose memory is not counted, with the direction in which the figures are off. */
import type { Problem } from '../../base/errors.js';
import { present } from '../../base/values.js';
import type { ConfigDocument } from '../../config/document.js';
import { switchOf, type TrainingProgram } from './program.js';
import type { TrainingConfig } from './training-config.js';
import type { TrainingRun } from './training-run.js';

/** Stages of LLaMA-Factory that are counted: pre-training and supervised fine-tuning (hparams/finetuning_args.py). */
const COUNTED_STAGES: ReadonlySet<unknown> = new Set(['pt', 'sft']);

const preference = (value: unknown): string | undefined =>
  typeof value === 'string'
    ? `${value.toUpperCase()} is not counted: a reference or reward model, or pairs of answers, need more memory than these figures`
    : undefined;

/** Keys that change memory, in the programs that have them. */
const CHANGES: Readonly<Record<string, (value: unknown) => string | undefined>> = {
  rl: preference,
  stage: (value) => (COUNTED_STAGES.has(value) ? undefined : preference(value)),
  load_in_8bit: (value) =>
    switchOf(value)
      ? 'weights in 8 bits are not counted: they need less memory than these figures'
      : undefined,
};

/**
 * Warnings about methods that are not counted.
 * @param given The settings of the file, without defaults.
 */
export function memoryChanges(
  document: ConfigDocument,
  { uncounted }: TrainingProgram,
  given: TrainingRun,
  placeOf: TrainingConfig['placeOf'],
): Problem[] {
  const warning = (message: string) =>
    ({ severity: 'warning', message, suggestion: 'allow for it in the answer' }) as const;
  const { kind = 'training', expertParallel = 1 } = given;
  return present<Problem>([
    ...Object.entries(CHANGES).map(([key, changeOf]) => {
      const message = uncounted.includes(key) ? changeOf(document.value[key]) : undefined;
      return message !== undefined && { ...document.locate([key]), path: key, ...warning(message) };
    }),
    kind !== 'training' &&
      expertParallel > 1 && {
        ...placeOf('expertParallel'),
        ...warning(
          `expert parallelism of ${expertParallel} is not counted for adapters: experts need less memory than these figures`,
        ),
      },
  ]);
}
