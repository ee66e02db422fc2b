/**
 * Words of a shell script, without running it: literal text, variables, arrays and simple arithmetic. What only a shell
 * can know, such as the output of a command, stays unresolved.
 */

/** A part of a word. */
type Piece =
  | { readonly kind: 'text'; readonly text: string; readonly isQuoted: boolean }
  | {
      readonly kind: 'variable';
      readonly name: string;
      readonly fallback: readonly Piece[] | undefined;
      readonly isArray: boolean;
      readonly isQuoted: boolean;
    }
  | { readonly kind: 'arithmetic'; readonly text: string; readonly isQuoted: boolean }
  | { readonly kind: 'command'; readonly text: string; readonly isQuoted: boolean };

/** A word as written. */
export interface RawWord {
  readonly pieces: readonly Piece[];
  /** UTF-16 offset in the script. */
  readonly offset: number;
}

/** A command, or an assignment. */
export type Statement =
  | { readonly kind: 'command'; readonly words: readonly RawWord[]; readonly offset: number }
  | {
      readonly kind: 'assignment';
      readonly name: string;
      readonly isAppended: boolean;
      readonly isArray: boolean;
      readonly words: readonly RawWord[];
      readonly offset: number;
    };

/** Most words of a script: a long launch script has some hundreds. */
const MOST_WORDS = 20_000;

/** Deepest nesting of `${A:-${B:-…}}`. */
const MOST_DEPTH = 20;

/** Thrown for a script beyond the limits. */
export class ScriptLimit extends Error {}

const NAME = /[A-Za-z_]\w*/y;
const ASSIGNMENT =
  /(?:(?:export|local|readonly|declare(?: -\w+)*|typeset)[ \t]+)?([A-Za-z_]\w*)(\+?)=/y;

/** Reads the statements of a script. @throws ScriptLimit for a script beyond the limits. */
export function statementsOf(script: string): Statement[] {
  return new Reader(script).statements();
}

class Reader {
  readonly #text: string;
  #at = 0;
  #words = 0;

  constructor(text: string) {
    this.#text = text;
  }

