/** The process around a command: streams, signals, and the handling of errors. */
import fs from 'node:fs';
import { isatty } from 'node:tty';
import { fileURLToPath } from 'node:url';
import { Config } from '@oclif/core/config';
import type { LoadOptions } from '@oclif/core/interfaces';
import { run } from '@oclif/core/run';
import { ERROR_CODES, UserError, usageError } from '../base/errors.js';
import { confineReads, READ_ROOT } from '../base/files/confined-reads.js';
import { handleSignals } from '../base/files/early-end.js';
import { systemAdvice } from '../base/files/file-system.js';
import { beginInputs, writtenFiles } from '../base/files/input-registry.js';
import { beginMounts } from '../base/files/mounted.js';
import { toJson } from '../base/text/escape.js';
import { joined } from '../base/text/words.js';
import { escapeText } from '../config/quote.js';
import { spellAsFlags } from './flag-spelling.js';
import type { HelpLength } from './help.js';
import { readCommandLine } from './line/command-line.js';
import { LineMistake, type MeantLine, pasteable, withoutParserText } from './line/line-mistake.js';
import { type Meanings, NeedsMeanings } from './line/typed-line.js';
import { renderOptions, writeInterruption, writeStdout } from './output.js';

/** Must match `additionalHelpFlags` and `additionalVersionFlags` in package.json. */
const HELP_AND_VERSION: ReadonlySet<string> = new Set(['--help', '-h', '--version', '-v', '-V']);

/** Other words for `-h`. */
const HELP_WORDS: ReadonlySet<string> = new Set(['-?', '/?', '-help', '/help']);

/** Lines that the parser adds to each of its messages, which do not help here. */
const PARSER_ADVICE = /^(See more help|Note: |Alternatively, )/;

/** Location of the commands, when it differs from package.json. */
type Load = Exclude<LoadOptions, Config | string | URL | undefined> | object;

/**
 * Runs one command line as the whole process. Sets `process.exitCode`; never throws.
 * @param root Folder of the package with its package.json.
 */
export async function main(argv: readonly string[], root: URL, load: Load = {}): Promise<void> {
  watchStreams();
  leaveLostTerminal();
  endAtSignals();
  await runCommandLine(argv, root, load);
}

/** Runs one command line in a process that continues. */
export async function runCommandLine(
  argv: readonly string[],
  root: URL,
  load: Load = {},
): Promise<void> {
  let words = withFields(argv).map((word) => (HELP_WORDS.has(word) ? '-h' : word));
  if (words[0] === 'help') words = [...words.slice(words[1] === 'help' ? 2 : 1), '--help'];
  beginInputs();
  beginMounts();
  let config: Config | undefined;
  try {
    confineReads(process.env[READ_ROOT]);
    config = await loadConfig(root, load);
    spellAsFlags(config.findCommand(words[0] ?? '')?.id ?? words.slice(0, 2).join(':'));
    if (isHelpAtEnd(words, config)) words = [...words.slice(0, -1), '--help'];
    const read = await readLine(words, config);
    if (read === undefined) return;
    words = [...read];
    await run(words, config);
  } catch (error) {
    await fail(config ? await checkedError(error, words, config) : error, words);
  }
}

/** The words of `--json=NAME,…`; a truth is none of its fields. */
function jsonWords(value: string): string[] {
  if (/^(?:true|yes|on)$/i.test(value)) return ['--json'];
  return /^(?:false|no|off)$/i.test(value) ? [] : ['--json', '--fields', value];
}

/** `--json=NAME,…` as `--json --fields NAME,…`. */
function withFields(words: readonly string[]): string[] {
  const end = words.indexOf('--');
  return words.flatMap((word, at) =>
    word.startsWith('--json=') && (end < 0 || at < end)
      ? jsonWords(word.slice('--json='.length))
      : [word],
  );
}

/** Whether the line is `COMMAND help`. A file of that name is an argument. */
function isHelpAtEnd(words: readonly string[], config: Config): boolean {
  const name = words.slice(0, -1);
  const isName =
    name.length > 0 && (config.findCommand(name.join(':')) ?? config.findTopic(name[0] ?? ''));
  return words.at(-1) === 'help' && Boolean(isName) && !fs.existsSync('help');
}

/**
 * The words that the command runs with; undefined after help. A line that differs from one of ours in spelling only is
 * read as that, which a line on stderr says.
 * @throws UserError for a mistake, with a proposed line that was checked.
 */
