/** Command R7B and Command A (arXiv 2504.00698): windows in three layers of four, no positions in the fourth. */
import { unreadBut } from '../transformer/config-keys.js';
import { defineDecoder, plainDecoderDocument } from '../transformer/define-decoder.js';
import { count, slidesAt, windowAt, windowSettings } from '../transformer/settings.js';
import { COHERE, COHERE_SIZES, cohereSettings } from './cohere.js';

const DEFAULT_PATTERN = 4;

export const cohere2 = defineDecoder({
  ...COHERE,
  title: 'Command R7B and Command A',
  schema: plainDecoderDocument('cohere2', COHERE_SIZES, {
    ...cohereSettings,
    ...windowSettings(4096),
    sliding_window_pattern: count(
      DEFAULT_PATTERN,
      'Without layer_types: period of the layers without a window',
    ),
  }),
  huggingFace: { limited: { use_qk_norm: unreadBut([false]) } },
  slidesByRule: () => true,
  attention({ config, index }) {
    const slides = slidesAt(config, index, (index + 1) % config.sliding_window_pattern !== 0);
    return {
      ...(!(slides && config.sliding_window !== null) && { rotary: undefined }),
      window: windowAt(config, index, slides),
    };
  },
});
