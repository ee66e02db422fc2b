import { tensorPlace } from '../checkpoint/wording.js';
import { type Problem, UserError } from '../errors.js';
import type { SrteRule } from './srte-rules.js';

/** What is wrong with the tables of a file. */
export interface SrteFault {
  readonly rule: SrteRule;
  /** The tensor, as the file names it; absent when no single one is meant. */
  readonly tensor?: string;
  readonly message: string;
  readonly suggestion: string;
}

/** Gathers what is wrong with the tables of one file; the same fault in many tensors is one problem. */
export class SrteFaults {
  readonly #file: string;
  readonly #faults = new Map<string, { readonly fault: SrteFault; tensors: number }>();

  constructor(file: string) {
    this.#file = file;
  }

  add(fault: SrteFault): void {
    const key = `${fault.rule} ${fault.message}`;
    const known = this.#faults.get(key);
    if (known) known.tensors++;
    else this.#faults.set(key, { fault, tensors: 1 });
  }

  /** @throws UserError when something is wrong. */
  throwAny(): void {
    if (this.#faults.size > 0) throw this.#error();
  }

  /** The error of this and of all that is known to be wrong. */
  with(fault: SrteFault): UserError {
    this.add(fault);
    return this.#error();
  }

  #error(): UserError {
    return new UserError('refused-file', `the SRTE tables of ${this.#file} cannot be used`, {
      problems: Array.from(this.#faults.values(), ({ fault, tensors }): Problem => {
        const { rule, tensor, message, suggestion } = fault;
        const others = tensors === 1 ? '' : ` and ${tensors - 1} more`;
        return {
          severity: 'error',
          file: this.#file,
          ...(tensor !== undefined && { path: tensorPlace(tensor) + others }),
          message,
          suggestion,
          rule,
        };
      }),
    });
  }
}
