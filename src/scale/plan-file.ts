/** Files of plans in parts: JSON with a schema, the version of minimind, a hash over all of it, and numbered parts. */

import { createHash } from 'node:crypto';
import path from 'node:path';
import * as z from 'zod';
import { UserError, usageError } from '../base/errors.js';
import { readText } from '../base/files/read-file.js';
import { writeWhole } from '../base/files/write-whole.js';
import { jsonOrUndefined } from '../base/text/json.js';
import { setting } from '../base/text/setting.js';
import { counted } from '../base/text/words.js';
import { isRecord } from '../base/values.js';
import { checkDocument } from '../config/check-document.js';
import { documentOfData, parseDocument } from '../config/document.js';
import { MAX_DOCUMENT_BYTES } from '../config/source.js';

/** Values of every plan. */
export interface HashedPlan {
  readonly schema: string;
  /** SHA-256 of all other values. */
  readonly hash: string;
  /** Version of minimind: another one may give other results. */
  readonly version: string;
  readonly parts: readonly {
    /** Number of the part, from 1. */
    readonly part: number;
  }[];
}

export interface PlanFormat<Plan extends HashedPlan> {
  readonly name: Plan['schema'];
  readonly content: z.ZodType<Plan>;
  /** Command that writes such a plan, for suggestions. */
  readonly command: string;
}

/** Most parts of a plan: more than schedulers take. */
const MOST_PARTS = 10_000;

/** Schemas of values in plans. */
export const PLAN_VALUES = {
  count: z.int().min(0),
  name: z.string().min(1),
  /** SHA-256. */
  hash: z.string().regex(/^[0-9a-f]{64}$/),
};

/** First keys of a plan. */
export const planHead = <Schema extends string>(schema: Schema) => ({
  schema: z.literal(schema),
  hash: PLAN_VALUES.hash,
  version: PLAN_VALUES.name,
});

/** Parts of a plan, each with its number and the values of a shape. */
export const numberedParts = <Shape extends z.ZodRawShape>(shape: Shape) =>
  z
    .array(z.strictObject({ part: z.int().min(1), ...shape }))
    .min(1)
    .max(MOST_PARTS);

/** @throws UserError for more parts than schedulers take. */
export function refuseTooManyParts(parts: number): void {
  if (parts <= MOST_PARTS) return;
  throw usageError(
    `${setting('parts')}: expected at most ${MOST_PARTS} parts, found ${parts}`,
    `write ${setting('parts', MOST_PARTS)}, or fewer`,
  );
}

export const sha256 = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex');

const hashOf = <Plan extends HashedPlan>({ hash: _, ...content }: Plan): string =>
  sha256(JSON.stringify(content));

/** A plan with its hash. */
export function withHash<Plan extends HashedPlan>(
  { name, content }: PlanFormat<Plan>,
  values: Omit<Plan, 'schema' | 'hash'>,
): Plan {
  // Parsed once, so that a plan has the order of keys that it has when it is read.
  const plan = content.parse({ schema: name, hash: '0'.repeat(64), ...values });
  return { ...plan, hash: hashOf(plan) };
}

/** The folder with the locks and results of a plan, next to a file. */
export function partsFolder(file: string, { hash }: Pick<HashedPlan, 'hash'>): string {
  const { dir, base } = path.parse(file);
  return path.join(dir, `.${base}.parts-${hash.slice(0, 12)}`);
}

/** More than the plan of 99,999 shards of as many input files. */
const MOST_BYTES = 256e6;

/** @throws UserError when the file exists and `force` is off, or cannot be written. */
export const writePlan = (file: string, plan: HashedPlan, force: boolean): Promise<void> =>
  writeWhole(file, force, (sink) => sink.write(Buffer.from(`${JSON.stringify(plan, null, 1)}\n`)), {
    isShort: true,
  });

/** @throws UserError for a file that is missing, not such a plan, edited, or of another version of minimind. */
export async function readPlan<Plan extends HashedPlan>(
  { name, content, command }: PlanFormat<Plan>,
  file: string,
  version: string,
): Promise<Plan> {
  const refuse = (message: string, suggestion: string, place = '') =>
    new UserError('refused-file', `${file}${place} ${message}`, { suggestion });
  const again = `plan again with ${command} ${setting('parts', 'N')} ${setting('plan', 'FILE')}`;
  const text = await readText(file, { most: MOST_BYTES, suggestion: again });
  const value = jsonOrUndefined(text);
  if (value === undefined)
    throw refuse(`is not JSON, expected a plan of ${setting('parts')}`, again);
  const schema = isRecord(value) ? value.schema : undefined;
  if (schema !== name) {
    const found = typeof schema === 'string' ? `the schema ${JSON.stringify(schema)}` : 'no schema';
    throw refuse(`is not a plan of ${setting('parts')}: expected ${name}, found ${found}`, again);
  }
  const { success, data } = content.safeParse(value);
  if (!success) {
    const { place, mistake } = firstMistake(file, value as Record<string, unknown>, text, content);
    throw refuse(`is not a valid plan: ${mistake}`, again, place);
  }
  if (hashOf(data) !== data.hash) {
    throw refuse('was changed after it was written: its content does not have its hash', again);
  }
  if (data.version !== version) {
    throw refuse(
      `is a plan of minimind ${data.version}, and this is ${version}`,
      `run minimind ${data.version} on every machine, or plan again`,
    );
  }
  return data;
}

/** The first mistake of a plan: its line, where the file is small enough to look for it, and the key with what is wrong. */
function firstMistake(
  file: string,
  value: Record<string, unknown>,
  text: string,
  schema: z.ZodType,
): { readonly place: string; readonly mistake: string } {
  const isSmall = Buffer.byteLength(text) <= MAX_DOCUMENT_BYTES;
  const document = isSmall ? parseDocument(text, file) : documentOfData(value, file);
  const { problems, errors } = checkDocument(document, { schema });
  const [first] = problems.filter(({ severity }) => severity === 'error');
  if (first === undefined) return { place: '', mistake: 'it is not as minimind writes it' };
  const { line, column, path, message } = first;
  const more = errors > 1 ? `, and ${counted(errors - 1, 'more mistake')}` : '';
  return {
    place: line === undefined ? '' : `:${line}:${column}`,
    mistake: `${path === undefined ? '' : `${path}: `}${message}${more}`,
  };
}
