/** Thresholds of the distance between two models, and the lines about those that a result exceeds. */
import * as Flags from '@oclif/core/flags';
import { percentText } from '../../base/text/units.js';
import type { ParsedFlags } from './flags.js';
import { parseShare, unreadable } from './value-flags.js';

/** A share: `0.05` or `5%`. */
export const shareOrPercent = Flags.custom<number>({
  helpValue: 'SHARE',
  parse: async (text, _context, { name }) => {
    const value = parseShare(text);
    if (value >= 0 && value <= 1) return value;
    const expected = 'a share from 0 to 1, or a percentage';
    return unreadable(name, text, expected, `write it as in --${name} 0.05 or --${name} 5%`);
  },
});

/** @param unit Unit of the number, as in `nats`. */
const amount = (unit: string, example: string) =>
  Flags.custom<number>({
    helpValue: unit.toUpperCase(),
    parse: async (text, _context, { name }) => {
      const value = Number(text);
      if (/^\s*\d*\.?\d+(e[+-]?\d+)?\s*$/i.test(text) && Number.isFinite(value)) return value;
      return unreadable(name, text, `a number of ${unit}`, `write it as in --${name} ${example}`);
    },
  });

const nats = amount('nats', '0.01');

/**
 * `--max-kl`, `--min-top-match` and `--max-logit-error`.
 * @param needed Flags that compare two runs, one of which is required.
 */
export const logitLimits = (...needed: string[]) => {
  const relation = { type: 'some' as const, flags: needed };
  const group = { relationships: [relation], helpGroup: 'LIMITS' };
  return {
    'max-kl': nats({
      ...group,
      description: 'largest KL divergence of the next token, in nats, as in 0.01',
    }),
    'min-top-match': shareOrPercent({
      ...group,
      description: 'smallest share of positions with the same most likely token, as in 0.99',
    }),
    'max-logit-error': shareOrPercent({
      ...group,
      description: 'largest relative difference of the logits, as in 0.05',
    }),
  };
};

export type LogitLimits = ParsedFlags<ReturnType<typeof logitLimits>>;

/** Differences of logits that a threshold can limit. */
export interface LimitedLogits {
  readonly klDivergence: number;
  readonly topAgreement: number;
  readonly relativeDifference: number;
}

/** A line for each threshold that the logits of two models exceed. */
export function exceededLogits(limits: LogitLimits, logits: LimitedLogits): string[] {
  const { 'max-kl': kl, 'min-top-match': match, 'max-logit-error': error } = limits;
  const { klDivergence, topAgreement, relativeDifference } = logits;
  return [
    ...(kl !== undefined && !(klDivergence <= kl)
      ? [`KL divergence ${klDivergence.toPrecision(3)} nats exceeds --max-kl ${kl}`]
      : []),
    ...(match !== undefined && !(topAgreement >= match)
      ? [`top match ${percentText(topAgreement)} is below --min-top-match ${percentText(match)}`]
      : []),
    ...(error !== undefined && !(relativeDifference <= error)
      ? [
          `logit error ${percentText(relativeDifference)} exceeds --max-logit-error ${percentText(error)}`,
        ]
      : []),
  ];
}

/** Thresholds of `evaluate`. */
export const evaluationLimits = {
  'max-perplexity': amount(
    'tokens',
    '20',
  )({
    helpGroup: 'LIMITS',
    description: 'largest perplexity by token, as in 20',
  }),
  'max-bits-per-byte': amount(
    'bits',
    '1.2',
  )({
    helpGroup: 'LIMITS',
    description: 'largest number of bits per byte, as in 1.2',
    dependsOn: ['text'],
  }),
  'max-kl': logitLimits('against')['max-kl'],
  'min-top-match': logitLimits('against')['min-top-match'],
};

/** A line for each threshold that an evaluation exceeds. */
export function exceededEvaluation(
  limits: ParsedFlags<typeof evaluationLimits>,
  found: {
    readonly perplexity: number;
    readonly bitsPerByte: number | null;
    readonly kl: number | null;
    readonly sameTop: number | null;
  },
): string[] {
  const { 'max-perplexity': perplexity, 'max-bits-per-byte': bits, ...logits } = limits;
  const { kl, sameTop } = found;
  const isAbove = (value: number | null, most: number | undefined) =>
    most !== undefined && value !== null && !(value <= most);
  return [
    ...(isAbove(found.perplexity, perplexity)
      ? [`perplexity ${found.perplexity.toPrecision(4)} exceeds --max-perplexity ${perplexity}`]
      : []),
    ...(isAbove(found.bitsPerByte, bits)
      ? [`${found.bitsPerByte?.toPrecision(4)} bits per byte exceed --max-bits-per-byte ${bits}`]
      : []),
    ...(kl === null || sameTop === null
      ? []
      : exceededLogits(
          { ...logits, 'max-logit-error': undefined },
          { klDivergence: kl, topAgreement: sameTop, relativeDifference: 0 },
        )),
  ];
}

/** Thresholds of `data`. */
export const dataLimits = {
  'max-invalid': shareOrPercent({
    helpGroup: 'LIMITS',
    description: 'largest share of invalid lines, as in 0.1%',
  }),
  'max-duplicates': shareOrPercent({
    helpGroup: 'LIMITS',
    description: 'largest share of samples that repeat an earlier one, as in 1%',
  }),
  'max-near-duplicates': shareOrPercent({
    helpGroup: 'LIMITS',
    description: 'largest share of samples that are near duplicates, as in 5%',
  }),
  'max-padding': shareOrPercent({
    helpGroup: 'LIMITS',
    description: 'largest share of padding in the samples, as in 50%',
  }),
  'max-cut': shareOrPercent({
    helpGroup: 'LIMITS',
    description: 'largest share of tokens beyond the context, as in 5%',
  }),
};
