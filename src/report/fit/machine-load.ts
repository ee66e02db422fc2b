/** How busy a machine is, as text. */

/** @param load Processes that run or wait to, for each core; null where the system does not tell. */
export const loadText = (load: number | null): string =>
  load === null ? 'a load that is not told' : `a load of ${load.toFixed(2)} for each core`;
