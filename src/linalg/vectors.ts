/** Arithmetic of rows: those of a matrix stand one after the other, and `at` is where one begins. */

/** The product of two rows of `length` numbers. */
export function dotOf(values: Float64Array, at: number, other: number, length: number): number {
  // Four sums at once: each addition need not wait for the one before.
  let s0 = 0;
  let s1 = 0;
  let s2 = 0;
  let s3 = 0;
  const whole = length - (length % 4);
  for (let k = 0; k < whole; k += 4) {
    s0 += (values[at + k] ?? 0) * (values[other + k] ?? 0);
    s1 += (values[at + k + 1] ?? 0) * (values[other + k + 1] ?? 0);
    s2 += (values[at + k + 2] ?? 0) * (values[other + k + 2] ?? 0);
    s3 += (values[at + k + 3] ?? 0) * (values[other + k + 3] ?? 0);
  }
  for (let k = whole; k < length; k++) s0 += (values[at + k] ?? 0) * (values[other + k] ?? 0);
  return s0 + s1 + (s2 + s3);
}

/** Adds `factor` times the row at `other` to the row at `at`. */
export function addMultiple(
  values: Float64Array,
  at: number,
  other: number,
  factor: number,
  length: number,
): void {
  for (let k = 0; k < length; k++) {
    values[at + k] = (values[at + k] ?? 0) + factor * (values[other + k] ?? 0);
  }
}

/** Multiplies the row at `at`. */
export function scale(values: Float64Array, at: number, factor: number, length: number): void {
  for (let k = at; k < at + length; k++) values[k] = (values[k] ?? 0) * factor;
}
