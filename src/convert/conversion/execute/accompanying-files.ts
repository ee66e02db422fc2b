/** Metadata, config and copied files (tokenizer, chat template, generation config) that accompany the tensors of an output. */

import fs from 'node:fs';
import path from 'node:path';
import { UserError, usageError } from '../../../base/errors.js';
import type { ConfigFormat } from '../../../base/files/config-names.js';
import {
  CONFIG_FILES,
  CONFIG_NAMES,
  isSidecarName,
  ownConfigName,
  ownConfigNames,
} from '../../../base/files/config-names.js';
import { isSameFile, namesIn } from '../../../base/files/file-system.js';
import { fileNamesIn, fileStatus, mountedPath, pathKind } from '../../../base/files/mounted.js';
import { readFileAtMost } from '../../../base/files/read-file.js';
import { resolveOutputTarget } from '../../../base/files/write-whole.js';
import { parseJson } from '../../../base/text/json.js';
import { setting } from '../../../base/text/setting.js';
import { isRecord } from '../../../base/values.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { quotedNames } from '../../../checkpoint/checkpoint-rules.js';
import { isIndexName, isTrainingFormat, isWeightsName } from '../../../checkpoint/formats.js';
import type { Dict, PickleValue } from '../../../checkpoint/torch/pickle/values.js';
import { isKind } from '../../../checkpoint/torch/pickle/values.js';
import type { Writable, WritableDict } from '../../../checkpoint/torch/pickle/writable.js';
import { splitDotted } from '../../../config/quote.js';
import { jsonNodes } from '../../../config/syntax/json-edits.js';
import type { Setting } from '../../../model/architecture/family.js';
import type { CheckpointTarget } from '../job.js';
import type { ConversionInput, ConversionPlan } from '../plan/conversion-plan.js';
import type { AccompanyingData, OutputFile, Shard } from './output-files.js';
import { DEFAULT_SHARD_BYTES, shardsOf, TENSOR_FILES } from './output-files.js';

export interface Sidecar {
  readonly name: string;
  readonly path: string;
  readonly bytes: number;
  /** Time of the last change, in milliseconds since 1970. */
  readonly changedAt: number;
}

/** Maximum bytes of a copied file. The largest tokenizers have 35 MB. */
const MOST_BYTES = 100e6;

/** The sidecars in the folder of a checkpoint, by name. Links are followed, as in the cache of the hub. */
export function sidecarsOf(checkpoint: Pick<Checkpoint, 'path' | 'files'>): Sidecar[] {
  const folder = folderOf(checkpoint);
  return sortedNamesIn(folder)
    .filter(isSidecarName)
    .flatMap((name): Sidecar[] => {
      const file = path.join(folder, name);
      const status = fileStatus(file);
      return status ? [{ name, path: file, bytes: status.size, changedAt: status.changedAt }] : [];
    });
}

/** Copies for the output. @throws UserError when writing one that is too large or has changed. */
const copiesOf = (sidecars: readonly Sidecar[]): OutputFile[] =>
  sidecars.map(({ name, path: file, bytes }) => ({
    name,
    bytes,
    tensors: [],
    fill: async (sink) => {
      const content = await readFileAtMost(file, { most: MOST_BYTES, isFound: true });
      if (content?.length !== bytes) {
        const why =
          content === undefined ? 'is larger than 100 MB' : 'was changed while it was read';
        throw new UserError('refused-file', `${file} ${why}`, {
          suggestion: 'move it out of the folder, and copy it to the output by hand',
        });
      }
      await sink.write(content);
    },
  }));

/** Notes on files next to the input that are not copied. */
export function sidecarNotes(
  checkpoint: Pick<Checkpoint, 'path' | 'files'>,
  kind: 'file' | 'folder',
): string[] {
  const sidecars = sidecarsOf(checkpoint).map(({ name }) => name);
  if (kind === 'file') {
    return sidecars.length > 0
      ? [`Not copied, because OUT is a file: ${quotedNames(sidecars)}`]
      : [];
  }
  if (!isFolderInput(checkpoint)) return [];
  const others = sortedNamesIn(folderOf(checkpoint)).filter(
    (name) =>
      !name.startsWith('.') &&
      !isWeightsName(name) &&
      !isIndexName(name) &&
      !CONFIG_NAMES.includes(name) &&
      !sidecars.includes(name),
  );
  return others.length > 0 ? [`Not copied: ${quotedNames(others)}`] : [];
}

