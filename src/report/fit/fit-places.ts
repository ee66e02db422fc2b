/** A model on GPUs and in system memory, in the report of `minimind fit`. */

import { llamaFlags } from '../../base/text/llama-flags.js';
import { setting as flag } from '../../base/text/setting.js';
import { formatInteger, formatSeconds, significant } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { present, sumOf } from '../../base/values.js';
import type { PlacesFit } from '../../estimate/fit/places/places.js';
import type { Cluster } from '../../estimate/hardware/gpu.js';
import type { Block, Cell, Fact, Verdict } from '../kit/report.js';
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
import { boundsCells, boundsColumns, bytesText, ramText, sameBounds, TONES } from './fit-bounds.js';
import type { Serving } from './fit-serving.js';

/** `24 tokens/s (17–34)`, of one sequence or of all. */
const speedText = ({ decode: { tokensPerSecond, published } }: PlacesFit): string =>
  `${significant(tokensPerSecond.expected.value)} tokens/s (estimate; 9 of 10 runs: ${significant(published.lower)}–${significant(published.upper)})`;

/** `2 × NVIDIA GeForce RTX 3090 + 1 × NVIDIA GeForce RTX 4090` */
export const hardwareText = ({ gpu, gpus, cards = [{ gpu, gpus }] }: Cluster): string =>
  cards.map((each) => `${formatInteger(each.gpus)} × ${each.gpu.title}`).join(' + ');

/** The answer to a question about system memory, or about GPUs of several kinds. */
export function placesVerdict(places: PlacesFit, cluster: Cluster): Verdict {
  const { verdict, lacking, system, memory, gpu, capacity } = places;
  const tone = TONES[verdict];
  const isAlone = cluster.gpu.kind === 'processor';
  const on = isAlone ? cluster.gpu.title : hardwareText(cluster);
  if (lacking > 0) {
    const text = `Does not fit on ${on} with ${bytesText(memory.bytes ?? 0)} of system memory: ${bytesText(lacking)} too little`;
    return { text, tone };
  }
  if (verdict === 'does not fit') {
    const { cards } = places;
    const over =
      cards.length === 0
        ? gpu.expected.value - capacity.value
        : sumOf(cards, (card) => Math.max(0, card.memory.expected.value - card.capacity.value));
    const what = cards.length === 0 ? 'the GPU' : 'the GPUs';
    return { text: `Does not fit on ${on}: ${bytesText(over)} too much for ${what}`, tone };
  }
  const fits = verdict === 'fits' ? 'Fits' : 'May fit';
  const isWhole =
    places.inSystem.weights + places.inSystem.experts + places.inSystem.cache === 0 && !isAlone;
  const rest = isWhole
    ? ''
    : `${isAlone ? ',' : ' and'} ${bytesText(system.value)} of system memory`;
  const speed = significant(places.decode.tokensPerSecond.expected.value);
  return { text: `${fits} on ${on}${rest}: ${speed} tokens/s (estimate)`, tone };
}

/** `: 36 on RTX 5090, 29 on RTX 3090` */
function divisionText(cards: PlacesFit['cards']): string {
  if (cards.length === 0) return '';
  const each = cards.map(({ layers, gpu }) => `${formatInteger(layers)} on ${gpu}`);
  return `: ${each.join(', ')}`;
}

/** `all 49, with the experts of the first 36 of 48 in system memory` */
function placementText({ gpuLayers, layers, cpuExperts, expertBlocks, cards }: PlacesFit): string {
  const onGpu =
    gpuLayers === 0
      ? 'none: all layers are in system memory'
      : gpuLayers === layers
        ? `all ${formatInteger(layers)}`
        : `${formatInteger(gpuLayers)} of ${formatInteger(layers)}, with the output`;
  const isApart = gpuLayers > 0 && cpuExperts > 0 && expertBlocks > 0;
  if (!isApart) return `${onGpu}${divisionText(cards)}`;
  const first =
    cpuExperts >= layers - 1 ? 'all experts' : `experts of the first ${formatInteger(cpuExperts)}`;
  return `${onGpu}${divisionText(cards)}; ${first} in system memory`;
}

