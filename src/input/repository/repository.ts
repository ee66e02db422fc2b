/** A repository of any kind: its components and their headers. */
import path from 'node:path';
import { UserError } from '../../base/errors.js';
import { ADAPTER_CONFIG } from '../../base/files/config-names.js';
import { refuseLinkOutside } from '../../base/files/linked-files.js';
import { fileNamesIn, fileStatus, folderNamesIn, mountedPath } from '../../base/files/mounted.js';
import { jsonOrUndefined } from '../../base/text/json.js';
import { asText, isRecord, sumOf } from '../../base/values.js';
import { ByteFile } from '../../checkpoint/byte-file.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import {
  type CheckpointFormat,
  isDistributedFolder,
  isIndexName,
} from '../../checkpoint/formats.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import { withUnpackedWeights } from '../../checkpoint/packed-weights.js';
import { viewsOf } from '../../checkpoint/sharing.js';
import { encodedBytes, type StoredTensor, storedTypeOf } from '../../checkpoint/stored-tensor.js';
import {
  groupTensors,
  summarise,
  type TensorGroup,
  type Totals,
} from '../../checkpoint/summary.js';
import { type StoredParameters, storedParameters } from './stored-parameters.js';
import { chosenWeights, type WeightFiles } from './weight-files.js';

/** Weights that are one part of a repository: its model, or a part of a pipeline. */
export interface RepositoryComponent extends StoredParameters {
  /** Folder of the component in the repository, or its file; `.` for the repository itself. */
  readonly name: string;
  /** Class that the repository names for it: `UNet2DConditionModel`; null without one. */
  readonly class: string | null;
  /** Format of the files. */
  readonly format: CheckpointFormat;
  /** Number of files. @count */
  readonly files: number;
  /** Tensors, those with several names once. @count */
  readonly tensors: number;
  /** Totals per type, most bytes first. */
  readonly dtypes: Totals['dtypes'];
  /** Parts by the names of their tensors. */
  readonly groups: readonly TensorGroup[];
}

/** A tensor of a component. */
export interface LargeTensor {
  /** Component of the tensor. */
  readonly component: string;
  /** Name in the file. */
  readonly name: string;
  /** Element type, as safetensors names it. */
  readonly dtype: string;
  /** Sizes of the dimensions. @count */
  readonly shape: readonly number[];
  /** Bytes. @count */
  readonly bytes: number;
}

/** Further weights that are not counted. */
export interface OtherCopy {
  /** Path in the repository, of several files the first. */
  readonly file: string;
  /** Number of files. @count */
  readonly files: number;
  /** Bytes of the files; null where only a part of the repository is on this machine. @count */
  readonly bytes: number | null;
}

/** Relation of the weights of a repository. */
export type RepositoryLayout = 'one' | 'listed' | 'folders' | 'files';

/** A repository by the headers of its weights. */
export interface RepositoryWeights extends StoredParameters {
  /** Path as the user wrote it. */
  readonly file: string;
  /** Kind of the model in its config; null without one. */
  readonly modelType: string | null;
  /** Class of the model or of the pipeline; null without one. */
  readonly class: string | null;
  /** `one`: one model; `listed`: parts that a file names; `folders`, `files`: each is a model of its own, or a part of one. */
  readonly layout: RepositoryLayout;
  /** Parts of the repository, in their order. */
  readonly components: readonly RepositoryComponent[];
  /** Totals per type, most bytes first. */
  readonly dtypes: Totals['dtypes'];
  /** The largest tensors. */
  readonly largest: readonly LargeTensor[];
  /** Further weights that are not counted, such as copies in other types. */
  readonly copies: readonly OtherCopy[];
  /** Named components without their folder, and components without all their shards. */
  readonly missing: readonly string[];
}

/** Most bytes of a file that names components. */
const INDEX_BYTES = 2 ** 20;

/** Most components; the largest pipelines have about ten. */
const MOST_COMPONENTS = 256;

/** Largest tensors in an answer. */
const MOST_TENSORS = 10;

/** Folders with copies of the weights for other programs. */
const COPIES =
  /^(?:onnx|openvino|original|gguf|coreml|tflite|mlx|flax|tf|metal|litert|executorch)$/i;

/** Where the weights of a component are. */
interface Place {
  readonly name: string;
  readonly class: string | null;
  readonly folder: string;
  readonly weights: WeightFiles;
}

/**
 * Reads the headers of a repository: a folder, a pipeline of diffusers (`model_index.json`), modules of
 * sentence-transformers (`modules.json`), or a file of weights.
 * @throws UserError when it holds no weights, or one of its files is refused.
 */
