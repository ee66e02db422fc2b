import { ENGINES } from '../runtime/engine.js';
import type { Values } from '../runtime/values.js';
import { allowedDifference, largestDifference } from './compare.js';
import type { Finding } from './finding.js';
import type { Subject } from './subject.js';
import { differenceText } from './wording.js';

/** Another engine gives the same logits and the same output of every block. */
export async function checkAcross(subject: Subject): Promise<Finding> {
  const own = await subject.base();
  await subject.unload();
  const other = await subject.openOther();
  try {
    const program = await other.load(subject.model, subject.weights);
    const theirs = await program.run({ ids: subject.ids });
    await program.release();
    const pairs: [string, Values, Values | undefined][] = [
      ...[...own.blocks].map(([name, value]): [string, Values, Values | undefined] => [
        name,
        value,
        theirs.blocks.get(name),
      ]),
      ['logits', own.output, theirs.output],
    ];
    const name = `${ENGINES[other.info.name]} (${other.info.provider})`;
    return judge(name, pairs);
  } finally {
    await other.close();
  }
}

function judge(other: string, pairs: readonly [string, Values, Values | undefined][]): Finding {
  const compared = pairs.map(([name, own, theirs]) => ({
    name,
    difference: theirs ? largestDifference(own.data, theirs.data) : Number.POSITIVE_INFINITY,
    limit: allowedDifference(own.data),
  }));
  const worst = compared.reduce((a, b) => (b.difference > a.difference ? b : a));
  const first = compared.find(({ difference, limit }) => difference > limit);
  const told = first ?? worst;
  const measure = { what: 'largest difference', value: told.difference, limit: told.limit };
  return first
    ? {
        verdict: 'failed',
        finding: `${other} differs from ${first.name} on, there by up to ${differenceText(first.difference)}`,
        measure,
      }
    : {
        verdict: 'passed',
        finding: `${other} gives the same within ${differenceText(worst.difference)}, most in ${worst.name}`,
        measure,
      };
}
