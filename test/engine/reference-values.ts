/** Arithmetic for all layers of the reference engine. */

export interface Tensor {
  readonly shape: readonly number[];
  readonly data: Float64Array;
}

export const each = (
  { shape, data }: Tensor,
  change: (value: number, at: number) => number,
): Tensor => ({ shape, data: data.map(change) });
export const plus = (a: Tensor, b: Tensor) => each(a, (value, at) => value + (b.data[at] ?? 0));
export const times = (a: Tensor, b: Tensor) => each(a, (value, at) => value * (b.data[at] ?? 0));
export const sigmoid = (x: number) => 1 / (1 + Math.exp(-x));
export const silu = (x: number) => x * sigmoid(x);
export function sumOf(values: ArrayLike<number>): number {
  let sum = 0;
  for (let at = 0; at < values.length; at++) sum += values[at] ?? 0;
  return sum;
}

/** Columns of the last dimension, in parts. */
export function split<const Sizes extends readonly number[]>(x: Tensor, sizes: Sizes) {
  const width = sizes.reduce((sum, size) => sum + size, 0);
  let from = 0;
  const parts = sizes.map((size): Tensor => {
    const start = from;
    from += size;
    const data = Float64Array.from(
      { length: (x.data.length / width) * size },
      (_, at) => x.data[Math.floor(at / size) * width + start + (at % size)] ?? 0,
    );
    return { shape: x.shape.with(-1, size), data };
  });
  return parts as unknown as { readonly [Index in keyof Sizes]: Tensor };
}
