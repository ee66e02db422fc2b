/**
 * Reads confined to one folder. The processes that answer a client of `minimind mcp` have them: neither a path nor a link,
 * at any depth, may lead out of the folder. Models of the hub are read from their caches by functions of their own, which
 * check the links there.
 */
import fs from 'node:fs';
import path from 'node:path';
import { UserError } from '../errors.js';
import { packagePath } from './file-system.js';
import { allowedFolders, isAllowed, isInside } from './linked-files.js';

/** Variable of the environment with the folder. */
export const READ_ROOT = 'MINIMIND_READ_ROOT';

/** Undefined: reads are not confined. */
let root: string | undefined;

/** Confines all reads of this process to a folder; undefined ends that. */
export function confineReads(folder: string | undefined): void {
  root = folder === undefined || folder === '' ? undefined : fs.realpathSync.native(folder);
}

/** @throws UserError for a path that leads out of the folder to which reads are confined. */
export function refuseUnconfined(file: string): void {
  if (root === undefined || isPreset(file)) return;
  refuseOutside(file, root, process.cwd());
}

/** Whether a path is that of a preset of the package, which has no links. */
function isPreset(file: string): boolean {
  const presets = packagePath('configs');
  return presets !== undefined && path.isAbsolute(file) && isInside(presets, file);
}

/**
 * @param folder Real path of a folder. One of the hub's cache has its files in the folder of its blobs.
 * @param base Folder of a relative path.
 * @throws UserError for a path that leads out of the folder.
 */
export function refuseOutside(file: string, folder: string, base = folder): void {
  const target = existingPart(absolute(file, base));
  const isInside = target === folder || isAllowed(target, allowedFolders(folder));
  if (target !== '' && isInside) return;
  throw new UserError('refused-file', `${file} is outside ${folder}`, {
    suggestion: 'name a file in this folder; a link may not lead out of it',
  });
}

/** The path without a base. Only Windows shortens `..` before it follows links. */
function absolute(file: string, base: string): string {
  if (process.platform === 'win32') return path.resolve(base, file);
  return path.isAbsolute(file) ? file : `${base}${path.sep}${file}`;
}

/**
 * Target of a path, or of its nearest folder that exists. The system resolves it, because `..` after a link leads elsewhere
 * than the text says. Empty if it cannot be known: without permission, with too many links, or for `..` after a missing folder.
 */
function existingPart(file: string): string {
  for (let place = file; ; place = path.dirname(place)) {
    try {
      return fs.realpathSync.native(place);
    } catch (error) {
      if (!MISSING.has(String((error as NodeJS.ErrnoException).code))) return '';
      if (path.dirname(place) === place) return place;
      if (path.basename(place) === '..') return '';
    }
  }
}

const MISSING: ReadonlySet<string> = new Set(['ENOENT', 'ENOTDIR', 'ENAMETOOLONG']);
