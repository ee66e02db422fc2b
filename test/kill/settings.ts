/** Number of kills: a few with `npm run test:sweeps`, all possible ones with `npm run test:kill`. */
const kills = Number(process.env.MINIMIND_KILLS ?? 0);

/** Positions of a few kills in a run, from 0 to 1. */
const PLACES = [0.1, 0.3, 0.5, 0.7, 0.9] as const;

export const KILLS =
  kills > 0
    ? ({ kills, operations: 'each' } as const)
    : ({ kills: PLACES.length, operations: PLACES } as const);

/** The same for one of several tests of a program with a slow start, which share the few kills. */
export const killsOf = (test: number) =>
  kills > 0
    ? KILLS
    : ({ kills: 1, operations: PLACES.filter((_, at) => at === test % PLACES.length) } as const);

/** Much longer than a test with kills takes. */
export const KILL_TIMEOUT_MS = 3_600_000;
