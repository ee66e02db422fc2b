/** Values of the variables of a shell script, and the words of its commands with them. Nothing is run. */
import { type RawWord, ScriptLimit, type Statement, statementsOf } from './shell-words.js';

/** A word with its variables replaced. */
export interface ShellWord {
  readonly text: string;
  /** UTF-16 offset of the text that it comes from. */
  readonly offset: number;
}

/** A script with resolved commands. */
export interface ShellScript {
  /** Words of each command. */
  readonly commands: readonly (readonly ShellWord[])[];
  /** Words in assigned values, in order. */
  readonly assigned: readonly ShellWord[];
  /** Words that only a shell can resolve, as written: `$1`, `$(nproc)`. */
  readonly unresolved: readonly ShellWord[];
  /** Conditions that were taken as true. */
  readonly assumed: readonly ShellWord[];
}

/** Most characters of all values: variables that double themselves would have no end. */
const MOST_CHARACTERS = 2_000_000;

/** Resolves a script. @throws ScriptLimit for a script beyond the limits. */
export function resolveScript(text: string): ShellScript {
  return new Evaluation().run(statementsOf(text));
}

class Evaluation {
  readonly #variables = new Map<string, readonly ShellWord[]>();
  readonly #commands: ShellWord[][] = [];
  readonly #assigned: ShellWord[] = [];
  readonly #unresolved: ShellWord[] = [];
  readonly #assumed: ShellWord[] = [];
  /** For each open `if`: whether its current branch runs, and whether one has run. */
  readonly #branches: { runs: boolean; hasRun: boolean }[] = [];
  #characters = 0;

