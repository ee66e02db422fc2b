/** `verify` as a function: whether the tensors of a checkpoint are those of its config. */
import { usageError } from '../base/errors.js';
import { commandText, setting } from '../base/text/setting.js';
import { shellWord } from '../base/text/shell-words.js';
import { openAdapter } from '../checkpoint/adapter/adapter.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { ConfigDocument } from '../config/document.js';
import { basePathOf } from '../input/model-input/adapter-model.js';
import {
  checkpointWarnings,
  findConfig,
} from '../input/model-input/checkpoint/checkpoint-config.js';
import { withoutConfig } from '../input/model-input/checkpoint/required-config.js';
import {
  compareValues,
  type ValueComparison,
  type VerifyAnswer,
  type VerifyResult,
  verifiedAdapter,
  verifyCheckpoint,
} from '../input/model-input/checkpoint/verify-checkpoint.js';
import { openModelCheckpoint } from '../input/model-input/gguf/gguf-checkpoint.js';
import {
  isAdapterPlace,
  locateModel,
  type ModelPlace,
  refusePreset,
} from '../input/model-input/locate.js';
import { type ModelLoadOptions, modelOf } from '../input/model-input/model-file.js';
import { openModelSource, withErrorOf } from '../input/model-input/model-source.js';
import { onnxViewOf } from '../input/model-input/onnx/onnx-tensors.js';
import { readConfig } from '../input/model-input/read-model-file.js';
import { type AnswerNotes, withNotes } from './answer.js';
import { checkOptions, type OptionKinds, requireReference } from './arguments.js';
import { CONFIG_KINDS, type ConfigOptions, overridesOf } from './models/describe-model.js';
import { HUB_KINDS, type HubOptions, mounted } from './models/load-model.js';
import { type Surroundings, silent } from './warnings.js';

/** Checks in addition to names, shapes and types. */
interface Checks {
  /** Another checkpoint of the model, whose values are compared. */
  readonly values?: string | undefined;
  /** Whether weights of any size are searched for NaN and infinities. Default: up to 1 GiB. */
  readonly scan?: boolean | undefined;
}

export interface VerifyOptions extends ConfigOptions, HubOptions, Checks {
  /** Default: the config in the checkpoint or in its folder; for an adapter, that of its model. */
  readonly config?: string | undefined;
  /** Whether warnings count as mismatches. */
  readonly strict?: boolean | undefined;
}

const VERIFY_KINDS: OptionKinds<VerifyOptions> = {
  ...CONFIG_KINDS,
  ...HUB_KINDS,
  config: 'text',
  values: 'text',
  scan: 'flag',
  strict: 'flag',
};

/**
 * Checks a checkpoint against its config: `matches` of the result is the verdict. A folder of an adapter is checked
 * against the config of its model.
 * @example
 * const { matches, faults } = await verify('model.safetensors', { config: 'model.yaml' });
 * @param reference A file, an index of shards, a folder, or `hf:ORG/NAME`.
 * @throws UserError when one of the two cannot be read, or no config is found.
 */
export async function verify(
  reference: string,
  given: VerifyOptions = {},
): Promise<VerifyAnswer & AnswerNotes> {
  requireReference(reference, 'verify');
  checkOptions('verify', given, VERIFY_KINDS);
  const { config, values, set, strict = false, ...options } = given;
  const read = async (each: string | undefined) =>
    each === undefined ? undefined : mounted(each, 'index', options);
  const checkpoint = await mounted(reference, 'index', options);
  const [named, original] = [await read(config), await read(values)];
  const surroundings = silent();
  const result = await verifyPlaces(
    { checkpoint: locateModel(checkpoint.path), config: named && locateModel(named.path) },
    { ...options, strict, set: overridesOf(set), values: original?.path },
    surroundings,
  );
  const references = [checkpoint, named, original].flatMap((each) => each?.references ?? []);
  return withNotes(result, { warnings: surroundings.warnings, references });
}

/** The two sides. */
interface VerifiedPlaces {
  readonly checkpoint: ModelPlace;
  /** Undefined for the config of the checkpoint. */
  readonly config: ModelPlace | undefined;
}

/** Options as the readers of models take them. */
interface ReadingOptions extends ModelLoadOptions, Checks {
  readonly stateDict?: string | undefined;
}

