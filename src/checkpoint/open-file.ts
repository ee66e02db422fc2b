import { ByteFile } from './byte-file.js';
import type { FileIndex } from './checkpoint.js';
import { formatOf } from './file-kind.js';
import type { CheckpointFormat } from './formats.js';
import { readSafetensors } from './safetensors/read-safetensors.js';
import { readTorchLegacy } from './torch/legacy.js';
import { readTorchZip } from './torch/zip/torch-zip.js';

export interface OpenOptions {
  /** Dotted keys of the dict to take when several of a PyTorch file hold tensors: `ema.state_dict`. */
  readonly stateDict?: string | undefined;
}

export interface OpenedFile {
  readonly file: ByteFile;
  readonly index: FileIndex;
}

const READERS: Readonly<
  Record<CheckpointFormat, (file: ByteFile, options: OpenOptions) => FileIndex>
> = {
  safetensors: readSafetensors,
  'torch-zip': readTorchZip,
  'torch-legacy': readTorchLegacy,
};

/**
 * Opens one file of weights, which stays open unless this throws.
 * @param check Looks at the open file before anything is read of it.
 * @throws UserError when it cannot be read, or breaks a rule.
 */
export function openFile(
  path: string,
  options: OpenOptions,
  check: (file: ByteFile) => void = () => {},
): OpenedFile {
  const file = ByteFile.open(path);
  try {
    check(file);
    return { file, index: READERS[formatOf(file)](file, options) };
  } catch (error) {
    file.close();
    throw error;
  }
}
