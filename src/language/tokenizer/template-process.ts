/**
 * Process that renders chat templates. A template is a program from a file. Some of its steps are one native call that
 * takes hours or gigabytes, outside the limits of V8 and its threads, so only a process can always be stopped.
 */
import { isMainThread, parentPort, Worker } from 'node:worker_threads';
import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';
import { parseJson } from '../../base/text/json.js';
import { shortened } from '../../base/text/words.js';

/** A template and values for it. */
export interface TemplateTask {
  readonly template: string;
  readonly values: Readonly<Record<string, unknown>>;
}

/** First message to the process: the template, and the values that all its texts share. Each other message is a list of JSON objects with the values of one text. */
export interface TemplateSeries {
  readonly template: string;
  readonly shared: Readonly<Record<string, unknown>>;
}

/** Output of the process. */
export type TemplateAnswer =
  | { readonly text: string }
  /** `raised` is a message of the template itself, `error` one of the library. */
  | { readonly raised: string }
  | { readonly error: string };

/** Message of a template that calls `raise_exception`. */
class Raised extends Error {}

type OwnFunction = (...values: readonly never[]) => unknown;

/** Filters of Jinja that the library lacks, as functions of the value and the arguments. */
const FILTERS: Readonly<Record<string, OwnFunction>> = {
  format: (text: string, ...values: readonly unknown[]) => formatted(text, values),
  fromjson: (text: string) => parseJson(text),
};

/** Methods of Python's texts whose arguments the library ignores. */
const METHODS: Readonly<Record<string, OwnFunction>> = {
  strip: (text: string, characters: string) => stripped(text, characters, true, true),
  lstrip: (text: string, characters: string) => stripped(text, characters, true, false),
  rstrip: (text: string, characters: string) => stripped(text, characters, false, true),
};

/** Variable name of an own function; no template uses such a name. */
const variableOf = (name: string) => `minimind ${name}`;

interface Node {
  type: string;
  value?: unknown;
  operand?: unknown;
  object?: unknown;
  property?: Node;
  callee?: Node;
  args?: unknown;
  filter?: Node;
}

/** Replaces operations that the library lacks by calls of own functions, everywhere in a parsed template. */
function useOwnFunctions(part: unknown): void {
  if (typeof part !== 'object' || part === null) return;
  for (const value of Object.values(part)) useOwnFunctions(value);
  const node = part as Node;
  const replace = (name: string, value: unknown, args: unknown) => {
    const callee = { type: 'Identifier', value: variableOf(name) };
    const others = Array.isArray(args) ? args : [];
    Object.assign(node, { type: 'CallExpression', callee, args: [value, ...others] });
  };
  const { filter, callee, args } = node;
  if (node.type === 'FilterExpression') {
    const name = String(filter?.callee ? filter.callee.value : filter?.value);
    if (Object.hasOwn(FILTERS, name)) replace(name, node.operand, filter?.args);
  } else if (node.type === 'CallExpression' && callee?.type === 'MemberExpression') {
    const name = String(callee.property?.value);
    const hasArguments = Array.isArray(args) && args.length > 0;
    if (hasArguments && Object.hasOwn(METHODS, name)) replace(name, callee.object, args);
  }
}

