/** Measures of planned models, and the criteria to sort by. */

import { commandText } from '../../base/text/setting.js';
import { div, inputs, ln, max, sub, v } from '../../model/budget/expression.js';
import type { Quantity } from '../../model/budget/figure.js';
import { quantity } from '../../model/budget/figure.js';
import type { Sizes } from './space.js';

/** Measures of a model; the criterion decides whether more or less is better. */
export interface Measures {
  readonly parameters: number;
  /** Parameters without embedding, learned positions and head. */
  readonly body: number;
  /** Bytes of inference. */
  readonly memory: number;
  /** Expected tokens per second; null without a GPU. */
  readonly decode: number | null;
  readonly widthPerLayer: number;
  readonly offBalance: number;
}

export type MeasureName = keyof Measures;

export interface Criterion {
  /** Short description of the best value. */
  readonly title: string;
  /** Measure that decides. */
  readonly measure: MeasureName;
  /** Whether the smallest or the largest value is best. */
  readonly best: 'least' | 'most';
  /** Source of the criterion. */
  readonly source: string;
}

const LEVINE =
  'Levine et al., arXiv 2006.12467: a depth pays from the width exp(5.039 + 0.0555 depth) on, as fitted on models of ' +
  '6 to 48 layers';

/** Criteria by the names of `--sort`; the first is the default. */
export const CRITERIA = {
  balance: {
    title: 'depth nearest to the one at which neither deeper nor wider learns better',
    measure: 'offBalance',
    best: 'least',
    source: LEVINE,
  },
  parameters: {
    title: 'most parameters',
    measure: 'parameters',
    best: 'most',
    source: 'the loss falls with their number more than with anything else (arXiv 2001.08361)',
  },
  body: {
    title: 'most parameters without embedding and head',
    measure: 'body',
    best: 'most',
    source: 'arXiv 2001.08361: the loss follows the parameters without embeddings',
  },
  memory: {
    title: 'least memory of inference',
    measure: 'memory',
    best: 'least',
    get source() {
      return `weights, buffers and state, as ${commandText('profile')} has them`;
    },
  },
  decode: {
    title: 'fastest decoding',
    measure: 'decode',
    best: 'most',
    source: 'the roofline of the GPU',
  },
  deep: {
    title: 'deepest and thinnest',
    measure: 'widthPerLayer',
    best: 'least',
    source: 'arXiv 2402.14905: below a billion parameters, deeper and thinner models do better',
  },
  wide: {
    title: 'shallowest and widest',
    measure: 'widthPerLayer',
    best: 'most',
    source: 'few steps in a row, and a small cache',
  },
} as const satisfies Record<string, Criterion>;

export type CriterionName = keyof typeof CRITERIA;

export const CRITERION_NAMES = Object.keys(CRITERIA) as readonly CriterionName[];

/** Measure with its direction. */
export type ParetoAxis = Pick<Criterion, 'measure' | 'best'>;

/** Axes of the Pareto set, independent of the sort criterion. */
export const AXES = [
  { measure: 'parameters', best: 'most' },
  { measure: 'memory', best: 'least' },
  { measure: 'decode', best: 'most' },
  { measure: 'widthPerLayer', best: 'least' },
] as const satisfies readonly ParetoAxis[];

/** Axes with the sort criterion, so that its best model is in the set. It replaces an axis of the same measure. */
export const axesFor = ({ measure, best }: ParetoAxis): ParetoAxis[] => [
  ...AXES.filter((axis) => axis.measure !== measure),
  { measure, best },
];

/** Channels of the width per block. */
export const widthPerLayer = ({ depth, width }: Sizes): Quantity =>
  quantity({
    label: 'width per layer',
    unit: 'ratio',
    formula: div(v({ width }), v({ depth })),
    source: 'hidden size over the number of blocks: the aspect ratio of arXiv 2001.08361',
  });

/** Ratio of the depth to the balanced depth, inverted if below 1; 1 is best. */
export const offBalance = (sizes: Sizes): Quantity => {
  const { depth, balanced } = inputs({
    depth: sizes.depth,
    balanced: balancedDepth(sizes.width).value,
  });
  return quantity({
    label: 'off the balance of depth and width',
    unit: 'ratio',
    formula: max(div(depth, balanced), div(balanced, depth)),
    source: LEVINE,
  });
};

/** Depth beyond which a width is too small. */
export const balancedDepth = (width: number): Quantity =>
  quantity({
    label: 'balanced depth',
    unit: 'ratio',
    formula: max(1, div(sub(ln(v({ width })), 5.039), 0.0555)),
    source: LEVINE,
  });

/** Advantage of `a` over `b` in one measure; negative if worse. Unknown values are never better. */
export function advantage(a: Measures, b: Measures, { measure, best }: ParetoAxis): number {
  const [left, right] = [a[measure] ?? 0, b[measure] ?? 0];
  return best === 'most' ? left - right : right - left;
}

/** Whether a model is at least as good as another on all axes. */
export const isAtLeastAsGood = (a: Measures, b: Measures, axes: readonly ParetoAxis[]): boolean =>
  axes.every((axis) => advantage(a, b, axis) >= 0);

/** Models for which no other is at least as good on all axes, in their order; the first of equal ones. */
export const paretoSet = <T extends { readonly measures: Measures }>(
  models: readonly T[],
  axes: readonly ParetoAxis[],
): T[] =>
  models.filter(({ measures }, index) =>
    models.every(
      (other, otherIndex) =>
        otherIndex === index ||
        !isAtLeastAsGood(other.measures, measures, axes) ||
        (isAtLeastAsGood(measures, other.measures, axes) && index < otherIndex),
    ),
  );

/** Models sorted by the criterion, best first; ties by less memory, then by the larger body. */
export const inOrder = <T extends { readonly measures: Measures }>(
  models: readonly T[],
  criterion: ParetoAxis,
): T[] =>
  models.toSorted(
    (a, b) =>
      advantage(b.measures, a.measures, criterion) ||
      advantage(b.measures, a.measures, { measure: 'memory', best: 'least' }) ||
      advantage(b.measures, a.measures, { measure: 'body', best: 'most' }),
  );
