/** ALiBi over 700 tokens, where Falcon's rounding to bfloat16 moves logits by percents. */
import { expect, it } from 'vitest';
import { openCheckpoint } from '../../src/checkpoint/open.js';
import type { StoredTensor } from '../../src/checkpoint/stored-tensor.js';
import { checkpointWeights } from '../../src/engine/weights/weights.js';
import { loadModelFile } from '../../src/input/model-input/read-model-file.js';
import { inPackage } from '../fixtures.js';
import { withEachEngine } from './both-engines.js';
import { idsOf, valuesOf } from './fixture-models.js';
import { rowsOf } from './sequences.js';
import { largestDifference } from './tfjs/support.js';

const [TOKENS, EVERY] = [700, 50];
const ids = idsOf([Array.from({ length: TOKENS }, (_, i) => (7 * i + Math.floor(i / 5)) % 61)]);

withEachEngine('ALiBi of many tokens', (load) => {
  it.each(['falcon', 'bloom', 'mpt'])('is that of the class: %s', async (kind) => {
    const folder = inPackage('fixtures/alibi', kind);
    const { model } = await loadModelFile(`${folder}/config.json`);
    const program = await load(model, checkpointWeights(model, openCheckpoint(folder)));
    const { output } = await program.run({ ids });
    await program.release();
    const stored = openCheckpoint(`${folder}/expected.safetensors`).tensors.get('logits');
    const expected = valuesOf(stored as StoredTensor);
    const width = 61;
    for (let at = 0; at < TOKENS; at += EVERY) {
      const row = expected.data.subarray((at / EVERY) * width, (at / EVERY + 1) * width);
      expect(largestDifference(rowsOf(output, at, at + 1), row), `${at}`).toBeLessThan(1e-4);
    }
  });
});
