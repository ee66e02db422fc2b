/**
 * Help of the program, of a topic and of a command. `-h` is one screen with the common flags, `--help` has everything.
 */
import type { Command } from '@oclif/core/command';
import type { Config } from '@oclif/core/config';
import { wrap } from '../report/kit/layout.js';
import type { RenderOptions } from '../report/kit/report.js';

/** Commands by what people want to do, in the order in which they usually need them. */
export const COMMAND_GROUPS = {
  Design: ['list', 'init', 'plan', 'compare', 'diff', 'train-plan'],
  Check: ['validate', 'profile', 'fit', 'data', 'inspect', 'verify'],
  'Run and convert': ['quick-test', 'generate', 'evaluate', 'export', 'convert-checkpoint'],
  Research: ['compare-srte', 'kv-projector', 'modules', 'attention', 'rope'],
  More: ['draw', 'explore', 'doctor', 'completion', 'schema', 'mcp'],
} as const satisfies Record<string, readonly string[]>;

/** Groups of which the short help only has the names. */
const NAMED_GROUPS: readonly string[] = ['Research', 'More'];

/** Lines that answer the first questions. */
const PROGRAM_EXAMPLES = ['profile gpt2', 'fit gpt2 --gpu 4090'] as const;

/** Flags of the short help, the most useful first. */
const COMMON_FLAGS: readonly string[] = [
  'gpu gpus for users to rank tie max-error target max-params max-memory tokens lr schedule warmup accumulation',
  'tokenizer show values tensors stats ranks baseline columns sort teacher student data',
  'checkpoint against prove only trace factor context batch dtype',
  'text ids set strict dry-run check random write layers details explain',
  'chat max-tokens temperature top-p seed draft json output force',
].flatMap((names) => names.split(' '));

/** Maximum lines of flags in the short help of a command, so that it fits on a screen of 24 lines. */
const MOST_COMMON_LINES = 11;

/** `-h` or `--help`. */
export type HelpLength = 'short' | 'long';

type Style = Pick<RenderOptions, 'width'> & { readonly bold: (text: string) => string };

/** @param words Command line; words that name no command or topic give the help of the program. */
export function helpText(
  config: Config,
  words: readonly string[],
  length: HelpLength,
  style: Style,
): string {
  const [first = '', second = ''] = words.filter((word) => !word.startsWith('-'));
  const command = config.findCommand(`${first}:${second}`) ?? config.findCommand(first);
  if (command) return commandHelp(config, command, length, style);
  const topic = config.findTopic(first);
  return topic ? topicHelp(config, topic.name, style) : programHelp(config, length, style);
}

function programHelp(config: Config, length: HelpLength, { width, bold }: Style): string {
  const groups = Object.entries(COMMAND_GROUPS)
    .filter(([name]) => length === 'long' || !NAMED_GROUPS.includes(name))
    .map(([name, ids]) => ({ name, rows: ids.map((id) => [id, summaryOf(config, id)] as const) }));
  const column = Math.max(...groups.flatMap(({ rows }) => rows.map(([id]) => id.length)));
  const lines = groups.flatMap(({ name, rows }) => [
    ...(length === 'long' ? [''] : []),
    bold(name),
    ...rows.flatMap(([id, summary]) => entry(id, summary, column, width)),
  ]);
  const about = config.pjson.description ?? '';
  const usage = `Usage: ${config.bin} COMMAND [flags]`;
  const help = `Help: ${config.bin} COMMAND -h, ${config.bin} COMMAND --help`;
  const examples = PROGRAM_EXAMPLES.map((line) => `${config.bin} ${line}`);
  if (length === 'long') {
    const shown = examples.map((line) => `  $ ${line}`);
    return trimmedText([
      ...wrap(about, width),
      ...['', usage, '', bold('Examples'), ...shown],
      ...[...lines, '', help],
    ]);
  }
  const named = Object.entries(COMMAND_GROUPS)
    .filter(([name]) => NAMED_GROUPS.includes(name))
    .map(([name, ids]) => `${bold(name)}: ${ids.join(', ')}`);
  // The short one has a screen of 24 lines for all commands.
  const last = `${named.pop()}    Help: COMMAND -h, --help`;
  return trimmedText([`Examples: ${examples.join('    ')}`, ...lines, ...named, last]);
}

function topicHelp(config: Config, topic: string, { width, bold }: Style): string {
  const rows = config.commandIDs
    .filter((id) => id.startsWith(`${topic}:`))
    .map((id) => [id.replaceAll(':', ' '), summaryOf(config, id)] as const);
  return trimmedText([
    ...wrap(summaryOf(config, topic), width),
    '',
    `Usage: ${config.bin} ${topic} COMMAND [flags]`,
    '',
    bold('Commands'),
    ...entries(rows, width),
  ]);
}

const summaryOf = (config: Config, id: string): string =>
  config.findCommand(id)?.summary ?? config.findTopic(id)?.description ?? '';

/** Contents of the help of a command. Flags are in groups, as `[title, [flag, text]]`. */
export interface HelpContents {
  readonly name: string;
  readonly summary: string;
  readonly usage: string;
  readonly examples: readonly string[];
  readonly args: readonly Entry[];
  readonly flags: readonly (readonly [string, readonly Entry[]])[];
  readonly description?: string | undefined;
}

type Entry = readonly [name: string, text: string];

