/** Pictures of `minimind profile`: where the parameters are, and the memory of both uses. */
import { sumOf } from '../../base/values.js';
import type { FitResult } from '../../estimate/fit/fits.js';
import type { Bounds, Figure } from '../../model/budget/figure.js';
import type { TensorEntry } from '../../model/budget/profile-model.js';
import type { ProfileResult } from '../command-results.js';
import { rooflines } from '../fit/roofline.js';
import type {
  BarsPicture,
  Picture,
  PictureBar,
  TreemapNode,
  TreemapPicture,
} from '../kit/pictures.js';

/**
 * @param tensors All tensors of the model, each once.
 * @param serving Serving on the GPU of the memory, where its roofline is drawn.
 */
export const profilePictures = (
  result: ProfileResult,
  tensors: readonly TensorEntry[],
  serving: FitResult['serving'] = null,
): Picture[] => [
  parameterMap(result, tensors),
  memoryBars(result),
  flopsBars(result),
  ...(serving ? rooflines(serving) : []),
];

/** Names with the numbers of layers and experts left out: the same tensor of all of them is one area. */
const patternOf = ({ name }: TensorEntry) => name.replace(/(?<=^|\.)\d+(?=\.|$)/g, '*');

/** Names, one or more, without the parts that all begin or end with: `q_proj`, `k_proj`. */
function shortNames(names: readonly string[]): string[] {
  const parts = names.map((name) => name.split('.'));
  const [first = []] = parts;
  const shortest = Math.min(...parts.map(({ length }) => length)) - 1;
  const common = (at: (from: readonly string[], index: number) => string | undefined) => {
    let count = 0;
    while (count < shortest && parts.every((each) => at(each, count) === at(first, count))) count++;
    return count;
  };
  const before = common((each, index) => each[index]);
  const after = common((each, index) => each.at(-1 - index));
  return parts.map((each) =>
    each.slice(before, Math.max(before + 1, each.length - after)).join('.'),
  );
}

/** Components, and the tensors of each. */
function parameterMap(
  { parameters }: ProfileResult,
  tensors: readonly TensorEntry[],
): TreemapPicture {
  const children = parameters.components.map(
    ({ component, parameters: { label, value } }): TreemapNode => {
      const patterns = new Map<string, number>();
      for (const tensor of tensors) {
        if (tensor.role !== 'parameter' || tensor.component !== component) continue;
        const pattern = patternOf(tensor);
        patterns.set(pattern, (patterns.get(pattern) ?? 0) + tensor.elements);
      }
      if (patterns.size < 2) return { label, value: Number(value) };
      const names = shortNames([...patterns.keys()]);
      const children = [...patterns.values()].map((elements, index) => ({
        label: names[index] ?? '',
        value: elements,
      }));
      return { label, children };
    },
  );
  return {
    kind: 'treemap',
    title: 'Parameters by component and tensor',
    unit: 'count',
    root: { label: 'all parameters', children },
  };
}

const barOf = ({ label, value }: Figure) => ({ label, value: Number(value) });

function memoryBars({ inference, training, onGpu }: ProfileResult): BarsPicture {
  const { state, weights, buffers } = inference;
  const activations = sumOf(training.activations.parts, ({ bytes }) => Number(bytes.value));
  return {
    kind: 'bars',
    title: onGpu ? `Memory, with the workspace of kernels on ${onGpu.gpu} (estimate)` : 'Memory',
    unit: 'bytes',
    bars: [
      ...usedBars(
        'inference',
        [weights, buffers, state.total].map(barOf),
        inference.total,
        onGpu?.serving,
      ),
      ...usedBars(
        'training',
        [
          ...[training.weights, training.gradients, training.optimizer, training.buffers].map(
            barOf,
          ),
          { label: 'activations', value: activations },
        ],
        training.total,
        onGpu?.training,
      ),
    ],
    levels: [],
  };
}

/** The parts of one use and their sum. The workspace is known only as a range. */
function usedBars(
  use: string,
  parts: readonly PictureBar[],
  { value }: Figure,
  whole: Bounds | undefined,
): PictureBar[] {
  const total = Number(value);
  const bounds = whole && [whole.lower, whole.expected, whole.upper].map((each) => each.value);
  const [low = total, expected = total, high = total] = bounds ?? [];
  return [
    ...parts.filter((part) => part.value > 0),
    ...(bounds
      ? [
          {
            label: 'workspace',
            value: expected - total,
            range: [Math.max(0, low - total), high - total] as const,
          },
        ]
      : []),
    {
      label: 'total',
      value: expected,
      tone: 'hue2' as const,
      ...(bounds && { range: [low, high] as const }),
    },
  ].map((bar) => ({ ...bar, label: `${use}: ${bar.label}` }));
}

const flopsBars = ({ forwardFlops }: ProfileResult): BarsPicture => ({
  kind: 'bars',
  title: 'FLOPs of a forward pass',
  unit: 'FLOPs',
  bars: forwardFlops.parts.map(({ flops }) => barOf(flops)),
  levels: [],
});
