/** Judgement of training data: faults that spoil a training run, limits of a build, packing and epochs. */

import { setting } from '../../base/text/setting.js';
import { formatInteger, percentText } from '../../base/text/units.js';
import { counted, shortened } from '../../base/text/words.js';
import type { DataFigures, Listed } from './data-statistics.js';
import type { Duplicate } from './duplicates.js';
import type { Place } from './lines.js';
import type { DataReading } from './read-data.js';
import { isStream, LINE_FAULTS } from './records.js';

/** Names of faults. Each fails `--check`. */
export type FaultName =
  | 'no-samples'
  | 'invalid-lines'
  | 'empty-samples'
  | 'white-space-samples'
  | 'blank-answers'
  | 'all-masked'
  | 'counted-padding'
  | 'end-masked'
  | 'beyond-vocabulary'
  | 'control-characters'
  | 'half-surrogates'
  | 'duplicates';

export interface DataFault {
  readonly name: FaultName;
  /** Samples or lines with the fault. @integer */
  readonly count: number;
  /** Description for people. */
  readonly message: string;
  /** First places, as in `line 3` or `data.jsonl line 3`. */
  readonly places: readonly string[];
}

export interface Packing {
  /** Sequences of the context that hold all tokens, nothing cut. @integer */
  readonly sequences: number;
  /** Share of the positions that packing saves; negative when cutting saves more. */
  readonly saved: number;
}

export interface Epochs {
  /** Tokens of the training. */
  readonly budget: number | bigint;
  /** Passes over the tokens of the samples. */
  readonly epochs: number;
}

/** Conclusions from the figures of training data. */
export interface DataJudgement {
  /** Faults of the data. */
  readonly faults: readonly DataFault[];
  /** Samples packed into sequences; null without tokens. */
  readonly packing: Packing | null;
  /** Passes over the data; null without a budget. */
  readonly epochs: Epochs | null;
}

/**
 * Figures, faults and use of training data.
 * @answer minimind data --json
 */
export interface DataResult extends DataReading, DataJudgement {
  readonly schema: 'minimind/data@1';
}

/** @param budget Tokens of the training. */
export function judgeData(reading: DataReading, budget?: number | bigint): DataJudgement {
  const { figures, context, kind } = reading;
  const { tokens } = figures;
  return {
    faults: faultsOf(reading),
    packing:
      tokens === null || tokens.positions === 0 || isStream(kind)
        ? null
        : packingOf(tokens, context),
    epochs:
      budget === undefined || tokens === null || tokens.tokens === 0
        ? null
        : { budget, epochs: Number(budget) / tokens.tokens },
  };
}

function packingOf(
  { uncut, positions }: NonNullable<DataFigures['tokens']>,
  context: number,
): Packing {
  const sequences = Math.ceil(uncut / context);
  return { sequences, saved: 1 - (sequences * context) / positions };
}

/** Place of a sample in words; the file only when there are several. */
const placeText = ({ file, line }: Place, isOnly: boolean) =>
  isOnly ? `line ${formatInteger(line)}` : `${file} line ${formatInteger(line)}`;

function faultsOf({ files, figures, vocabulary, special, kind }: DataReading): DataFault[] {
  const isOnly = files.length === 1;
  const { tokens, invalid, control, surrogates, duplicates } = figures;
  const places = (listed: Listed<Place>) => listed.first.map((place) => placeText(place, isOnly));
  const fault = (name: FaultName, listed: Listed<Place>, message: string): DataFault[] =>
    listed.count === 0 ? [] : [{ name, count: listed.count, message, places: places(listed) }];
  const samples = (number: number) => counted(number, 'sample');
  const { empty, whiteSpace, blankAnswers } = figures;
  const found: DataFault[] = [
    ...(invalid.count === 0
      ? []
      : [
          {
            name: 'invalid-lines' as const,
            count: invalid.count,
            message: `${counted(invalid.count, 'invalid line')}, not used (${invalidKinds(figures)})`,
            places: invalid.first.map(
              (each) => `${placeText(each, isOnly)}: ${shortened(each.message, 160)}`,
            ),
          },
        ]),
    ...fault(
      'control-characters',
      control,
      `${counted(control.characters, 'control character')} in ${samples(control.count)}`,
    ),
    ...fault(
      'half-surrogates',
      surrogates,
      `${counted(surrogates.characters, 'half surrogate pair')} in ${samples(surrogates.count)}: no tokenizer can encode them`,
    ),
    ...(duplicates === null ? [] : duplicateFaults(duplicates.exact, isOnly)),
  ];
  const blank = [
    ...fault('empty-samples', empty, `${samples(empty.count)} without text`),
    ...fault(
      'white-space-samples',
      whiteSpace,
      `${samples(whiteSpace.count)} with only white space as text`,
    ),
    ...fault(
      'blank-answers',
      blankAnswers,
      `${samples(blankAnswers.count)} with only white space, or nothing, as answers`,
    ),
  ];
  if (figures.samples === 0) {
    found.unshift({ name: 'no-samples', count: 0, message: 'no samples', places: [] });
  }
  if (tokens === null) return [...found, ...blank];
  return [
    ...found,
    ...fault(
      'all-masked',
      tokens.allMasked,
      `${samples(tokens.allMasked.count)} without a counted target: a batch of them has the loss 0/0 = NaN`,
    ),
    ...blank,
    ...fault(
      'counted-padding',
      tokens.countedPadding,
      `${samples(tokens.countedPadding.count)} without the end of an answer: their padding counts in the loss`,
    ),
    ...fault(
      'beyond-vocabulary',
      tokens.beyondVocabulary,
      `${counted(tokens.beyondVocabulary.tokens, 'token')} with ids beyond the ${formatInteger(vocabulary ?? 0)} of the vocabulary`,
    ),
    ...(special.pad !== null && special.pad === special.eos && (kind === 'text' || kind === 'plain')
      ? [
          {
            name: 'end-masked' as const,
            count: figures.samples,
            message: `padding and the end token are both id ${special.pad}: the mask removes the end, and the model never learns to stop`,
            places: [],
          },
        ]
      : []),
  ];
}

