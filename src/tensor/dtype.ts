/**
 * Element types of stored tensors. Names and widths follow the safetensors format, in the lower-case
 * spelling of the command line.
 */
export const DTYPES = {
  f64: { bits: 64, aliases: ['float64', 'double'] },
  f32: { bits: 32, aliases: ['float32', 'fp32', 'float'] },
  f16: { bits: 16, aliases: ['float16', 'fp16', 'half'] },
  bf16: { bits: 16, aliases: ['bfloat16'] },
  f8_e4m3: { bits: 8, aliases: ['fp8', 'float8_e4m3fn'] },
  f8_e5m2: { bits: 8, aliases: ['float8_e5m2'] },
  i8: { bits: 8, aliases: ['int8'] },
  i4: { bits: 4, aliases: ['int4'] },
} as const satisfies Record<string, { bits: number; aliases: readonly string[] }>;

export type Dtype = keyof typeof DTYPES;

export const DTYPE_NAMES = Object.keys(DTYPES) as readonly Dtype[];

/** All names of the dtypes. */
export const DTYPE_SPELLINGS: readonly string[] = DTYPE_NAMES.flatMap((name) => [
  name,
  ...DTYPES[name].aliases,
]);

/** The dtype that a user means by `text`, in any case and by any of its usual names. */
export function parseDtype(text: string): Dtype | undefined {
  const wanted = text.toLowerCase();
  return DTYPE_NAMES.find(
    (name) => name === wanted || (DTYPES[name].aliases as readonly string[]).includes(wanted),
  );
}

/** Bytes that `elements` values take when packed without gaps, rounded up to whole bytes. */
export function bytesIn(elements: number, dtype: Dtype): number {
  // One division after the widest exact product: elements · bits can pass 2^53 for a legal model.
  const { bits } = DTYPES[dtype];
  return bits >= 8 ? elements * (bits / 8) : Math.ceil(elements / (8 / bits));
}
