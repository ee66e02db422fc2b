/** Opens a checkpoint of DeepSpeed ZeRO, stages 1 to 3, as one checkpoint with the weights in float32. */
import type { StoredDtype } from '../../base/tensor/dtype.js';
import { elementCount, shapeText, storedBytes } from '../../base/tensor/dtype.js';
import type { ByteFile } from '../byte-file.js';
import type { OpenedFiles } from '../checkpoint.js';
import { quoted, quotedNames, refusal, refuseAt, tensorPlace } from '../checkpoint-rules.js';
import { mapped } from '../computed-file.js';
import type { StoredTensor } from '../stored-tensor.js';
import { contiguousStrides, isContiguous } from '../stored-tensor.js';
import { PickleBudget } from '../torch/pickle/pickle-machine.js';
import type { Entries, PickleValue } from '../torch/pickle/values.js';
import { globalName, isKind, isNatural } from '../torch/pickle/values.js';
import { readTorchObject } from '../torch/read-torch.js';
import { narrow } from '../view.js';
import { PartFiles, type ZeroFiles } from './part-files.js';
import { tensorOfParts } from './sharded-tensor.js';

/** Keys of the files: deepspeed/checkpoint/constants.py. */
const KEYS = {
  optimizer: 'optimizer_state_dict',
  stage: 'zero_stage',
  count: 'partition_count',
  /** Stages 1 and 2: a vector for each group of parameters. */
  groups: 'single_partition_of_fp32_groups',
  /** Stage 3: vectors, into which the parameters are cut in any way. */
  flatGroups: 'fp32_flat_groups',
} as const;

/** The share of one process: vectors of the parameters, a part of each. */
interface Partition {
  readonly file: ByteFile;
  readonly stage: 1 | 2 | 3;
  /** Number of processes that share the parameters, as this file states it. */
  readonly world: number;
  readonly vectors: readonly StoredTensor[];
}

interface ParameterShape {
  readonly name: string;
  readonly shape: readonly number[];
  readonly elements: number;
}

/** The file of the model's states of one process. */
interface ModelStates {
  readonly file: ByteFile;
  readonly entries: Entries;
}

/**
 * Opens the files of one step.
 * @throws UserError that names the violated rule. No file stays open then.
 */
export function openZero(found: ZeroFiles): OpenedFiles {
  const files = new PartFiles(found.folder);
  try {
    files.openAll([...found.optimizers, ...found.models], () => {});
    const budget = new PickleBudget(() => files.bytes);
    const partitions = found.optimizers.map((name) => partitionIn(files.get(name), budget));
    const stage = checkAgreement(found, partitions);
    const models = found.models.map((name) => modelStatesIn(files.get(name), budget));
    const tensors = new ZeroReader(found.folder, stage, partitions, models, budget).read();
    return {
      files: files.all,
      index: {
        format: 'zero',
        tensors: tensors.all,
        aliases: new Map(),
        metadata: new Map(),
        stateDict: [],
        content: trainingEntries(models[0]),
        warnings: tensors.warnings,
      },
    };
  } catch (error) {
    files.close();
    throw error;
  }
}

/** Entries of the model's states that describe the training: numbers of steps and of processes. */
const trainingEntries = (model: ModelStates | undefined): ReadonlyMap<string, PickleValue> =>
  new Map(
    [...(model?.entries ?? [])].flatMap(([key, value]) =>
      typeof key === 'string' && isNatural(value) ? [[key, value] as const] : [],
    ),
  );

function wrongEntry(file: ByteFile, key: string, found: PickleValue | undefined, expected: string) {
  return refusal(file.path, {
    rule: 'zero-entry',
    place: `entry ${quoted(key)}`,
    message: `is ${found === undefined ? 'missing' : globalName(found)}; expected ${expected}`,
    suggestion: 'name the folder that DeepSpeed wrote with save_checkpoint',
  });
}

function dictIn(file: ByteFile, key: string, value: PickleValue | undefined): Entries {
  if (value !== undefined && isKind(value, 'dict')) return value.entries;
  throw wrongEntry(file, key, value, 'a dict');
}

