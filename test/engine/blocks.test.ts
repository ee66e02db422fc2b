import { expect, it } from 'vitest';
import { randomWeights } from '../../src/engine/weights/weights.js';
import { TINY } from '../check/test-contexts.js';
import { withEachEngine } from './both-engines.js';
import { modelOfConfig } from './fixture-models.js';

const ids = { batch: 2, tokens: 3, data: Int32Array.of(1, 2, 3, 4, 5, 6) };

withEachEngine('outputs of blocks', (load) => {
  it('are kept unless disabled, which does not change the logits', async () => {
    const model = modelOfConfig(TINY);
    const weights = randomWeights(model, 1);
    const [usual, bare] = [
      await load(model, weights),
      await load(model, weights, { blocks: false }),
    ];
    const [kept, without] = [await usual.run({ ids }), await bare.run({ ids })];
    await usual.release();
    await bare.release();
    expect([...kept.blocks.keys()]).toEqual(['layers.0', 'layers.1']);
    expect(without.blocks).toEqual(new Map());
    expect(without.output).toEqual(kept.output);
  });
});
