/** Names of models with the type of their weights: `Qwen3-32B-FP8`, `Llama-3.1-8B-AWQ-INT4`, `gemma-3-4b-it-GGUF`. */

/** Parts at the end of a name, and the types that they mean; those without a type say how the file was made. */
const PARTS: readonly (readonly [part: RegExp, dtype: string | undefined])[] = [
  [/^awq$/, 'awq'],
  [/^gptq$/, 'gptq'],
  [/^(?:fp|f)8$/, 'fp8'],
  // NVIDIA's repositories call NVFP4 by its bits.
  [/^(?:nv)?fp4$/, 'nvfp4'],
  [/^mxfp4$/, 'mxfp4'],
  [/^(?:int4|4-?bits?|nf4|w4a16|hqq|bnb)$/, 'int4'],
  [/^(?:int8|8-?bits?|w8a8|w8a16)$/, 'int8'],
  // Bits of MLX with a scale and an offset for 64 values, as the nearest type of llama.cpp.
  ...['3', '5', '6'].map((bits) => [new RegExp(`^${bits}-?bits?$`), `q${bits}_k`] as const),
  [/^bf16$/, 'bf16'],
  [/^(?:fp|f)16$/, 'f16'],
  [
    /^(?:gguf|unsloth|mlx|dynamic|static|block|kv|dwq|qat|ud|marlin|sym|quantized|autoround|g?\d+g|gs\d+)$/,
    undefined,
  ],
];

/** A type of llama.cpp at the end of a name: `-Q4_K_M`. */
const OF_LLAMA_CPP = /^(.+)[-_.]((?:i?q)\d(?:_\w+)?)$/i;

const LAST_PART = /^(.+?)[-_.]([a-z0-9]+)$/i;

/** A name without the type of its weights. */
export interface QuantizedName {
  readonly name: string;
  /** Undefined for a repository of GGUF files, which has several. */
  readonly dtype: string | undefined;
}

/** The name of a model before the type of its weights, and the type; undefined for a name without one. */
export function quantizedName(text: string): QuantizedName | undefined {
  let name = text;
  const types = new Set<string>();
  let isGguf = false;
  let ofLlama: string | undefined;
  for (;;) {
    const [, before, type] = OF_LLAMA_CPP.exec(name) ?? [];
    if (before !== undefined && type !== undefined) {
      name = before;
      ofLlama = type.toLowerCase();
      continue;
    }
    const [, rest, last = ''] = LAST_PART.exec(name) ?? [];
    const part = PARTS.find(([each]) => each.test(last.toLowerCase()));
    if (rest === undefined || part === undefined) break;
    isGguf ||= /^gguf$/i.test(last);
    if (part[1] !== undefined) types.add(part[1]);
    name = rest;
  }
  if (ofLlama !== undefined) return { name, dtype: ofLlama };
  if (types.size === 0) return isGguf ? { name, dtype: undefined } : undefined;
  const isInt8 = types.has('int8');
  // The method says more than the number of its bits, unless these are not its usual ones.
  const [dtype] = ['awq', 'gptq'].filter((each) => types.has(each) && !isInt8);
  const others = [
    ...['fp8', 'nvfp4', 'mxfp4', 'int8', 'int4', 'q6_k', 'q5_k', 'q3_k'],
    'bf16',
    'f16',
  ];
  return { name, dtype: dtype ?? others.find((each) => types.has(each)) };
}

/** The type of the file that llama.cpp takes from a repository of several: common/arg.cpp, `--hf-repo`. */
export const usualType = (name: string): string => (/gpt-?oss/i.test(name) ? 'mxfp4' : 'q4_k_m');
