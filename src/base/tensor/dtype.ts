/**
 * Element types of stored tensors. Names and widths follow the safetensors format, in the lower-case spelling of
 * the command line.
 */
export const DTYPES = {
  f64: { bits: 64, aliases: ['float64', 'fp64', 'double'] },
  f32: { bits: 32, aliases: ['float32', 'fp32', 'float', 'single', '32bit'] },
  f16: { bits: 16, aliases: ['float16', 'fp16', 'half'] },
  bf16: { bits: 16, aliases: ['bfloat16', 'bfp16', 'brain16'] },
  f8_e4m3: { bits: 8, aliases: ['f8', 'fp8', 'float8', 'e4m3', 'fp8_e4m3', 'float8_e4m3fn'] },
  f8_e5m2: { bits: 8, aliases: ['e5m2', 'fp8_e5m2', 'float8_e5m2'] },
  i8: { bits: 8, aliases: ['int8', '8bit', '8_bit', 'w8a8'] },
  i4: { bits: 4, aliases: ['int4', '4bit', '4_bit', 'w4a16', 'gptq', 'awq'] },
} as const satisfies Record<string, { bits: number; aliases: readonly string[] }>;

export type Dtype = keyof typeof DTYPES;

export const DTYPE_NAMES = Object.keys(DTYPES) as readonly Dtype[];

/** Types in which a running model can keep keys and values: float16, and blocks of llama.cpp. */
export const CACHE_TYPES = ['f16', 'q8_0', 'q4_0'] as const;

export type CacheType = (typeof CACHE_TYPES)[number];

/** Bytes of 32 cached values with their float16 scale (ggml-common.h). */
const BLOCK_BYTES = { q8_0: 34, q4_0: 18 } as const;

/** Element type of a cache. */
export type CacheDtype = Dtype | CacheType;

export const CACHE_DTYPE_NAMES: readonly CacheDtype[] = [...DTYPE_NAMES, ...CACHE_TYPES];

/** Bytes of 32 values in a cache, scales included: a whole number for every type. */
export const cacheBlockBytes = (dtype: CacheDtype): number =>
  isCacheBlock(dtype) ? BLOCK_BYTES[dtype] : 4 * DTYPES[dtype].bits;

/** Whether a cache has blocks with scales. */
export const isCacheBlock = (dtype: CacheDtype): dtype is keyof typeof BLOCK_BYTES =>
  dtype in BLOCK_BYTES;

/** Type of recurrent states for a type of the cache: only keys and values can be in blocks. */
export const stateDtypeOf = (cache: CacheDtype): Dtype => (isCacheBlock(cache) ? 'bf16' : cache);

/** Parses a type of a cache by any of its usual names. */
export function parseCacheDtype(text: string): CacheDtype | undefined {
  const folded = text.trim().toLowerCase().replaceAll('-', '_');
  return CACHE_TYPES.find((name) => name === folded) ?? parseDtype(text);
}

/** All names of the dtypes. */
export const DTYPE_SPELLINGS: readonly string[] = DTYPE_NAMES.flatMap((name) => [
  name,
  ...DTYPES[name].aliases,
]);

/** Parses a dtype in any case, by any of its usual names, also as `torch.float16`. */
export function parseDtype(text: string): Dtype | undefined {
  const folded = text
    .trim()
    .toLowerCase()
    .replace(/^torch\./, '')
    .replaceAll(/[- ]/g, '_');
  return DTYPE_NAMES.find(
    (name) => name === folded || (DTYPES[name].aliases as readonly string[]).includes(folded),
  );
}

/** Packed bytes of `elements` values, rounded up to whole bytes. */
export function bytesIn(elements: number, dtype: Dtype): number {
  // One division after the widest exact product: elements · bits can exceed 2^53 for a valid model.
  const { bits } = DTYPES[dtype];
  return bits >= 8 ? elements * (bits / 8) : Math.ceil(elements / (8 / bits));
}

