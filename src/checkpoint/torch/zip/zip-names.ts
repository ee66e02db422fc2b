/** The names of entries, as one can trust them. */
import { isUtf8 } from 'node:buffer';
import { refusal } from '../../refusal.js';
import { quoted } from '../../wording.js';
import { SAVE_AGAIN } from '../advice.js';

/** An entry as the place of a problem. */
export const entryPlace = (name: string) => `entry ${quoted(name)}`;

/**
 * The name of an entry. It is read as UTF-8 whether or not the entry's flags say so: PyTorch compares
 * the bytes of names and ignores the flag.
 * @param position Of the entry in the file.
 */
export function readName(path: string, bytes: Buffer, position: number): string {
  const name = bytes.toString('utf8');
  if (!isUtf8(bytes)) {
    throw refusal(path, {
      rule: 'zip-name-utf8',
      place: `byte ${position}`,
      message: `the entry here has the name ${quoted(name)}, which is no valid UTF-8`,
      suggestion: SAVE_AGAIN,
    });
  }
  if (!isPlainPath(name)) {
    throw refusal(path, {
      rule: 'zip-name',
      place: entryPlace(name),
      message:
        'has no plain relative path for a name: control characters, backslashes, drives and empty, . or .. segments are refused',
      suggestion: 'be careful with this file: PyTorch does not write such names',
    });
  }
  return name;
}

/** Whether a name means the same file in one folder everywhere. */
export function isPlainPath(name: string): boolean {
  return (
    !/[\p{Cc}\\]|^.:/u.test(name) &&
    name.split('/').every((segment) => segment !== '' && segment !== '.' && segment !== '..')
  );
}