  run(statements: readonly Statement[]): ShellScript {
    for (const statement of statements) {
      if (statement.kind === 'command' && this.#isControl(statement.words)) continue;
      if (this.#branches.some(({ runs }) => !runs)) continue;
      const words = statement.words.flatMap((word) => this.#expanded(word, statement.kind));
      if (statement.kind === 'command') this.#commands.push(words);
      else {
        const before = statement.isAppended ? (this.#variables.get(statement.name) ?? []) : [];
        const value = statement.isArray ? [...before, ...words] : joined([...before, ...words]);
        this.#charge(value);
        this.#variables.set(statement.name, value);
        this.#assigned.push(...words);
      }
    }
    return {
      commands: this.#commands,
      assigned: this.#assigned,
      unresolved: this.#unresolved,
      assumed: this.#assumed,
    };
  }

  #charge(words: readonly ShellWord[]): void {
    for (const { text } of words) this.#characters += text.length + 1;
    if (this.#characters > MOST_CHARACTERS) throw new ScriptLimit();
  }

  /** Follows `if`, `elif`, `else` and `fi`; a condition that cannot be known is taken as true. */
  #isControl(words: readonly RawWord[]): boolean {
    const first = literal(words[0]);
    switch (first) {
      case 'if': {
        const runs = this.#condition(words.slice(1));
        this.#branches.push({ runs, hasRun: runs });
        return true;
      }
      case 'elif':
      case 'else': {
        const branch = this.#branches.at(-1);
        if (branch === undefined) return true;
        branch.runs = !branch.hasRun && (first === 'else' || this.#condition(words.slice(1)));
        branch.hasRun ||= branch.runs;
        return true;
      }
      case 'fi':
        this.#branches.pop();
        return true;
      case 'then':
      case 'do':
      case 'done':
        // What follows on the line is a statement of its own.
        return words.length === 1;
      default:
        return false;
    }
  }

  #condition(words: readonly RawWord[]): boolean {
    const outside = this.#branches.every(({ runs }) => runs);
    if (!outside) return false;
    const before = this.#unresolved.length;
    const texts = words.map((word) => joined(this.#expanded(word, 'assignment'))[0]?.text ?? '');
    const isKnown = this.#unresolved.length === before;
    this.#unresolved.length = before;
    const inner = texts.filter((each) => !/^\[\[?$|^\]\]?$/.test(each));
    const [left, operator, right] = inner;
    if (isKnown && inner.length === 3) {
      if (operator === '==' || operator === '=') return left === right;
      if (operator === '!=') return left !== right;
      const numbers = [Number(left), Number(right)] as const;
      if (operator === '-eq') return numbers[0] === numbers[1];
      if (operator === '-ne') return numbers[0] !== numbers[1];
      if (operator === '-gt') return numbers[0] > numbers[1];
      if (operator === '-lt') return numbers[0] < numbers[1];
    }
    if (isKnown && left === '-z' && inner.length <= 2) return (operator ?? '') === '';
    if (isKnown && left === '-n' && inner.length <= 2) return (operator ?? '') !== '';
    // Checks that a program is there only stop the script.
    if (texts.some((each) => /^-[defx]$/.test(each))) return false;
    const offset = words[0]?.offset ?? 0;
    this.#assumed.push({ text: texts.join(' ').trim(), offset });
    return true;
  }

  /** Words that a word becomes: an unquoted value is divided at blanks. */
  #expanded(word: RawWord, kind: Statement['kind']): ShellWord[] {
    const { pieces, offset } = word;
    const [only] = pieces.filter((piece) => piece.kind !== 'text' || piece.text !== '');
    const elements =
      pieces.filter((piece) => piece.kind !== 'text' || piece.text !== '').length === 1 &&
      only?.kind === 'variable' &&
      only.isArray
        ? this.#variables.get(only.name)
        : undefined;
    if (elements !== undefined) {
      return only?.kind === 'variable' && only.isQuoted
        ? [...elements]
        : elements.flatMap(dividedAtBlanks);
    }
    const done: ShellWord[] = [];
    let current: string | undefined;
    let from = offset;
    for (const piece of pieces) {
      const value = this.#value(piece, offset);
      const isDivided = piece.kind !== 'text' && !piece.isQuoted && kind === 'command';
      if (!isDivided) {
        current = (current ?? '') + value.text;
        if (piece.kind === 'variable' && value.offset !== undefined && pieces.length === 1) {
          from = value.offset;
        }
        continue;
      }
      const parts = dividedAtBlanks({ text: value.text, offset: value.offset ?? offset });
      const isFirstJoined = !/^\s/.test(value.text);
      parts.forEach((part, index) => {
        if (index === 0 && isFirstJoined) {
          if (current === undefined) from = part.offset;
          current = (current ?? '') + part.text;
        } else {
          if (current !== undefined) done.push({ text: current, offset: from });
          current = part.text;
          from = part.offset;
        }
      });
    }
    if (current !== undefined) done.push({ text: current, offset: from });
    this.#charge(done);
    return done;
  }

  #value(
    piece: RawWord['pieces'][number],
    offset: number,
  ): { readonly text: string; readonly offset?: number } {
    switch (piece.kind) {
      case 'text':
        return { text: piece.text };
      case 'arithmetic': {
        const value = arithmetic(piece.text, (name) => this.#variables.get(name)?.[0]?.text);
        if (value !== undefined) return { text: String(value) };
        return { text: this.#unknown(`$((${piece.text}))`, offset) };
      }
      case 'command':
        return { text: this.#unknown(piece.text, offset) };
      case 'variable': {
        const value = this.#variables.get(piece.name);
        if (value !== undefined) {
          const [first] = value;
          return {
            text: value.map(({ text }) => text).join(' '),
            ...(first && { offset: first.offset }),
          };
        }
        if (piece.fallback !== undefined) {
          return { text: piece.fallback.map((each) => this.#value(each, offset).text).join('') };
        }
        return { text: this.#unknown(`$${piece.name}`, offset) };
      }
    }
  }

  /** Keeps what is not known as it is written, so that messages can name it. */
  #unknown(text: string, offset: number): string {
    this.#unresolved.push({ text, offset });
    return text;
  }
}

const literal = (word: RawWord | undefined): string | undefined =>
  word?.pieces.length === 1 && word.pieces[0]?.kind === 'text' ? word.pieces[0].text : undefined;

const joined = (words: readonly ShellWord[]): ShellWord[] => {
  const [first] = words;
  return first === undefined
    ? []
    : [{ text: words.map(({ text }) => text).join(' '), offset: first.offset }];
};

/** The words of a value, each with its place in it. */
export const dividedAtBlanks = ({ text, offset }: ShellWord): ShellWord[] =>
  [...text.matchAll(/\S+/g)].map((match) => ({ text: match[0], offset: offset + match.index }));

/** Value of `A * B + 1` in whole numbers; undefined for another expression. */
function arithmetic(
  text: string,
  variableOf: (name: string) => string | undefined,
): number | undefined {
  const tokens = text.match(/\$?\{?[A-Za-z_]\w*\}?|\d+|[-+*/%()]/g) ?? [];
  if (tokens.join('') !== text.replaceAll(/\s/g, '') || tokens.length > 50) return undefined;
  let at = 0;
  const operand = (): number => {
    const token = tokens[at++] ?? '';
    if (token === '(') {
      const inner = sum();
      at++;
      return inner;
    }
    if (/^\d/.test(token)) return Number(token);
    const value = variableOf(token.replaceAll(/[${}]/g, ''));
    return value === undefined || !/^\d+$/.test(value) ? Number.NaN : Number(value);
  };
  const product = (): number => {
    let value = operand();
    for (;;) {
      if (tokens[at] === '*') {
        at++;
        value *= operand();
      } else if (tokens[at] === '/') {
        at++;
        value = Math.trunc(value / operand());
      } else if (tokens[at] === '%') {
        at++;
        value %= operand();
      } else return value;
    }
  };
  const sum = (): number => {
    let value = product();
    for (;;) {
      if (tokens[at] === '+') {
        at++;
        value += product();
      } else if (tokens[at] === '-') {
        at++;
        value -= product();
      } else return value;
    }
  };
  const value = sum();
  return at === tokens.length && Number.isSafeInteger(value) ? value : undefined;
}
