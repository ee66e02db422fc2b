/** Share of the hardware's peaks that programs reach, and their overheads, in serving and in training. */

import { sumOf } from '../../base/values.js';
import type { Layer } from '../../model/architecture/layer.js';
import { memoized } from '../../model/architecture/walk.js';
import type { ByBound } from '../../model/budget/figure.js';
import { primitivesOf } from '../../model/operations/lower.js';
import type { Calibration, Gpu, GpuArchitecture, Link, MemoryKind } from '../hardware/gpu.js';
import { memoryKindOf } from '../hardware/gpu.js';

/** Utilisation of memory bandwidth, compute peak and links, and the overhead of each operation. */
export interface Efficiency {
  /** Share of the bandwidth for caches, activations and 16-bit weights. */
  readonly memoryUtilisation: number;
  /** Share of the bandwidth for weights in decoding. */
  readonly weightUtilisation: number;
  /** The same for routed experts. */
  readonly expertUtilisation: number;
  readonly computeUtilisation: number;
  /** The same in a model with routed experts. */
  readonly expertComputeUtilisation: number;
  readonly linkUtilisation: number;
  /** Seconds per kernel launch. */
  readonly launchSeconds: number;
  /** Seconds of an all-reduce regardless of its size, and of each further GPU in the ring, by their connection. */
  readonly reduceSeconds: number;
  readonly hopSeconds: Readonly<Record<'nvlink' | 'pcie' | 'network', number>>;
  readonly source: string;
}

export type Efficiencies = ByBound<Efficiency>;

/** Width of weights: more unpacking work before a product for fewer bits. */
export type WeightWidth = 'wide' | 'eight' | 'four';

/** Share of a peak, from published runs. */
interface MeasuredShare {
  readonly share: number;
  /** Published runs that it is the median of; absent where it is taken from other rows. */
  readonly runs?: number;
  /** Smallest and largest share among them. */
  readonly spread?: readonly [number, number];
  readonly source: string;
}

const GPT_FAST = 'gpt-fast, README, 2024';
const QWEN = 'Qwen2.5 and Qwen3, speed benchmark';
const LLAMA_CPP = 'GPU-Benchmarks-on-LLM-Inference, 2024';

/** Share of the memory bandwidth in decoding, without the launches, by memory kind and weight width. */
const READING: Readonly<Record<MemoryKind, Readonly<Record<WeightWidth, MeasuredShare>>>> = {
  hbm: {
    wide: {
      share: 0.72,
      runs: 13,
      spread: [0.6, 0.88],
      source: `16 bits on A100 and H100 (${GPT_FAST}; ${QWEN})`,
    },
    eight: {
      share: 0.62,
      runs: 7,
      spread: [0.5, 0.71],
      source: `8 bits on A100 (${GPT_FAST}; ${QWEN})`,
    },
    four: {
      share: 0.5,
      runs: 6,
      spread: [0.4, 0.56],
      source: `4 bits on A100 and H100 (${GPT_FAST}; ${QWEN}; ${LLAMA_CPP})`,
    },
  },
  gddr: {
    wide: { share: 0.84, runs: 7, spread: [0.77, 0.9], source: `16 bits (${LLAMA_CPP})` },
    eight: { share: 0.81, source: 'between 16 and 4 bits' },
    four: {
      share: 0.77,
      runs: 12,
      spread: [0.62, 1.06],
      source: `Q4_K_M and Q4_0 (${LLAMA_CPP}; geerlingguy/ai-benchmarks; llmfit, community benchmarks)`,
    },
  },
  lpddr: {
    wide: { share: 0.72, runs: 3, spread: [0.68, 0.84], source: `16 bits (${LLAMA_CPP})` },
    eight: { share: 0.75, source: 'between 16 and 4 bits' },
    four: {
      share: 0.77,
      runs: 9,
      spread: [0.54, 0.89],
      source: `Q4_K_M and Q4_0 (${LLAMA_CPP}; geerlingguy/ai-benchmarks; strix-halo-testing; llmfit, community benchmarks)`,
    },
  },
};

/** Cards that reach another share than those with the same memory. */
const READING_OF_CARD: Readonly<Record<string, Readonly<Record<WeightWidth, MeasuredShare>>>> = {
  h20: {
    wide: {
      share: 0.34,
      runs: 5,
      spread: [0.24, 0.37],
      source: `Qwen3 in 16 bits on an H20 (${QWEN})`,
    },
    eight: { share: 0.32, runs: 3, spread: [0.2, 0.4], source: `Qwen3 in FP8 on an H20 (${QWEN})` },
    four: {
      share: 0.2,
      runs: 2,
      spread: [0.17, 0.23],
      source: `Qwen3 in 4 bits on an H20 (${QWEN})`,
    },
  },
};

