/** Allow-list of the names in a pickle and their meaning. Names are allowed one by one, never by module. */
import type { StoredDtype } from '../../../base/tensor/dtype.js';
import type { Dict, Global, SetOf } from './values.js';

/** PyTorch's name of a dtype, and its typed storage class, if any. */
interface TorchType {
  readonly name: string;
  readonly storage?: string;
}

/**
 * PyTorch's names for dtypes: torch/storage.py for the storages, and
 * https://docs.pytorch.org/docs/stable/tensor_attributes.html. Dtypes with several values per byte have none.
 */
export const TORCH_TYPES: Readonly<Record<StoredDtype, TorchType | undefined>> = {
  BOOL: { name: 'bool', storage: 'BoolStorage' },
  U8: { name: 'uint8', storage: 'ByteStorage' },
  I8: { name: 'int8', storage: 'CharStorage' },
  U16: { name: 'uint16' },
  I16: { name: 'int16', storage: 'ShortStorage' },
  U32: { name: 'uint32' },
  I32: { name: 'int32', storage: 'IntStorage' },
  U64: { name: 'uint64' },
  I64: { name: 'int64', storage: 'LongStorage' },
  F4: undefined,
  F6_E2M3: undefined,
  F6_E3M2: undefined,
  F8_E4M3: { name: 'float8_e4m3fn' },
  F8_E5M2: { name: 'float8_e5m2' },
  F8_E8M0: { name: 'float8_e8m0fnu' },
  F8_E4M3FNUZ: { name: 'float8_e4m3fnuz' },
  F8_E5M2FNUZ: { name: 'float8_e5m2fnuz' },
  F16: { name: 'float16', storage: 'HalfStorage' },
  BF16: { name: 'bfloat16', storage: 'BFloat16Storage' },
  F32: { name: 'float32', storage: 'FloatStorage' },
  F64: { name: 'float64', storage: 'DoubleStorage' },
  C64: { name: 'complex64', storage: 'ComplexFloatStorage' },
  C128: { name: 'complex128', storage: 'ComplexDoubleStorage' },
};

export type GlobalMeaning =
  /** A subclass of dict. `from` is the kind of its arguments. */
  | {
      readonly is: 'dict';
      readonly from: 'pairs' | 'dict' | 'factory';
      readonly type: Dict['type'];
    }
  | { readonly is: 'set'; readonly type: SetOf['type'] }
  | { readonly is: 'bytes' }
  /** `_codecs.encode`: how protocol 2 writes bytes. */
  | { readonly is: 'encode' }
  /** Kept as data; a call or construction is recorded, not run. */
  | { readonly is: 'opaque' }
  /** A class that is only referenced, for example by a defaultdict. */
  | { readonly is: 'type' }
  | { readonly is: 'dtype'; readonly dtype: StoredDtype | undefined }
  /** Untyped bytes when the dtype is undefined. */
  | { readonly is: 'storage'; readonly dtype: StoredDtype | undefined }
  | { readonly is: 'rebuild'; readonly what: 'tensor' | 'typed-tensor' }
  /** `hasState`: one more argument with attributes of the parameter. */
  | { readonly is: 'parameter'; readonly hasState: boolean };

/** NumPy 2 renamed its inner modules; both names are in use. */
const NUMPY_CORES = ['numpy.core', 'numpy._core'];

const PATHS = ['PosixPath', 'WindowsPath', 'PurePosixPath', 'PureWindowsPath', 'Path', 'PurePath'];

/** Python 2 and protocol 2 call the builtins module `__builtin__`. */
const BUILTINS = ['builtins', '__builtin__'];

const DCP = 'torch.distributed.checkpoint';
/** torch/distributed/_shard/sharded_tensor/metadata.py, which had two of these classes up to PyTorch 2.2. */
const SHARDED = 'torch.distributed._shard.sharded_tensor.metadata';

/** Record classes in the metadata of distributed checkpoints, and settings in the files of DeepSpeed. */
const DISTRIBUTED = [
  `${DCP}.metadata Metadata`,
  `${DCP}.metadata TensorStorageMetadata`,
  `${DCP}.metadata BytesStorageMetadata`,
  `${DCP}.metadata ChunkStorageMetadata`,
  `${DCP}.metadata TensorProperties`,
  `${DCP}.metadata _MEM_FORMAT_ENCODING`,
  `${DCP}.metadata MetadataIndex`,
  `${DCP}.metadata StorageMeta`,
  `${DCP}.filesystem _StorageInfo`,
  `${DCP}.filesystem _StoragePrefix`,
  `${SHARDED} TensorProperties`,
  `${SHARDED} MEM_FORMAT_ENCODING`,
  'torch.serialization _get_layout',
  'deepspeed.runtime.zero.config ZeroStageEnum',
  'deepspeed.runtime.fp16.loss_scaler LossScaler',
  'deepspeed.runtime.fp16.loss_scaler DynamicLossScaler',
  'deepspeed.utils.tensor_fragment fragment_address',
];

const OPAQUE = { is: 'opaque' } as const;
const TYPE = { is: 'type' } as const;

/** Each PyTorch dtype and its storage class. */
function* typed(): Generator<[string, GlobalMeaning]> {
  for (const dtype of Object.keys(TORCH_TYPES) as StoredDtype[]) {
    const type = TORCH_TYPES[dtype];
    if (type) yield [`torch ${type.name}`, { is: 'dtype', dtype }];
    if (type?.storage) yield [`torch ${type.storage}`, { is: 'storage', dtype }];
  }
}

