/** Sizes of tensors, outermost dimension first. */
export type Shape = readonly number[];

/**
 * The number of elements of a tensor, or undefined when it cannot be held exactly
 * (a dimension or the product is beyond 2^53 − 1).
 */
export function elementCount(shape: Shape): number | undefined {
  let product = 1;
  for (const size of shape) {
    if (!Number.isSafeInteger(size) || size < 0) return undefined;
    product *= size;
    // A product of two safe integers that rounds below 2^53 was exact, so this test is too.
    if (!Number.isSafeInteger(product)) return undefined;
  }
  return product;
}

/** `[50432, 4096]`, or `[]` for a scalar. */
export function shapeText(shape: Shape): string {
  return `[${shape.join(', ')}]`;
}

export function isSameShape(a: Shape, b: Shape): boolean {
  return a.length === b.length && a.every((size, axis) => size === b[axis]);
}
