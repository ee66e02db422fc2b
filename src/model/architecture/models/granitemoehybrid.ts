/** Granite 4.0: Mamba-2 layers and a few with attention; experts with a shared network, or the network alone. */
import * as z from 'zod';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { isHeldInMemory } from '../transformer/hugging-face.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import {
  attentionBias,
  count,
  decoderStored,
  gateActivation,
  LLAMA_SIZES,
} from '../transformer/settings.js';
import {
  dualIn,
  dualOf,
  dualRules,
  dualSettings,
  layerTypesIn,
  RECURRENT_HARMLESS,
} from '../transformer/state-space.js';
import { GRANITE, graniteSettings } from './granite.js';
import { EXPERT_NAMES, graniteExperts, sharedMlp } from './granitemoe.js';

export const graniteMoeHybrid = defineDecoder({
  ...GRANITE,
  title: 'Granite 4: Mamba-2, attention and experts',
  architecture: 'hybrid',
  schema: decoderDocument(
    'granitemoehybrid',
    {
      ...LLAMA_SIZES,
      rms_norm_eps: 1e-6,
    },
    {
      ...dualSettings,
      layer_types: z
        .array(z.enum(['linear_attention', 'full_attention']))
        .nullish()
        .describe('Which layers are Mamba layers, and which attend; by default all are Mamba'),
      position_embedding_type: z
        .string()
        .nullable()
        .default(null)
        .describe('rope: attention rotates its heads; null: it has no positions'),
      num_local_experts: z
        .int()
        .min(0)
        .default(8)
        .describe('Experts to choose from; 0: none, and the shared network alone'),
      num_experts_per_tok: z.int().min(0).default(2).describe('Experts that a token goes to'),
      shared_intermediate_size: count(1024, 'Width inside the shared network'),
      ...graniteSettings,
      logits_scaling: z.number().default(1).describe('Divisor of the logits'),
      stored_experts: z
        .enum(['in files', 'in memory'])
        .default('in files')
        .describe('Names of the experts: as published, or as transformers 5 holds them'),
      hidden_act: gateActivation,
      attention_bias: attentionBias,
    },
  ),
  rules: dualRules,
  dimensions: null,
  ignoredOnLoad: ({ model }) => (model.position_embedding_type === 'rope' ? [ROTARY_BUFFERS] : []),
  huggingFace: {
    names: { layer_types: ['layers_block_type'] },
    more: (config) => ({
      ...dualIn(config),
      layer_types: layerTypesIn(config.layers_block_type ?? config.layer_types),
      stored_experts: isHeldInMemory(config) ? 'in memory' : 'in files',
    }),
    harmless: RECURRENT_HARMLESS,
  },
  storedSettings(stored) {
    const name = [...stored.names()].find((each) => each.includes('block_sparse_moe.'));
    const isFile = name !== undefined && /\.(?:router\.layer|(?:in|out)put_linear)\./.test(name);
    return [
      ...decoderStored(stored),
      ...(name === undefined
        ? []
        : [{ path: 'model.stored_experts', value: isFile ? 'in files' : 'in memory' }]),
    ];
  },
  attention: ({ config }) => ({
    ...GRANITE.attention({ config }),
    ...(config.position_embedding_type !== 'rope' && { rotary: undefined }),
  }),
  attentionLayer: ({ name, config, index }) =>
    config.layer_types?.[index] === 'full_attention' ? undefined : dualOf(`${name}.mamba`, config),
  feedForward({ name, config }) {
    const shared = sharedMlp(
      `${name}.shared_mlp`,
      config.hidden_size,
      config.shared_intermediate_size,
      config.hidden_act,
    );
    if (config.num_local_experts === 0) return { ...shared, component: 'feedForward' };
    const isFile = config.stored_experts === 'in files';
    const names = EXPERT_NAMES[isFile ? 'input_linear' : 'gate_up_proj'];
    return { ...graniteExperts(`${name}.block_sparse_moe`, config, names), shared: [shared] };
  },
});
