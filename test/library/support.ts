import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { jsonPieces } from '../../src/base/text/escape.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

/** The built library, as its users import it. */
export const library: typeof import('../../src/index.js') = await import(
  pathToFileURL(inPackage('dist/index.js')).href
);

/** Keys of measured times, of speeds from them, and of the memory of this process and machine. */
const MEASURED = /seconds$|PerSecond$|^(?:start|peak|usable)Bytes$/i;

/** The JSON of a command. */
async function commandJson(words: readonly string[]): Promise<unknown> {
  const { stdout, stderr } = await runHere([...words, '--json', '--quiet']);
  expect(stdout, stderr).not.toBe('');
  return JSON.parse(stdout, withoutMeasured);
}

/** The JSON of a value, written as the commands write it. */
const jsonOf = (value: object): unknown =>
  JSON.parse([...jsonPieces(value)].join(''), withoutMeasured);

const withoutMeasured = (key: string, value: unknown) => (MEASURED.test(key) ? undefined : value);

/** Expects the answer of a command from the library. */
export async function expectAnswer(
  answer: object | Promise<object>,
  ...words: readonly string[]
): Promise<void> {
  const own = jsonOf(await answer);
  expect(own).toHaveProperty('schema');
  expect(own).toEqual(await commandJson(words));
}