export function readRepository(file: string): RepositoryWeights {
  const { places, copies, layout, missing } = placesIn(file);
  const config = configOf(file);
  const read = places.map((place) => readComponent(place, file));
  const components = read.map(({ component }) => component);
  const total = (figure: keyof StoredParameters) => sumOf(components, (each) => each[figure]);
  const [only, ...others] = components;
  return {
    file,
    modelType: textIn(config, 'model_type') ?? read[0]?.architecture ?? null,
    class: pipelineClass(file) ?? (others.length === 0 ? (only?.class ?? null) : classIn(config)),
    layout: components.length > 1 ? layout : 'one',
    parameters: total('parameters'),
    bufferValues: total('bufferValues'),
    bytes: total('bytes'),
    unknownTensors: total('unknownTensors'),
    components,
    dtypes: mergedDtypes(components),
    largest: read
      .flatMap(({ largest }) => largest)
      .sort((a, b) => b.bytes - a.bytes)
      .slice(0, MOST_TENSORS),
    copies,
    missing: [...places.flatMap(missingShards), ...missing],
  };
}

/** `encoder: 1 of 2 shards` */
function missingShards({ name, weights: { names } }: Place): string[] {
  const shards = names.flatMap((each) => /-\d{5}-of-(\d{5})\.\w+$/.exec(each)?.[1] ?? []);
  const all = Math.max(0, ...shards.map(Number));
  return shards.length < all ? [`${name}: ${shards.length} of ${all} shards`] : [];
}

// ── Components ───────────────────────────────────────────────────────────────────────────────────

interface Places {
  readonly places: readonly Place[];
  readonly copies: readonly OtherCopy[];
}

function placesIn(file: string): Places & Pick<RepositoryWeights, 'layout' | 'missing'> {
  const names = fileNamesIfFolder(file);
  if (names === undefined) {
    const folder = path.dirname(file);
    const weights = { stem: '', variant: '', ending: '', names: [path.basename(file)] };
    return {
      places: [{ name: '.', class: classIn(configOf(folder)), folder, weights }],
      copies: [],
      layout: 'one',
      missing: [],
    };
  }
  const folders = folderNamesIn(file)
    .filter((name) => !name.startsWith('.'))
    .sort();
  const named = componentsNamed(file, names);
  const own = namedPlaces(file, '.', classIn(configOf(file)));
  if (named === undefined && own.places.length > 0) {
    const beside = folders.flatMap((folder) => namedPlaces(file, folder, null).places);
    return {
      places: own.places,
      copies: [...own.copies, ...beside.map((each) => copyOf(file, each))],
      layout: 'files',
      missing: [],
    };
  }
  const listed =
    named ??
    folders
      .filter((name) => !COPIES.test(name))
      .map((name) => ({ folder: name, class: null, isThere: true }));
  refuseTooMany(file, listed.length);
  const found = listed
    .filter(({ isThere }) => isThere)
    .map((each) => namedPlaces(file, each.folder, each.class));
  const inRoot = named?.some(({ folder }) => folder === '.') ? [] : own.places;
  const places = found.flatMap((each) => each.places);
  if (places.length === 0) throw new NoWeights(file);
  return {
    places,
    copies: [...found.flatMap((each) => each.copies), ...inRoot.map((each) => copyOf(file, each))],
    layout: named === undefined ? 'folders' : 'listed',
    missing: named?.flatMap(({ folder, isThere }) => (isThere ? [] : [folder])).sort() ?? [],
  };
}

function refuseTooMany(file: string, components: number): void {
  if (components <= MOST_COMPONENTS) return;
  throw new UserError(
    'refused-file',
    `${file} holds ${components} models, more than the ${MOST_COMPONENTS} of one answer`,
    { suggestion: 'name one of its folders or files' },
  );
}

/** A folder without weights, also in the folders in it. */
export class NoWeights extends UserError {
  constructor(file: string) {
    super('refused-file', `${file} holds no weights, and neither does a folder in it`, {
      suggestion: 'name the folder or the file that holds the weights',
    });
  }
}

/** A component that a file of the repository names. */
interface NamedComponent {
  readonly folder: string;
  readonly class: string | null;
  /** Whether the repository itself holds the folder; a link to one is outside of it. */
  readonly isThere: boolean;
}

/** Components in `model_index.json` or `modules.json`; undefined without these files. */
function componentsNamed(
  file: string,
  names: readonly string[],
): readonly NamedComponent[] | undefined {
  const placed = (folder: string, of: string | null): NamedComponent => ({
    folder,
    class: of,
    isThere: holdsFolder(file, folder),
  });
  const pipeline = jsonIn(file, names, PIPELINE);
  if (pipeline !== undefined) {
    if (!isRecord(pipeline)) throw refusedList(path.join(file, PIPELINE), 'is not an object');
    return Object.entries(pipeline).flatMap(([folder, value]) =>
      folder !== '.' && Array.isArray(value) && typeof value[1] === 'string'
        ? [placed(folder, value[1])]
        : [],
    );
  }
  const modules = jsonIn(file, names, MODULES);
  if (modules === undefined) return undefined;
  if (!Array.isArray(modules)) throw refusedList(path.join(file, MODULES), 'is not a list');
  const found = new Map<string, NamedComponent>();
  for (const { path: folder, type } of modules.filter(isRecord)) {
    const name = folder === '' ? '.' : asText(folder);
    const of = typeof type === 'string' ? (type.split('.').at(-1) ?? null) : null;
    if (!found.has(name)) found.set(name, placed(name, of));
  }
  return [...found.values()];
}

