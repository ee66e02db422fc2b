/** A model on GPUs and in system memory, in the report of `minimind fit`. */
import { setting as flag } from '../../base/text/setting.js';
import { formatInteger, formatSeconds, significant } from '../../base/text/units.js';
import { counted, present } from '../../base/text/words.js';
import type { PlacesFit } from '../../estimate/fit/places/places.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import type { Block, Fact, Verdict } from '../kit/report.js';
import {
  headingBlock,
  leftColumn,
  noteOf,
  right,
  strongCell,
  tableOf,
  valueCell,
} from '../kit/report.js';
import type { BoundsRow } from './fit-bounds.js';
import { boundsCells, boundsColumns, bytesText, sameBounds, TONES } from './fit-bounds.js';
import type { Serving } from './fit-serving.js';

/** Sizes of system memory in shops, in GB. */
const SIZES = [16, 32, 48, 64, 96, 128, 192, 256] as const;

/** `24 tokens/s (17–34)`, of one sequence or of all. */
const speedText = ({ decode: { tokensPerSecond, published } }: PlacesFit): string =>
  `${significant(tokensPerSecond.expected.value)} tokens/s (estimate; 9 of 10 runs: ${significant(published.lower)}–${significant(published.upper)})`;

/** The answer to a question about system memory. */
export function placesVerdict(places: PlacesFit, { gpu: { kind, title }, gpus }: Cluster): Verdict {
  const { verdict, lacking, system, memory, gpu, capacity } = places;
  const tone = TONES[verdict];
  const isAlone = kind === 'processor';
  const on = isAlone ? title : `${formatInteger(gpus)} × ${title}`;
  if (lacking > 0) {
    const text = `Does not fit on ${on} with ${bytesText(memory.bytes ?? 0)} of system memory: ${bytesText(lacking)} too little`;
    return { text, tone };
  }
  if (verdict === 'does not fit') {
    const over = gpu.expected.value - capacity.value;
    return { text: `Does not fit on ${on}: ${bytesText(over)} too much for the GPU`, tone };
  }
  const fits = verdict === 'fits' ? 'Fits' : 'May fit';
  const rest = `${isAlone ? ',' : ' and'} ${bytesText(system.value)} of system memory`;
  const speed = significant(places.decode.tokensPerSecond.expected.value);
  return { text: `${fits} on ${on}${rest}: ${speed} tokens/s (estimate)`, tone };
}

/** `all 49, with the experts of the first 36 of 48 in system memory` */
function placementText({ gpuLayers, layers, cpuExperts, expertBlocks }: PlacesFit): string {
  const onGpu =
    gpuLayers === 0
      ? 'none: all layers are in system memory'
      : gpuLayers === layers
        ? `all ${formatInteger(layers)}`
        : `${formatInteger(gpuLayers)} of ${formatInteger(layers)}, with the output`;
  const isApart = gpuLayers > 0 && cpuExperts > 0 && expertBlocks > 0;
  if (!isApart) return onGpu;
  const first =
    cpuExperts >= layers - 1 ? 'all experts' : `experts of the first ${formatInteger(cpuExperts)}`;
  return `${onGpu}; ${first} in system memory`;
}

/** Facts about a model in several places, where the user asked for them. */
export function placesFacts(places: PlacesFit, setting: Serving['setting']): Fact[] {
  const { gpu, capacity, system, memory, prefill, verdict } = places;
  const isRunning = verdict !== 'does not fit';
  const size = memory.bytes === null ? '' : ` of ${bytesText(memory.bytes)}`;
  const isAlone = setting.cluster.gpu.kind === 'processor';
  const onGpu = `GPU ${bytesText(gpu.expected.value)} of ${bytesText(capacity.value)} · `;
  return present([
    !isAlone && { name: 'GPU layers', text: placementText(places) },
    {
      name: 'memory',
      text: `${isAlone ? '' : onGpu}system memory ${bytesText(system.value)}${size}`,
    },
    {
      name: 'RAM',
      text: `${memory.label}, ${significant(memory.bandwidth / 1e9)} GB/s${memory.isAssumed ? ` (assumed; ${flag('ramSpeed', 'ddr4-3200')})` : ''}`,
    },
    isRunning && { name: 'speed', text: speedText(places) },
    isRunning &&
      prefill && {
        name: 'prompt',
        text: `${counted(setting.prompt, 'token')} in ${formatSeconds(prefill.expected.value)} (${formatSeconds(prefill.lower.value)} to ${formatSeconds(prefill.upper.value)})`,
      },
    isRunning && { name: 'llama.cpp', text: llamaFlags(places, setting) },
  ]);
}

