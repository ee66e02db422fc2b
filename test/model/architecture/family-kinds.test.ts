import { describe, expect, it } from 'vitest';
import { FAMILY_NAMES, loadFamily } from '../../../src/model/architecture/families.js';
import type { Architecture } from '../../../src/model/architecture/family.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { primitivesOf } from '../../../src/model/operations/lower.js';
import { FAMILY_CASES, familyCase, familyOf } from '../../engine/family-cases.js';

/** Primitives without a state; all others keep one from token to token. */
const STATELESS: readonly string[] = [
  ...['matmul', 'router', 'lookup', 'norm', 'dispatch', 'elementwise'],
];

/** Architecture of a model, by the primitives of its layers. */
function architectureOf(model: LanguageModel): Architecture {
  const kinds = new Set<string>(primitivesOf(model).map(({ kind }) => kind));
  const attends = kinds.delete('scores');
  kinds.delete('indexScores');
  const isRecurrent = [...kinds].some((kind) => !STATELESS.includes(kind));
  if (isRecurrent) return attends ? 'hybrid' : 'recurrent';
  return kinds.has('router') ? 'mixture' : 'dense';
}

describe('a family', () => {
  it('declares the architecture of at least one of its models', async () => {
    const architectures = new Map<string, Set<Architecture>>();
    for (const fixture of FAMILY_CASES) {
      const { model } = await familyCase(fixture);
      const family = familyOf(fixture);
      const known = architectures.get(family) ?? new Set();
      architectures.set(family, known.add(architectureOf(model)));
    }
    const missing: string[] = [];
    for (const name of FAMILY_NAMES) {
      const { architecture = 'dense' } = await loadFamily(name);
      const kinds = architectures.get(name);
      if (kinds && !kinds.has(architecture)) missing.push(`${name}: ${[...kinds].join()}`);
    }
    expect(architectures.size).toBeGreaterThan(50);
    expect(missing).toEqual([]);
  });
});