const ALLOWED: ReadonlyMap<string, GlobalMeaning> = new Map<string, GlobalMeaning>([
  ['collections OrderedDict', { is: 'dict', from: 'pairs', type: 'collections.OrderedDict' }],
  ['collections Counter', { is: 'dict', from: 'dict', type: 'collections.Counter' }],
  ['collections defaultdict', { is: 'dict', from: 'factory', type: 'collections.defaultdict' }],
  ...BUILTINS.flatMap((module): [string, GlobalMeaning][] => [
    [`${module} set`, { is: 'set', type: 'set' }],
    [`${module} frozenset`, { is: 'set', type: 'frozenset' }],
    [`${module} bytearray`, { is: 'bytes' }],
    [`${module} bytes`, { is: 'bytes' }],
    ...['list', 'dict', 'tuple', 'int', 'float', 'bool', 'str'].map(
      (name): [string, GlobalMeaning] => [`${module} ${name}`, TYPE],
    ),
  ]),
  ['_codecs encode', { is: 'encode' }],
  ['argparse Namespace', OPAQUE],
  ['numpy dtype', OPAQUE],
  ['numpy ndarray', TYPE],
  ...NUMPY_CORES.flatMap((core): [string, GlobalMeaning][] => [
    [`${core}.multiarray scalar`, OPAQUE],
    [`${core}.multiarray _reconstruct`, OPAQUE],
    [`${core}.numeric _frombuffer`, OPAQUE],
  ]),
  ['torch Size', OPAQUE],
  ['torch device', OPAQUE],
  ...['pathlib', 'pathlib._local'].flatMap((module) =>
    PATHS.map((name): [string, GlobalMeaning] => [`${module} ${name}`, OPAQUE]),
  ),
  ...DISTRIBUTED.map((name): [string, GlobalMeaning] => [name, OPAQUE]),
  ...typed(),
  ['torch UntypedStorage', { is: 'storage', dtype: undefined }],
  ['torch.storage UntypedStorage', { is: 'storage', dtype: undefined }],
  // Complex number of two half-precision values: used in configs, not in stored tensors.
  ['torch complex32', { is: 'dtype', dtype: undefined }],
  ['torch._utils _rebuild_tensor_v2', { is: 'rebuild', what: 'tensor' }],
  ['torch._utils _rebuild_tensor_v3', { is: 'rebuild', what: 'typed-tensor' }],
  ['torch._utils _rebuild_parameter', { is: 'parameter', hasState: false }],
  ['torch._utils _rebuild_parameter_with_state', { is: 'parameter', hasState: true }],
]);

/** Allowed globals that pickles have named: one object for each, because a pickle can name one thousands of times. */
const named = new Map<string, Global>();
const meanings = new Map<Global, GlobalMeaning>();

/** The global of an allowed name; undefined for all others. */
export function allowedGlobal(module: string, name: string): Global | undefined {
  // A module name has no space, so no other pair gives the same key.
  if (module.includes(' ')) return undefined;
  const key = `${module} ${name}`;
  const known = named.get(key);
  const meaning = known ? undefined : ALLOWED.get(key);
  if (known || meaning === undefined) return known;
  const global: Global = { kind: 'global', module, name };
  named.set(key, global);
  meanings.set(global, meaning);
  return global;
}

/** Meaning of an allowed global; undefined for all others. */
export function globalMeaning(global: Global): GlobalMeaning | undefined {
  const known = meanings.get(global);
  if (known !== undefined) return known;
  const same = allowedGlobal(global.module, global.name);
  return same && meanings.get(same);
}

/** Unsupported tensor kinds, by the function that rebuilds them. */
const OTHER_TENSORS: readonly (readonly [RegExp, string])[] = [
  [/^torch(\._utils)?\.(_rebuild_qtensor|Q\w+Storage)$/, 'a quantised tensor'],
  [/^torch\._utils\._rebuild_sparse/, 'a sparse tensor'],
  [/^torch\._utils\._rebuild_meta_tensor/, 'a tensor without values, on the meta device'],
  [/^torch\._utils\._rebuild_nested/, 'a nested tensor'],
  [/^torch\._utils\._rebuild_wrapper|^torch\._tensor\./, 'a tensor of a class of its own'],
  [/^torch\._utils\._rebuild_device_tensor/, 'a tensor of another device'],
];

export function explainGlobal(
  module: string,
  name: string,
): { readonly message: string; readonly suggestion: string } {
  const full = `${module}.${name}`;
  if (full === 'torch._utils._rebuild_tensor') {
    return {
      message: 'holds a tensor as PyTorch before 0.4 wrote it',
      suggestion: 'load it and save it again with a current PyTorch',
    };
  }
  if (/^torch\.(float|bits|u?int|quint|qint)\w+$/.test(full)) {
    return {
      message: `names the element type ${JSON.stringify(full)}, which cannot be read here`,
      suggestion: 'save the tensors in another type',
    };
  }
  const tensor = OTHER_TENSORS.find(([pattern]) => pattern.test(full));
  if (tensor) {
    return {
      message: `holds ${tensor[1]} (${JSON.stringify(full)}), which is not a plain run of values`,
      suggestion: 'save the tensors dense and unquantised, on a real device',
    };
  }
  return {
    message: `names ${JSON.stringify(full)}, which is code and no data: it is neither looked up nor called`,
    suggestion:
      'if you trust the file, load it where its classes are, and save model.state_dict() instead',
  };
}