function partitionIn(file: ByteFile, budget: PickleBudget): Partition {
  const { root } = readTorchObject(file, budget);
  const entries = dictIn(file, KEYS.optimizer, dictIn(file, 'the file', root).get(KEYS.optimizer));
  const flat = entries.get(KEYS.flatGroups);
  const groups = flat ?? entries.get(KEYS.groups) ?? null;
  if (!isKind(groups, 'list') || groups.items.length === 0) {
    throw wrongEntry(file, KEYS.groups, groups, 'a list of vectors');
  }
  const vectors = groups.items.map((vector, index) => {
    if (isKind(vector, 'tensor') && vector.shape.length === 1 && isContiguous(vector))
      return vector;
    throw wrongEntry(file, `${flat ? KEYS.flatGroups : KEYS.groups}.${index}`, vector, 'a vector');
  });
  return {
    file,
    stage: stageOf(file, entries, flat !== undefined),
    world: worldOf(file, entries),
    vectors,
  };
}

/** Stage of a partition. The optimizer of bfloat16 training states none, and is of stage 1. */
function stageOf(file: ByteFile, entries: Entries, isFlat: boolean): Partition['stage'] {
  const value = entries.get(KEYS.stage) ?? 1;
  const number = isKind(value, 'opaque') ? value.args.items[0] : value;
  const stage = ([1, 2, 3] as const).find((each) => each === number);
  if (stage !== undefined && isFlat === (stage === 3)) return stage;
  throw wrongEntry(file, KEYS.stage, value, isFlat ? '3' : '1 or 2');
}

function worldOf(file: ByteFile, entries: Entries): number {
  const value = entries.get(KEYS.count) ?? null;
  const counts = isKind(value, 'list') || isKind(value, 'tuple') ? value.items : [value];
  const [first] = counts;
  if (!isNatural(first) || first === 0)
    throw wrongEntry(file, KEYS.count, value, 'a number of processes');
  if (counts.every((count) => count === first)) return first;
  throw refusal(file.path, {
    rule: 'zero-experts',
    place: `entry ${quoted(KEYS.count)}`,
    message: `splits groups of parameters between different numbers of processes: ${counts.join(', ')}`,
    suggestion:
      'experts that are split between processes are not read: save the model with save_16bit_model',
  });
}

function checkAgreement(
  { folder, optimizers }: ZeroFiles,
  partitions: readonly Partition[],
): Partition['stage'] {
  const [first] = partitions;
  if (first === undefined) throw new Error('no partitions');
  const other = partitions.find(({ stage }) => stage !== first.stage);
  if (other) {
    throw refusal(other.file.path, {
      rule: 'zero-stage',
      message: `is of stage ${other.stage}; expected ${first.stage}, as in ${quoted(first.file.path)}`,
      suggestion: 'remove the files of other runs from the folder',
    });
  }
  const wrong = partitions.find(({ world }) => world !== partitions.length);
  if (wrong) {
    throw refusal(folder, {
      rule: 'zero-world',
      message: `holds files of ${partitions.length} processes; expected ${wrong.world}, as ${quoted(wrong.file.path)} states: ${quotedNames(optimizers)}`,
      suggestion: 'copy the files of all processes, and remove those of other runs',
    });
  }
  const shapes = ({ vectors }: Partition) => vectors.map(({ dtype }) => dtype).join();
  const unlike = partitions.find((each) => shapes(each) !== shapes(first));
  if (unlike) {
    throw refusal(unlike.file.path, {
      rule: 'zero-vectors',
      message: `has ${unlike.vectors.length} vectors of ${shapes(unlike)}; expected ${first.vectors.length} of ${shapes(first)}, as in ${quoted(first.file.path)}`,
    });
  }
  return first.stage;
}

function modelStatesIn(file: ByteFile, budget: PickleBudget): ModelStates {
  return { file, entries: dictIn(file, 'the file', readTorchObject(file, budget).root) };
}

/** Approximate bytes of a tensor that is made of runs, and of a run when it is read. */
const TENSOR_BYTES = 1000;
const RUN_BYTES = 300;

class ZeroReader {
  readonly #folder: string;
  readonly #stage: Partition['stage'];
  readonly #partitions: readonly Partition[];
  readonly #models: readonly ModelStates[];
  readonly #budget: PickleBudget;
  readonly #changedAt: number;
  readonly #tensors = new Map<string, StoredTensor>();

  constructor(
    folder: string,
    stage: Partition['stage'],
    partitions: readonly Partition[],
    models: readonly ModelStates[],
    budget: PickleBudget,
  ) {
    this.#folder = folder;
    this.#stage = stage;
    this.#partitions = partitions;
    this.#models = models;
    this.#budget = budget;
    this.#changedAt = partitions.reduce((last, { file }) => Math.max(last, file.changedAt), 0);
  }

