/** Converts a saved projector to another container, with the same tensors and constructor arguments. */
import type { Container } from '../checkpoint/formats.js';
import { openCheckpoint } from '../checkpoint/open.js';
import type { TensorToWrite } from '../checkpoint/safetensors/write-safetensors.js';
import { planSafetensors, writeSafetensors } from '../checkpoint/safetensors/write-safetensors.js';
import type { StoredTensor } from '../checkpoint/stored-tensor.js';
import { contiguousStrides } from '../checkpoint/stored-tensor.js';
import type { PickleValue } from '../checkpoint/torch/pickle/values.js';
import type {
  Writable,
  WritableDict,
  WritableTensor,
} from '../checkpoint/torch/pickle/writable.js';
import { planTorch } from '../checkpoint/torch/write-torch.js';
import { writeZip } from '../checkpoint/torch/zip/write-zip.js';
import { readInChunks } from '../checkpoint/view.js';
import { outputTarget, refuseOverlap } from '../conversion/job.js';
import { UserError } from '../errors.js';
import { refuseFullDisk } from '../files/output-place.js';
import type { ByteSink } from '../files/write-whole.js';
import { refuseUnwritable, writeWhole } from '../files/write-whole.js';
import { sumOf } from '../text/words.js';
import { CONTAINER_KEY, JsonWriter, STATE_DICT } from './arguments.js';
import { type PROJECTOR_CONTAINERS, partName } from './projector.js';
import type { ProjectorSurroundings, SavedProjector } from './saved.js';
import { describedProjector, projectorWarnings, savedProjector } from './saved.js';

/** A file, ready to write. */
export interface ProjectorFile {
  readonly bytes: number;
  write(sink: ByteSink): Promise<void>;
}

type ProjectorContainer = (typeof PROJECTOR_CONTAINERS)[number];

const WRITERS = {
  safetensors: planSafetensorsFile,
  pt: planTorchFile,
} as const satisfies Record<ProjectorContainer, ProjectorWriter>;

/** Arguments and tensors to write. */
export interface ProjectorContent {
  /** File that errors name. */
  readonly path: string;
  readonly values: ReadonlyMap<string, PickleValue>;
  /** In state dict order. */
  readonly tensors: readonly (TensorToWrite & { readonly bytes: number })[];
}

const isProjectorContainer = (container: Container): container is ProjectorContainer =>
  container in WRITERS;

type ProjectorWriter = (content: ProjectorContent) => ProjectorFile;

/**
 * Output file of a saved projector.
 * @param done Called with the tensor bytes written.
 * @throws UserError when the container cannot hold a tensor or an argument.
 */
export const planProjectorFiles = (
  projector: SavedProjector,
  container: Container,
  done: (bytes: number) => void,
): ProjectorFile => {
  const tensors = tensorsOf(projector).map(([name, tensor]) => {
    const { dtype, shape, bytes } = tensor;
    return { name, dtype, shape, bytes, chunks: () => counted(tensor, done) };
  });
  const { path } = projector;
  return planProjectorContent({ path, values: projector.arguments.values, tensors }, container);
};

/** Output file of any projector. @throws UserError when the container cannot hold a tensor or an argument. */
export const planProjectorContent = (
  content: ProjectorContent,
  container: Container,
): ProjectorFile => {
  if (isProjectorContainer(container)) return WRITERS[container](content);
  throw new UserError('usage', `expected a .safetensors or .pt file, found ${container}`, {
    suggestion: 'llama.cpp cannot read projectors: write .safetensors or .pt',
  });
};

/** Tensors by name, in state dict order. */
const tensorsOf = ({ adapters }: SavedProjector): [string, StoredTensor][] =>
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
  for await (const chunk of readInChunks(tensor)) {
    yield chunk;
    done(chunk.length);
  }
}

/** Stores each argument as a JSON string in the metadata. */
function planSafetensorsFile({ path, values, tensors }: ProjectorContent): ProjectorFile {
  if (values.has(CONTAINER_KEY)) throw takenName(path);
  const writer = new JsonWriter();
  const metadata = new Map([...values].map(([name, value]) => [name, writer.text(name, value)]));
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

/** Stores a dict of the arguments and the state dict, like the projector's own save method. */
function planTorchFile({ values, tensors }: ProjectorContent): ProjectorFile {
  const stateDict: WritableDict = {
    kind: 'dict',
    type: 'collections.OrderedDict',
    entries: new Map<Writable, Writable>(
      tensors.map((tensor) => [tensor.name, ownStorage(tensor)]),
    ),
  };
  const root: WritableDict = {
    kind: 'dict',
    type: 'dict',
    entries: new Map<Writable, Writable | PickleValue>([...values, [STATE_DICT, stateDict]]),
  };
  const plan = planTorch(root);
  return { bytes: plan.fileBytes, write: (sink) => writeZip(sink, plan) };
}

/** A copy with its own storage, so the surrounding storage is not written. */
const ownStorage = ({
  dtype,
  shape,
  bytes,
  chunks,
}: ProjectorContent['tensors'][number]): WritableTensor => ({
  kind: 'tensor',
  dtype,
  shape,
  strides: contiguousStrides(shape),
  offset: 0,
  storage: { bytes, chunks },
});

export interface ConvertProjectorRequest extends ProjectorSurroundings {
  readonly container: Container | undefined;
  /** Report file; undefined for printing. */
  readonly report: string | undefined;
}

export type ProjectorConversion = Awaited<ReturnType<typeof convertProjector>>;

/**
 * Writes a projector in the container implied by the output's name.
 * @throws UserError before writing anything, if the input is not a projector, the container cannot hold it, or two
 * of input, output and report have the same path.
 */
export async function convertProjector(
  file: string,
  out: string,
  request: ConvertProjectorRequest,
) {
  const place = outputTarget(out, request.container);
  if (place.kind === 'folder') {
    throw new UserError('usage', `${out} is named like no file of weights`, {
      suggestion: 'let the name end in .safetensors or .pt',
    });
  }
  const checkpoint = openCheckpoint(file);
  try {
    const projector = savedProjector(checkpoint);
    await request.warn(projectorWarnings(file, projector.warnings));
    refuseOverlap(checkpoint, place, { read: [], report: request.report });
    await refuseUnwritable(out, request.force);
    const total = sumOf(tensorsOf(projector), ([, { bytes }]) => bytes);
    const shown = request.display.bytes('writing', total);
    try {
      const planned = planProjectorFiles(projector, place.container, shown.add);
      refuseFullDisk(out, [planned]);
      await writeWhole(out, request.force, planned.write);
      return {
        schema: 'minimind/kv-projector-convert@1',
        projector: describedProjector(projector),
        format: checkpoint.format,
        output: out,
        container: place.container,
        bytes: planned.bytes,
        arguments: [...projector.arguments.values.keys()],
      } as const;
    } finally {
      shown.end();
    }
  } finally {
    checkpoint.close();
  }
}
