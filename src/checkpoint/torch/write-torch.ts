import { UserError, usageError } from '../../base/errors.js';
import { STORED_DTYPES } from '../../base/tensor/dtype.js';
import { ByteFile } from '../byte-file.js';
import { streamTensor } from '../view.js';
import { readPickle } from './pickle/pickle.js';
import { PickleSource } from './pickle/pickle-machine.js';
import type { Writable, WrittenStorage } from './pickle/writable.js';
import { collectStorages } from './pickle/writable.js';
import { writePickle } from './pickle/write-pickle.js';
import { Storages } from './state-dict/storages.js';
import { type ByteConsumer, planZip, type ZipContent, type ZipPlan } from './zip/write-zip.js';
import { isPlainPath } from './zip/zip-entries.js';

/** Folder name that PyTorch uses when the file name is unknown. */
const DEFAULT_ROOT = 'archive';
/** Version of the file format since PyTorch 1.6. */
const FORMAT_VERSION = '3\n';

/**
 * Layout of a PyTorch file for a value: gives the size before any byte is written.
 * @param root Folder in the archive.
 * @throws UserError if PyTorch lacks the dtype of a tensor, or the reader would reject the file.
 */
export function planTorch(value: Writable, root = DEFAULT_ROOT): ZipPlan {
  if (!isPlainPath(root) || root.includes('/'))
    throw new RangeError(`no name of a folder: ${root}`);
  const storages = collectStorages(value);
  const pickle = writePickle(value, storages);
  const plan = planZip([
    record(`${root}/data.pkl`, pickle),
    record(`${root}/byteorder`, Buffer.from('little')),
    ...[...storages.values()].map((storage) => ({
      name: `${root}/data/${storage.key}`,
      bytes: storage.bytes.bytes,
      fill: (take: ByteConsumer) => fillStorage(storage, take),
    })),
    record(`${root}/version`, Buffer.from(FORMAT_VERSION)),
  ]);
  refuseUnreadable(pickle, plan.fileBytes);
  return plan;
}

/**
 * @param size Size of the file for the pickle, bytes.
 * @throws UserError if the pickle violates a rule of the reader, such as its memory limit for too many tensors.
 */
function refuseUnreadable(pickle: Uint8Array, size: number): void {
  const file = new PlannedFile(pickle, size);
  const source = new PickleSource(file, 0, pickle.length);
  // Reads only the pickle, not the storages.
  const place = (_: string, bytes: number) => ({ file, position: 0, bytes, isBigEndian: false });
  try {
    readPickle(source, new Storages(source.refusal, place, false));
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const why = error.problems.map(({ message }) => message).join('; ');
    throw usageError(
      `a PyTorch file of this cannot be read again: its pickle ${why}`,
      'write safetensors: let the name end in .safetensors, or name a folder',
      error,
    );
  }
}

/** A file that is not written yet; of its content only the pickle is known. */
class PlannedFile extends ByteFile {
  readonly #pickle: Uint8Array;

  constructor(pickle: Uint8Array, size: number) {
    super('data.pkl', { size, mtimeMs: 0 });
    this.#pickle = pickle;
  }

  override read(position: number, length: number): Buffer {
    return Buffer.from(this.#pickle.subarray(position, position + length));
  }
}

const record = (name: string, bytes: Uint8Array): ZipContent => ({
  name,
  bytes: bytes.length,
  fill: (take) => take(bytes),
});

/** Writes the bytes of a storage, little-endian. */
async function fillStorage({ bytes, words }: WrittenStorage, take: ByteConsumer): Promise<void> {
  if ('chunks' in bytes) {
    for await (const chunk of bytes.chunks()) await take(chunk);
    return;
  }
  const elements = bytes.bytes / (STORED_DTYPES[words].bits / 8);
  const flat = { shape: [elements], strides: [1], offset: 0, elements };
  await streamTensor(
    { kind: 'tensor', dtype: words, ...flat, storage: bytes, bytes: bytes.bytes },
    take,
  );
}
