/**
 * Arithmetic that computes and prints itself, so that the printed formula is the one that gave the number.
 * Sums and products are flat: `add(a, add(b, c))` is a + b + c, computed from left to right, as printed.
 */

/** Exact whole number; a bigint beyond 2^53 − 1. Inputs of real arithmetic can be any number. */
export type Exact = number | bigint;

/**
 * A node of a formula. All kinds have the same fields: searches state thousands of formulas, and engines are quickest with
 * one shape of object.
 */
export interface Expression {
  readonly kind: 'input' | 'constant' | 'sum' | 'product' | 'call';
  /** Name of an input or of a function. */
  readonly name: string;
  /** Value of an input or a constant; 0 of others. */
  readonly value: Exact;
  readonly operands: readonly Expression[];
  /** The sign before each operand of a sum or a product; the first is not printed. */
  readonly signs: readonly Sign[];
}

/** A named value. */
export interface Input extends Expression {
  readonly kind: 'input';
}

type Sign = '+' | '-' | '*' | '/';

const FUNCTIONS = ['min', 'max', 'ceil', 'ceildiv', 'ln', 'exp'] as const;

type FunctionName = (typeof FUNCTIONS)[number];

/** An operand of an expression; a number is a constant. */
export type Operand = Expression | number;

const NO_OPERANDS: readonly Expression[] = [];
const NO_SIGNS: readonly Sign[] = [];

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
  if (value !== undefined && NAME.test(name)) {
    return { kind: 'input', name, value, operands: NO_OPERANDS, signs: NO_SIGNS };
  }
  throw new Error(`"${name}" cannot be the name of an input`);
}

const expressionOf = (operand: Operand): Expression =>
  typeof operand === 'number'
    ? { kind: 'constant', name: '', value: operand, operands: NO_OPERANDS, signs: NO_SIGNS }
    : operand;

/** `first sign other sign other …`; nested sums and products are flattened where that changes no value. */
function chain(kind: 'sum' | 'product', sign: Sign, terms: readonly Operand[]): Expression {
  const joins = sign === '+' || sign === '*';
  const [only] = terms;
  if (terms.length === 1 && only !== undefined) return expressionOf(only);
  // Most chains hold no other of their kind, so they need no flattening.
  if (terms.length > 1 && !terms.some((each) => isOfKind(each, kind))) {
    const signs = equalSigns(sign, terms.length);
    return { kind, name: '', value: 0, operands: terms.map(expressionOf), signs };
  }
  const operands: Expression[] = [];
  const signs: Sign[] = [];
  for (const each of terms) {
    const operand = expressionOf(each);
    if (operand.kind !== kind || !(joins || operands.length === 0)) {
      operands.push(operand);
      signs.push(sign);
      continue;
    }
    for (let at = 0; at < operand.operands.length; at++) {
      operands.push(operand.operands[at] as Expression);
      signs.push(at === 0 ? sign : (operand.signs[at] as Sign));
    }
  }
  const [first] = operands;
  if (first === undefined) throw new Error(`a ${kind} needs an operand`);
  return operands.length === 1 ? first : { kind, name: '', value: 0, operands, signs };
}

const isOfKind = (operand: Operand, kind: Expression['kind']) =>
  typeof operand !== 'number' && operand.kind === kind;

/** Lists of one sign, by the sign and their length: searches make millions of them. */
const SIGNS: Readonly<Record<Sign, (readonly Sign[] | undefined)[]>> = {
  '+': [],
  '-': [],
  '*': [],
  '/': [],
};

function equalSigns(sign: Sign, length: number): readonly Sign[] {
  const known = SIGNS[sign][length];
  if (known) return known;
  const signs = Array.from({ length }, () => sign);
  SIGNS[sign][length] = signs;
  return signs;
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
  value: 0,
  operands: operands.map(expressionOf),
  signs: NO_SIGNS,
});

export const min = (...values: readonly Operand[]): Expression => call('min', values);
export const max = (...values: readonly Operand[]): Expression => call('max', values);
export const ceil = (value: Operand): Expression => call('ceil', [value]);
/** A division of whole numbers, rounded up. */
export const ceildiv = (dividend: Operand, divisor: Operand): Expression =>
  call('ceildiv', [dividend, divisor]);
/** Quotient without its fraction, of a dividend that is not negative. */
export const floordiv = (dividend: Operand, divisor: number): Expression =>
  ceildiv(max(0, sub(dividend, divisor - 1)), divisor);
/** The natural logarithm. */
export const ln = (value: Operand): Expression => call('ln', [value]);
export const exp = (value: Operand): Expression => call('exp', [value]);

/**
 * The value in doubles.
 * @param isExact Whether the value has to be exact in whole numbers: if it is not in doubles, NaN.
 * @throws Error for a division by zero of real numbers, and for an unknown function: bugs of ours.
 */
