/** Tensors of GGUF files under the names and with the values of transformers, and the other way round. */
import {
  concatenated,
  mapped,
  reshaped,
  transposedTensor,
} from '../../../checkpoint/computed-file.js';
import { templateOf } from '../../../checkpoint/names.js';
import { encodedBytes, type StoredTensor } from '../../../checkpoint/stored-tensor.js';
import { narrow } from '../../../checkpoint/view.js';
import type { GgufArchitecture, GgufNaming } from './gguf-names.js';
import { COMPUTED_TENSORS, TENSOR_NAMES } from './gguf-names.js';

/** Sizes that the changes of values need. */
export interface HeadCounts {
  readonly heads: number;
  readonly keyValueHeads: number;
}

export type Tensors = ReadonlyMap<string, StoredTensor>;

const withNumber = (name: string, layer: string | undefined, expert?: number): string =>
  name.replace('#', layer ?? '').replace('@', String(expert ?? ''));

/** The view of a tensor with its first axis split: [a · b, …] as [a, b, …]. */
function splitRows(tensor: StoredTensor, sizes: readonly number[]): StoredTensor {
  const [step = 1, ...steps] = tensor.strides;
  const strides: number[] = [];
  let stride = step;
  for (const size of sizes.toReversed()) {
    strides.unshift(stride);
    stride *= size;
  }
  return {
    ...tensor,
    shape: [...sizes, ...tensor.shape.slice(1)],
    strides: [...strides, ...steps],
  };
}

function swapped(tensor: StoredTensor, a: number, b: number): StoredTensor {
  const swap = (list: readonly number[]) => list.with(a, list[b] ?? 0).with(b, list[a] ?? 0);
  return { ...tensor, shape: swap(tensor.shape), strides: swap(tensor.strides) };
}

/** Rows [heads · a · b] in the order [heads · b · a]. */
function reorderedRows(
  tensor: StoredTensor,
  sizes: readonly [number, number, number],
  axes: readonly [number, number],
): StoredTensor {
  const [rows = 0] = tensor.shape;
  const isWhole = sizes.every((size) => Number.isInteger(size) && size > 0);
  // A tensor of another size keeps its shape, which a check reports.
  if (!isWhole || sizes[0] * sizes[1] * sizes[2] !== rows) return tensor;
  return reshaped(swapped(splitRows(tensor, sizes), ...axes), tensor.shape);
}

/** A tensor with the values that the other program stores. */
function translatedTensor(
  tensor: StoredTensor,
  { change }: GgufNaming,
  { heads, keyValueHeads }: HeadCounts,
  to: 'gguf' | 'transformers',
): StoredTensor {
  const isGguf = to === 'gguf';
  const { shape } = tensor;
  const [rows = 0] = shape;
  const paired = (count: number) => {
    const half = rows / count / 2;
    return reorderedRows(tensor, isGguf ? [count, 2, half] : [count, half, 2], [1, 2]);
  };
  switch (change) {
    case 'queryRows':
      return paired(heads);
    case 'keyRows':
      return paired(keyValueHeads);
    case 'heads': {
      const headDim = rows / heads / 3;
      return reorderedRows(tensor, isGguf ? [heads, 3, headDim] : [3, heads, headDim], [0, 1]);
    }
    case 'transposed':
      return transposedTensor(tensor);
    case 'plusOne':
      return mapped(tensor, (value) => (isGguf ? value + 1 : value - 1));
    case 'column':
      if (shape.length !== (isGguf ? 2 : 1)) return tensor;
      return reshaped(tensor, isGguf ? shape.slice(1) : [1, ...shape]);
    default:
      return tensor;
  }
}

/** One matrix of a tensor of several, with its part of the bytes. */
function matrixOf(tensor: StoredTensor, index: number): StoredTensor {
  const { shape, encoding } = tensor;
  const part = narrow(tensor, 0, index, 1);
  const view = { ...part, shape: shape.slice(1), strides: tensor.strides.slice(1) };
  if (encoding === undefined) return view;
  const bytes = encoding.bytes / (shape[0] ?? 1);
  return { ...view, encoding: { ...encoding, position: encoding.position + index * bytes, bytes } };
}

/** Most experts, or heads, that a tensor is split into: models have at most 512. */
const MOST_MATRICES = 4096;
/** Most experts of all tensors that are split although they are tiny, bytes: a short file can state an expert for each byte. */
const MOST_TINY = 20_000;
const TINY_BYTES = 1024;

/** Tensors under the names of transformers. Those without a known name, and those of too many experts, keep theirs. */
export function tensorsOfGguf(
  architecture: GgufArchitecture,
  tensors: Tensors,
  counts: HeadCounts,
): Map<string, StoredTensor> {
  const namingOf = namingsOf(TENSOR_NAMES[architecture]);
  const renamed = new Map<string, StoredTensor>();
  let matrices = 0;
  for (const [own, tensor] of tensors) {
    if (COMPUTED.has(own)) continue;
    const latent = latentName(own);
    if (latent !== undefined) {
      const whole = joinedLatent(tensors, latent.layer);
      if (whole) renamed.set(`model.layers.${latent.layer}.self_attn.kv_b_proj.weight`, whole);
      continue;
    }
    const { naming, layer } = namingOf(own);
    const [experts = 0] = tensor.shape;
    if (naming === undefined) renamed.set(own, tensor);
    else if (naming.change === 'experts') {
      matrices += experts;
      const isTiny = tensor.bytes < TINY_BYTES * experts;
      if (experts > MOST_MATRICES || (isTiny && matrices > MOST_TINY)) {
        renamed.set(own, tensor);
        continue;
      }
      for (let expert = 0; expert < experts; expert++) {
        renamed.set(withNumber(naming.name, layer, expert), matrixOf(tensor, expert));
      }
    } else {
      const values = translatedTensor(tensor, naming, counts, 'transformers');
      renamed.set(withNumber(naming.name, layer), withEncoding(values, tensor));
    }
  }
  return renamed;
}

