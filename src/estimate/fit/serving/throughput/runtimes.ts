/**
 * Programs that run a model: how they launch kernels, the memory that they use, and how they batch requests. Each fact
 * is a default of the program, or a measurement of it.
 */
import { usageError } from '../../../../base/errors.js';
import { type CacheDtype, isCacheBlock } from '../../../../base/tensor/dtype.js';
import { type SettingName, setting } from '../../../../base/text/setting.js';
import type { Gpu, GpuArchitecture, MemoryKind } from '../../../hardware/gpu.js';
import { memoryKindOf } from '../../../hardware/gpu.js';
import type { WeightWidth } from '../../efficiency.js';
import type { ServingAxes } from '../serving-axes.js';
import type { WeightDtype } from '../weight-types.js';
import { WEIGHT_DTYPES } from '../weight-types.js';
import type { Batching } from './simulation.js';

/** `graphs`: all kernels of a step are launched at once (CUDA graphs); `eager`: each one by the program. */
export type Launching = 'graphs' | 'eager';

/** Share of the bandwidth that a program reaches for weights in decoding. */
interface ReadingShare {
  readonly share: number;
  readonly source: string;
}

interface RuntimeFacts {
  /** Name for people. */
  readonly title: string;
  readonly launching: Launching;
  /** Share of the memory of a GPU that the program takes for weights, workspace and caches. */
  readonly memoryShare: number;
  readonly batching: Batching;
  /** Sequences in service at a time at most, by the memory of the GPU. */
  readonly places: (gpu: Gpu) => number;
  /** Tokens of a step at most, by the memory of the GPU. */
  readonly stepTokens: (gpu: Gpu) => number;
  /** Where the program differs from most others. */
  readonly reading?: Readonly<
    Partial<Record<MemoryKind, Readonly<Partial<Record<WeightWidth, ReadingShare>>>>>
  >;
  readonly source: string;
}

const GIB = 2 ** 30;

/** The larger defaults of vLLM: from 70 GiB on, but for an A100. */
const isLargeForVllm = ({ memoryBytes, architecture }: Gpu): boolean =>
  memoryBytes >= 70 * GIB && architecture !== 'sm80';

/** Steps of SGLang, in tokens, by GiB of memory below which they hold. */
const SGLANG_CHUNKS = [
  [35, 2048],
  [160, 8192],
  [Number.POSITIVE_INFINITY, 16_384],
] as const;

const LLAMA_CPP_H100 =
  'Llama-3-8B in llama.cpp on an H100 PCIe with 2,039 GB/s (GPU-Benchmarks-on-LLM-Inference, 2024)';

export const RUNTIMES = {
  vllm: {
    title: 'vLLM',
    launching: 'graphs',
    memoryShare: 0.9,
    batching: 'chunked',
    places: (gpu) => (isLargeForVllm(gpu) ? 1024 : 256),
    stepTokens: (gpu) => (isLargeForVllm(gpu) ? 8192 : 2048),
    source:
      'gpu_memory_utilization 0.9; max_num_seqs 1,024 and max_num_batched_tokens 8,192 from 70 GiB on, but 256 and ' +
      '2,048 on smaller GPUs and the A100; chunked prefill and CUDA graphs (vLLM, engine/arg_utils.py, API server)',
  },
  sglang: {
    title: 'SGLang',
    launching: 'graphs',
    memoryShare: 0.88,
    batching: 'chunked',
    places: () => 2048,
    stepTokens: ({ memoryBytes }) =>
      SGLANG_CHUNKS.find(([gib]) => memoryBytes < gib * GIB)?.[1] ?? 8192,
    source:
      'mem_fraction_static 0.88; chunked_prefill_size 2,048 below 35 GiB, 8,192 below 160 GiB, else 16,384; at least ' +
      '2,048 requests; CUDA graphs (SGLang, srt/server_args.py)',
  },
  'tensorrt-llm': {
    title: 'TensorRT-LLM',
    launching: 'graphs',
    memoryShare: 0.9,
    batching: 'chunked',
    places: () => 2048,
    stepTokens: () => 8192,
    source:
      'free_gpu_memory_fraction 0.9, max_batch_size 2,048, max_num_tokens 8,192, in-flight batching (TensorRT-LLM, ' +
      'useful runtime options; tuning max batch size and max num tokens)',
  },
  'llama.cpp': {
    title: 'llama.cpp',
    launching: 'graphs',
    memoryShare: 1,
    batching: 'chunked',
    places: () => 4,
    stepTokens: () => 512,
    reading: {
      hbm: {
        wide: { share: 0.53, source: `F16 reads 1,089 GB/s: ${LLAMA_CPP_H100}` },
        four: { share: 0.35, source: `Q4_K_M reads 711 GB/s: ${LLAMA_CPP_H100}` },
      },
    },
    source:
      'four slots (llama.cpp, issue 17989), ubatch-size 512, continuous batching, CUDA graphs (llama.cpp, tools/server, ' +
      'README)',
  },
  transformers: {
    title: 'transformers',
    launching: 'eager',
    memoryShare: 1,
    batching: 'static',
    places: () => Number.POSITIVE_INFINITY,
    stepTokens: () => Number.POSITIVE_INFINITY,
    source:
      'generate() of a batch, whose prompts are one pass, in eager PyTorch (transformers, text generation)',
  },
} as const satisfies Readonly<Record<string, RuntimeFacts>>;

