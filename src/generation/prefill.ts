/** Bringing a decoder to a sequence of tokens, with the state that it has of their beginning. */
import type { Decoder } from '../runtime/decoder.js';
import type { Values } from '../runtime/engine.js';

/**
 * Continues a decoder so that its tokens are `tokens`, and returns the logits after the last of them, [1, V]. Tokens
 * that it has already are not computed again, except the last.
 */
export async function advance(decoder: Decoder, tokens: readonly number[]): Promise<Values> {
  const known = decoder.tokens;
  let same = 0;
  while (same < tokens.length - 1 && same < known.length && known[same] === tokens[same]) same++;
  await decoder.rewind(same);
  return decoder.append(tokens.slice(same));
}

/** Row of logits [n, V]. */
export function rowOf({ shape, data }: Values, row: number): Float32Array {
  const width = shape.at(-1) ?? 0;
  return data.subarray(row * width, (row + 1) * width);
}
