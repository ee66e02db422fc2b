import { isSameShape, shapeText } from '../../base/tensor/dtype.js';
import { blocksText, counted } from '../../base/text/words.js';
import { isSame, notFinite, statisticsOf } from '../../engine/compare/differences.js';
import type { TokenIds, Values } from '../../engine/engine.js';
import { firstTokens, idLimitsOf, randomIds } from '../../engine/token-ids.js';
import type { WeightSource } from '../../engine/weights/weights.js';
import type { LanguageModel, Layer, Srte } from '../../model/architecture/layer.js';
import type { Param } from '../../model/architecture/param.js';
import { tensorsOf, walk } from '../../model/architecture/walk.js';
import type { CheckFinding, TableSharing } from '../finding.js';
import { skipped } from '../finding.js';
import type { TestContext } from '../test-context.js';
import { notComparable } from './forward.js';

/** Tokens that suffice to identify the table; the first row of sines and cosines is always the same. */
const TOKENS = { most: 16, fewest: 2 };

/**
 * Checks that the encoding's rows are [1, T, H], and that a changed table changes exactly the blocks that contain it.
 * Each block runs separately.
 */
export async function checkSrte(context: TestContext): Promise<CheckFinding> {
  const { model } = context;
  const srte = srteOf(model);
  if (!srte) return skipped('the model has no SRTE');
  const notFiniteLogits = notComparable((await context.base()).output);
  if (notFiniteLogits) return notFiniteLogits;
  const wrong = await wrongRows(context, srte);
  if (wrong) return { verdict: 'failed', finding: wrong };
  if (srte.kind === 'srteSincos' && model.positions < TOKENS.fewest) {
    return skipped('one token: its row does not depend on the frequencies');
  }
  const rows = shapeText([1, context.ids.tokens, model.hidden]);
  return judgeSharing(rows, await sharingOf(context, srte));
}

/**
 * The shared SRTE, else the one of the last block. The check then fails for an engine that uses the first SRTE for all
 * blocks.
 */
function srteOf({ shared, blocks }: LanguageModel): Srte | undefined {
  const all = blocks
    .flatMap(walk)
    .flatMap(({ layer }) => (layer.kind === 'hybridBlock' ? [layer.srte] : []));
  return all.find((srte) => shared.includes(srte)) ?? all.at(-1);
}

async function wrongRows(context: TestContext, srte: Srte): Promise<string | undefined> {
  const { tokens } = context.ids;
  const { output } = await context.once(srte, { tokens });
  const expected = [1, tokens, context.model.hidden];
  if (!isSameShape(output.shape, expected)) {
    return `the rows of ${srte.name} are ${shapeText(output.shape)}, not ${shapeText(expected)}`;
  }
  const bad = notFinite(statisticsOf(output.data));
  return bad > 0 ? `${counted(bad, 'value')} of ${srte.name} are not finite` : undefined;
}

async function sharingOf(context: TestContext, srte: Srte): Promise<TableSharing> {
  const { model } = context;
  const ids = someIds(context);
  const { blocks } = await context.forward(ids);
  const tables = new Set(tensorsOf(srte));
  const weights = changedWeights(context.weights, tables);
  let input = await context.embedded(ids);
  const moved: string[] = [];
  for (const block of model.blocks) {
    const before = await insideOf(context, block, input, context.weights);
    const after = await insideOf(context, block, input, weights);
    if (after.some((value, at) => !isSame(value, before[at] ?? value))) moved.push(block.name);
    const output = blocks.get(block.name);
    if (!output) throw new Error(`the engine gave no output of ${block.name}`);
    input = output;
  }
  const isShared = model.shared.flatMap(tensorsOf).some((each) => tables.has(each));
  const holders = model.blocks.filter(
    (block) => isShared || tensorsOf(block).some((each) => tables.has(each)),
  );
  const [table] = tables;
  return {
    table: table?.name ?? srte.name,
    holders: holders.map(({ name }) => name),
    changed: moved,
  };
}

function someIds({ ids, model, seed }: TestContext): TokenIds {
  const { most, fewest } = TOKENS;
  if (ids.tokens >= fewest) return firstTokens(ids, Math.min(most, ids.tokens));
  const tokens = Math.min(fewest, model.positions);
  return randomIds(seed, 'srte', { batch: 1, tokens }, idLimitsOf(model));
}

/**
 * All visible values inside a block. The output alone does not suffice: it may be saturated, or a norm over few values
 * may hide a change. The same computation gives identical bits, so any other bit is a change.
 */
const insideOf = (context: TestContext, block: Layer, input: Values, weights: WeightSource) =>
  context.with(
    block,
    async (program) => {
      const { output, taps } = await program.run({ inputs: [input] });
      return [...taps.values(), output].map(({ data }) => data);
    },
    { taps: true, weights },
  );

/** The same weights with changed values in some tensors; the change exceeds rounding. */
function changedWeights(weights: WeightSource, tensors: ReadonlySet<Param>): WeightSource {
  return {
    rangeOf: (tensor) => (tensors.has(tensor) ? undefined : weights.rangeOf(tensor)),
    read(tensor, first, target) {
      weights.read(tensor, first, target);
      if (!tensors.has(tensor)) return;
      for (const [at, value] of target.entries()) target[at] = value + 1 + Math.abs(value);
    },
  };
}

function judgeSharing(rows: string, sharing: TableSharing): CheckFinding {
  const { table, holders, changed } = sharing;
  const deaf = holders.filter((name) => !changed.includes(name));
  const moved = changed.filter((name) => !holders.includes(name));
  const measure = { what: 'blocks that change', value: changed.length, limit: holders.length };
  if (deaf.length === 0 && moved.length === 0) {
    const whose =
      holders.length === 1 ? 'its only user' : `the ${holders.length} blocks that share it`;
    return {
      verdict: 'passed',
      finding: `rows ${rows}; changing ${table} changes ${blocksText(holders)}, ${whose}`,
      measure,
      details: { sharing },
    };
  }
  return {
    verdict: 'failed',
    finding: [
      `changing ${table} changes ${changed.length > 0 ? blocksText(changed) : 'no block'}`,
      ...(deaf.length > 0
        ? [
            `${blocksText(deaf)} should share it and ${deaf.length === 1 ? 'does' : 'do'} not change: a separate copy?`,
          ]
        : []),
      ...(moved.length > 0 ? [`${blocksText(moved)} should not use it`] : []),
    ].join('; '),
    measure,
    details: { sharing },
  };
}