/**
 * Axes that a program lacks: llama.cpp divides layers and rows among GPUs (tools/server, --split-mode), and transformers has
 * plans for tensors and experts alone (PreTrainedModel.from_pretrained: tp_plan, distributed_config).
 */
const AXES_WITHOUT: Partial<Record<RuntimeName, readonly Axis[]>> = {
  'llama.cpp': ['dataParallelAttention', 'expertParallel', 'contextParallel', 'prefillGpus'],
  transformers: ['dataParallelAttention', 'contextParallel', 'prefillGpus'],
};

/** A way to divide serving among GPUs. */
type Axis = (keyof ServingAxes & SettingName) | 'prefillGpus';

/** Whether a program has all of these axes. */
export const hasAxes = (name: RuntimeName, axes: readonly Axis[]): boolean =>
  axes.every((axis) => !AXES_WITHOUT[name]?.includes(axis));

/** @throws UserError for an axis that the program does not have. */
export function requireAxesOfRuntime(
  name: RuntimeName,
  axes: ServingAxes & { readonly prefillGpus?: number | undefined },
): void {
  const isUsed = (axis: Axis) => (axes[axis] ?? 0) > (axis === 'prefillGpus' ? 0 : 1);
  const lacking = AXES_WITHOUT[name]?.find(isUsed);
  if (lacking === undefined) return;
  throw usageError(
    `${setting(lacking)}: ${RUNTIMES[name].title} does not have it`,
    `leave it out, or write ${setting('runtime', 'vllm')}`,
  );
}

export type RuntimeName = keyof typeof RUNTIMES;

export const RUNTIME_NAMES = Object.keys(RUNTIMES) as RuntimeName[];

/** Facts of a program, with all optional fields. */
export const runtimeFacts = (name: RuntimeName): RuntimeFacts => RUNTIMES[name];

/**
 * Chips for which vLLM is not the usual program: those older than it takes (vLLM, getting_started/installation/gpu: compute
 * capability 7.0, MI200, Radeon RX 7900), Apple's, and graphics of AMD's processors, which share their memory.
 */
const OF_LLAMA_CPP: readonly GpuArchitecture[] = [
  ...(['sm53', 'sm60', 'sm61', 'gcn5', 'cdna1', 'rdna2'] as const),
  ...(['rdna3-apu', 'rdna3.5', 'apple'] as const),
];

/** Program where none was asked for: llama.cpp for its chips, types of GGUF files and caches of blocks, else vLLM. */
function usualRuntime(
  gpu: Pick<Gpu, 'kind' | 'architecture'>,
  dtype: WeightDtype,
  cache: CacheDtype,
): RuntimeName {
  const isGguf = WEIGHT_DTYPES[dtype].blocks !== undefined || isCacheBlock(cache);
  const isOfLlamaCpp =
    gpu.kind === 'processor' ||
    (gpu.architecture !== undefined && OF_LLAMA_CPP.includes(gpu.architecture));
  return isGguf || isOfLlamaCpp ? 'llama.cpp' : 'vllm';
}

