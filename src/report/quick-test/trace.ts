/** What `minimind quick-test --trace` prints: a line for each step of a forward pass. */
import type { TraceStep } from '../../quicktest/trace.js';
import { heading, integerCell, left, note, right } from '../kit/cells.js';
import type { Report } from '../kit/report.js';
import { formatInteger } from '../kit/units.js';

interface TraceResult {
  readonly file: string;
  readonly batch: number;
  readonly context: number;
  readonly trace: readonly TraceStep[];
}

/** @param flat Whether the reader is a program, which is told the depth of a step instead of shown it. */
export function traceReport(
  { file, batch, context, trace }: TraceResult,
  { flat }: { readonly flat: boolean },
): Report {
  const total = trace.reduce((sum, { parameters }) => sum + parameters, 0);
  return {
    blocks: [
      heading(`From ids to logits: ${file}`),
      note(
        `${formatInteger(batch)} × ${formatInteger(context)} tokens; ${formatInteger(total)} parameters, ` +
          'each told where it is first used.',
      ),
      {
        kind: 'table',
        columns: [
          left('step', 'step'),
          left('operation', 'operation', true),
          left('shape', 'shape'),
          right('parameters', 'parameters'),
          ...(flat ? [right('depth', 'depth')] : []),
        ],
        rows: trace.map(({ name, depth, operation, shape, parameters }) => [
          { text: `${'  '.repeat(depth)}${lastParts(name, depth)}`, value: name },
          { text: operation },
          { text: `[${shape.join(', ')}]` },
          parameters === 0 ? { text: '', value: 0 } : integerCell(parameters),
          ...(flat ? [{ text: String(depth), value: depth }] : []),
        ]),
      },
    ],
  };
}

/** A name without that of the block above it. */
const lastParts = (name: string, depth: number): string =>
  depth === 0 ? name : name.split('.').slice(2).join('.') || name;
