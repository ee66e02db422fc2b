import { differenceText, isSame, largestDifference } from '../differences.js';
import type { Finding } from '../finding.js';
import type { TestContext } from '../test-context.js';

/** Checks that two runs with the same input give identical output. */
export async function checkRepeat(context: TestContext): Promise<Finding> {
  const first = (await context.base()).output;
  const second = (await context.forward(context.ids)).output;
  // Two runs with the same NaNs count as identical.
  const difference = isSame(first.data, second.data)
    ? 0
    : largestDifference(first.data, second.data);
  const measure = { what: 'largest difference', value: difference, limit: 0 };
  return difference === 0
    ? { verdict: 'passed', finding: 'two runs are the same to the last bit', measure }
    : {
        verdict: 'failed',
        finding: `two runs of the same differ by up to ${differenceText(difference)}`,
        measure,
      };
}
