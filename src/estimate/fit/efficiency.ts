/** Share of the hardware's peaks that programs reach, and their overheads, in serving and in training. */

import { sumOf } from '../../base/text/words.js';
import type { Layer } from '../../model/architecture/layer.js';
import { memoized } from '../../model/architecture/walk.js';
import type { Bounds } from '../../model/budget/figure.js';
import { primitivesOf } from '../../model/operations/lower.js';
import type { Gpu, GpuArchitecture, Link, MemoryKind } from '../hardware/gpu.js';
import { memoryKindOf } from '../hardware/gpu.js';

/** Utilisation of memory bandwidth, compute peak and links, and the overhead of each operation. */
export interface Efficiency {
  /** Share of the bandwidth for caches, activations and 16-bit weights. */
  readonly memoryUtilisation: number;
  /** Share of the bandwidth for weights in decoding. */
  readonly weightUtilisation: number;
  readonly computeUtilisation: number;
  readonly linkUtilisation: number;
  /** Seconds per kernel launch. */
  readonly launchSeconds: number;
  /** Seconds of an all-reduce regardless of its size, and of each further GPU in the ring, by their connection. */
  readonly reduceSeconds: number;
  readonly hopSeconds: Readonly<Record<'nvlink' | 'pcie' | 'network', number>>;
  readonly source: string;
}

export type Efficiencies = Readonly<Record<keyof Bounds, Efficiency>>;

/** Width of weights: more unpacking work before a product for fewer bits. */
export type WeightWidth = 'wide' | 'eight' | 'four';

interface MeasuredShare {
  readonly share: number;
  readonly source: string;
}

const GPT_FAST = 'on an A100 with 2,039 GB/s (gpt-fast, README, 2024)';
const LLAMA_CPP = 'Llama-3-8B in llama.cpp (GPU-Benchmarks-on-LLM-Inference, 2024)';

/** Share of the memory bandwidth, by memory kind and weight width. */
const READING: Readonly<Record<MemoryKind, Readonly<Record<WeightWidth, MeasuredShare>>>> = {
  hbm: {
    wide: { share: 0.69, source: `Llama-2-7B in 16 bits reads 1,397 GB/s ${GPT_FAST}` },
    eight: { share: 0.52, source: `Llama-2-7B in int8 reads 1,069 GB/s ${GPT_FAST}` },
    four: { share: 0.42, source: `Llama-2-7B in int4 reads 863 GB/s ${GPT_FAST}` },
  },
  gddr: {
    wide: { share: 0.8, source: `74 to 85% on seven cards, 16 bits, ${LLAMA_CPP}` },
    eight: { share: 0.74, source: 'assumed, between 16 and 4 bits' },
    four: { share: 0.68, source: `63 to 83% on an RTX 3090 and a 3070, Q4_K_M, ${LLAMA_CPP}` },
  },
  lpddr: {
    wide: { share: 0.72, source: `69 to 85% on an M1 Max, M2 Ultra and M3 Max, ${LLAMA_CPP}` },
    eight: { share: 0.6, source: 'assumed, between 16 and 4 bits' },
    four: { share: 0.5, source: `50% on an M2 Ultra, Q4_K_M, ${LLAMA_CPP}` },
  },
};

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
  computeUtilisation: 1,
  linkUtilisation: 1,
  launchSeconds: 0,
  reduceSeconds: 0,
  hopSeconds: { nvlink: 0, pcie: 0, network: 0 },
  source: 'roofline: everything at peak, no waiting',
};

const POOR: Efficiency = {
  memoryUtilisation: 0.42,
  weightUtilisation: 0.42,
  computeUtilisation: 0.14,
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

/** Utilisation on a GPU, for each bound. */
export function efficienciesOn(
  { architecture }: Pick<Gpu, 'architecture'>,
  { weights, isNarrow }: Computed = IN_16_BITS,
): Efficiencies {
  const memory = READING[architecture === undefined ? 'hbm' : memoryKindOf(architecture)];
  const products = computing(isNarrow, architecture);
  const { wide, [weights]: read } = memory;
  return {
    lower: BEST,
    expected: {
      memoryUtilisation: wide.share,
      weightUtilisation: read.share,
      computeUtilisation: products.share,
      linkUtilisation: 0.77,
      launchSeconds: 0.5e-6,
      reduceSeconds: 6.6e-6,
      hopSeconds: { nvlink: 1.2e-6, pcie: 2e-6, network: 5.4e-6 },
      source:
        `memory: ${wide.source}${weights === 'wide' ? '' : `; weights: ${read.source}`}; compute: ${products.source}; ` +
        'links: 230 of 300 GB/s in an all-reduce (nccl-tests on a DGX A100); launches: 0.5 µs each in a CUDA graph ' +
        '(NVIDIA, "Getting started with CUDA graphs", 2019); all-reduce: 6.6 µs and a step of 0.6 µs over NVLink, 1.0 ' +
        'over PCIe, 2.7 between machines (NCCL, tuning.cc, ring, LL)',
    },
    upper: POOR,
  };
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