/** Whether a folder holds a path of folders, such as `2_Dense/inner`, none of which is a link. */
function holdsFolder(root: string, inner: string): boolean {
  let folder = root;
  for (const name of inner === '.' ? [] : inner.split('/')) {
    if (!folderNamesIn(folder).includes(name)) return false;
    folder = path.join(folder, name);
  }
  return true;
}

/** diffusers/pipelines/pipeline_utils.py: config_name. */
const PIPELINE = 'model_index.json';

/** sentence_transformers/SentenceTransformer.py */
const MODULES = 'modules.json';

/** Whether a file names the components of a repository. */
export const isComponentList = (name: string): boolean => name === PIPELINE || name === MODULES;

/** Weights of the repository itself (`.`) or of a folder in it. */
function namedPlaces(file: string, name: string, named: string | null): Places {
  const folder = name === '.' ? file : path.join(file, name);
  const names = fileNamesIfFolder(folder) ?? [];
  const found = named ?? classIn(configOf(folder));
  if (isDistributedFolder(names)) {
    const weights = { stem: '', variant: '', ending: '', names: [] };
    return { places: [{ name, class: found, folder, weights }], copies: [] };
  }
  const { chosen, copies } = chosenWeights(names);
  refuseTooMany(file, chosen.length);
  const places = chosen.map((weights) => {
    const [first = ''] = weights.names;
    const own = chosen.length === 1 ? name : path.posix.join(name, first);
    return { name: own, class: found, folder, weights };
  });
  const others = copies.map((weights) => copyOf(file, { name, class: null, folder, weights }));
  return { places, copies: others };
}

function copyOf(root: string, { folder, weights }: Place): OtherCopy {
  const files = weights.names.filter((name) => !/\.json$/.test(name));
  const [first = ''] = files.length > 0 ? files : weights.names;
  const inside = folder === root ? '' : `${path.basename(folder)}/`;
  const sizes = files.map((name) => sizeOf(path.join(folder, name)));
  const isKnown = sizes.every((size) => size !== undefined);
  return {
    file: `${inside}${first}`,
    files: files.length,
    bytes: isKnown ? sumOf(sizes, (size) => size ?? 0) : null,
  };
}

/** Size of a file on this machine; a request to the hub only for its size would be too much. */
const sizeOf = (file: string): number | undefined =>
  mountedPath(file) ? undefined : fileStatus(file)?.size;

// ── Headers ──────────────────────────────────────────────────────────────────────────────────────

function readComponent(place: Place, root: string) {
  const opened = checkpointsOf(place);
  try {
    const [first] = opened;
    if (first === undefined) throw new NoWeights(root);
    const tensors = new Map(opened.flatMap((each) => [...each.tensors]));
    const whole = { ...first, tensors };
    const { totals } = summarise(whole);
    const views = viewsOf(tensors);
    const component: RepositoryComponent = {
      name: place.name,
      class: place.class,
      format: first.format,
      files: sumOf(opened, ({ files }) => files.length),
      tensors: totals.distinctTensors,
      ...storedParameters(withUnpackedWeights(whole), configOf(place.folder)),
      bytes: sumOf(views, ({ tensor }) => encodedBytes(tensor)),
      dtypes: totals.dtypes,
      groups: groupTensors(tensors),
    };
    const largest = views
      .toSorted((a, b) => encodedBytes(b.tensor) - encodedBytes(a.tensor))
      .slice(0, MOST_TENSORS)
      .map(
        ({ tensor, names: [name = ''] }): LargeTensor => ({
          component: place.name,
          name,
          dtype: storedTypeOf(tensor),
          shape: tensor.shape,
          bytes: encodedBytes(tensor),
        }),
      );
    const architecture = first.keyValues?.get('general.architecture')?.value;
    return {
      component,
      largest,
      ...(typeof architecture === 'string' && { architecture }),
    };
  } finally {
    for (const each of opened) each.close();
  }
}

/**
 * All components of a pipeline as one checkpoint, whose names begin with the component: `unet/conv_in.weight`.
 * @throws UserError when no file of the repository names its components, or one of their files is refused.
 */
