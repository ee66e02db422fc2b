/**
 * A checkpoint: an index of tensors, built without reading tensor data, and the files behind it. This folder
 * knows files and formats, not models.
 */
import type { ByteFile } from './byte-file.js';
import type { CheckpointFormat } from './formats.js';
import type { GgufKeyValues } from './gguf/gguf-scanner.js';
import type { OnnxGraph } from './onnx/describe-onnx.js';
import type { StoredTensor } from './stored-tensor.js';
import type { PickleBudget } from './torch/pickle/pickle-machine.js';
import type { PickleValue } from './torch/pickle/values.js';

/** Names of the files of a folder, sorted; `file` for a path that is not a folder. */
export type Listing = readonly string[] | 'file';

/** A path of a checkpoint, with its listing where it is known. */
export interface CheckpointPath {
  readonly path: string;
  readonly listing?: Listing | undefined;
}

export interface Checkpoint {
  /** The path that the user wrote: a file, an index or a folder. */
  readonly path: string;
  /** Listing of the path when it was opened. */
  readonly listing: Listing;
  readonly format: CheckpointFormat;
  /** Files with tensor data. */
  readonly files: readonly ByteFile[];
  /** Tensors of the model by their name in the file, in file order. */
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /** Names that appear only in safetensors metadata: name → name of the tensor. */
  readonly aliases: ReadonlyMap<string, string>;
  /** The strings in `__metadata__` of safetensors, of all shards. */
  readonly metadata: ReadonlyMap<string, string>;
  /** Metadata of a GGUF file; absent in other formats. */
  readonly keyValues?: GgufKeyValues;
  /** Graph of an ONNX file; absent in other formats. */
  readonly onnx?: OnnxGraph;
  /** Keys that lead to the dict with the tensors: `['model_state_dict']`; empty when it is the top-level dict. */
  readonly stateDict: readonly string[];
  /** Other entries of a PyTorch file, by key. */
  readonly content: ReadonlyMap<string, PickleValue>;
  /** Unusual but harmless findings. */
  readonly warnings: readonly string[];
  /** Weights that are stored packed and read as floats, and the tensors of the file; absent when none is. */
  readonly packed?: {
    readonly tensors: ReadonlyMap<string, StoredTensor>;
    /** Names in `Checkpoint.tensors`. */
    readonly weights: readonly string[];
  };
  /** Tensors of a GGUF file under its own names, where `tensors` has them as transformers does. */
  readonly own?: ReadonlyMap<string, StoredTensor>;
  close(): void;
}

/** Tensors as a file holds them: packed weights in their parts, stacked experts as one. Counts are of these. */
export const tensorsOfFile = ({
  packed,
  own,
  tensors,
}: Pick<Checkpoint, 'packed' | 'own' | 'tensors'>): ReadonlyMap<string, StoredTensor> =>
  packed?.tensors ?? own ?? tensors;

/** Content of one file: a checkpoint without its origin. */
export type FileIndex = Omit<Checkpoint, 'listing' | 'path' | 'files' | 'packed' | 'own' | 'close'>;

export interface CheckpointOptions {
  /** Dotted keys of the dict to read when several contain tensors: `ema.state_dict`. */
  readonly stateDict?: string | undefined;
  /** Whether packed weights stay as they are stored; by default they are read as floats. */
  readonly keepPacked?: boolean;
  /** Listing of the path, where it is known. */
  readonly listing?: Listing | undefined;
  /** Memory that a file's pickle shares with those of the other shards. */
  readonly pickleBudget?: PickleBudget;
}

export interface OpenedFiles {
  readonly files: readonly ByteFile[];
  readonly index: FileIndex;
}
