/** Converts the flags of `minimind train-plan` to a request, and its plan to notes on the flags. */
import { usageError } from '../../base/errors.js';
import { formatInteger } from '../../base/text/units.js';
import { counted as countedText } from '../../base/text/words.js';
import { shardingOf } from '../../estimate/fit/fit-request.js';
import { countGradients } from '../../estimate/training/count-gradients.js';
import type { CountedData, TrainPlan } from '../../estimate/training/plan-training.js';
import { contextOf, lossScaleOf } from '../../estimate/training/plan-training.js';
import type { GivenSettings, TrainingSettings } from '../../estimate/training/training-settings.js';
import { trainingSettings } from '../../estimate/training/training-settings.js';
import { FIRST_SCALE } from '../../estimate/training/underflow.js';
import type { LoadedModel } from '../../input/model-input/checkpoint/checkpoint-model.js';
import { readGradients } from '../../input/model-input/read-gradients.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { hintsOf } from '../../model/architecture/training-hints.js';
import { formatOf, type OutputFlags } from '../base-command.js';
import { progressDisplay } from '../progress.js';
import { hardwareOf } from './hardware-flags.js';
import { axesOf, givenSettingsOf, type TrainPlanFlags } from './train-plan-flags.js';

/** Maximum rows of CSV: a spreadsheet has 1,048,576. */
export const MOST_ROWS = 1_000_000;

/**
 * Reads the data, the tokenizer, the gradients and the hardware that the flags name.
 * @param note Called with each remark on them.
 * @throws UserError for what cannot be read, and for flags that contradict each other.
 */
export async function trainPlanRequest(
  loaded: LoadedModel,
  flags: TrainPlanFlags & OutputFlags,
  note: (text: string) => void,
) {
  const { model } = loaded;
  const { settings, data } = await withData(flags, loaded, note);
  const cluster = await clusterOf(flags, settings, note);
  return {
    settings,
    context: flags.context,
    cluster,
    price: flags.price,
    mfu: flags.mfu,
    recompute: flags.recompute,
    sharding: shardingOf(flags, hintsOf(loaded)),
    axes: axesOf(flags, cluster?.gpus ?? settings.values.gpus ?? 1),
    convention: flags.convention,
    data,
    gradients: await gradientsOf(flags.gradients, model, settings),
  };
}

/** The settings, completed from the data and its tokenizer. Samples have the length of the plan's sequences. */
async function withData(
  flags: TrainPlanFlags & OutputFlags,
  { model, document }: LoadedModel,
  note: (text: string) => void,
): Promise<{ settings: TrainingSettings; data?: CountedData }> {
  const given = givenSettingsOf(flags);
  const { data: files, tokenizer } = flags;
  if (files === undefined) {
    const size = tokenizer === undefined ? undefined : await tokenizerSize(tokenizer);
    return { settings: trainingSettings(document, { ...given, ...sizeSetting(size) }) };
  }
  const settings = trainingSettings(document, given);
  const context = contextOf(model, { settings, context: flags.context });
  const { countTokens } = await import('../../language/data/read-data.js');
  const found = await countTokens(
    { files, as: flags.as, key: flags.key, tokenizer, context, recipe: 'minimind3' },
    progressDisplay(flags),
  );
  const { samples, counted, longest, highestId, invalidLines, vocabulary } = found;
  if (invalidLines > 0) note(`--data: ${countedText(invalidLines, 'invalid line')} left out`);
  const isPacked = settings.values.packing === true;
  const tokens = isPacked ? found.uncut : found.tokens;
  if (tokens === 0) {
    throw usageError(
      `--data: expected samples, found none in ${files.join(', ')}`,
      'see what is in the files: minimind data FILE',
    );
  }
  return {
    settings: trainingSettings(document, {
      ...given,
      ...sizeSetting(vocabulary ?? undefined),
      dataset_tokens: { setting: 'data', value: tokens },
      longest_sample: { setting: 'data', value: longest },
    }),
    data: {
      samples,
      tokens,
      counted,
      positions: isPacked ? tokens : found.positions,
      longest,
      highestId,
      isPacked,
    },
  };
}

async function tokenizerSize(file: string): Promise<number> {
  const { TextTokenizer } = await import('../../language/tokenizer/tokenizer.js');
  return (await TextTokenizer.open(file, { isPlain: true })).vocabulary;
}

const sizeSetting = (size: number | undefined): GivenSettings =>
  size === undefined ? {} : { tokenizer_size: { setting: 'tokenizer', value: size } };

/** The GPUs; their number is the flag's, else the file's. */
async function clusterOf(
  { gpu, gpus, hardware, reserve, quiet }: TrainPlanFlags & OutputFlags,
  { values }: TrainingSettings,
  note: (text: string) => void,
) {
  if (gpu === undefined && hardware === undefined) return undefined;
  const asked = { gpu, gpus: gpus ?? values.gpus, hardware, reserve, quiet };
  return hardwareOf(
    { ...asked, 'this-machine': false, profile: undefined, remeasure: false } as Parameters<
      typeof hardwareOf
    >[0],
    note,
  );
}

/** Counts of gradients without a scale, at the scale of the settings, and at the first scale of GradScaler. */
function gradientsOf(file: string | undefined, model: LanguageModel, { values }: TrainingSettings) {
  const scales = [...new Set([1, lossScaleOf(values), FIRST_SCALE])];
  if (file === undefined) return undefined;
  return countGradients(file, scales, (take) => readGradients(file, model, take));
}

/** @throws UserError for a flag that the plan does not use. */
export function refuseUnused(flags: TrainPlanFlags, { underflow, size }: TrainPlan): void {
  if (flags['loss-scale'] !== undefined && underflow === null) {
    throw usageError(
      '--loss-scale requires fp16',
      'write --set training.fp16=true, or leave --loss-scale out',
    );
  }
  if (flags.epochs !== undefined && size.length !== 'epochs') {
    throw usageError(
      '--epochs requires the number of tokens of the data',
      'write --data FILE or --data-tokens 1B',
    );
  }
}

/** Notes on a plan, for its flags. */
export function trainPlanNotes(
  flags: OutputFlags & { readonly check: boolean },
  { gradients, mistakes, size }: TrainPlan,
): string[] {
  const notes: string[] = [];
  if (gradients && gradients.missing > 0) {
    const missing = countedText(gradients.missing, 'tensor');
    notes.push(`--gradients: ${missing} of the model without a gradient`);
  }
  if (flags.check && mistakes.length > 0) {
    const places = mistakes.map(({ place, title }) => `${place}: ${title}`);
    notes.push(`--check: ${places.join('; ')}`);
  }
  if (formatOf(flags) === 'csv' && size.steps > MOST_ROWS) {
    const [most, steps] = [formatInteger(MOST_ROWS), formatInteger(size.steps)];
    notes.push(`${most} of ${steps} steps are listed, evenly spaced`);
  }
  return notes;
}
