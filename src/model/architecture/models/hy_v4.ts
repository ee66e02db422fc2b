/**
 * Hy4 (transformers 5.18, models/hy_v4): latent attention with sinks, gates and indexers that some layers share,
 * hyper-connections, experts. Described, not run.
 */
import * as z from 'zod';
import { rmsNormLayer } from '../constructors/basic-layers.js';
import { described } from '../constructors/described-layer.js';
import type { NameOnLoad } from '../family.js';
import { unreadEach } from '../transformer/config-keys.js';
import { decoder, separateMlp } from '../transformer/decoder-parts.js';
import { routedRules } from '../transformer/deepseek.js';
import { defineTransformer } from '../transformer/define-decoder.js';
import {
  correctedExperts,
  indexedLatent,
  indexerParts,
  latentParts,
} from '../transformer/described/latent.js';
import {
  hyperConnection,
  normOfStreams,
  product,
  ROTARY_VALUES,
  splitStreams,
  valueKeys,
} from '../transformer/described/parts.js';
import { layerListRules } from '../transformer/rules.js';
import {
  activationOf,
  attentionBias,
  count,
  expertsStored,
  gateActivation,
  mixtureStored,
  mlpLayerTypes,
  normEpsilon,
  positiveInteger,
  storedPrefix,
  tiedHead,
  transformerDocument,
} from '../transformer/settings.js';

const schema = transformerDocument('hy_v4', {
  vocab_size: count(120_832, 'Rows of the embedding and of the head'),
  hidden_size: count(2816, 'Width of each residual stream'),
  intermediate_size: count(6912, 'Width inside the dense networks'),
  moe_intermediate_size: count(768, 'Width inside an expert'),
  num_hidden_layers: count(34, 'Number of blocks'),
  num_attention_heads: count(32, 'Query heads'),
  n_routed_experts: count(256, 'Experts to choose from'),
  n_shared_experts: count(1, 'Experts for every token, as one network of their joint width'),
  num_experts_per_tok: count(8, 'Experts that a token goes to'),
  n_group: positiveInteger.nullable().default(1).describe('Groups of experts'),
  topk_group: positiveInteger.nullable().default(1).describe('Groups that are kept'),
  q_lora_rank: count(1536, 'Rank of the queries'),
  kv_lora_rank: count(512, 'Width of the latent of which keys and values are made'),
  qk_nope_head_dim: count(192, 'Dimensions of a head that are not rotated'),
  qk_rope_head_dim: count(64, 'Dimensions of a head that are'),
  v_head_dim: count(256, "Width of a head's value"),
  max_position_embeddings: count(262_144, 'Longest input, in tokens'),
  mlp_layer_types: mlpLayerTypes,
  index_topk: count(2048, 'Keys that a query sees at most'),
  index_head_dim: count(128, "Width of the indexer's heads"),
  index_n_heads: count(16, 'Heads of the indexer'),
  indexer_types: z
    .array(z.enum(['full', 'shared']))
    .nullish()
    .describe('Which layers have an indexer: full, or take the keys of the last that has: shared'),
  hc_mult: count(4, 'Residual streams'),
  rms_norm_eps: normEpsilon(1e-5),
  hidden_act: gateActivation,
  attention_bias: attentionBias,
  experts_stored: expertsStored,
  stored_prefix: storedPrefix({ own: 'model.' }),
  tie_word_embeddings: tiedHead(false),
});

type Config = z.output<typeof schema>['model'];

const isSparse = ({ mlp_layer_types: kinds }: Config, index: number): boolean =>
  kinds ? kinds[index] === 'sparse' : index >= 1;

const hasIndexer = ({ indexer_types: kinds }: Config, index: number): boolean =>
  kinds ? kinds[index] === 'full' : index === 0 || (index - 1) % 4 === 0;

/** Names in files of Tencent; transformers 5.18, conversion_mapping.py. */
const NAMES_ON_LOAD: readonly NameOnLoad[] = [
  [/\.hc_pre\.hc_/, '.hc_'],
  [/\.learnable_sink_param$/, '.sinks'],
  [/\.linear_gate/, '.gate_proj'],
  [/\.hc_attn_layer\.hc_(fn|base|scale)/, '.attn_hc.$1'],
  [/\.hc_mlp_layer\.hc_(fn|base|scale)/, '.ffn_hc.$1'],
  [/\.hc_head_(fn|base|scale)/, '.hc_$1'],
];

export const hyV4 = defineTransformer({
  title: 'Hy4: latent attention with indexers, hyper-connections, experts; described, not run',
  architecture: 'mixture',
  schema,
  rules: [
    ...layerListRules('mlp_layer_types'),
    ...layerListRules('indexer_types'),
    ...routedRules('n_routed_experts'),
  ],
  storedSettings: mixtureStored,
  namesOnLoad: () => NAMES_ON_LOAD,
  huggingFace: {
    names: { n_routed_experts: ['num_local_experts'] },
    harmless: {
      ...ROTARY_VALUES,
      ...valueKeys(
        'routed_scaling_factor',
        'norm_topk_prob',
        'layer_types',
        'hc_magnitude',
        'hc_eps',
        'learnable_sink_init',
        'swiglu_limit',
      ),
    },
    limited: unreadEach(
      ['num_key_value_heads', 'head_dim', 'qk_head_dim', 'mlp_bias'],
      () => true,
      'it follows from other keys',
    ),
  },
  build({ model: config }) {
    const { hidden_size: hidden, hc_mult: streams, num_attention_heads: heads } = config;
    const sizes = { hidden, streams };
    const norm = (name: string) => rmsNormLayer(name, hidden, config.rms_norm_eps);
    return decoder(config, {
      embeddingSteps: [splitStreams(sizes)],
      block(name, index) {
        const path = `${name}.self_attn`;
        const attention = indexedLatent(
          path,
          config,
          'latent attention with an indexer, a gate and sinks',
          [
            ...latentParts(path, config),
            ...(hasIndexer(config, index)
              ? [indexerParts(`${path}.indexer`, config, config.rms_norm_eps)]
              : []),
            product(`${path}.gate_proj`, hidden, heads * config.v_head_dim),
          ],
          { sinks: [heads] },
        );
        return described(name, {
          title: 'block with hyper-connections',
          parts: [
            attention,
            isSparse(config, index)
              ? correctedExperts(`${name}.mlp`, config)
              : separateMlp(`${name}.mlp`, {
                  hidden,
                  inner: config.intermediate_size,
                  activation: activationOf(config.hidden_act),
                }),
            norm(`${name}.input_layernorm`),
            norm(`${name}.post_attention_layernorm`),
            hyperConnection(`${name}.attn_hc`, sizes, 2 * streams, 2),
            hyperConnection(`${name}.ffn_hc`, sizes, 2 * streams, 2),
          ],
          output: streams * hidden,
        });
      },
      norm: (name) =>
        normOfStreams(name, `${config.stored_prefix}hc_head`, sizes, config.rms_norm_eps),
    });
  },
});
