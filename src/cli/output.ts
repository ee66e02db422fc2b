/**
 * Where an answer goes: stdout, or a file that is written whole or not at all.
 */
import { randomBytes } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';

/** Files that must not outlive the process; also removed when it is interrupted. */
const temporaryFiles = new Set<string>();
process.on('exit', () => {
  for (const file of temporaryFiles) fs.rmSync(file, { force: true });
});

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
    replaceWhole(target, text, force);
  } catch (error) {
    throw error instanceof UserError ? error : systemError(file, error, force);
  }
}

/** The file that a link leads to, so that writing through a link keeps the link. */
function resolveTarget(file: string): string {
  const isLink = fs.lstatSync(file, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
  return isLink && fs.existsSync(file) ? fs.realpathSync(file) : file;
}

function replaceWhole(target: string, text: string, force: boolean): void {
  const suffix = randomBytes(6).toString('hex');
  const sibling = path.join(path.dirname(target), `.${path.basename(target)}.${suffix}.tmp`);
  temporaryFiles.add(sibling);
  try {
    const descriptor = fs.openSync(sibling, 'wx');
    try {
      fs.writeFileSync(descriptor, text);
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
    // A link fails when the name was taken meanwhile; a rename would replace what took it.
    if (force) fs.renameSync(sibling, target);
    else fs.linkSync(sibling, target);
  } finally {
    fs.rmSync(sibling, { force: true });
    temporaryFiles.delete(sibling);
  }
}

const alreadyExists = (file: string) =>
  new UserError('usage', `${file} exists already`, {
    suggestion: 'choose another name, or replace it with --force',
  });

function systemError(file: string, error: unknown, force: boolean): UserError {
  const code = (error as NodeJS.ErrnoException).code;
  if (code === 'EEXIST' && !force) return alreadyExists(file);
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
