/** Granite with experts, windows and attention sinks. */
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { LLAMA_SIZES } from '../transformer/settings.js';
import { GRANITE_WINDOWS, graniteWindowSettings } from './granite_swa.js';
import { GRANITE_MIXTURE } from './granitemoe.js';
import { graniteSharedExperts, graniteSharedSettings } from './granitemoeshared.js';

export const graniteMoeSwa = defineDecoder({
  ...GRANITE_MIXTURE,
  ...GRANITE_WINDOWS,
  title: 'Granite with experts, windows and attention sinks',
  schema: decoderDocument(
    'granitemoe_swa',
    { ...LLAMA_SIZES, rms_norm_eps: 1e-6 },
    { ...graniteSharedSettings, ...graniteWindowSettings },
  ),
  // Its files have the names of the model in memory.
  huggingFace: { more: () => ({ stored_experts: 'gate_up_proj' }) },
  feedForward: ({ name, config }) => graniteSharedExperts(name, config),
});
