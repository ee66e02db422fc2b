/** Mutations of each reader: a few among the other tests, 10,000 with `npm run test:fuzz`. */
export const MUTATIONS = Number(process.env.MINIMIND_FUZZ ?? 50);

/** Of the first mutation; each one after it has the next. */
export const FIRST_SEED = Number(process.env.MINIMIND_FUZZ_SEED ?? 1);

/** Whether whole files are compared with PyTorch, which is asked for in a run of its own. */
export const COMPARES = process.env.MINIMIND_FUZZ !== undefined;

/** Whether a run of its own checks only that readers answer or refuse. */
export const WITHOUT_PYTORCH = process.env.MINIMIND_FUZZ_WITHOUT_PYTORCH === '1';

/** Files that both read, of each kind. */
export const AGREEMENTS = Math.min(MUTATIONS, 2000);

/** Much longer than any run takes. */
export const FUZZ_TIMEOUT_MS = 3_600_000;

/** How to see the mutation of a seed again. */
export const again = (seed: number) =>
  `MINIMIND_FUZZ=1 MINIMIND_FUZZ_SEED=${seed} npm run test:fuzz`;
