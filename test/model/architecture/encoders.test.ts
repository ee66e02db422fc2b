/**
 * Encoders, encoder-decoders and towers: names, shapes and counts of tiny models as their classes in transformers build
 * them (fixtures/encoders/make.py). MINIMIND_ENCODER_CASES names another folder of such files.
 */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, test } from 'vitest';
import { parseDocument } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { asWhole } from '../../../src/input/model-input/whole-model.js';
import { sumOfTensors } from '../../../src/model/architecture/equal-blocks.js';
import type { Param } from '../../../src/model/architecture/param.js';
import { stateDictOf } from '../../../src/model/architecture/walk.js';
import { forwardFlopsOf } from '../../../src/model/budget/flops.js';
import { stateOf } from '../../../src/model/budget/state.js';
import { inPackage } from '../../fixtures.js';

interface EncoderCase {
  readonly config: Readonly<Record<string, unknown>> & { readonly model_type: string };
  readonly parameters: number;
  readonly tensors: Readonly<Record<string, readonly number[]>>;
}

const FOLDER = process.env.MINIMIND_ENCODER_CASES ?? inPackage('fixtures', 'encoders');

const FILES = fs.readdirSync(FOLDER).filter((file) => file.endsWith('.json'));

const caseIn = (file: string) =>
  JSON.parse(fs.readFileSync(path.join(FOLDER, file), 'utf8')) as EncoderCase;

/** Whether a name is that of a language model, whose own tests compare it. */
const isOfLanguageModel = (name: string) => /language_model|text_model\.|lm_head/.test(name);

const isParameter = ({ role, elements }: Pick<Param, 'role' | 'elements'>) =>
  role === 'parameter' ? elements : 0;

describe('encoders, encoder-decoders and towers', () => {
  test.each(FILES)('%s: names, shapes and counts are those of the class', async (file) => {
    const { config, parameters, tensors } = caseIn(file);
    const loaded = await modelOf(parseDocument(JSON.stringify(config), 'config.json'));
    const { beside, warnings } = loaded;
    const { model } = asWhole(loaded);
    const entries = beside
      ? beside.flatMap((part) => part.tensors.map((tensor) => ({ name: tensor.name, tensor })))
      : stateDictOf(model);
    expect(Object.fromEntries(entries.map(({ name, tensor }) => [name, tensor.shape]))).toEqual(
      beside
        ? Object.fromEntries(Object.entries(tensors).filter(([name]) => !isOfLanguageModel(name)))
        : tensors,
    );
    expect(sumOfTensors(model, isParameter)).toBe(parameters);
    expect(warnings.filter(({ message }) => message.includes('unknown key'))).toEqual([]);
    expect(warnings.map(({ message }) => message).join()).toContain('described, not run');
  });

  test.each([
    ['llava', 'multimodal_projector_bias', 'yes'],
    ['llava', 'vision_feature_layer', 'all'],
    ['llava_next', 'vision_feature_layer', { last: true }],
    ['mistral3', 'spatial_merge_size', '2'],
    ['idefics3', 'scale_factor', 0],
    ['internvl', 'downsample_ratio', '0.5'],
    ['llava', 'vision_feature_layer', []],
    ['paligemma', 'projection_dim', -1],
    ['fuyu', 'patch_size', 'x'],
  ])('%s: says that its towers are not counted for a wrong %s: %j', async (type, key, value) => {
    const file = FILES.find((each) => caseIn(each).config.model_type === type) ?? '';
    const { config } = caseIn(file);
    const text = JSON.stringify({ ...config, [key]: value });
    const { beside, warnings } = await modelOf(parseDocument(text, 'config.json'));
    expect(beside).toBeUndefined();
    expect(warnings.map(({ message }) => message).join()).toContain(key);
  });

  // Counted by torch.utils.flop_counter (torch 2.13) on the classes of transformers 5.18, with eager attention.
  test.each([
    [
      'deberta-v2',
      'DebertaV2Model',
      { position_buckets: 16, conv_kernel_size: 3, share_att_key: true },
      1,
      754_176,
    ],
    [
      'deberta-v2',
      'DebertaV2Model',
      { position_buckets: 16, conv_kernel_size: 3, share_att_key: true },
      3,
      1_967_616,
    ],
    ['deberta-v2', 'DebertaV2Model', {}, 3, 3_308_544],
    ['deberta', 'DebertaModel', {}, 3, 1_889_280],
    ['deberta', 'DebertaModel', { talking_head: true }, 3, 1_975_680],
  ])(
    'FLOPs of %s, %s, %o, are those that PyTorch counts',
    async (kind, name, keys, batch, flops) => {
      const config = {
        ...{ model_type: kind, architectures: [name], vocab_size: 100, hidden_size: 24 },
        ...{ num_hidden_layers: 2, num_attention_heads: 3, intermediate_size: 40 },
        ...{ max_position_embeddings: 64, position_biased_input: false, relative_attention: true },
        ...{ pos_att_type: ['c2p', 'p2c'], ...keys },
      };
      const { model } = await modelOf(parseDocument(JSON.stringify(config), 'config.json'));
      const { total } = forwardFlopsOf(model, { batch, context: 20, causal: true });
      expect(Number(total.value)).toBe(flops);
    },
  );

  test('an encoder has no cache, and a decoder one of both attentions', async () => {
    const stateIn = async (file: string) => {
      const { model } = await modelOf(parseDocument(JSON.stringify(caseIn(file).config), 'c.json'));
      const { keyValueCache } = stateOf(model, { batch: 1, context: 10, dtype: 'f32' });
      return Number(keyValueCache.value);
    };
    expect(await stateIn('bert-7-0.json')).toBe(0);
    const { config } = caseIn('bart-7-0.json');
    const { decoder_layers: layers, d_model: width } = config as unknown as Record<string, number>;
    // A key and a value of each token and of each position of the encoder.
    expect(await stateIn('bart-7-0.json')).toBe(10 * 4 * 4 * (layers ?? 0) * (width ?? 0));
  });
});
