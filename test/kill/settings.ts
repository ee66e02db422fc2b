/** How much is killed: little among the other tests; with `npm run test:kill`, whatever can be. */
const kills = Number(process.env.MINIMIND_KILLS ?? 0);

/** Where a few kills come in a run, from 0 to 1. */
const PLACES = [0.1, 0.3, 0.5, 0.7, 0.9] as const;

export const KILLS =
  kills > 0
    ? ({ kills, operations: 'each' } as const)
    : ({ kills: PLACES.length, operations: PLACES } as const);

/** The same for one of several tests of a program that takes its time to start: few kills are few for all. */
export const killsOf = (test: number) =>
  kills > 0
    ? KILLS
    : ({ kills: 1, operations: PLACES.filter((_, at) => at === test % PLACES.length) } as const);

/** For a test that kills: much longer than any run of one takes. */
export const KILL_TIMEOUT_MS = 3_600_000;
