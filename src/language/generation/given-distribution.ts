/** Sampling of given logits or probabilities, without a model: the effect of each filter, and the result. */
import { usageError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { listedIds } from '../../engine/token-ids.js';
import type { GivenSettings } from './defaults.js';
import { chooseSettings, refuseUnsampled } from './defaults.js';
import type { FilterName, SamplingSettings } from './sampling.js';
import { probabilityOf, samplingStages } from './sampling.js';

/** Scores of a few tokens, as printed in a text or copied out of a program. */
export interface GivenScores {
  /** Kind of the values. */
  readonly from: 'logits' | 'probabilities';
  /** The given values; a token is named by its position. @real */
  readonly values: readonly number[];
}

interface StageOfGiven {
  /** Name of the stage. */
  readonly name: 'softmax' | FilterName;
  /** Tokens with a probability above 0. @integer */
  readonly kept: number;
  /** Bits. */
  readonly entropy: number;
  /** Probability of each token, 0 where it is dropped. */
  readonly probabilities: readonly number[];
}

export interface GivenDistribution extends GivenScores {
  readonly settings: SamplingSettings;
  /** Sum of given probabilities, by which they are divided; null for logits. */
  readonly sum: number | null;
  /** The distribution before and after each filter. */
  readonly stages: readonly StageOfGiven[];
  /** Tokens that can be drawn, the likeliest first, with probabilities of sum 1. */
  readonly kept: readonly {
    /** Position of the token. @integer */
    readonly token: number;
    /** Its probability. */
    readonly probability: number;
  }[];
}

/**
 * How given logits or probabilities are sampled.
 * @answer minimind generate --logits --json
 */
export interface SamplingResult extends GivenDistribution {
  readonly schema: 'minimind/sampling@1';
}

export interface GivenScoresRequest {
  readonly from: GivenScores['from'];
  /** The scores as the user wrote them. */
  readonly text: string;
  readonly settings: GivenSettings;
  /** Earlier tokens as the user wrote them. */
  readonly ids: string | undefined;
}

/**
 * Samples given scores, both as the user wrote them.
 * @throws UserError for scores or tokens that are not valid, and for settings without an effect.
 */
export function sampleScores({ from, text, settings, ids }: GivenScoresRequest): SamplingResult {
  const scores = parseScores(from, text);
  // Without a setting, the user asks only for the softmax.
  const { sampling } = chooseSettings(
    { ...settings, temperature: settings.temperature ?? 1 },
    undefined,
  );
  refuseUnsampled(settings, undefined, sampling);
  const earlier = ids === undefined ? [] : (listedIds(ids, scores.values.length) ?? []);
  return { schema: 'minimind/sampling@1', ...sampleGiven(scores, sampling, earlier) };
}

/** Maximum number of given values. More are a whole vocabulary, for which `--explain-sampling` exists. */
const MOST_VALUES = 1000;

/** `8,7,6`, `[8, 7, 6]`, `8 7 6`, with `-inf` for a masked token. */
export function parseScores(flag: GivenScores['from'], text: string): GivenScores {
  const plain = text
    .trim()
    .replace(/^\[(.*)\]$/s, '$1')
    .trim();
  const words = plain.split(/\s*[,;\s]\s*/).filter((word) => word !== '');
  if (words.length === 0) throw unreadable(flag, 'numbers', 'none');
  if (words.length > MOST_VALUES)
    throw unreadable(flag, `up to ${MOST_VALUES} numbers`, `${words.length}`);
  const values = words.map((word) => {
    const value = /^-inf(?:inity)?$/i.test(word) ? Number.NEGATIVE_INFINITY : Number(word);
    const isReal = /^[+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(word) && Number.isFinite(value);
    const isMasked = flag === 'logits' && value === Number.NEGATIVE_INFINITY;
    if (!isReal && !isMasked) throw unreadable(flag, 'numbers', JSON.stringify(word.slice(0, 40)));
    return value;
  });
  if (flag === 'logits') {
    if (values.some(Number.isFinite)) return { from: flag, values };
    throw unreadable(flag, 'a finite logit', 'none');
  }
  const negative = values.find((value) => value < 0);
  if (negative !== undefined) throw unreadable(flag, 'numbers from 0 on', String(negative));
  if (values.some((value) => value > 0)) return { from: flag, values };
  throw unreadable(flag, 'a probability above 0', 'none');
}

const EXAMPLES = { logits: '8,7,6,3,2', probabilities: '0.5,0.25,0.15,0.1' } as const;

const unreadable = (flag: GivenScores['from'], expected: string, found: string) =>
  usageError(
    `${setting(flag)}: expected ${expected}, found ${found}`,
    `write it as in ${setting(flag, EXAMPLES[flag])}`,
  );

/**
 * The distribution after each filter.
 * @param earlier Tokens to which a repetition penalty applies, by their position among the scores.
 * @throws UserError for an earlier token that has no score.
 */
export function sampleGiven(
  { from, values }: GivenScores,
  settings: SamplingSettings,
  earlier: readonly number[],
): GivenDistribution {
  const unknown = earlier.find((token) => token >= values.length);
  if (unknown !== undefined) {
    throw usageError(
      `${setting('ids')}: expected tokens from 0 to ${values.length - 1}, found ${unknown}`,
      `write positions of ${setting('logits')}, the first one is 0`,
    );
  }
  const sum = values.reduce((total, value) => total + value, 0);
  const scores =
    from === 'logits'
      ? Float64Array.from(values)
      : Float64Array.from(values, (value) => Math.log(value));
  const stages = samplingStages(scores, settings, earlier).map(
    ({ name, distribution }): StageOfGiven => {
      const probabilities = values.map((_, token) => probabilityOf(distribution, token));
      return {
        name: name === 'model' ? 'softmax' : name,
        kept: probabilities.filter((each) => each > 0).length,
        entropy: entropyOf(probabilities),
        probabilities,
      };
    },
  );
  const kept = (stages.at(-1)?.probabilities ?? [])
    .map((probability, token) => ({ token, probability }))
    .filter(({ probability }) => probability > 0)
    .sort((a, b) => b.probability - a.probability || a.token - b.token);
  return { from, values, settings, sum: from === 'logits' ? null : sum, stages, kept };
}

const entropyOf = (probabilities: readonly number[]): number =>
  probabilities.reduce((sum, each) => (each > 0 ? sum - each * Math.log2(each) : sum), 0);