/** Checks a checkpoint, or an adapter, that is found. */
export const verifyPlaces = (
  places: VerifiedPlaces,
  options: ReadingOptions,
  surroundings: Surroundings,
): Promise<VerifyAnswer> =>
  isAdapterPlace(places.checkpoint)
    ? verifyAdapter(places.checkpoint.path, places.config?.path, options, surroundings)
    : verifyWeights(places, options, surroundings);

async function verifyWeights(
  places: VerifiedPlaces,
  options: ReadingOptions,
  surroundings: Surroundings,
): Promise<VerifyAnswer> {
  refusePreset(places.checkpoint);
  const checkpoint = await verifiedCheckpoint(places, options);
  try {
    const found = await findConfig(checkpoint, places.config);
    if (!found) {
      throw await withoutConfig(
        checkpoint,
        ({ path }, like = 'CONFIG') => `write ${commandText('verify', [like, path])}`,
      );
    }
    const verified = await verifyCheckpoint(checkpoint, found.document, options, surroundings);
    const values =
      options.values === undefined
        ? undefined
        : await comparedWith(options.values, checkpoint, found.document, verified, {
            ...options,
            ...surroundings,
          });
    const graph = onnxViewOf(checkpoint);
    const differs = values !== undefined && values.beyond.length + values.missing.length > 0;
    return {
      schema: 'minimind/verify@1',
      ...verified,
      matches: verified.matches && !differs,
      ...(values && { values }),
      ...(graph && { onnx: graph }),
    };
  } finally {
    checkpoint.close();
  }
}

/** Opens the checkpoint. @throws UserError with the faults of the config too, if both are wrong. */
async function verifiedCheckpoint(
  { checkpoint, config }: VerifiedPlaces,
  { stateDict, ...options }: ReadingOptions,
): Promise<Checkpoint> {
  try {
    const listing = 'listing' in checkpoint ? checkpoint.listing : undefined;
    return openModelCheckpoint(checkpoint.path, { stateDict, listing });
  } catch (error) {
    if (config === undefined) throw error;
    throw await withErrorOf(error, checkpoint.path, config.path, async () =>
      modelOf(await readConfig(config), options),
    );
  }
}

/** Compares the values with those of another checkpoint. */
async function comparedWith(
  other: string,
  checkpoint: Checkpoint,
  document: ConfigDocument,
  { notes }: VerifyResult,
  { display, ...options }: ReadingOptions & Pick<Surroundings, 'display'>,
): Promise<ValueComparison> {
  const copies = notes.flatMap(({ kind, names }) => (kind === 'stored-again' ? names : []));
  const original = openModelCheckpoint(other);
  try {
    return await compareValues(checkpoint, original, display, {
      copies: new Set(copies),
      described: await modelOf(document, options),
    });
  } finally {
    original.close();
  }
}

/** Checks an adapter. @param base The config of its model; undefined for the model that the adapter names. */
async function verifyAdapter(
  folder: string,
  base: string | undefined,
  { values, scan, stateDict, set, family }: ReadingOptions,
  { warn }: Surroundings,
): Promise<VerifyAnswer> {
  refuseForAdapter(folder, { values, stateDict, scan });
  const adapter = await openAdapter(folder);
  try {
    const model =
      base ?? basePathOf(adapter, (each) => `verify ${each} ${shellWord(adapter.checkpoint.path)}`);
    await warn(checkpointWarnings(adapter.checkpoint));
    const source = await openModelSource(model, { family });
    const loaded = await source.model(set, { isChecked: false });
    return { schema: 'minimind/verify@1', ...verifiedAdapter(loaded, adapter) };
  } finally {
    adapter.checkpoint.close();
  }
}

/** @throws UserError for a setting that requires a whole model. */
function refuseForAdapter(
  folder: string,
  given: Pick<ReadingOptions, 'values' | 'stateDict' | 'scan'>,
): void {
  for (const name of ['values', 'stateDict', 'scan'] as const) {
    if (!given[name]) continue;
    const merged = commandText('convertCheckpoint', ['BASE', 'merged'], { mergeLora: folder });
    const compared = commandText('verify', ['merged'], { values: given.values });
    throw usageError(
      `${setting(name)}: expected the checkpoint of a whole model, found the LoRA adapter ${folder}`,
      name === 'values'
        ? `merge it first: ${merged}; then ${compared}`
        : `leave ${setting(name)} out`,
    );
  }
}
