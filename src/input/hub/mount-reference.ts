/** Makes a repository of the hub a folder for the functions that read models. */

import { UserError, usageError } from '../../base/errors.js';
import { CONFIG_NAMES, isAdapterFolder, isSidecarName } from '../../base/files/config-names.js';
import { homeFolder } from '../../base/files/file-system.js';
import { mount } from '../../base/files/mounted.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import { downloadLine } from '../../base/text/hub-names.js';
import { setting } from '../../base/text/setting.js';
import { present } from '../../base/values.js';
import { openAdapterFiles } from '../../checkpoint/adapter/adapter.js';
import {
  hasWeightsExtension,
  isDistributedFolder,
  isIndexName,
  isOnnxName,
  isWeightsName,
} from '../../checkpoint/formats.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import { readShardIndex } from '../../checkpoint/shards/index-file.js';
import { nearest } from '../../config/nearest.js';
import { quote } from '../../config/quote.js';
import { builtInAdvice } from '../published/published-models.js';
import { isComponentList, readRepository } from '../repository/repository.js';
import { HeaderCache, UserCache } from './hub-caches.js';
import type { Listing } from './hub-client.js';
import { HubClient } from './hub-client.js';
import type { HubSettings } from './hub-settings.js';
import { hubSettings } from './hub-settings.js';
import type { HubReference } from './reference.js';
import { isCommit, isRepositoryPath, pinnedPath } from './reference.js';
import { RemoteFolder } from './remote-folder.js';

/**
 * Parts of a model that a command reads: its config; also the index of its tensors; or also their values and the files next to
 * them.
 */
export type HubNeed = 'config' | 'index' | 'values';

/** Origin of the commit of a reference. */
export type CommitOrigin = 'reference' | 'user-cache' | 'hub' | 'cache';

export interface MountedReference {
  /** As the user wrote it. */
  readonly reference: string;
  /** Repository of the hub: `OWNER/NAME`. */
  readonly repository: string;
  /** Requested branch, tag or commit. */
  readonly revision: string;
  /** Commit that was read. @pattern ^[0-9a-f]{40}$ */
  readonly commit: string;
  /** File of the repository that the reference names. */
  readonly file?: string;
  readonly origin: CommitOrigin;
  /** Bytes of headers and configs that came over the network; values of tensors are read later. @count */
  readonly bytesFetched: number;
}

export interface MountRequest {
  readonly reference: HubReference;
  /** As the user wrote it. */
  readonly text: string;
  readonly need: HubNeed;
  /** Whether the command can do with the sizes of a model, which are part of the program for many. */
  readonly takesSizes: boolean;
  readonly isOffline: boolean;
  readonly stateDict: string | undefined;
  readonly display: ProgressDisplay;
  readonly warn: (text: string) => void;
}

/** huggingface_hub/constants.py, DEFAULT_REVISION */
const DEFAULT_REVISION = 'main';

/** Largest sidecar or config that is fetched; the largest tokenizers have 35 MB. */
const MAX_SIDECAR = 100e6;

/**
 * Mounts the repository of a reference at `reference.root` and under its commit, and fetches what the command needs of it.
 * The network is used only for what neither the user's cache of huggingface_hub nor ours has.
 * @throws UserError when there is no such model, it is not public, or the hub cannot be reached.
 */
export async function mountReference(request: MountRequest): Promise<MountedReference> {
  const { reference, text, display } = request;
  const settings = hubSettings({ offline: request.isOffline }, process.env, homeFolder());
  const withoutNetwork = (repository: string) =>
    request.takesSizes ? builtInAdvice(repository) : undefined;
  const client = new HubClient(settings, withoutNetwork);
  const shown = display.steps();
  try {
    shown.doing(`reading ${text}`);
    const found = await locate(request, settings, client, withoutNetwork);
    const { commit, listing } = found;
    const names = namesFor(request, listing);
    const { repository, root, file } = reference;
    if (listing.leftOut > 0) {
      request.warn(`${repository} has ${listing.leftOut} files with unusable names: left out`);
    }
    const { cache, userCache } = found;
    const folder = new RemoteFolder({
      repository,
      commit,
      names,
      settings,
      client,
      cache,
      userCache,
    });
    mount(root, folder);
    mount(pinnedPath({ ...reference, file: undefined }, commit), folder);
    await fetchNeeded(request, folder, (done, total) =>
      shown.doing(`reading ${text}: ${done} of ${total} headers`),
    );
    return {
      reference: text,
      repository,
      revision: reference.revision ?? DEFAULT_REVISION,
      commit,
      origin: found.origin,
      bytesFetched: client.bytesFetched,
      ...(file !== undefined && { file }),
    };
  } finally {
    shown.end();
    client.close();
  }
}

interface Located {
  readonly commit: string;
  readonly origin: CommitOrigin;
  readonly listing: Listing;
  readonly cache: HeaderCache;
  readonly userCache: UserCache;
}

