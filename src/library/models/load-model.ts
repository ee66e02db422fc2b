import { NO_PROGRESS } from '../../base/progress-display.js';
import {
  type HubNeed,
  type MountedReference,
  mountReference,
} from '../../input/hub/mount-reference.js';
import { parseHubReference } from '../../input/hub/reference.js';
import { openModelSource } from '../../input/model-input/model-source.js';
import type { Model } from '../answer.js';
import { checkOptions, type OptionKinds, requireReference } from '../arguments.js';
import { CONFIG_KINDS, type ConfigOptions, overridesOf } from './describe-model.js';

/** How a model of the hub is read. */
export interface HubOptions {
  /** Whether models of the hub are read from the caches of this machine only. */
  readonly offline?: boolean | undefined;
  /** State dict to read, if a PyTorch file has several. */
  readonly stateDict?: string | undefined;
}

/** Kinds of the values of `HubOptions`. */
export const HUB_KINDS: OptionKinds<HubOptions> = { offline: 'flag', stateDict: 'text' };

export interface LoadOptions extends ConfigOptions, HubOptions {
  /** Config of a checkpoint. Default: the one in it, or in its folder. */
  readonly config?: string | undefined;
}

const LOAD_KINDS: OptionKinds<LoadOptions> = { ...CONFIG_KINDS, ...HUB_KINDS, config: 'text' };

/**
 * Loads a model: a preset (`hybrid/original`), a config, a checkpoint, a folder, or `hf:ORG/NAME` of the Hugging Face
 * hub. Of a checkpoint only the index is read.
 * @example
 * const model = await loadModel('hybrid/original', { set: { 'model.num_layers': 24 } });
 * @throws UserError when it cannot be read, with every problem of its config.
 */
export async function loadModel(reference: string, options: LoadOptions = {}): Promise<Model> {
  requireReference(reference, 'loadModel');
  checkOptions('loadModel', options, LOAD_KINDS);
  const { path, references } = await mounted(reference, 'index', options);
  const { set, family, config, stateDict } = options;
  const source = await openModelSource(path, { family, config, stateDict });
  const loaded = await source.model(overridesOf(set));
  return { ...loaded, ...(references.length > 0 && { references }) };
}

/** A reference as a path that the readers of models know. A model of the hub is made readable first. */
export async function mounted(
  text: string,
  need: HubNeed,
  { offline = false, stateDict }: HubOptions,
): Promise<{ readonly path: string; readonly references: readonly MountedReference[] }> {
  if (!text.startsWith('hf:')) return { path: text, references: [] };
  const reference = parseHubReference(text);
  const found = await mountReference({
    ...{
      reference,
      text,
      need,
      takesSizes: need !== 'values',
      stateDict,
      isOffline: offline,
      display: NO_PROGRESS,
    },
    warn: () => {},
  });
  return { path: reference.path, references: [found] };
}
