/** Named rules for checkpoints to be convertible, and the errors for violations. */

import { type Problem, UserError } from '../../base/errors.js';
import { groupBy } from '../../base/values.js';
import { tensorPlace } from '../../checkpoint/checkpoint-rules.js';

/**
 * Rules of the SRTE tables of a state dict, required to compare and share them. A problem names its rule, and each rule
 * is checked in exactly one place.
 */
export const SRTE_RULES = {
  'srte-present': 'Some tensor is an SRTE table.',
  'srte-one-model': 'All SRTE tables have the same prefix.',
  'srte-layer-number': 'A layer is numbered in plain decimal digits, at most five of them.',
  'srte-layers-complete': 'The layers that have a table are 0, 1, 2 and so on, without a gap.',
  'srte-parts': 'A table is one tensor `freqs`, or a pair of `lowrank` and `proj.weight`.',
  'srte-shape': 'A full table is [1, L, H], a pair is [1, L, r] and [H, r]; no size is 0.',
  'srte-dtype': 'The values of a table are real floating-point numbers.',
  'srte-alike': 'All tables have the same shape, and all pairs the same rank.',
  'srte-finite': 'Values of tables that are merged, factorised or compared are finite.',
  'srte-one-sharing': 'With a shared table, no layer has its own.',
} as const;

export const CONVERSION_RULES = {
  ...SRTE_RULES,
  'conversion-changes':
    'A conversion to a layout is of a checkpoint that does not have it already.',
} as const;

export type SrteRule = keyof typeof SRTE_RULES;

/** A fault of a file, in one of its tensors or in several. */
export interface ConversionFault {
  readonly rule?: SrteRule;
  /** Name of the tensor in the file; absent when the fault concerns several. */
  readonly tensor?: string;
  readonly message: string;
  readonly suggestion: string;
}

/** Problems of a file: faults of one kind become one problem, with the first of their tensors. */
function problemsOf(
  file: string,
  faults: readonly ConversionFault[],
  kindOf: (fault: ConversionFault) => string,
  placeOf: (tensor: string) => string,
): Problem[] {
  return Array.from(groupBy(faults, kindOf).values(), ([first, ...others]): Problem => {
    const { rule, tensor, message, suggestion } = first;
    const more = others.length === 0 ? '' : ` and ${others.length} more`;
    return {
      severity: 'error',
      file,
      ...(tensor !== undefined && { path: placeOf(tensor) + more }),
      message,
      suggestion,
      ...(rule !== undefined && { rule }),
    };
  });
}

/** Collects the faults of the SRTE tables of one file. */
export class SrteFaults {
  readonly #file: string;
  readonly #faults: ConversionFault[] = [];

  constructor(file: string) {
    this.#file = file;
  }

  add(fault: ConversionFault & { readonly rule: SrteRule }): void {
    this.#faults.push(fault);
  }

  /** @throws UserError when there are faults. */
  throwAny(): void {
    if (this.#faults.length > 0) throw this.#error();
  }

  /** The error of this fault and all collected ones. */
  with(fault: ConversionFault & { readonly rule: SrteRule }): UserError {
    this.add(fault);
    return this.#error();
  }

  #error(): UserError {
    const kindOf = ({ rule, message }: ConversionFault) => `${rule} ${message}`;
    return new UserError('refused-file', `the SRTE tables of ${this.#file} cannot be used`, {
      problems: problemsOf(this.#file, this.#faults, kindOf, tensorPlace),
    });
  }
}

/** Maximum number of reported kinds of faults; more indicate another model. */
const MOST_SHOWN = 20;

/** One error for all tensors without a plan; the same fault in many layers is one problem. */
export function refusedPlan(file: string, faults: readonly ConversionFault[]): UserError {
  const kindOf = ({ tensor = '', message }: ConversionFault) =>
    `${tensor.replace(/\.\d+\./, '.#.')} ${message}`;
  const problems = problemsOf(file, faults, kindOf, (name) => `tensor ${JSON.stringify(name)}`);
  const hidden = problems.length - MOST_SHOWN;
  return new UserError(
    'refused-file',
    `${file} cannot be converted: ${faults.length} ${faults.length === 1 ? 'tensor does' : 'tensors do'} not fit${hidden > 0 ? `; the first ${MOST_SHOWN} kinds are listed` : ''}`,
    { problems: problems.slice(0, MOST_SHOWN) },
  );
}
