import { describe, expect, it } from 'vitest';
import { Convergence, squaredLossesOf } from '../../../src/base/linalg/subspace-iteration.js';

const iterate = (energies: readonly number[], squaredNorm: number, isWhole = false) => ({
  energies: Float64Array.from(energies),
  squaredNorm,
  isWhole,
});

describe('the squared losses', () => {
  it('are the remaining squared norm', () => {
    expect([...squaredLossesOf(iterate([4, 2, 1], 10))]).toEqual([10, 6, 4, 3]);
  });

  it('ignore the norm when the energies are complete', () => {
    expect([...squaredLossesOf(iterate([4, 2, 1], 7.5, true))]).toEqual([7, 3, 1, 0]);
  });

  it('are never less than the sum of the other energies', () => {
    expect([...squaredLossesOf(iterate([4, 2, 1e-20], 6))]).toEqual([6, 2, 1e-20, 0]);
  });
});

describe('convergence', () => {
  /** Passes until convergence, undefined when it is not reached. */
  function passes(energies: readonly number[], rest: number, rounding = 2 ** -53) {
    const convergence = new Convergence(rounding);
    const squaredNorm = (energies.at(-1) ?? 0) + rest;
    const at = energies.findIndex((energy) =>
      convergence.isReached(iterate([energy], squaredNorm), 1),
    );
    return at < 0 ? undefined : at + 1;
  }

  it('takes at least three passes, even without changes', () => {
    expect(passes([1, 1, 1, 1], 1)).toBe(3);
  });

  it('is not reached while gains stay constant', () => {
    expect(passes([1, 1.001, 1.002, 1.003, 1.004], 1)).toBeUndefined();
  });

  it('is reached when all later gains are small compared with the loss', () => {
    // Each gain is 1/10 of the one before: after 1.111, 1.111e-4 remain.
    const energies = [1, 1.1, 1.11, 1.111, 1.1111, 1.11111];
    expect(passes(energies, 1)).toBe(4);
    // For a loss of a hundredth that is too much: it takes two more.
    expect(passes(energies, 0.01)).toBe(6);
    // Gains that halve each time: 1.25e-4 remain after the last.
    const slow = [0, 0.5, 0.75, 0.875, 0.9375, 1 - 2 ** -12, 1 - 2 ** -13];
    expect(passes(slow, 1)).toBe(7);
  });

  it('ignores rounding', () => {
    const energies = [1, 1 + 1e-8, 1 - 1e-8, 1 + 1e-8, 1 - 1e-8];
    expect(passes(energies, 1e-9, 2 ** -24)).toBe(3);
    expect(passes(energies, 1e-9)).toBeUndefined();
  });

  it('restarts on request', () => {
    const convergence = new Convergence(2 ** -53);
    const same = iterate([1], 2);
    for (let pass = 0; pass < 2; pass++) expect(convergence.isReached(same, 1)).toBe(false);
    convergence.restart();
    const reached = [1, 2, 3].map(() => convergence.isReached(same, 1));
    expect(reached).toEqual([false, false, true]);
  });
});
