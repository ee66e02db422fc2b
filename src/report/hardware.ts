/** What `minimind fit --list-gpus` prints. */
import type { Gpu, Machine, PeakDtype } from '../hardware/gpu.js';
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

/** In what order they stand; on a terminal, those alone that most models are computed in. */
const IS_USUAL: Readonly<Record<PeakDtype, boolean>> = {
  f32: true,
  tf32: false,
  bf16: true,
  f16: true,
  f8: true,
  int8: true,
  int4: false,
};

const PEAKS = Object.keys(IS_USUAL) as PeakDtype[];
const USUAL = PEAKS.filter((dtype) => IS_USUAL[dtype]);

const gpusTable = (gpus: readonly Gpu[]): TableBlock => ({
  ...peaksTable(gpus, PEAKS, true),
  narrower: { ...peaksTable(gpus, USUAL, false), narrower: peaksTable(gpus, ['bf16'], false) },
});

function peaksTable(
  gpus: readonly Gpu[],
  dtypes: readonly PeakDtype[],
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
