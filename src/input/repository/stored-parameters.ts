/** Parameters of a checkpoint without a description, by the names, types and shapes of its tensors. */
import { STORED_DTYPES } from '../../base/tensor/dtype.js';
import { isRecord } from '../../base/values.js';
import type { Checkpoint } from '../../checkpoint/checkpoint.js';
import { quantizedPart } from '../../checkpoint/reconcile/faults.js';
import { viewsOf } from '../../checkpoint/sharing.js';
import { encodedBytes, type StoredTensor } from '../../checkpoint/stored-tensor.js';
import { type MlxSettings, mlxSettings } from '../../model/quantization/mlx-settings.js';

/** Numbers of values, tensors with several names once. */
export interface StoredParameters {
  /** Parameters, those of packed weights included. @count */
  readonly parameters: number;
  /** Values of buffers: statistics, positions, masks. @count */
  readonly bufferValues: number;
  /** Bytes of all tensors. @count */
  readonly bytes: number;
  /** Tensors of integers that are neither buffers nor in a known packing; their values are not counted. @count */
  readonly unknownTensors: number;
}

/**
 * Last parts of the names of buffers of floats. torch/nn/modules/batchnorm.py; the rotary embeddings of transformers; the
 * noise schedules of latent diffusion (ldm/models/diffusion/ddpm.py, register_schedule).
 */
const FLOAT_BUFFER =
  /^(?:running_mean|running_var|(?:original_)?inv_freq|masked_bias|betas|(?:sqrt_(?:one_minus_|recipm?1?_)?)?alphas_cumprod(?:_prev)?|log_one_minus_alphas_cumprod|sqrt_recipm1_alphas_cumprod|posterior_(?:variance|log_variance_clipped|mean_coef[12])|lvlb_weights)$/;

/**
 * @param checkpoint With the tensors of the file as they are stored, or with floats for packed weights.
 * @param config The `config.json` next to it: some layouts state their bits only there.
 */
export function storedParameters(
  { tensors }: Pick<Checkpoint, 'tensors'>,
  config?: unknown,
): StoredParameters {
  let [parameters, bufferValues, bytes, unknownTensors] = [0, 0, 0, 0];
  for (const { tensor, names } of viewsOf(tensors)) {
    bytes += encodedBytes(tensor);
    const [name = ''] = names;
    const role = roleOf(name, tensor, { tensors, config });
    if (role === 'parameter') parameters += tensor.elements;
    else if (role === 'buffer') bufferValues += tensor.elements;
    else if (role === 'unknown') unknownTensors++;
    else if (role !== 'part') parameters += role;
  }
  return { parameters, bufferValues, bytes, unknownTensors };
}

/** Purpose of a tensor. A number is the count of the parameters that are packed in it. */
type Role = 'parameter' | 'buffer' | 'part' | 'unknown' | number;

interface Surroundings {
  readonly tensors: Checkpoint['tensors'];
  readonly config: unknown;
}

function roleOf(name: string, tensor: StoredTensor, { tensors, config }: Surroundings): Role {
  const { dtype, shape, encoding } = tensor;
  const dot = name.lastIndexOf('.');
  const leaf = name.slice(dot + 1);
  const sibling = (other: string) => tensors.get(name.slice(0, dot + 1) + other);
  const isFloat = STORED_DTYPES[dtype].kind === 'float' || STORED_DTYPES[dtype].kind === 'complex';
  if (encoding !== undefined) return 'parameter';
  const packed =
    packedCount(leaf, tensor, sibling) ??
    countOfMlx(tensor, sibling, () =>
      isRecord(config) ? mlxSettings(config, name.slice(0, Math.max(0, dot))) : undefined,
    );
  if (packed !== undefined) return packed;
  if (!PACKED.has(leaf) && isScale(name, leaf, sibling, tensors)) return 'part';
  if (isFloat) return isFloatBuffer(leaf, shape) ? 'buffer' : 'parameter';
  // Words of a weight without a known layout.
  if (PACKED.has(leaf)) return 'unknown';
  // 8-bit integers with scales are weights, other integers positions, masks and counters.
  const isWeight = leaf === 'weight' && (dtype === 'I8' || dtype === 'U8');
  if (isWeight) return SCALES.some((scale) => sibling(scale)) ? 'parameter' : 'unknown';
  return isPackedInteger(leaf, tensor) ? 'unknown' : 'buffer';
}

