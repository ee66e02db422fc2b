/** Value of a formula, by the parser and arithmetic of JavaScript. */
export function evaluateIndependently(
  formula: string,
  inputs: Readonly<Record<string, number | bigint | string>>,
): bigint {
  const names = Object.keys(inputs);
  const values = Object.values(inputs).map(BigInt);
  const body = formula.replace(/\b\d+\b/g, (digits) => `${digits}n`);
  const least = (...all: bigint[]) => all.reduce((a, b) => (a < b ? a : b));
  const most = (...all: bigint[]) => all.reduce((a, b) => (a > b ? a : b));
  const ceildiv = (a: bigint, b: bigint) => a / b + (a % b > 0n ? 1n : 0n);
  const compiled = new Function('min', 'max', 'ceildiv', ...names, `return ${body};`);
  return compiled(least, most, ceildiv, ...values);
}
