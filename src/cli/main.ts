/** The process around a command: streams, signals, and how a failure ends it. */
import { fileURLToPath } from 'node:url';
import { Config } from '@oclif/core/config';
import { run } from '@oclif/core/run';
import { LimitError } from '../architecture/limits.js';
import { nearest } from '../config/nearest.js';
import { ERROR_CODES, UserError } from '../errors.js';
import { renderOptions } from './terminal.js';

/**
 * Runs one command line. Sets `process.exitCode`; never throws.
 * @param root Folder of the package, where its package.json stands.
 */
export async function main(argv: readonly string[], root: URL): Promise<void> {
  watchStreams();
  watchSignals();
  const words = argv[0] === 'help' ? [...argv.slice(1), '--help'] : [...argv];
  try {
    const config = await Config.load(fileURLToPath(root));
    refuseUnknownCommand(words, config);
    await run(words, config);
  } catch (error) {
    await fail(asUserError(error), words);
  }
}

/** A closed pipe ends quietly; a full disk behind stdout is an error like any other. */
function watchStreams(): void {
  for (const stream of [process.stdout, process.stderr]) {
    // The command library adds a handler of its own, which throws.
    stream.removeAllListeners('error');
    stream.on('error', (error: NodeJS.ErrnoException) => {
      if (error.code === 'EPIPE') process.exit(process.exitCode ?? 0);
      try {
        process.stderr.write(`error: cannot write the answer: ${error.message}\n`);
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
  const [word] = words;
  if (word === undefined || word.startsWith('-') || config.findCommand(word)) return;
  const close = nearest(word, config.commandIDs);
  throw new UserError('usage', `there is no command ${JSON.stringify(word)}`, {
    suggestion: close ? `did you mean ${close}?` : 'minimind --help lists them',
  });
}

/** The parser's complaints, and a model that is too large, are the user's to mend; the rest are bugs. */
function asUserError(error: unknown): unknown {
  if (error instanceof LimitError) {
    return new UserError('too-large', error.message, { cause: error });
  }
  const isParserError = error instanceof Error && 'parse' in error && 'oclif' in error;
  if (!isParserError) return error;
  const [message = '', ...rest] = error.message.split('\n');
  const details = rest.filter((line) => line.trim() && !line.startsWith('See more help'));
  return new UserError('usage', [message, ...details].join('\n'), {
    suggestion: 'see --help',
    cause: error,
  });
}

async function fail(error: unknown, argv: readonly string[]): Promise<void> {
  const known = error instanceof UserError;
  process.exitCode = ERROR_CODES[known ? error.code : 'bug'].exitCode;
  const { errorJson, errorText } = await import('../report/problems.js');
  if (wantsJson(argv)) {
    const { toJson } = await import('../report/json.js');
    const said = known ? error : new UserError('bug', String(error));
    process.stdout.write(toJson(errorJson(said)));
  }
  if (known) {
    const options = renderOptions(process.stderr, argv.includes('--no-color'));
    process.stderr.write(errorText(error, options));
  } else {
    process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
    process.stderr.write('This is a bug in minimind: see "Reporting a bug" in CONTRIBUTING.md.\n');
  }
}

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