/** Facts about a model in several places, where the user asked for them. */
export function placesFacts(places: PlacesFit, setting: Serving['setting']): Fact[] {
  const { gpu, capacity, system, memory, prefill, verdict } = places;
  const isRunning = verdict !== 'does not fit';
  const size = memory.bytes === null ? '' : ` of ${bytesText(memory.bytes)}`;
  const isAlone = setting.cluster.gpu.kind === 'processor';
  const { cards } = places;
  const onGpu =
    cards.length === 0
      ? `GPU ${bytesText(gpu.expected.value)} of ${bytesText(capacity.value)} · `
      : cards
          .map(
            (card) =>
              `${card.gpu} ${bytesText(card.memory.expected.value)} of ${bytesText(card.capacity.value)} · `,
          )
          .join('');
  return present([
    !isAlone && { name: 'GPU layers', text: placementText(places) },
    {
      name: 'memory',
      text: `${isAlone ? '' : onGpu}system memory ${bytesText(system.value)}${size}`,
    },
    (isAlone || isSpilling(places)) && {
      name: 'RAM',
      text: `${memory.label}, ${significant(memory.bandwidth / 1e9)} GB/s${memory.isAssumed ? ` (assumed; ${flag('ramSpeed', 'ddr4-3200')})` : ''}`,
    },
    isRunning && { name: 'speed', text: speedText(places) },
    isRunning &&
      prefill === null &&
      isAlone && {
        name: 'prompt',
        text: `no estimate: the peak of this processor is not known; ${flag('thisMachine')} measures yours`,
      },
    isRunning &&
      prefill && {
        name: 'prompt',
        text: `${counted(setting.prompt, 'token')} in ${formatSeconds(prefill.expected.value)} (${formatSeconds(prefill.lower.value)} to ${formatSeconds(prefill.upper.value)})`,
      },
    isRunning && { name: 'llama.cpp', text: llamaText(places, setting) },
  ]);
}

/** Whether weights that each token reads are in system memory, or it was named. */
const isSpilling = ({ inSystem, memory }: PlacesFit): boolean =>
  inSystem.weights + inSystem.experts + inSystem.cache > 0 ||
  memory.bytes !== null ||
  !memory.isAssumed;

/** `-ngl 49 --n-cpu-moe 36 -c 2048`, for llama-server and llama-cli. */
const llamaText = (places: PlacesFit, setting: Serving['setting']): string =>
  llamaFlags({ setting, sequences: setting.batch, places })
    .map(({ short, value }) => (value === undefined ? `-${short}` : `-${short} ${value}`))
    .join(' ');

/** Details of a model in several places. */
export function placesBlocks(places: PlacesFit, { cluster }: Serving['setting']): Block[] {
  const { onGpus, inSystem, capacity, decode, prefill, verdict } = places;
  const isAlone = cluster.gpu.kind === 'processor';
  const { cards, link } = places;
  const rows = [
    ...(isAlone || cards.length > 0
      ? cards.map(({ gpu: name, layers, holds }) => ({
          place: `${name}, ${counted(layers, 'layer')}`,
          ...holds,
        }))
      : [{ place: 'GPU', ...onGpus }]),
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
        ...(isAlone ? [] : memoryRows(places)),
        [strongCell('a step of decoding'), ...boundsCells(decode.seconds, formatSeconds)],
        prefill && [strongCell('a prompt'), ...boundsCells(prefill, formatSeconds)],
      ]),
    },
    !isAlone &&
      noteOf(
        cards.length === 0
          ? `A GPU has ${bytesText(capacity.value)}.`
          : `${cards.map((card) => `${card.gpu} has ${bytesText(card.capacity.value)}`).join(', ')}. The GPUs work in turn${link ? `; their slowest link is ${link.name}` : ''}.`,
      ),
    verdict === 'does not fit' && noteOf('The times assume that all of it fits.'),
  ]);
}

/** Memory of each GPU, with its workspace. */
const memoryRows = ({ gpu, cards }: PlacesFit): Cell[][] =>
  cards.length === 0
    ? [[strongCell('memory of a GPU, with workspace'), ...boundsCells(gpu, bytesText)]]
    : cards.map((card) => [
        strongCell(`memory of ${card.gpu}, with workspace`),
        ...boundsCells(card.memory, bytesText),
      ]);

/** `--ram 32GB, 24 tokens/s: all 49; experts of the first 36 in system memory` */
export function placesProposal(places: PlacesFit): string {
  return `${flag('ramBytes', ramFor(places))}, ${speedText(places)}: GPU layers ${placementText(places)}`;
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
  ...(places.cards.length === 0
    ? [{ what: 'with system memory: memory of a GPU', unit: 'bytes', bounds: places.gpu } as const]
    : places.cards.flatMap((card, at): BoundsRow[] => [
        {
          what: `GPU ${at + 1}, ${card.gpu}: layers`,
          unit: 'layers',
          bounds: sameBounds(card.layers),
        },
        { what: `GPU ${at + 1}, ${card.gpu}: memory`, unit: 'bytes', bounds: card.memory },
      ])),
  {
    what: 'with system memory: system memory',
    unit: 'bytes',
    bounds: sameBounds(places.system.value),
  },
  { what: 'with system memory: decoding', unit: 'tokens/s', bounds: places.decode.tokensPerSecond },
];

/** The smallest usual size of system memory that is enough. */
export const ramFor = ({ usualBytes }: PlacesFit): string => ramText(usualBytes);
