/** Names of PyTorch in configs, as `dtype` and `torch_dtype`. */
const TYPES: Readonly<Record<string, string>> = {
  float32: 'f32',
  float16: 'f16',
  bfloat16: 'bf16',
  float8_e4m3fn: 'f8_e4m3',
};

/** Element type by the name that a config has for it: `bf16` for `torch.bfloat16`; undefined for another value. */
export const configType = (named: unknown): string | undefined =>
  typeof named === 'string' ? TYPES[named.replace(/^torch\./, '')] : undefined;
