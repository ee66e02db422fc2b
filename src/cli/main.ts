/** The process around a command: streams, signals, and how a failure ends it. */
import { fileURLToPath } from 'node:url';
import { Config } from '@oclif/core/config';
import type { LoadOptions } from '@oclif/core/interfaces';
import { run } from '@oclif/core/run';
import { nearest } from '../config/nearest.js';
import { escapeText, quote } from '../config/quote.js';
import { ERROR_CODES, UserError } from '../errors.js';
import { beginInputs } from '../files/inputs.js';
import { renderOptions } from './output.js';

/** Kept in step with `additionalHelpFlags` and `additionalVersionFlags` in package.json. */
const HELP_AND_VERSION: ReadonlySet<string> = new Set(['--help', '-h', '--version', '-v']);

/** Lines that the parser adds to each of its messages, and which help nobody here. */
const PARSER_ADVICE = /^(See more help|Note: |Alternatively, )/;

/** How to find the commands, when not as package.json says. */
type Load = Exclude<LoadOptions, Config | string | URL | undefined> | object;

/**
 * The whole process: runs one command line. Sets `process.exitCode`; never throws.
 * @param root Folder of the package, where its package.json stands.
 */
export async function main(argv: readonly string[], root: URL, load: Load = {}): Promise<void> {
  watchStreams();
  watchSignals();
  await runCommandLine(argv, root, load);
}

/** The same in a process that goes on. */
export async function runCommandLine(
  argv: readonly string[],
  root: URL,
  load: Load = {},
): Promise<void> {
  const words = argv[0] === 'help' ? [...argv.slice(1), '--help'] : [...argv];
  beginInputs();
  try {
    const config = await loadConfig(root, load);
    refuseUnknownCommand(words, config);
    await run(words, config);
  } catch (error) {
    await fail(asUserError(error), words);
  }
}

/** The commands of this package. Nothing in the user's folders adds to them or changes how they look. */
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

/** A closed pipe ends quietly; a full disk behind stdout is an error like any other. */
function watchStreams(): void {
  for (const stream of [process.stdout, process.stderr]) {
    // The command library adds a handler of its own, which throws.
    stream.removeAllListeners('error');
    stream.on('error', (error: NodeJS.ErrnoException) => {
      // Who looks away from what a command says still wants what it does.
      if (error.code === 'EPIPE' && stream === process.stderr) return;
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0);
      try {
        process.stderr.write(`error: cannot write the answer: ${escapeText(error.message)}\n`);
      } finally {
        process.exit(ERROR_CODES.system.exitCode);
      }
    });
  }
}

/** Ends at once, through the exit handlers, which remove what is half-written. */
function watchSignals(): void {
  const exitCodes = { SIGINT: ERROR_CODES.interrupted.exitCode, SIGTERM: 143, SIGHUP: 129 };
  for (const [signal, exitCode] of Object.entries(exitCodes)) {
    process.on(signal, () => process.exit(exitCode));
  }
}

function refuseUnknownCommand(words: readonly string[], config: Config): void {
  const [word, next] = words;
  if (word === undefined || HELP_AND_VERSION.has(word) || config.findCommand(word)) return;
  if (config.findTopic(word)) {
    // Alone, a topic shows its help.
    if (next === undefined || HELP_AND_VERSION.has(next)) return;
    if (!config.findCommand(`${word}:${next}`)) throw unknownCommand([word, next], config);
    return;
  }
  if (word.startsWith('-')) {
    throw new UserError('usage', `${quote(word)} stands where a command should`, {
      suggestion: 'name the command first; minimind --help lists them',
    });
  }
  throw unknownCommand([word], config);
}

function unknownCommand(words: readonly string[], config: Config): UserError {
  const written = words.join(' ');
  const topics = config.topics.map(({ name }) => name);
  const known = [...config.commandIDs, ...topics].map((id) => id.replaceAll(':', ' '));
  const close = nearest(written, known);
  return new UserError('usage', `there is no command ${quote(written)}`, {
    suggestion: close ? `did you mean ${close}?` : 'minimind --help lists them',
  });
}

/** What the parser writes around what a flag's own parser says. */
const PARSER_WRAPPING = /^Parsing --\S+ \n\t(.*)\nSee more help with --help$/s;

/** What the command line's parser complains of is the user's to mend; all else is a bug of ours. */
function asUserError(error: unknown): unknown {
  if (error instanceof UserError) {
    const own = PARSER_WRAPPING.exec(error.message)?.[1];
    if (own !== undefined) error.message = own;
    return error;
  }
  if (!(error instanceof Error && 'oclif' in error)) return error;
  // A flag's own parser says it better than the wrapping does.
  if (error.cause instanceof UserError) return error.cause;
  const lines = error.message.split('\n').map((line) => line.trim());
  const own = lines.filter((line) => line && !PARSER_ADVICE.test(line));
  return new UserError('usage', own.join('; ').replace(/:; /, ': '), {
    suggestion: 'see --help',
    cause: error,
  });
}

async function fail(error: unknown, argv: readonly string[]): Promise<void> {
  const known = error instanceof UserError;
  process.exitCode = ERROR_CODES[known ? error.code : 'bug'].exitCode;
  const { errorJson, errorText } = await import('../report/kit/problems.js');
  if (wantsJson(argv)) {
    const { toJson } = await import('../text/escape.js');
    const said = known ? error : new UserError('bug', String(error));
    process.stdout.write(toJson(errorJson(said)));
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

/** Escaped line by line: a stack has line breaks of its own, and may quote what a stranger wrote. */
const printableLines = (text: string) =>
  text
    .split('\n')
    .map((line) => escapeText(line))
    .join('\n');

/** Whether the command line asks for JSON: read here, because it may be what could not be parsed. */
function wantsJson(argv: readonly string[]): boolean {
  const end = argv.indexOf('--');
  const flags = end < 0 ? argv : argv.slice(0, end);
  return flags.some(
    (word, index) =>
      word === '--json' ||
      word === '--format=json' ||
      (word === '--format' && flags[index + 1] === 'json'),
  );
}
