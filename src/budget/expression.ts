/**
 * Arithmetic that computes and prints itself, so that the printed formula is the one that gave the number.
 * Sums and products are flat: `add(a, add(b, c))` is a + b + c, computed from left to right, as printed.
 */

/** Exact whole number; a bigint beyond 2^53 − 1. Inputs of real arithmetic can be any number. */
export type Exact = number | bigint;

/** A named value. */
export interface Input {
  readonly kind: 'input';
  readonly name: string;
  readonly value: Exact;
}

interface Constant {
  readonly kind: 'constant';
  readonly value: number;
}

/** a + b - c, or a * b / c. */
interface Chain {
  readonly kind: 'sum' | 'product';
  readonly first: Expression;
  readonly rest: readonly { readonly sign: Sign; readonly operand: Expression }[];
}

interface Call {
  readonly kind: 'call';
  readonly name: FunctionName;
  readonly operands: readonly Expression[];
}

export type Expression = Input | Constant | Chain | Call;

type Sign = '+' | '-' | '*' | '/';

const FUNCTIONS = ['min', 'max', 'ceil', 'ceildiv', 'ln', 'exp'] as const;

type FunctionName = (typeof FUNCTIONS)[number];

/** An operand of an expression; a number is a constant. */
export type Operand = Expression | number;

/** Number system of an evaluation. Functions that it lacks have no value. */
export interface Arithmetic<T> {
  readonly of: (value: Exact) => T;
  readonly '+': (a: T, b: T) => T;
  readonly '-': (a: T, b: T) => T;
  readonly '*': (a: T, b: T) => T;
  /** Undefined if the quotient does not exist. */
  readonly '/': (a: T, b: T) => T | undefined;
  readonly functions: Readonly<Partial<Record<FunctionName, (values: readonly T[]) => T>>>;
}

/** Input for the only name in a record: `v({ batch })`, `v({ [name]: value })`. */
export function v(only: Readonly<Record<string, Exact>>): Input {
  let input: Input | undefined;
  for (const name in only) {
    if (input !== undefined) throw new Error('an input has one name');
    input = inputNamed(name, only[name]);
  }
  if (input === undefined) throw new Error('an input has one name');
  return input;
}

export function inputs<Name extends string>(
  values: Readonly<Record<Name, Exact>>,
): Readonly<Record<Name, Input>> {
  const all: Partial<Record<Name, Input>> = {};
  for (const name in values) all[name] = inputNamed(name, values[name]);
  return all as Record<Name, Input>;
}

const NAME = new RegExp(`^(?!(?:${FUNCTIONS.join('|')})$)[A-Za-z_]\\w*$`);

/** Input with a computed name. @throws Error for a name that is not a plain identifier. */
export function inputNamed(name: string, value: Exact | undefined): Input {
  if (value !== undefined && NAME.test(name)) return { kind: 'input', name, value };
  throw new Error(`"${name}" cannot be the name of an input`);
}

const expressionOf = (operand: Operand): Expression =>
  typeof operand === 'number' ? { kind: 'constant', value: operand } : operand;

/** `first sign other sign other …`; joins equal chains if that keeps the value. */
function chain(kind: Chain['kind'], sign: Sign, operands: readonly Operand[]): Expression {
  let first: Expression | undefined;
  // Loops instead of copies, because searches create many expressions.
  const rest: { sign: Sign; operand: Expression }[] = [];
  const joins = sign === '+' || sign === '*';
  for (const each of operands) {
    const operand = expressionOf(each);
    const isChain = operand.kind === kind && (joins || first === undefined);
    const head = isChain ? operand.first : operand;
    if (first === undefined) first = head;
    else rest.push({ sign, operand: head });
    if (isChain) for (const link of operand.rest) rest.push(link);
  }
  if (first === undefined) throw new Error(`a ${kind} needs an operand`);
  return rest.length === 0 ? first : { kind, first, rest };
}

/** a + b + …; 0 without terms. */
export const add = (...terms: readonly Operand[]): Expression =>
  chain('sum', '+', terms.length === 0 ? [0] : terms);

/** a - b - … */
export const sub = (from: Operand, ...terms: readonly Operand[]): Expression =>
  chain('sum', '-', [from, ...terms]);