export function openPipeline(folder: string): Checkpoint {
  const { places, layout } = placesIn(folder);
  if (layout !== 'listed') throw new NoWeights(folder);
  const opened: Checkpoint[] = [];
  const close = () => {
    for (const each of opened) each.close();
  };
  try {
    const tensors = new Map<string, StoredTensor>();
    for (const place of places) {
      for (const each of checkpointsOf(place)) {
        opened.push(each);
        for (const [name, tensor] of each.tensors) tensors.set(`${place.name}/${name}`, tensor);
      }
    }
    const [first] = opened;
    if (first === undefined) throw new NoWeights(folder);
    return {
      ...first,
      path: folder,
      files: opened.flatMap(({ files }) => files),
      tensors,
      aliases: new Map(),
      metadata: new Map(),
      content: new Map(),
      warnings: [...new Set(opened.flatMap(({ warnings }) => warnings))],
      close,
    };
  } catch (error) {
    close();
    throw error;
  }
}

/** The files of a component, opened: together by their index, or one by one. */
function checkpointsOf({ folder, weights: { names, ending } }: Place): Checkpoint[] {
  const open = (name: string) => openCheckpoint(path.join(folder, name), { keepPacked: true });
  if (names.length === 0) return [openCheckpoint(folder, { keepPacked: true })];
  const index = names.find(isIndexName);
  if (index !== undefined) return [open(index)];
  if (ending === 'gguf' && names.length > 1) {
    return [openCheckpoint(folder, { listing: names, keepPacked: true })];
  }
  const opened: Checkpoint[] = [];
  try {
    for (const name of names) if (!name.endsWith('.json')) opened.push(open(name));
    return opened;
  } catch (error) {
    for (const each of opened) each.close();
    throw error;
  }
}

function mergedDtypes(components: readonly RepositoryComponent[]): Totals['dtypes'] {
  const merged = new Map<string, Totals['dtypes'][number]>();
  for (const each of components.flatMap(({ dtypes }) => dtypes)) {
    const before = merged.get(each.dtype) ?? {
      dtype: each.dtype,
      tensors: 0,
      elements: 0,
      bytes: 0,
    };
    merged.set(each.dtype, {
      dtype: each.dtype,
      tensors: before.tensors + each.tensors,
      elements: before.elements + each.elements,
      bytes: before.bytes + each.bytes,
    });
  }
  return [...merged.values()].sort((a, b) => b.bytes - a.bytes);
}

// ── Configs ──────────────────────────────────────────────────────────────────────────────────────

/** Names of the files in a folder; undefined where the path is not a folder. */
function fileNamesIfFolder(folder: string): readonly string[] | undefined {
  try {
    return fileNamesIn(folder).sort();
  } catch {
    return undefined;
  }
}

/**
 * The JSON of a file in a folder; undefined without one.
 * @throws UserError for a link out of the folder, and for a file that is not regular, too large, or not JSON.
 */
function jsonIn(folder: string, names: readonly string[], name: string): unknown {
  if (!names.includes(name)) return undefined;
  const file = path.join(folder, name);
  if (!mountedPath(file)) refuseLinkOutside(file);
  const opened = ByteFile.open(file);
  try {
    const isSmall = opened.size <= INDEX_BYTES;
    const value = isSmall && jsonOrUndefined(opened.read(0, opened.size).toString('utf8'));
    if (value !== false && value !== undefined) return value;
    throw refusedList(file, isSmall ? 'is not valid JSON' : 'has more than 1 MiB');
  } finally {
    opened.close();
  }
}

const refusedList = (file: string, what: string) =>
  new UserError('refused-file', `${file} ${what}`, { suggestion: 'download the file again' });

/** The config of a folder, or of the folder of a file. */
function configOf(file: string): unknown {
  const names = fileNamesIfFolder(file);
  if (names === undefined)
    return configOfFolder(path.dirname(file), fileNamesIfFolder(path.dirname(file)) ?? []);
  return configOfFolder(file, names);
}

const configOfFolder = (folder: string, names: readonly string[]): unknown =>
  jsonIn(folder, names, 'config.json') ?? jsonIn(folder, names, ADAPTER_CONFIG);

const pipelineClass = (file: string): string | null =>
  textIn(jsonIn(file, fileNamesIfFolder(file) ?? [], PIPELINE), '_class_name');

/** Class of a model in its config: that of transformers, of diffusers, or the kind of adapter of PEFT. */
function classIn(config: unknown): string | null {
  const { architectures } = isRecord(config) ? config : {};
  const [first] = Array.isArray(architectures) ? architectures : [];
  if (typeof first === 'string') return first;
  return textIn(config, '_class_name') ?? textIn(config, 'peft_type') ?? null;
}

function textIn(config: unknown, key: string): string | null {
  const value = isRecord(config) && Object.hasOwn(config, key) ? config[key] : undefined;
  return typeof value === 'string' ? value : null;
}
