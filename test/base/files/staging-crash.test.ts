import fs from 'node:fs';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { sampled } from '../../sampled.js';
import { freshStaging, withFault, withoutDisk } from './faults.js';
import {
  inFolder,
  MODEL,
  MODEL_FILE,
  OLD,
  options,
  putTexts,
  STAGING,
  type Texts,
  textsIn,
  writeAll,
} from './outputs.js';

interface Scenario {
  readonly kind: 'file' | 'folder';
  /** Earlier content of the folder, by relative path. */
  readonly old: Texts;
  readonly output: Texts;
}

const inOut = (texts: Texts): Texts =>
  Object.fromEntries(Object.entries(texts).map(([name, text]) => [`out/${name}`, text]));

const SCENARIOS: readonly (readonly [string, Scenario])[] = [
  ['a new folder', { kind: 'folder', old: {}, output: MODEL }],
  ['a folder in the place of another', { kind: 'folder', old: inOut(OLD), output: MODEL }],
  ['a new file', { kind: 'file', old: {}, output: MODEL_FILE }],
  [
    'a file in the place of another, with a companion of both',
    { kind: 'file', old: { 'config.yaml': 'old config', out: 'old' }, output: MODEL_FILE },
  ],
  [
    'a file in the place of one without companions',
    { kind: 'file', old: { out: 'old' }, output: MODEL_FILE },
  ],
];

const newOf = ({ kind, output }: Scenario) => (kind === 'folder' ? inOut(output) : output);

function begin({ old }: Scenario): void {
  fs.rmSync(inFolder(), { recursive: true });
  fs.mkdirSync(inFolder());
  putTexts(old);
}

/** A whole run, as if in a new process. */
async function run({ kind, output }: Scenario, resume: boolean): Promise<void> {
  const Staging = freshStaging();
  const staging = await Staging.open(
    inFolder('out'),
    options({ kind, force: true, resume, identity: kind }),
  );
  try {
    if (!staging.isInPlace) await writeAll(staging, output);
    await staging.commit();
  } catch (error) {
    await staging.abandon();
    throw error;
  }
}

/** A run that fails right after the start. */
async function touch({ kind }: Scenario): Promise<void> {
  const Staging = freshStaging();
  const staging = await Staging.open(
    inFolder('out'),
    options({ kind, force: true, identity: '?' }),
  );
  await staging.abandon();
}

const die = (scenario: Scenario, after: number, resume = false) =>
  withFault({ after, lasts: true, code: 'EIO' }, () => run(scenario, resume));

async function operationsOf(scenario: Scenario): Promise<number> {
  begin(scenario);
  const { operations, error } = await die(scenario, Number.POSITIVE_INFINITY);
  expect(error).toBeUndefined();
  // Two files and a commit need at least this many; with fewer, the loops here would check nothing.
  expect(operations).toBeGreaterThan(20);
  return operations;
}

/** Whether each file is in its place or was moved away from there. */
function isWhole(texts: Texts): boolean {
  const all = textsIn();
  return Object.entries(texts).every(
    ([name, text]) => all[name] === text || all[`${STAGING}/replaced/${name}`] === text,
  );
}

function expectWhole(scenario: Scenario, when: string): void {
  // A run may replace the output of the one before.
  const isAnyWhole = [scenario.old, newOf(scenario)].some(isWhole);
  expect(isAnyWhole, `${when}: ${JSON.stringify(textsIn())}`).toBe(true);
}

beforeAll(withoutDisk);
afterAll(() => {
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
});

describe.each(SCENARIOS)('%s, when the process dies', (_, scenario) => {
  it('at any operation, the old or the new output is whole, and a later run completes the new one', async () => {
    const operations = await operationsOf(scenario);
    for (let after = 0; after < operations; after++) {
      begin(scenario);
      await die(scenario, after);
      expectWhole(scenario, `after ${after}`);
      await run(scenario, true);
      expect(textsIn(), `after ${after}`).toEqual(newOf(scenario));
    }
  });

  it('at any operation, a later run that fails restores the old output or keeps the new one', async () => {
    const operations = await operationsOf(scenario);
    const outcomes = new Set<string>();
    for (let after = 0; after < operations; after++) {
      begin(scenario);
      await die(scenario, after);
      await touch(scenario);
      outcomes.add(JSON.stringify(textsIn()));
    }
    expect([...outcomes]).toEqual(
      [scenario.old, newOf(scenario)].map((texts) => JSON.stringify(texts)),
    );
  });

  it('in several runs one after another, the next run completes the output', async () => {
    const operations = await operationsOf(scenario);
    const moment = fc.integer({ min: 0, max: operations });
    await fc.assert(
      fc.asyncProperty(fc.array(moment, { minLength: 2, maxLength: 3 }), async (moments) => {
        begin(scenario);
        for (const after of moments) {
          await die(scenario, after, true);
          expectWhole(scenario, `after ${after}`);
        }
        await run(scenario, true);
        expect(textsIn()).toEqual(newOf(scenario));
      }),
      { numRuns: 15 },
    );
  });
});

describe.each(sampled(SCENARIOS, 2, ([, { kind }]) => kind))(
  '%s, when the system fails',
  (_, scenario) => {
    // EPERM is also the error of a file system without links.
    it.each(['EIO', 'EPERM'])('with %s at any operation, nothing is lost', async (code) => {
      const operations = await operationsOf(scenario);
      for (let after = 0; after < operations; after++) {
        begin(scenario);
        const { error } = await withFault({ after, lasts: false, code }, () =>
          run(scenario, false),
        );
        const inPlace = Object.fromEntries(
          Object.entries(textsIn()).filter(([name]) => !name.startsWith(STAGING)),
        );
        // A run without an error must have written the new output.
        const expected = error === undefined ? newOf(scenario) : scenario.old;
        expect(inPlace, `after ${after}: ${error}`).toEqual(expected);
        if (error !== undefined) expect(error).toMatchObject({ message: /^cannot write/ });
        await run(scenario, true);
        expect(textsIn(), `after ${after}`).toEqual(newOf(scenario));
      }
    });
  },
);
