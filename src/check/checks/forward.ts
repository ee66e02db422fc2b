/** Checks of a forward pass: finite logits, the same logits again, and the origin of a value that is not finite. */

import { isSameShape, shapeText } from '../../base/tensor/dtype.js';
import { setting } from '../../base/text/setting.js';
import { formatInteger } from '../../base/text/units.js';
import { counted } from '../../base/text/words.js';
import { indexAt } from '../../checkpoint/non-finite.js';
import {
  differenceText,
  isAllFinite,
  isSame,
  largestDifference,
  notFinite,
  statisticsOf,
} from '../../engine/compare/differences.js';
import type { Compute, RunInput, Values } from '../../engine/engine.js';
import { firstBadWeight } from '../../engine/weights/non-finite-weights.js';
import type { WeightSource } from '../../engine/weights/weights.js';
import type { Layer } from '../../model/architecture/layer.js';
import { stagesOf } from '../../model/architecture/walk.js';
import type { CheckFinding, NonFiniteOrigin } from '../finding.js';
import type { TestContext } from '../test-context.js';

/** Origin of the first value that is not finite; undefined when the layers, run one by one, are all finite. */
export async function originOf(context: TestContext): Promise<NonFiniteOrigin | undefined> {
  const { model, ids } = context;
  let input: RunInput = { ids };
  for (const layer of stagesOf(model)) {
    const { output } = await context.once(layer, input);
    if (!isAllFinite(output)) return originIn(context, layer, input);
    input = { inputs: [output] };
  }
  return undefined;
}

/** Origin within a layer whose output is not finite. Runs the layer with taps of everything inside. */
export async function originIn(
  context: Pick<TestContext, 'once' | 'weights'>,
  layer: Layer,
  input: RunInput,
): Promise<NonFiniteOrigin | undefined> {
  // A bad weight takes precedence, because it is the cause.
  const weight = badWeight(layer, context.weights);
  if (weight) return weight;
  const { output, taps } = await context.once(layer, input, { taps: true });
  return firstBad(new Map([...taps, [layer.name, output]]));
}

/** Origin by the first tap that is not finite; taps are in the order of computation. */
function firstBad(taps: ReadonlyMap<string, Values>): NonFiniteOrigin | undefined {
  let after: string | undefined;
  for (const [tensor, { shape, data }] of taps) {
    const statistics = statisticsOf(data);
    if (notFinite(statistics) > 0) {
      const first = indexAt(
        data.findIndex((value) => !Number.isFinite(value)),
        shape,
      );
      return {
        ...{ tensor, kind: 'value', shape, first, statistics },
        ...(after !== undefined && { after }),
      };
    }
    after = tensor;
  }
  return undefined;
}

function badWeight(layer: Layer, weights: WeightSource): NonFiniteOrigin | undefined {
  const bad = firstBadWeight(layer, weights);
  if (bad === undefined) return undefined;
  const { tensor, first } = bad;
  const values = new Float32Array(tensor.elements);
  weights.read(tensor, 0, values);
  const { name, shape } = tensor;
  return { tensor: name, kind: 'weight', shape, first, statistics: statisticsOf(values) };
}

/** Checks that the logits [B, T, V] are finite. If not, finds the origin. */
export async function checkForward(context: TestContext): Promise<CheckFinding> {
  const { output } = await context.base();
  return judgeLogits(context, output, () => originOf(context));
}

/** @param search Finds the origin of the first value that is not finite. */
export async function judgeLogits(
  { ids, model, engine }: Pick<TestContext, 'ids' | 'model' | 'engine'>,
  logits: Values,
  search: () => Promise<NonFiniteOrigin | undefined>,
): Promise<CheckFinding> {
  const expected = [ids.batch, ids.tokens, model.head.weight.shape[0] ?? 0];
  if (!isSameShape(logits.shape, expected)) {
    return {
      verdict: 'failed',
      finding: `the logits are ${shapeText(logits.shape)}, not ${shapeText(expected)}`,
    };
  }
  const statistics = statisticsOf(logits.data);
  const bad = notFinite(statistics);
  const measure = { what: NOT_FINITE, value: bad, limit: 0 };
  if (bad === 0) {
    const finding = `logits ${shapeText(expected)}, all finite`;
    return { verdict: 'passed', finding, measure, details: { statistics } };
  }
  const origin = await search();
  return {
    verdict: 'failed',
    finding: notFiniteText(bad, logits),
    measure,
    remarks: [...(origin ? [originText(origin)] : []), ...REMEDIES[engine.info.compute]()],
    details: { statistics, ...(origin && { origin }) },
  };
}

/** Finding for checks that need finite logits; undefined when they are finite. */
export function notComparable(logits: Values): CheckFinding | undefined {
  if (isAllFinite(logits)) return undefined;
  const bad = notFinite(statisticsOf(logits.data));
  return {
    verdict: 'failed',
    finding: `${notFiniteText(bad, logits)}: nothing to compare`,
    measure: { what: NOT_FINITE, value: bad, limit: 0 },
  };
}

/** Possible remedies, by the number type of products. */
const REMEDIES: Readonly<Record<Compute, () => readonly string[]>> = {
  f32: () => [],
  f16: () => [
    `float16 overflows above 65,504; ${setting('compute', 'f32')} shows whether this is the cause`,
  ],
};

const NOT_FINITE = 'values that are not finite';

const notFiniteText = (bad: number, { data }: Values) =>
  `${formatInteger(bad)} of ${counted(data.length, 'logit')} are not finite`;

/** Text about the origin of NaN or infinities. */
function originText(origin: NonFiniteOrigin): string {
  const { tensor, kind, shape, first, statistics, after } = origin;
  const { nan, positiveInfinity, negativeInfinity, min, max } = statistics;
  const infinite = positiveInfinity + negativeInfinity;
  const counts = [
    ...(nan > 0 ? [`${formatInteger(nan)} NaN`] : []),
    ...(infinite > 0 ? [`${formatInteger(infinite)} infinite`] : []),
  ].join(' and ');
  const elements = shape.reduce((product, size) => product * size, 1);
  const rest =
    min === null || max === null
      ? ''
      : `; the others range from ${min.toPrecision(3)} to ${max.toPrecision(3)}`;
  const from = after === undefined ? 'in' : `after ${after} (finite) and at the latest in`;
  const what = kind === 'weight' ? `the weight ${tensor} has` : `first ${from} ${tensor}:`;
  const place = `, the first at ${shapeText(first)}`;
  return `${what} ${counts} among ${counted(elements, 'value')} ${shapeText(shape)}${place}${rest}`;
}

/** Checks that two runs with the same input give identical output. */
export async function checkRepeat(context: TestContext): Promise<CheckFinding> {
  const first = (await context.base()).output;
  const second = (await context.forward(context.ids)).output;
  // Two runs with the same NaNs count as identical.
  const difference = isSame(first.data, second.data)
    ? 0
    : largestDifference(first.data, second.data);
  const measure = { what: 'largest difference', value: difference, limit: 0 };
  return difference === 0
    ? { verdict: 'passed', finding: 'two runs give identical logits', measure }
    : {
        verdict: 'failed',
        finding: `two runs differ by up to ${differenceText(difference)}`,
        measure,
      };
}