export function doubleOf(expression: Expression, isExact: boolean, whole = expression): number {
  const { kind, operands, signs } = expression;
  if (kind === 'input' || kind === 'constant') {
    const { value: given } = expression;
    const value = typeof given === 'number' ? given : Number(given);
    return isExact && !Number.isSafeInteger(value) ? Number.NaN : value;
  }
  if (kind === 'call') return callOf(expression, isExact, whole);
  let value = doubleOf(operands[0] as Expression, isExact, whole);
  for (let at = 1; at < operands.length; at++) {
    const other = doubleOf(operands[at] as Expression, isExact, whole);
    switch (signs[at]) {
      case '+':
        value += other;
        break;
      case '-':
        value -= other;
        break;
      case '*':
        value *= other;
        // A whole number is never a negative zero.
        if (isExact) value += 0;
        break;
      default:
        if (isExact && value % other !== 0) return Number.NaN;
        if (other === 0) throw broken(whole, 'divides by zero, or with a rest');
        value /= other;
    }
    if (isExact && !(Math.abs(value) <= Number.MAX_SAFE_INTEGER)) return Number.NaN;
  }
  return value;
}

function callOf(expression: Expression, isExact: boolean, whole: Expression): number {
  const { name, operands } = expression;
  const values = operands.map((each) => doubleOf(each, isExact, whole));
  const [a = 0, b = 1] = values;
  if (name === 'min') return Math.min(...values);
  if (name === 'max') return Math.max(...values);
  if (isExact) {
    const isSmall = name === 'ceildiv' && a >= 0 && b > 0;
    return isSmall ? (a - (a % b)) / b + (a % b === 0 ? 0 : 1) : Number.NaN;
  }
  if (name === 'ceil') return Math.ceil(a);
  if (name === 'ln') return Math.log(a);
  if (name === 'exp') return Math.exp(a);
  throw broken(whole, `calls ${name}, which is not defined here`);
}

/**
 * The value in whole numbers of any size.
 * @throws Error when a division has no quotient, or for a function of real numbers: bugs of ours.
 */
export function wholeNumberOf(expression: Expression, whole = expression): bigint {
  const { kind, name, operands, signs } = expression;
  if (kind === 'input' || kind === 'constant') return BigInt(expression.value);
  const [first = 0n, ...others] = operands.map((each) => wholeNumberOf(each, whole));
  if (kind === 'call') {
    if (name === 'min') return others.reduce((a, b) => (a < b ? a : b), first);
    if (name === 'max') return others.reduce((a, b) => (a > b ? a : b), first);
    const [by = 1n] = others;
    if (name === 'ceildiv') return (first + by - 1n) / by;
    throw broken(whole, `calls ${name}, which is not defined here`);
  }
  return others.reduce((value, other, at) => {
    const sign = signs[at + 1];
    if (sign === '+') return value + other;
    if (sign === '-') return value - other;
    if (sign === '*') return value * other;
    if (other === 0n || value % other !== 0n) {
      throw broken(whole, 'divides by zero, or with a rest');
    }
    return value / other;
  }, first);
}

const PRECEDENCE: Readonly<Record<Expression['kind'], number>> = {
  sum: 1,
  product: 2,
  constant: 3,
  input: 3,
  call: 3,
};

/** Text of an expression with minimal brackets. */
export function expressionText(expression: Expression): string {
  switch (expression.kind) {
    case 'constant':
      return String(expression.value);
    case 'input':
      return expression.name;
    case 'call':
      return `${expression.name}(${expression.operands.map(expressionText).join(', ')})`;
    case 'sum':
    case 'product':
      return expression.operands
        .map((operand, at) => {
          const sign = at === 0 ? '' : ` ${expression.signs[at]} `;
          return sign + operandText(operand, expression.kind);
        })
        .join('');
  }
}

const operandText = (operand: Expression, within: Expression['kind']) =>
  PRECEDENCE[operand.kind] > PRECEDENCE[within]
    ? expressionText(operand)
    : `(${expressionText(operand)})`;

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
  if (isInput(expression)) {
    const { name, value } = expression;
    const known = Object.hasOwn(all, name) ? all[name] : undefined;
    if (known === undefined) all[name] = expression;
    else if (known.value !== value) {
      throw new Error(`input ${name} is both ${known.value} and ${value}`);
    }
  }
  for (const operand of expression.operands) collect(operand, all);
}

const isInput = (expression: Expression): expression is Input => expression.kind === 'input';

/** Values of inputs by name. */
export function inputValues(all: Readonly<Record<string, Input>>): Record<string, Exact> {
  const values: Record<string, Exact> = {};
  for (const name in all) values[name] = all[name]?.value ?? 0;
  return values;
}

const broken = (expression: Expression, what: string) =>
  new Error(`the formula "${expressionText(expression)}" ${what}`);
