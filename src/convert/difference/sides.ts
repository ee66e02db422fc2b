/** The two sides of a difference: a config with its description, or a checkpoint, each with its tensors by name. */

import { type Problem, problemsOf, UserError } from '../../base/errors.js';
import type { Shape } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { sumOf } from '../../base/values.js';
import type { Checkpoint, CheckpointPath } from '../../checkpoint/checkpoint.js';
import { storedNames } from '../../checkpoint/names.js';
import { NoStateDicts, openCheckpoint } from '../../checkpoint/open.js';
import { parameterNames } from '../../checkpoint/reconcile/faults.js';
import type { IgnoredTensors } from '../../checkpoint/reconcile/ignored-tensors.js';
import { ignoredInIndex } from '../../checkpoint/reconcile/reconcile.js';
import { viewsOf } from '../../checkpoint/sharing.js';
import { encodedBytes, type StoredTensor, storedTypeOf } from '../../checkpoint/stored-tensor.js';
import type { ConfigDocument } from '../../config/document.js';
import {
  adjustedToCheckpoint,
  checkpointWarnings,
  descriptionOf,
  findConfig,
} from '../../input/model-input/checkpoint/checkpoint-config.js';
import { modelViewOf } from '../../input/model-input/gguf/gguf-checkpoint.js';
import { locateModel, type ModelPlace } from '../../input/model-input/locate.js';
import { type ModelFile, modelOf } from '../../input/model-input/model-file.js';
import { readConfig } from '../../input/model-input/read-model-file.js';
import { isFolderRefused, UndescribedModel } from '../../input/model-input/undescribed-model.js';
import { NoWeights, openPipeline } from '../../input/repository/repository.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { tensorsOf } from '../../model/architecture/walk.js';

/** A tensor of a side under one of its names. */
export interface SideTensor {
  /** Name in the file, or in the description. */
  readonly own: string;
  readonly shape: Shape;
  readonly elements: number;
  /** `BF16`, `Q4_K`; null for a config, which stores nothing. */
  readonly type: string | null;
  /** Bytes in the file; null for a config. */
  readonly bytes: number | null;
  /** Number of the tensor: names with the same number are one tensor. */
  readonly identity: number;
  readonly stored?: StoredTensor;
}

export interface Side {
  readonly path: string;
  readonly kind: 'config' | 'checkpoint';
  /** The config as written; undefined for a checkpoint without one. */
  readonly document: ConfigDocument | undefined;
  /** The config with its defaults and its model; undefined where there is no valid one. */
  readonly described: ModelFile | undefined;
  readonly checkpoint: Checkpoint | undefined;
  /** By name without the prefixes of wrappers. */
  readonly tensors: ReadonlyMap<string, SideTensor>;
  readonly warnings: readonly Problem[];
  close(): void;
}

export interface SideOptions {
  readonly family?: string | undefined;
  readonly stateDict?: string | undefined;
}

/**
 * Opens a config, a preset, a folder or a checkpoint.
 * @throws UserError when it cannot be read, or is a config that is not valid.
 */
export async function openSide(path: string, options: SideOptions): Promise<Side> {
  const place = locateModel(path);
  return place.kind === 'checkpoint' ? checkpointSide(place, options) : configSide(place, options);
}

async function configSide(place: ModelPlace, { family, stateDict }: SideOptions): Promise<Side> {
  if (stateDict !== undefined) {
    throw new NoStateDicts(
      `${place.path} is a config: ${setting('stateDict')} requires a checkpoint`,
    );
  }
  const document = await readConfig(place);
  const described = await modelOf(document, { family });
  return {
    path: described.file,
    kind: 'config',
    document,
    described,
    checkpoint: undefined,
    tensors: describedTensors(described.model),
    warnings: described.warnings,
    close() {},
  };
}

/** Parameters of a description; buffers are computed from the config. */
function describedTensors(model: LanguageModel): Map<string, SideTensor> {
  const tensors = new Map<string, SideTensor>();
  for (const [identity, tensor] of tensorsOf(model).entries()) {
    if (tensor.role === 'buffer') continue;
    const { shape, elements } = tensor;
    for (const own of parameterNames(tensor)) {
      tensors.set(own, { own, shape, elements, type: null, bytes: null, identity });
    }
  }
  return tensors;
}

async function checkpointSide(
  { path, listing }: CheckpointPath,
  { family, stateDict }: SideOptions,
): Promise<Side> {
  // A GGUF file whose metadata do not describe a model is compared under its own names.
  const checkpoint = modelViewOf(openWeights(path, { stateDict, listing }));
  try {
    const config = await configOfSide(checkpoint, family);
    return {
      path,
      kind: 'checkpoint',
      ...config,
      checkpoint,
      tensors: storedTensors(checkpoint),
      warnings: [...checkpointWarnings(checkpoint), ...config.warnings],
      close: () => checkpoint.close(),
    };
  } catch (error) {
    checkpoint.close();
    throw error;
  }
}

