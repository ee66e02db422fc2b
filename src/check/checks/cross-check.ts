import { UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import type { Arithmetic } from '../../engine/compare/differences.js';
import {
  allowedDifference,
  differenceText,
  largestDifference,
} from '../../engine/compare/differences.js';
import type { Engine, RunOutput, Values } from '../../engine/engine.js';
import { ENGINES } from '../../engine/engine.js';
import type { BlockDifference, CheckFinding } from '../finding.js';
import { skipped } from '../finding.js';
import type { Rounding } from '../rounding.js';
import {
  compareEachBlock,
  firstUnexplained,
  isExplainedByRounding,
  roundingOf,
} from '../rounding.js';
import type { TestContext } from '../test-context.js';

/** Checks that another engine gives the same logits and the same output of every block. */
export async function checkAcross(context: TestContext): Promise<CheckFinding> {
  const own = await context.base();
  await context.unload();
  let other: Engine | undefined;
  let theirs: RunOutput;
  try {
    other = await context.openOther();
    theirs = await runOn(other, context);
  } catch (error) {
    await other?.close();
    if (error instanceof UserError && error.code !== 'interrupted') return noOpinion(error, other);
    throw error;
  }
  try {
    return await engineFinding(context, own, { engine: other, output: theirs });
  } finally {
    await other.close();
  }
}

async function runOn(engine: Engine, { model, weights, ids }: TestContext): Promise<RunOutput> {
  const program = await engine.load(model, weights);
  try {
    return await program.run({ ids });
  } finally {
    await program.release();
  }
}

/**
 * Finding of a check that the other engine cannot run: its limit is not an error of the model, and its advice is about
 * that engine.
 */
const noOpinion = (
  { message, suggestion }: UserError,
  other: Engine | undefined,
): CheckFinding => ({
  ...skipped(`no second engine: ${other ? `${engineTitle(other)}: ` : ''}${message}`),
  remarks: other
    ? [`a smaller ${setting('batch')} or ${setting('context')} may help`]
    : suggestion
      ? [suggestion]
      : [],
});

const engineTitle = ({ info }: Engine) => `${ENGINES[info.name]} (${info.provider})`;

async function engineFinding(
  context: TestContext,
  own: RunOutput,
  { engine, output }: { readonly engine: Engine; readonly output: RunOutput },
): Promise<CheckFinding> {
  const pairs = outputPairs(own, output);
  const { info } = context.engine;
  const compared = pairs.map((pair) => comparedWith(pair, undefined, info));
  if (compared.every(({ difference, limit }) => difference <= limit)) {
    return judgeEngines(engineTitle(engine), compared, undefined);
  }
  const rounding = await roundingOf(context, context.ids, own);
  return judgeEngines(
    engineTitle(engine),
    pairs.map((pair) => comparedWith(pair, rounding, info)),
    firstUnexplained(await blockByBlock(context, own, engine)),
  );
}

interface Pair {
  readonly name: string;
  readonly own: Values;
  readonly theirs: Values | undefined;
}

const LOGITS = 'logits';

/** Pairs in the order of computation. */
const outputPairs = (own: RunOutput, theirs: RunOutput): Pair[] => [
  ...[...own.blocks].map(([name, value]) => ({
    name,
    own: value,
    theirs: theirs.blocks.get(name),
  })),
  { name: LOGITS, own: own.output, theirs: theirs.output },
];

interface Compared {
  readonly name: string;
  readonly difference: number;
  /** Difference caused by rounding alone, where it was measured. */
  readonly rounding: number | undefined;
  readonly limit: number;
}

function comparedWith(
  { name, own, theirs }: Pair,
  all: Rounding | undefined,
  arithmetic: Arithmetic,
): Compared {
  const rounding = name === LOGITS ? all?.logits : all?.blocks.get(name);
  return {
    name,
    difference: theirs ? largestDifference(own.data, theirs.data) : Number.POSITIVE_INFINITY,
    rounding,
    limit:
      rounding === undefined
        ? allowedDifference(own.data, arithmetic)
        : isExplainedByRounding(own.data, rounding, arithmetic),
  };
}

/** Compares both engines block by block, with the same inputs. */
function blockByBlock(
  context: TestContext,
  { blocks }: RunOutput,
  other: Engine,
): Promise<BlockDifference[]> {
  const { model, weights, ids } = context;
  const layers = [...model.blocks, model.norm, model.head, ...model.logitSteps];
  return compareEachBlock(context, layers, { ids, blocks }, async (layer, input, output) => {
    const program = await other.load(layer, weights);
    const theirs = await program.run({ inputs: [input] });
    await program.release();
    return largestDifference(output.data, theirs.output.data);
  });
}

/** @param block The first block that differs by more than the rounding error. */
function judgeEngines(
  other: string,
  compared: readonly Compared[],
  block: BlockDifference | undefined,
): CheckFinding {
  const first = compared.find(({ difference, limit }) => !(difference <= limit));
  if (first) {
    const finding = `${other} differs from ${first.name} on, by up to ${engineDifferenceText(first)}`;
    return { verdict: 'failed', finding, measure: measureOf(first) };
  }
  if (block) {
    const finding = `${other} differs in ${block.block} with equal inputs by up to ${engineDifferenceText(block)}`;
    return { verdict: 'failed', finding, measure: measureOf(block) };
  }
  const worst = compared.reduce((a, b) => (b.difference > a.difference ? b : a));
  return {
    verdict: 'passed',
    finding: `${other} agrees; largest difference ${engineDifferenceText(worst)}, in ${worst.name}`,
    measure: measureOf(worst),
  };
}

type ComparedEngine = Omit<Compared, 'name'>;

const engineDifferenceText = ({ difference, rounding }: ComparedEngine) =>
  rounding === undefined
    ? differenceText(difference)
    : `${differenceText(difference)} (rounding: ${differenceText(rounding)})`;

const measureOf = ({ difference, limit }: ComparedEngine) => ({
  what: 'largest difference',
  value: difference,
  limit,
});