/**
 * Element types in checkpoint files: the list of the safetensors format, and C128, which only PyTorch's own files
 * use. (`Dtype` is the shorter list for planning a model.)
 */
export const STORED_DTYPES = {
  BOOL: { bits: 8, kind: 'bool', wordBytes: 1 },
  U8: { bits: 8, kind: 'integer', wordBytes: 1 },
  I8: { bits: 8, kind: 'integer', wordBytes: 1 },
  U16: { bits: 16, kind: 'integer', wordBytes: 2 },
  I16: { bits: 16, kind: 'integer', wordBytes: 2 },
  U32: { bits: 32, kind: 'integer', wordBytes: 4 },
  I32: { bits: 32, kind: 'integer', wordBytes: 4 },
  U64: { bits: 64, kind: 'integer', wordBytes: 8 },
  I64: { bits: 64, kind: 'integer', wordBytes: 8 },
  F4: { bits: 4, kind: 'float', wordBytes: 1 },
  F6_E2M3: { bits: 6, kind: 'float', wordBytes: 1 },
  F6_E3M2: { bits: 6, kind: 'float', wordBytes: 1 },
  F8_E4M3: { bits: 8, kind: 'float', wordBytes: 1 },
  F8_E5M2: { bits: 8, kind: 'float', wordBytes: 1 },
  F8_E8M0: { bits: 8, kind: 'float', wordBytes: 1 },
  F8_E4M3FNUZ: { bits: 8, kind: 'float', wordBytes: 1 },
  F8_E5M2FNUZ: { bits: 8, kind: 'float', wordBytes: 1 },
  F16: { bits: 16, kind: 'float', wordBytes: 2 },
  BF16: { bits: 16, kind: 'float', wordBytes: 2 },
  F32: { bits: 32, kind: 'float', wordBytes: 4 },
  F64: { bits: 64, kind: 'float', wordBytes: 8 },
  C64: { bits: 64, kind: 'complex', wordBytes: 4 },
  C128: { bits: 128, kind: 'complex', wordBytes: 8 },
} as const satisfies Record<
  string,
  {
    bits: number;
    kind: 'bool' | 'integer' | 'float' | 'complex';
    /** Unit of byte swapping; a complex number is two words. */
    wordBytes: number;
  }
>;

export type StoredDtype = keyof typeof STORED_DTYPES;

/** Packed bytes of `elements` values. Undefined for a fraction of a byte, or beyond 2^53 − 1. */
export function storedBytes(elements: number, dtype: StoredDtype): number | undefined {
  const { bits } = STORED_DTYPES[dtype];
  if (bits >= 8) return exactProduct(elements, bits / 8);
  // 4 and 6 bits: four values are a whole number of bytes; the quotient stays exact.
  const inLastGroup = ((elements % 4) * bits) / 8;
  const bytes = Math.floor(elements / 4) * (bits / 2) + inLastGroup;
  return Number.isSafeInteger(bytes) ? bytes : undefined;
}

/** a · b if both factors and the product are safe integers. */
export function exactProduct(a: number, b: number): number | undefined {
  const product = a * b;
  return Number.isSafeInteger(product) ? product : undefined;
}

/** Bits of a code of a quantized weight. */
export const QUANTIZED_BITS = [8, 4] as const;

/** Values that share a scale in a quantized weight. */
export const GROUP_SIZES = [16, 32, 64, 128] as const;

/** Sizes of tensors, outermost dimension first. */
export type Shape = readonly number[];

/** Number of elements of a tensor; undefined beyond 2^53 − 1, for a dimension or the product. */
export function elementCount(shape: Shape): number | undefined {
  let product = 1;
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0) return undefined;
    product *= size;
    // A product of two safe integers that rounds below 2^53 is exact, so this test is too.
    if (!Number.isSafeInteger(product)) return undefined;
  }
  return product;
}

/** `[50432, 4096]`, or `[]` for a scalar. */
export function shapeText(shape: Shape): string {
  return `[${shape.join(', ')}]`;
}

export function isSameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis]);
}