/** A checkpoint, or all components of a pipeline. */
function openWeights(
  path: string,
  options: { readonly stateDict: string | undefined; readonly listing: CheckpointPath['listing'] },
): Checkpoint {
  try {
    return openCheckpoint(path, options);
  } catch (error) {
    if (!isFolderRefused(error) || options.stateDict !== undefined) throw error;
    try {
      return openPipeline(path);
    } catch (own) {
      throw own instanceof NoWeights ? error : own;
    }
  }
}

/**
 * The config in or next to a checkpoint. An unreadable one is only a warning, because the tensors can still be
 * compared.
 */
async function configOfSide(
  checkpoint: Checkpoint,
  family: string | undefined,
): Promise<Pick<Side, 'document' | 'described' | 'warnings'>> {
  let document: ConfigDocument | undefined;
  try {
    document = (await findConfig(checkpoint, undefined))?.document;
    if (document === undefined) return { document, described: undefined, warnings: [] };
    const described = adjustedToCheckpoint(await modelOf(document, { family }), checkpoint);
    return { document, described, warnings: [] };
  } catch (error) {
    if (!(error instanceof UserError) || family !== undefined) throw error;
    if (error instanceof UndescribedModel) return { document, described: undefined, warnings: [] };
    const [problem] = problemsOf(error, checkpoint.path);
    const warnings: Problem[] = problem ? [{ ...problem, severity: 'warning' }] : [];
    return { document, described: undefined, warnings };
  }
}

function storedTensors(checkpoint: Checkpoint): Map<string, SideTensor> {
  const names = storedNames(checkpoint);
  const stored = new Map([...names].map(([name, { tensor }]) => [name, tensor]));
  const tensors = new Map<string, SideTensor>();
  for (const [identity, { names: same, tensor }] of viewsOf(stored).entries()) {
    for (const name of same) {
      tensors.set(name, {
        own: names.get(name)?.own ?? name,
        shape: tensor.shape,
        elements: tensor.elements,
        type: storedTypeOf(tensor),
        bytes: encodedBytes(tensor),
        identity,
        stored: tensor,
      });
    }
  }
  // Tensors in the order of the file.
  return new Map([...stored.keys()].flatMap((name) => entryOf(tensors, name)));
}

function entryOf<Value>(map: ReadonlyMap<string, Value>, name: string): [string, Value][] {
  const value = map.get(name);
  return value === undefined ? [] : [[name, value]];
}

/** Figures of a side, tensors with several names once. */
export interface SideSummary {
  /** Path as the user wrote it; of a preset its file; `<stdin>` for `-`. */
  readonly path: string;
  /** Kind of the side. */
  readonly kind: Side['kind'];
  /** File of the config; null without one. */
  readonly config: string | null;
  /** Family of the model; null if it is not known. */
  readonly family: string | null;
  /** Format of a checkpoint; null for a config. */
  readonly format: Checkpoint['format'] | null;
  /** Blocks of the described model; null without a valid config. @count */
  readonly layers: number | null;
  /** Tensors, with several names once; of a config, parameters only. @count */
  readonly tensors: number;
  /** Parameters of the description; null for a checkpoint without a config. @count */
  readonly parameters: number | null;
  /** Values of all tensors, buffers of a checkpoint included. @count */
  readonly values: number;
  /** Null for a config. @count */
  readonly bytes: number | null;
  /** Types of a checkpoint, most bytes first. */
  readonly types: readonly string[];
  /** Tensors of a checkpoint that transformers ignores, where there are some. */
  readonly ignored?: IgnoredTensors;
}

export function summaryOf({
  path,
  kind,
  document,
  described,
  checkpoint,
  tensors,
}: Side): SideSummary {
  const distinct = [
    ...new Map([...tensors.values()].map((each) => [each.identity, each])).values(),
  ];
  const types = new Map<string, number>();
  for (const { type, bytes } of distinct) {
    if (type !== null) types.set(type, (types.get(type) ?? 0) + (bytes ?? 0));
  }
  const ignored = described && checkpoint && ignoredInIndex(descriptionOf(described), checkpoint);
  return {
    path,
    kind,
    config: document?.file ?? null,
    family: described?.family.name ?? null,
    format: checkpoint?.format ?? null,
    layers: described?.model.blocks.length ?? null,
    tensors: distinct.length,
    parameters: described ? modelParameters(described.model) : null,
    values: sumOf(distinct, ({ elements }) => elements),
    bytes: kind === 'config' ? null : sumOf(distinct, ({ bytes }) => bytes ?? 0),
    // Types of equal size are sorted by name, so that the order of the files does not matter.
    types: [...types]
      .sort(([a, bytesA], [b, bytesB]) => bytesB - bytesA || (a < b ? -1 : 1))
      .map(([type]) => type),
    ...(ignored && { ignored }),
  };
}

const modelParameters = (model: LanguageModel): number =>
  sumOf(
    tensorsOf(model).filter(({ role }) => role === 'parameter'),
    ({ elements }) => elements,
  );
