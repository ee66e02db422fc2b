/** What a survey of SRTE tables comes down to, in a sentence or two. */
import type { SrteOption } from '../../conversion/srte-options.js';
import type { SrteSurvey } from '../../conversion/srte-survey.js';
import { percentText } from '../kit/percent.js';
import { formatShare } from '../kit/units.js';

/** Up to this relative error, a table is as good as the one it replaces. */
const CLOSE = 0.05;
/** Beyond this one, the tables have little in common. */
const FAR = 0.5;
/** A rank adds little to an error when that grows by no more than this factor. */
const LITTLE_MORE = 1.1;

/** Undefined when the numbers say nothing. */
export function srteAdvice(survey: SrteSurvey): string | undefined {
  const { sharing, tables } = survey;
  if (tables.some(({ nonFinite }) => nonFinite !== null)) {
    return 'Mend the values that are not finite first: no mean can be made of them.';
  }
  if (tables.every(({ norm }) => norm === 0))
    return 'There is nothing to lose: every value is zero.';
  if (sharing === 'shared') return rankAdvice(survey);
  if (tables.length === 1) {
    return ['There is one layer, and so nothing to share.', rankAdvice(survey)].join(' ').trim();
  }
  return sharingAdvice(survey);
}

function sharingAdvice({ options, parameters }: SrteSurvey): string | undefined {
  const mean = options.find(({ rank }) => rank === null);
  const error = mean?.relativeError ?? null;
  if (mean === undefined || error === null) return undefined;
  const isCheap = (option: SrteOption) =>
    option.rank !== null && isWithin(option, Math.max(CLOSE, error * LITTLE_MORE));
  const rank = options.find(isCheap);
  return [
    `One table for all layers changes them by ${percentText(error)} and saves ${saved(mean, parameters)} of their parameters: ${verdict(error)}.`,
    ...(rank
      ? [
          `Rank ${rank.rank} adds little to that: ${percentText(rank.relativeError)}, and saves ${saved(rank, parameters)}.`,
        ]
      : []),
  ].join(' ');
}

function verdict(error: number): string {
  if (error <= CLOSE) return 'they are nearly the same, so share it';
  if (error <= FAR) return 'they are alike, so share it and train the model on for a while';
  return 'they have little in common, so share it only if the model is trained on';
}

/** For a table that is the only one. */
function rankAdvice({ options, parameters }: SrteSurvey): string | undefined {
  const ranks = options.filter(({ rank }) => rank !== null);
  if (ranks.length === 0) return undefined;
  const close = ranks.find((option) => isWithin(option, CLOSE));
  return close
    ? `Rank ${close.rank} changes the table by ${percentText(close.relativeError)} and saves ${saved(close, parameters)} of its parameters.`
    : `No rank that was looked into stays within ${CLOSE * 100}% of the table: leave it whole.`;
}

const isWithin = ({ relativeError }: SrteOption, most: number) =>
  relativeError !== null && relativeError <= most;

const saved = ({ savedParameters }: SrteOption, parameters: number) =>
  formatShare(savedParameters, parameters);
