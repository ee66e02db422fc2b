/** How much is killed: little among the other tests; with `npm run test:kill`, whatever can be. */
const kills = Number(process.env.MINIMIND_KILLS ?? 0);

export const KILLS =
  kills > 0 ? ({ kills, operations: 'each' } as const) : ({ kills: 5, operations: 5 } as const);

/** For a test that kills: much longer than any run of one takes. */
export const KILL_TIMEOUT_MS = 3_600_000;
