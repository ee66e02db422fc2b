/**
 * A checkpoint: an index of tensors, made without reading any of them, and the bytes behind it. This
 * folder knows files and formats; what the tensors are for it does not know.
 */
import type { ByteFile } from './byte-file.js';
import type { CheckpointFormat } from './formats.js';
import type { StoredTensor } from './stored-tensor.js';
import type { Value } from './torch/pickle/values.js';

export interface Checkpoint {
  /** As the user wrote it: a file, an index or a folder. */
  readonly path: string;
  readonly format: CheckpointFormat;
  /** The files that hold the tensors. */
  readonly files: readonly ByteFile[];
  /** The tensors of the model by the file's own names, in the file's own order. */
  readonly tensors: ReadonlyMap<string, StoredTensor>;
  /**
   * Names in `tensors` that a tensor under an integer key has too, once its key is written as text: 0 and
   * '0' in a dict of PyTorch.
   */
  readonly ambiguous: readonly string[];
  /** Names that stand only in safetensors metadata: name → the tensor's name. */
  readonly aliases: ReadonlyMap<string, string>;
  /** The strings of safetensors' `__metadata__`, of all shards. */
  readonly metadata: ReadonlyMap<string, string>;
  /** Keys that lead to the dict that holds the tensors: `['model_state_dict']`; empty when it is the whole. */
  readonly stateDict: readonly string[];
  /** What else a PyTorch file holds beside the tensors, by its key. */
  readonly content: ReadonlyMap<string, Value>;
  /** What is odd, but harmless. */
  readonly warnings: readonly string[];
  /** Closes the files. */
  close(): void;
}

/** What one file tells: a checkpoint, apart from where it came from. */
export type FileIndex = Omit<Checkpoint, 'path' | 'files' | 'close'>;
