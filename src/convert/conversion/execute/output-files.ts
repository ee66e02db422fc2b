/** The files of an output: its shards, their index, and their contents. */

import { usageError } from '../../../base/errors.js';
import { INDEX_FILE } from '../../../base/files/config-names.js';
import type { ByteSink } from '../../../base/files/write-whole.js';
import { setting } from '../../../base/text/setting.js';
import { sumOf } from '../../../base/values.js';
import { SMALL_FILE } from '../../../checkpoint/checkpoint-rules.js';
import type { Container } from '../../../checkpoint/formats.js';
import { isGgmlName } from '../../../checkpoint/gguf/ggml-types.js';
import { planGguf, writeGguf } from '../../../checkpoint/gguf/write-gguf.js';
import { FORMAT_KEY } from '../../../checkpoint/safetensors/read-safetensors.js';
import {
  planSafetensors,
  writeSafetensors,
} from '../../../checkpoint/safetensors/write-safetensors.js';
import { MAX_SMALL_TENSORS } from '../../../checkpoint/shards/open-shards.js';
import { contiguousStrides } from '../../../checkpoint/stored-tensor.js';
import type {
  Writable,
  WritableDict,
  WritableTensor,
} from '../../../checkpoint/torch/pickle/writable.js';
import { planTorch } from '../../../checkpoint/torch/write-torch.js';
import { writeZip } from '../../../checkpoint/torch/zip/write-zip.js';
import type { ConversionPlan, PlannedTensor } from '../plan/conversion-plan.js';

/** A safetensors file of the output. */
export interface Shard {
  /** `model.safetensors`, `model-00001-of-00003.safetensors`, or the output's own name. */
  readonly file: string;
  readonly tensors: readonly string[];
  /** Bytes of the tensors. */
  readonly bytes: number;
}

/** Default size of the largest shard: 5 GB, as on the Hugging Face hub. */
export const DEFAULT_SHARD_BYTES = 5e9;

/** Maximum number of shards; more indicate a wrong size. */
const MOST_SHARDS = 99_999;

/**
 * Fills shards in the order of the tensors; a larger tensor gets its own.
 * @throws UserError when there would be too many shards for their names.
 */
export function shardsOf(tensors: readonly PlannedTensor[], shardBytes: number): Shard[] {
  const shards: { tensors: string[]; bytes: number }[] = [];
  for (const { name, bytes } of tensors) {
    const last = shards.at(-1);
    if (last && last.bytes + bytes <= shardBytes) {
      last.tensors.push(name);
      last.bytes += bytes;
    } else shards.push({ tensors: [name], bytes });
  }
  if (shards.length > MOST_SHARDS) {
    throw usageError(
      `shards of ${shardBytes} bytes would be ${shards.length} files`,
      `choose a larger ${setting('shardSize')}`,
    );
  }
  const [first = { tensors: [], bytes: 0 }] = shards;
  if (shards.length <= 1) return [{ file: 'model.safetensors', ...first }];
  const digits = (number: number) => String(number).padStart(5, '0');
  return shards.map((shard, index) => ({
    file: `model-${digits(index + 1)}-of-${digits(shards.length)}.safetensors`,
    ...shard,
  }));
}

/** The index of several shards, in the format of the Hugging Face hub. */
function indexOfShards(shards: readonly Shard[]): string {
  const total_size = sumOf(shards, ({ bytes }) => bytes);
  const entries = shards.flatMap(({ file, tensors }) =>
    tensors.map((name) => [name, file] as const),
  );
  const weight_map = Object.fromEntries(entries.sort(([a], [b]) => (a < b ? -1 : 1)));
  return `${JSON.stringify({ metadata: { total_size }, weight_map }, null, 2)}\n`;
}

/** Bytes of a tensor; called once per write. */
export type ValuesOf = (tensor: PlannedTensor) => AsyncIterable<Uint8Array>;

export interface OutputFile {
  /** Name in the output's folder. */
  readonly name: string;
  readonly bytes: number;
  readonly tensors: readonly string[];
  fill(sink: ByteSink, valuesOf: ValuesOf): Promise<void>;
}

/** For files without tensors, and for sizes. */
export const noValues: ValuesOf = () => {
  throw new Error('no values of tensors are expected');
};

/** Metadata and config that accompany the tensors. */
export interface AccompanyingData {
  /** Training steps, if known. */
  readonly step: number | bigint | null;
  /** Text of the new config, if any, and its value for a PyTorch file; null for none. */
  readonly config: { readonly text: string | null; readonly value: Writable } | null;
  /** Name of the config's file. */
  readonly configName: string;
  /** Strings from the input's metadata. */
  readonly metadata: ReadonlyMap<string, string>;
}

/** Contents of the files of an output. */
interface OutputContents {
  /** Name of the output, when it is one file. */
  readonly name: string;
  readonly plan: ConversionPlan;
  readonly shards: readonly Shard[];
  readonly accompanying: AccompanyingData;
}

