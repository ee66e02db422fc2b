/** Files of plans in parts: JSON with a schema, the version of minimind, and a hash over all of it. */

import { createHash } from 'node:crypto';
import fs from 'node:fs';
import type * as z from 'zod';
import { UserError, usageError } from '../base/errors.js';
import { readText } from '../base/files/read-file.js';
import { writeWhole } from '../base/files/write-whole.js';
import { jsonOrUndefined } from '../base/text/json.js';
import { setting } from '../base/text/setting.js';
import { counted, isRecord } from '../base/text/words.js';
import { checkDocument } from '../config/check-document.js';
import { documentOfData, parseDocument } from '../config/document.js';
import { MAX_DOCUMENT_BYTES } from '../config/source.js';

export interface HashedPlan {
  readonly schema: string;
  /** SHA-256 of all other values. */
  readonly hash: string;
  /** Version of minimind: another one may give other results. */
  readonly version: string;
}

export interface PlanFormat<Plan extends HashedPlan> {
  readonly name: Plan['schema'];
  readonly content: z.ZodType<Plan>;
  /** Command that writes such a plan, for suggestions. */
  readonly command: string;
}

/** Most parts of a plan: more than schedulers take. */
export const MOST_PARTS = 10_000;

/** @throws UserError for more parts than schedulers take. */
export function refuseTooManyParts(parts: number): void {
  if (parts <= MOST_PARTS) return;
  throw usageError(
    `${setting('parts')}: expected at most ${MOST_PARTS} parts, found ${parts}`,
    `write ${setting('parts', MOST_PARTS)}, or fewer`,
  );
}

export const changedInput = (message: string): UserError =>
  new UserError('refused-file', message, {
    suggestion: 'restore the input, or plan again: finished parts of the old plan cannot be used',
  });

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

// Fingerprints of input files, from contents and never from times.

/** Bytes hashed at both ends of a file: headers, directories of archives. */
const END_BYTES = 64 * 1024;
const SAMPLE_BYTES = 4 * 1024;
const SAMPLES = 4;
const SAMPLED_BYTES = 2 * END_BYTES + SAMPLES * SAMPLE_BYTES;

/** An open file. */
export interface SampledFile {
  readonly size: number;
  readonly readInto: (bytes: Uint8Array, position: number) => void;
}

/**
 * SHA-256 of a file's size, its first and last 64 KiB and four samples between. A change of other bytes that keeps the
 * size is not found.
 * @param wholeBytes Size up to which all bytes of a file are hashed.
 */
export function sampleSha256(file: SampledFile, wholeBytes = SAMPLED_BYTES): string {
  const { size } = file;
  const hash = createHash('sha256').update(`${size}\n`);
  const add = (position: number, length: number) => {
    const bytes = Buffer.alloc(Math.max(0, Math.min(length, size - position)));
    file.readInto(bytes, position);
    hash.update(bytes);
  };
  if (size <= wholeBytes) add(0, size);
  else {
    add(0, END_BYTES);
    for (let sample = 1; sample <= SAMPLES; sample++) {
      add(Math.floor((size * sample) / (SAMPLES + 1)), SAMPLE_BYTES);
    }
    add(size - END_BYTES, END_BYTES);
  }
  return hash.digest('hex');
}

/** Path and size of a file, and its fingerprint. @throws System errors. */
export function fingerprintOf(
  path: string,
  wholeBytes: number,
): { readonly path: string; readonly bytes: number; readonly sampleSha256: string } {
  const descriptor = fs.openSync(path, 'r');
  try {
    const { size } = fs.fstatSync(descriptor);
    const readInto = (bytes: Uint8Array, position: number) => {
      for (let at = 0; at < bytes.length; ) {
        const read = fs.readSync(descriptor, bytes, at, bytes.length - at, position + at);
        if (read === 0) return;
        at += read;
      }
    };
    return { path, bytes: size, sampleSha256: sampleSha256({ size, readInto }, wholeBytes) };
  } finally {
    fs.closeSync(descriptor);
  }
}
