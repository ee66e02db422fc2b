/** Small models whose rows are whole super-blocks of 256 values, with random weights. */
import fs from 'node:fs';
import path from 'node:path';
import { manualSeed } from '../../../src/base/random/index.js';
import { loadModelFile } from '../../../src/input/model-input/read-model-file.js';
import { stateDictOf } from '../../../src/model/architecture/walk.js';
import { folderOf } from '../../checkpoint/temp-folder.js';

const LLAMA = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  hidden_size: 256,
  intermediate_size: 256,
  num_hidden_layers: 8,
  num_attention_heads: 4,
  num_key_value_heads: 1,
  vocab_size: 32,
  max_position_embeddings: 64,
  rms_norm_eps: 1e-5,
  tie_word_embeddings: false,
};

/** Configs by name. */
export const WIDE_CONFIGS = {
  llama: LLAMA,
  tied: { ...LLAMA, num_hidden_layers: 2, tie_word_embeddings: true },
  mixtral: {
    ...LLAMA,
    architectures: ['MixtralForCausalLM'],
    model_type: 'mixtral',
    num_hidden_layers: 2,
    num_local_experts: 8,
    num_experts_per_tok: 2,
  },
} as const;

/** Folder of a model in float32. */
export async function wideModel(name: keyof typeof WIDE_CONFIGS): Promise<string> {
  const folder = folderOf({ 'config.json': JSON.stringify(WIDE_CONFIGS[name]) });
  const { model } = await loadModelFile(folder);
  const generator = manualSeed(28);
  const header: Record<string, object> = {};
  const parts: Uint8Array[] = [];
  let end = 0;
  for (const { name: key, tensor } of stateDictOf(model)) {
    if (tensor.role === 'buffer' || (key === 'lm_head.weight' && name === 'tied')) continue;
    const values = generator.randn(tensor.elements);
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    header[key] = { dtype: 'F32', shape: tensor.shape, data_offsets: [end, end + bytes.length] };
    parts.push(bytes);
    end += bytes.length;
  }
  const json = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(json.length));
  fs.writeFileSync(path.join(folder, 'model.safetensors'), Buffer.concat([length, json, ...parts]));
  return folder;
}
