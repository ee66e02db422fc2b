/** K-EXAONE (arXiv 2601.01739): attention of EXAONE 4.0 with experts of DeepSeek-V3. */
import { asNumber } from '../../../base/values.js';
import { harmless, type JsonObject, unreadBut, unreadEach } from '../transformer/config-keys.js';
import {
  bestTwoRules,
  correctedRouting,
  deepseekFeedForward,
  falseForNull,
  routedRules,
  routedSettings,
} from '../transformer/deepseek.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { ROTARY_BUFFERS } from '../transformer/ignored-tensors.js';
import { mlpLayerTypes } from '../transformer/settings.js';
import { EXAONE, EXAONE_SIZES, exaoneSettings } from './exaone4.js';

/** First layers without experts, where the config does not list them. */
const DENSE = 1;

const isSparseAt = (
  { mlp_layer_types: types, first_k_dense_replace: dense = DENSE }: JsonObject,
  index: number,
): boolean => (Array.isArray(types) ? types[index] === 'sparse' : index >= asNumber(dense));

const {
  n_routed_experts: num_experts,
  n_shared_experts: num_shared_experts,
  ...experts
} = routedSettings({
  moe_intermediate_size: 1024,
  n_routed_experts: 64,
  n_shared_experts: 1,
  num_experts_per_tok: 8,
  first_k_dense_replace: DENSE,
  routed_scaling_factor: 2.5,
  norm_topk_prob: true,
  n_group: 1,
  topk_group: 1,
});

export const exaoneMoe = defineDecoder({
  ...EXAONE,
  title: 'K-EXAONE, with experts',
  architecture: 'mixture',
  schema: decoderDocument('exaone_moe', EXAONE_SIZES, {
    ...exaoneSettings,
    num_experts,
    num_shared_experts,
    ...experts,
    mlp_layer_types: mlpLayerTypes,
  }),
  rules: [...EXAONE.rules, ...routedRules('num_experts'), ...bestTwoRules('num_experts')],
  dimensions: null,
  ignoredOnLoad: ['mtp.*', ROTARY_BUFFERS],
  huggingFace: {
    more: falseForNull,
    limited: {
      ...unreadEach(['scoring_func'], ['sigmoid']),
      ...unreadEach(['topk_method'], ['noaux_tc']),
      first_last_k_dense_replace: unreadBut(
        (dense, { first_k_dense_replace: read = DENSE }) => dense === null || dense === read,
      ),
      is_moe_layer: unreadBut(
        (layers, config) =>
          Array.isArray(layers) &&
          layers.every((isSparse, index) => isSparse === isSparseAt(config, index)),
      ),
    },
    harmless: harmless('layers that predict further tokens are never part of the model', [
      'num_nextn_predict_layers',
    ]),
  },
  feedForward({ name: block, index, config }) {
    const name = `${block}.mlp`;
    const { num_experts: routed, num_shared_experts: shared, experts_stored: stored } = config;
    const settings = { ...config, n_routed_experts: routed, n_shared_experts: shared };
    const routing = correctedRouting(settings);
    return deepseekFeedForward(name, index, settings, {
      // In files, the correction has another place.
      routing: (gate) => routing(stored === 'packed' ? gate : name),
    });
  },
});