/**
 * Seconds of a launch by the program, one kernel of ours each: a model of 26M parameters with 8 blocks decodes about 800
 * tokens/s in eager PyTorch on an A100, and falcon-7b 47.7 (litgpt, tutorials/quantize.md). The second one has 21 µs
 * each, but its kernels also wait for each other.
 */
export const EAGER_LAUNCH = {
  seconds: 12e-6,
  source:
    'launches: 12 µs each in eager PyTorch (a decoder of 26M parameters: about 800 tokens/s on an A100; falcon-7b: 47.7, ' +
    'litgpt, tutorials/quantize.md)',
} as const;

/** The program of a setup, as far as speed and room depend on it. */
export interface RuntimeSetting {
  /** Name for `--runtime`. */
  readonly name: RuntimeName;
  /** Whether the user named it. */
  readonly isChosen: boolean;
  /** How kernels are launched. */
  readonly launching: Launching;
  /** How prompts and answers share the steps. */
  readonly batching: Batching;
  /** Share of the memory that the program uses. @real */
  readonly memoryShare: number;
  /** Whether the user chose that share. */
  readonly isMemoryChosen: boolean;
}

/** Choices of the user; the program has a default for each. */
export interface RuntimeWish {
  readonly name?: RuntimeName | undefined;
  readonly launching?: Launching | undefined;
  readonly batching?: Batching | undefined;
  readonly memoryShare?: number | undefined;
}

/**
 * @param cache Type of the cache.
 * @throws UserError for chunked prompts or blocks of a cache in a program without them.
 */
export function runtimeSetting(
  wish: RuntimeWish,
  gpu: Pick<Gpu, 'kind' | 'architecture'>,
  dtype: WeightDtype,
  cache: CacheDtype = 'bf16',
): RuntimeSetting {
  const name = wish.name ?? usualRuntime(gpu, dtype, cache);
  const { launching, batching, memoryShare, title } = runtimeFacts(name);
  if (batching === 'static' && wish.batching !== undefined && wish.batching !== 'static') {
    throw usageError(
      `${setting('runtime', name)}: ${title} has only static batches`,
      `leave the batching out, or write ${setting('runtime', 'vllm')}`,
    );
  }
  if (name !== 'llama.cpp' && isCacheBlock(cache)) {
    throw usageError(
      `${setting('cacheDtype', cache)} is a type of llama.cpp, and ${setting('runtime', name)} excludes it`,
      `write ${setting('runtime', 'llama.cpp')}, or ${setting('cacheDtype', 'f8')}`,
    );
  }
  return {
    name,
    isChosen: wish.name !== undefined,
    launching: wish.launching ?? launching,
    batching: wish.batching ?? batching,
    memoryShare: wish.memoryShare ?? memoryShare,
    isMemoryChosen: wish.memoryShare !== undefined,
  };
}

/** Name of graphs of kernels for a program on a GPU; null where it has none. */
export function graphsName(
  name: RuntimeName,
  { kind, architecture }: Pick<Gpu, 'kind' | 'architecture'>,
): string | null {
  if (kind === 'nvidia') return 'CUDA graphs';
  // llama.cpp is built without them for AMD by default (ggml, GGML_HIP_GRAPHS).
  const isAmd = /^(?:gcn|cdna|rdna)/.test(architecture ?? '');
  return isAmd && name !== 'llama.cpp' ? 'HIP graphs' : null;
}

/** Share of the bandwidth for weights of a program; undefined where it is as others. */
export const readingShare = (
  name: RuntimeName,
  { architecture }: Pick<Gpu, 'architecture'>,
  width: WeightWidth,
): ReadingShare | undefined =>
  runtimeFacts(name).reading?.[architecture === undefined ? 'hbm' : memoryKindOf(architecture)]?.[
    width
  ];
