/** Texts of commands and configs: shell, YAML, TOML and JSON, with comments where the language has them. */
import { printable } from '../../base/text/escape.js';
import { formatJson } from '../../base/text/json.js';
import { isAnsi, scriptWord } from '../../base/text/shell-words.js';
import { isRecord } from '../../base/values.js';
import { documentText } from '../../config/document.js';

const comments = (lines: readonly string[]): string =>
  lines.map((line) => `# ${printable(line.replaceAll(/\s+/g, ' '))}\n`).join('');

/** A flag of another program by its name. */
export const asFlag = (name: string): string => DASHES + name;

const DASHES = '--';

/** A command with a flag on each line. @param flags Words of each line. */
export function shellText(
  notes: readonly string[],
  program: readonly string[],
  flags: readonly (readonly string[])[],
): string {
  const lines = [program, ...flags].map((words) => words.map(scriptWord).join(' '));
  // Only newer shells of POSIX have the quotes of these.
  const shell = [program, ...flags].flat().some(isAnsi) ? 'bash' : 'sh';
  return `#!/bin/${shell}\n${comments(notes)}${lines.join(' \\\n  ')}\n`;
}

export const yamlText = (notes: readonly string[], value: Record<string, unknown>): string =>
  comments(notes) + documentText(value);

/** JSON has no comments: its notes are beside the text. */
export const jsonText = (value: Record<string, unknown>): string => `${formatJson(value, 2)}\n`;

/** TOML of one level of tables. */
export function tomlText(notes: readonly string[], value: Record<string, unknown>): string {
  const tables = Object.entries(value).map(([name, table]) => {
    const rows = isRecord(table) ? Object.entries(table) : [];
    return `[${tomlKey(name)}]\n${rows.map(([key, each]) => `${tomlKey(key)} = ${tomlValue(each)}\n`).join('')}`;
  });
  return `${comments(notes)}${tables.join('\n')}`;
}

const tomlKey = (key: string): string => (/^[\w-]+$/.test(key) ? key : tomlString(key));

/** A basic string: the escapes of JSON are among those of TOML, but for U+007F. */
const tomlString = (text: string): string => JSON.stringify(text).replaceAll('\u007f', '\\u007f');

function tomlValue(value: unknown): string {
  if (typeof value === 'number') {
    // TOML wants a digit after the point, and reads 1e-8 as a float.
    return Number.isFinite(value) ? String(value) : value > 0 ? 'inf' : '-inf';
  }
  if (typeof value === 'boolean') return String(value);
  return Array.isArray(value) ? `[${value.map(tomlValue).join(', ')}]` : tomlString(String(value));
}