/** Types of a cache in llama.cpp; its default is f16 (common/arg.cpp: `--cache-type-k`). */
const CACHE_TYPES: Readonly<Partial<Record<string, string>>> = {
  f32: 'f32',
  int8: 'q8_0',
  int4: 'q4_0',
  q8_0: 'q8_0',
  q4_0: 'q4_0',
};

/** `-ngl 49 --n-cpu-moe 36 -c 2048`, for llama-server and llama-cli. */
function llamaFlags(
  { gpuLayers, cpuExperts }: PlacesFit,
  { context, batch, cacheDtype }: Serving['setting'],
): string {
  const type = CACHE_TYPES[cacheDtype];
  return [
    `-ngl ${gpuLayers}`,
    ...(gpuLayers > 0 && cpuExperts > 0 ? [`--n-cpu-moe ${cpuExperts}`] : []),
    `-c ${batch * context}`,
    ...(batch > 1 ? [`-np ${batch}`] : []),
    ...(type ? [`-ctk ${type} -ctv ${type}`] : []),
  ].join(' ');
}

/** Details of a model in several places. */
export function placesBlocks(places: PlacesFit, { cluster }: Serving['setting']): Block[] {
  const { onGpus, inSystem, gpu, capacity, decode, prefill, verdict } = places;
  const isAlone = cluster.gpu.kind === 'processor';
  const rows = [
    ...(isAlone ? [] : [{ place: cluster.gpus === 1 ? 'GPU' : 'GPUs', ...onGpus }]),
    { place: 'system memory', ...inSystem },
  ];
  const sizes = rows.map((row) => ({
    ...row,
    total: row.weights + row.experts + row.cache + row.embedding,
  }));
  return present([
    headingBlock('Where the model is'),
    tableOf(sizes, [
      leftColumn('place', 'place', ({ place }) => strongCell(place)),
      right('weights', 'weights_bytes', ({ weights }) => valueCell(weights, bytesText)),
      right('experts', 'experts_bytes', ({ experts }) => valueCell(experts, bytesText)),
      right('caches', 'cache_bytes', ({ cache }) => valueCell(cache, bytesText)),
      right('embedding', 'embedding_bytes', ({ embedding }) => valueCell(embedding, bytesText)),
      right('total', 'total_bytes', ({ total }) => valueCell(total, bytesText)),
    ]),
    headingBlock('Memory and speed'),
    {
      kind: 'table',
      columns: [leftColumn('', 'what'), ...boundsColumns('value')],
      rows: present([
        !isAlone && [strongCell('memory of a GPU, with workspace'), ...boundsCells(gpu, bytesText)],
        [strongCell('a step of decoding'), ...boundsCells(decode.seconds, formatSeconds)],
        prefill && [strongCell('a prompt'), ...boundsCells(prefill, formatSeconds)],
      ]),
    },
    !isAlone && noteOf(`A GPU has ${bytesText(capacity.value)}.`),
    verdict === 'does not fit' && noteOf('The times assume that all of it fits.'),
  ]);
}

/** `--ram 32GB, 24 tokens/s: all 49; experts of the first 36 in system memory` */
export function placesProposal(places: PlacesFit): string {
  return `${flag('ramBytes', ramFor(places))}, ${significant(places.decode.tokensPerSecond.expected.value)} tokens/s: GPU layers ${placementText(places)}`;
}

/** Rows of CSV. */
export const placesRows = (places: PlacesFit): BoundsRow[] => [
  {
    what: 'with system memory: layers on GPUs',
    unit: 'layers',
    bounds: sameBounds(places.gpuLayers),
  },
  {
    what: 'with system memory: layers with experts there',
    unit: 'layers',
    bounds: sameBounds(places.cpuExperts),
  },
  { what: 'with system memory: memory of a GPU', unit: 'bytes', bounds: places.gpu },
  {
    what: 'with system memory: system memory',
    unit: 'bytes',
    bounds: sameBounds(places.system.value),
  },
  { what: 'with system memory: decoding', unit: 'tokens/s', bounds: places.decode.tokensPerSecond },
];

/** The smallest usual size of system memory that is enough. */
export function ramFor({ needed }: PlacesFit): string {
  const gigabytes = needed / 1e9;
  return `${SIZES.find((size) => size >= gigabytes) ?? Math.ceil(gigabytes)}GB`;
}
