/**
 * Arithmetic that computes and prints itself, so that the formula shown with a number is the one that gave the number.
 * Sums and products are flat: `add(a, add(b, c))` is a + b + c, computed from left to right as it is printed.
 */

/** An exact whole number; a bigint beyond 2^53 − 1. Inputs of real arithmetic are numbers of any kind. */
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

/** What an expression is computed in. Functions that it lacks have no value in it. */
export interface Arithmetic<T> {
  readonly of: (value: Exact) => T;
  readonly '+': (a: T, b: T) => T;
  readonly '-': (a: T, b: T) => T;
  readonly '*': (a: T, b: T) => T;
  /** Undefined where there is no quotient. */
  readonly '/': (a: T, b: T) => T | undefined;
  readonly functions: Readonly<Partial<Record<FunctionName, (values: readonly T[]) => T>>>;
}

/** The input of the only name in a record: `v({ batch })`, `v({ [name]: value })`. */
export function v(named: Readonly<Record<string, Exact>>): Input {
  const [only, ...others] = Object.values(inputs(named));
  if (only === undefined || others.length > 0) throw new Error('an input has one name');
  return only;
}

/** An input for each name. @throws Error for a name that would print as something else. */
export function inputs<Name extends string>(
  values: Readonly<Record<Name, Exact>>,
): Readonly<Record<Name, Input>> {
  const all: Partial<Record<Name, Input>> = {};
  for (const name in values) all[name] = { kind: 'input', name: named(name), value: values[name] };
  return all as Record<Name, Input>;
}

const RESERVED: ReadonlySet<string> = new Set(FUNCTIONS);

function named(name: string): string {
  if (/^[A-Za-z_]\w*$/.test(name) && !RESERVED.has(name)) return name;
  throw new Error(`"${name}" cannot be the name of an input`);
}

const expressionOf = (operand: Operand): Expression =>
  typeof operand === 'number' ? { kind: 'constant', value: operand } : operand;

/** `first sign other sign other …`; what is chained in the same way is joined where that changes no value. */
function chain(kind: Chain['kind'], sign: Sign, operands: readonly Operand[]): Expression {
  const [first, ...others] = operands.map(expressionOf);
  if (first === undefined) throw new Error(`a ${kind} needs an operand`);
  const joins = sign === '+' || sign === '*';
  const rest = others.flatMap((operand) =>
    joins && operand.kind === kind
      ? [{ sign, operand: operand.first }, ...operand.rest]
      : [{ sign, operand }],
  );
  if (rest.length === 0) return first;
  return first.kind === kind
    ? { kind, first: first.first, rest: [...first.rest, ...rest] }
    : { kind, first, rest };
}

/** a + b + …; of nothing, 0. */
export const add = (...terms: readonly Operand[]): Expression =>
  chain('sum', '+', terms.length === 0 ? [0] : terms);

/** a - b - … */
export const sub = (from: Operand, ...terms: readonly Operand[]): Expression =>
  chain('sum', '-', [from, ...terms]);

/** a * b * … */
export const mul = (...factors: readonly Operand[]): Expression => chain('product', '*', factors);

/** a / b / … In whole numbers no division may leave a rest. */
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
 * The value of an expression.
 * @throws Error when a division has no quotient, or the arithmetic lacks a function: bugs of ours.
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

/** An expression as text, with no more brackets than it needs. */
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
      const text = (operand: Expression) =>
        PRECEDENCE[operand.kind] > PRECEDENCE[expression.kind]
          ? textOf(operand)
          : `(${textOf(operand)})`;
      const { first, rest } = expression;
      return rest.reduce(
        (all, { sign, operand }) => `${all} ${sign} ${text(operand)}`,
        text(first),
      );
    }
  }
}

/**
 * Inputs of expressions by name, in the order in which they are named.
 * @throws Error when a name has two values: a bug of ours.
 */
export function inputsOf(...expressions: readonly Expression[]): Record<string, Input> {
  const all = new Map<string, Input>();
  for (const expression of expressions) collect(expression, all);
  return Object.fromEntries(all);
}

function collect(expression: Expression, all: Map<string, Input>): void {
  switch (expression.kind) {
    case 'constant':
      return;
    case 'input': {
      const { name, value } = expression;
      const known = all.get(name);
      if (known === undefined) all.set(name, expression);
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

/** Values of inputs by name. */
export const valuesOf = (all: Readonly<Record<string, Input>>): Record<string, Exact> =>
  Object.fromEntries(Object.values(all).map(({ name, value }) => [name, value]));

const broken = (expression: Expression, what: string) =>
  new Error(`the formula "${textOf(expression)}" ${what}`);
