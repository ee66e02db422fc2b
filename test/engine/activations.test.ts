import { expect, it } from 'vitest';
import type { RunInput } from '../../src/engine/engine.js';
import { activation } from '../../src/model/architecture/constructors/basic-layers.js';
import { ACTIVATIONS, type ActivationName } from '../../src/model/architecture/layer.js';
import { withEachEngine } from './both-engines.js';
import { referenceEngine } from './reference-engine.js';
import { identity } from './tfjs/given-weights.js';

const POINTS = [-30, -5, -3, -1, -0.5, -0.01, 0, 0.01, 0.5, 0.7, 1, 3, 5, 6.5, 12, 30];

const inputs: RunInput['inputs'] = [
  { shape: [1, POINTS.length, 1], data: Float32Array.from(POINTS) },
];

withEachEngine('an activation matches its definition:', (load) => {
  it.each(Object.keys(ACTIVATIONS) as ActivationName[])('%s', async (name) => {
    const layer = activation('act', name);
    const expected = await (await referenceEngine().load(layer, identity)).run({ inputs });
    const program = await load(layer, identity);
    const { output } = await program.run({ inputs });
    await program.release();
    for (const [at, value] of expected.output.data.entries()) {
      const actual = output.data[at] ?? Number.NaN;
      expect(Math.abs(actual - value), `at ${POINTS[at]}`).toBeLessThan(
        2e-6 * (1 + Math.abs(value)),
      );
    }
  });
});
