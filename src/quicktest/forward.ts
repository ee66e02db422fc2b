import type { Compute, Values } from '../runtime/engine.js';
import { isSameShape, shapeText } from '../tensor/dtype.js';
import { isAllFinite, notFinite, statisticsOf } from './compare.js';
import type { Finding, Origin } from './finding.js';
import { originOf } from './non-finite.js';
import type { Subject } from './subject.js';
import { counted, integer } from './wording.js';

/** Logits [B, T, V], all of them finite. When they are not, the model is searched for where that begins. */
export async function checkForward(subject: Subject): Promise<Finding> {
  const { output } = await subject.base();
  return judgeLogits(subject, output, () => originOf(subject));
}

/** @param search Finds where the first value appeared that is not finite. */
export async function judgeLogits(
  { ids, model, engine }: Pick<Subject, 'ids' | 'model' | 'engine'>,
  logits: Values,
  search: () => Promise<Origin | undefined>,
): Promise<Finding> {
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
    remarks: [...(origin ? [originText(origin)] : []), ...REMEDIES[engine.info.compute]],
    details: { statistics, ...(origin && { origin }) },
  };
}

/** That logits are no numbers, for what would compare them; undefined when they are. */
export function notComparable(logits: Values): Finding | undefined {
  if (isAllFinite(logits)) return undefined;
  const bad = notFinite(statisticsOf(logits.data));
  return {
    verdict: 'failed',
    finding: `${notFiniteText(bad, logits)}: there is nothing to compare`,
    measure: { what: NOT_FINITE, value: bad, limit: 0 },
  };
}

/** What may help, by what products are computed in. */
const REMEDIES: Readonly<Record<Compute, readonly string[]>> = {
  f32: [],
  f16: [
    'float16 ends at 65,504, beyond which it is infinite; --compute f32 tells whether that is all',
  ],
};

const NOT_FINITE = 'values that are not finite';

const notFiniteText = (bad: number, { data }: Values) =>
  `${integer(bad)} of ${counted(data.length, 'logit')} are not finite`;

function originText({ tensor, kind, shape, statistics, after }: Origin): string {
  const { nan, positiveInfinity, negativeInfinity, min, max } = statistics;
  const infinite = positiveInfinity + negativeInfinity;
  const counts = [
    ...(nan > 0 ? [`${integer(nan)} NaN`] : []),
    ...(infinite > 0 ? [`${integer(infinite)} infinite`] : []),
  ].join(' and ');
  const elements = shape.reduce((product, size) => product * size, 1);
  const rest =
    min === null || max === null
      ? ''
      : `; the others go from ${min.toPrecision(3)} to ${max.toPrecision(3)}`;
  const from = after === undefined ? 'in' : `after ${after}, which is finite, and no later than in`;
  const what =
    kind === 'weight' ? `the weight ${tensor} holds` : `it begins ${from} ${tensor}, with`;
  return `${what} ${counts} among ${counted(elements, 'value')} ${shapeText(shape)}${rest}`;
}
