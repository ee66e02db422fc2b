/** Rows of Parquet files as JSON lines, from a process that can be stopped. */
import { type ChildProcess, fork } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../../../base/errors.js';
import { endsWithProgram } from '../../../base/files/early-end.js';
import { builtThread } from '../../../base/files/file-system.js';
import { formatBytes } from '../../../base/text/units.js';
import { nameOfSource } from './packing.js';
import type { ParquetMessage } from './parquet-process.js';

const JSON_LINES =
  'write it as JSON lines: pandas.read_parquet(…).to_json(…, orient="records", lines=True, force_ascii=False)';

/** Bytes of V8's heap for a file: a row group is in memory as a whole, as values. */
const heapBytes = (fileSize: number) => Math.min(256e6 + 24 * fileSize, 8e9);

/** Milliseconds without output after which the process is stopped: a row group takes at least 1 MB per second. */
const longestSilence = (fileSize: number) => 10_000 + fileSize / 1000;

/**
 * Rows of a Parquet file as JSON lines, in pieces.
 * @param onBytes Called with the bytes of each row group.
 * @param key Column of the text, if the user named one.
 * @throws UserError for standard input, a damaged file, and a row group that takes too much memory or time.
 */
export async function* parquetLines(
  file: string,
  onBytes: (more: number) => void,
  key: string | undefined,
): AsyncGenerator<Buffer> {
  const status = file === '-' ? undefined : fs.statSync(file);
  if (!status?.isFile()) {
    throw new UserError(
      'refused-file',
      `${nameOfSource(file)}: Parquet is read from its end, so expected a file, found a pipe`,
      { suggestion: 'save it as a file first' },
    );
  }
  const child = started(file, key, status.size);
  const ended = endsWithProgram(child);
  try {
    yield* outputOf(child, file, status.size, onBytes);
  } finally {
    child.kill('SIGKILL');
    ended();
  }
}

function started(file: string, key: string | undefined, size: number): ChildProcess {
  // Windows starts no program without SystemRoot.
  const { SystemRoot } = process.env;
  return fork(
    builtThread('dist/language/data/files/parquet-process.js'),
    [path.resolve(file), ...(key === undefined ? [] : [key])],
    {
      env: SystemRoot === undefined ? {} : { SystemRoot },
      execArgv: [`--max-old-space-size=${Math.ceil(heapBytes(size) / 2 ** 20)}`],
      stdio: ['ignore', 'pipe', 'ignore', 'ipc'],
    },
  );
}

async function* outputOf(
  child: ChildProcess,
  file: string,
  size: number,
  onBytes: (more: number) => void,
): AsyncGenerator<Buffer> {
  let problem: string | undefined;
  let isSilent = false;
  child.on('message', (message: ParquetMessage) => {
    if ('problem' in message) problem = message.problem;
    else onBytes(message.bytes);
  });
  const exit = new Promise<number | null>((resolve, reject) => {
    child.once('close', resolve).once('error', reject);
  });
  exit.catch(() => {});
  const pieces: AsyncIterator<Buffer> = (child.stdout as NodeJS.ReadableStream)[
    Symbol.asyncIterator
  ]() as AsyncIterator<Buffer>;
  for (;;) {
    const timer = setTimeout(() => {
      isSilent = true;
      child.kill('SIGKILL');
    }, longestSilence(size));
    const next = await pieces.next().finally(() => clearTimeout(timer));
    if (next.done) break;
    yield next.value;
  }
  const code = await exit;
  if (isSilent) throw refused(file, 'takes too long to read and was stopped');
  if (problem !== undefined) throw refused(file, problem);
  if (code !== 0) {
    throw refused(
      file,
      `takes more than ${formatBytes(heapBytes(size))} of memory to read and was stopped`,
    );
  }
}

const refused = (file: string, what: string) =>
  new UserError('refused-file', `${file}: ${what}`, { suggestion: JSON_LINES });
