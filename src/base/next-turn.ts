/** Gives the event loop a turn, so that signals, timers and progress are handled between two units of work. */
export const nextTurn = (): Promise<void> =>
  new Promise((done) => {
    // Browsers have no `setImmediate`.
    if (typeof setImmediate === 'function') setImmediate(done);
    else setTimeout(done);
  });