const COMPUTED: ReadonlySet<string> = new Set(COMPUTED_TENSORS);

interface FoundNaming {
  readonly naming: GgufNaming | undefined;
  readonly layer?: string;
}

/** Finds the naming of a tensor by its name in the file. Of two with one name, the first counts. */
function namingsOf(namings: readonly GgufNaming[]): (own: string) => FoundNaming {
  const reversed = namings.toReversed();
  const isOfLayer = ({ gguf }: GgufNaming) => gguf.includes('#');
  const ofLayers = new Map(reversed.filter(isOfLayer).map((each) => [each.gguf, each]));
  const others = new Map(
    reversed.filter((each) => !isOfLayer(each)).map((each) => [each.gguf, each]),
  );
  return (own) => {
    const { before, number, after } = templateOf(own);
    if (number === undefined) return { naming: others.get(own) };
    return { naming: ofLayers.get(`${before}#${after}`), layer: String(number) };
  };
}

const withEncoding = (values: StoredTensor, { encoding }: StoredTensor): StoredTensor =>
  encoding ? { ...values, encoding } : values;

/** Halves of the latent projection in files since 2025: keys transposed, and values. */
function latentName(name: string): { readonly layer: string } | undefined {
  if (!name.endsWith('_b.weight')) return undefined;
  const [, layer] = /^blk\.(0|[1-9]\d{0,4})\.attn_[kv]_b\.weight$/.exec(name) ?? [];
  return layer === undefined ? undefined : { layer };
}

/** Keys and values of each head after each other, [heads · (nope + value), rank]. */
function joinedLatent(tensors: Tensors, layer: string): StoredTensor | undefined {
  const keys = tensors.get(`blk.${layer}.attn_k_b.weight`);
  const values = tensors.get(`blk.${layer}.attn_v_b.weight`);
  const [heads = 0, rank = 0, nope = 0] = keys?.shape ?? [];
  const [sameHeads, valueDim = 0, sameRank] = values?.shape ?? [];
  if (!keys || !values || heads !== sameHeads || rank !== sameRank) return undefined;
  if (heads > MOST_MATRICES) return undefined;
  const parts = Array.from({ length: heads }, (_, head) => [
    swapped(matrixOf(keys, head), 0, 1),
    matrixOf(values, head),
  ]).flat();
  const [first, ...others] = parts;
  if (first === undefined) return undefined;
  const whole = concatenated([first, ...others], [heads * (nope + valueDim), rank]);
  const bytes = encodedBytes(keys) + encodedBytes(values);
  return values.encoding ? { ...whole, encoding: { ...values.encoding, bytes } } : whole;
}

/**
 * Tensors of a model with the names of transformers, as a GGUF file has them.
 * @returns The tensors in the order of llama.cpp's list, and the names that have no place in such a file.
 */
export function tensorsForGguf(
  architecture: GgufArchitecture,
  tensors: Tensors,
  counts: HeadCounts,
): { readonly tensors: Map<string, StoredTensor>; readonly unknown: readonly string[] } {
  const found = new Map<string, StoredTensor>();
  const used = new Set<string>();
  const put = (name: string, tensor: StoredTensor, from: readonly string[]) => {
    found.set(name, tensor);
    for (const each of from) used.add(each);
  };
  const known: readonly GgufNaming[] = TENSOR_NAMES[architecture];
  const layers = layerNumbers(tensors.keys());
  for (const each of known) {
    for (const layer of each.gguf.includes('#') ? layers : [undefined]) {
      const gguf = withNumber(each.gguf, layer);
      if (each.change === 'experts') {
        const stacked = stackedExperts(each, tensors, layer);
        if (stacked) put(gguf, stacked.tensor, stacked.names);
        continue;
      }
      const name = withNumber(each.name, layer);
      const tensor = tensors.get(name);
      if (tensor) put(gguf, translatedTensor(tensor, each, counts, 'gguf'), [name]);
    }
  }
  return { tensors: found, unknown: [...tensors.keys()].filter((name) => !used.has(name)) };
}

function layerNumbers(names: Iterable<string>): string[] {
  const layers = new Set<string>();
  for (const name of names) {
    const [, layer] =
      /^(?:model|transformer|gpt_neox)\.(?:layers|h)\.(0|[1-9]\d{0,4})\./.exec(name) ?? [];
    if (layer !== undefined) layers.add(layer);
  }
  return [...layers].sort((a, b) => Number(a) - Number(b));
}

function stackedExperts(each: GgufNaming, tensors: Tensors, layer: string | undefined) {
  const packed = each.packed && withNumber(each.packed.name, layer);
  const whole = packed === undefined ? undefined : tensors.get(packed);
  if (whole && packed !== undefined) {
    const [, rows = 0] = whole.shape;
    const half = each.packed?.half;
    const view = half === undefined ? whole : narrow(whole, 1, (half * rows) / 2, rows / 2);
    return { tensor: reshaped(view, view.shape), names: [packed] };
  }
  const names: string[] = [];
  const parts: StoredTensor[] = [];
  for (let expert = 0; ; expert++) {
    const name = withNumber(each.name, layer, expert);
    const part = tensors.get(name);
    if (part === undefined) break;
    names.push(name);
    parts.push(part);
  }
  const [first, ...others] = parts;
  if (first === undefined) return undefined;
  return { tensor: concatenated([first, ...others], [parts.length, ...first.shape]), names };
}
