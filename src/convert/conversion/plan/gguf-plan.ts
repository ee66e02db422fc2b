/**
 * Turns the plan of a conversion into that of a GGUF file: the names, values and types of llama.cpp, and its metadata.
 */
import path from 'node:path';
import { usageError } from '../../../base/errors.js';
import { pathKind } from '../../../base/files/mounted.js';
import { encode } from '../../../base/tensor/encode.js';
import { setting } from '../../../base/text/setting.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { computedTensor } from '../../../checkpoint/computed-file.js';
import type { WritableBlocks } from '../../../checkpoint/gguf/ggml-types.js';
import { ggmlType } from '../../../checkpoint/gguf/ggml-types.js';
import type { GgufKeyValues, GgufValue } from '../../../checkpoint/gguf/gguf-scanner.js';
import { ggufBytes } from '../../../checkpoint/gguf/write-gguf.js';
import type { StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { fileTypeNumber } from '../../../input/model-input/gguf/gguf-checkpoint.js';
import type { GgufModel } from '../../../input/model-input/gguf/gguf-metadata.js';
import {
  architectureKeys,
  ggufModelOf,
  ggufNotes,
  ropeTensors,
} from '../../../input/model-input/gguf/gguf-metadata.js';
import { tokenizerMetadata } from '../../../input/model-input/gguf/gguf-tokenizer.js';
import { tensorsForGguf } from '../../../input/model-input/gguf/gguf-weights.js';
import type { ConversionInput, ConversionPlan, PlannedTensor } from './conversion-plan.js';
import { tensorNamed } from './conversion-plan.js';
import { ignoredNote, isIgnoredNote } from './model-configs.js';

/** A type of a tensor in the file. */
interface FileType {
  readonly dtype: 'F32' | 'F16' | 'BF16';
  readonly blocks?: WritableBlocks;
}

/**
 * A conversion with a GGUF file as its output: the input under llama.cpp's names, and every output tensor a copy of it.
 * @throws UserError when the model has no architecture there, or the conversion also computes values.
 */
export function asGgufPlan(
  input: ConversionInput,
  plan: ConversionPlan,
): { readonly input: ConversionInput; readonly plan: ConversionPlan } {
  const { job, source } = input;
  const { checkpoint, target, set = [] } = job;
  if (source === undefined || target !== undefined || set.length > 0) {
    throw usageError(
      source === undefined
        ? 'a GGUF file needs the config of its model, found none'
        : `a GGUF file is written from the config of IN, found ${setting('target')} or ${setting('set')}`,
      source === undefined
        ? `name one with ${setting('config', 'FILE')}`
        : 'convert into safetensors first, and that into GGUF',
    );
  }
  const found = ggufModelOf(source);
  const { view, unknown } = ggufView(checkpoint, plan, found);
  const [first] = unknown;
  if (first !== undefined) {
    throw usageError(
      `a GGUF file of ${found.architecture} has no place for ${first}`,
      'write safetensors instead',
    );
  }
  const tensors = [...view].map(([name, tensor]) =>
    planned(name, tensor, typeFor(name, tensor, input, view)),
  );
  const tokenizer = tokenizerMetadata(
    folderOf(checkpoint.path),
    found.model.embedding.weight.shape[0] ?? 0,
    found.settings,
  );
  const keyValues = metadataOf(input, found, view, tokenizer.keys);
  return {
    input: {
      ...input,
      job: { ...job, checkpoint: { ...checkpoint, tensors: view, aliases: new Map() } },
    },
    plan: {
      ...plan,
      tensors,
      names: tensors.map(({ name }) => name),
      leftOut: [
        ...plan.leftOut,
        ...(source.ignored?.names ?? []).map((name) => ({ name, why: NO_PLACE })),
      ],
      config: undefined,
      keepsConfig: false,
      notes: [
        ...plan.notes.filter((note) => !isIgnoredNote(note, source)),
        ...ignoredNote(source, NO_PLACE),
        ...ggufNotes(found),
        ...tokenizer.notes,
        ...roundedRows(job.blocks, tensors),
      ],
      gguf: { architecture: found.architecture, keyValues },
    },
  };
}

/** Reason for leaving out the tensors that transformers ignores. */
const NO_PLACE = 'a GGUF file has no place for them';

const folderOf = (file: string): string =>
  pathKind(file) === 'folder' ? file : path.dirname(file);

/** The tensors of the input as the GGUF file contains them. */
function ggufView(checkpoint: Checkpoint, plan: ConversionPlan, found: GgufModel) {
  const tensors = new Map<string, StoredTensor>();
  for (const { name, role, action } of plan.tensors) {
    if (role === 'buffer') continue;
    const stored = action.do === 'copy' ? tensorNamed(action.from, checkpoint) : undefined;
    if (stored === undefined) {
      throw usageError(
        `a GGUF file has copied tensors only; ${name} would be computed`,
        'convert into safetensors first, and that into GGUF',
      );
    }
    tensors.set(withPrefix(name, found), stored);
  }
  const { tensors: view, unknown } = tensorsForGguf(found.architecture, tensors, found.counts);
  const [origin] = checkpoint.files;
  for (const [name, numbers] of origin ? ropeTensors(found) : []) {
    view.set(name, numbersTensor(origin as NonNullable<typeof origin>, numbers));
  }
  return { view, unknown };
}

/** A tensor's name with the prefix of a whole model, which a file of the bare model lacks. */
function withPrefix(name: string, { architecture, settings }: GgufModel): string {
  if (settings.stored_prefix !== '') return name;
  if (name === 'lm_head.weight' || name === 'embed_out.weight') return name;
  if (architecture === 'gptneox') return `gpt_neox.${name}`;
  return `${['gpt2', 'bloom'].includes(architecture) ? 'transformer' : 'model'}.${name}`;
}

/** Numbers as a float32 tensor. */
function numbersTensor(
  origin: Checkpoint['files'][number],
  numbers: readonly number[],
): StoredTensor {
  const bytes = new Uint8Array(4 * numbers.length);
  encode('F32', Float64Array.from(numbers), bytes);
  return computedTensor(origin, {
    dtype: 'F32',
    shape: [numbers.length],
    bytes: bytes.length,
    fill: (target, position) => target.set(bytes.subarray(position, position + target.length)),
  });
}

/** Tensors that llama.cpp computes with in float32: norms, biases, routers, positions. */
const IN_FLOAT32 = /norm\.weight$|\.bias$|ffn_gate_inp|position_embd|^rope_/;

/** Types that llama.cpp reads unchanged. */
const KEPT = ['F32', 'F16', 'BF16'] as const;

function typeFor(
  name: string,
  { shape, dtype }: StoredTensor,
  { job }: ConversionInput,
  view: ReadonlyMap<string, StoredTensor>,
): FileType {
  if (shape.length < 2 || IN_FLOAT32.test(name)) return { dtype: 'F32' };
  if (job.blocks !== undefined) {
    if ((shape.at(-1) ?? 0) % ggmlType(job.blocks).values !== 0) return { dtype: 'F16' };
    return { dtype: 'F32', blocks: isHead(name, view) ? 'Q8_0' : job.blocks };
  }
  const { dtype: asked = KEPT.find((each) => each === dtype) ?? 'F32' } = job;
  return { dtype: KEPT.find((each) => each === asked) ?? 'F32' };
}

/** Whether a tensor is the head, which is most sensitive to 4 bits. A tied head is the embedding. */
const isHead = (name: string, view: ReadonlyMap<string, StoredTensor>): boolean =>
  name === (view.has('output.weight') ? 'output.weight' : 'token_embd.weight');

function planned(
  name: string,
  { shape }: StoredTensor,
  { dtype, blocks }: FileType,
): PlannedTensor {
  return {
    name,
    aliases: [],
    role: 'parameter',
    dtype,
    shape,
    bytes: ggufBytes({ type: blocks ?? dtype, shape }),
    action: { do: 'copy', from: name },
    ...(blocks && { blocks }),
  };
}

function roundedRows(
  blocks: WritableBlocks | undefined,
  tensors: readonly PlannedTensor[],
): string[] {
  if (blocks === undefined) return [];
  const others = tensors.filter(({ dtype, blocks: own }) => own === undefined && dtype === 'F16');
  if (others.length === 0) return [];
  return [`${others.length} tensors stay in f16: their rows are not a multiple of 32 values`];
}

function metadataOf(
  { job }: ConversionInput,
  found: GgufModel,
  view: ReadonlyMap<string, StoredTensor>,
  tokenizer: ReadonlyMap<string, GgufValue>,
): GgufKeyValues {
  const usual = view.get('blk.0.attn_output.weight')?.dtype.toLowerCase() ?? 'f32';
  const type = fileTypeNumber((job.blocks ?? job.dtype ?? usual).toLowerCase());
  const text = (value: string): GgufValue => ({ type: 'string', value });
  return new Map<string, GgufValue>([
    ['general.architecture', text(found.architecture)],
    ['general.name', text(path.basename(path.resolve(job.checkpoint.path)))],
    ...(type === undefined ? [] : [['general.file_type', { type: 'u32', value: type }] as const]),
    ...(job.blocks ? [['general.quantization_version', { type: 'u32', value: 2 }] as const] : []),
    ...architectureKeys(found, view),
    ...tokenizer,
  ]);
}
