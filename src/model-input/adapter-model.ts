/** LoRA adapters and the models that they change. */
import type { LanguageModel } from '../architecture/layer.js';
import { stateDictOf, tensorsOf } from '../architecture/walk.js';
import type { Adapter, AdapterFiles } from '../checkpoint/adapter/adapter.js';
import { isAdapterFolder, openAdapter } from '../checkpoint/adapter/adapter.js';
import { basePathsOf } from '../checkpoint/adapter/describe-adapter.js';
import type { NamesOf } from '../checkpoint/adapter/merge-adapter.js';
import { changesOf, mergedCheckpoint } from '../checkpoint/adapter/merge-adapter.js';
import type { Checkpoint } from '../checkpoint/checkpoint.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import { contiguousStrides } from '../checkpoint/stored-tensor.js';
import { UserError } from '../errors.js';
import { pathExists } from '../files/mounted.js';
import type { Fault } from '../reconcile/faults.js';
import { namesOf } from '../reconcile/faults.js';
import { isHubName } from '../text/hub-names.js';
import { shellWord } from '../text/words.js';
import { adjustedToCheckpoint, findConfig } from './checkpoint-config.js';
import { modelOf } from './model-file.js';

/** Whether a path is the folder of an adapter. */
export const isAdapterPath = (path: string | undefined): path is string =>
  path !== undefined && path !== '-' && isAdapterFolder(path);

/** All names of each parameter of a model. */
function sharedNamesOf(model: LanguageModel): NamesOf {
  const groups = new Map<string, readonly string[]>();
  for (const tensor of tensorsOf(model)) {
    const names = namesOf(tensor);
    for (const name of names) groups.set(name, names);
  }
  return (name) => groups.get(name) ?? [name];
}

interface BaseFlags {
  /** Config of the model, instead of its own. */
  readonly config?: string | undefined;
  readonly family?: string | undefined;
  readonly 'no-config'?: boolean;
}

/**
 * An open checkpoint with the adapter in a folder merged into it. Tied weights change together, as its config says.
 * @throws UserError when the adapter does not fit.
 */
export async function withAdapter(
  checkpoint: Checkpoint,
  folder: string,
  flags: BaseFlags,
): Promise<Checkpoint> {
  if (!isAdapterFolder(folder)) throw notAnAdapter(folder);
  const found = flags['no-config'] ? undefined : await findConfig(checkpoint, flags.config);
  const loaded = found && (await modelOf(found.document, { family: flags.family }));
  const model = loaded && adjustedToCheckpoint(loaded, checkpoint).model;
  const adapter = openAdapter(folder);
  try {
    return mergedCheckpoint(checkpoint, adapter, model ? sharedNamesOf(model) : (name) => [name]);
  } catch (error) {
    adapter.checkpoint.close();
    throw error;
  }
}

export const notAnAdapter = (folder: string) =>
  new UserError('usage', `${folder} is not a LoRA adapter: it has no adapter_config.json`, {
    suggestion: 'name the folder that PEFT wrote with save_pretrained',
  });

/**
 * The model that an adapter was trained on, where its settings name a path that is there.
 * @param command Words of a command with the base in the right place.
 */
export function basePathOf(adapter: AdapterFiles, command: (base: string) => string): string {
  const found = basePathsOf(adapter).find(pathExists);
  if (found !== undefined) return found;
  const { base } = adapter.config;
  throw new UserError(
    'usage',
    `${adapter.checkpoint.path} is an adapter of ${base ?? 'a model that it does not name'}, which is not there`,
    {
      suggestion: `write minimind ${command(base === null ? 'BASE' : shellWord(isHubName(base) ? `hf:${base}` : base))}`,
    },
  );
}

/** Differences between what an adapter changes and what a model has. */
export function adapterFaults(model: LanguageModel, adapter: Adapter): Fault[] {
  const tensors = new Map(
    stateDictOf(model).map(({ name, tensor }) => [name, placeholder(tensor.shape, adapter)]),
  );
  const { faults } = changesOf({ tensors }, adapter, sharedNamesOf(model));
  return faults.map(({ name, shape, found }) => ({
    kind: found ? 'misshapen' : 'extra',
    name,
    own: name,
    expected: found ? { shape: found.shape } : null,
    found: { shape },
  }));
}

/** A tensor of floats without values. */
function placeholder(shape: readonly number[], { checkpoint }: Adapter): StoredTensor {
  const [file] = checkpoint.files;
  if (file === undefined) throw new Error('an adapter without a file');
  const elements = shape.reduce((product, size) => product * size, 1);
  const bytes = 4 * elements;
  const storage = { file, position: 0, bytes, isBigEndian: false };
  const strides = contiguousStrides(shape);
  return { kind: 'tensor', dtype: 'F32', shape, elements, strides, offset: 0, storage, bytes };
}
