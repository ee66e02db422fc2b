/**
 * Results of a part, as JSON lines in one file: a head, a line for each unit in order, and an end with the SHA-256 of all
 * lines before. A file is there as a whole or not at all.
 */

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import * as z from 'zod';
import { ERROR_CODES, UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { asText, isRecord } from '../../base/values.js';
import type { PartLock } from '../part-lock.js';
import { writeLocked } from '../result-file.js';
import { exactJson, exactJsonOrUndefined } from './exact-json.js';
import type { SweepPart, SweepPlan } from './sweep-plan.js';

const RESULTS_SCHEMA = 'minimind/sweep-results@1';

const headSchema = z.strictObject({
  schema: z.literal(RESULTS_SCHEMA),
  /** Hash of the plan. */
  plan: z.string(),
  part: z.int(),
  first: z.int(),
  end: z.int(),
});

const endSchema = z.strictObject({
  end: z.int(),
  sha256: z.string(),
  host: z.string(),
  seconds: z.number(),
});

/** Result of a unit: its value, or the error that it gives in a single run. */
type Outcome<Value> = { readonly value: Value } | { readonly error: UserError };

/** Error of a unit in a line. Errors of the machine are not results. */
const storedError = ({ code, message, suggestion, problems }: UserError) => ({
  error: { code, message, suggestion: suggestion ?? null, problems },
});

/** @throws Errors that another machine would not give. */
async function outcomeOf<Value>(compute: () => Promise<Value>): Promise<Outcome<Value>> {
  try {
    return { value: await compute() };
  } catch (error) {
    if (!(error instanceof UserError) || ERROR_CODES[error.code].exitCode !== 2) throw error;
    return { error };
  }
}

/** Results of a part, in a folder of those of its plan. */
interface PartResults {
  readonly folder: string;
  readonly plan: SweepPlan;
  readonly part: SweepPart;
}

/** Name of a part in the folder of its results and lock. */
export const partId = ({ part }: SweepPart): string => `part-${part}`;

export const resultsFile = ({ folder, part }: Pick<PartResults, 'folder' | 'part'>): string =>
  path.join(folder, `${partId(part)}.jsonl`);

/** Writes the results of a part. @throws UserError when the file cannot be written; rethrows errors of `compute`. */
export async function writeResults(
  results: PartResults,
  lock: PartLock,
  compute: (unit: number) => Promise<unknown>,
): Promise<void> {
  const start = performance.now();
  const { plan, part } = results;
  const { part: number, first, end } = part;
  await writeLocked(resultsFile(results), partId(part), lock, async (sink) => {
    const hash = createHash('sha256');
    const add = (line: string) => {
      const bytes = Buffer.from(`${line}\n`);
      hash.update(bytes);
      return sink.write(bytes);
    };
    await add(
      JSON.stringify({ schema: RESULTS_SCHEMA, plan: plan.hash, part: number, first, end }),
    );
    for (let unit = first; unit < end; unit++) {
      const outcome = await outcomeOf(() => compute(unit));
      await add(
        exactJson({ unit, ...('error' in outcome ? storedError(outcome.error) : outcome) }),
      );
      lock.add(1);
    }
    const seconds = (performance.now() - start) / 1000;
    const last = { end, sha256: hash.digest('hex'), host: os.hostname(), seconds };
    await sink.write(Buffer.from(`${JSON.stringify(last)}\n`));
  });
}

/** Lines of the units of a part, checked while they are read. */
async function* readResults<Value>(results: PartResults): AsyncGenerator<Outcome<Value>> {
  const { part } = results;
  const file = resultsFile(results);
  const refuse = (message: string) =>
    new UserError('refused-file', `${file}: ${message}`, {
      suggestion: `run the part again: ${setting('part', part.part)}`,
    });
  const hash = createHash('sha256');
  let unit = part.first;
  let number = 0;
  let end: z.infer<typeof endSchema> | undefined;
  for await (const line of resultLines(file, refuse)) {
    number++;
    const at = `line ${number}`;
    if (end !== undefined) throw refuse(`${at}: expected the end of the file, found another line`);
    const value = exactJsonOrUndefined(line);
    if (value === undefined) throw refuse(`${at} is not JSON: the file was cut or changed`);
    if (number === 1) {
      const mistake = wrongHead(value, results);
      if (mistake !== undefined) throw refuse(mistake);
    } else if (endSchema.safeParse(value).success) end = endSchema.parse(value);
    else {
      const outcome = storedOutcome<Value>(value, unit);
      if (outcome === undefined) {
        throw refuse(`${at}: expected the result of unit ${unit}, found ${unitText(value)}`);
      }
      if (unit >= part.end) throw refuse(`${at}: found a result after the last unit`);
      yield outcome;
      unit++;
    }
    if (end === undefined) hash.update(`${line}\n`);
  }
  if (end === undefined) throw refuse(`the file was cut: expected an end after line ${number}`);
  if (unit !== part.end || end.end !== unit) {
    throw refuse(`expected results of ${part.end - part.first} units, found ${unit - part.first}`);
  }
  if (end.sha256 !== hash.digest('hex')) {
    throw refuse('the results were changed: their SHA-256 is not the one at their end');
  }
}

/** The error of results that are not the whole ones of a part of this plan; undefined where they are. */
export async function brokenResults(results: PartResults): Promise<UserError | undefined> {
  const { first, end } = results.part;
  if (first === end) return undefined;
  try {
    for await (const _ of readResults(results));
    return undefined;
  } catch (error) {
    if (error instanceof UserError) return error;
    throw error;
  }
}

async function* resultLines(
  file: string,
  refuse: (message: string) => UserError,
): AsyncGenerator<string> {
  try {
    yield* createInterface({ input: fs.createReadStream(file), crlfDelay: 0 });
  } catch (error) {
    throw refuse(`cannot be read: ${(error as Error).message}`);
  }
}

/** The mistake in the head of results; undefined for the one of a part of this plan. */
function wrongHead(value: unknown, { plan, part }: PartResults): string | undefined {
  const { data } = headSchema.safeParse(value);
  if (data === undefined) return 'line 1: expected the head of the results of a part';
  if (data.plan !== plan.hash) return 'these are results of another plan';
  return data.part === part.part ? undefined : `these are the results of part ${data.part}`;
}

/** The outcome in a line; undefined for another unit, or another form. */
function storedOutcome<Value>(line: unknown, unit: number): Outcome<Value> | undefined {
  if (!isRecord(line)) return undefined;
  const { unit: found, value, error, ...more } = line;
  if (found !== unit || Object.keys(more).length > 0) return undefined;
  if (error === undefined) return { value: value as Value };
  if (!isRecord(error) || !Object.hasOwn(ERROR_CODES, asText(error.code))) return undefined;
  const { code, message, suggestion, problems } = error as ReturnType<typeof storedError>['error'];
  return { error: new UserError(code, message, { problems, suggestion: suggestion ?? undefined }) };
}

const unitText = (line: unknown): string =>
  isRecord(line) && typeof line.unit === 'number' ? `that of unit ${line.unit}` : 'another line';

/**
 * Results of all units, read from the files of the parts. Units that are asked for in their order are read in one pass,
 * and only one is in memory.
 */
export class ResultsReader<Value> {
  readonly #folder: string;
  readonly #plan: SweepPlan;
  #lines: AsyncGenerator<Outcome<Value>> | undefined;
  #part: SweepPart | undefined;
  #next = 0;

  constructor(folder: string, plan: SweepPlan) {
    this.#folder = folder;
    this.#plan = plan;
  }

  /** @throws The error of a unit. */
  async value(unit: number): Promise<Value> {
    const isInPart = this.#part !== undefined && unit >= this.#next && unit < this.#part.end;
    if (!isInPart) await this.#open(unit);
    for (;;) {
      const { value, done } = (await this.#lines?.next()) ?? { done: true };
      if (done || value === undefined) throw new Error(`no result of unit ${unit}`);
      if (this.#next++ !== unit) continue;
      if ('error' in value) throw value.error;
      return value.value;
    }
  }

  async #open(unit: number): Promise<void> {
    await this.close();
    const part = this.#plan.parts.find(({ first, end }) => unit >= first && unit < end);
    if (part === undefined) throw new Error(`no unit ${unit}`);
    this.#part = part;
    this.#next = part.first;
    this.#lines = readResults({ folder: this.#folder, plan: this.#plan, part });
  }

  async close(): Promise<void> {
    await this.#lines?.return(undefined);
    this.#lines = undefined;
    this.#part = undefined;
  }
}
