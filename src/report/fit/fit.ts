/** Report of `minimind fit`: a verdict for training and for serving, and its basis. */
import type { Fits, MachineForward } from '../../fit/fits.js';
import type { UnmetRequirement } from '../../fit/remedies/remedies.js';
import type { Cluster, Gpu, GpuMachine, Hardware, PeakDtype } from '../../hardware/gpu.js';
import type { MachineProfile } from '../../hardware/machine-profile.js';
import {
  formatBytes,
  formatCount,
  formatInteger,
  formatSeconds,
  loadText,
  significant,
} from '../../text/units.js';
import { heading, left, note, right, strong } from '../kit/cells.js';
import type { Block, Cell, Report, TableBlock } from '../kit/report.js';
import { explanationBlocks } from '../profile/inventory.js';
import { boundsCells, boundsColumns, bytesText } from './fit-bounds.js';
import { csvTable } from './fit-csv.js';
import type { Serving } from './fit-serving.js';
import { servingBlocks } from './fit-serving.js';
import { trainingBlocks } from './fit-training.js';

export interface FitResult extends Fits {
  readonly file: string;
  readonly family: string;
  readonly parameters: number;
  readonly cluster: Cluster;
  /** Reasons for doubt about the availability of the requested setup. */
  readonly doubts: readonly UnmetRequirement[];
  /** Measured profile when the hardware is this machine. */
  readonly profile: MachineProfile | null;
  /** A forward pass on this machine. */
  readonly forward: MachineForward | null;
}

/** @param flat Whether to output one table, for programs. */
export function fitReport(
  result: FitResult,
  { explain, flat }: { readonly explain: boolean; readonly flat: boolean },
): Report {
  const { file, family, parameters, cluster, training, serving, doubts } = result;
  if (flat) return { blocks: [csvTable(result)] };
  return {
    blocks: [
      heading(`${family} model of ${file} on ${hardwareText(cluster)}`),
      note(
        `${formatCount(parameters)} parameters. Of every figure there is what must be (lower), what is expected, and ` +
          'what poor software makes of it (upper); --explain has the formulas.',
      ),
      ...(training ? trainingBlocks(training) : []),
      ...(serving ? servingBlocks(serving, doubts) : []),
      ...(result.forward && result.profile ? forwardBlocks(result.forward, result.profile) : []),
      ...(explain ? explanationBlocks(sectionsOf(result)) : []),
    ],
  };
}

const hardwareText = ({ gpu, gpus }: Cluster) =>
  `${gpus === 1 ? '' : `${formatInteger(gpus)} × `}${gpu.title}`;

const sectionsOf = ({ training, serving, forward }: FitResult) => ({
  ...(training && { training: training.fit }),
  ...(serving && { serving: explained(serving.fit) }),
  ...(forward && { 'a forward pass here': forward }),
});

/** A model that does not fit has no speed. */
function explained(fit: Serving['fit']): Partial<Serving['fit']> {
  if (fit.withoutRoom === null) return fit;
  const { prefill: _, decode: __, ...memory } = fit;
  return memory;
}

/** Forward pass, as measured by `quick-test`. */
const forwardBlocks = (
  { batch, tokens, seconds, bytes }: MachineForward,
  { engine, measured, load, history }: MachineProfile,
): Block[] => [
  heading(
    `A forward pass of ${formatInteger(batch)} × ${formatInteger(tokens)} tokens on this machine, ${engine.title}, in ${engine.compute}`,
  ),
  {
    kind: 'table',
    columns: [left('quick-test will tell', 'what'), ...boundsColumns('value')],
    rows: [
      [strong('time'), ...boundsCells(seconds, formatSeconds)],
      [strong('memory, beside what it begins with'), ...boundsCells(bytes, bytesText)],
    ],
  },
  note(
    `Measured on ${measured.slice(0, 10)} at ${loadText(load)}. ${historyText(history)} A lower bound of time is the ` +
      'best that was seen with a margin for what was not; an upper one holds at loads like those that were seen.',
  ),
];

