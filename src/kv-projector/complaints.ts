/** What is wrong with a file, all of it. */
import { tensorPlace } from '../checkpoint/wording.js';
import { type Problem, UserError } from '../errors.js';

/** Gathers what is wrong with a file. */
export interface Complain {
  (name: string | undefined, message: string, suggestion?: string): void;
  error(): UserError;
  /** @throws UserError when there was something. */
  end(): void;
}

export function complaintsOf(file: string): Complain {
  const problems: Problem[] = [];
  const error = () => new UserError('refused-file', `${file} is refused`, { problems });
  return Object.assign(
    (name: string | undefined, message: string, suggestion?: string) => {
      const place = name === undefined ? {} : { path: tensorPlace(name) };
      const advice = suggestion === undefined ? {} : { suggestion };
      problems.push({ severity: 'error', file, ...place, message, ...advice });
    },
    {
      error,
      end: () => {
        if (problems.length > 0) throw error();
      },
    },
  );
}
