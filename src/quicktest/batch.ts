import type { Ids } from '../runtime/engine.js';
import { allowedDifference, largestDifference, rowAt } from './compare.js';
import { hasExperts } from './experts.js';
import type { Finding } from './finding.js';
import { firstTokens, limitsOf, randomIds, rowsOf } from './ids.js';
import { explainedInWhole, roundingOf } from './rounding.js';
import type { Subject } from './subject.js';
import { differenceText, roundingText } from './wording.js';

/** Rows see each other, or do not, in short sequences as in long ones. */
const TOKENS = 64;

/**
 * A row gives the same whatever stands beside it, to the last bit unless there are experts; and alone, where other kernels may do the
 * work, the same within what rounding explains.
 */
export async function checkBatch(subject: Subject): Promise<Finding> {
  const tokens = Math.min(TOKENS, subject.ids.tokens);
  const own = rowsOf(firstTokens(subject.ids, tokens), [0]);
  const others = randomIds(
    subject.seed,
    'other rows',
    { batch: 2, tokens },
    limitsOf(subject.model),
  );
  const beside = async (row: number) => {
    const data = Int32Array.from([...own.data, ...rowsOf(others, [row]).data]);
    return (await subject.forward({ batch: 2, tokens, data })).output;
  };
  const [first, second] = [await beside(0), await beside(1)];
  const leak = largestDifference(rowAt(first, 0), rowAt(second, 0));
  const limit = leak > 0 ? await leakLimit(subject, own, rowAt(first, 0)) : 0;
  if (leak > limit) {
    return {
      verdict: 'failed',
      finding: `row 0 changes by up to ${differenceText(leak)} when row 1 does: the rows see each other`,
      measure: { what: 'largest difference beside another row', value: leak, limit },
    };
  }
  return judgeAlone(subject, own, rowAt(first, 0));
}

/** Nothing, unless experts compute rows together. */
async function leakLimit(subject: Subject, own: Ids, beside: Float32Array): Promise<number> {
  if (!hasExperts(subject.model)) return 0;
  const { logits } = await roundingOf(subject, own, await subject.forward(own));
  return explainedInWhole(beside, logits, subject.engine.info);
}

/** @param beside What the row gives in a batch. */
async function judgeAlone(subject: Subject, own: Ids, beside: Float32Array): Promise<Finding> {
  const alone = await subject.forward(own);
  const difference = largestDifference(beside, alone.output.data);
  const { info } = subject.engine;
  const usual = allowedDifference(alone.output.data, info);
  const rounding = difference <= usual ? undefined : (await roundingOf(subject, own, alone)).logits;
  const limit =
    rounding === undefined ? usual : explainedInWhole(alone.output.data, rounding, info);
  const isExplained = difference <= limit;
  const found = `${differenceText(difference)}${roundingText(rounding)}`;
  return {
    verdict: isExplained ? 'passed' : 'failed',
    finding: isExplained
      ? `a row is the same beside any other, and alone within ${found}`
      : `a row alone differs from the same in a batch by up to ${found}`,
    measure: { what: 'largest difference alone', value: difference, limit },
  };
}