const historyText = ({ measurements, since, leastLoad }: MachineProfile['history']): string =>
  measurements === 1
    ? 'Best and worst are of this one measurement.'
    : `Best and worst are of ${formatInteger(measurements)} measurements since ${since.slice(0, 10)}, the quietest at ` +
      `${loadText(leastLoad)}.`;

// Report of `minimind fit --list-gpus`.

export const hardwareReport = ({ gpus, machines }: Hardware): Report => ({
  blocks: [
    heading('GPUs'),
    gpusTable(gpus),
    note(
      'Peaks in TFLOP/s (TOP/s of integers) of dense matrices, sums in float32; GB is 10^9 bytes. usable: what programs ' +
        'can have of the memory, where that is known: more than its label says, as chips hold GiB, or less. Where it is ' +
        'not known, fit counts with what is sold.',
    ),
    heading('Machines'),
    machinesTable(machines),
  ],
});

/** Order of the types; a wide terminal shows only the usual ones. */
const IS_USUAL: Readonly<Record<PeakDtype, boolean>> = {
  f32: true,
  tf32: false,
  bf16: true,
  f16: true,
  f8: true,
  f4: false,
  int8: true,
  int4: false,
};

const PEAKS = Object.keys(IS_USUAL) as PeakDtype[];
const USUAL = PEAKS.filter((dtype) => IS_USUAL[dtype]);

/** The types that fit into 80 columns. */
const FEW = ['f32', 'bf16', 'f16', 'f8'] as const satisfies readonly PeakDtype[];

const gpusTable = (gpus: readonly Gpu[]): TableBlock => ({
  ...peaksTable(gpus, PEAKS, { hasTitle: true, hasSource: true }),
  narrower: {
    ...peaksTable(gpus, USUAL, { hasTitle: true, hasSource: false }),
    narrower: {
      ...peaksTable(gpus, FEW, { hasTitle: false, hasSource: false }),
      narrower: peaksTable(gpus, ['bf16'], { hasTitle: false, hasSource: false }),
    },
  },
});

function peaksTable(
  gpus: readonly Gpu[],
  dtypes: readonly PeakDtype[],
  { hasTitle, hasSource }: { readonly hasTitle: boolean; readonly hasSource: boolean },
): TableBlock {
  return {
    kind: 'table',
    columns: [
      left('name', 'name'),
      ...(hasTitle ? [left('title', 'title', true)] : []),
      right('memory', 'memory_bytes'),
      right('usable', 'usable_bytes'),
      right('bandwidth', 'bandwidth_bytes_per_second'),
      ...dtypes.map((dtype) => right(dtype, `${dtype}_flops`)),
      ...(hasSource ? [left('link', 'link'), left('source', 'source', true)] : []),
    ],
    rows: gpus.map((gpu) => [
      strong(gpu.name),
      ...(hasTitle ? [{ text: gpu.title }] : []),
      { text: formatBytes(gpu.memoryBytes), value: gpu.memoryBytes },
      usableCell(gpu),
      { text: `${formatBytes(gpu.bandwidth)}/s`, value: gpu.bandwidth },
      ...dtypes.map((dtype): Cell => peakCell(gpu.peakFlops[dtype])),
      ...(hasSource ? [{ text: gpu.links[0]?.name ?? '' }, { text: gpu.source }] : []),
    ]),
  };
}

const usableCell = ({ memoryBytes, usable }: Gpu): Cell =>
  usable
    ? { text: formatBytes(usable.bytes), value: usable.bytes }
    : { text: '', value: memoryBytes };

const peakCell = (peak: number | undefined): Cell =>
  peak === undefined ? { text: '–', value: '' } : { text: significant(peak / 1e12), value: peak };

const machinesTable = (machines: readonly GpuMachine[]): TableBlock => ({
  kind: 'table',
  columns: [
    left('name', 'name'),
    left('title', 'title', true),
    right('GPUs', 'gpus'),
    left('GPU', 'gpu'),
    left('network', 'network', true),
  ],
  rows: machines.map(({ name, title, gpus, gpu, network }) => [
    strong(name),
    { text: title },
    { text: String(gpus), value: gpus },
    { text: gpu.name },
    { text: network?.name ?? '' },
  ]),
});
