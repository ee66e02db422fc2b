/** Values of the flags of other tools, and their names here. */

/** Values that disable a flag, for switches of other tools that mean another one of its values. */
export const OFF: Readonly<Record<string, string>> = {
  ...{ recompute: 'none', zero: '0', attention: 'plain', precision: 'float32' },
};

/** Numbers that mean all layers in llama.cpp. */
const ALL_LAYERS = {
  '-1': '',
  '99': '',
  '100': '',
  '999': '',
  '9999': '',
  all: '',
  auto: '',
} as const;

/** Types of a cache in llama.cpp and mlx-lm. */
const CACHE_TYPES = { '8': 'int8', '4': 'int4' } as const;

/** Types of a cache in exllama, whose 8 bits are integers with a scale for a block. */
const CACHE_MODES = { fp16: 'f16', q8: 'q8_0', q4: 'q4_0', '8': 'q8_0', '4': 'q4_0' } as const;

const ALL_LINEAR = { 'all-linear': '', all: '' } as const;

const BITS = { '4': 'int4', '8': 'int8', '16': 'bf16', '32': 'f32' } as const;

/** Values of flags of other tools and what they are called here; '' where the flag is then not needed. */
export const VALUES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  ...{ bits: BITS, quantizationbit: BITS, qbits: BITS, wbits: BITS, wbit: BITS },
  ...{ exportquantizationbit: BITS },
  loadin: { '4bit': 'int4', '8bit': 'int8' },
  quantization: {
    ...{ bitsandbytes: 'int4', bnb: 'int4', q4: 'int4', q8: 'int8' },
    // Kernels of vLLM for the same weights: docs, "Quantization".
    ...{ gptq_marlin: 'gptq', awq_marlin: 'awq', marlin: 'gptq', hqq: 'int4' },
    ...{ fbgemm_fp8: 'f8', ptpc_fp8: 'f8', deepspeedfp: 'f8', modelopt: 'f8', w8a8_fp8: 'f8' },
    ...{ modelopt_fp4: 'nvfp4', petit_nvfp4: 'nvfp4', w4afp8: 'int4' },
    ...{ experts_int8: 'int8', w8a8_int8: 'int8', tpu_int8: 'int8' },
    // mlc-ai/mlc-llm docs, "Model Quantization": q0 has no quantization.
    ...{
      q4f16_1: 'int4',
      q4f16_0: 'int4',
      q4f32_1: 'int4',
      q0f16: 'f16',
      q0bf16: 'bf16',
      q0f32: 'f32',
    },
  },
  quantize: {
    ...{ bitsandbytes: 'int8', 'bitsandbytes-nf4': 'int4', eetq: 'int8' },
    ...{ 'bnb.nf4': 'int4', 'bnb.nf4-dq': 'int4', 'bnb.fp4': 'int4', 'bnb.int8': 'int8' },
  },
  kvcachedtype: { auto: '' },
  ...{ cachetypek: CACHE_TYPES, cachetypev: CACHE_TYPES, ctk: CACHE_TYPES, ctv: CACHE_TYPES },
  ...{ kvcachetype: CACHE_TYPES, ollamakvcachetype: CACHE_TYPES, kvbits: CACHE_TYPES },
  ...{ cachemode: CACHE_MODES, cachetype: CACHE_MODES, cq: CACHE_MODES },
  quant: { ...BITS, '5': 'q5_k', '6': 'q6_k' },
  isq: { ...BITS, '5': 'q5_k', '6': 'q6_k', q4k: 'q4_k', q5k: 'q5_k', q6k: 'q6_k', q8_0: 'q8_0' },
  quantpolicy: { '0': '', '4': 'int4', '8': 'int8' },
  fa: { auto: '' },
  flashattn: { auto: '' },
  // Mixed precision keeps float32 weights for products in bfloat16 and in float16.
  mixedprecision: { bf16: 'mixed', fp16: 'mixed', no: 'float32' },
  // All linear layers, as here without --targets.
  ...{ targetmodules: ALL_LINEAR, loratarget: ALL_LINEAR, loratargetmodules: ALL_LINEAR },
  dosample: { true: '' },
  bf16: { auto: 'true' },
  fp16: { auto: 'true' },
  maxsteps: { '-1': '' },
  // All layers on the GPU, as here.
  ...{ ngl: ALL_LAYERS, ngpulayers: ALL_LAYERS, gpulayers: ALL_LAYERS, numgpu: ALL_LAYERS },
};