  statements(): Statement[] {
    const found: Statement[] = [];
    for (;;) {
      this.#skip(true);
      if (this.#at >= this.#text.length) return found;
      const offset = this.#at;
      const assignment = this.#assignment();
      if (assignment) {
        found.push(assignment);
        continue;
      }
      const words: RawWord[] = [];
      while (this.#at < this.#text.length && !/[\n;&|()]/.test(this.#char())) {
        const word = this.#word();
        if (word) words.push(word);
        this.#skip(false);
      }
      if (words.length > 0) found.push({ kind: 'command', words, offset });
      if (this.#at < this.#text.length) this.#at++;
    }
  }

  /** A function, not a property: the compiler would take it as unchanged after a step. */
  #char(): string {
    return this.#text.charAt(this.#at);
  }

  /** Skips blanks, continued lines and comments. */
  #skip(overLines: boolean): void {
    for (;;) {
      const char = this.#char();
      if (char === ' ' || char === '\t' || char === '\r') this.#at++;
      else if (char === '\\' && /^\\\r?\n/.test(this.#text.slice(this.#at, this.#at + 3))) {
        this.#at = this.#text.indexOf('\n', this.#at) + 1;
      } else if (char === '#') {
        const end = this.#text.indexOf('\n', this.#at);
        this.#at = end < 0 ? this.#text.length : end;
      } else if (char === '\n' && overLines) this.#at++;
      else return;
    }
  }

  #assignment(): Statement | undefined {
    ASSIGNMENT.lastIndex = this.#at;
    const match = ASSIGNMENT.exec(this.#text);
    if (match === null) return undefined;
    const offset = this.#at;
    const [all, name = '', plus] = match;
    this.#at += all.length;
    const common = { kind: 'assignment', name, isAppended: plus === '+', offset } as const;
    if (this.#char() !== '(') {
      const word = this.#word();
      return { ...common, isArray: false, words: word ? [word] : [] };
    }
    this.#at++;
    const words: RawWord[] = [];
    for (;;) {
      this.#skip(true);
      if (this.#at >= this.#text.length) break;
      if (this.#char() === ')') {
        this.#at++;
        break;
      }
      const before = this.#at;
      const word = this.#word();
      if (word) words.push(word);
      // A character that begins no word, such as `;`.
      if (this.#at === before) this.#at++;
    }
    return { ...common, isArray: true, words };
  }

  #word(): RawWord | undefined {
    const offset = this.#at;
    const pieces: Piece[] = [];
    while (this.#at < this.#text.length) {
      const char = this.#char();
      if (/[\s;&|()<>]/.test(char)) break;
      if (char === '\\') {
        if (/^\\\r?\n/.test(this.#text.slice(this.#at, this.#at + 3))) break;
        pieces.push({ kind: 'text', text: this.#text.charAt(this.#at + 1), isQuoted: true });
        this.#at += 2;
      } else if (char === "'") {
        const end = this.#end("'", this.#at + 1);
        pieces.push({ kind: 'text', text: this.#text.slice(this.#at + 1, end), isQuoted: true });
        this.#at = end + 1;
      } else if (char === '"') {
        this.#at++;
        this.#quoted(pieces);
      } else if (char === '$') pieces.push(this.#expansion(false, 0));
      else if (char === '`') {
        const end = this.#end('`', this.#at + 1);
        pieces.push({
          kind: 'command',
          text: this.#text.slice(this.#at, end + 1),
          isQuoted: false,
        });
        this.#at = end + 1;
      } else {
        const from = this.#at;
        while (this.#at < this.#text.length && !/[\s;&|()<>\\'"$`]/.test(this.#char())) this.#at++;
        pieces.push({ kind: 'text', text: this.#text.slice(from, this.#at), isQuoted: false });
      }
    }
    if (/[<>]/.test(this.#char())) this.#at++;
    if (++this.#words > MOST_WORDS) throw new ScriptLimit();
    return pieces.length === 0 ? undefined : { pieces, offset };
  }

  #end(quote: string, from: number): number {
    const end = this.#text.indexOf(quote, from);
    return end < 0 ? this.#text.length : end;
  }

  /** Pieces up to the closing double quote. */
  #quoted(pieces: Piece[]): void {
    let text = '';
    const push = () => {
      pieces.push({ kind: 'text', text, isQuoted: true });
      text = '';
    };
    while (this.#at < this.#text.length && this.#char() !== '"') {
      if (this.#char() === '\\') {
        const next = this.#text.charAt(this.#at + 1);
        // Within quotes, a backslash before a line break continues the line.
        text += next === '\n' ? '' : /["\\$`]/.test(next) ? next : `\\${next}`;
        this.#at += 2;
      } else if (this.#char() === '$') {
        push();
        pieces.push(this.#expansion(true, 0));
      } else {
        text += this.#char();
        this.#at++;
      }
    }
    this.#at++;
    push();
  }

  /** `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME[@]}`, `$1`, `$((…))` or `$(…)`. */
  #expansion(isQuoted: boolean, depth: number): Piece {
    if (depth > MOST_DEPTH) throw new ScriptLimit();
    const from = this.#at++;
    if (this.#text.startsWith('((', this.#at)) {
      const end = this.#text.indexOf('))', this.#at);
      const text = this.#text.slice(this.#at + 2, end < 0 ? undefined : end);
      this.#at = end < 0 ? this.#text.length : end + 2;
      return { kind: 'arithmetic', text, isQuoted };
    }
    if (this.#char() === '(') {
      let open = 0;
      do {
        if (this.#char() === '(') open++;
        if (this.#char() === ')') open--;
        this.#at++;
      } while (open > 0 && this.#at < this.#text.length);
      return { kind: 'command', text: this.#text.slice(from, this.#at), isQuoted };
    }
    if (this.#char() !== '{') {
      NAME.lastIndex = this.#at;
      const name = NAME.exec(this.#text)?.[0] ?? this.#char();
      this.#at += name.length;
      return { kind: 'variable', name, fallback: undefined, isArray: name === '@', isQuoted };
    }
    this.#at++;
    const [name = ''] =
      /^[A-Za-z_]\w*|^\d+|^[@*#?!]/.exec(this.#text.slice(this.#at, this.#at + 200)) ?? [];
    this.#at += name.length;
    const isArray = /^\[[@*]\]/.test(this.#text.slice(this.#at, this.#at + 3));
    if (isArray) this.#at += 3;
    let fallback: Piece[] | undefined;
    const isFallback = /^:?[-=]/.exec(this.#text.slice(this.#at, this.#at + 2));
    if (isFallback) {
      this.#at += isFallback[0].length;
      fallback = this.#fallback(depth + 1);
    }
    // Other operators, such as ${A%.*}, are not resolved.
    const end = this.#end('}', this.#at);
    const isWhole = end === this.#at;
    this.#at = end + 1;
    if (!isWhole || name === '') {
      return { kind: 'command', text: this.#text.slice(from, this.#at), isQuoted };
    }
    return { kind: 'variable', name, fallback, isArray, isQuoted };
  }

  #fallback(depth: number): Piece[] {
    const pieces: Piece[] = [];
    while (this.#at < this.#text.length && this.#char() !== '}' && this.#char() !== '\n') {
      if (this.#char() === '$') pieces.push(this.#expansion(true, depth));
      else if (this.#char() === '"' || this.#char() === "'") {
        const quote = this.#char();
        if (quote === '"') {
          this.#at++;
          this.#quoted(pieces);
        } else {
          const end = this.#end(quote, this.#at + 1);
          pieces.push({ kind: 'text', text: this.#text.slice(this.#at + 1, end), isQuoted: true });
          this.#at = end + 1;
        }
      } else {
        pieces.push({ kind: 'text', text: this.#char(), isQuoted: true });
        this.#at++;
      }
    }
    return pieces;
  }
}
