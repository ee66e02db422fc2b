/** A plan of serving as flags of llama.cpp's programs (common/arg.cpp): one list for the answer and for a written command. */

/** A flag of llama.cpp: both names without dashes, and its value; none for a switch. */
export interface LlamaFlag {
  readonly name: string;
  /** Short name. */
  readonly short: string;
  readonly value?: string;
}

/** Where the layers, experts and caches are. */
interface LlamaPlaces {
  readonly gpuLayers: number;
  readonly cpuExperts: number;
  readonly isSplit: boolean;
  readonly cardLayers?: readonly number[] | undefined;
  readonly isCacheInSystem?: boolean | undefined;
}

/** Parts of a plan that flags of llama.cpp set. */
interface LlamaPlan {
  readonly setting: { readonly context: number; readonly cacheDtype: string };
  /** Sequences at a time, which share the cache. */
  readonly sequences: number;
  readonly places: LlamaPlaces | undefined;
}

/** Flags of the context and of the cache, and where the parts of the model are. */
export function llamaFlags({ setting, sequences, places }: LlamaPlan): LlamaFlag[] {
  return [
    ...(places ? placesFlags(places) : []),
    // The context is that of all sequences together, which llama.cpp divides (src/llama-context.cpp: n_ctx_seq). Without
    // their number a server has four.
    { name: 'ctx-size', short: 'c', value: String(sequences * setting.context) },
    { name: 'parallel', short: 'np', value: String(sequences) },
    ...cacheFlags(setting.cacheDtype),
  ];
}

function placesFlags({
  gpuLayers,
  cpuExperts,
  isSplit,
  cardLayers = [],
  isCacheInSystem,
}: LlamaPlaces): LlamaFlag[] {
  return [
    { name: 'gpu-layers', short: 'ngl', value: String(gpuLayers) },
    ...(gpuLayers > 0 && cpuExperts > 0
      ? // It has no other short name than `-ncmoe`; its long one is the known one.
        [{ name: 'n-cpu-moe', short: '-n-cpu-moe', value: String(cpuExperts) }]
      : []),
    ...(isCacheInSystem ? [{ name: 'no-kv-offload', short: 'nkvo' }] : []),
    ...(isSplit ? [{ name: 'tensor-split', short: 'ts', value: cardLayers.join(',') }] : []),
  ];
}

/** Types of a cache in llama.cpp (common/arg.cpp: `--cache-type-k`); that of 16 bits is its usual one. */
const CACHE_TYPES: Readonly<Partial<Record<string, string>>> = {
  f32: 'f32',
  int8: 'q8_0',
  int4: 'q4_0',
  q8_0: 'q8_0',
  q4_0: 'q4_0',
};

/** Whether llama.cpp has a cache of a type; its usual one, f16, is as large as bf16. */
export const hasLlamaCache = (dtype: string): boolean =>
  dtype === 'f16' || dtype === 'bf16' || Object.hasOwn(CACHE_TYPES, dtype);

/** llama.cpp refuses quantized values without flash attention (src/llama-context.cpp, llama_init_from_model). */
function cacheFlags(dtype: string): LlamaFlag[] {
  const value = CACHE_TYPES[dtype];
  if (value === undefined) return [];
  return [
    { name: 'cache-type-k', short: 'ctk', value },
    { name: 'cache-type-v', short: 'ctv', value },
    ...(value.startsWith('q') ? [{ name: 'flash-attn', short: 'fa', value: 'on' }] : []),
  ];
}
