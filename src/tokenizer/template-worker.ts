/**
 * Thread that renders one chat template. A template is a program from a file, and only a thread can be stopped when it
 * does not end or fills the memory.
 */
import { parentPort, workerData } from 'node:worker_threads';
import { Template } from '@huggingface/jinja';

/** Input of the thread. */
export interface TemplateTask {
  readonly template: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** Output of the thread. */
export type TemplateAnswer =
  | { readonly text: string }
  /** `raised` is a message of the template itself, `error` one of the library. */
  | { readonly raised: string }
  | { readonly error: string };

/** Message of a template that calls `raise_exception`. */
class Raised extends Error {}

/** Filters of Jinja that the library lacks, as functions of the value and the arguments. */
const FILTERS: Readonly<Record<string, (...values: readonly never[]) => unknown>> = {
  format: (text: string, ...values: readonly unknown[]) => formatted(text, values),
  fromjson: (text: string) => JSON.parse(text),
};

/** Name of a filter's function, which no template uses. */
const functionOf = (filter: string) => `minimind filter ${filter}`;

interface Node {
  type: string;
  value?: unknown;
  operand?: unknown;
  filter?: Node & { readonly callee?: Node; readonly args?: unknown };
}

/** Replaces filters that the library lacks by calls of functions, everywhere in a parsed template. */
function replaceFilters(part: unknown): void {
  if (typeof part !== 'object' || part === null) return;
  for (const value of Object.values(part)) replaceFilters(value);
  const node = part as Node & Record<string, unknown>;
  if (node.type !== 'FilterExpression') return;
  const { filter, operand } = node;
  const name = String(filter?.callee ? filter.callee.value : filter?.value);
  if (!Object.hasOwn(FILTERS, name)) return;
  const args = Array.isArray(filter?.args) ? filter.args : [];
  const callee = { type: 'Identifier', value: functionOf(name) };
  Object.assign(node, { type: 'CallExpression', callee, args: [operand, ...args] });
}

/** Python's `%` for the conversions that templates use. */
function formatted(text: string, values: readonly unknown[]): string {
  let next = 0;
  return text.replace(/%(?:(%)|\.?(\d*)([sdif]))/g, (_, percent, digits: string, kind: string) => {
    if (percent) return '%';
    const value = values[next++];
    if (kind === 's') return String(value);
    return kind === 'f'
      ? Number(value).toFixed(Number(digits || 6))
      : String(Math.trunc(Number(value)));
  });
}

function answerTo({ template, values }: TemplateTask): TemplateAnswer {
  try {
    const parsed = new Template(template);
    replaceFilters(parsed.parsed);
    const filters = Object.entries(FILTERS).map(([name, filter]) => [functionOf(name), filter]);
    return {
      text: parsed.render({
        ...Object.fromEntries(filters),
        raise_exception: (message: unknown) => {
          throw new Raised(String(message));
        },
        ...values,
      }),
    };
  } catch (error) {
    if (error instanceof Raised) return { raised: error.message };
    return { error: error instanceof Error ? error.message : String(error) };
  }
}

parentPort?.postMessage(answerTo(workerData as TemplateTask));