/** Text without some characters at its beginning and end. */
function stripped(text: string, characters: string, first: boolean, last: boolean): string {
  const removed = new Set(characters);
  const all = Array.from(text);
  let [start, end] = [0, all.length];
  while (first && start < end && removed.has(all[start] ?? '')) start++;
  while (last && end > start && removed.has(all[end - 1] ?? '')) end--;
  return all.slice(start, end).join('');
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

/** Maximum length of `range`, as in Jinja's sandbox. */
const MOST_NUMBERS = 100_000;

function range(first: number, end?: number, step = 1): number[] {
  const [from, to] = end === undefined ? [0, first] : [first, end];
  const count = Math.max(0, Math.ceil((to - from) / step));
  if (!(count <= MOST_NUMBERS)) throw new Error(`range: expected at most ${MOST_NUMBERS} numbers`);
  return Array.from({ length: count }, (_, index) => from + index * step);
}

/** Python's `strftime` for the current time. */
function strftimeNow(format: string): string {
  const now = new Date();
  const name = (options: Intl.DateTimeFormatOptions) => now.toLocaleDateString('en-US', options);
  const padded = (number: number) => String(number).padStart(2, '0');
  const parts: Readonly<Record<string, () => string>> = {
    a: () => name({ weekday: 'short' }),
    A: () => name({ weekday: 'long' }),
    b: () => name({ month: 'short' }),
    B: () => name({ month: 'long' }),
    d: () => padded(now.getDate()),
    H: () => padded(now.getHours()),
    I: () => padded(now.getHours() % 12 || 12),
    m: () => padded(now.getMonth() + 1),
    M: () => padded(now.getMinutes()),
    p: () => (now.getHours() < 12 ? 'AM' : 'PM'),
    S: () => padded(now.getSeconds()),
    y: () => padded(now.getFullYear() % 100),
    Y: () => String(now.getFullYear()),
    '%': () => '%',
  };
  return format.replace(/%(.)/g, (text, letter: string) => parts[letter]?.() ?? text);
}

const GLOBALS: Readonly<Record<string, unknown>> = {
  ...{ true: true, True: true, false: false, False: false, none: null, None: null },
  range,
  strftime_now: strftimeNow,
  raise_exception: (message: unknown) => {
    throw new Raised(String(message));
  },
};

/** Renders a template. */
export const answerToTask = ({ template, values }: TemplateTask): TemplateAnswer =>
  preparedTemplate(template)(values);

/** A template, parsed once. */
function preparedTemplate(
  template: string,
): (values: Readonly<Record<string, unknown>>) => TemplateAnswer {
  let program: ReturnType<typeof parse>;
  try {
    const source = template.replace(/\r\n?/g, '\n');
    program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
    useOwnFunctions(program);
  } catch (error) {
    const answer = failed(error);
    return () => answer;
  }
  const own = Object.entries({ ...FILTERS, ...METHODS }).map(
    ([name, value]) => [variableOf(name), value] as const,
  );
  return (values) => {
    try {
      const environment = new Environment();
      const all = { ...GLOBALS, ...Object.fromEntries(own), ...values };
      for (const [name, value] of Object.entries(all)) environment.set(name, value);
      return { text: String(new Interpreter(environment).run(program).value) };
    } catch (error) {
      return failed(error);
    }
  };
}

function failed(error: unknown): TemplateAnswer {
  if (error instanceof Raised) return { raised: error.message };
  return { error: error instanceof Error ? error.message : String(error) };
}

/** Argument with which the file runs as a process; tests import it without one. */
const STARTED_AS = 'render';

/** Maximum characters of a rendered text. */
const MOST_TEXT = 16_000_000;

/** An answer of bounded length. */
function bounded(answer: TemplateAnswer): TemplateAnswer {
  if ('error' in answer) return { error: shortened(answer.error, 300) };
  if ('raised' in answer) return { raised: shortened(answer.raised, 300) };
  return answer.text.length <= MOST_TEXT
    ? answer
    : { error: `the text has more than ${MOST_TEXT} characters` };
}

/** Memory limit of the process in bytes; it starts with about 60 MB. */
const MEMORY_LIMIT = 280_000_000;

/** Milliseconds between two checks of the memory. */
const WATCH_INTERVAL = 20;

/**
 * Kills this process when it takes too much memory, or when the process that started it has ended. Runs in a thread,
 * because the main thread can be in a native call.
 */
function watch(): void {
  const parent = process.ppid;
  parentPort?.postMessage('watching');
  setInterval(() => {
    if (process.memoryUsage.rss() > MEMORY_LIMIT || process.ppid !== parent) {
      process.kill(process.pid, 'SIGKILL');
    }
  }, WATCH_INTERVAL);
}

/** Answers the messages of the parent, once the watching thread has started. */
async function serve(send: (answer: unknown) => void): Promise<void> {
  // Only the parent decides when an interruption ends this process.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => {});
  process.on('disconnect', () => process.exit());
  const watcher = new Worker(new URL(import.meta.url), {
    env: {},
    execArgv: [],
    argv: [STARTED_AS],
  });
  const watching = new Promise((resolve) => watcher.once('message', resolve));
  let render: ((json: string) => TemplateAnswer) | undefined;
  process.on('message', async (message: TemplateSeries | readonly string[]) => {
    await watching;
    if (isTexts(message)) {
      send(message.map((json) => bounded(render?.(json) ?? { error: 'no template' })));
      return;
    }
    const { template, shared } = message;
    const prepared = preparedTemplate(template);
    // The process that started this one wrote the text.
    render = (json) => prepared({ ...shared, ...JSON.parse(json) });
  });
}

const isTexts = (message: TemplateSeries | readonly string[]): message is readonly string[] =>
  Array.isArray(message);

// Tests import this file too.
if (process.argv[2] === STARTED_AS) {
  if (isMainThread) void serve((answer) => process.send?.(answer));
  else watch();
}
