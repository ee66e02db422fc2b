/** Paths that a client of the server may name: files below one folder. */
import { usageError } from '../../base/errors.js';
import { refuseOutside } from '../../base/files/confined-reads.js';

/** A folder of another machine, which Windows would connect to before it is refused. */
const OF_OTHER_MACHINE = /^[\\/]{2}/;

/** The start of an address, other than that of a page of the hub; a letter alone is a drive. */
const ADDRESS = /^(?!https?:)[a-z][a-z\d+.-]+:\/\//i;

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
  return confined(given, root);
}

/**
 * A text that a command reads as a name or as a path, such as that of a GPU. As a path it must be below the root.
 * @throws UserError
 */
export function confined(given: string, root: string): string {
  if (given.includes('\0')) throw usageError('a name has no NUL character');
  if (OF_OTHER_MACHINE.test(given) || ADDRESS.test(given)) {
    throw usageError(`${given} is outside ${root}`, 'name a file in this folder');
  }
  refuseOutside(given, root);
  return given;
}
