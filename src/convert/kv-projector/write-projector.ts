/** Converts a saved projector to another container, with the same tensors and constructor arguments. */

import os from 'node:os';
import { UserError, usageError } from '../../base/errors.js';
import type { ByteSink } from '../../base/files/write-whole.js';
import { refuseFullDisk, refuseUnwritable, writeWhole } from '../../base/files/write-whole.js';
import type { ProgressDisplay } from '../../base/progress-display.js';
import type { Generator } from '../../base/random/index.js';
import { manualSeed } from '../../base/random/index.js';
import type { Shape } from '../../base/tensor/dtype.js';
import { encode } from '../../base/tensor/encode.js';
import { commandText, setting } from '../../base/text/setting.js';
import { formatBytes } from '../../base/text/units.js';
import { sumOf } from '../../base/values.js';
import type { CheckpointFormat, Container } from '../../checkpoint/formats.js';
import { openCheckpoint } from '../../checkpoint/open.js';
import type { TensorToWrite } from '../../checkpoint/safetensors/write-safetensors.js';
import {
  planSafetensors,
  writeSafetensors,
} from '../../checkpoint/safetensors/write-safetensors.js';
import type { StoredTensor } from '../../checkpoint/stored-tensor.js';
import { contiguousStrides } from '../../checkpoint/stored-tensor.js';
import type { PickleValue } from '../../checkpoint/torch/pickle/values.js';
import type {
  Writable,
  WritableDict,
  WritableTensor,
} from '../../checkpoint/torch/pickle/writable.js';
import { planTorch } from '../../checkpoint/torch/write-torch.js';
import { writeZip } from '../../checkpoint/torch/zip/write-zip.js';
import { readInChunks } from '../../checkpoint/view.js';
import { outputTarget, refuseOverlap } from '../conversion/job.js';
import { CONTAINER_KEY, JsonWriter, STATE_DICT } from './arguments.js';
import { refuseNoWidth } from './costs.js';
import type { AdapterKind, AdapterSize, Teacher } from './projector.js';
import {
  ADAPTER_PARTS,
  BRANCHES,
  hiddenOf,
  moduleName,
  type PROJECTOR_CONTAINERS,
  partName,
} from './projector.js';
import type { ProjectorFacts, ProjectorSurroundings, SavedProjector } from './saved.js';
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
    return { name, dtype, shape, bytes, chunks: () => countedChunks(tensor, done) };
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
  throw usageError(
    `expected a .safetensors or .pt file, found ${container}`,
    'llama.cpp cannot read projectors: write .safetensors or .pt',
  );
};

/** Tensors by name, in state dict order. */
const tensorsOf = ({ adapters }: SavedProjector): [string, StoredTensor][] =>
  adapters.flatMap(({ module, branch, parts }) =>
    [...parts].map(([part, tensor]): [string, StoredTensor] => [
      partName(module, branch, part),
      tensor,
    ]),
  );

async function* countedChunks(
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
        message: 'has a reserved name: safetensors stores there which library wrote the file',
        suggestion: 'write a PyTorch file, which can store it, or rename the argument',
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
  /** Kind that the output must have; any by default. */
  readonly to?: AdapterKind | undefined;
}

/** A projector in another file. */
export interface ProjectorConversion {
  readonly schema: 'minimind/kv-projector-convert@1';
  /** The projector that was read, with the tensors that were written. */
  readonly projector: ProjectorFacts;
  /** Format of the input. */
  readonly format: CheckpointFormat;
  /** Path of the output. */
  readonly output: string;
  /** Container of the output. */
  readonly container: Container;
  /** Bytes of the output. @count */
  readonly bytes: number;
  /** Arguments of the constructor in the input, and in the output too. */
  readonly arguments: readonly string[];
}

/** The file of a converted projector. @throws UserError for a name without the ending of a file. */
export function projectorTarget(out: string, container: Container | undefined) {
  const place = outputTarget(out, container);
  if (place.kind === 'file') return place;
  throw usageError(
    `expected a .safetensors or .pt file, found ${out}`,
    'write a name that ends in .safetensors or .pt',
  );
}

/**
 * Writes a projector in the container implied by the output's name.
 * @throws UserError before writing anything, if the input is not a projector, the container cannot hold it, or two
 * of input, output and report have the same path.
 */
export async function convertProjector(
  file: string,
  out: string,
  request: ConvertProjectorRequest,
): Promise<ProjectorConversion> {
  const place = projectorTarget(out, request.container);
  const checkpoint = openCheckpoint(file);
  try {
    const projector = savedProjector(checkpoint);
    await request.warn(projectorWarnings(file, projector.warnings));
    if (request.to === 'linear' && projector.kind === 'elastic') throw noLinear(projector);
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
      };
    } finally {
      shown.end();
    }
  } finally {
    checkpoint.close();
  }
}