/** @throws UserError when replacing a folder would delete sidecars that the new one lacks. */
export function refuseLostSidecars(out: string, written: readonly Sidecar[]): void {
  const kept = new Set(written.map(({ name }) => name));
  const lost = sortedNamesIn(out).filter((name) => isSidecarName(name) && !kept.has(name));
  if (lost.length === 0) return;
  throw usageError(
    `${out} is not replaced: it has ${lost.join(', ')}, which the new folder would lack`,
    'move them away, copy them to the input’s folder, or choose another name',
  );
}

const isFolderInput = ({ path: input }: Pick<Checkpoint, 'path'>): boolean =>
  pathKind(input) === 'folder';

const folderOf = ({ path: input, files }: Pick<Checkpoint, 'path' | 'files'>): string =>
  isFolderInput({ path: input }) ? input : path.dirname(files[0]?.path ?? input);

/** Names in a folder, sorted; empty when it cannot be read. */
const sortedNamesIn = (folder: string): string[] =>
  (mountedPath(folder) ? fileNamesIn(folder) : namesIn(folder)).sort();

/**
 * The config of a checkpoint with some values changed. The others keep their types, including integer or float.
 * Undefined without a dict.
 */
function configWith({ content }: Checkpoint, settings: readonly Setting[]): Writable | undefined {
  const config = content.get('config');
  if (config === undefined || !isKind(config, 'dict')) return undefined;
  return settings.reduce<PickleValue>(
    (whole, { path, value }) => withValue(whole, splitDotted(path), value),
    config,
  );
}

function withValue(
  at: PickleValue,
  [key, ...rest]: readonly string[],
  value: unknown,
): PickleValue {
  // Unchanged values keep their types.
  if (key === undefined) return writableOf(value) as PickleValue;
  const dict: Dict = isKind(at, 'dict') ? at : { kind: 'dict', type: 'dict', entries: new Map() };
  const inner = withValue(dict.entries.get(key) ?? null, rest, value);
  return { ...dict, entries: new Map(dict.entries).set(key, inner) };
}

/** Data converted to the types that Python reads from the same YAML. */
function writableOf(data: unknown): Writable {
  if (data === null || data === undefined) return null;
  if (typeof data === 'number') {
    return Number.isSafeInteger(data) && !Object.is(data, -0)
      ? data
      : { kind: 'float', value: data };
  }
  if (typeof data === 'string' || typeof data === 'boolean' || typeof data === 'bigint')
    return data;
  if (Array.isArray(data)) return { kind: 'list', items: data.map(writableOf) };
  const entries = isRecord(data) ? Object.entries(data) : [];
  const dict: WritableDict = {
    kind: 'dict',
    type: 'dict',
    entries: new Map(entries.map(([key, value]) => [key, writableOf(value)] as const)),
  };
  return dict;
}

/** A JSON text as data with the types that Python reads, where `0.0` is a float. */
function writableOfJson(text: string, node = jsonNodes(text)): Writable {
  const { parts } = node;
  if (parts.kind === 'list') {
    return { kind: 'list', items: parts.items.map((item) => writableOfJson(text, item)) };
  }
  if (parts.kind === 'object') {
    const entries = [...parts.members].map(
      ([key, member]) => [key, writableOfJson(text, member.node)] as const,
    );
    return { kind: 'dict', type: 'dict', entries: new Map(entries) };
  }
  const value = parseJson(text.slice(node.from, node.to));
  const isFloat = typeof value === 'number' && !/^-?\d+$/.test(text.slice(node.from, node.to));
  return isFloat ? { kind: 'float', value } : writableOf(value);
}

/** Training steps from the file. */
function stepOf({ content, metadata }: Checkpoint): number | bigint | null {
  const step = content.get('step') ?? metadata.get('step');
  if (typeof step === 'number' || typeof step === 'bigint') return step;
  return typeof step === 'string' && /^\d{1,15}$/.test(step) ? Number(step) : null;
}

const configFormatOf = ({ config }: ConversionPlan): ConfigFormat =>
  config?.written.format ?? 'yaml';

/**
 * The files of an output.
 * @throws UserError when the container does not support the request, or the config would replace another.
 */
