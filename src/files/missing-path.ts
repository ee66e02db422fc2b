/** Advice on a path with nothing at it. */
import fs from 'node:fs';
import path from 'node:path';

/** Reason for which nothing is at a path, with what to write; undefined where none is plain. */
export function missingReason(file: string): string | undefined {
  if (file === '') return 'write the path of a file';
  if (file === '-') return 'write the path of a file: standard input cannot be read here';
  if (/^~(?:[/\\]|$)/.test(file)) {
    return `write $HOME${file.slice(1)}: the shell replaces ~ only at the start of a word`;
  }
  const target = linkTarget(file);
  if (target !== undefined) return `it is a link to ${target}, where nothing is`;
  const above = firstAbove(file);
  if (statusOf(above)?.isFile()) return `${above} is a file`;
  return undefined;
}

/** `missingReason`, or the files of the same ending beside it. */
export function missingAdvice(file: string): string | undefined {
  const reason = missingReason(file);
  if (reason !== undefined) return reason;
  const folder = path.dirname(file);
  const names = namesLike(file, folder);
  if (names.length === 0) return statusOf(folder) ? undefined : `there is no folder ${folder}`;
  const shown = names.slice(0, MOST_SHOWN).map((name) => path.join(folder, name));
  return `there is ${shown.join(', ')}${names.length > shown.length ? ', …' : ''}`;
}

const MOST_SHOWN = 3;

function linkTarget(file: string): string | undefined {
  try {
    return fs.readlinkSync(file);
  } catch {
    return undefined;
  }
}

/** The nearest part of a path above its end at which something is. */
function firstAbove(file: string): string {
  let above = file.replace(/[/\\]+$/, '');
  if (above === file) above = path.dirname(file);
  while (!statusOf(above) && path.dirname(above) !== above) above = path.dirname(above);
  return above;
}

const statusOf = (file: string): fs.Stats | undefined => {
  try {
    return fs.statSync(file);
  } catch {
    return undefined;
  }
};

function namesLike(file: string, folder: string): string[] {
  const ending = path.extname(file);
  if (ending === '') return [];
  try {
    return fs
      .readdirSync(folder)
      .filter((name) => path.extname(name) === ending && name !== path.basename(file))
      .sort();
  } catch {
    return [];
  }
}

/** Whether a path is a folder; an error of the file system is for whoever reads it. */
export const isFolder = (file: string): boolean => statusOf(file)?.isDirectory() ?? false;