const noLinear = ({ path, studentWidth, adapters }: SavedProjector) => {
  const [first] = adapters;
  const teacher = `${first?.module ?? 'A'}:${first?.teacherWidth ?? 1}`;
  return usageError(
    `${setting('kind', 'linear')}: no matrix computes the norm and SiLU of the elastic projector ${path}`,
    `train a new one from ${commandText('kvProjectorInit', ['linear.pt'], { kind: 'linear', teacher, student: studentWidth })}`,
  );
};

// A new projector, with the values that PyTorch's constructor gives it after `torch.manual_seed`.

/** `init_method` of the constructor. */
export const INITS = ['xavier', 'kaiming', 'normal'] as const;
export type Init = (typeof INITS)[number];

/** Standard deviation of `normal`. */
const DEVIATION = 0.02;

export interface NewProjector {
  readonly teachers: readonly Teacher[];
  readonly studentWidth: number;
  readonly kind: AdapterKind;
  readonly init: Init;
  readonly seed: number;
  /** `mlp_ratio`, for an elastic one. */
  readonly ratio: number;
  /** Stored with the arguments of an elastic one. */
  readonly dropout: number;
}

interface NewTensor {
  readonly name: string;
  readonly shape: Shape;
  readonly data: Float32Array;
}

/** Tensors in state dict order. The generator draws as the constructor does: default values first, for all layers. */
export function newTensors(request: NewProjector): NewTensor[] {
  const random = manualSeed(request.seed);
  const tensors = request.teachers.flatMap((teacher) =>
    BRANCHES.flatMap((branch) => emptyAdapter(request, teacher, branch)),
  );
  const matrices = tensors.filter(({ shape }) => shape.length === 2);
  const biases = new Map(tensors.map((tensor) => [tensor.name, tensor.data]));
  for (const { name, shape, data } of matrices) {
    random.linearDefault(data, shape, biases.get(biasOf(name)));
  }
  for (const { name, shape, data } of matrices) {
    fill(random, request.init, data, shape);
    biases.get(biasOf(name))?.fill(0);
  }
  return tensors;
}

const biasOf = (weight: string) => weight.replace(/weight$/, 'bias');

function emptyAdapter(
  { kind, studentWidth, ratio }: NewProjector,
  { name, width }: Teacher,
  branch: (typeof BRANCHES)[number],
): NewTensor[] {
  const sizes: Readonly<Record<AdapterSize, number>> = {
    teacher: width,
    student: studentWidth,
    hidden: hiddenOf(width, ratio),
  };
  return Object.entries(ADAPTER_PARTS[kind]).flatMap(([part, { sizes: axes, isOptional }]) => {
    if (isOptional) return [];
    const shape = axes.map((size) => sizes[size]);
    const data = new Float32Array(shape.reduce((product, size) => product * size, 1));
    // The norm's scale is the only vector called weight.
    if (shape.length === 1 && part.endsWith('weight')) data.fill(1);
    return [{ name: partName(moduleName(name), branch, part), shape, data }];
  });
}

function fill(random: Generator, init: Init, data: Float32Array, shape: Shape): void {
  switch (init) {
    case 'xavier':
      random.xavierUniform(data, shape);
      return;
    case 'kaiming':
      random.kaimingNormal(data, shape);
      return;
    case 'normal':
      random.normal(data, 0, DEVIATION);
  }
}

/** Arguments of the constructor, as a saved projector has them. */
function argumentsOf(request: NewProjector): ReadonlyMap<string, PickleValue> {
  const { teachers, studentWidth, kind, init, ratio, dropout } = request;
  const configs = teachers.map(({ name, width, layers }): [string, PickleValue] => [
    name,
    dict([['d_model', width], ...(layers === undefined ? [] : [['num_layers', layers] as const])]),
  ]);
  return new Map<string, PickleValue>([
    ['teacher_configs', dict(configs)],
    ['student_d_model', studentWidth],
    ...(kind === 'linear'
      ? []
      : ([
          ['mlp_ratio', { kind: 'float', value: ratio }],
          ['dropout', { kind: 'float', value: dropout }],
        ] as const)),
    ['init_method', init],
    ['trainable', true],
  ]);
}

const dict = (entries: readonly (readonly [string, PickleValue])[]): PickleValue => ({
  kind: 'dict',
  type: 'dict',
  entries: new Map<PickleValue, PickleValue>(entries),
});

const FLOAT_BYTES = Float32Array.BYTES_PER_ELEMENT;