/** Safetensors files, their index when there are several, and the config. */
function safetensorsFiles({ plan, shards, accompanying }: OutputContents): OutputFile[] {
  const byName = new Map(plan.tensors.map((tensor) => [tensor.name, tensor]));
  // Many tensors are read only from shards that are not small together.
  const areMany = shards.length > 1 && plan.tensors.length > MAX_SMALL_TENSORS;
  const least = areMany ? Math.ceil(SMALL_FILE / shards.length) : 0;
  const files = shards.map((shard): OutputFile => {
    const tensors = shard.tensors.flatMap((name) => byName.get(name) ?? []);
    const metadata = metadataOf(tensors, accompanying);
    return {
      name: shard.file,
      bytes: planSafetensors(tensors, metadata, least).fileBytes,
      tensors: shard.tensors,
      fill: (sink, valuesOf) =>
        writeSafetensors(
          sink,
          tensors.map((tensor) => ({
            name: tensor.name,
            dtype: tensor.dtype,
            shape: tensor.shape,
            chunks: () => valuesOf(tensor),
          })),
          metadata,
          least,
        ),
    };
  });
  return [
    ...files,
    ...(shards.length > 1 ? [textFile(INDEX_FILE, indexOfShards(shards))] : []),
    ...(accompanying.config?.text
      ? [textFile(accompanying.configName, accompanying.config.text)]
      : []),
  ];
}

/**
 * Metadata with the aliases of tensors, where loaders look for them.
 * @throws UserError when an alias has another meaning there.
 */
function metadataOf(
  tensors: readonly PlannedTensor[],
  { step, metadata }: AccompanyingData,
): ReadonlyMap<string, string> {
  const taken = [FORMAT_KEY, ...(step === null ? [] : ['step'])];
  const lost = taken.find((key) => tensors.some(({ aliases }) => aliases.includes(key)));
  if (lost !== undefined) {
    throw usageError(
      `a safetensors file cannot hold a tied tensor named ${lost}: its metadata use that name`,
      'write a PyTorch file: let the name end in .pt',
    );
  }
  return new Map([
    ...metadata,
    ...(step === null ? [] : [['step', String(step)] as const]),
    ...tensors.flatMap(({ name, aliases }) => aliases.map((alias) => [alias, name] as const)),
  ]);
}

function textFile(name: string, text: string): OutputFile {
  const bytes = Buffer.from(text);
  return { name, bytes: bytes.length, tensors: [], fill: (sink) => sink.write(bytes) };
}

/**
 * A PyTorch file in the format of training programs, `{step, model_state_dict, config}`; only the state dict when
 * neither step nor config is known. Every alias uses the storage of its tensor.
 * Its name without the ending is the folder in the archive, as in PyTorch.
 */
function torchFile({ name, plan, accompanying }: OutputContents): OutputFile {
  const planned = (valuesOf: ValuesOf) =>
    planTorch(trainingDict(plan, accompanying, valuesOf), rootOf(name));
  return {
    name,
    bytes: planned(noValues).fileBytes,
    tensors: plan.tensors.map((tensor) => tensor.name),
    fill: (sink, valuesOf) => writeZip(sink, planned(valuesOf)),
  };
}

function trainingDict(
  plan: ConversionPlan,
  { step, config }: AccompanyingData,
  valuesOf: ValuesOf,
): WritableDict {
  const tensors = new Map<string, WritableTensor>();
  for (const planned of plan.tensors) {
    const { dtype, shape, bytes } = planned;
    const storage = { bytes, chunks: () => valuesOf(planned) };
    const strides = contiguousStrides(shape);
    const tensor: WritableTensor = { kind: 'tensor', dtype, shape, strides, offset: 0, storage };
    for (const each of [planned.name, ...planned.aliases]) tensors.set(each, tensor);
  }
  const entries = plan.names.flatMap((each): [Writable, Writable][] => {
    const tensor = tensors.get(each);
    return tensor ? [[each, tensor]] : [];
  });
  const stateDict: WritableDict = {
    kind: 'dict',
    type: 'collections.OrderedDict',
    entries: new Map(entries),
  };
  if (config === null && step === null) return stateDict;
  return {
    kind: 'dict',
    type: 'dict',
    entries: new Map<Writable, Writable>([
      ['step', step ?? 0],
      ['model_state_dict', stateDict],
      ...(config ? [['config', config.value] as const] : []),
    ]),
  };
}

/** A GGUF file; its metadata takes the place of the config. */
function ggufFile({ name, plan }: OutputContents): OutputFile {
  const keyValues = plan.gguf?.keyValues ?? new Map();
  const tensors = (valuesOf: ValuesOf) =>
    plan.tensors.map((tensor) => {
      const { dtype, blocks, shape } = tensor;
      if (!isGgmlName(dtype)) throw new Error(`${tensor.name} of ${dtype} in a GGUF file`);
      return { name: tensor.name, type: blocks ?? dtype, shape, chunks: () => valuesOf(tensor) };
    });
  return {
    name,
    bytes: planGguf(keyValues, tensors(noValues)).fileBytes,
    tensors: plan.tensors.map((tensor) => tensor.name),
    fill: (sink, valuesOf) => writeGguf(sink, keyValues, tensors(valuesOf)),
  };
}

/** The file's name without its ending, if valid as a folder; else PyTorch's default. */
function rootOf(name: string): string {
  const stem = name.replace(/\.[^.]*$/, '');
  return /^[\w-][\w.-]*$/.test(stem) ? stem : 'archive';
}

/** The files of an output by its container: tensors, and the config where it has a file of its own. */
export const TENSOR_FILES: Readonly<Record<Container, (output: OutputContents) => OutputFile[]>> = {
  safetensors: safetensorsFiles,
  pt: (output) => [torchFile(output)],
  gguf: (output) => [ggufFile(output)],
};
