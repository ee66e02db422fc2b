/** Models for the loopback hub. */
import fs from 'node:fs';
import path from 'node:path';
import { inPackage } from '../../fixtures.js';
import type { HubContent, SparseContent } from './loopback-hub.js';

export const COMMIT = '1234567890abcdef1234567890abcdef12345678';
export const OTHER_COMMIT = 'fedcba0987654321fedcba0987654321fedcba09';

/** Files of a small Mixtral that transformers saved. */
export function mixtral(): Record<string, HubContent> {
  const folder = inPackage('fixtures/hf/mixtral-saved');
  const names = ['config.json', 'model.safetensors'];
  return Object.fromEntries(names.map((name) => [name, fs.readFileSync(path.join(folder, name))]));
}

/** A safetensors file with these tensors in bf16, all zeros. */
function sparseSafetensors(tensors: Readonly<Record<string, readonly number[]>>): SparseContent {
  let at = 0;
  const entries = Object.entries(tensors).map(([name, shape]) => {
    const bytes = 2 * shape.reduce((product, size) => product * size, 1);
    const entry = { dtype: 'BF16', shape, data_offsets: [at, at + bytes] };
    at += bytes;
    return [name, entry] as const;
  });
  const text = JSON.stringify({ __metadata__: { format: 'pt' }, ...Object.fromEntries(entries) });
  const header = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  return {
    size: 8 + header.length + at,
    parts: [{ position: 0, bytes: Buffer.concat([length, header]) }],
  };
}

/** config.json of Llama 3.1 70B. */
const LLAMA_70B = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 8192,
  intermediate_size: 28_672,
  num_attention_heads: 64,
  num_hidden_layers: 80,
  num_key_value_heads: 8,
  vocab_size: 128_256,
  max_position_embeddings: 131_072,
  rms_norm_eps: 1e-5,
  rope_theta: 500_000,
  tie_word_embeddings: false,
  torch_dtype: 'bfloat16',
};

/** Llama 3.1 70B as published: 723 tensors in 30 shards, with zeros as values. */
export function llama70B(): Record<string, HubContent> {
  const { hidden_size: width, intermediate_size: inner, vocab_size: words } = LLAMA_70B;
  const tensors: [string, number[]][] = [['model.embed_tokens.weight', [words, width]]];
  for (let layer = 0; layer < 80; layer++) {
    const at = `model.layers.${layer}`;
    tensors.push(
      [`${at}.input_layernorm.weight`, [width]],
      [`${at}.mlp.down_proj.weight`, [width, inner]],
      [`${at}.mlp.gate_proj.weight`, [inner, width]],
      [`${at}.mlp.up_proj.weight`, [inner, width]],
      [`${at}.post_attention_layernorm.weight`, [width]],
      [`${at}.self_attn.k_proj.weight`, [1024, width]],
      [`${at}.self_attn.o_proj.weight`, [width, width]],
      [`${at}.self_attn.q_proj.weight`, [width, width]],
      [`${at}.self_attn.v_proj.weight`, [1024, width]],
    );
  }
  tensors.push(['model.norm.weight', [width]], ['lm_head.weight', [words, width]]);
  const files: Record<string, HubContent> = { 'config.json': JSON.stringify(LLAMA_70B, null, 2) };
  const map: Record<string, string> = {};
  const each = Math.ceil(tensors.length / 30);
  for (let shard = 0; shard < 30; shard++) {
    const name = `model-${String(shard + 1).padStart(5, '0')}-of-00030.safetensors`;
    const own = tensors.slice(shard * each, (shard + 1) * each);
    files[name] = sparseSafetensors(Object.fromEntries(own));
    for (const [tensor] of own) map[tensor] = name;
  }
  const total = tensors.reduce((sum, [, shape]) => sum + 2 * shape.reduce((a, b) => a * b, 1), 0);
  const index = { metadata: { total_size: total }, weight_map: map };
  return { ...files, 'model.safetensors.index.json': JSON.stringify(index, null, 2) };
}
