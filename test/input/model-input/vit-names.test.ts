import { describe, expect, it } from 'vitest';
import { parseDocument } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { stateDictOf } from '../../../src/model/architecture/walk.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { runHere } from '../../run-here.js';
import { filesOf } from '../repository/layouts.js';

/** Names in files, as `save_pretrained` of transformers 5.18 writes them (conversion_mapping.py). */
const SAVED: Readonly<Record<string, readonly (readonly [RegExp, string])[]>> = {
  vit: [
    [/^(vit\.)?layers\./, '$1encoder.layer.'],
    [/attention\.o_proj/, 'attention.output.dense'],
    [/mlp\.fc1/, 'intermediate.dense'],
    [/mlp\.fc2/, 'output.dense'],
  ],
  dinov2: [[/attention\.o_proj/, 'attention.output.dense']],
};

const PROJECTIONS = [
  [/attention\.q_proj/, 'attention.attention.query'],
  [/attention\.k_proj/, 'attention.attention.key'],
  [/attention\.v_proj/, 'attention.attention.value'],
] as const;

describe('a file of an encoder of images', () => {
  it.each([
    ['vit', 'ViTForImageClassification', { intermediate_size: 16 }],
    ['vit', 'ViTModel', { intermediate_size: 16 }],
    ['dinov2', 'Dinov2Model', {}],
  ])('has the names of its files, not of its class: %s, %s', async (kind, name, more) => {
    const config = JSON.stringify({
      ...{ model_type: kind, architectures: [name], image_size: 28, patch_size: 14 },
      ...{ hidden_size: 8, num_hidden_layers: 2, num_attention_heads: 2, ...more },
    });
    const { model } = await modelOf(parseDocument(config, 'config.json'));
    const changes = [...(SAVED[kind] ?? []), ...PROJECTIONS];
    const tensors = Object.fromEntries(
      stateDictOf(model).map(({ name: own, tensor: { shape } }) => [
        changes.reduce((text, [from, to]) => text.replace(from, to), own),
        ['F32', ...shape] as const,
      ]),
    );
    expect(Object.keys(tensors).join()).toContain('attention.attention.query');
    const files = { 'config.json': config, 'model.safetensors': tensors };
    const { code, stdout, stderr } = await runHere(['verify', folderOf(filesOf({ files }))]);
    expect([code, stdout], stderr).toEqual([0, expect.stringMatching(/^matches: /)]);
  });

  const TINY = { hidden_size: 8, num_hidden_layers: 2, num_attention_heads: 2 };
  it.each([
    ['clip_text_model', 'CLIPTextModel', 'text_model.', ['embeddings.position_ids']],
    ['clip_vision_model', 'CLIPVisionModel', 'vision_model.', ['embeddings.position_ids']],
    ['siglip_text_model', 'SiglipTextModel', 'text_model.', []],
    ['siglip_vision_model', 'SiglipVisionModel', 'vision_model.', []],
    ['bert', 'BertModel', 'bert.', ['embeddings.position_ids']],
    ['xlm-roberta', 'XLMRobertaModel', 'roberta.', []],
    ['distilbert', 'DistilBertModel', 'distilbert.', []],
  ])('can have a prefix that its class removes: %s, %s', async (kind, name, prefix, buffers) => {
    const sizes = kind === 'distilbert' ? { dim: 8, n_layers: 2, n_heads: 2 } : TINY;
    const config = JSON.stringify({ model_type: kind, architectures: [name], ...sizes });
    const { model } = await modelOf(parseDocument(config, 'config.json'));
    const tensors = Object.fromEntries([
      ...stateDictOf(model).map(({ name: own, tensor: { shape } }) => [
        `${prefix}${own}`,
        ['F16', ...shape] as const,
      ]),
      ...buffers.map((own) => [`${prefix}${own}`, ['I64', 1, 4]]),
    ]);
    const files = { 'config.json': config, 'model.safetensors': tensors };
    const { code, stdout, stderr } = await runHere(['verify', folderOf(filesOf({ files }))]);
    expect([code, stdout], stderr).toEqual([0, expect.stringMatching(/^matches: /)]);
  });
});
