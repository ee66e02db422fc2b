import {
  allowedDifference,
  differenceText,
  largestDifference,
  roundingText,
  rowAt,
} from '../../engine/compare/differences.js';
import type { TokenIds } from '../../engine/engine.js';
import { firstTokens, idLimitsOf, pickRows, randomIds } from '../../engine/token-ids.js';
import type { CheckFinding } from '../finding.js';
import { hasMixture, isExplainedByRounding, roundingOf } from '../rounding.js';
import type { TestContext } from '../test-context.js';

/** Maximum tokens of a row: rows would influence each other in short sequences as well. */
const TOKENS = 64;

/**
 * Checks that the output of a row does not depend on the rest of the batch. Without experts it must be identical. A row
 * alone may use other kernels, so it is compared within the rounding error.
 */
export async function checkBatch(context: TestContext): Promise<CheckFinding> {
  const tokens = Math.min(TOKENS, context.ids.tokens);
  const own = pickRows(firstTokens(context.ids, tokens), [0]);
  const others = randomIds(
    context.seed,
    'other rows',
    { batch: 2, tokens },
    idLimitsOf(context.model),
  );
  const inBatch = async (row: number) => {
    const data = Int32Array.from([...own.data, ...pickRows(others, [row]).data]);
    return (await context.forward({ batch: 2, tokens, data })).output;
  };
  const [first, second] = [await inBatch(0), await inBatch(1)];
  const leak = largestDifference(rowAt(first, 0), rowAt(second, 0));
  const limit = leak > 0 ? await leakLimit(context, own, rowAt(first, 0)) : 0;
  if (leak > limit) {
    return {
      verdict: 'failed',
      finding: `sequence 0 changes by up to ${differenceText(leak)} when sequence 1 changes: they see each other`,
      measure: { what: 'largest difference with another sequence', value: leak, limit },
    };
  }
  return judgeAlone(context, own, rowAt(first, 0));
}

/** Allowed difference: zero, unless experts compute rows together. */
async function leakLimit(
  context: TestContext,
  own: TokenIds,
  inBatch: Float32Array,
): Promise<number> {
  if (!hasMixture(context.model)) return 0;
  const { logits } = await roundingOf(context, own, await context.forward(own));
  return isExplainedByRounding(inBatch, logits, context.engine.info);
}

/** Compares a row alone with the same row in a batch. @param inBatch Output of the row in a batch. */
async function judgeAlone(
  context: TestContext,
  own: TokenIds,
  inBatch: Float32Array,
): Promise<CheckFinding> {
  const alone = await context.forward(own);
  const difference = largestDifference(inBatch, alone.output.data);
  const { info } = context.engine;
  const usual = allowedDifference(alone.output.data, info);
  const rounding = difference <= usual ? undefined : (await roundingOf(context, own, alone)).logits;
  const limit =
    rounding === undefined ? usual : isExplainedByRounding(alone.output.data, rounding, info);
  const isExplained = difference <= limit;
  const found = `${differenceText(difference)}${roundingText(rounding)}`;
  return {
    verdict: isExplained ? 'passed' : 'failed',
    finding: isExplained
      ? `output does not depend on the batch (difference ${found})`
      : `a sequence alone differs from the same sequence in a batch by up to ${found}`,
    measure: { what: 'largest difference alone', value: difference, limit },
  };
}
