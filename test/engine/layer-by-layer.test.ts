import { expect, it } from 'vitest';
import { runLayerByLayer } from '../../src/engine/layer-by-layer.js';
import { openOnnx } from '../../src/engine/onnx/onnx-engine.js';
import { familyCase } from './family-cases.js';
import { differenceAt } from './fixture-models.js';
import { describeWithOnnx } from './onnx/support.js';

async function layerByLayer(place: string) {
  const { model, weights, ids, expected } = await familyCase(place);
  const engine = await openOnnx({ threads: 1 });
  const { output } = await runLayerByLayer({
    ...{ engine, model, weights, ids, keepsBlocks: false },
    watch: () => {},
  });
  return { output, expected: expected.get('logits') };
}

describeWithOnnx('layer by layer', () => {
  it.each(['hf/llama', 'hf/deepseek_v32-7-1'])('%s has the logits of the whole', async (place) => {
    const { output, expected } = await layerByLayer(place);
    if (expected === undefined) throw new Error('no logits');
    expect(differenceAt(output, expected, 1)).toBeLessThan(1e-3);
  });

  it.each(['hf/gemma3n-text-7-17', 'hf/glm_moe_dsa-7-11'])(
    '%s is refused, whose layers read values of earlier ones',
    async (place) => {
      await expect(layerByLayer(place)).rejects.toThrow(
        /runs only as a whole: .* reads values of an earlier layer/,
      );
    },
  );
});
