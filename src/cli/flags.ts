/** Flags that mean the same in every command. */
import * as Flags from '@oclif/core/flags';
import { UserError } from '../errors.js';
import { FORMATS } from '../report/report.js';
import { DTYPE_NAMES, type Dtype, parseDtype } from '../tensor/dtype.js';

/** Flags that every command takes. */
export const baseFlags = {
  format: Flags.option({
    options: FORMATS,
    default: 'table',
    description: 'how to print the answer',
    helpGroup: 'OUTPUT',
  } as const)(),
  json: Flags.boolean({ description: 'short for --format json', helpGroup: 'OUTPUT' }),
  output: Flags.string({
    char: 'o',
    helpValue: 'FILE',
    description: 'write the answer to FILE, whole or not at all',
    helpGroup: 'OUTPUT',
  }),
  force: Flags.boolean({ description: 'replace FILE if it exists', helpGroup: 'OUTPUT' }),
  quiet: Flags.boolean({
    char: 'q',
    description: 'print no warnings and no progress',
    helpGroup: 'OUTPUT',
  }),
  'no-color': Flags.boolean({ description: 'print without colours', helpGroup: 'OUTPUT' }),
};

/** `--set model.num_layers=24`, repeatable. */
export const set = Flags.string({
  multiple: true,
  multipleNonGreedy: true,
  helpValue: 'KEY=VALUE',
  description: 'override a value of the file, as in model.num_layers=24 (repeatable)',
});

/** `--dtype bf16`, by any of a type's usual names. */
export const dtype = Flags.custom<Dtype>({
  helpValue: 'TYPE',
  parse: async (text) => {
    const parsed = parseDtype(text);
    if (parsed) return parsed;
    throw new UserError('usage', `--dtype: ${JSON.stringify(text)} is no element type`, {
      suggestion: `use one of ${DTYPE_NAMES.join(', ')}`,
    });
  },
});

/** Positive whole numbers with commas between them: `--ranks 128,64`. */
export const counts = Flags.custom<number>({
  multiple: true,
  delimiter: ',',
  helpValue: 'N,N',
  parse: async (text, _context, options) => {
    const value = Number(text);
    if (/^\s*\d+\s*$/.test(text) && Number.isSafeInteger(value) && value > 0) return value;
    throw new UserError(
      'usage',
      `--${options.name}: ${JSON.stringify(text)} is no positive whole number`,
      { suggestion: `write numbers with commas between them, as in --${options.name} 128,64` },
    );
  },
});