/** @param bin Name of the program. */
export function helpContents(bin: string, command: Command.Cached): HelpContents {
  const name = command.id.replaceAll(':', ' ');
  const args = Object.values(command.args);
  const words = args.map((arg) => (arg.required ? argName(arg) : `[${argName(arg)}]`));
  return {
    name,
    summary: command.summary ?? '',
    usage: [bin, name, ...words, '[flags]'].join(' '),
    examples: (command.examples ?? []).map((example) =>
      (typeof example === 'string' ? example : example.command)
        .replaceAll('<%= config.bin %>', bin)
        .replaceAll('<%= command.id %>', name),
    ),
    args: args.map((arg) => [argName(arg), arg.description ?? '']),
    flags: flagGroups(shownFlags(command)).map(([title, flags]) => [title, flags.map(flagEntry)]),
    description: command.description,
  };
}

function commandHelp(
  config: Config,
  command: Command.Cached,
  length: HelpLength,
  { width, bold }: Style,
): string {
  const { name, summary, usage, examples, args, flags, description } = helpContents(
    config.bin,
    command,
  );
  if (length === 'short') {
    const all = shownFlags(command);
    return trimmedText([
      ...wrap(summary, width),
      '',
      `Usage: ${usage}`,
      '',
      ...examples.slice(0, 2).map((line) => `  ${line}`),
      '',
      bold('Common flags'),
      ...entries(commonFlags(all, width).map(flagEntry), width),
      '',
      `All ${all.length} flags and more examples: ${config.bin} ${name} --help`,
    ]);
  }
  return trimmedText([
    ...wrap(summary, width),
    '',
    bold('Examples'),
    ...examples.map((line) => `  $ ${line}`),
    '',
    bold('Usage'),
    `  $ ${usage}`,
    ...(args.length === 0 ? [] : ['', bold('Arguments'), ...entries(args, width)]),
    ...flags.flatMap(([title, group]) => ['', bold(title), ...entries(group, width)]),
    ...(description ? ['', bold('Description'), ...descriptionLines(description, width)] : []),
  ]);
}

/** Lines of a description. Indented lines are not wrapped, so that they can be copied. */
const descriptionLines = (description: string, width: number): string[] =>
  description
    .split('\n')
    .flatMap((line) => (line.startsWith(' ') ? [line] : wrap(`  ${line}`, width)));

const argName = ({ name }: { readonly name: string }) => name.toUpperCase();

type Flag = Command.Cached['flags'][string];

const shownFlags = ({ flags }: Command.Cached) =>
  Object.values(flags).filter(({ hidden }) => !hidden);

/** The first of `COMMON_FLAGS` that fit. */
function commonFlags(flags: readonly Flag[], width: number): Flag[] {
  const common = COMMON_FLAGS.flatMap((name) => flags.find((flag) => flag.name === name) ?? []);
  while (entries(common.map(flagEntry), width).length > MOST_COMMON_LINES) common.pop();
  return common;
}

/** Flags without a group first, and those of the output last. */
function flagGroups(flags: readonly Flag[]): [string, Flag[]][] {
  const titles = [...new Set(flags.map(({ helpGroup }) => helpGroup ?? ''))];
  const order = (title: string) => (title === '' ? 0 : title === 'OUTPUT' ? 2 : 1);
  return titles
    .toSorted((a, b) => order(a) - order(b))
    .map((title) => [
      title === '' ? 'Flags' : `${title.charAt(0)}${title.slice(1).toLowerCase()} flags`,
      flags.filter(({ helpGroup = '' }) => helpGroup === title),
    ]);
}

const flagEntry = (flag: Flag): Entry => [flagName(flag), flagText(flag)];

/** Maximum characters of a list of allowed values that is shown instead of the value's name. */
const MOST_INLINE = 20;

/** Maximum allowed values that are shown; the description of a longer list refers to it. */
const MOST_LISTED = 20;

const inlineOptions = ({ type, options = [] }: Flag & { readonly options?: readonly string[] }) => {
  const joined = options.join('|');
  return type === 'option' && joined !== '' && joined.length <= MOST_INLINE ? joined : undefined;
};

function flagName(flag: Flag): string {
  const short = flag.char ? `-${flag.char}, ` : '';
  if (flag.type === 'boolean') return `${short}--${flag.name}`;
  const value = flag.helpValue ?? inlineOptions(flag) ?? 'VALUE';
  return `${short}--${flag.name} ${value}`;
}

function flagText(flag: Flag): string {
  const { description = '' } = flag;
  if (flag.type === 'boolean') return description;
  const options = inlineOptions(flag) ? [] : (flag.options ?? []);
  const preset = flag.default;
  const isShown = preset !== undefined && !description.includes('[default');
  return [
    description,
    ...(options.length > 0 && options.length <= MOST_LISTED ? [`(${options.join(', ')})`] : []),
    ...(isShown ? [`[default: ${String(preset)}]`] : []),
  ].join(' ');
}

function entries(rows: readonly Entry[], width: number): string[] {
  const short = rows.map(([name]) => name.length).filter((length) => length <= 26);
  const column = Math.max(0, ...short);
  return rows.flatMap(([name, description]) => entry(name, description, column, width));
}

/** `  name    description`, wrapped within its column; on the next line if the name is wider than its column. */
function entry(name: string, description: string, column: number, width: number): string[] {
  const indent = ' '.repeat(column + 4);
  const head = `  ${name.padEnd(column)}  `;
  if (name.length <= column) return wrap(head + description, width, indent);
  return [`  ${name}`, ...wrap(indent + description, width, indent)];
}

const trimmedText = (lines: readonly string[]) =>
  `${lines.map((line) => line.trimEnd()).join('\n')}\n`;
