/** Models and settings for tests of serving. */

import type { ServingFitSetting } from '../../../src/estimate/fit/serving/serving-work.js';
import { usualFormat, type WeightDtype } from '../../../src/estimate/fit/serving/weight-types.js';
import { gpuNamed } from '../../../src/estimate/hardware/gpus.js';
import { gpt2 } from '../../../src/model/architecture/models/gpt2.js';
import { llama } from '../../../src/model/architecture/models/llama.js';
import { minigpt } from '../../../src/model/architecture/models/minigpt.js';
import { presetDocument } from '../../../src/model/architecture/presets.js';

const llama2 = (sizes: Record<string, number>) =>
  llama.build(
    llama.schema.parse({
      model: { family: 'llama', vocab_size: 32_000, tie_word_embeddings: false, ...sizes },
    }),
  );

/** Llama-2-13B (arXiv 2307.09288); vocabulary and norms as for 7B. */
export const LLAMA_2_13B = llama2({
  hidden_size: 5120,
  num_hidden_layers: 40,
  num_attention_heads: 40,
  num_key_value_heads: 40,
  intermediate_size: 13_824,
  max_position_embeddings: 8192,
});

/** Llama-2-70B. */
export const LLAMA_2_70B = llama2({
  hidden_size: 8192,
  num_hidden_layers: 80,
  num_attention_heads: 64,
  num_key_value_heads: 8,
  intermediate_size: 28_672,
  max_position_embeddings: 4096,
});

/** Llama-3.1-70B (arXiv 2407.21783, table 3). */
export const LLAMA_3_70B = llama2({
  hidden_size: 8192,
  num_hidden_layers: 80,
  num_attention_heads: 64,
  num_key_value_heads: 8,
  intermediate_size: 28_672,
  vocab_size: 128_256,
});

/** OPT-13B (arXiv 2205.01068, table 1) has the shape of GPT. Its caches do not depend on the rest. */
export const OPT_13B = gpt2.build(
  gpt2.schema.parse({
    model: {
      family: 'gpt2',
      vocab_size: 50_272,
      n_positions: 2048,
      n_embd: 5120,
      n_layer: 40,
      n_head: 40,
    },
  }),
);

export const MINIGPT = minigpt.build(
  minigpt.schema.parse(presetDocument('minigpt', 'minigpt-small')),
);

export const setting = (
  changes: Partial<ServingFitSetting> & { readonly dtype?: WeightDtype } = {},
): ServingFitSetting => ({
  cluster: { gpu: gpuNamed('h100-80gb'), gpus: 16, network: null },
  weights: usualFormat(changes.dtype ?? 'bf16'),
  cacheDtype: 'bf16',
  stateDtype: 'bf16',
  context: 512,
  batch: 4,
  prompt: 200,
  output: 50,
  tensorParallel: 1,
  ...changes,
});
