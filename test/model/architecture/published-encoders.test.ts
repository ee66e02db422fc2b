/**
 * Published totals of encoders, encoder-decoders and multimodal models. The totals are those of the class in transformers
 * 5.18, for the sizes written here, which were not compared with a copy of each `config.json`. A row names the rounded total
 * that was looked up, and where; rows without one are counted on the class only.
 */
import { describe, expect, test } from 'vitest';
import { parseDocument } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import { asWhole } from '../../../src/input/model-input/whole-model.js';
import { sumOfTensors } from '../../../src/model/architecture/equal-blocks.js';

const bert = (type: string, architecture: string, sizes: readonly number[]) => {
  const [vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size] =
    sizes;
  return {
    model_type: type,
    architectures: [architecture],
    ...{ vocab_size, hidden_size, num_hidden_layers, num_attention_heads, intermediate_size },
  };
};

const roberta = (type: string, architecture: string, sizes: readonly number[]) => ({
  ...bert(type, architecture, sizes),
  ...{ max_position_embeddings: 514, type_vocab_size: 1 },
});

const t5 = (d_model: number, d_ff: number, layers: number, heads: number, more: object = {}) => ({
  model_type: 't5',
  architectures: ['T5ForConditionalGeneration'],
  ...{ vocab_size: 32_128, d_model, d_ff, num_layers: layers, num_heads: heads },
  ...more,
});

const flan = { feed_forward_proj: 'gated-gelu', tie_word_embeddings: false };

const whisper = (d_model: number, layers: number, decoder = layers, more: object = {}) => ({
  model_type: 'whisper',
  architectures: ['WhisperForConditionalGeneration'],
  ...{ d_model, encoder_layers: layers, decoder_layers: decoder },
  ...{ encoder_attention_heads: d_model / 64, decoder_attention_heads: d_model / 64 },
  ...{ encoder_ffn_dim: 4 * d_model, decoder_ffn_dim: 4 * d_model },
  ...more,
});

const LARGE_V3 = { vocab_size: 51_866, num_mel_bins: 128 };

const CLIP_LARGE = { hidden_size: 1024, intermediate_size: 4096, num_hidden_layers: 24 };

const SO400M = { hidden_size: 1152, intermediate_size: 4304, num_hidden_layers: 27 };

const LLAMA = { model_type: 'llama', vocab_size: 32_064, max_position_embeddings: 4096 };

const QWEN = {
  ...{ hidden_size: 3584, intermediate_size: 18_944, num_hidden_layers: 28 },
  ...{ num_attention_heads: 28, num_key_value_heads: 4, vocab_size: 152_064 },
};

/** No published total was found for these sizes. */
const CLASS_ONLY = 'counted on the class only';
const T5_README = 'google-research/text-to-text-transfer-transformer, README.md, 03c9416';
const WHISPER_CARD = 'openai/whisper, model-card.md, 0a44120';

