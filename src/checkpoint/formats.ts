/**
 * Formats of checkpoint files: the only list of their names, extensions and magic numbers. Imports nothing, so
 * that listing a folder stays fast.
 */

/**
 * File formats that can be written, and their extensions. A file of a training program is one whole file: it holds the
 * config and each name of the state dict.
 */
const CONTAINERS = {
  safetensors: { extensions: ['.safetensors'], isOfTraining: false },
  pt: { extensions: ['.pt', '.pth', '.bin', '.ckpt'], isOfTraining: true },
  gguf: { extensions: ['.gguf'], isOfTraining: false },
} as const satisfies Record<
  string,
  { readonly extensions: readonly string[]; readonly isOfTraining: boolean }
>;

export type Container = keyof typeof CONTAINERS;

export const isTrainingFormat = (container: Container): boolean =>
  CONTAINERS[container].isOfTraining;

export const CONTAINER_NAMES = Object.keys(CONTAINERS) as readonly Container[];

/** Endings of the names of a container's files, the usual one first. */
export const endingsOf = (container: Container): readonly string[] =>
  CONTAINERS[container].extensions;

/** Container of a file by the ending of its name, in lower case. */
export const containerOf = (ending: string): Container | undefined =>
  CONTAINER_NAMES.find((name) =>
    (CONTAINERS[name].extensions as readonly string[]).includes(ending),
  );

/** File formats that are recognised by their first bytes. */
export const FILE_FORMATS = {
  // https://huggingface.co/docs/safetensors: no magic number; the file starts with the length of the header.
  safetensors: { title: 'safetensors', container: 'safetensors', magic: [] },
  // APPNOTE.TXT 4.3.7: the local header of the first entry.
  'torch-zip': { title: 'PyTorch (zip)', container: 'pt', magic: ['PK\x03\x04'] },
  // torch/serialization.py: _legacy_save writes pickles; pickle.py: the opcode PROTO and its protocol.
  'torch-legacy': {
    title: 'PyTorch (legacy)',
    container: 'pt',
    magic: ['\x80\x02', '\x80\x03', '\x80\x04', '\x80\x05'],
  },
  // docs/gguf.md of ggml: GGUF_MAGIC.
  gguf: { title: 'GGUF', container: 'gguf', magic: ['GGUF'] },
  // onnx/onnx.proto3: a message without a magic number. Only `export` writes it.
  onnx: { title: 'ONNX', container: undefined, magic: [] },
} as const satisfies Record<
  string,
  {
    readonly title: string;
    readonly container: Container | undefined;
    readonly magic: readonly string[];
  }
>;

/** Formats of several files in a folder, recognised by the names of these. */
const FOLDER_FORMATS = {
  // torch/distributed/checkpoint/filesystem.py
  dcp: { title: 'PyTorch distributed checkpoint' },
  // deepspeed/runtime/engine.py: _save_zero_checkpoint
  zero: { title: 'DeepSpeed ZeRO' },
} as const satisfies Record<string, { readonly title: string }>;

export type FileFormat = keyof typeof FILE_FORMATS;

export type CheckpointFormat = FileFormat | keyof typeof FOLDER_FORMATS;

/** Container of a format; undefined for one that no conversion writes. */
export const containerOfFormat = (format: CheckpointFormat): Container | undefined =>
  format in FILE_FORMATS ? FILE_FORMATS[format as FileFormat].container : undefined;

/** Names of the formats for people. */
export const FORMAT_TITLES = Object.fromEntries(
  Object.entries({ ...FILE_FORMATS, ...FOLDER_FORMATS }).map(([name, { title }]) => [name, title]),
) as Readonly<Record<CheckpointFormat, string>>;

/** The file of a distributed checkpoint that lists the places of its tensors. filesystem.py: _metadata_fn. */
export const DCP_METADATA = '.metadata';

/** filesystem.py: DEFAULT_SUFFIX. */
export const isDcpName = (name: string): boolean => name.endsWith('.distcp');

/** The file next to DeepSpeed's folders that names the last one. deepspeed/runtime/engine.py: save_checkpoint. */
export const ZERO_LATEST = 'latest';

/** deepspeed/runtime/engine.py: _get_zero_ckpt_name. */
export const isZeroName = (name: string): boolean =>
  /zero_pp_rank_\d+_mp_rank_\d+_optim_states\.pt$/.test(name);

/** Whether a folder with these names is a checkpoint of several processes. */
export const isDistributedFolder = (names: readonly string[]): boolean =>
  names.some(
    (name) => name === DCP_METADATA || name === ZERO_LATEST || isDcpName(name) || isZeroName(name),
  );

/** Extensions of weight files, in the order of `CONTAINERS`. */
const EXTENSIONS: readonly string[] = Object.values(CONTAINERS).flatMap(({ extensions }) => [
  ...extensions,
]);

/** transformers/utils/__init__.py: SAFE_WEIGHTS_NAME, WEIGHTS_NAME */
export const isStandaloneName = (name: string): boolean =>
  /^(?:model\.safetensors|pytorch_model\.bin)$/.test(name);

/** Extensions that a shard index can list. A `.ckpt` of PyTorch Lightning is always one file; GGUF files have no index. */
export const SHARD_EXTENSIONS: readonly string[] = EXTENSIONS.filter(
  (each) => each !== '.ckpt' && each !== '.gguf',
);

/** transformers/utils/__init__.py: SAFE_WEIGHTS_INDEX_NAME, WEIGHTS_INDEX_NAME; other programs use the same pattern. */
const INDEX_ENDING = '.index.json';

/**
 * Files that trainers save with the weights. transformers/trainer.py: TRAINING_ARGS_NAME, OPTIMIZER_NAME and so
 * on; accelerate/utils/constants.py: OPTIMIZER_NAME, SCHEDULER_NAME, SAMPLER_NAME, SCALER_NAME.
 */
const COMPANION =
  /^(?:training_args\.bin|(?:optimizer|scheduler|sampler)(?:_\d+)?\.(?:bin|pt)|rng_state(?:_\d+)?\.pth|scaler\.pt)$/;

export const isIndexName = (name: string): boolean =>
  SHARD_EXTENSIONS.some((extension) => name.endsWith(`${extension}${INDEX_ENDING}`));

/** Whether a file name has the extension of a weight file, in any case. */
export const hasWeightsExtension = (name: string): boolean =>
  EXTENSIONS.some((extension) => name.toLowerCase().endsWith(extension));

/** Whether a file name has the extension of an ONNX model. In a folder, such a file is not used as the checkpoint. */
export const isOnnxName = (name: string): boolean => /\.onnx$/i.test(name);

/** Whether a file name is a weight file, complete or a shard. */
export const isWeightsName = (name: string): boolean =>
  hasWeightsExtension(name) && !COMPANION.test(name);
