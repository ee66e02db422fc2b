/** Mutated files of every kind: each is read or refused, and never a fault of the reader. */
import { describe, expect, it } from 'vitest';
import { outcomeOf, READERS } from './readers.js';
import { again, FIRST_SEED, FUZZ_TIMEOUT_MS, MUTATIONS } from './settings.js';

const MOST_SHOWN = 10;

describe(`${MUTATIONS} mutations from seed ${FIRST_SEED}`, () => {
  it.each(Object.entries(READERS))(
    'of %s',
    async (_, make) => {
      const reader = make();
      const faults: string[] = [];
      let accepted = 0;
      for (let seed = FIRST_SEED; seed < FIRST_SEED + MUTATIONS; seed++) {
        try {
          if ((await outcomeOf(reader, seed)) === 'accepted') accepted++;
        } catch (error) {
          const { cause } = error as Error;
          const what = cause instanceof Error ? cause.stack : String(cause);
          faults.push(`seed ${seed} (${again(seed)}): ${what}`);
        }
      }
      expect(faults.slice(0, MOST_SHOWN)).toEqual([]);
      // Mutations that are all refused, or all harmless, test nothing. A single one is for looking at.
      if (MUTATIONS > 1) {
        expect(accepted).toBeGreaterThan(0);
        expect(accepted).toBeLessThan(MUTATIONS);
      }
    },
    FUZZ_TIMEOUT_MS,
  );
});