async function readLine(words: string[], config: Config): Promise<readonly string[] | undefined> {
  try {
    await refuseUnknownCommand(words, config);
    if (await showHelp(words, config)) return undefined;
    await refuseScript(words);
    return await readWords(words, config);
  } catch (error) {
    if (!(error instanceof LineMistake)) throw error;
    const { withCheckedLine } = await import('./line/proposal.js');
    const { withSentence } = await import('./foreign/unknown-command.js');
    const isOurs = config.findCommand(words[0] ?? '') !== undefined;
    const mistake = isOurs ? await withSentence(error, words) : error;
    const mended = await withCheckedLine(mistake, (line) => checkLine(line, config));
    if (mended.spelled === undefined) throw mended.error;
    if (!isQuiet(words)) {
      process.stderr.write(`reading this as: ${pasteable(mended.spelled)}\n`);
    }
    if (await showHelp([...mended.spelled], config)) return undefined;
    return readWords([...mended.spelled], config);
  }
}

const isQuiet = (words: readonly string[]) =>
  flagsIn(words).some((word) => word === '-q' || word === '--quiet');

/** The error, with a proposed line that was read and checked as a typed one; a bug in doing so is the error then. */
async function checkedError(thrown: unknown, words: readonly string[], config: Config) {
  try {
    return await withLine(asUserError(thrown), words, config);
  } catch (bug) {
    return bug;
  }
}

async function withLine(error: unknown, words: readonly string[], config: Config) {
  if (!(error instanceof UserError)) return error;
  const { withCheckedLine, withWholeLine } = await import('./line/proposal.js');
  const check = (line: MeantLine) => checkLine(line, config);
  if (error instanceof LineMistake) return (await withCheckedLine(error, check)).error;
  return withWholeLine(error, words, check, await import('./line/wrong-input.js'));
}

/** Marks the mistake of a proposed line, which says nothing about the typed one. */
const CONDITION = { isCondition: true };

/** Reads a line as its command does, without running it. @throws UserError for a mistake. */
async function checkLine(
  { words, models = [], gpus = [], hasExample = false, isOfTool = false }: MeantLine,
  config: Config,
) {
  for (const model of models) {
    const { isPresent } = await import('./foreign/unknown-command.js');
    if (!(await isPresent(model))) throw new LineMistake(`${model} is not a model`, [], CONDITION);
  }
  for (const gpu of gpus) {
    const { isHardwareName } = await import('./flags/hardware-flags.js');
    if (!isHardwareName(gpu)) throw new LineMistake(`${gpu} is not a GPU`, [], CONDITION);
  }
  await refuseUnknownCommand(words, config);
  if (helpLength(words, config) !== undefined || HELP_AND_VERSION.has(words[0] ?? '')) return;
  const isCommand = config.findCommand(words[0] ?? '') !== undefined;
  const name = words.slice(0, isCommand ? 1 : 2);
  const rest = (await readWords([...words], config, isOfTool)).slice(name.length);
  const declared = config.findCommand(name.join(':'), { must: true });
  const { isOfHub, refuseOtherWord } = await import('./line/other-tools/other-word.js');
  if (isOfTool) await refuseOtherWord(declared, [...name, ...rest], name.length);
  const reference = isOfHub(declared) ? undefined : rest.find((word) => word.startsWith('hf:'));
  if (reference !== undefined) {
    throw new LineMistake(`${name.join(' ')} reads local files, found ${reference}`, [], CONDITION);
  }
  const command = await declared.load();
  try {
    await new (command as unknown as CheckedClass)(rest, config).checkWords({
      hasExample,
      isOfTool,
    });
  } catch (error) {
    throw asUserError(error);
  }
}

/** The commands of this package. Files in the user's folders cannot add commands or change their style. */
function loadConfig(root: URL, load: Load): Promise<Config> {
  // The only way to keep the command library from reading theme.json in the user's config folder.
  process.env.MINIMIND_DISABLE_THEME = '1';
  return Config.load({
    root: fileURLToPath(root),
    userPlugins: false,
    devPlugins: false,
    ...load,
  });
}

/** Prints help when the words ask for it. */
async function showHelp(words: readonly string[], config: Config): Promise<boolean> {
  const length = helpLength(words, config);
  if (length === undefined) return false;
  const [{ helpText }, { colours }] = await Promise.all([
    import('./help.js'),
    import('../report/render/colours.js'),
  ]);
  const { width, colourLevel } = renderOptions(process.stdout, false);
  const style = { width: Math.min(width, 100), bold: colours(colourLevel).bold };
  await writeStdout(helpText(config, words, length, style));
  return true;
}

