/**
 * The plan of a sweep in parts, as data in a file: the command line, fingerprints of the files that it reads, and the
 * units of each part.
 */
import fs from 'node:fs';
import path from 'node:path';
import * as z from 'zod';
import { UserError } from '../../base/errors.js';
import { setting } from '../../base/text/setting.js';
import { changedInput, fingerprintOf } from '../fingerprint.js';
import {
  numberedParts,
  PLAN_VALUES,
  type PlanFormat,
  planHead,
  readPlan,
  withHash,
} from '../plan-file.js';
import { exactJsonOrUndefined } from './exact-json.js';

const SWEEP_PLAN_SCHEMA = 'minimind/sweep-plan@1';

const { count, name, hash } = PLAN_VALUES;

const valuesSchema = z.strictObject({
  ...planHead(SWEEP_PLAN_SCHEMA),
  command: name,
  /** The command line without the flags of parts and of the answer. */
  arguments: z.array(z.string()),
  /** Folder from which its paths are read. */
  folder: name,
  /** Paths are absolute, or those of presets. */
  inputs: z.array(z.strictObject({ path: name, bytes: count, sampleSha256: hash })),
  units: z.strictObject({
    /** Plural noun: `models`. */
    name,
    count,
    /** SHA-256 of what the results depend on beyond the inputs: the list of units. */
    sha256: hash,
  }),
  /** The engine of the values, as exact JSON; `null` where every machine gives the same. */
  backend: z.string().refine((text) => exactJsonOrUndefined(text) !== undefined, 'expected JSON'),
  /** Processors of a task. */
  cpus: z.int().min(1),
  /** Predicted peak of a task. */
  memoryBytes: count,
  parts: numberedParts({
    /** First unit, and the one after the last. */
    first: count,
    end: count,
    /** Time of a slow machine. */
    seconds: z.number().min(0),
  }),
});

/** Refuses a plan whose parts are not numbered from 1, or do not have each unit once. */
function refuseGaps(
  { units, parts }: Pick<z.infer<typeof valuesSchema>, 'units' | 'parts'>,
  context: z.core.$RefinementCtx,
): void {
  let next = 0;
  for (const [index, { part, first, end }] of parts.entries()) {
    const isEmpty = first === 0 && end === 0;
    if (part === index + 1 && (isEmpty || (first === next && end > first))) {
      next = Math.max(next, end);
      continue;
    }
    const message = 'expected parts from 1 on, each with the units after those of the one before';
    context.addIssue({ code: 'custom', path: ['parts', index], message });
    return;
  }
  if (next === units.count || parts.length === 0) return;
  const message = `expected parts of all ${units.count} units, found those of ${next}`;
  context.addIssue({ code: 'custom', path: ['parts'], message });
}

const planSchema = valuesSchema.superRefine(refuseGaps);

export type SweepPlan = z.infer<typeof planSchema>;
export type SweepPart = SweepPlan['parts'][number];

const formatFor = (command: string): PlanFormat<SweepPlan> => ({
  name: SWEEP_PLAN_SCHEMA,
  content: planSchema,
  command,
});

export const hashedSweepPlan = (content: Omit<SweepPlan, 'schema' | 'hash'>): SweepPlan =>
  withHash(formatFor(content.command), content);

/** @throws UserError as `readPlan`, and for a plan of another command. */
export async function readSweepPlan(
  file: string,
  version: string,
  command: string,
): Promise<SweepPlan> {
  const plan = await readPlan(formatFor(command), file, version);
  if (plan.command === command) return plan;
  throw new UserError('refused-file', `${file} is a plan of minimind ${plan.command}`, {
    suggestion: `write minimind ${plan.command} ${setting('plan', file)}`,
  });
}

/** Size up to which all bytes of an input are hashed: more than the largest text. */
const WHOLE_BYTES = 2 ** 26;

/**
 * Fingerprints of files, by their absolute paths.
 * @param presets Folder of the presets, where an installation has it. Files in it are named by their path below it.
 */
export const inputFingerprints = (files: readonly string[], presets: string): SweepPlan['inputs'] =>
  [...new Set(files.map((file) => path.resolve(file)))].toSorted().map((file) => {
    const below = path.relative(presets, file);
    const isPreset = !below.startsWith('..') && !path.isAbsolute(below);
    return { ...fingerprintOf(file, WHOLE_BYTES), path: isPreset ? below : file };
  });

/** @throws UserError when an input is not the one of the plan. */
export function refuseChangedInputs({ inputs }: SweepPlan, presets: string): void {
  for (const { path: input, bytes, sampleSha256 } of inputs) {
    const file = path.resolve(presets, input);
    const size = fs.statSync(file, { throwIfNoEntry: false })?.size;
    if (size === undefined)
      throw changedInput(`${file} is missing, and was read when it was planned`);
    if (size !== bytes)
      throw changedInput(`${file} has ${size} bytes, and ${bytes} when it was planned`);
    if (fingerprintOf(file, WHOLE_BYTES).sampleSha256 !== sampleSha256) {
      throw changedInput(`${file} has other bytes than when it was planned`);
    }
  }
}

/** Models of the hub in the command line, at their commits. */
export const modelsOfSweep = ({ arguments: words }: SweepPlan): string[] => [
  ...new Set(words.flatMap((word) => /^(?:--[\w-]+=)?(hf:.*)$/s.exec(word)?.[1] ?? [])),
];
