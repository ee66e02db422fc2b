/** Flags shared by the commands on projectors of keys and values. */

import * as Flags from '@oclif/core/flags';
import { LIST, unreadable } from './value-flags.js';

/** A larger ratio would not be a bottleneck. */
const LARGEST_RATIO = 1024;

const NUMBER = /^\d*\.?\d+$/;

/** A ratio of the teacher's width; undefined for other text. */
function ratioIn(text: string): number | undefined {
  const ratio = NUMBER.test(text) ? Number(text) : 0;
  return ratio > 0 && ratio <= LARGEST_RATIO ? ratio : undefined;
}

const noRatio = (expected: string, text: string, example: string): never =>
  unreadable(
    'ratio',
    text,
    expected,
    `write numbers up to ${LARGEST_RATIO} as in --ratio ${example}`,
  );

const numericRatio = async (text: string): Promise<number> =>
  ratioIn(text) ?? noRatio('a number', text, '0.5');

/** `--ratio 0.5`: width between the layers of an elastic adapter, as a ratio of the teacher's. */
export const widthRatio = Flags.custom<number>({ helpValue: 'RATIO', parse: numericRatio });

/** `--ratio 0.5,1`. */
export const widthRatios = Flags.custom<number>({
  ...LIST,
  helpValue: 'RATIO,RATIO',
  parse: numericRatio,
});

/** `--ratio 0.5,recommended`. */
export const ratioChoices = Flags.custom<number | 'recommended'>({
  ...LIST,
  helpValue: 'RATIO,RATIO',
  parse: async (text) =>
    text === 'recommended'
      ? text
      : (ratioIn(text) ?? noRatio('a number or recommended', text, '0.5,recommended')),
});

/** Probability of dropout: from 0 to below 1. */
const dropoutOf = async (text: string): Promise<number> => {
  if (NUMBER.test(text) && Number(text) < 1) return Number(text);
  const expected = 'a probability from 0 to below 1';
  return unreadable('dropout', text, expected, 'write it as in --dropout 0.1');
};

/** `--dropout 0.1`. */
export const dropout = Flags.custom<number>({ helpValue: 'P', parse: dropoutOf });

/** `--dropout 0,0.1`. */
export const dropouts = Flags.custom<number>({ ...LIST, helpValue: 'P,P', parse: dropoutOf });

/** `--teacher Qwen2-14B:5120x40`, repeatable. */
export const teachers = () =>
  Flags.string({
    required: true,
    multiple: true,
    multipleNonGreedy: true,
    helpValue: 'NAME:WIDTHxLAYERS',
    description:
      'teacher as NAME:WIDTHxLAYERS, as in Qwen2-14B:5120x40, as NAME:WIDTH, or a config (repeatable)',
  });
