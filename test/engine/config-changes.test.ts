import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { parseDocument } from '../../src/config/document.js';
import type { WeightSource } from '../../src/engine/weights/weights.js';
import { modelOf } from '../../src/input/model-input/model-file.js';
import { inPackage } from '../fixtures.js';
import { idsOf } from './fixture-models.js';
import { referenceEngine } from './reference-engine.js';

interface Change {
  readonly key: string;
  readonly config: Readonly<Record<string, unknown>>;
  /** Logits of transformers, where it accepts the config. */
  readonly logits?: readonly (readonly number[])[];
  readonly refused?: string;
}

interface Changes {
  readonly ids: readonly number[];
  readonly cases: readonly Change[];
}

/** The variable can name another file of `fixtures/hf/changes.py make` to compare. */
const file = process.env.MINIMIND_CONFIG_CHANGES ?? inPackage('fixtures/config-changes.json');
const { ids, cases } = JSON.parse(fs.readFileSync(file, 'utf8')) as Changes;

const CRC = Uint32Array.from({ length: 256 }, (_, byte) => {
  let rest = byte;
  for (let bit = 0; bit < 8; bit++) rest = rest & 1 ? (rest >>> 1) ^ 0xedb88320 : rest >>> 1;
  return rest;
});

const crc32 = (text: string) =>
  ~[...Buffer.from(text)].reduce((sum, byte) => (sum >>> 8) ^ (CRC[(sum ^ byte) & 255] ?? 0), ~0);

/** The same weights as in `fixtures/hf/changes.py`. */
const weights: WeightSource = {
  rangeOf: () => undefined,
  read({ name, shape }, first, target) {
    const start = crc32(name);
    const isMatrix = shape.length > 1;
    for (let at = 0; at < target.length; at++) {
      let x = (Math.imul(first + at, 2654435761) + start) >>> 0;
      x = Math.imul(x ^ (x >>> 16), 0x7feb352d) >>> 0;
      x = Math.imul(x ^ (x >>> 15), 0x846ca68b) >>> 0;
      const part = ((x ^ (x >>> 16)) >>> 0) / 2 ** 32;
      target[at] = isMatrix ? part * 0.8 - 0.4 : 0.5 + part / 2;
    }
  },
};

type Outcome = { readonly refused: string } | { readonly logits: Float32Array };

async function outcomeOf({ config, logits }: Change): Promise<Outcome> {
  try {
    const document = parseDocument(JSON.stringify(config), 'config.json');
    const { model } = await modelOf(document);
    // The engines refuse a longer input.
    if (model.positions < ids.length) return { refused: 'fewer positions than tokens' };
    // Without a size, the model can have the default size of the class, which is too large.
    if (!logits) return { refused: 'nothing to compare' };
    const program = await referenceEngine().load(model, weights);
    const { output } = await program.run({ ids: idsOf([ids]) });
    return { logits: output.data };
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    return { refused: error.problems.map(({ message }) => message).join('; ') || error.message };
  }
}

/** Largest difference, relative to the largest expected value. */
function difference(actual: Float32Array, expected: readonly number[]): number {
  if (actual.length !== expected.length) return Number.POSITIVE_INFINITY;
  const largest = Math.max(...expected.map(Math.abs));
  return Math.max(...expected.map((value, at) => Math.abs(value - (actual[at] ?? 0)))) / largest;
}

const LARGEST_DIFFERENCE = 1e-3;

/** Families with fewer cases are judged together, because one refused case would decide. */
const FEW_CASES = 4;

/** A key that gives tensors the names of a file, while these weights follow the names in memory. */
const RENAMING = 'architectures';

// A warning does not excuse a difference: it states that the key has no effect.
describe('a config.json with a changed key is refused, or gives the logits of transformers:', () => {
  /** Cases of each family with logits, and those that were compared. */
  const counts = new Map<unknown, { computed: number; compared: number }>();

  it.each(cases.map((change, at) => ({ at, kind: change.config.model_type, ...change })))(
    '$at: $kind, $key',
    async (change) => {
      const outcome = await outcomeOf(change);
      if (change.logits === undefined) return;
      const ofFamily = counts.get(change.kind) ?? { computed: 0, compared: 0 };
      counts.set(change.kind, ofFamily);
      ofFamily.computed++;
      if ('refused' in outcome || change.key === RENAMING) return;
      ofFamily.compared++;
      const largest = difference(outcome.logits, change.logits.flat());
      expect(largest).toBeLessThan(LARGEST_DIFFERENCE);
    },
  );

  it('most cases of each family are compared', () => {
    const sum = { computed: 0, compared: 0 };
    const large = [...counts].filter(([, each]) => {
      if (each.computed >= FEW_CASES) return true;
      sum.computed += each.computed;
      sum.compared += each.compared;
      return false;
    });
    const few = [...large, ['the others', sum] as const].filter(
      ([, { computed, compared }]) => computed > 0 && compared <= computed / 2,
    );
    expect(few).toEqual([]);
  });
});
