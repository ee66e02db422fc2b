import {
  allowedDifference,
  differenceText,
  largestDifference,
  positions,
} from '../../engine/compare/differences.js';
import type { Values } from '../../engine/engine.js';
import { idLimitsOf, withOtherToken } from '../../engine/token-ids.js';
import type { LanguageModel } from '../../model/architecture/layer.js';
import { normWidth } from '../../model/architecture/walk.js';
import type { CheckFinding } from '../finding.js';
import { skipped } from '../finding.js';
import { hasMixture, isExplainedByRounding, roundingOf } from '../rounding.js';
import type { TestContext } from '../test-context.js';

/**
 * Checks that a changed token t changes no earlier logit. The earlier logits must be identical, because their
 * computation is the same. With experts they are compared within a limit, because the experts then get other rows.
 */
export async function checkCausality(context: TestContext): Promise<CheckFinding> {
  const { ids, model } = context;
  if (hasOneToken(model)) return skipped(ONE_TOKEN);
  const full = await context.base();
  const base = full.output;
  const trials: CausalityTrial[] = [];
  for (const position of positionsToTry(ids.tokens)) {
    const { output } = await context.forward(withOtherToken(ids, position, idLimitsOf(model)));
    trials.push(causalityTrial(base, output, position));
  }
  const usual = usualLeak(context, base);
  const isExplained = !hasMixture(model) || trials.every(({ leak }) => leak <= usual);
  if (isExplained) return judgeTrials(trials, model, usual);
  const { logits } = await roundingOf(context, ids, full);
  return judgeTrials(trials, model, isExplainedByRounding(base.data, logits, context.engine.info));
}

/** Allowed change before a token: zero, unless experts get other rows. */
export const usualLeak = ({ model, engine }: TestContext, { data }: Values): number =>
  hasMixture(model) ? allowedDifference(data, engine.info) : 0;

const ONE_TOKEN = 'the vocabulary has only one token';
const hasOneToken = (model: LanguageModel) => idLimitsOf(model).vocabulary < 2;

/**
 * Whether norms keep only signs: a LayerNorm of two values keeps only their order, an RMSNorm of one value only its
 * sign.
 */
const passesSignsAlone = ({ norm }: LanguageModel) =>
  norm.kind !== 'sequence' && normWidth(norm) <= (norm.kind === 'layerNorm' ? 2 : 1);

/** Positions in the middle, at the beginning and at the end of the sequence. */
export const positionsToTry = (tokens: number): number[] =>
  [...new Set([1, Math.floor(tokens / 2), tokens - 1])].filter((each) => each > 0 && each < tokens);

/** Effect of a changed token. */
export interface CausalityTrial {
  readonly position: number;
  /** The largest difference before it. */
  readonly leak: number;
  /** The first changed position, when it is before the token. */
  readonly from: number;
  /** Whether any logit changed from the token on. */
  readonly isSeen: boolean;
}

/** @param changed Logits with another token at `position`. */
export function causalityTrial(base: Values, changed: Values, position: number): CausalityTrial {
  const difference = (from: number, to: number) =>
    largestDifference(positions(base, from, to), positions(changed, from, to));
  const leak = difference(0, position);
  let from = 0;
  while (leak > 0 && difference(from, from + 1) === 0) from++;
  const isSeen = difference(position, base.shape[1] ?? 0) > 0;
  return { position, leak, from, isSeen };
}

/** @param limit Allowed change before a token. */
export function judgeTrials(
  trials: readonly CausalityTrial[],
  model: LanguageModel,
  limit: number,
): CheckFinding {
  if (hasOneToken(model)) return skipped(ONE_TOKEN);
  if (trials.length === 0) return skipped('one token: no earlier logits');
  const value = Math.max(...trials.map(({ leak }) => leak));
  const measure = { what: 'largest difference before the token', value, limit };
  const leaks = trials.filter(({ leak }) => leak > limit);
  if (leaks.length > 0) {
    const finding = `tokens see later ones: ${leaks.map(leakText).join('; ')}`;
    return { verdict: 'failed', finding, measure };
  }
  const unseen = trials.filter(({ isSeen }) => !isSeen);
  if (unseen.length > 0 && passesSignsAlone(model)) {
    const finding = `changing token ${trialTokens(unseen)} changes no logit; possible with a hidden size of ${model.hidden}`;
    return { ...skipped(finding), measure };
  }
  if (unseen.length > 0) {
    const finding = `changing token ${trialTokens(unseen)} changes no logit: the model does not see it`;
    return { verdict: 'failed', finding, measure };
  }
  const same = value === 0 ? 'identical' : `equal within rounding (${differenceText(value)})`;
  const finding = `changing token ${trialTokens(trials)} leaves earlier logits ${same}`;
  return { verdict: 'passed', finding, measure };
}

const leakText = ({ position, from, leak }: CausalityTrial) =>
  `changing token ${position} changes logits from token ${from} on, by up to ${differenceText(leak)}`;

/** `1, 128, 255`. */
function trialTokens(trials: readonly CausalityTrial[]): string {
  const numbers = trials.map(({ position }) => position);
  return numbers.join(', ');
}
