/** Logits as a distribution over the next token, [V]. Sums are of float64. */

/** ln Σ exp, relative to the largest logit so that nothing overflows. NaN for a NaN or +∞ among the logits. */
export function logSumExp(logits: Float32Array): number {
  let most = Number.NEGATIVE_INFINITY;
  for (const each of logits) if (each > most) most = each;
  let sum = 0;
  for (const each of logits) sum += Math.exp(each - most);
  return most + Math.log(sum);
}

/** Token with the highest logit, the first of equal ones. */
export function argmaxOf(logits: Float32Array): number {
  let best = 0;
  for (let id = 1; id < logits.length; id++) {
    if ((logits[id] ?? 0) > (logits[best] ?? 0)) best = id;
  }
  return best;
}

/**
 * KL(p ‖ q) = Σ p · (ln p − ln q) in nats. Rounding below 0 is cut off; a NaN stays one.
 * @param ofP,ofQ `logSumExp` of both.
 */
export function divergence(p: Float32Array, ofP: number, q: Float32Array, ofQ: number): number {
  let sum = 0;
  for (let i = 0; i < p.length; i++) {
    const logP = (p[i] as number) - ofP;
    const share = Math.exp(logP);
    // A share of 0 adds nothing, even where both logits are −∞.
    if (share !== 0) sum += share * (logP - ((q[i] as number) - ofQ));
  }
  return Math.max(0, sum);
}
