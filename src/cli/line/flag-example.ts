/** Values that a flag accepts, for proposed lines and for errors. */
import type { Command } from '@oclif/core/command';
import { freeName } from '../../base/files/file-system.js';
import { nearestValue } from '../foreign/spellings.js';

/** Declaration of a flag, from its class or from the manifest. */
export type DeclaredFlag = Command.Loadable['flags'][string];

/** Whether only the user can name the value: `FILE`. */
export const isPlaceholder = (example: string) => /^[A-Z][A-Z:,|x]*$/.test(example);

/** Examples for the placeholders in the help. A value that only the user knows, such as FILE, has none. */
const EXAMPLES: Readonly<Record<string, string>> = {
  N: '1',
  K: '5',
  NUMBER: '0.9',
  SHARE: '0.9',
  RATE: '1e-5',
  STEPS: '100',
  'N,N': '1,2',
  'RATIO,RATIO': '0.5,1',
  'X,X': '-1,0,0.5',
  SIZE: '24GB',
  TYPE: 'bf16',
  RULE: 'nanogpt',
  IDS: '1,2,3',
  'KEY=VALUE': 'model.num_layers=24',
  'MODEL|ngram:N': 'ngram:3',
  'auto|none|ID': 'auto',
  'mean|first|layer:N': 'mean',
  'NAME|N': '1',
  'N|all': '1',
  'N|PATH': '0',
};

/** Example in a description: `as in 8,9`. A default such as `as in the file` is not an example. */
const EXAMPLE = /(?<!\[default: )\bas in (?!the\b)([^\s,;)\]]+)/;

/** Default in a description that is a value, not the beginning of a phrase. */
const DEFAULT = /\[default: (\d\S*?)(?:[,;] |\])/;

/** A value that a flag accepts: its first choice, or the example or default of its description, or one for its kind. */
export function exampleOf(flag: DeclaredFlag): string {
  const {
    options,
    helpValue = 'VALUE',
    description = '',
  } = flag as {
    options?: readonly string[];
    helpValue?: string;
    description?: string;
  };
  const example = EXAMPLE.exec(description)?.[1];
  if (flag.name === 'save' && example !== undefined) return freeName(example);
  const preset = helpValue === 'N' ? undefined : DEFAULT.exec(description)?.[1];
  if (helpValue.endsWith('|auto') && options === undefined) return 'auto';
  const usual = options && nearestValue(flag.name, 'true', options);
  return usual ?? options?.[0] ?? example ?? preset ?? EXAMPLES[helpValue] ?? helpValue;
}

/** Maximum allowed values that an error lists. */
const MOST_LISTED = 24;

/** Allowed values in words. */
export function choicesText(options: readonly string[]): string {
  if (options.length > MOST_LISTED) return `one of ${options.length} values`;
  return options.length > 1 ? `one of ${options.join(', ')}` : options.join();
}

/** Command in a description that lists the allowed values: `(minimind list --details)`. */
const LISTING = /\((minimind [^)]+)\)/;

/** The command that lists more values than an error does. */
export function listingOf({ description = '', options = [] }: Listed): string | undefined {
  const [, listing] = (options.length > MOST_LISTED && LISTING.exec(description)) || [];
  return listing && `see ${listing}`;
}

interface Listed {
  readonly description?: string;
  readonly options?: readonly string[];
}
