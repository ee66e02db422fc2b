/** Named rules for checkpoints to be convertible, and the errors for violations. */
import { tensorPlace } from '../checkpoint/checkpoint-rules.js';
import { type Problem, UserError } from '../errors.js';

/**
 * Rules of the SRTE tables of a state dict, required to compare and share them. A problem names its rule; each is
 * checked in exactly one place.
 */
export const SRTE_RULES = {
  'srte-present': 'Some tensor is an SRTE table.',
  'srte-one-model': 'All SRTE tables stand under the same prefix.',
  'srte-layer-number': 'A layer is numbered in plain decimal digits, at most five of them.',
  'srte-layers-complete': 'The layers that have a table are 0, 1, 2 and so on, without a gap.',
  'srte-parts': 'A table is one tensor `freqs`, or a pair of `lowrank` and `proj.weight`.',
  'srte-shape': 'A full table is [1, L, H], a pair is [1, L, r] and [H, r]; no size is 0.',
  'srte-dtype': 'The values of a table are real floating-point numbers.',
  'srte-alike': 'All tables have the same shape, and all pairs the same rank.',
  'srte-finite': 'Values of tables that are merged, factorised or compared are finite.',
  'srte-one-sharing': 'Beside a shared table, no layer has one of its own.',
} as const;

export const CONVERSION_RULES = {
  ...SRTE_RULES,
  'conversion-changes':
    'A conversion to a layout is of a checkpoint that does not have it already.',
} as const;

export type SrteRule = keyof typeof SRTE_RULES;

/** A fault of the tables of a file. */
export interface SrteFault {
  readonly rule: SrteRule;
  /** Name of the tensor in the file; absent when the fault concerns several. */
  readonly tensor?: string;
  readonly message: string;
  readonly suggestion: string;
}

/** Collects the faults of the tables of one file; the same fault in many tensors is one problem. */
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

  /** @throws UserError when there are faults. */
  throwAny(): void {
    if (this.#faults.size > 0) throw this.#error();
  }

  /** The error of this fault and all collected ones. */
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

/** A tensor without a plan. */
export interface PlanFault {
  readonly name: string;
  readonly message: string;
  readonly suggestion: string;
}

/** More kinds of faults indicate another model. */
const MOST_SHOWN = 20;

/** One error for all faults; the same one in many layers is one problem. */
export function refusedPlan(file: string, faults: readonly PlanFault[]): UserError {
  const groups = new Map<string, { readonly first: PlanFault; count: number }>();
  for (const fault of faults) {
    const key = `${fault.name.replace(/\.\d+\./, '.#.')} ${fault.message}`;
    const known = groups.get(key);
    if (known) known.count++;
    else groups.set(key, { first: fault, count: 1 });
  }
  const problems = Array.from(groups.values(), ({ first, count }): Problem => {
    const { name, message, suggestion } = first;
    const others = count === 1 ? '' : ` and ${count - 1} more`;
    return {
      severity: 'error',
      file,
      path: `tensor ${JSON.stringify(name)}${others}`,
      message,
      suggestion,
    };
  });
  const hidden = problems.length - MOST_SHOWN;
  return new UserError(
    'refused-file',
    `${file} cannot be converted to this: ${faults.length} ${faults.length === 1 ? 'tensor does' : 'tensors do'} not fit${hidden > 0 ? `, of which the first kinds are told` : ''}`,
    { problems: problems.slice(0, MOST_SHOWN) },
  );
}
