/** Conversions of the command in this process, and readers of their output. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { type Problem, UserError } from '../../../src/base/errors.js';
import { decodeValues } from '../../../src/base/tensor/decode-values.js';
import type { Checkpoint } from '../../../src/checkpoint/checkpoint.js';
import { openCheckpoint } from '../../../src/checkpoint/open.js';
import type { StoredTensor } from '../../../src/checkpoint/stored-tensor.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { progressDisplay, stepProgress } from '../../../src/cli/progress.js';
import { convert as convertJob } from '../../../src/convert/conversion/conversion.js';
import type { ConversionResult } from '../../../src/convert/conversion/conversion-result.js';
import type { ConversionRequest } from '../../../src/convert/conversion/job.js';
import { openModelCheckpoint } from '../../../src/input/model-input/gguf/gguf-checkpoint.js';
import { folderOf } from '../../checkpoint/temp-folder.js';

export type ConvertFlags = Omit<ConversionRequest, 'checkpoint' | 'out' | 'display'>;

export type Flags = Partial<ConvertFlags> & { readonly stateDict?: string };

/** Defaults of the command. The memory is that of the process of the tests. */
export const DEFAULTS: ConvertFlags = {
  layout: undefined,
  target: undefined,
  merge: undefined,
  rank: undefined,
  maxError: undefined,
  mergeLora: undefined,
  maxPositions: undefined,
  extend: undefined,
  tie: undefined,
  dtype: undefined,
  quantize: undefined,
  group: undefined,
  dequantize: false,
  saturate: false,
  dialect: undefined,
  heads: undefined,
  container: undefined,
  shardSize: undefined,
  maxMemory: 8e9,
  config: undefined,
  family: undefined,
  noConfig: false,
  set: undefined,
  seed: undefined,
  engine: 'auto',
  device: undefined,
  output: undefined,
  threads: undefined,
  dryRun: false,
  resume: false,
  prove: false,
  context: undefined,
  check: true,
  force: false,
  warn: async () => {},
};

export interface Conversion extends ConversionResult {
  readonly warnings: readonly Problem[];
}

/** Converts a checkpoint, and checks the output. */
export async function convert(input: string, output: string, flags: Flags): Promise<Conversion> {
  const { stateDict, ...settings } = flags;
  const warnings: Problem[] = [];
  const warn = async (more: readonly Problem[]) => {
    warnings.push(...more);
    await settings.warn?.(more);
  };
  const checkpoint = openModelCheckpoint(input, { stateDict });
  try {
    const quiet = { quiet: true };
    const display = { ...progressDisplay(quiet), ...stepProgress(quiet) };
    const job = { ...DEFAULTS, ...settings, checkpoint, out: output, display, warn };
    const result = await convertJob(job);
    return { ...result, warnings };
  } finally {
    checkpoint.close();
  }
}

/** Converts into a new folder, and returns the path of the output. */
export async function convertTo(
  name: string,
  input: string,
  flags: Flags,
): Promise<Conversion & { readonly file: string }> {
  const file = path.join(folderOf({}), name);
  return { ...(await convert(input, file, flags)), file };
}

/** Refusal of a conversion. Throws if files remain in the folder of the output. */
export async function refused(input: string, flags: Flags, name = 'out.pt'): Promise<UserError> {
  const folder = folderOf({});
  const error = await convert(input, path.join(folder, name), flags).catch((thrown) => thrown);
  if (!(error instanceof UserError)) throw new Error('not refused', { cause: error });
  const left = fs.readdirSync(folder);
  if (left.length > 0) throw new Error(`the refusal left ${left}`, { cause: error });
  return error;
}

/** All texts of a refusal. */
export const textOf = ({ message, suggestion, problems }: UserError): string =>
  [
    message,
    suggestion,
    ...problems.flatMap((each) => [each.file, each.path, each.message, each.suggestion]),
  ].join('\n');

/** Opens a checkpoint for one function. */
export function look<T>(file: string, at: (checkpoint: Checkpoint) => T): T {
  const checkpoint = openCheckpoint(file);
  try {
    return at(checkpoint);
  } finally {
    checkpoint.close();
  }
}

/** Tensors under all their names, including the names in metadata. */
export const namedTensors = ({ tensors, aliases }: Checkpoint): Map<string, StoredTensor> =>
  new Map([
    ...tensors,
    ...[...aliases].flatMap(([alias, name]): [string, StoredTensor][] => {
      const tensor = tensors.get(name);
      return tensor ? [[alias, tensor]] : [];
    }),
  ]);

/** Dtype, shape and hash of each tensor, under all names, sorted. */
export const digests = (file: string): Record<string, string> =>
  look(file, (checkpoint) =>
    Object.fromEntries(
      [...namedTensors(checkpoint)]
        .map(([name, tensor]) => [name, digest(tensor)] as const)
        .sort(([a], [b]) => (a < b ? -1 : 1)),
    ),
  );

/** Digest of one tensor. */
export const digestOf = (file: string, name: string): string | undefined => digests(file)[name];

export const digest = (tensor: StoredTensor): string =>
  `${tensor.dtype} [${tensor.shape}] ${sha256(readTensor(tensor))}`;

const sha256 = (bytes: Uint8Array): string => createHash('sha256').update(bytes).digest('hex');

/** Numbers of a tensor. */
export const numbersOf = (file: string, name: string): Float64Array =>
  look(file, (checkpoint) => {
    const tensor = namedTensors(checkpoint).get(name);
    if (tensor === undefined) throw new Error(`no ${name} in ${file}`);
    const numbers = new Float64Array(tensor.elements);
    decodeValues(tensor.dtype, readTensor(tensor), numbers);
    return numbers;
  });
