import { UserError } from '../errors.js';
import type { Rule } from './rules.js';

/** What is wrong with a file. */
export interface Refusal {
  readonly rule: Rule;
  /** Where in the file: `tensor embed.weight`, `header byte 312`, `entry archive/data/0`. */
  readonly place?: string | undefined;
  readonly message: string;
  readonly suggestion?: string | undefined;
}

/** The error of a file that breaks a rule. @param file As the user wrote it. */
export function refusal(file: string, { rule, place, message, suggestion }: Refusal): UserError {
  return new UserError('refused-file', `${file} is refused`, {
    problems: [
      {
        severity: 'error',
        file,
        ...(place !== undefined && { path: place }),
        message,
        rule,
        ...(suggestion !== undefined && { suggestion }),
      },
    ],
  });
}

/** The rule by which an error refuses a file. */
export function ruleOf(error: unknown): string | undefined {
  return error instanceof UserError ? error.problems[0]?.rule : undefined;
}
