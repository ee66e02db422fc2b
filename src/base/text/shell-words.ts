/** Words of a command line, quoted for the shell that reads them. */
import { printable } from './escape.js';

/** Whether words are for the shell of Windows. A browser has no `process`. */
const isWindows = globalThis.process?.platform === 'win32';

/** Characters that the shell of this system leaves as they are. */
const UNQUOTED = isWindows ? /^[\w@%+=:,./\\-]+$/ : /^[\w@%+=:,./-]+$/;

/** `text` as one word of a command line, quoted where a shell would read more or less than it. */
export function shellWord(text: string): string {
  if (UNQUOTED.test(text)) return text;
  if (isWindows) return `"${text}"`;
  return scriptWord(text);
}

/** A word of a script, whose language does not depend on this system. One that `isAnsi` is for bash, zsh and ksh. */
export const scriptWord = (text: string): string =>
  isAnsi(text) ? ansiQuoted(text) : posixWord(text);

/** Whether a word has characters that only the quotes `$'…'` show. */
export const isAnsi = (text: string): boolean => printable(text) !== text;

/** A word of any POSIX shell, with all its characters as they are. */
export const posixWord = (text: string): string =>
  UNQUOTED.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;

/** A word with control or invisible characters, as bash, zsh and ksh read it: `$'a\\x1bb'`. */
const ansiQuoted = (text: string): string =>
  `$'${Array.from(text, (character) => {
    if (character === "'" || character === '\\') return `\\${character}`;
    if (printable(character) === character) return character;
    const hex = (character.codePointAt(0) ?? 0).toString(16);
    if (hex.length <= 2) return `\\x${hex.padStart(2, '0')}`;
    return hex.length <= 4 ? `\\u${hex.padStart(4, '0')}` : `\\U${hex.padStart(8, '0')}`;
  }).join('')}'`;
