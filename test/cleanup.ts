/**
 * Cleanups of helpers. Test files that share a process share the modules that they import, and a hook in such a module
 * would run for the first of these files alone; test/setup.ts runs for each.
 */
type Cleanup = () => void | Promise<void>;

const afterTest: Cleanup[] = [];
const afterFile: Cleanup[] = [];

/** Calls a function once, after the running test, or else after the next one. */
export const onTestEnd = (cleanup: Cleanup): void => void afterTest.push(cleanup);

/** Calls a function once, after the last test of the running file. */
export const onFileEnd = (cleanup: Cleanup): void => void afterFile.push(cleanup);

export const endTest = () => callAll(afterTest);
export const endFile = () => callAll(afterFile);

async function callAll(cleanups: Cleanup[]): Promise<void> {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
}