  /** All tensors, under the names and in the order of deepspeed/utils/zero_to_fp32.py. */
  read() {
    const [model] = this.#models;
    if (model === undefined) throw new Error('no model states');
    this.#addBuffers(model);
    this.#addFrozen(model);
    this.#addTrained(model);
    this.#addShared(model);
    const kept = this.#stage === 3 ? [] : this.#addOthers(model);
    const warnings =
      kept.length === 0
        ? []
        : [`read from the model states, because no process trains them: ${quotedNames(kept)}`];
    return { all: this.#tensors, warnings };
  }

  /** @param runs Runs of values that the tensor is made of. */
  #add({ file }: ModelStates, name: string, tensor: StoredTensor, runs = 1): void {
    if (this.#tensors.has(name)) throw nameTwice(file, name);
    this.#budget.spend(TENSOR_BYTES + RUN_BYTES * runs, refuseAt(file.path, tensorPlace(name)));
    this.#tensors.set(name, tensor);
  }

  /** Buffers, in float32 like the parameters. */
  #addBuffers(model: ModelStates): void {
    const module = dictIn(model.file, 'module', model.entries.get('module'));
    const names = model.entries.get('buffer_names') ?? null;
    if (!isKind(names, 'list')) throw wrongEntry(model.file, 'buffer_names', names, 'a list');
    const isBuffer = new Set(names.items);
    for (const [name, value] of module) {
      if (typeof name !== 'string' || !isBuffer.has(name) || !isKind(value, 'tensor')) continue;
      this.#add(model, name, value.dtype === 'F32' ? value : mapped(value, (number) => number));
    }
  }