/** Length of the help that the words before `--` request: short without words, long for a topic without a command. */
function helpLength(words: readonly string[], config: Config): HelpLength | undefined {
  const own = flagsIn(words);
  const [word = ''] = own;
  if (own.includes('--help')) return 'long';
  if (words.length === 0 || own.includes('-h')) return 'short';
  const isTopic = words.length === 1 && config.findTopic(word) && !config.findCommand(word);
  return isTopic ? 'long' : undefined;
}

/** The words before `--`. Later words are never flags. */
function flagsIn(words: readonly string[]): readonly string[] {
  const end = words.indexOf('--');
  return end < 0 ? words : words.slice(0, end);
}

/** A closed pipe ends quietly; a full disk behind stdout is a regular error. */
function watchStreams(): void {
  for (const stream of [process.stdout, process.stderr]) {
    // The command library adds a handler of its own, which throws.
    stream.removeAllListeners('error');
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // Without a reader of stderr, the command still completes.
      if (error.code === 'EPIPE' && stream === process.stderr) return;
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0);
      isTerminalGoing ||= error.code === 'EIO';
      try {
        const advice = systemAdvice(error.code ?? '', 'folder');
        process.stderr.write(
          `error: cannot write the answer: ${escapeText(error.message)}\n${advice ? `  → ${advice}\n` : ''}`,
        );
      } finally {
        process.exit(ERROR_CODES.system.exitCode);
      }
    });
  }
}

/** Whether the terminal was closed, although the system may still take it for one. */
let isTerminalGoing = false;

/** Closes the streams of a terminal that is gone or going: Node aborts when it cannot restore it as the program ends. */
function leaveLostTerminal(): void {
  const terminals = [0, 1, 2].filter((stream) => isatty(stream));
  process.on('exit', () => {
    const lost = terminals.filter((each) => isTerminalGoing || !isatty(each));
    // A chat reads keys, and a terminal that stays, as after kill -HUP, is restored.
    if (lost.includes(0)) tried(() => process.stdin.isRaw && process.stdin.setRawMode(false));
    for (const stream of lost) tried(() => fs.closeSync(stream));
  });
}

/** Does what fails for a terminal that is gone already. */
function tried(step: () => unknown): void {
  try {
    step();
  } catch {
    // Nothing is left to restore or close.
  }
}

/** Ends at once on a signal. Exit handlers remove incomplete files. */
function endAtSignals(): void {
  const exitCodes = { SIGINT: ERROR_CODES.interrupted.exitCode, SIGTERM: 143, SIGHUP: 129 };
  handleSignals((signal) => {
    if (signal === 'SIGINT') process.once('exit', sayWhatIsLeft);
    isTerminalGoing ||= signal === 'SIGHUP';
    process.exit(exitCodes[signal]);
  });
}

function sayWhatIsLeft(): void {
  const files = writtenFiles();
  writeInterruption(
    files.length === 0 ? 'nothing was written' : `${joined(files)} was written before`,
  );
}

async function refuseUnknownCommand(words: readonly string[], config: Config): Promise<void> {
  const [word, next] = words;
  if (word === undefined || HELP_AND_VERSION.has(word) || config.findCommand(word)) return;
  if (config.findTopic(word)) {
    // A topic without a command shows its help.
    if (next === undefined || HELP_AND_VERSION.has(next)) return;
    if (config.findCommand(`${word}:${next}`)) return;
  }
  const { unknownCommand } = await import('./foreign/unknown-command.js');
  throw await unknownCommand(words.slice(0, config.findTopic(word) ? 2 : 1), words, config);
}

/** Class of a command of this package. */
type CheckedClass = new (
  words: string[],
  config: Config,
) => { checkWords(line: Pick<MeantLine, 'hasExample' | 'isOfTool'>): Promise<void> };

/** @throws LineMistake for a script in place of a model. */
async function refuseScript(words: readonly string[]): Promise<void> {
  if (!words.slice(1).some((word) => /\.(?:py|sh|ipynb)$/i.test(word))) return;
  const { scriptArgument, scriptError } = await import('./foreign/scripts.js');
  const script = scriptArgument(flagsIn(words).slice(1));
  if (script !== undefined) throw scriptError('a model', script);
}

