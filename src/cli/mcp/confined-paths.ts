/** Paths that a client of the server may name: files below one folder. */
import fs from 'node:fs';
import path from 'node:path';
import { usageError } from '../../base/errors.js';
import { locateModel } from '../../input/model-input/locate.js';

/** Models of the hub, also as addresses of its pages. */
const OF_HUB = /^(?:hf:|hf\.co\/|https?:\/\/)/i;

/**
 * A model as it is given to a command: a preset, a published model, a model of the hub, or a path below the root.
 * @param root Real path of the folder.
 * @throws UserError for standard input, a word that a command reads as a flag, and a path outside the root.
 */
export function confinedModel(given: string, root: string): string {
  if (given === '-') throw usageError('standard input is not a model here', 'name a file');
  if (given.startsWith('-')) {
    throw usageError(`${given} is not a model`, `write ./${given} for a file of this name`);
  }
  if (OF_HUB.test(given)) return given;
  const file = path.resolve(root, given);
  if (!fs.existsSync(file) && locateModel(given).kind === 'preset') return given;
  refuseOutside(file, root, given);
  return given;
}

/** @throws UserError for a path whose file, or whose nearest folder that exists, is outside the root. */
function refuseOutside(file: string, root: string, given: string): void {
  let existing = file;
  while (!fs.existsSync(existing) && path.dirname(existing) !== existing) {
    existing = path.dirname(existing);
  }
  const below = path.relative(root, fs.realpathSync(existing));
  const isOutside = below === '..' || below.startsWith(`..${path.sep}`) || path.isAbsolute(below);
  if (isOutside || path.relative(root, file).startsWith('..')) {
    throw usageError(`${given} is outside ${root}`, 'name a file in this folder');
  }
}
