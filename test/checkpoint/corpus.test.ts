/** Files of every kind, each with its expected content or refusal: see fixtures/README.md. */
import { createHash } from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { ruleOf } from '../../src/checkpoint/checkpoint-rules.js';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import type { StoredTensor } from '../../src/checkpoint/stored-tensor.js';
import { readTensor } from '../../src/checkpoint/view.js';
import { inPackage } from '../fixtures.js';

interface Described {
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Hash of its little-endian, contiguous bytes. */
  readonly sha256: string;
}

interface Entry {
  readonly path: string;
  readonly format: string;
  /** `either`: refused, or read as exactly these tensors. */
  readonly expect: 'accept' | 'refuse' | 'either';
  readonly tensors?: Readonly<Record<string, Described>>;
}

const readManifest = (folder: string) =>
  JSON.parse(fs.readFileSync(path.join(folder, 'manifest.json'), 'utf8')) as {
    readonly entries: readonly Entry[];
  };

const byName = (tensors: Iterable<[string, Described]>) =>
  [...tensors].sort(([a], [b]) => (a < b ? -1 : 1));

function describeTensor(tensor: StoredTensor): Described {
  const sha256 = createHash('sha256').update(readTensor(tensor)).digest('hex');
  return { dtype: tensor.dtype, shape: tensor.shape, sha256 };
}

type Outcome = { readonly tensors: [string, Described][] } | { readonly refusedBy: string };

function outcomeOf(file: string): Outcome {
  try {
    const checkpoint = openCheckpoint(file);
    try {
      const tensors = [...checkpoint.tensors].map(([name, tensor]): [string, Described] => [
        name,
        describeTensor(tensor),
      ]);
      return { tensors: byName(tensors) };
    } finally {
      checkpoint.close();
    }
  } catch (error) {
    const rule = ruleOf(error);
    // Any other error is a bug of the reader.
    if (rule === undefined) throw error;
    return { refusedBy: rule };
  }
}

function expectOutcome(folder: string, entry: Entry): void {
  const outcome = outcomeOf(path.join(folder, entry.path));
  if (entry.expect === 'refuse') expect(outcome).toHaveProperty('refusedBy');
  if (entry.expect === 'accept') expect(outcome).not.toHaveProperty('refusedBy');
  if ('tensors' in outcome && entry.tensors) {
    expect(outcome.tensors).toEqual(byName(Object.entries(entry.tensors)));
  }
}

/** Defines one test for each file of a corpus. */
function testFiles(folder: string): void {
  const { entries } = readManifest(folder);
  it.each(entries.map((entry) => [entry.expect, entry.path, entry] as const))(
    'has the outcome "%s": %s',
    (...[, , entry]) => {
      expectOutcome(folder, entry);
    },
  );
}

describe('opening a file of fixtures/checkpoints', () =>
  testFiles(inPackage('fixtures/checkpoints')));

const corpus = process.env.MINIMIND_CORPUS;
if (corpus === undefined) {
  it.skip('opening the files of a whole corpus, in the folder MINIMIND_CORPUS', () => {});
} else {
  describe(`opening a file of ${corpus}`, () => testFiles(corpus));
}
