/** Setting of the figures of a model, as shown by the reports about models. */

import { dtypeWord, formatFlops, formatInteger, formatSequences } from '../../base/text/units.js';
import { present } from '../../base/values.js';
import type { CheckpointFacts } from '../../input/model-input/checkpoint/checkpoint-model.js';
import type { GenerationFlops } from '../../model/budget/flops.js';
import type { ResolvedSetting, SettingOrigin } from '../../model/budget/profile-model.js';
import { type Block, noteOf } from '../kit/report.js';

const ORIGINS = {
  flag: '',
  file: ' (from the file)',
  default: ' (default)',
  longest: ' (maximum)',
} as const satisfies Record<SettingOrigin, string>;

/** Origin of the sequence length, when it is not the user. */
export const contextText = (origin: SettingOrigin): string => ORIGINS[origin];

/** @param file Name of the source of values without a flag. */
export const settingNotes = (setting: ResolvedSetting, file = 'file'): Block[] => [
  inferenceNote(setting, file),
  ...trainingNotes(setting, file),
];

const from = (origin: SettingOrigin, file: string) => ORIGINS[origin].replace('file', file);

const inferenceNote = ({ inference, origins }: ResolvedSetting, file: string): Block =>
  noteOf(
    `Inference: ${formatSequences(inference.batch, inference.context)}` +
      `${from(origins.context, file)}, ${dtypeWord(inference.dtype)}.`,
  );

export const precisionText = (precision: ResolvedSetting['training']['precision']): string =>
  PRECISION_WORDS[precision];

const PRECISION_WORDS: Readonly<Record<ResolvedSetting['training']['precision'], string>> = {
  mixed: 'mixed precision',
  bf16: 'pure bf16',
  fp8: 'FP8 products',
  float32: 'float32',
};

function trainingNotes(setting: ResolvedSetting, file: string): Block[] {
  const { training, origins, beyondOneDevice } = setting;
  const precision = precisionText(training.precision);
  return present([
    noteOf(
      `Training: ${formatInteger(training.batch)}${from(origins.trainingBatch, file)} × ${formatInteger(training.context)} ` +
        `tokens, ${precision}${from(origins.precision, file)}, ${training.optimizer}, ` +
        `recomputation ${training.recompute}${from(origins.recompute, file)}.`,
    ),
    beyondOneDevice.length > 0 &&
      noteOf(
        `The ${file === 'file' ? 'file asks' : 'files ask'} for ${beyondOneDevice.join(', ')}; one device without it is counted here.`,
      ),
  ]);
}

const CONFIGS = {
  flag: (file) => file,
  inside: () => 'the one in the checkpoint',
  beside: (file) => `${file}, next to the checkpoint`,
} as const satisfies Record<CheckpointFacts['config']['origin'], (file: string) => string>;

export const configText = ({ file, origin }: CheckpointFacts['config']): string =>
  `the config is ${CONFIGS[origin](file)}`;

/** FLOPs of generating tokens with and without a cache. */
export const generationNote = ({
  prompt,
  generated,
  cached,
  recomputed,
  ratio,
}: GenerationFlops): Block =>
  noteOf(
    `Generating ${formatInteger(generated)} tokens after ${formatInteger(prompt)}, one sequence: ` +
      `${formatFlops(cached)} with a cache, ${formatFlops(recomputed)} without one (${ratio.toPrecision(3)} ×).`,
  );
