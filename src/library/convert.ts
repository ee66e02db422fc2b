/** `convert-checkpoint` as a function. */
import { NO_PROGRESS } from '../base/progress-display.js';
import type { ConversionResult } from '../convert/conversion/conversion-result.js';
import type { ConversionRequest } from '../convert/conversion/job.js';
import { withAdapter } from '../input/model-input/adapter-model.js';
import { checkpointWarnings } from '../input/model-input/checkpoint-config.js';
import { openModelCheckpoint } from '../input/model-input/gguf/gguf-checkpoint.js';
import { type AnswerNotes, withNotes } from './answer.js';
import { type HubOptions, mounted } from './load-model.js';
import { silent } from './warnings.js';

/** Settings of a conversion. All have a default: the input as it is, in the format that the output's name says. */
export type ConvertOptions = Partial<
  Omit<ConversionRequest, 'checkpoint' | 'out' | 'display' | 'warn'>
> &
  HubOptions;

/**
 * Converts a checkpoint, and measures the error.
 * @param input A file, an index of shards, a folder, or `hf:ORG/NAME`.
 * @param output A `.safetensors`, `.pt` or `.gguf` file, or a folder. It appears whole or not at all.
 * @throws UserError with all problems of the input, before anything is written.
 */
export async function convert(
  input: string,
  output: string,
  { stateDict, offline, ...settings }: ConvertOptions = {},
): Promise<ConversionResult & AnswerNotes> {
  const { path, references } = await mounted(input, 'values', { stateDict, offline });
  const checkpoint = await openedForConversion(path, { ...settings, stateDict });
  const surroundings = silent();
  try {
    await surroundings.warn(checkpointWarnings(checkpoint));
    const { convert: convertCheckpoint } = await import('../convert/conversion/conversion.js');
    const result = await convertCheckpoint({
      ...{ dequantize: false, saturate: false, resume: false, dryRun: false, noConfig: false },
      ...{ check: false, prove: false, force: false },
      engine: 'auto',
      ...settings,
      ...{ checkpoint, out: output },
      display: SILENT,
      warn: surroundings.warn,
    });
    return withNotes(result, { warnings: surroundings.warnings, references });
  } finally {
    checkpoint.close();
  }
}

/** The checkpoint of a conversion, with the adapter that it merges. */
export async function openedForConversion(
  place: string,
  {
    stateDict,
    mergeLora,
    config,
    family,
    noConfig = false,
  }: Pick<ConvertOptions, 'stateDict' | 'mergeLora' | 'config' | 'family' | 'noConfig'>,
) {
  const checkpoint = openModelCheckpoint(place, { stateDict });
  if (mergeLora === undefined) return checkpoint;
  try {
    return await withAdapter(checkpoint, mergeLora, { config, family, noConfig });
  } catch (error) {
    checkpoint.close();
    throw error;
  }
}

const nothing = () => {};

const SILENT: ConversionRequest['display'] = {
  ...NO_PROGRESS,
  step: () => nothing,
  end: nothing,
  stopped: nothing,
};
