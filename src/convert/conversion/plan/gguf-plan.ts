/**
 * Turns the plan of a conversion into that of a GGUF file: the names, values and types of llama.cpp, and its metadata.
 */
import path from 'node:path';
import { usageError } from '../../../base/errors.js';
import { pathKind } from '../../../base/files/mounted.js';
import type { Shape } from '../../../base/tensor/dtype.js';
import { encode } from '../../../base/tensor/encode.js';
import { setting } from '../../../base/text/setting.js';
import type { Checkpoint } from '../../../checkpoint/checkpoint.js';
import { computedTensor } from '../../../checkpoint/computed-file.js';
import type { WritableBlocks } from '../../../checkpoint/gguf/blocks/encode-blocks.js';
import { ggmlType } from '../../../checkpoint/gguf/ggml-types.js';
import type { GgufKeyValues, GgufValue } from '../../../checkpoint/gguf/gguf-scanner.js';
import {
  type MatrixRole,
  MIXTURES,
  type MixtureModel,
  type MixtureName,
  mixtureType,
} from '../../../checkpoint/gguf/mixtures.js';
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
import { matrixRoles } from '../../../input/model-input/gguf/matrix-roles.js';
import type { ConversionJob } from '../job.js';
import type { ConversionInput, ConversionPlan, PlannedTensor } from './conversion-plan.js';
import { tensorNamed } from './conversion-plan.js';
import { importanceFor } from './gguf-importance.js';
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
  const types =
    job.mixture &&
    blockTypes(job.mixture, view, matrixRoles(found.model).model, job.imatrix !== undefined);
  const tensors = [...view].map(([name, tensor]) =>
    planned(name, tensor, typeFor(name, tensor, job, types)),
  );
  const importance = job.imatrix === undefined ? undefined : importanceFor(job.imatrix, tensors);
  const tokenizer = tokenizerMetadata(
    folderOf(checkpoint.path),
    found.model.embedding.weight.shape[0] ?? 0,
    found.settings,
  );
  const keyValues = metadataOf(input, found, view, tokenizer.keys, importance?.keys);
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
        ...(job.mixture ? fallbackNotes(job.mixture, tensors) : []),
        ...(importance?.notes ?? []),
      ],
      gguf: {
        architecture: found.architecture,
        keyValues,
        ...(importance && { importances: importance.values, importanceSha256: importance.sha256 }),
      },
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
  job: ConversionJob,
  types: ReadonlyMap<string, WritableBlocks | 'F16'> | undefined,
): FileType {
  if (!isMatrix(name, shape)) return { dtype: 'F32' };
  if (types !== undefined) {
    const type = types.get(name);
    return type === undefined || type === 'F16' ? { dtype: 'F16' } : { dtype: 'F32', blocks: type };
  }
  const { dtype: asked = KEPT.find((each) => each === dtype) ?? 'F32' } = job;
  return { dtype: KEPT.find((each) => each === asked) ?? 'F32' };
}

/** Whether a tensor is a matrix that products or look-ups read. */
const isMatrix = (name: string, shape: Shape): boolean =>
  shape.length >= 2 && !IN_FLOAT32.test(name);

/** Types of all matrices in a mixture. */
function blockTypes(
  mixture: MixtureName,
  view: ReadonlyMap<string, StoredTensor>,
  model: MixtureModel,
  hasImportance: boolean,
): ReadonlyMap<string, WritableBlocks | 'F16'> {
  const matrices = [...view].filter(([name, { shape }]) => isMatrix(name, shape));
  const isTied = !view.has('output.weight');
  const attentions = matrices
    .filter(([name]) => VALUES.test(name))
    .map(([name]) => layerIn(name))
    .toSorted((a, b) => a - b);
  return new Map(
    matrices.map(([name, { shape }]) => {
      const role = roleOf(name, isTied);
      const layer = layerIn(name);
      const index = role === 'value' ? attentions.indexOf(layer) : layer;
      const matrix = { role, index, columns: shape.at(-1) ?? 1 };
      return [name, mixtureType(mixture, matrix, model, hasImportance)];
    }),
  );
}

const layerIn = (name: string): number => Number(/^blk\.(\d+)\./.exec(name)?.[1] ?? 0);

/** Matrices of values, alone or with queries and keys. */
const VALUES = /attn_(?:v|qkv|kv_b)\.weight$/;

/** Uses of matrices, by parts of their names. */
const ROLES: readonly (readonly [pattern: RegExp, role: MatrixRole])[] = [
  [VALUES, 'value'],
  [/attn_k\.weight$/, 'key'],
  [/attn_q\.weight$/, 'query'],
  [/attn_output\.weight$/, 'attentionOutput'],
  [/ffn_down/, 'down'],
];

function roleOf(name: string, isTied: boolean): MatrixRole {
  if (name === 'output.weight') return 'head';
  if (name === 'token_embd.weight') return isTied ? 'head' : 'embedding';
  return ROLES.find(([pattern]) => pattern.test(name))?.[1] ?? 'other';
}

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

/** Notes about matrices whose rows are no whole number of the blocks of their types. */
function fallbackNotes(mixture: MixtureName, tensors: readonly PlannedTensor[]): string[] {
  const matrices = tensors.filter(({ name, shape }) => isMatrix(name, shape));
  const columnsOf = ({ shape }: PlannedTensor) => shape.at(-1) ?? 1;
  const floats = matrices.filter(({ blocks }) => blocks === undefined).length;
  const isSuper = ggmlType(MIXTURES[mixture].base).values > 32;
  const shorter = isSuper
    ? matrices.filter((each) => each.blocks && columnsOf(each) % ggmlType('Q4_K').values !== 0)
    : [];
  return [
    ...(shorter.length > 0
      ? [
          `${shorter.length} tensors have blocks of 32 values, as in llama.cpp: their rows are not a multiple of 256 values`,
        ]
      : []),
    ...(floats > 0
      ? [`${floats} tensors stay in f16: their rows are not a multiple of 32 values`]
      : []),
  ];
}

function metadataOf(
  { job }: ConversionInput,
  found: GgufModel,
  view: ReadonlyMap<string, StoredTensor>,
  tokenizer: ReadonlyMap<string, GgufValue>,
  importance: ReadonlyMap<string, GgufValue> = new Map(),
): GgufKeyValues {
  const usual = view.get('blk.0.attn_output.weight')?.dtype.toLowerCase() ?? 'f32';
  const type = fileTypeNumber((job.mixture ?? job.dtype ?? usual).toLowerCase());
  const text = (value: string): GgufValue => ({ type: 'string', value });
  return new Map<string, GgufValue>([
    ['general.architecture', text(found.architecture)],
    ['general.name', text(path.basename(path.resolve(job.checkpoint.path)))],
    ...(type === undefined ? [] : [['general.file_type', { type: 'u32', value: type }] as const]),
    ...(job.mixture ? [['general.quantization_version', { type: 'u32', value: 2 }] as const] : []),
    ...architectureKeys(found, view),
    ...tokenizer,
    ...importance,
  ]);
}