/** a * b * … */
export const mul = (...factors: readonly Operand[]): Expression => chain('product', '*', factors);

/** a / b / … In whole numbers, divisions must be exact. */
export const div = (dividend: Operand, ...divisors: readonly Operand[]): Expression =>
  chain('product', '/', [dividend, ...divisors]);

const call = (name: FunctionName, operands: readonly Operand[]): Expression => ({
  kind: 'call',
  name,
  operands: operands.map(expressionOf),
});

export const min = (...values: readonly Operand[]): Expression => call('min', values);
export const max = (...values: readonly Operand[]): Expression => call('max', values);
export const ceil = (value: Operand): Expression => call('ceil', [value]);
/** A division of whole numbers, rounded up. */
export const ceildiv = (dividend: Operand, divisor: Operand): Expression =>
  call('ceildiv', [dividend, divisor]);
/** The natural logarithm. */
export const ln = (value: Operand): Expression => call('ln', [value]);
export const exp = (value: Operand): Expression => call('exp', [value]);

/**
 * Value of an expression.
 * @throws Error for a division without a quotient, or a function that the arithmetic lacks; both are bugs.
 */
export function evaluateIn<T>(arithmetic: Arithmetic<T>, whole: Expression): T {
  const valueIn = (expression: Expression): T => {
    switch (expression.kind) {
      case 'constant':
      case 'input':
        return arithmetic.of(expression.value);
      case 'sum':
      case 'product': {
        let value = valueIn(expression.first);
        for (const { sign, operand } of expression.rest) {
          const next = arithmetic[sign](value, valueIn(operand));
          if (next === undefined) throw broken(whole, 'divides by zero, or with a rest');
          value = next;
        }
        return value;
      }
      case 'call': {
        const { name, operands } = expression;
        const compute = arithmetic.functions[name];
        if (compute === undefined) throw broken(whole, `calls ${name}, which is not defined here`);
        return compute(operands.map(valueIn));
      }
    }
  };
  return valueIn(whole);
}

const PRECEDENCE: Readonly<Record<Expression['kind'], number>> = {
  sum: 1,
  product: 2,
  constant: 3,
  input: 3,
  call: 3,
};

/** Text of an expression with minimal brackets. */
export function textOf(expression: Expression): string {
  switch (expression.kind) {
    case 'constant':
      return String(expression.value);
    case 'input':
      return expression.name;
    case 'call':
      return `${expression.name}(${expression.operands.map(textOf).join(', ')})`;
    case 'sum':
    case 'product': {
      let text = operandText(expression.first, expression.kind);
      for (const { sign, operand } of expression.rest) {
        text += ` ${sign} ${operandText(operand, expression.kind)}`;
      }
      return text;
    }
  }
}

const operandText = (operand: Expression, within: Chain['kind']) =>
  PRECEDENCE[operand.kind] > PRECEDENCE[within] ? textOf(operand) : `(${textOf(operand)})`;

/**
 * Inputs of expressions by name, in order of first use.
 * @throws Error for a name with two values, which is a bug.
 */
export function inputsOf(...expressions: readonly Expression[]): Record<string, Input> {
  const all: Record<string, Input> = {};
  for (const expression of expressions) collect(expression, all);
  return all;
}

function collect(expression: Expression, all: Record<string, Input>): void {
  switch (expression.kind) {
    case 'constant':
      return;
    case 'input': {
      const { name, value } = expression;
      const known = Object.hasOwn(all, name) ? all[name] : undefined;
      if (known === undefined) all[name] = expression;
      else if (known.value !== value) {
        throw new Error(`input ${name} is both ${known.value} and ${value}`);
      }
      return;
    }
    case 'call':
      for (const operand of expression.operands) collect(operand, all);
      return;
    case 'sum':
    case 'product':
      collect(expression.first, all);
      for (const { operand } of expression.rest) collect(operand, all);
  }
}

export function valuesOf(all: Readonly<Record<string, Input>>): Record<string, Exact> {
  const values: Record<string, Exact> = {};
  for (const name in all) values[name] = all[name]?.value ?? 0;
  return values;
}

const broken = (expression: Expression, what: string) =>
  new Error(`the formula "${textOf(expression)}" ${what}`);
