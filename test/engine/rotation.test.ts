import { expect, it } from 'vitest';
import { rotary } from '../../src/model/architecture/constructors/attention-layers.js';
import { withEachEngine } from './both-engines.js';

/**
 * Cosine and sine of position · base^(−2j / d) for base 10,000, d = 128 and position 4001, by pair j, where exponent,
 * power, inverse and angle are each rounded to float32 as in PyTorch. Computed with Python's struct and math. Rounded
 * only at the end, they would be −0.975657 and −0.219302 for j = 7.
 */
const FAR_OUT = {
  7: [-0.9756385, -0.2193846],
  10: [0.9996729, 0.0255759],
  18: [0.0105552, -0.9999443],
  20: [0.3605685, -0.9327327],
} as const satisfies Record<number, readonly [number, number]>;
const POSITION = 4001;

withEachEngine('the rotation', (load) => {
  it('equals the original at far positions', async () => {
    const headDim = 128;
    const layer = rotary('rope', { base: 10_000, headDim });
    const unread = {
      rangeOf: () => undefined,
      read: () => expect.unreachable('it has no weights'),
    };
    const tokens = POSITION + 1;
    const data = new Float32Array(tokens * headDim);
    // The first of each pair is one and the second zero, so the output is cosine and sine.
    data.fill(1, POSITION * headDim, POSITION * headDim + headDim / 2);
    const program = await load(layer, unread);
    const { output } = await program.run({ inputs: [{ shape: [1, tokens, headDim], data }] });
    await program.release();
    const row = output.data.subarray(POSITION * headDim);
    for (const [pair, [cosine, sine]] of Object.entries(FAR_OUT)) {
      expect(row[Number(pair)], `cosine ${pair}`).toBeCloseTo(cosine, 6);
      expect(row[Number(pair) + headDim / 2], `sine ${pair}`).toBeCloseTo(sine, 6);
    }
  });
});
