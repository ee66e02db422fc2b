/** A saved projector in another container: the same tensors, and what its constructor was called with. */
import {
  planSafetensors,
  type TensorToWrite,
  writeSafetensors,
} from '../checkpoint/safetensors/write-safetensors.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import { contiguousStrides } from '../checkpoint/stored-tensor.js';
import type { Value } from '../checkpoint/torch/pickle/values.js';
import type {
  Writable,
  WritableDict,
  WritableTensor,
} from '../checkpoint/torch/pickle/write-opcodes.js';
import { planTorch } from '../checkpoint/torch/write-torch.js';
import { writeZip } from '../checkpoint/torch/zip/write-zip.js';
import { chunksOf } from '../checkpoint/view.js';
import { UserError } from '../errors.js';
import type { ByteSink } from '../files/file-sink.js';
import { CONTAINER_KEY, STATE_DICT } from './arguments.js';
import { JsonWriter } from './json-values.js';
import { partName } from './projector.js';
import type { SavedProjector } from './saved.js';

export type ProjectorContainer = 'safetensors' | 'pt';

/** A file, ready to be written. */
export interface PlannedFile {
  readonly bytes: number;
  write(sink: ByteSink): Promise<void>;
}

const WRITERS = {
  safetensors: planSafetensorsFile,
  pt: planTorchFile,
} as const satisfies Record<
  ProjectorContainer,
  (projector: SavedProjector, done: (bytes: number) => void) => PlannedFile
>;

/**
 * The file that holds a projector.
 * @param done Told of the bytes of tensors that are written.
 * @throws UserError when the container cannot hold a tensor or an argument.
 */
export const planConversion = (
  projector: SavedProjector,
  container: ProjectorContainer,
  done: (bytes: number) => void,
): PlannedFile => WRITERS[container](projector, done);

/** The tensors by name, in the order of a state dict. */
export const tensorsOf = ({ adapters }: SavedProjector): [string, StoredTensor][] =>
  adapters.flatMap(({ module, branch, parts }) =>
    [...parts].map(([part, tensor]): [string, StoredTensor] => [
      partName(module, branch, part),
      tensor,
    ]),
  );

async function* counted(
  tensor: StoredTensor,
  done: (bytes: number) => void,
): AsyncGenerator<Uint8Array, undefined> {
  for await (const chunk of chunksOf(tensor)) {
    yield chunk;
    done(chunk.length);
  }
}

/** Each argument is a string of JSON in the metadata. */
function planSafetensorsFile(
  projector: SavedProjector,
  done: (bytes: number) => void,
): PlannedFile {
  if (projector.arguments.values.has(CONTAINER_KEY)) throw takenName(projector.path);
  const tensors: TensorToWrite[] = tensorsOf(projector).map(([name, tensor]) => ({
    name,
    dtype: tensor.dtype,
    shape: tensor.shape,
    chunks: () => counted(tensor, done),
  }));
  const writer = new JsonWriter();
  const metadata = new Map(
    [...projector.arguments.values].map(([name, value]) => [name, writer.text(name, value)]),
  );
  return {
    bytes: planSafetensors(tensors, metadata).fileBytes,
    write: (sink) => writeSafetensors(sink, tensors, metadata),
  };
}

const takenName = (file: string): UserError =>
  new UserError('refused-file', `${file} is refused`, {
    problems: [
      {
        severity: 'error',
        file,
        path: `argument ${JSON.stringify(CONTAINER_KEY)}`,
        message: 'has the name under which safetensors keeps which library wrote the file',
        suggestion: 'write a PyTorch file, which can hold it, or give the argument another name',
      },
    ],
  });

/** A dict of the arguments and the state dict, as the projector itself saves it. */
function planTorchFile(projector: SavedProjector, done: (bytes: number) => void): PlannedFile {
  const stateDict: WritableDict = {
    kind: 'dict',
    type: 'collections.OrderedDict',
    entries: new Map<Writable, Writable>(
      tensorsOf(projector).map(([name, tensor]) => [name, ownStorage(tensor, done)]),
    ),
  };
  const root: WritableDict = {
    kind: 'dict',
    type: 'dict',
    entries: new Map<Writable, Writable | Value>([
      ...projector.arguments.values,
      [STATE_DICT, stateDict],
    ]),
  };
  const plan = planTorch(root);
  return { bytes: plan.fileBytes, write: (sink) => writeZip(sink, plan) };
}

/** A tensor of its own: what it was a part of need not be written. */
const ownStorage = (tensor: StoredTensor, done: (bytes: number) => void): WritableTensor => ({
  kind: 'tensor',
  dtype: tensor.dtype,
  shape: tensor.shape,
  strides: contiguousStrides(tensor.shape),
  offset: 0,
  storage: { bytes: tensor.bytes, chunks: () => counted(tensor, done) },
});
