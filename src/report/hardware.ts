/** What `minimind fit --list-gpus` prints. */
import { type Gpu, type Machine, PEAK_DTYPES } from '../hardware/gpu.js';
import { heading, left, note, right, strong } from './cells.js';
import type { Cell, Report, TableBlock } from './report.js';
import { formatBytes, significant } from './units.js';

interface KnownHardware {
  readonly gpus: readonly Gpu[];
  readonly machines: readonly Machine[];
}

export const hardwareReport = ({ gpus, machines }: KnownHardware): Report => ({
  blocks: [
    heading('GPUs'),
    gpusTable(gpus),
    note(
      'Peaks in TFLOP/s (TOP/s of integers) of dense matrices, sums in float32; GB is 10^9 bytes.',
    ),
    heading('Machines'),
    machinesTable(machines),
  ],
});

/** On a terminal, those that most models are computed in. */
const SHOWN = ['f32', 'bf16', 'f16', 'f8', 'int8'] as const;

const gpusTable = (gpus: readonly Gpu[]): TableBlock => ({
  ...peaksTable(gpus, PEAK_DTYPES, true),
  narrower: { ...peaksTable(gpus, SHOWN, false), narrower: peaksTable(gpus, ['bf16'], false) },
});

function peaksTable(
  gpus: readonly Gpu[],
  dtypes: readonly (typeof PEAK_DTYPES)[number][],
  withSource: boolean,
): TableBlock {
  return {
    kind: 'table',
    columns: [
      left('name', 'name'),
      left('title', 'title', true),
      right('memory', 'memory_bytes'),
      right('bandwidth', 'bandwidth_bytes_per_second'),
      ...dtypes.map((dtype) => right(dtype, `${dtype}_flops`)),
      ...(withSource ? [left('link', 'link'), left('source', 'source', true)] : []),
    ],
    rows: gpus.map((gpu) => [
      strong(gpu.name),
      { text: gpu.title },
      { text: formatBytes(gpu.memoryBytes), value: gpu.memoryBytes },
      { text: `${formatBytes(gpu.bandwidth)}/s`, value: gpu.bandwidth },
      ...dtypes.map((dtype): Cell => peakCell(gpu.peakFlops[dtype])),
      ...(withSource ? [{ text: gpu.links[0]?.name ?? '' }, { text: gpu.source }] : []),
    ]),
  };
}

const peakCell = (peak: number | undefined): Cell =>
  peak === undefined ? { text: '–', value: '' } : { text: significant(peak / 1e12), value: peak };

const machinesTable = (machines: readonly Machine[]): TableBlock => ({
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
