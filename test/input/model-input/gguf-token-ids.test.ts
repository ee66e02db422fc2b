import { describe, expect, it } from 'vitest';
import { tokenizerMetadata } from '../../../src/input/model-input/gguf/gguf-tokenizer.js';
import { folderOf } from '../../checkpoint/temp-folder.js';

const TOKENIZER = JSON.stringify({
  pre_tokenizer: { type: 'ByteLevel' },
  model: { type: 'BPE', vocab: { a: 0, b: 1 }, merges: [] },
});

const metadata = (config: Record<string, unknown>) =>
  tokenizerMetadata(folderOf({ 'tokenizer.json': TOKENIZER }), 2, config);

describe('token ids of a config in a GGUF file', () => {
  it.each([2 ** 32, -1, 2, 0.5])('are left out with a note if no token has them: %s', (id) => {
    const { keys, notes } = metadata({ bos_token_id: id, eos_token_id: 1 });
    expect(keys.has('tokenizer.ggml.bos_token_id')).toBe(false);
    expect(keys.get('tokenizer.ggml.eos_token_id')).toEqual({ type: 'u32', value: 1 });
    expect(notes).toEqual([`The config has bos_token_id ${id}, expected 0 to 1: it is left out`]);
  });
});
