/** Pictures of `minimind profile`: where the parameters are, and the memory of both uses. */
import { sumOf } from '../../base/text/words.js';
import type { Figure } from '../../model/budget/figure.js';
import type { TensorEntry } from '../../model/budget/profile-model.js';
import type { ProfileResult } from '../command-results.js';
import type { BarsPicture, Picture, TreemapNode, TreemapPicture } from '../kit/pictures.js';

/** @param tensors All tensors of the model, each once. */
export const profilePictures = (
  result: ProfileResult,
  tensors: readonly TensorEntry[],
): Picture[] => [parameterMap(result, tensors), memoryBars(result), flopsBars(result)];

/** Names with the numbers of layers and experts left out: the same tensor of all of them is one area. */
const patternOf = ({ name }: TensorEntry) => name.replace(/(?<=^|\.)\d+(?=\.|$)/g, '*');

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
      return patterns.size < 2
        ? { label, value: Number(value) }
        : {
            label,
            children: [...patterns].map(([pattern, elements]) => ({
              label: pattern,
              value: elements,
            })),
          };
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
  const { state, weights, buffers, total } = inference;
  const inferenceParts = [weights, buffers, state.total];
  const activations = sumOf(training.activations.parts, ({ bytes }) => Number(bytes.value));
  const isThere = ({ value }: { readonly value: number }) => value > 0;
  const rangeOf = (use: 'serving' | 'training') =>
    onGpu && ([Number(onGpu[use].lower.value), Number(onGpu[use].upper.value)] as const);
  return {
    kind: 'bars',
    title: onGpu
      ? `Memory, and the range of each total with the workspace of kernels (${onGpu.gpu})`
      : 'Memory',
    unit: 'bytes',
    bars: [
      ...inferenceParts
        .map(barOf)
        .filter(isThere)
        .map((bar) => ({ ...bar, label: `inference: ${bar.label}` })),
      {
        label: 'inference: total',
        value: Number(total.value),
        range: rangeOf('serving'),
        tone: 'hue2',
      },
      ...[
        ...[training.weights, training.gradients, training.optimizer, training.buffers].map(barOf),
        { label: 'activations', value: activations },
      ]
        .filter(isThere)
        .map((bar) => ({ ...bar, label: `training: ${bar.label}` })),
      {
        label: 'training: total',
        value: Number(training.total.value),
        range: rangeOf('training'),
        tone: 'hue2',
      },
    ],
    levels: [],
  };
}

const flopsBars = ({ forwardFlops }: ProfileResult): BarsPicture => ({
  kind: 'bars',
  title: 'FLOPs of a forward pass',
  unit: 'FLOPs',
  bars: forwardFlops.parts.map(({ flops }) => barOf(flops)),
  levels: [],
});
