/**
 * How steeply each head is penalised for distance: a score gains slope · position of its key, of which the
 * softmax only sees the differences, −slope · distance. [heads]; arXiv 2108.12409, and for a number of heads
 * that is no power of two BLOOM's `build_alibi_tensor` in transformers: the slopes of the power below, then
 * every other one of the power above.
 */
export function alibiSlopes(heads: number): Float32Array {
  const power = 2 ** Math.floor(Math.log2(heads));
  const [whole, between] = [ratioOf(power), ratioOf(2 * power)];
  return Float32Array.from({ length: heads }, (_, head) =>
    head < power ? whole ** (head + 1) : between ** (2 * (head - power) + 1),
  );
}

/** 2^(−8 / heads): what each slope is of the one before it, where heads are a power of two. */
const ratioOf = (heads: number) => Math.fround(2 ** (-8 / heads));
