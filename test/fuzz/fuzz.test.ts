/** Checks that every reader accepts or refuses mutated files and never crashes. */
import { describe, expect, it } from 'vitest';
import { outcomeOf, READERS } from './readers.js';
import { again, FIRST_SEED, FUZZ_TIMEOUT_MS, MUTATIONS } from './settings.js';

const MOST_SHOWN = 10;

describe(`${MUTATIONS} mutations from seed ${FIRST_SEED}`, () => {
  it.each(Object.entries(READERS))(
    'of %s are accepted or refused, and never crash the reader',
    async (_, make) => {
      const reader = make();
      const faults: string[] = [];
      let accepted = 0;
      for (let seed = FIRST_SEED; seed < FIRST_SEED + MUTATIONS; seed++) {
        try {
          if ((await outcomeOf(reader, seed)) === 'accepted') accepted++;
        } catch (error) {
          const { cause } = error as Error;
          const trace = cause instanceof Error ? cause.stack : String(cause);
          faults.push(`seed ${seed} (${again(seed)}): ${trace}`);
        }
      }
      expect(faults.slice(0, MOST_SHOWN)).toEqual([]);
      // Mutations that are all refused or all harmless test nothing. A single one is for inspection.
      if (MUTATIONS > 1) {
        expect(accepted).toBeGreaterThan(0);
        expect(accepted).toBeLessThan(MUTATIONS);
      }
    },
    FUZZ_TIMEOUT_MS,
  );
});
