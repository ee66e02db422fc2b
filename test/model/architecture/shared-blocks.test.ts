import { describe, expect, it } from 'vitest';
import { loadFamily } from '../../../src/model/architecture/families.js';
import type { LanguageModel } from '../../../src/model/architecture/layer.js';
import { stateDictOf, tensorsOf, unreadTensors } from '../../../src/model/architecture/walk.js';

const HYBRID = 'hybrid';
const ALONE = 'linear_attention';

/** A model with two shared blocks: layers 0 and 3 use the first, layer 1 the second. */
async function zamba(changes: object = {}): Promise<LanguageModel> {
  const { schema, build } = await loadFamily('zamba2');
  const model = {
    family: 'zamba2',
    vocab_size: 20,
    hidden_size: 8,
    intermediate_size: 6,
    num_hidden_layers: 4,
    layers_block_type: [HYBRID, HYBRID, ALONE, HYBRID],
    num_attention_heads: 2,
    num_mem_blocks: 2,
    adapter_rank: 3,
    n_mamba_heads: 2,
    ...changes,
  };
  return build(schema.parse({ model }));
}

const PLACE = 'shared_transformer.feed_forward';
const ADAPTER = `${PLACE}.gate_up_proj_adapter_list`;

const namesWith = (model: LanguageModel, part: string) =>
  stateDictOf(model)
    .filter(({ name }) => name.includes(part))
    .map(({ name, tensor }) => [name, tensor.name]);

describe('blocks that layers share', () => {
  it('are stored once, with a name in each layer', async () => {
    const model = await zamba();
    expect(namesWith(model, `${PLACE}.down_proj`).sort()).toEqual([
      [`model.layers.0.${PLACE}.down_proj.weight`, `model.layers.0.${PLACE}.down_proj.weight`],
      [`model.layers.1.${PLACE}.down_proj.weight`, `model.layers.1.${PLACE}.down_proj.weight`],
      [`model.layers.3.${PLACE}.down_proj.weight`, `model.layers.0.${PLACE}.down_proj.weight`],
    ]);
  });

  it('have the adapters of all their layers in each layer', async () => {
    const model = await zamba();
    expect(namesWith(model, `${ADAPTER}.2.0`).sort()).toEqual([
      [`model.layers.0.${ADAPTER}.2.0.weight`, `model.layers.0.${ADAPTER}.2.0.weight`],
      [`model.layers.3.${ADAPTER}.2.0.weight`, `model.layers.0.${ADAPTER}.2.0.weight`],
    ]);
    expect(unreadTensors(model).size).toBe(0);
  });

  it('are not shared if the head is untied, and keep unread adapters', async () => {
    const model = await zamba({ tie_word_embeddings: false });
    const own = tensorsOf(model).map(({ name }) => name);
    expect(own).toContain(`model.layers.3.${PLACE}.down_proj.weight`);
    expect([...unreadTensors(model)].map(({ name }) => name)).toEqual([
      `model.layers.0.${ADAPTER}.2.0.weight`,
      `model.layers.0.${ADAPTER}.2.1.weight`,
      `model.layers.3.${ADAPTER}.0.0.weight`,
      `model.layers.3.${ADAPTER}.0.1.weight`,
    ]);
  });
});
