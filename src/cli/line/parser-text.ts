/** The text that the parser of oclif puts around the message of a flag's own parser. */
import type { UserError } from '../../base/errors.js';

const WRAPPING = /^Parsing --\S+ \n\t(.*)\nSee more help with --help$/s;

/** The error with the message of the flag's parser alone. */
export function withoutParserText(error: UserError): UserError {
  const own = WRAPPING.exec(error.message)?.[1];
  if (own !== undefined) error.message = own;
  return error;
}