/**
 * Share of `weightUtilisation` that routed experts reach in decoding: their matrices are small, and each layer gathers
 * those that its tokens select.
 */
const EXPERT_READING: Readonly<Record<MemoryKind, MeasuredShare>> = {
  hbm: { share: 0.95, runs: 2, spread: [0.93, 1.15], source: `Mixtral-8x7B on A100 (${GPT_FAST})` },
  gddr: {
    share: 0.6,
    runs: 3,
    spread: [0.47, 0.83],
    source:
      'gpt-oss-20B and granite-4.0-h-small in 4 bits (llmfit, community benchmarks; smeltcore.com)',
  },
  lpddr: {
    share: 0.75,
    runs: 6,
    spread: [0.45, 1.2],
    source:
      'gpt-oss and Qwen3 mixtures in 4 bits (amd-strix-halo-toolboxes; llmfit, community benchmarks)',
  },
};

/** Share of the compute peak of a dense prefill that a mixture reaches. */
const EXPERT_COMPUTING: MeasuredShare = {
  share: 0.45,
  runs: 2,
  spread: [0.37, 0.46],
  source: 'prompts of gpt-oss-20B on an RTX 5090 and a DGX Spark (llama.cpp)',
};

/** Launches of a captured graph, with the time in which the kernels of a small matrix do not fill the GPU. */
export const LAUNCH = {
  seconds: 3e-6,
  source:
    'launches: 3 µs each in a captured graph, with the start and end of each kernel (Qwen3-0.6B on an H20 in SGLang: 3.8; ' +
    'Llama on eight A100, gpt-fast: 3)',
} as const;

/** Share of the compute peak in a long prefill, in 16-bit products unless stated otherwise. */
const COMPUTING = {
  wide: {
    share: 0.65,
    source:
      '62 to 67% of an A100, 2,048 tokens of Llama-2 (TensorRT-LLM, performance.md, v0.6.1; lmdeploy, a100_fp16.md)',
  },
  hopper: {
    share: 0.5,
    source: '42 to 58% of an H100 in training, with recomputation (llm-foundry, README, 2024)',
  },
  eight: {
    share: 0.39,
    source: '39% of the peak in FP8 of an H100 (TensorRT-LLM, performance.md, v0.6.1)',
  },
  eightOfAda: {
    share: 0.52,
    source: '52% of the peak in FP8 of an L40S (TensorRT-LLM, performance.md, v0.6.1)',
  },
} as const satisfies Record<string, MeasuredShare>;

/** Share of the compute peak, by the type of the products. */
function computing(isNarrow: boolean, architecture: GpuArchitecture | undefined): MeasuredShare {
  if (isNarrow) return architecture === 'sm89' ? COMPUTING.eightOfAda : COMPUTING.eight;
  return architecture === 'sm90' ? COMPUTING.hopper : COMPUTING.wide;
}

const BEST: Efficiency = {
  memoryUtilisation: 1,
  weightUtilisation: 1,
  expertUtilisation: 1,
  computeUtilisation: 1,
  expertComputeUtilisation: 1,
  linkUtilisation: 1,
  launchSeconds: 0,
  reduceSeconds: 0,
  hopSeconds: { nvlink: 0, pcie: 0, network: 0 },
  source: 'roofline: everything at peak, no waiting',
};

const POOR: Efficiency = {
  memoryUtilisation: 0.42,
  weightUtilisation: 0.42,
  expertUtilisation: 0.42,
  computeUtilisation: 0.14,
  expertComputeUtilisation: 0.14,
  linkUtilisation: 0.4,
  launchSeconds: 84e-6,
  reduceSeconds: 14e-6,
  hopSeconds: { nvlink: 3.8e-6, pcie: 5e-6, network: 8e-6 },
  source:
    'memory: Llama-2-7B in 4 bits reads 863 of 2,039 GB/s (gpt-fast, README, 2023); compute: 14% of the peak when ' +
    'decoding for low latency (PaLM 540B, arXiv 2211.05102, table 2); links: 28 of 64 GB/s ' +
    'on PCIe 5 (NCCL, issue 1639); launches: 25.5 tokens/s of Llama-2-7B before compiling (PyTorch blog, "Accelerating ' +
    'Generative AI II", 2023), 39 ms for 387 layers and 7 ms of reading; all-reduce: 14 µs and a step of 1.9 µs over ' +
    'NVLink, 2.5 over PCIe, 4.0 between machines (NCCL, tuning.cc, ring, LL128)',
};

/** Properties of a workload that change its utilisation. */
interface Computed {
  readonly weights: WeightWidth;
  /** Whether products are in 8 bits or fewer. */
  readonly isNarrow: boolean;
}