  /** Parameters without gradients: whole, or in stage 3 a vector of each process. */
  #addFrozen(model: ModelStates): void {
    for (const { name, shape, elements } of shapesIn(model, 'frozen_param_shapes')) {
      const models = this.#stage === 3 ? this.#models : [model];
      const fragments = models.map(({ file, entries }) => {
        const key = 'frozen_param_fragments';
        const fragment = dictIn(file, key, entries.get(key)).get(name);
        if (fragment !== undefined && isKind(fragment, 'tensor')) return fragment;
        throw wrongEntry(file, `${key}.${name}`, fragment, 'a tensor');
      });
      const [first] = fragments;
      const size = this.#stage === 3 ? Math.ceil(elements / this.#partitions.length) : elements;
      const isRight = fragments.every(
        (each) => each.elements === size && each.dtype === first?.dtype && isContiguous(each),
      );
      if (
        first === undefined ||
        !isRight ||
        models.length !== (this.#stage === 3 ? this.#partitions.length : 1)
      ) {
        throw refusal(model.file.path, {
          rule: 'zero-frozen',
          place: tensorPlace(name),
          message: `has fragments of ${fragments.map((each) => each.elements).join(', ')} elements; expected ${size} in each of ${this.#stage === 3 ? this.#partitions.length : 1}`,
        });
      }
      const flat = fragments.map((each) => ({ ...each, shape: [each.elements], strides: [1] }));
      this.#add(
        model,
        name,
        this.#ofRuns({ name, shape, elements }, first.dtype, () =>
          runsOfSlices(flat, 0, size, elements),
        ),
        flat.length,
      );
    }
  }

  #addTrained(model: ModelStates): void {
    const groups = groupsIn(model);
    if (this.#stage === 3) this.#addSlices(model, groups.flat());
    else this.#addGroups(model, groups);
  }

  /** Stages 1 and 2: the parameters of a group one after the other, cut into one part for each process. */
  #addGroups(model: ModelStates, groups: readonly (readonly ParameterShape[])[]): void {
    const world = this.#partitions.length;
    const [first] = this.#partitions;
    if (first === undefined || groups.length !== first.vectors.length) {
      throw refusal(model.file.path, {
        rule: 'zero-groups',
        place: 'entry "param_shapes"',
        message: `has ${groups.length} groups of parameters; the processes have ${first?.vectors.length}`,
      });
    }
    for (const [index, shapes] of groups.entries()) {
      const vectors = this.#partitions.flatMap(({ vectors: all }) => all[index] ?? []);
      const available = vectors.reduce((sum, { elements }) => sum + elements, 0);
      const needed = shapes.reduce((sum, { elements }) => sum + elements, 0);
      const align = (count: number) => 2 * world * Math.ceil(count / (2 * world));
      if (available < needed || align(available) !== align(needed)) {
        throw this.#wrongSum(`group ${index}`, available, needed, 2 * world - 1);
      }
      let start = 0;
      for (const shape of shapes) {
        const from = start;
        const dtype = vectors[0]?.dtype ?? 'F32';
        this.#add(
          model,
          shape.name,
          this.#ofRuns(shape, dtype, () => runsOfRange(vectors, from, shape.elements)),
          runCount(vectors, from, shape.elements),
        );
        start += shape.elements;
      }
    }
  }

  /** Stage 3: of each parameter a part for each process; the last one is padded. */
  #addSlices(model: ModelStates, shapes: readonly ParameterShape[]): void {
    const world = this.#partitions.length;
    const sizes = this.#partitions.map(({ vectors }) => vectors.map(({ elements }) => elements));
    const needed = shapes.reduce((sum, { elements }) => sum + Math.ceil(elements / world), 0);
    for (const [rank, own] of sizes.entries()) {
      const available = own.reduce((sum, size) => sum + size, 0);
      if (available !== needed || own.join() !== sizes[0]?.join()) {
        throw this.#wrongSum(`process ${rank}`, available, needed, 0);
      }
    }
    let start = 0;
    for (const shape of shapes) {
      const from = start;
      const size = Math.ceil(shape.elements / world);
      const [first] = this.#partitions;
      const dtype = first?.vectors[0]?.dtype ?? 'F32';
      const ranks = size === 0 ? 0 : Math.ceil(shape.elements / size);
      const runs = () =>
        this.#partitions
          .slice(0, ranks)
          .flatMap(({ vectors }, rank) =>
            runsOfRange(vectors, from, Math.min(size, shape.elements - rank * size)),
          );
      // All processes have vectors of the same sizes.
      const count = ranks * runCount(first?.vectors ?? [], from, size);
      this.#add(model, shape.name, this.#ofRuns(shape, dtype, runs), count);
      start += size;
    }
  }

  #wrongSum(place: string, available: number, needed: number, padding: number) {
    return refusal(this.#folder, {
      rule: 'zero-sum',
      place,
      message: `holds ${available} elements; expected ${needed}${padding > 0 ? `, and padding of at most ${padding}` : ''}`,
      suggestion:
        'copy the files of all processes of one step: files of another run may be among them',
    });
  }

  /** Names of one parameter: all have the values of the one that is stored. */
  #addShared(model: ModelStates): void {
    const shared = model.entries.get('shared_params') ?? null;
    if (shared === null) return;
    for (const [name, stored] of dictIn(model.file, 'shared_params', shared)) {
      const tensor = typeof stored === 'string' ? this.#tensors.get(stored) : undefined;
      if (typeof name !== 'string' || !tensor) continue;
      this.#budget.spend(TENSOR_BYTES, refuseAt(model.file.path, tensorPlace(name)));
      this.#tensors.set(name, tensor);
    }
  }

  /** Tensors of the module that are neither trained nor listed as frozen: stage 1 lists none. */
  #addOthers(model: ModelStates): string[] {
    const kept: string[] = [];
    for (const [name, value] of dictIn(model.file, 'module', model.entries.get('module'))) {
      if (typeof name !== 'string' || this.#tensors.has(name) || !isKind(value, 'tensor')) continue;
      this.#tensors.set(name, value);
      kept.push(name);
    }
    return kept;
  }

  #ofRuns(
    { shape, elements }: ParameterShape,
    dtype: StoredDtype,
    runs: () => readonly StoredTensor[],
  ): StoredTensor {
    const flat = tensorOfParts(this.#folder, dtype, [elements], this.#changedAt, () => {
      let at = 0;
      return runs().map((values) => {
        const offsets = [at];
        at += values.elements;
        return { offsets, sizes: values.shape, values };
      });
    });
    return { ...flat, shape, strides: contiguousStrides(shape) };
  }
}

