/**
 * Figures that carry their own derivation. A figure's value is what its formula gives for its inputs,
 * by this evaluator and by any other: so an explanation cannot drift from the number it explains.
 */

/** An exact whole number; a bigint beyond 2^53 − 1. */
export type Exact = number | bigint;

export interface Figure {
  /** What it is, in a few words. */
  readonly label: string;
  readonly value: Exact;
  readonly unit: 'parameters' | 'values' | 'bytes' | 'FLOP' | 'MAC';
  /**
   * Whole-number arithmetic over `inputs`: + - * /, brackets, min, max and ceildiv (a division rounded
   * up). A division by / has no rest.
   */
  readonly formula: string;
  readonly inputs: Readonly<Record<string, Exact>>;
  /** Where the formula comes from. */
  readonly source: string;
}

/** States a figure; its value is computed from its formula. */
export function figure(parts: Omit<Figure, 'value'>): Figure {
  return { ...parts, value: evaluate(parts.formula, parts.inputs) };
}

/** A figure that is the sum of others, each of which is one of its inputs. */
export function sumFigure(
  label: string,
  unit: Figure['unit'],
  parts: Readonly<Record<string, Figure>>,
  source: string,
): Figure {
  const inputs = Object.fromEntries(
    Object.entries(parts).map(([name, part]) => [name, part.value]),
  );
  return figure({ label, unit, formula: Object.keys(parts).join(' + ') || '0', inputs, source });
}

/** The smallest type that holds an integer exactly. */
export function exact(value: bigint): Exact {
  const asNumber = Number(value);
  return Number.isSafeInteger(asNumber) ? asNumber : value;
}

/**
 * The value of a formula.
 * @throws Error when it is malformed, names an unknown input or divides with a rest: bugs of ours.
 */
export function evaluate(formula: string, inputs: Figure['inputs']): Exact {
  const parser = new FormulaParser(formula, inputs);
  return exact(parser.whole());
}

const TOKEN = /\s*(\d+|[A-Za-z_]\w*|[-+*/(),])/y;

const FUNCTIONS = {
  min: (values: readonly bigint[]) => values.reduce((a, b) => (a < b ? a : b)),
  max: (values: readonly bigint[]) => values.reduce((a, b) => (a > b ? a : b)),
  ceildiv: ([a = 0n, b = 1n]: readonly bigint[]) => (a + b - 1n) / b,
} as const satisfies Record<string, (values: readonly bigint[]) => bigint>;

/** Recursive descent: sum of products of factors. */
class FormulaParser {
  readonly #tokens: string[] = [];
  readonly #inputs: Figure['inputs'];
  readonly #formula: string;
  #next = 0;

  constructor(formula: string, inputs: Figure['inputs']) {
    this.#formula = formula;
    this.#inputs = inputs;
    TOKEN.lastIndex = 0;
    while (TOKEN.lastIndex < formula.trimEnd().length) {
      const [, token] = TOKEN.exec(formula) ?? [];
      if (token === undefined) throw this.#broken('has an unknown sign');
      this.#tokens.push(token);
    }
  }

  whole(): bigint {
    const value = this.#sum();
    if (this.#next < this.#tokens.length) throw this.#broken('goes on after its end');
    return value;
  }

  #sum(): bigint {
    let value = this.#product();
    for (;;) {
      if (this.#take('+')) value += this.#product();
      else if (this.#take('-')) value -= this.#product();
      else return value;
    }
  }

  #product(): bigint {
    let value = this.#factor();
    for (;;) {
      if (this.#take('*')) value *= this.#factor();
      else if (this.#take('/')) value = this.#divide(value, this.#factor());
      else return value;
    }
  }

  #divide(value: bigint, by: bigint): bigint {
    if (by === 0n || value % by !== 0n) throw this.#broken('divides with a rest');
    return value / by;
  }

  #factor(): bigint {
    const token = this.#tokens[this.#next++];
    if (token === undefined) throw this.#broken('ends too early');
    if (/^\d/.test(token)) return BigInt(token);
    if (token === '(') {
      const value = this.#sum();
      this.#expect(')');
      return value;
    }
    if (Object.hasOwn(FUNCTIONS, token)) return this.#call(token as keyof typeof FUNCTIONS);
    const input = Object.hasOwn(this.#inputs, token) ? this.#inputs[token] : undefined;
    if (input === undefined) throw this.#broken(`names ${token}, which is no input`);
    return BigInt(input);
  }

  #call(name: keyof typeof FUNCTIONS): bigint {
    this.#expect('(');
    const values = [this.#sum()];
    while (this.#take(',')) values.push(this.#sum());
    this.#expect(')');
    return FUNCTIONS[name](values);
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