/** @throws UserError when the values do not fit in the memory of this machine. */
export function refuseLargerThanMemory({
  teachers,
  studentWidth,
  kind,
  ratio,
}: NewProjector): void {
  const parameters = sumOf(teachers, ({ width }) => {
    const hidden = hiddenOf(width, ratio);
    const products = kind === 'linear' ? width * studentWidth : hidden * (width + studentWidth);
    return BRANCHES.length * products;
  });
  const bytes = parameters * FLOAT_BYTES;
  if (bytes < os.totalmem()) return;
  throw usageError(
    `the projector takes ${formatBytes(bytes)} of memory, and this machine has ${formatBytes(os.totalmem())}`,
    `choose fewer teachers, or a smaller ${setting('ratio')} or ${setting('student')}`,
  );
}

export interface InitProjectorRequest extends NewProjector {
  readonly out: string;
  /** Whether to replace the output. */
  readonly force: boolean;
  readonly display: ProgressDisplay;
}

/**
 * A new projector with random values.
 * @answer minimind kv-projector init --json
 */
export interface ProjectorInit {
  readonly schema: 'minimind/kv-projector-init@1';
  /** Path of the file. */
  readonly output: string;
  /** Container of the file. */
  readonly container: Container;
  /** Bytes of the file. @count */
  readonly bytes: number;
  /** Kind of the adapters. */
  readonly kind: AdapterKind;
  /** Initialization of the matrices. */
  readonly init: NewProjector['init'];
  /** Seed of the values. @count */
  readonly seed: number;
  /** Width of the student. @count */
  readonly studentWidth: number;
  /** The teachers. */
  readonly teachers: readonly {
    /** Name of the teacher. */
    readonly name: string;
    /** Width of its keys and values. @count */
    readonly width: number;
    /** Its layers; null if unknown. @count */
    readonly layers: number | null;
    /** Hidden width of its adapters; null for linear ones. @count */
    readonly hidden: number | null;
  }[];
  /** Hidden width ÷ teacher width; null for linear adapters. */
  readonly ratio: number | null;
  /** Stored probability of dropout; null for linear adapters. */
  readonly dropout: number | null;
  /** Number of tensors. @count */
  readonly tensors: number;
  /** Elements of all tensors. @count */
  readonly parameters: number;
  /** Arguments of the constructor that are stored. */
  readonly arguments: readonly string[];
}

/**
 * Writes a new projector as a .pt or .safetensors file, by the ending of its name.
 * @throws UserError before writing anything, if the name has another ending, or a width is zero.
 */
export async function initProjector(request: InitProjectorRequest): Promise<ProjectorInit> {
  const { out, force, kind, teachers, studentWidth, init, seed } = request;
  const place = outputTarget(out, undefined);
  if (place.kind === 'folder') {
    throw usageError(
      `expected a .pt or .safetensors file, found ${out}`,
      `write ${out.replace(/[/\\]+$/, '')}.safetensors`,
    );
  }
  if (kind === 'elastic') refuseNoWidth(teachers, request.ratio);
  refuseLargerThanMemory(request);
  await refuseUnwritable(out, force);
  const tensors = newTensors(request);
  const values = argumentsOf(request);
  const shown = request.display.bytes('writing', FLOAT_BYTES * sumOf(tensors, tensorElements));
  try {
    const content: ProjectorContent = {
      path: out,
      values,
      tensors: tensors.map(({ name, shape, data }) => ({
        ...{ name, shape, dtype: 'F32', bytes: FLOAT_BYTES * data.length },
        chunks: () => valueChunks(data, shown.add),
      })),
    };
    const planned = planProjectorContent(content, place.container);
    refuseFullDisk(out, [planned]);
    await writeWhole(out, force, planned.write);
    return {
      schema: 'minimind/kv-projector-init@1',
      ...{ output: out, container: place.container, bytes: planned.bytes, kind, init, seed },
      studentWidth,
      teachers: teachers.map(({ name, width, layers = null }) => ({
        ...{ name, width, layers },
        hidden: kind === 'linear' ? null : hiddenOf(width, request.ratio),
      })),
      ratio: kind === 'linear' ? null : request.ratio,
      dropout: kind === 'linear' ? null : request.dropout,
      tensors: tensors.length,
      parameters: sumOf(tensors, tensorElements),
      arguments: [...values.keys()],
    };
  } finally {
    shown.end();
  }
}

const tensorElements = ({ data }: NewTensor) => data.length;

/** Values encoded at a time. */
const CHUNK = 2 ** 18;

/** Float32 values as bytes, in pieces. */
export function* valueChunks(
  data: Float32Array,
  done: (bytes: number) => void,
): Iterable<Uint8Array> {
  for (let at = 0; at < data.length; at += CHUNK) {
    const numbers = Float64Array.from(data.subarray(at, at + CHUNK));
    const bytes = new Uint8Array(FLOAT_BYTES * numbers.length);
    encode('F32', numbers, bytes);
    yield bytes;
    done(bytes.length);
  }
}
