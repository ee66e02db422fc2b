import { describe, expect, it } from 'vitest';
import { folderOf } from '../checkpoint/temp-folder.js';
import { runHere } from '../run-here.js';

const small = { hidden_size: 64, num_hidden_layers: 2, num_attention_heads: 4 };

const CONFIGS = {
  bert: {
    ...{ model_type: 'bert', architectures: ['BertForMaskedLM'], vocab_size: 1000 },
    ...{ ...small, intermediate_size: 128 },
  },
  // Without a head.
  vit: { model_type: 'vit', architectures: ['ViTModel'], ...small, intermediate_size: 128 },
  clip: {
    ...{ model_type: 'clip', architectures: ['CLIPModel'], projection_dim: 32 },
    text_config: { ...small, intermediate_size: 128 },
    vision_config: { ...small, intermediate_size: 128 },
  },
  t5: {
    ...{ model_type: 't5', architectures: ['T5ForConditionalGeneration'], vocab_size: 1000 },
    ...{ d_model: 64, d_kv: 16, d_ff: 128, num_layers: 2, num_heads: 4 },
  },
  whisper: {
    ...{ model_type: 'whisper', architectures: ['WhisperForConditionalGeneration'], d_model: 64 },
    ...{ encoder_layers: 2, decoder_layers: 2, vocab_size: 1000 },
    ...{ encoder_attention_heads: 4, decoder_attention_heads: 4 },
  },
} as const;

const fileOf = (kind: keyof typeof CONFIGS) =>
  `${folderOf({ 'config.json': JSON.stringify(CONFIGS[kind]) })}/config.json`;

const answerOf = async (kind: keyof typeof CONFIGS, ...flags: string[]) => {
  const { stdout, stderr } = await runHere([
    'fit',
    fileOf(kind),
    '--gpu',
    'l4',
    ...flags,
    '--json',
  ]);
  return JSON.parse(stdout === '' ? stderr : stdout);
};

describe('fit of an encoder', () => {
  it.each(['bert', 'vit'] as const)('answers with one pass: %s', async (kind) => {
    const { serving, pass } = await answerOf(kind);
    expect(serving).toBeNull();
    expect(pass).toMatchObject({ verdict: 'fits', withoutTime: null, batch: 1 });
    const { sequencesPerSecond: rate, time, largestBatch } = pass;
    expect(rate.expected.value).toBeCloseTo(1 / time.seconds.expected.value, 6);
    // All tokens are in memory at once: not millions of sequences, as of a model with an empty cache.
    expect(largestBatch.value).toBeLessThan(1e6);
    const twice = await answerOf(kind, '--gpus', '2');
    expect(twice.pass.sequencesPerSecond.expected.value).toBeCloseTo(2 * rate.expected.value, 6);
  });

  it('shows no users, tokens, or server', async () => {
    const { stdout } = await runHere(['fit', fileOf('bert'), '--gpu', 'l4']);
    expect(stdout).not.toMatch(/users|decoding|runtime|first token/);
    expect(stdout).toContain('no cache: it generates no tokens');
    expect(stdout).toMatch(/LoRA +fits/);
  });

  it('gives no time where the FLOPs of a tower are not counted', async () => {
    const { pass, training } = await answerOf('clip');
    expect(pass).toMatchObject({
      time: null,
      withoutTime: 'FLOPs of the vision tower are not counted',
    });
    expect(training.fit.step).toBeUndefined();
  });

  it.each([
    ['--qps', '3'],
    ['--users', '8'],
    ['--min-speed', '20'],
    ['--cache-dtype', 'f8'],
    ['--emit', 'vllm'],
  ])('refuses %s', async (...flags) => {
    const { code, stderr } = await runHere(['fit', fileOf('bert'), '--gpu', 'l4', ...flags]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/is an encoder/);
  });

  it.each(['bert', 'clip'] as const)('is listed for several GPUs: %s', async (kind) => {
    const { code, stdout } = await runHere(['fit', fileOf(kind), '--gpu', 'l4,h100-80gb']);
    expect([code, stdout]).toEqual([0, expect.stringContaining('2 of 2 setups fit')]);
  });
});

describe('fit of a decoder with an encoder', () => {
  it.each(['t5', 'whisper'] as const)('gives no speed: %s', async (kind) => {
    const { serving, pass } = await answerOf(kind);
    expect(pass).toBeUndefined();
    expect(serving.throughput).toBeNull();
    expect(serving.fit.decode).toBeNull();
    expect(serving.fit.withoutLink).toContain('the encoder runs once for a request');
    const { code, stderr } = await runHere(['fit', fileOf(kind), '--gpu', 'l4', '--qps', '3']);
    expect([code, stderr]).toEqual([2, expect.stringContaining('no speed is estimated')]);
  });
});

describe('profile of a model with an encoder', () => {
  it('says that it has no cache, or which FLOPs are not counted', async () => {
    const bert = await runHere(['profile', fileOf('bert')]);
    expect(bert.stdout).toContain('none: an encoder generates no tokens');
    expect(bert.stderr).toContain('no engine computes encoder blocks');
    const whisper = await runHere(['profile', fileOf('whisper')]);
    expect(whisper.stdout).toContain('those of the audio encoder are not counted');
    const t5 = await runHere(['profile', fileOf('t5')]);
    expect(t5.stdout).not.toContain('not counted');
  });
});
