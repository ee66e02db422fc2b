/** LoRA adapters and the models that they change. */

import { UserError, usageError } from '../../base/errors.js';
import { isAdapterFolder } from '../../base/files/config-names.js';
import { pathExists } from '../../base/files/mounted.js';
import { isHubName } from '../../base/text/hub-names.js';
import { commandText } from '../../base/text/setting.js';
import { shellWord } from '../../base/text/shell-words.js';
import { counted } from '../../base/text/words.js';
import type {
  AdapterDescription,
  AdapterFiles,
  LoraAdapter,
} from '../../checkpoint/adapter/adapter.js';
import { basePathsOf, describeAdapter, openAdapter } from '../../checkpoint/adapter/adapter.js';
import type { NamesOf, TensorType } from '../../checkpoint/adapter/merge-adapter.js';
import { adapterChanges, mergedCheckpoint } from '../../checkpoint/adapter/merge-adapter.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import type { Fault } from '../../checkpoint/reconcile/faults.js';
import { parameterNames } from '../../checkpoint/reconcile/faults.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { stateDictOf, tensorsOf } from '../../model/architecture/walk.js';
import { adjustedToCheckpoint, findConfig } from './checkpoint/checkpoint-config.js';
import { modelOf } from './model-file.js';

/** All names of each parameter of a model. */
function sharedNamesOf(model: LanguageModel): NamesOf {
  const groups = new Map<string, readonly string[]>();
  for (const tensor of tensorsOf(model)) {
    const names = parameterNames(tensor);
    for (const name of names) groups.set(name, names);
  }
  return (name) => groups.get(name) ?? [name];
}

/** The line of an answer about the model of an adapter, not about the adapter. */
export const adapterNote = (adapter: string, base: string): string =>
  `${adapter} is a LoRA adapter: the answer is about its model, ${base}`;

interface BaseFlags {
  /** Config of the model, instead of its own. */
  readonly config?: string | undefined;
  readonly family?: string | undefined;
  readonly noConfig?: boolean;
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
  const found = flags.noConfig ? undefined : await findConfig(checkpoint, flags.config);
  const loaded = found && (await modelOf(found.document, { family: flags.family }));
  const model = loaded && adjustedToCheckpoint(loaded, checkpoint).model;
  const adapter = await openAdapter(folder);
  try {
    return mergedCheckpoint(checkpoint, adapter, model ? sharedNamesOf(model) : (name) => [name]);
  } catch (error) {
    adapter.checkpoint.close();
    throw error;
  }
}

/** An adapter without its values: its file is closed. @throws UserError when the folder is not an adapter. */
export async function readAdapter(folder: string): Promise<LoraAdapter> {
  if (!isAdapterFolder(folder)) throw notAnAdapter(folder);
  const adapter = await openAdapter(folder);
  adapter.checkpoint.close();
  return adapter;
}

/** @throws UserError when the adapter does not fit the model. */
export function describeFitting(adapter: LoraAdapter, model: LanguageModel): AdapterDescription {
  const [fault, ...others] = adapterFaults(model, adapter);
  const described = describeAdapter(adapter);
  if (fault === undefined) return described;
  const more = others.length > 0 ? ` and ${counted(others.length, 'other tensor')}` : '';
  throw new UserError(
    'refused-file',
    `${described.file} does not fit the model: ${fault.name}${more}`,
    {
      suggestion: `name its model${described.base === null ? '' : `, ${described.base}`}; ${commandText('verify')} lists the differences`,
    },
  );
}

const notAnAdapter = (folder: string) =>
  usageError(
    `${folder} is not a LoRA adapter: it has no adapter_config.json`,
    'name the folder that PEFT wrote with save_pretrained',
  );

/**
 * The model that an adapter was trained on, if its settings name an existing path.
 * @param command Words of a command with the base in the right place.
 */
export function basePathOf(adapter: AdapterFiles, command: (base: string) => string): string {
  const found = basePathsOf(adapter).find(pathExists);
  if (found !== undefined) return found;
  const { base } = adapter.config;
  throw usageError(
    `${adapter.checkpoint.path} is an adapter of ${base ?? 'a model that it does not name'}, which was not found`,
    `write minimind ${command(base === null ? 'BASE' : shellWord(isHubName(base) ? `hf:${base}` : base))}`,
  );
}

/** Differences between what an adapter changes and what a model has. */
export function adapterFaults(model: LanguageModel, adapter: LoraAdapter): Fault[] {
  const tensors = new Map<string, TensorType>(
    stateDictOf(model).map(({ name, tensor }) => [name, { dtype: 'F32', shape: tensor.shape }]),
  );
  const { faults } = adapterChanges(tensors, adapter, sharedNamesOf(model));
  return faults.map(({ name, shape, found }) => ({
    kind: found ? 'misshapen' : 'extra',
    name,
    own: name,
    expected: found ? { shape: found.shape } : null,
    found: { shape },
  }));
}
