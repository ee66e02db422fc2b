/** Pictures of `minimind fit`: the memory of each use, part by part, and the memory that there is. */
import type { FitResult } from '../../estimate/fit/fits.js';
import type { BarsPicture, LinePlotBlock, Picture, PictureBar } from '../kit/pictures.js';
import type { MemoryPart, UsedMemory } from './fit-bounds.js';
import { type Serving, servingMemory } from './fit-serving.js';
import { loraMemory, trainingMemory } from './fit-training.js';

/** That of the question first. */
export function fitPictures({
  purpose,
  training,
  serving,
  adapters,
  cluster,
}: FitResult): Picture[] {
  const isPlaced = serving?.places?.isAsked;
  const uses = [
    ...(adapters ? [{ name: 'adapters', memory: loraMemory(adapters.fit) }] : []),
    ...(serving && !isPlaced ? [{ name: 'serving', memory: servingMemory(serving) }] : []),
    ...(training && !isPlaced ? [{ name: 'training', memory: trainingMemory(training) }] : []),
  ];
  const bars = uses
    .toSorted((a, b) => Number(b.name === purpose) - Number(a.name === purpose))
    .map(({ name, memory }) =>
      memoryBars(`Memory of ${name} with its range`, cluster.gpu.title, memory),
    );
  return [...bars, ...(serving && !isPlaced ? rooflines(serving) : [])];
}

function memoryBars(
  title: string,
  gpu: string,
  { exact, workspace, total, capacity }: UsedMemory,
): BarsPicture {
  const isThere = ({ bytes }: MemoryPart) => Number(bytes.upper.value) > 0;
  return {
    kind: 'bars',
    title,
    unit: 'bytes',
    bars: [
      ...[...exact, ...workspace].filter(isThere).map(({ part, bytes }) => barOf(part, bytes)),
      { ...barOf('total', total), tone: total.expected.value > capacity.value ? 'bad' : 'hue2' },
    ],
    levels: [{ label: gpu, value: capacity.value }],
  };
}

const barOf = (label: string, { lower, expected, upper }: MemoryPart['bytes']): PictureBar => ({
  label,
  value: Number(expected.value),
  ...(lower.value !== upper.value && { range: [Number(lower.value), Number(upper.value)] }),
});

/** Limits by the bandwidth of the memory. */
const READING: ReadonlySet<string> = new Set(['weights', 'cache', 'memory']);

/** Ends of the axis of a roofline: a thousand times less and more than the balance. */
const [LEAST, MOST] = [1e-3, 1e3];

/**
 * The roofline, with both phases of serving. The intensity is in units of the balance of the GPU, where computing takes
 * as long as reading.
 */
function rooflines({ fit, setting }: Serving): LinePlotBlock[] {
  if (fit.withoutRoom !== null) return [];
  const phases = [
    { name: `decoding, batch ${setting.batch}`, phase: fit.decode },
    { name: 'prefill', phase: fit.prefill },
  ];
  const points = phases.flatMap(({ name, phase }) => {
    if (phase === null) return [];
    const secondsOf = (isOf: (limit: string) => boolean) =>
      phase.limits.reduce((sum, { limit, seconds }) => sum + (isOf(limit) ? seconds.value : 0), 0);
    const computing = secondsOf((limit) => limit === 'compute');
    const reading = secondsOf((limit) => READING.has(limit));
    const intensity = computing / reading;
    return intensity > 0 && Number.isFinite(intensity) ? [{ name, intensity }] : [];
  });
  if (points.length === 0) return [];
  const roof = (intensity: number) => [intensity, Math.min(1, intensity)] as const;
  return [
    {
      kind: 'line plot',
      title: `Roofline of ${setting.cluster.gpu.title}: what limits each phase`,
      x: { scale: 'log', title: 'arithmetic intensity; at 1, computing takes as long as reading' },
      y: { scale: 'log', title: 'share of the peak that the bandwidth allows', unit: 'share' },
      curves: [
        { label: 'roofline', tone: 'hue1', points: [LEAST, 1, MOST].map(roof) },
        ...points.map(({ name, intensity }, index) => ({
          label: name,
          tone: index === 0 ? ('hue2' as const) : ('hue3' as const),
          points: [roof(intensity)],
          names: [name],
        })),
      ],
    },
  ];
}
