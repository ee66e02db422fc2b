/** Settings written in Python, as a dictionary, the arguments of a call or assignments, as YAML with the same lines. */

/** The first line of Python that has settings: `config = {`, `AdamW(`, `num_layers = 8`. */
const BEGINNING = /^\s*(?:return\s+)?[A-Za-z_][\w.]*\s*(?:=(?!=)|\()/;

/** `name = value`, `Name(…)` or `return Name(…)` at the beginning of a statement. */
const STATEMENT = /^(?:return\s+)?(?:([A-Za-z_]\w*)\s*=(?!=)\s*)?(?:([A-Za-z_][\w.]*)\s*(?=\())?/;

const OPEN = '([{';
const CLOSE = ')]}';

export interface PythonSettings {
  /** YAML with the lines of the original. */
  readonly yaml: string;
  /** Lines that are not settings, from 1. */
  readonly unread: readonly number[];
}

/** Settings in a text of Python; undefined for another text, or one without settings. */
export function pythonSettings(text: string): PythonSettings | undefined {
  const first = text.split('\n').find((line) => line.trim() !== '' && !/^\s*#/.test(line));
  if (first === undefined || !BEGINNING.test(first)) return undefined;
  const statements = statementsIn(withoutComments(text));
  const settings = statements.map((each) => ({ ...each, yaml: parsedSetting(each.text) }));
  const mappings = settings.filter(({ yaml }) => yaml?.isMapping);
  const kept = mappings.length > 0 ? mappings : settings.filter(({ yaml }) => yaml !== undefined);
  if (kept.length === 0) return undefined;
  const lines = text.split('\n').map(() => '');
  for (const { line, yaml } of kept) {
    const isOnly = mappings.length === 1;
    const whole = isOnly ? yaml?.value : `${yaml?.name}: ${yaml?.value}`;
    for (const [index, part] of (whole ?? '').split('\n').entries()) lines[line + index] = part;
  }
  const unread = settings.filter((each) => !kept.includes(each)).map(({ line }) => line + 1);
  return { yaml: lines.join('\n'), unread };
}

/** Positions of a text outside of quoted texts, with the depth of brackets. */
function* outsideQuotes(text: string): Generator<{ at: number; char: string; depth: number }> {
  let quote = '';
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const char = text[at] ?? '';
    if (quote !== '') {
      if (char === '\\') at++;
      else if (char === quote || char === '\n') quote = '';
      continue;
    }
    if (CLOSE.includes(char)) depth--;
    yield { at, char, depth };
    if (OPEN.includes(char)) depth++;
    if (char === '"' || char === "'") quote = char;
  }
}

function withoutComments(text: string): string {
  let kept = '';
  let from = 0;
  for (const { at, char } of outsideQuotes(text)) {
    if (char !== '#' || at < from) continue;
    const end = text.indexOf('\n', at);
    kept += text.slice(from, at);
    from = end < 0 ? text.length : end;
  }
  return kept + text.slice(from);
}

interface Statement {
  /** From 0. */
  readonly line: number;
  readonly text: string;
}

/** Statements, each from its line to the end of its brackets. */
function statementsIn(text: string): Statement[] {
  const ends: number[] = [];
  for (const { at, char, depth } of outsideQuotes(text)) {
    if (char === '\n' && depth <= 0) ends.push(at);
  }
  let from = 0;
  let line = 0;
  const statements: Statement[] = [];
  for (const end of [...ends, text.length]) {
    const own = text.slice(from, end);
    if (own.trim() !== '') statements.push({ line, text: own.trim() });
    line += own.split('\n').length;
    from = end + 1;
  }
  return statements;
}

interface Setting {
  readonly name: string;
  readonly value: string;
  readonly isMapping: boolean;
}

function parsedSetting(statement: string): Setting | undefined {
  const [head = '', name, call] = STATEMENT.exec(statement) ?? [];
  const rest = statement.slice(head.length).trim();
  const inner = /^[({]([\s\S]*)[)}]$/.exec(rest)?.[1];
  if (call !== undefined && inner !== undefined) {
    return { name: name ?? call, value: `{${argumentsIn(inner)}}`, isMapping: true };
  }
  if (name === undefined || rest === '') return undefined;
  const isMapping = rest.startsWith('{');
  return { name, value: isMapping ? converted(rest) : yamlValue(rest), isMapping };
}

/** Parts between the commas outside of brackets, with their line breaks. */
function topLevelItems(text: string): string[] {
  const parts: string[] = [];
  let from = 0;
  for (const { at, char, depth } of outsideQuotes(text)) {
    if (char !== ',' || depth !== 0) continue;
    parts.push(text.slice(from, at));
    from = at + 1;
  }
  return [...parts, text.slice(from)];
}

/**
 * Named arguments of a call as pairs of a mapping; the others describe no setting, and only their line breaks are kept.
 */
function argumentsIn(text: string): string {
  let breaks = '';
  const pairs: string[] = [];
  for (const part of topLevelItems(text)) {
    const [whole, space, name, value = ''] =
      /^(\s*)([A-Za-z_]\w*)\s*=(?!=)([\s\S]*)$/.exec(part) ?? [];
    if (whole === undefined) breaks += part.replaceAll(/[^\n]/g, '');
    else {
      pairs.push(`${breaks}${space}${name}: ${yamlValue(value)}`);
      breaks = '';
    }
  }
  return `${pairs.join(',')}${breaks}`;
}

/** A value as YAML. Anything but a plain value is a text. */
function yamlValue(text: string): string {
  const value = text.trim();
  const [, base, exponent] = /^(\d+)\s*\*\*\s*(\d+)$/.exec(value) ?? [];
  const end = text.slice(text.trimEnd().length);
  if (base !== undefined) return `${Number(base) ** Number(exponent)}${end}`;
  if (/^\d[\d_]*$/.test(value)) return `${value.replaceAll('_', '')}${end}`;
  const isPlain = /^(?:[-+.\w]+|'[^'\\\n]*'|"[^"\\\n]*")$/.test(value);
  const isGroup = /^[([{]/.test(value) && !/\w\s*\(/.test(value);
  return isPlain || isGroup ? `${converted(value)}${end}` : `${JSON.stringify(value)}${end}`;
}

/** Tuples as lists, and None as null. */
function converted(text: string): string {
  const chars = text.split('');
  for (const { at, char } of outsideQuotes(text)) {
    if (char === '(') chars[at] = '[';
    if (char === ')') chars[at] = ']';
    if (text.startsWith('None', at) && !/\w/.test(`${text[at - 1] ?? ''}${text[at + 4] ?? ''}`)) {
      chars.splice(at, 4, ...'null');
    }
  }
  return chars
    .join('')
    .replaceAll(/\b(\d+)\*\*(\d+)\b/g, (_, base, exponent) =>
      String(Number(base) ** Number(exponent)),
    );
}