function duplicateFaults(exact: Listed<Duplicate<Place>>, isOnly: boolean): DataFault[] {
  if (exact.count === 0) return [];
  return [
    {
      name: 'duplicates',
      count: exact.count,
      message: `${counted(exact.count, 'sample')} that ${exact.count === 1 ? 'repeats an earlier one' : 'repeat earlier ones'} exactly`,
      places: exact.first.map(
        ({ place, first }) => `${placeText(place, isOnly)} repeats ${placeText(first, isOnly)}`,
      ),
    },
  ];
}

/** `2 not JSON, 1 not UTF-8`: invalid lines by reason. */
const invalidKinds = ({ invalid }: DataFigures): string =>
  Object.entries(invalid.faults)
    .map(
      ([name, count]) => `${formatInteger(count)} ${LINE_FAULTS[name as keyof typeof LINE_FAULTS]}`,
    )
    .join(', ');

/** Limits of a build; a share is of the samples, padding of the positions, cut of the tokens. */
export interface DataLimits {
  readonly check: boolean;
  readonly maxInvalid?: number | undefined;
  readonly maxDuplicates?: number | undefined;
  readonly maxNearDuplicates?: number | undefined;
  readonly maxPadding?: number | undefined;
  readonly maxCut?: number | undefined;
}

/** Faults that a limit can allow. */
const LIMITED: Partial<Record<FaultName, keyof DataLimits>> = {
  'invalid-lines': 'maxInvalid',
  duplicates: 'maxDuplicates',
};

/** A line for each exceeded limit, and with `check` for each fault. */
export function exceededData(
  limits: DataLimits,
  { figures }: Pick<DataReading, 'figures'>,
  { faults }: DataJudgement,
): string[] {
  const { tokens, duplicates, samples, invalid } = figures;
  const share = (part: number | undefined, whole: number) =>
    part === undefined || whole === 0 ? 0 : part / whole;
  const shares = {
    maxInvalid: { words: 'invalid lines', share: share(invalid.count, figures.lines) },
    maxDuplicates: {
      words: 'duplicate samples',
      share: share(duplicates?.exact.count, samples),
    },
    maxNearDuplicates: {
      words: 'near duplicates',
      share: share(duplicates?.near.count, samples),
    },
    maxPadding: { words: 'padding', share: tokens?.paddingShare ?? 0 },
    maxCut: { words: 'tokens cut off', share: tokens?.cutShare ?? 0 },
  } as const;
  const names = Object.keys(shares) as (keyof typeof shares)[];
  const exceeded = names.flatMap((name) => {
    const { words, share: found } = shares[name];
    const limit = limits[name];
    return limit !== undefined && found > limit
      ? [`${percentText(found)} ${words} exceed ${setting(name)} ${percentText(limit)}`]
      : [];
  });
  if (!limits.check) return exceeded;
  return [
    ...exceeded,
    ...faults
      .filter(({ name }) => {
        const limit = LIMITED[name];
        return limit === undefined || limits[limit] === undefined;
      })
      .map(({ message, places }) =>
        places[0] === undefined ? message : `${message}; first: ${places[0]}`,
      ),
  ];
}