async function locate(
  { reference, need }: MountRequest,
  settings: HubSettings,
  client: HubClient,
  withoutNetwork: (repository: string) => string | undefined,
): Promise<Located> {
  const { repository, revision = DEFAULT_REVISION } = reference;
  const cache = new HeaderCache(settings.headerCache);
  const userCache = new UserCache(settings.userCache);
  const found = (commit: string, origin: CommitOrigin, listing: Listing): Located => ({
    ...{ commit, origin, listing, cache, userCache },
  });
  const isWhole = isCommit(revision);
  const known = isWhole ? revision : userCache.commitOf(repository, revision);
  const stored = known ?? (settings.isOffline ? cache.commitOf(repository, revision) : undefined);
  if (stored !== undefined) {
    const origin = isWhole ? 'reference' : known === undefined ? 'cache' : 'user-cache';
    const names = userCache.names(repository, stored);
    const local = { commit: stored, names, leftOut: 0 };
    if (isEnough(reference, need, names, (name) => userCache.pathOf(repository, stored, name))) {
      return found(stored, origin, local);
    }
    const kept = cache.listing(repository, stored);
    if (kept) return found(stored, origin, kept);
    if (!settings.isOffline) {
      const listing = await client.listing(repository, stored);
      cache.keepListing(repository, listing);
      return found(stored, origin, listing);
    }
    if (names.length > 0) return found(stored, origin, local);
  }
  if (settings.isOffline) throw notCached(repository, revision, withoutNetwork);
  const listing = await client.listing(repository, revision);
  cache.keepListing(repository, listing);
  cache.keepCommit(repository, revision, listing.commit);
  return found(listing.commit, 'hub', listing);
}

/** Whether the user's cache has all files that a command needs, so that no request to the hub is needed. */
function isEnough(
  { file }: HubReference,
  need: HubNeed,
  names: readonly string[],
  pathOf: (name: string) => string | undefined,
): boolean {
  if (file !== undefined) return names.includes(file) && !/-of-\d{5}\.gguf$/i.test(file);
  const hasConfig = names.some((name) => CONFIG_NAMES.includes(name));
  if (need === 'config') return hasConfig;
  const inRoot = names.filter((name) => !name.includes('/'));
  const index = inRoot.find(isIndexName);
  if (index === undefined) {
    return (
      hasConfig && inRoot.some((name) => /^(?:model\.safetensors|pytorch_model\.bin)$/.test(name))
    );
  }
  const local = pathOf(index);
  if (!hasConfig || local === undefined) return false;
  try {
    return [...readShardIndex(local).shards.keys()].every((shard) => names.includes(shard));
  } catch (error) {
    if (error instanceof UserError) return false;
    throw error;
  }
}

const notCached = (
  repository: string,
  revision: string,
  withoutNetwork: (repository: string) => string | undefined,
) =>
  new UserError(
    'system',
    `offline, and no cache of this machine has ${repository} at ${quote(revision, 100)}`,
    {
      suggestion: present([
        withoutNetwork(repository),
        `run once without ${setting('offline')} and HF_HUB_OFFLINE`,
        `download the model: ${downloadLine(repository)}`,
      ]).join(', or '),
    },
  );

/** transformers/modeling_utils.py, from_pretrained: safetensors come before PyTorch files of the same weights. */
const PREFERRED = [
  /^model\.safetensors(?:\.index\.json)?$/,
  /^pytorch_model\.bin(?:\.index\.json)?$/,
];

/** Visible files of a repository. @throws UserError when the file of the reference is not one of them. */
function namesFor(
  { reference: { repository, file }, need, text }: MountRequest,
  { names }: Listing,
): ReadonlySet<string> {
  if (file !== undefined && !names.includes(file)) {
    const near = nearest(file, names);
    const root = text.slice(0, text.length - file.length);
    throw usageError(
      `${repository} has no file ${quote(file, 200)} in this revision`,
      near
        ? `did you mean ${root}${near}?`
        : `its files of weights: ${names.filter(isWeightsName).slice(0, 5).join(', ') || 'none'}`,
    );
  }
  if (need === 'config') {
    if (file !== undefined && (hasWeightsExtension(file) || isOnnxName(file))) {
      throw usageError(
        `expected a config, found ${text}, a file of weights of the hub`,
        `leave the file out, or download it: hf download ${repository} ${file}`,
      );
    }
    return new Set(names.filter((name) => !isWeightsName(name) && !isIndexName(name)));
  }
  const [, second] = PREFERRED;
  const hasFirst = names.some((name) => PREFERRED[0]?.test(name));
  return new Set(names.filter((name) => name === file || !hasFirst || !second?.test(name)));
}

/** Whether a file has tensors, or names the files that have them. */
const isOfTensors = (name: string): boolean =>
  hasWeightsExtension(name) || isIndexName(name) || isOnnxName(name);

async function fetchNeeded(
  { reference, need, stateDict }: MountRequest,
  folder: RemoteFolder,
  watch: (done: number, total: number) => void,
): Promise<void> {
  const { file, path } = reference;
  const isConfig = file !== undefined && !isOfTensors(file);
  const folderName = file?.includes('/') ? file.slice(0, file.lastIndexOf('/') + 1) : '';
  const beside = [...folder.names].filter((name) => name.startsWith(folderName));
  const configs = CONFIG_NAMES.map((name) => `${folderName}${name}`).filter((name) =>
    folder.names.has(name),
  );
  const small = isConfig ? [file] : configs.slice(0, 1);
  for (const name of small.filter(isRepositoryPath)) await folder.read(name, MAX_SIDECAR);
  if (need === 'config' || isConfig || !(beside.some(isOfTensors) || isDistributedFolder(beside)))
    return;
  const options = { stateDict, keepPacked: true };
  const open = () =>
    isAdapterFolder(path) ? openAdapterFiles(path).checkpoint : openCheckpoint(path, options);
  let isOne = false;
  await folder.prefetch(() => {
    open().close();
    isOne = true;
  }, watch);
  const hasComponents = beside.some((name) => isComponentList(name.slice(folderName.length)));
  if (!isOne || hasComponents) await folder.prefetch(() => readRepository(path), watch);
  if (need !== 'values') return;
  for (const name of beside) {
    if (isSidecarName(name.slice(folderName.length))) await folder.read(name, MAX_SIDECAR);
  }
}