/** Buffers of integers with two dimensions or more, other than those of `I64` and `BOOL`, which pack no weights. */
const INTEGER_BUFFER = /(?:position_ids|token_type_ids|index|indices|mask|bias|tid2eid)$/;

/** Whether a matrix of integers can hold packed values. A row of one dimension, such as positions, does not. */
const isPackedInteger = (leaf: string, { dtype, shape, elements }: StoredTensor): boolean =>
  /^[IU](?:8|16|32)$/.test(dtype) &&
  shape.length >= 2 &&
  (dtype === 'U8' ? shape.length === 2 : elements > Math.max(...shape)) &&
  !INTEGER_BUFFER.test(leaf);

/** Whether floats are a buffer. GPT-2 stores its causal mask as the bias of the attention, [1, 1, T, T]. */
const isFloatBuffer = (leaf: string, shape: readonly number[]): boolean =>
  FLOAT_BUFFER.test(leaf) ||
  (leaf === 'bias' && shape.length === 4 && shape[0] === 1 && shape[1] === 1);

/** Last parts of the names of packed weights. */
const PACKED: ReadonlySet<string> = new Set([
  ...['qweight', 'weight_packed', 'W_q', '_weight_qdata', 'q_weight', 'trellis', 'codes'],
]);

/**
 * Further tensors of a packed weight, by the last part of its name. exllamav2/linear.py, exllamav3/modules/quant/exl3.py
 * (get_tensors), aqlm/inference.py (QuantizedLinear).
 */
const PARTS_OF: Readonly<Record<string, readonly string[]>> = {
  q_weight: ['q_scale', 'q_scale_max', 'q_groups', 'q_perm', 'q_invperm'],
  trellis: ['su', 'sv', 'suh', 'svh', 'mcg', 'mul1'],
  codes: ['codebooks', 'scales'],
  W_q: ['scale', 'zero'],
};

type Sibling = (leaf: string) => StoredTensor | undefined;

/** Last parts of the names of scales, for weights of one value each. */
const SCALES = ['weight_scale', 'weight_scale_inv', 'SCB', 'scale'] as const;

/** Scales, zero points and tables of a quantized weight, whose tensor has the same prefix. */
function isScale(
  name: string,
  leaf: string,
  sibling: Sibling,
  tensors: Checkpoint['tensors'],
): boolean {
  const packings = Object.entries(PARTS_OF).filter(([, parts]) => parts.includes(leaf));
  if (packings.some(([packed]) => sibling(packed) !== undefined)) return true;
  // Zero points of MLX; other modules have biases of their own.
  if (leaf === 'biases') return sibling('weight')?.dtype === 'U32';
  if (packings.length > 0 && leaf !== 'scales') return isScaleOf8Bits(leaf, sibling);
  const weight = sibling('weight') ?? sibling('weight_packed') ?? sibling('qweight');
  if (quantizedPart(name) === undefined) {
    return QUANT_STATE.test(name) || isScaleOf8Bits(leaf, sibling);
  }
  // Scales of a key-value cache belong to no weight.
  if (leaf === 'k_scale' || leaf === 'v_scale') return true;
  if (leaf.endsWith('_scales')) {
    return sibling(`${leaf.slice(0, -'_scales'.length)}_blocks`) !== undefined;
  }
  const dot = name.lastIndexOf('.weight.');
  return dot < 0 ? weight !== undefined : tensors.has(name.slice(0, dot + 7));
}

const isScaleOf8Bits = (leaf: string, sibling: Sibling): boolean =>
  leaf === 'scale' && /^(?:I8|U8|F8)/.test(sibling('weight')?.dtype ?? '');

