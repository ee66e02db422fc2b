/** Granite 3 with experts and a network for every token next to them. */
import * as z from 'zod';
import type { MixtureOfExperts } from '../layer.js';
import { decoderDocument, defineDecoder } from '../transformer/define-decoder.js';
import { LLAMA_SIZES, type SettingsOf } from '../transformer/settings.js';
import {
  EXPERT_NAMES,
  GRANITE_MIXTURE,
  graniteExpertSettings,
  graniteExperts,
  sharedMlp,
} from './granitemoe.js';

export const graniteSharedSettings = {
  ...graniteExpertSettings,
  shared_intermediate_size: z
    .int()
    .min(0)
    .default(0)
    .describe('Width inside the network for every token; 0: there is none'),
};

type SharedConfig = SettingsOf<typeof graniteSharedSettings> & {
  readonly hidden_size: number;
  readonly intermediate_size: number;
};

/** Experts, and the network for every token if there is one. */
export function graniteSharedExperts(block: string, config: SharedConfig): MixtureOfExperts {
  const { shared_intermediate_size: inner, hidden_size: hidden, stored_experts } = config;
  return {
    ...graniteExperts(`${block}.block_sparse_moe`, config, EXPERT_NAMES[stored_experts]),
    shared: inner === 0 ? [] : [sharedMlp(`${block}.shared_mlp`, hidden, inner, config.hidden_act)],
  };
}

export const graniteMoeShared = defineDecoder({
  ...GRANITE_MIXTURE,
  title: 'Granite 3 with experts and a shared network',
  schema: decoderDocument(
    'granitemoeshared',
    { ...LLAMA_SIZES, rms_norm_eps: 1e-6 },
    graniteSharedSettings,
  ),
  feedForward: ({ name, config }) => graniteSharedExperts(name, config),
});