const IN_16_BITS: Computed = { weights: 'wide', isNarrow: false };

/**
 * A share by the benchmark of a machine.
 * @param most Share of the limit. Products of quantized weights can pass the peak of 16 bits: programs with products in 8
 * bits (llama.cpp, MMQ) reach more.
 */
export const calibratedShare = (share: number, factor = 1, most = 1): number =>
  Math.min(most, share * factor);

/** Utilisation on a GPU, for each bound. */
export function efficienciesOn(
  {
    architecture,
    name,
    calibration,
  }: Pick<Gpu, 'architecture' | 'calibration'> & Partial<Pick<Gpu, 'name'>>,
  { weights, isNarrow }: Computed = IN_16_BITS,
): Efficiencies {
  const kind = architecture === undefined ? 'hbm' : memoryKindOf(architecture);
  const { wide } = READING[kind];
  const read = (READING_OF_CARD[name ?? ''] ?? READING[kind])[weights];
  const experts = EXPERT_READING[kind];
  const products = computing(isNarrow, architecture);
  const { reading, computing: computed = 1 }: Partial<Calibration> = calibration ?? {};
  const most = Math.max(1, products.share * computed);
  return {
    lower: { ...BEST, computeUtilisation: most, expertComputeUtilisation: most },
    expected: {
      memoryUtilisation: calibratedShare(wide.share, reading),
      weightUtilisation: calibratedShare(read.share, reading),
      expertUtilisation: calibratedShare(read.share * experts.share, reading),
      computeUtilisation: calibratedShare(products.share, computed, most),
      expertComputeUtilisation: calibratedShare(
        products.share * EXPERT_COMPUTING.share,
        computed,
        most,
      ),
      linkUtilisation: 0.77,
      launchSeconds: LAUNCH.seconds,
      reduceSeconds: 6.6e-6,
      hopSeconds: { nvlink: 1.2e-6, pcie: 2e-6, network: 5.4e-6 },
      source:
        `memory: ${shareSource(wide)}; weights: ${shareSource(read)}; experts: ${shareSource(experts)}; ` +
        `compute: ${shareSource(products)}, in mixtures ${shareSource(EXPERT_COMPUTING)}; ` +
        `links: 230 of 300 GB/s in an all-reduce (nccl-tests on a DGX A100); ${LAUNCH.source}; ` +
        'all-reduce: 6.6 µs and a step of 0.6 µs over NVLink, 1.0 over PCIe, 2.7 between machines (NCCL, tuning.cc, ' +
        `ring, LL)${calibration ? `; shares calibrated with ${calibration.source}` : ''}`,
    },
    upper: POOR,
  };
}

const percent = (share: number) => `${Math.round(100 * share)}%`;

function shareSource({ share, runs, spread, source }: MeasuredShare): string {
  if (runs === undefined || spread === undefined) return `${percent(share)}, ${source}`;
  const [least, most] = spread;
  return `${percent(share)}, ${percent(least)} to ${percent(most)} in ${runs} runs, ${source}`;
}

/** Link that connects the GPUs of a group. */
export interface GroupLink extends Pick<Link, 'name' | 'gpus' | 'bandwidth'> {
  /** GPUs of the group per machine, each with its own network link; 1 if the group is within one machine. */
  readonly ways: number;
}

/** Seconds of a hop, which is two steps of a ring. In a ring over machines, one hop in `ways` leaves a machine. */
export function hopSeconds(
  { hopSeconds: hops }: Efficiency,
  { name, gpus, ways }: GroupLink,
): number {
  if (Number.isFinite(gpus)) return /^pcie\b/i.test(name) ? hops.pcie : hops.nvlink;
  return (hops.network + (ways - 1) * hops.nvlink) / ways;
}

/** Kernel launches of one pass through some layers. */
export interface KernelLaunches {
  /** Launches of all layers, in sequence. */
  readonly layers: number;
  /** Launches of attention and scans only, which selective recomputation repeats. */
  readonly kernels: number;
}

export const kernelLaunchesOf = (layers: readonly Layer[]): KernelLaunches => ({
  layers: sumOf(layers, (layer) => launchesIn(layer).layers),
  kernels: sumOf(layers, (layer) => launchesIn(layer).kernels),
});

const launchesIn = memoized((layer: Layer): KernelLaunches => {
  // Layers that blocks share are launched in each block, and once more where the model holds them.
  const shared = layer.kind === 'languageModel' ? layer.shared : [];
  const primitives = [...shared, layer].flatMap((each) => primitivesOf(each));
  const sum = (all: typeof primitives) => sumOf(all, ({ launches }) => launches);
  return {
    layers: sum(primitives),
    kernels: sum(primitives.filter(({ kind }) => kind === 'scores' || kind === 'scan')),
  };
});
