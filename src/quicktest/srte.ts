import { type LanguageModel, type Srte, tensorsOf, walk } from '../architecture/layer.js';
import type { Param } from '../architecture/param.js';
import type { WeightSource } from '../runtime/weights.js';
import { isSameShape, shapeText } from '../tensor/shape.js';
import { largestDifference, notFinite, statisticsOf } from './compare.js';
import { type Finding, type Sharing, skipped } from './finding.js';
import { firstTokens } from './ids.js';
import type { Subject } from './subject.js';
import { blocksText, counted } from './wording.js';

/** Enough tokens to see whose table it is. */
const TOKENS = 16;
/** A table that is one larger everywhere moves a normed output by far more than this. */
const CHANGE = 1e-3;

/**
 * The encoding's rows are [1, T, H]; and when its table changes, so do the blocks that hold it, each run by
 * itself, and no others.
 */
export async function checkSrte(subject: Subject): Promise<Finding> {
  const { model } = subject;
  const srte = srteOf(model);
  if (!srte) return skipped('the model has no SRTE');
  const wrong = await wrongRows(subject, srte);
  if (wrong) return { verdict: 'failed', finding: wrong };
  const rows = shapeText([1, subject.ids.tokens, model.norm.weight.elements]);
  return judgeSharing(rows, await sharingOf(subject, srte));
}

/** The one that is shared; else that of the last block, so that taking the first for all does not pass. */
function srteOf({ shared, blocks }: LanguageModel): Srte | undefined {
  const all = blocks
    .flatMap(walk)
    .flatMap(({ layer }) => (layer.kind === 'hybridBlock' ? [layer.srte] : []));
  return all.find((srte) => shared.includes(srte)) ?? all.at(-1);
}

async function wrongRows(subject: Subject, srte: Srte): Promise<string | undefined> {
  const { tokens } = subject.ids;
  const { output } = await subject.once(srte, { tokens });
  const expected = [1, tokens, subject.model.norm.weight.elements];
  if (!isSameShape(output.shape, expected)) {
    return `the rows of ${srte.name} are ${shapeText(output.shape)}, not ${shapeText(expected)}`;
  }
  const bad = notFinite(statisticsOf(output.data));
  return bad > 0 ? `${counted(bad, 'value')} of ${srte.name} are not finite` : undefined;
}

async function sharingOf(subject: Subject, srte: Srte): Promise<Sharing> {
  const { model } = subject;
  const ids = firstTokens(subject.ids, Math.min(TOKENS, subject.ids.tokens));
  const { blocks } = await subject.forward(ids);
  const tables = new Set(tensorsOf(srte));
  const weights = perturbed(subject.weights, tables);
  let input = (await subject.once(model.embedding, { ids })).output;
  const changed: string[] = [];
  for (const block of model.blocks) {
    const { output } = await subject.once(block, { inputs: [input] }, { weights });
    const before = blocks.get(block.name);
    if (!before) throw new Error(`the engine gave no output of ${block.name}`);
    if (largestDifference(output.data, before.data) > CHANGE) changed.push(block.name);
    input = before;
  }
  const isShared = model.shared.flatMap(tensorsOf).some((each) => tables.has(each));
  const holders = model.blocks.filter(
    (block) => isShared || tensorsOf(block).some((each) => tables.has(each)),
  );
  const [table] = tables;
  return { table: table?.name ?? srte.name, holders: holders.map(({ name }) => name), changed };
}

/** The same weights, but every value of some tensors one larger. */
function perturbed(weights: WeightSource, tensors: ReadonlySet<Param>): WeightSource {
  return {
    rangeOf: (tensor) => (tensors.has(tensor) ? undefined : weights.rangeOf(tensor)),
    read(tensor, first, target) {
      weights.read(tensor, first, target);
      if (tensors.has(tensor))
        for (let i = 0; i < target.length; i++) target[i] = (target[i] ?? 0) + 1;
    },
  };
}

function judgeSharing(rows: string, sharing: Sharing): Finding {
  const { table, holders, changed } = sharing;
  const deaf = holders.filter((name) => !changed.includes(name));
  const moved = changed.filter((name) => !holders.includes(name));
  const measure = { what: 'blocks that change', value: changed.length, limit: holders.length };
  if (deaf.length === 0 && moved.length === 0) {
    const whose =
      holders.length === 1 ? 'whose own it is' : `all ${holders.length} blocks that share it`;
    return {
      verdict: 'passed',
      finding: `rows ${rows}; a change of ${table} changes ${blocksText(holders)}, ${whose}`,
      measure,
      details: { sharing },
    };
  }
  return {
    verdict: 'failed',
    finding: [
      `a change of ${table} changes ${changed.length > 0 ? blocksText(changed) : 'no block'}`,
      ...(deaf.length > 0
        ? [
            `${blocksText(deaf)} should share it and ${deaf.length === 1 ? 'does' : 'do'} not change: a copy of its own?`,
          ]
        : []),
      ...(moved.length > 0 ? [`${blocksText(moved)} should not hold it`] : []),
    ].join('; '),
    measure,
    details: { sharing },
  };
}
