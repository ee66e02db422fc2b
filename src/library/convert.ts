/** `convert-checkpoint` as a function. */
import { NO_PROGRESS } from '../base/progress-display.js';
import { isRecord } from '../base/values.js';
import { CONTAINER_NAMES } from '../checkpoint/formats.js';
import type { CONVERTED_DTYPES, QUANTIZATIONS } from '../convert/conversion/conversion-choices.js';
import type { ConversionResult } from '../convert/conversion/conversion-result.js';
import type { ConversionRequest } from '../convert/conversion/job.js';
import { withAdapter } from '../input/model-input/adapter-model.js';
import { checkpointWarnings } from '../input/model-input/checkpoint/checkpoint-config.js';
import { openModelCheckpoint } from '../input/model-input/gguf/gguf-checkpoint.js';
import { refusePreset } from '../input/model-input/locate.js';
import { type AnswerNotes, withNotes } from './answer.js';
import { checkOptions, type OptionKinds, requireReference } from './arguments.js';
import { CONFIG_KINDS, overridesOf, type SetOptions } from './models/describe-model.js';
import { HUB_KINDS, type HubOptions, mounted } from './models/load-model.js';
import { engineKinds, SEED } from './run/engine-options.js';
import { silent } from './warnings.js';

/** Settings that are written otherwise in the library. */
type Rewritten = 'set' | 'dtype' | 'quantize' | 'shardSize' | 'maxMemory';

/** Settings of a conversion. All have a default: the input as it is, in the format that the output's name says. */
export interface ConvertOptions
  extends Partial<
      Omit<ConversionRequest, 'checkpoint' | 'out' | 'output' | 'display' | 'warn' | Rewritten>
    >,
    HubOptions {
  /** Type of the parameters; `q8_0` to `q2_k_s` only in a GGUF file. Default: `keep`. */
  readonly dtype?: keyof typeof CONVERTED_DTYPES | undefined;
  /** Type of the weights of linear layers. Default: floats. */
  readonly quantize?: keyof typeof QUANTIZATIONS | undefined;
  /** Values of the output's config by dotted key. */
  readonly set?: SetOptions | undefined;
  /** Size of the largest file in a folder. Default: 5e9. */
  readonly shardBytes?: number | undefined;
  /** Memory of the conversion. Default: 512e6, or what it needs. */
  readonly maxMemoryBytes?: number | undefined;
}

/** Kinds of the values of `ConvertOptions`. Loads the names of the choices, which only a conversion needs. */
async function convertKinds(): Promise<OptionKinds<ConvertOptions>> {
  const choices = await import('../convert/conversion/conversion-choices.js');
  return {
    ...CONFIG_KINDS,
    ...HUB_KINDS,
    ...(await engineKinds()),
    layout: choices.LAYOUT_NAMES,
    target: 'text',
    merge: {
      expected: 'mean, first or { layer: 3 }',
      is: (value) =>
        value === 'mean' || value === 'first' || (isRecord(value) && Number.isInteger(value.layer)),
    },
    rank: 'count',
    maxError: 'amount',
    maxPositions: 'count',
    extend: choices.EXTENSIONS,
    tie: choices.TIES,
    dtype: choices.CONVERTED_DTYPE_NAMES,
    imatrix: 'text',
    quantize: choices.QUANTIZATION_NAMES,
    group: Object.values(choices.QUANTIZATION_GROUPS),
    dequantize: 'flag',
    saturate: 'flag',
    dialect: choices.NAMING_SCHEMES,
    heads: 'count',
    container: CONTAINER_NAMES,
    shardBytes: 'amount',
    maxMemoryBytes: 'amount',
    mergeLora: 'text',
    config: 'text',
    noConfig: 'flag',
    seed: SEED,
    dryRun: 'flag',
    resume: 'flag',
    check: 'flag',
    prove: 'flag',
    context: 'count',
    force: 'flag',
  };
}

/**
 * Converts a checkpoint, and measures the error.
 * @param input A file, an index of shards, a folder, or `hf:ORG/NAME`.
 * @param output A `.safetensors`, `.pt` or `.gguf` file, or a folder. It appears whole or not at all.
 * @throws UserError with all problems of the input, before anything is written.
 */
export async function convert(
  input: string,
  output: string,
  given: ConvertOptions = {},
): Promise<ConversionResult & AnswerNotes> {
  for (const each of [input, output]) requireReference(each, 'convert');
  checkOptions('convert', given, await convertKinds());
  const { stateDict, offline, ...options } = given;
  const { path, references } = await mounted(input, 'values', { stateDict, offline });
  const checkpoint = await openedForConversion(path, { ...options, stateDict });
  const surroundings = silent();
  try {
    await surroundings.warn(checkpointWarnings(checkpoint));
    const { convert: convertCheckpoint } = await import('../convert/conversion/conversion.js');
    const result = await convertCheckpoint({
      ...{ dequantize: false, saturate: false, resume: false, dryRun: false, noConfig: false },
      ...{ check: false, prove: false, force: false },
      engine: 'auto',
      ...(await settingsOf(options)),
      ...{ checkpoint, out: output },
      display: SILENT,
      warn: surroundings.warn,
    });
    return withNotes(result, { warnings: surroundings.warnings, references });
  } finally {
    checkpoint.close();
  }
}

/** Settings as the conversion takes them. */
async function settingsOf(options: ConvertOptions) {
  const { dtype = 'keep', quantize, set, shardBytes, maxMemoryBytes, ...others } = options;
  const { CONVERTED_DTYPES, QUANTIZATIONS } = await import(
    '../convert/conversion/conversion-choices.js'
  );
  return {
    ...others,
    dtype: CONVERTED_DTYPES[dtype],
    quantize: quantize && QUANTIZATIONS[quantize],
    set: set && overridesOf(set),
    shardSize: shardBytes,
    maxMemory: maxMemoryBytes,
  };
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
  refusePreset(place);
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
