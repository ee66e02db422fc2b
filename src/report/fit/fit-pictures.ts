/** Pictures of `minimind fit`: the memory of each use, part by part, and the memory that there is. */
import type { FitResult } from '../../estimate/fit/fits.js';
import type { BarsPicture, Picture, PictureBar } from '../kit/pictures.js';
import type { MemoryPart, UsedMemory } from './fit-bounds.js';
import { servingMemory } from './fit-serving.js';
import { loraMemory, trainingMemory } from './fit-training.js';
import { rooflines } from './roofline.js';

/** Pictures of a fit, the one of the question first. */
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
