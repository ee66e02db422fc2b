import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { describeModel } from '../../../src/library/models/describe-model.js';
import type { Layer } from '../../../src/model/architecture/layer.js';
import { walk } from '../../../src/model/architecture/walk.js';

interface Chosen {
  readonly window: number | null;
  readonly layers: readonly string[];
}

/** Layer types that the config classes of transformers choose: fixtures/layer-types.py. */
const CHOSEN: Readonly<Record<string, Chosen>> = JSON.parse(
  fs.readFileSync('fixtures/layer-types.json', 'utf8'),
);

/** Their layers are of further kinds, or nine of them are refused. */
const LEFT_OUT = new Set(['deepseek_v4', 'gemma3n_text', 'inkling_text', 'qwen4_exp_text']);

/** Tokens of the windows of the attention in a block, 'all' without a window; empty without attention. */
const windowsIn = (block: Layer): (number | 'all')[] => {
  const found = walk(block).flatMap(({ layer }): (number | 'all')[] => {
    if (layer.kind === 'latentAttention') return ['all'];
    if (layer.kind !== 'attention') return [];
    return layer.spans.map(({ window }) => window?.tokens ?? 'all');
  });
  return [...new Set(found)];
};

describe('the windows of layers, by default those of the class', () => {
  it.each(Object.entries(CHOSEN).filter(([name]) => !LEFT_OUT.has(name)))(
    '%s',
    async (name, { window, layers }) => {
      const config = JSON.stringify({ model_type: name, num_hidden_layers: layers.length });
      const { model } = await describeModel(config, { file: 'config.json' });
      const own = model.blocks.map(windowsIn);
      const expected = layers.map((kind, at) => {
        if (/sliding|chunked/.test(kind)) return [window ?? expect.any(Number)];
        // Linear layers have no attention; a hybrid one may have it in a layer that others share.
        return /full/.test(kind) ? ['all'] : own[at];
      });
      expect(own).toEqual(expected);
    },
  );
});
