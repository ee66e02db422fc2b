/** Mutations of each reader: a few in the normal tests, 10,000 with `npm run test:fuzz`. */
export const MUTATIONS = Number(process.env.MINIMIND_FUZZ ?? 50);

/** Seed of the first mutation; each later mutation has the next seed. */
export const FIRST_SEED = Number(process.env.MINIMIND_FUZZ_SEED ?? 1);

/** Whether files are compared with PyTorch, which only `npm run test:fuzz` does. */
export const COMPARES = process.env.MINIMIND_FUZZ !== undefined;

/** Whether `npm run test:fuzz` checks only for crashes and refusals. */
export const WITHOUT_PYTORCH = process.env.MINIMIND_FUZZ_WITHOUT_PYTORCH === '1';

/** Files of each kind that both must read. */
export const AGREEMENTS = Math.min(MUTATIONS, 2000);

/** Much longer than any run takes. */
export const FUZZ_TIMEOUT_MS = 3_600_000;

/** Command that repeats the mutation of a seed. */
export const again = (seed: number) =>
  `MINIMIND_FUZZ=1 MINIMIND_FUZZ_SEED=${seed} npm run test:fuzz`;
