import { type Problem, UserError } from '../errors.js';

/** A tensor for which there is no plan. */
export interface PlanFault {
  readonly name: string;
  readonly message: string;
  readonly suggestion: string;
}

/** More kinds of faults than this are of another model. */
const MOST_TOLD = 20;

/** The error of all faults; the same one in many layers is told once. */
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
  const untold = problems.length - MOST_TOLD;
  return new UserError(
    'refused-file',
    `${file} cannot be converted to this: ${faults.length} ${faults.length === 1 ? 'tensor does' : 'tensors do'} not fit${untold > 0 ? `, of which the first kinds are told` : ''}`,
    { problems: problems.slice(0, MOST_TOLD) },
  );
}