/** Name, config, parameters, and the source of the total. */
const MODELS: readonly (readonly [string, object, number, string])[] = [
  [
    'bert-base-uncased',
    bert('bert', 'BertModel', [30_522, 768, 12, 12, 3072]),
    109_482_240,
    'google-research/bert, README.md: 110M',
  ],
  [
    'bert-large-uncased',
    bert('bert', 'BertModel', [30_522, 1024, 24, 16, 4096]),
    335_141_888,
    'google-research/bert, README.md: 340M',
  ],
  [
    'roberta-base',
    roberta('roberta', 'RobertaForMaskedLM', [50_265, 768, 12, 12, 3072]),
    124_697_433,
    'facebookresearch/fairseq, examples/roberta/README.md: 125M',
  ],
  [
    'xlm-roberta-large',
    roberta('xlm-roberta', 'XLMRobertaForMaskedLM', [250_002, 1024, 24, 16, 4096]),
    560_142_482,
    'facebookresearch/fairseq, examples/xlmr/README.md: 560M',
  ],
  [
    'distilbert-base-uncased',
    { model_type: 'distilbert', architectures: ['DistilBertModel'], dim: 768, n_layers: 6 },
    66_362_880,
    CLASS_ONLY,
  ],
  [
    'albert-base-v2',
    { ...bert('albert', 'AlbertModel', [30_000, 768, 12, 12, 3072]), embedding_size: 128 },
    11_683_584,
    CLASS_ONLY,
  ],
  [
    'ModernBERT-base',
    bert('modernbert', 'ModernBertForMaskedLM', [50_368, 768, 22, 12, 1152]),
    149_655_232,
    'answerdotai/ModernBERT-large, README.md, 8a783c9: 149M',
  ],
  [
    'ModernBERT-large',
    bert('modernbert', 'ModernBertForMaskedLM', [50_368, 1024, 28, 16, 2624]),
    395_881_664,
    'answerdotai/ModernBERT-large, README.md, 8a783c9: 395M',
  ],
  ['t5-small', t5(512, 2048, 6, 8), 60_506_624, `${T5_README}: 60M`],
  ['t5-base', t5(768, 3072, 12, 12), 222_903_552, `${T5_README}: 220M`],
  ['t5-large', t5(1024, 4096, 24, 16), 737_668_096, `${T5_README}: 770M`],
  ['t5-3b', t5(1024, 16_384, 24, 32, { d_kv: 128 }), 2_851_598_336, `${T5_README}: 3B`],
  ['t5-11b', t5(1024, 65_536, 24, 128, { d_kv: 128 }), 11_307_321_344, `${T5_README}: 11B`],
  // The file holds a head of its own, which the class of a new model ties: 222,903,552 + 24,674,304.
  ['flan-t5-base', t5(768, 2048, 12, 12, flan), 247_577_856, CLASS_ONLY],
  ['flan-t5-xl', t5(2048, 5120, 24, 32, flan), 2_849_757_184, CLASS_ONLY],
  ['whisper-tiny', whisper(384, 4), 37_760_640, `${WHISPER_CARD}: 39M`],
  ['whisper-base', whisper(512, 6), 72_593_920, `${WHISPER_CARD}: 74M`],
  ['whisper-small', whisper(768, 12), 241_734_912, `${WHISPER_CARD}: 244M`],
  ['whisper-medium', whisper(1024, 24), 763_857_920, `${WHISPER_CARD}: 769M`],
  [
    'whisper-large-v3',
    whisper(1280, 32, 32, LARGE_V3),
    1_543_490_560,
    `${WHISPER_CARD}: 1550M for large`,
  ],
  [
    'clip-vit-base-patch32',
    { model_type: 'clip', architectures: ['CLIPModel'], text_config: {}, vision_config: {} },
    151_277_313,
    CLASS_ONLY,
  ],
  [
    'clip-vit-large-patch14',
    {
      ...{ model_type: 'clip', architectures: ['CLIPModel'], projection_dim: 768 },
      text_config: { hidden_size: 768, intermediate_size: 3072, num_attention_heads: 12 },
      vision_config: { ...CLIP_LARGE, num_attention_heads: 16, patch_size: 14 },
    },
    427_616_513,
    CLASS_ONLY,
  ],
  [
    'siglip-so400m-patch14-384',
    {
      ...{ model_type: 'siglip', architectures: ['SiglipModel'] },
      text_config: { ...SO400M, num_attention_heads: 16 },
      vision_config: { ...SO400M, num_attention_heads: 16, patch_size: 14, image_size: 384 },
    },
    877_960_498,
    CLASS_ONLY,
  ],
  [
    'llava-1.5-7b-hf',
    {
      ...{ model_type: 'llava', architectures: ['LlavaForConditionalGeneration'] },
      text_config: LLAMA,
      vision_config: {
        ...{ ...CLIP_LARGE, model_type: 'clip_vision_model', num_attention_heads: 16 },
        ...{ patch_size: 14, image_size: 336, projection_dim: 768 },
      },
    },
    7_063_427_072,
    CLASS_ONLY,
  ],
  [
    'Qwen2.5-VL-7B-Instruct',
    {
      ...{ model_type: 'qwen2_5_vl', architectures: ['Qwen2_5_VLForConditionalGeneration'] },
      ...{ ...QWEN, tie_word_embeddings: false },
      vision_config: { hidden_size: 1280, intermediate_size: 3420, out_hidden_size: 3584 },
    },
    8_292_166_656,
    CLASS_ONLY,
  ],
];

describe('published totals', () => {
  test.each(MODELS)('%s', async (_, config, expected, source) => {
    const loaded = await modelOf(parseDocument(JSON.stringify(config), 'config.json'));
    const found = sumOfTensors(asWhole(loaded).model, ({ role, elements }) =>
      role === 'parameter' ? elements : 0,
    );
    expect(found, source).toBe(expected);
  });
});
