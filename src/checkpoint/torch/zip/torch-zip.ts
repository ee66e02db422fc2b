import type { ByteFile } from '../../byte-file.js';
import type { FileIndex } from '../../checkpoint.js';
import { torchEnvironment } from '../pickle/environment.js';
import { readPickle } from '../pickle/pickle.js';
import { PickleSource } from '../pickle/pickle-source.js';
import { findStateDict } from '../state-dict/state-dict.js';
import { type Refuse, Storages } from '../state-dict/storages.js';
import { readTorchArchive } from './zip.js';

export interface TorchOptions {
  /** Dotted keys of the dict to take when several hold tensors. */
  readonly stateDict?: string | undefined;
}

/**
 * The index of a file of `torch.save` since PyTorch 1.6: an archive with a pickle and a record for each
 * storage. Reads the archive's directory and the pickle, and no values.
 * @throws UserError that names the rule that the file breaks.
 */
export function readTorchZip(file: ByteFile, { stateDict }: TorchOptions = {}): FileIndex {
  const { records, isBigEndian, warnings } = readTorchArchive(file);
  const pickle = records.get('data.pkl') ?? { position: 0, bytes: 0 };
  const source = new PickleSource(file, pickle.position, pickle.position + pickle.bytes);
  const refuse: Refuse = (...broken) => source.refusal(...broken);
  const storages = new Storages(
    refuse,
    (key, bytes) => {
      const record = records.get(`data/${key}`);
      if (record === undefined) {
        throw refuse('storage-record', `names storage ${key}, which the archive does not hold`);
      }
      if (record.bytes !== bytes) {
        throw refuse(
          'storage-size',
          `says that storage ${key} has ${bytes} bytes; its record has ${record.bytes}`,
        );
      }
      return { file, position: record.position, bytes, isBigEndian };
    },
    false,
  );
  const root = readPickle(source, torchEnvironment(refuse, storages));
  const found = findStateDict(root, stateDict, file);
  return {
    format: 'torch-zip',
    tensors: found.tensors,
    ambiguous: found.ambiguous,
    aliases: new Map(),
    metadata: new Map(),
    stateDict: found.path,
    content: found.content,
    warnings: [...warnings, ...found.warnings],
  };
}
