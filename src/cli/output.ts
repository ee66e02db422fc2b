/**
 * Where an answer goes: stdout, or a file that is written whole or not at all.
 */
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';

/** Files that must not outlive the process; also removed when it is interrupted. */
const temporaryFiles = new Set<string>();
process.on('exit', () => {
  for (const file of temporaryFiles) removeQuietly(file);
});

function removeQuietly(file: string): void {
  try {
    fs.rmSync(file, { force: true });
  } catch {
    // What went wrong before is what the user has to know.
  }
}

/** Writes to stdout and waits until it is taken. Failures reach the stream's own handler (`main.ts`). */
export async function writeStdout(text: string): Promise<void> {
  await new Promise<void>((resolve) => {
    process.stdout.write(text, (error) => {
      if (!error) resolve();
    });
  });
}

/**
 * Writes `text` to `file` through a synced sibling that takes its name at the end, so that no reader
 * ever sees half of it. A device or pipe (`/dev/null`) is written to as it is.
 * @throws UserError when the file exists and `force` is off, or the system refuses.
 */
export function writeFileWhole(file: string, text: string, force: boolean): void {
  if (file === '') throw new UserError('usage', '-o: the name of the file is empty');
  try {
    const target = resolveTarget(file);
    const existing = fs.statSync(target, { throwIfNoEntry: false });
    if (existing?.isDirectory()) {
      throw new UserError('usage', `${file} is a folder`, {
        suggestion: 'name a file in it',
      });
    }
    if (existing && !existing.isFile()) {
      fs.writeFileSync(target, text);
      return;
    }
    if (existing && !force) throw alreadyExists(file);
    replaceWhole(target, text, force, existing?.mode);
  } catch (error) {
    throw error instanceof UserError ? error : systemError(file, error);
  }
}

/** The file that a link leads to, so that writing through a link keeps the link. */
function resolveTarget(file: string): string {
  const isLink = fs.lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink && fs.existsSync(file) ? fs.realpathSync(file) : file;
}

/** @param mode Permissions of the file that is replaced, to keep. */
function replaceWhole(
  target: string,
  text: string,
  force: boolean,
  mode: number | undefined,
): void {
  const name = `.minimind-${process.pid}-${Date.now().toString(36)}.tmp`;
  const sibling = path.join(path.dirname(target), name);
  temporaryFiles.add(sibling);
  try {
    const descriptor = fs.openSync(sibling, 'wx');
    try {
      fs.writeFileSync(descriptor, text);
      if (mode !== undefined) fs.fchmodSync(descriptor, mode & 0o777);
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
    if (force) fs.renameSync(sibling, target);
    else nameExclusively(sibling, target);
  } finally {
    removeQuietly(sibling);
    temporaryFiles.delete(sibling);
  }
}

/** A link fails when the name was taken meanwhile; a rename would replace what took it. */
function nameExclusively(sibling: string, target: string): void {
  try {
    fs.linkSync(sibling, target);
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code ?? '';
    if (!NO_LINKS.has(code)) throw error;
    fs.copyFileSync(sibling, target, fs.constants.COPYFILE_EXCL);
  }
}

/** What file systems without hard links (FAT, some network shares) answer. */
const NO_LINKS: ReadonlySet<string> = new Set([
  'EPERM',
  'ENOTSUP',
  'EOPNOTSUPP',
  'ENOSYS',
  'EMLINK',
]);

const alreadyExists = (file: string) =>
  new UserError('usage', `${file} exists already`, {
    suggestion: 'choose another name, or replace it with --force',
  });

function systemError(file: string, error: unknown): UserError {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'EEXIST') return alreadyExists(file);
  if (code === 'ENOENT' || code === 'ENOTDIR') {
    return new UserError('usage', `cannot write ${file}: there is no such folder`, {
      suggestion: 'make the folder first, or choose another',
      cause: error,
    });
  }
  return new UserError('system', `cannot write ${file}: ${(error as Error).message}`, {
    cause: error,
  });
}
