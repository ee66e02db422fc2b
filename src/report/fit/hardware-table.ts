/** What `minimind fit --list-gpus` prints. */
import type { Gpu, Hardware, Machine, PeakDtype } from '../../hardware/gpu.js';
import { formatBytes, significant } from '../../text/units.js';
import { heading, left, note, right, strong } from '../kit/cells.js';
import type { Cell, Report, TableBlock } from '../kit/report.js';

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

/** In what order they stand; on a wide terminal, those alone that most models are computed in. */
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

/** As many of them as 80 columns have room for; names say most of what titles do. */
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
