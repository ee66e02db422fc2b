/** The picture of what limits serving: computing or reading. */
import type { LinePlotBlock } from '../kit/pictures.js';
import type { Serving } from './fit-serving.js';

/** Limits by the bandwidth of the memory. */
const READING: ReadonlySet<string> = new Set(['weights', 'cache', 'memory']);

/** Ends of the axis of a roofline: a thousand times less and more than the balance. */
const [LEAST, MOST] = [1e-3, 1e3];

/**
 * The roofline, with both phases of serving. The intensity is in units of the balance of the GPU, where computing takes
 * as long as reading. None where nothing fits, or no peak is known.
 */
export function rooflines({ fit, setting }: Serving): LinePlotBlock[] {
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
