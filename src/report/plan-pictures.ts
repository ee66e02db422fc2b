/** Picture of `minimind plan`: the trade-off between memory and speed, or the shape where there is no speed. */
import type { Plan, PlanRow } from '../estimate/plan/plan-models.js';
import type { Curve, LinePlotBlock } from './kit/pictures.js';
import type { Tone } from './kit/tones.js';

export function planPictures({ rows, spectrum, gpu }: Plan): LinePlotBlock[] {
  if (rows.length === 0) return [];
  const hasSpeed = rows.every(({ decode }) => decode !== null);
  const y = hasSpeed
    ? { title: 'tokens per second, all sequences together', valueOf: decodingSpeed }
    : { title: 'width per layer', valueOf: ({ widthPerLayer }: PlanRow) => widthPerLayer.value };
  const curve = (label: string, tone: Tone, shown: readonly PlanRow[]): Curve => ({
    label,
    tone,
    points: shown.map((row) => [Number(row.memory.value), y.valueOf(row)]),
    names: shown.map(
      ({ place, sizes }) => `${place}. ${sizes.depth} layers of width ${sizes.width}`,
    ),
  });
  const places = new Set(rows.map(({ place }) => place));
  const others = spectrum.filter(({ place }) => !places.has(place));
  return [
    {
      kind: 'line plot',
      title: `Pareto-optimal models: memory of inference, and ${hasSpeed ? `speed on ${gpu}` : 'width per layer'}`,
      x: { title: 'memory of inference', unit: 'bytes' },
      y: { title: y.title },
      curves: [
        ...(others.length > 0 ? [curve('best model of each other width', 'hue1', others)] : []),
        curve(`best ${rows.length} by the criterion`, 'hue2', rows),
      ],
    },
  ];
}

const decodingSpeed = ({ decode }: PlanRow): number => decode?.expected.value ?? Number.NaN;