export function outputFilesOf(input: ConversionInput, plan: ConversionPlan): readonly OutputFile[] {
  const { job, place } = input;
  const configName = configNameFor(input, plan);
  const { checkpoint, target, set = [], shardSize: shardBytes } = job;
  const isNew = target !== undefined || set.length > 0;
  const accompanying = { ...accompanyingData(checkpoint, plan, isNew), configName };
  if (isTrainingFormat(place.container) && shardBytes !== undefined) {
    throw usageError(
      'a PyTorch file has no shards',
      `leave ${setting('shardSize')} out, or write safetensors into a folder`,
    );
  }
  if (place.kind === 'file' && shardBytes !== undefined) {
    throw usageError(
      `${place.path} is one file, and ${setting('shardSize')} requires a folder`,
      'name a folder for the shards: a name without an ending',
    );
  }
  const name = path.basename(fileOf(place));
  const shards = shardsIn(place, plan, shardBytes, name);
  const copies = place.kind === 'folder' ? copiesOf(sidecarsOf(checkpoint)) : [];
  const tensorFiles = TENSOR_FILES[place.container];
  return [...tensorFiles({ name, plan, shards, accompanying }), ...copies];
}

/** @param name Name of the single file, when the output is not a folder. */
function shardsIn(
  { kind }: CheckpointTarget,
  { tensors }: ConversionPlan,
  shardBytes: number | bigint | undefined,
  name: string,
): Shard[] {
  const most = kind === 'file' ? Number.POSITIVE_INFINITY : DEFAULT_SHARD_BYTES;
  const shards = shardsOf(tensors, Number(shardBytes ?? most));
  const [only, ...others] = shards;
  if (kind === 'folder' || only === undefined || others.length > 0) return shards;
  return [{ ...only, file: name }];
}

/** Path of an output, resolved if it is a link. */
const fileOf = ({ path: target, kind }: CheckpointTarget): string =>
  resolveOutputTarget(target, kind).file;

/**
 * Name of the config of an output: in a folder `config.yaml` or, for Hugging Face, `config.json`; next to a file, a
 * name after that file such as `shared.config.yaml`. A config that is an input is never replaced, even with force.
 * @throws UserError when it would replace such a config, or another would be read in its place.
 */
function configNameFor(
  { source, place, job: { target, config } }: ConversionInput,
  plan: ConversionPlan,
): string {
  const format = configFormatOf(plan);
  const isInside = isTrainingFormat(place.container) || place.container === 'gguf';
  if (place.kind === 'folder' || isInside) return CONFIG_FILES[format];
  const output = fileOf(place);
  const folder = path.dirname(output);
  const name = ownConfigName(output, format);
  const file = path.join(folder, name);
  const read = [target, config, source?.origin === 'inside' ? undefined : source?.file];
  if (read.some((each) => each !== undefined && isSameFile(each, file))) {
    throw usageError(
      `${file} is an input and would be replaced`,
      'choose another name for the output: its config is written next to it',
    );
  }
  const first = ownConfigNames(output).find(
    (each) => each === name || fs.existsSync(path.join(folder, each)),
  );
  if (first === undefined || first === name) return name;
  throw usageError(
    `${path.join(folder, first)} would be read instead of ${name}`,
    'move it away, or choose another name for the output',
  );
}

/** @param isNew Whether the config differs from the input's by more than the conversion's values. */
function accompanyingData(
  checkpoint: Checkpoint,
  { config, keepsConfig }: ConversionPlan,
  isNew: boolean,
): Omit<AccompanyingData, 'configName'> {
  const metadata = new Map(
    [...checkpoint.metadata].filter(([key]) => !checkpoint.aliases.has(key) && key !== 'step'),
  );
  // A config from the checkpoint distinguishes integers and floats.
  const kept =
    config?.written.format === 'json'
      ? writableOfJson(config.written.text)
      : isNew || !config?.isInside
        ? undefined
        : configWith(checkpoint, config.settings);
  return {
    step: stepOf(checkpoint),
    metadata,
    config: config
      ? { text: config.written.text, value: kept ?? writableOf(config.written.value) }
      : keepsConfig
        ? unreadConfig(checkpoint)
        : null,
  };
}

/** The config of a PyTorch file that cannot be read, copied while it is still valid. */
function unreadConfig({ content }: Checkpoint): AccompanyingData['config'] {
  const value = content.get('config');
  return value === undefined ? null : { text: null, value };
}