/** bitsandbytes/functional.py: QuantState.as_dict. */
const QUANT_STATE = /\.weight\.quant_state\.bitsandbytes__\w+$/;

/** Bits of a word of packed integers. */
const WORD = 32;

/** Rows and columns of a tile of EXL3. */
const TILE = 16;

/** Parameters of AQLM: codes [groups, groups, codebooks] of vectors in codebooks [codebooks, codes, outputs, inputs]. */
const countOfCodes = (
  [rows = 0, columns = 0]: readonly number[],
  codebooks: readonly number[] | undefined,
): number | undefined => {
  const [, , outputs = 0, inputs = 0] = codebooks ?? [];
  const count = rows * columns * outputs * inputs;
  return count > 0 ? count : undefined;
};

/**
 * Parameters of a weight of MLX: words [rows, inputs · bits / 32], and scales [rows, inputs / group]. Undefined for other
 * tensors, and where the settings are not those of the shapes.
 */
function countOfMlx(
  { dtype, shape, elements }: StoredTensor,
  sibling: Sibling,
  settings: () => MlxSettings | undefined,
): number | undefined {
  const scales = sibling('scales');
  if (dtype !== 'U32' || scales?.shape.length !== shape.length) return undefined;
  const { bits = 0, group = 0 } = settings() ?? {};
  const values = scales.elements * group;
  return values > 0 && values * bits === elements * WORD ? values : undefined;
}

/** Parameters in a packed weight; undefined for other tensors. */
function packedCount(leaf: string, tensor: StoredTensor, sibling: Sibling): number | undefined {
  const { dtype, shape, elements } = tensor;
  if (leaf === 'qweight') return countOfWords(shape, sibling);
  // EXL2 mixes bits in the rows of a matrix; its order of the inputs has one value for each.
  if (leaf === 'q_weight') {
    const inputs = (sibling('q_invperm') ?? sibling('q_perm'))?.elements;
    return inputs && inputs * (shape[1] ?? 0);
  }
  // EXL3: tiles of 16 × 16 values, [inputs / 16, outputs / 16, words of a tile].
  if (leaf === 'trellis' && shape.length === 3) {
    return (shape[0] ?? 0) * (shape[1] ?? 0) * TILE * TILE;
  }
  if (leaf === 'codes') return countOfCodes(shape, sibling('codebooks')?.shape);
  // OCP microscaling formats: two values of 4 bits in a byte, and a scale for each block.
  if (leaf.endsWith('_blocks') && dtype === 'U8') {
    return sibling(`${leaf.slice(0, -'_blocks'.length)}_scales`) && elements * 2;
  }
  if (dtype !== 'U8') return undefined;
  // 4 bits of bitsandbytes and of NVFP4 (also of compressed-tensors): two values in a byte.
  const pair = {
    weight: sibling('weight.absmax') ?? sibling('weight_scale_2'),
    weight_packed: sibling('weight_global_scale'),
  };
  return leaf in pair && pair[leaf as keyof typeof pair] ? elements * 2 : undefined;
}

/**
 * Parameters of a weight of GPTQ, `qweight` [inputs · bits / 32, outputs], or of AWQ, [inputs, outputs · bits / 32]; its
 * `scales` are [groups, outputs].
 */
function countOfWords(shape: readonly number[], sibling: Sibling): number | undefined {
  const [rows = 0, columns = 0] = shape;
  const [groups = 0, outputs = 0] = sibling('scales')?.shape ?? [];
  if (outputs === 0) return undefined;
  if (columns !== outputs) return rows * outputs;
  const indexed = sibling('g_idx')?.elements;
  if (indexed !== undefined) return indexed * outputs;
  const zeros = sibling('qzeros')?.shape[1] ?? 0;
  // Zero points are packed along the outputs with the same number of bits.
  const bits = (zeros * WORD) / outputs;
  return groups > 0 && Number.isInteger(bits) && bits > 0
    ? ((rows * WORD) / bits) * outputs
    : undefined;
}
