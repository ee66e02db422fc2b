/** Arithmetic written as text, so that what is told of a number is what has made it. */

/** What a formula is computed in. */
export interface Arithmetic<T> {
  /** Of a literal, and of an input. */
  readonly of: (value: string | number | bigint) => T;
  readonly add: (a: T, b: T) => T;
  readonly subtract: (a: T, b: T) => T;
  readonly multiply: (a: T, b: T) => T;
  /** Undefined where there is no quotient. */
  readonly divide: (a: T, b: T) => T | undefined;
  readonly functions: Readonly<Record<string, (values: readonly T[]) => T>>;
}

/**
 * The value of a formula: + - * /, brackets, and the functions of the arithmetic.
 * @throws Error when it is malformed, names an unknown input or has no quotient: bugs of ours.
 */
export const evaluateIn = <T>(
  arithmetic: Arithmetic<T>,
  formula: string,
  inputs: Readonly<Record<string, number | bigint>>,
): T => new FormulaParser(arithmetic, formula, inputs).whole();

const TOKEN = /\s*(\d+(?:\.\d+)?(?:e[-+]?\d+)?|[A-Za-z_]\w*|[-+*/(),])/y;

/** Recursive descent: sum of products of factors. */
class FormulaParser<T> {
  readonly #tokens: string[] = [];
  readonly #arithmetic: Arithmetic<T>;
  readonly #formula: string;
  readonly #inputs: Readonly<Record<string, number | bigint>>;
  #next = 0;

  constructor(
    arithmetic: Arithmetic<T>,
    formula: string,
    inputs: Readonly<Record<string, number | bigint>>,
  ) {
    this.#arithmetic = arithmetic;
    this.#formula = formula;
    this.#inputs = inputs;
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < formula.trimEnd().length) {
      const [, token] = TOKEN.exec(formula) ?? [];
      if (token === undefined) throw this.#broken('has an unknown sign');
      this.#tokens.push(token);
    }
  }

  whole(): T {
    const value = this.#sum();
    if (this.#next < this.#tokens.length) throw this.#broken('goes on after its end');
    return value;
  }

  #sum(): T {
    const { add, subtract } = this.#arithmetic;
    let value = this.#product();
    for (;;) {
      if (this.#take('+')) value = add(value, this.#product());
      else if (this.#take('-')) value = subtract(value, this.#product());
      else return value;
    }
  }

  #product(): T {
    let value = this.#factor();
    for (;;) {
      if (this.#take('*')) value = this.#arithmetic.multiply(value, this.#factor());
      else if (this.#take('/')) value = this.#divide(value, this.#factor());
      else return value;
    }
  }

  #divide(value: T, by: T): T {
    const quotient = this.#arithmetic.divide(value, by);
    if (quotient === undefined) throw this.#broken('divides by zero, or with a rest');
    return quotient;
  }

  #factor(): T {
    const token = this.#tokens[this.#next++];
    if (token === undefined) throw this.#broken('ends too early');
    if (/^\d/.test(token)) return this.#arithmetic.of(token);
    if (token === '(') {
      const value = this.#sum();
      this.#expect(')');
      return value;
    }
    const { functions } = this.#arithmetic;
    if (Object.hasOwn(functions, token)) return this.#call(functions[token]);
    const input = Object.hasOwn(this.#inputs, token) ? this.#inputs[token] : undefined;
    if (input === undefined) throw this.#broken(`names ${token}, which is no input`);
    return this.#arithmetic.of(input);
  }

  #call(named: ((values: readonly T[]) => T) | undefined): T {
    this.#expect('(');
    const values = [this.#sum()];
    while (this.#take(',')) values.push(this.#sum());
    this.#expect(')');
    if (named === undefined) throw this.#broken('calls what is no function');
    return named(values);
  }

  #take(token: string): boolean {
    if (this.#tokens[this.#next] !== token) return false;
    this.#next++;
    return true;
  }

  #expect(token: string): void {
    if (!this.#take(token)) throw this.#broken(`lacks a ${token}`);
  }

  #broken(what: string): Error {
    return new Error(`the formula "${this.#formula}" ${what}`);
  }
}
