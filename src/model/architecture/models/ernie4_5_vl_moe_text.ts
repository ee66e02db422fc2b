/**
 * The language model of ERNIE 4.5 VL with experts: each layer with experts has two groups of them, and those of images
 * are not read for text. transformers 5.18, models/ernie4_5_vl_moe.
 */

import * as z from 'zod';
import { isRecord } from '../../../base/values.js';
import { defineRules } from '../family.js';
import { type JsonObject, unreadBut } from '../transformer/config-keys.js';
import { separateMlp } from '../transformer/decoder-parts.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { rotaryReading } from '../transformer/rotary.js';
import { expertRules, layerListRules } from '../transformer/rules.js';
import {
  activationOf,
  count,
  headsOf,
  mlpLayerTypes,
  positiveInteger,
  toggle,
} from '../transformer/settings.js';
import { ERNIE_EXPERTS, ERNIE_NAMES, ernieExperts } from './ernie4_5_moe.js';

const SECTIONS = 'mrope_section';

/** Rotary settings, which hold the frequencies of height, width and time. */
const rotaryOf = (config: JsonObject): JsonObject =>
  [config.rope_scaling, config.rope_parameters].filter(isRecord)[0] ?? {};

/** A config whose rotary settings are those that every family has. */
function withoutSections(config: JsonObject): JsonObject {
  const plain = Object.entries(config).map(([key, value]) => {
    if (!key.startsWith('rope_') || !isRecord(value)) return [key, value];
    const { [SECTIONS]: _, ...rest } = value;
    return [key, rest];
  });
  return Object.fromEntries(plain) as JsonObject;
}

const usual = rotaryReading({});

interface Sections {
  readonly mrope_section?: readonly number[] | null | undefined;
  readonly hidden_size: number;
  readonly num_attention_heads: number;
  readonly head_dim?: number | null | undefined;
  readonly rope_scaling?: { readonly rope_type: string } | null | undefined;
}

const rotaryRules = defineRules<{ readonly model: Sections }>([
  {
    severity: 'error',
    reads: ['model.mrope_section', 'model.head_dim', 'model.hidden_size'],
    check({ model }) {
      const { mrope_section: sections } = model;
      if (sections == null) return undefined;
      const [height = 0, width = 0, time = 0] = sections;
      const half = Math.floor(headsOf(model).headDim / 2);
      return height === width && height + width + time === half && time > 0
        ? undefined
        : {
            message: `mrope_section ${sections.join(', ')} does not divide ${half} frequencies into two equal parts and a third`,
            suggestion: `write three numbers with the sum ${half}, the first two equal`,
          };
    },
  },
  {
    severity: 'error',
    reads: ['model.rope_scaling'],
    check: ({ model: { rope_scaling: scaling } }) =>
      scaling && scaling.rope_type !== 'default'
        ? {
            message: `rope_type ${scaling.rope_type} is refused by the class, which has the default only`,
            suggestion: 'remove rope_scaling',
          }
        : undefined,
  },
]);

export const ernie45VlMoeText = defineDecoder({
  title: 'ERNIE 4.5 VL with experts, the language model',
  architecture: 'mixture',
  schema: decoderDocument(
    'ernie4_5_vl_moe_text',
    {
      vocab_size: 103_424,
      hidden_size: 2560,
      intermediate_size: 12_288,
      num_hidden_layers: 28,
      num_attention_heads: 20,
      num_key_value_heads: 4,
      max_position_embeddings: 131_072,
      rms_norm_eps: 1e-5,
      rope_theta: 500_000,
      tie_word_embeddings: true,
    },
    {
      mrope_section: z
        .array(z.int().min(0))
        .length(3)
        .nullish()
        .describe('Frequencies for height, width and time; the same positions for text'),
      use_bias: toggle(false, 'Biases in all products but those of the routed experts'),
      moe_num_experts: count(64, 'Experts of each group to choose from'),
      moe_k: count(6, 'Experts that a token goes to'),
      moe_intermediate_size: z
        .array(positiveInteger)
        .min(2)
        .default([1536, 512])
        .describe('Width inside an expert for text, and for images'),
      mlp_layer_types: mlpLayerTypes,
      ...ERNIE_EXPERTS,
    },
  ),
  rules: [
    ...expertRules('moe_num_experts', 'moe_k'),
    ...layerListRules('mlp_layer_types'),
    ...rotaryRules,
  ],
  dimensions: null,
  huggingFace: {
    names: ERNIE_NAMES,
    more: (config) => ({ mrope_section: rotaryOf(config)[SECTIONS] }),
    rotary: {
      keys: usual.keys,
      settings: (config) => usual.settings(withoutSections(config)),
      remarks: (config) => usual.remarks(withoutSections(config)),
    },
    limited: {
      moe_layer_start_index: unreadBut([1], 'mlp_layer_types says which layers have experts'),
      moe_layer_end_index: unreadBut([-1], 'mlp_layer_types says which layers have experts'),
      moe_layer_interval: unreadBut([1], 'mlp_layer_types says which layers have experts'),
    },
  },
  rotaryPairs: 'neighbours',
  attention: ({ config }) => ({ bias: config.use_bias, outBias: config.use_bias }),
  feedForward({ name: block, config, index }) {
    const name = `${block}.mlp`;
    const { hidden_size: hidden, use_bias: bias } = config;
    const activation = activationOf(config.hidden_act);
    const kind = config.mlp_layer_types?.[index] ?? (index === 0 ? 'dense' : 'sparse');
    if (kind === 'dense') {
      return separateMlp(name, { hidden, inner: config.intermediate_size, activation, bias });
    }
    const [inner = 0, ofImages = 0] = config.moe_intermediate_size;
    const group = (leaf: string, width: number, shared: number) => {
      const path = `${name}.${leaf}`;
      const statics = `${path}.gate.moe_statics`;
      return ernieExperts(path, config, {
        statics,
        width,
        shared,
        sharedWidth: inner,
        network: name,
      });
    };
    return {
      kind: 'sum',
      name,
      branches: [group('text_moe', inner, config.moe_num_shared_experts)],
      unread: [group('vision_moe', ofImages, 0)],
    };
  },
});