/** A range of vectors that follow each other. */
function runsOfRange(
  vectors: readonly StoredTensor[],
  from: number,
  count: number,
): StoredTensor[] {
  const runs: StoredTensor[] = [];
  const starts = startsOf(vectors);
  for (let at = lastUpTo(starts, from); at < vectors.length; at++) {
    const [vector, start = 0] = [vectors[at], starts[at]];
    if (vector === undefined || start >= from + count) break;
    const first = Math.max(from, start);
    const last = Math.min(from + count, start + vector.elements);
    if (first < last) runs.push(narrow(vector, 0, first - start, last - first));
  }
  return runs;
}

/** Number of runs of a range. */
function runCount(vectors: readonly StoredTensor[], from: number, count: number): number {
  const starts = startsOf(vectors);
  return count === 0 ? 0 : lastUpTo(starts, from + count - 1) - lastUpTo(starts, from) + 1;
}

const knownStarts = new WeakMap<readonly StoredTensor[], readonly number[]>();

/** Position of the first element of each vector in all of them. Kept: each parameter of a folder asks for it. */
function startsOf(vectors: readonly StoredTensor[]): readonly number[] {
  const known = knownStarts.get(vectors);
  if (known !== undefined) return known;
  let next = 0;
  const starts = vectors.map(({ elements }) => {
    const start = next;
    next += elements;
    return start;
  });
  knownStarts.set(vectors, starts);
  return starts;
}

/** Index of the last number that is at most `limit`, among numbers in ascending order; 0 without one. */
function lastUpTo(numbers: readonly number[], limit: number): number {
  let [low, high] = [0, numbers.length - 1];
  while (low < high) {
    const middle = Math.ceil((low + high) / 2);
    if ((numbers[middle] ?? 0) <= limit) low = middle;
    else high = middle - 1;
  }
  return Math.max(0, low);
}

/** The same range of one vector of each process, without the padding at the end. */
function runsOfSlices(
  vectors: readonly StoredTensor[],
  from: number,
  size: number,
  elements: number,
): StoredTensor[] {
  return vectors.flatMap((vector, rank) =>
    runsOfRange([vector], from, Math.min(size, Math.max(0, elements - rank * size))),
  );
}

function groupsIn(model: ModelStates): readonly (readonly ParameterShape[])[] {
  const value = model.entries.get('param_shapes') ?? null;
  if (!isKind(value, 'list')) throw wrongEntry(model.file, 'param_shapes', value, 'a list');
  const seen = new Set<string>();
  return value.items.map((group) => shapesOf(model, 'param_shapes', group, seen));
}

const nameTwice = ({ path }: ByteFile, name: string) =>
  refusal(path, {
    rule: 'zero-name-once',
    place: tensorPlace(name),
    message:
      'has two sources of values: buffers, frozen and trained parameters have names of their own',
  });

/** Shapes of an entry; none if it is None. */
function shapesIn(model: ModelStates, key: string): readonly ParameterShape[] {
  const value = model.entries.get(key) ?? null;
  return value === null ? [] : shapesOf(model, key, value);
}

/** @param seen Names in other dicts, to which the names of this one are added. */
function shapesOf(
  model: ModelStates,
  key: string,
  value: PickleValue,
  seen = new Set<string>(),
): readonly ParameterShape[] {
  const shapes: ParameterShape[] = [];
  for (const [name, size] of dictIn(model.file, key, value)) {
    const numbers =
      isKind(size, 'opaque') && size.type === 'torch.Size' ? size.args.items[0] : size;
    const isList = numbers !== undefined && (isKind(numbers, 'tuple') || isKind(numbers, 'list'));
    const shape = isList ? numbers.items : undefined;
    if (typeof name !== 'string' || !areNatural(shape)) {
      throw wrongEntry(model.file, key, size, 'the sizes of a parameter');
    }
    // At the first name: many groups can be one dict of many parameters.
    if (seen.size === seen.add(name).size) throw nameTwice(model.file, name);
    const elements = shape.includes(0) ? 0 : elementCount(shape);
    if (
      elements === undefined ||
      storedBytes(elements, 'F64') === undefined ||
      shape.length > MAX_RANK
    ) {
      throw refuseAt(model.file.path, tensorPlace(name))(
        'zero-shape',
        `has the sizes ${shapeText(shape)}; expected at most ${MAX_RANK}, of a number of bytes that can be counted`,
      );
    }
    shapes.push({ name, shape, elements });
  }
  return shapes;
}

const MAX_RANK = 8;

const areNatural = (values: readonly PickleValue[] | undefined): values is readonly number[] =>
  values?.every((value) => isNatural(value)) === true;