/**
 * The command line with the spellings that its command declares.
 * @param isOfTool Whether another tool has the words.
 */
async function readWords(words: string[], config: Config, isOfTool = false): Promise<string[]> {
  if (HELP_AND_VERSION.has(words[0] ?? '')) return words;
  const name = words.slice(0, config.findCommand(words[0] ?? '') ? 1 : 2);
  const command = config.findCommand(name.join(':'));
  if (command === undefined) return words;
  const read = (meanings?: Meanings) =>
    readCommandLine(words.slice(name.length), command, config.commands, meanings, isOfTool);
  try {
    return [...name, ...read()];
  } catch (error) {
    if (!(error instanceof NeedsMeanings)) throw error;
    return [...name, ...read(await import('./line/other-tools/tool-meanings.js'))];
  }
}

/** Codes of errors of the file system that no earlier check can exclude. */
const OF_SYSTEM: ReadonlySet<unknown> = new Set([
  ...['EACCES', 'EBUSY', 'EDQUOT', 'EFBIG', 'EIO', 'ELOOP', 'EMFILE', 'ENAMETOOLONG', 'ENFILE'],
  ...['ENOSPC', 'ENOTDIR', 'ENXIO', 'EPERM', 'EROFS', 'ESTALE', 'ETXTBSY'],
  // A file can vanish or change its kind after it was checked.
  ...['EEXIST', 'EISDIR', 'ENOENT', 'ENOTEMPTY', 'EXDEV'],
]);

/** Whether an error is of the file system. Reads of an open file have no path. */
const isOfSystem = (
  error: unknown,
): error is Error & { readonly path?: string; readonly code: string } =>
  error instanceof Error && 'code' in error && 'syscall' in error && OF_SYSTEM.has(error.code);

/** Converts errors of the command line's parser and of the file system to user errors; all others are bugs. */
function asUserError(error: unknown): unknown {
  if (error instanceof UserError) return withoutParserText(error);
  if (isOfSystem(error)) {
    const suggestion = systemAdvice(error.code, 'file');
    const place = error.path === undefined ? '' : `${error.path}: `;
    return new UserError('system', `${place}${error.message}`, {
      cause: error,
      ...(suggestion && { suggestion }),
    });
  }
  if (!(error instanceof Error && 'oclif' in error)) return error;
  // The flag's own parser has a better message.
  if (error.cause instanceof UserError) return error.cause;
  const lines = error.message.split('\n').map((line) => line.trim());
  const own = lines.filter((line) => line && !PARSER_ADVICE.test(line));
  return usageError(own.join('; ').replace(/:; /, ': '), 'see --help', error);
}

async function fail(error: unknown, argv: readonly string[]): Promise<void> {
  const known = error instanceof UserError;
  const own = known ? error.exitCode : undefined;
  process.exitCode = own ?? ERROR_CODES[known ? error.code : 'bug'].exitCode;
  const { errorJson } = await import('../report/kit/error-json.js');
  const { errorText } = await import('../report/kit/problems.js');
  const said = known ? error : new UserError('bug', String(error));
  if (wants('json', argv)) process.stdout.write(toJson(errorJson(said)));
  if (wants('github', argv)) {
    const { errorAnnotations } = await import('../report/kit/annotations.js');
    process.stdout.write(errorAnnotations(said, process.env.GITHUB_WORKSPACE));
  }
  if (known) {
    const options = renderOptions(process.stderr, argv.includes('--no-color'));
    process.stderr.write(errorText(error, options));
  } else {
    process.stderr.write(
      `${printableLines(error instanceof Error ? (error.stack ?? '') : String(error))}\n`,
    );
    process.stderr.write('This is a bug in minimind: see "Reporting a bug" in CONTRIBUTING.md.\n');
  }
}

/** Escapes line by line: a stack has several lines, and may quote untrusted text. */
const printableLines = (text: string) =>
  text
    .split('\n')
    .map((line) => escapeText(line))
    .join('\n');

/** Whether the command line asks for a format. Checked here, because the flags may be invalid. */
function wants(format: 'json' | 'github', argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  const flags = (end < 0 ? argv : argv.slice(0, end)).map((word) => word.toLowerCase());
  return flags.some(
    (word, index) =>
      (format === 'json' && word === '--json') ||
      word === `--format=${format}` ||
      (word === '--format' && flags[index + 1] === format),
  );
}
