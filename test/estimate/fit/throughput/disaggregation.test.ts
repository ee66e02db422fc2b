/** Prompts on GPUs of their own: against published figures, and against the same server without them. */
import { describe, expect, it } from 'vitest';
import { emitServing } from '../../../../src/estimate/emit/emit-serving.js';
import type { NamedFitOptions } from '../../../../src/library/fit.js';
import { fit as fitOf } from '../../../../src/library/fit.js';
import { describeModel } from '../../../../src/library/models/describe-model.js';
import { loadModel } from '../../../../src/library/models/load-model.js';
import { inPackage } from '../../../fixtures.js';

const llama = () => loadModel(inPackage('fixtures', 'hf-configs', 'llama-3.1-8b', 'config.json'));

const REQUESTS = { for: 'serving', promptTokens: 4096, outputTokens: 256 } as const;
const servingOf = async (options: Partial<NamedFitOptions>) => {
  const { serving } = fitOf(await llama(), { gpu: 'dgx-h100', ...REQUESTS, ...options });
  if (!serving?.throughput) throw new Error('no server');
  return { ...serving, throughput: serving.throughput };
};

describe('disaggregated prefill', () => {
  it('moves the cache that DistServe states', async () => {
    const model = await describeModel(
      {
        ...{ model_type: 'opt', hidden_size: 9216, num_hidden_layers: 64, ffn_dim: 36_864 },
        ...{ num_attention_heads: 72, vocab_size: 50_272, max_position_embeddings: 2048 },
        ...{ word_embed_proj_dim: 9216 },
      },
      { file: 'opt-66b' },
    );
    const { serving } = fitOf(model, {
      ...{ gpu: 'a100-80gb', gpus: 8, prefillGpus: 4, tensorParallel: 4, for: 'serving' },
      ...{ promptTokens: 512, outputTokens: 64 },
    });
    const { transfer, gpus } = serving?.throughput?.disaggregated ?? {};
    expect(gpus).toBe(4);
    // arXiv 2401.09670, section 3.3: 1.13 GB for 512 tokens (of 2^30), 90 Gbps for ten a second, and negligible over NVLink.
    const bytes = 4 * (transfer?.bytes.value ?? 0);
    expect(Math.round((100 * bytes) / 2 ** 30) / 100).toBe(1.13);
    expect((10 * 8 * bytes) / 2 ** 30).toBeCloseTo(90, 0);
    expect(transfer?.link).toContain('NVLink');
    expect(transfer?.seconds.value).toBeLessThan(5e-3);
  });

  it('separates the time per token from the prompts', async () => {
    const [both, apart] = [await servingOf({}), await servingOf({ prefillGpus: 4 })];
    expect(apart.throughput.disaggregated).toMatchObject({ prefill: 4, decoding: 4, gpus: 1 });
    expect(apart.users.replicas).toBe(4);
    const p95 = ({ throughput }: typeof both) => throughput.full.perToken.p95.value;
    expect(p95(apart)).toBeLessThan(p95(both));
    const { firstTokenAlone, disaggregated } = apart.throughput;
    const move = disaggregated?.transfer.seconds.value ?? 0;
    expect(firstTokenAlone.value - both.throughput.firstTokenAlone.value).toBeCloseTo(move, 3);
  });

  it('counts the wait for the first token in the speed of a user', async () => {
    const { throughput } = await servingOf({ gpus: 8, prefillGpus: 2, promptTokens: 1920 });
    const { atSpeed, minSpeed } = throughput;
    const { users, tokensPerSecond, firstToken, userTokensPerSecond } =
      atSpeed ?? expect.unreachable();
    // They would have the speed after the first token with many more users, who all wait for the prompts.
    expect(userTokensPerSecond.value).toBeGreaterThan(3 * minSpeed);
    expect(firstToken.median.value).toBeGreaterThan(1);
    expect(tokensPerSecond.expected.value / users).toBeGreaterThan(0.95 * minSpeed);
  });

  it('takes the network between machines', async () => {
    const near = await servingOf({ prefillGpus: 4 });
    const far = await servingOf({ gpus: 16, prefillGpus: 8 });
    const secondsOf = ({ throughput }: typeof near) =>
      throughput.disaggregated?.transfer.seconds.value ?? 0;
    expect(secondsOf(far)).toBeGreaterThan(5 * secondsOf(near));
    // Twice the servers of both kinds.
    expect(
      far.throughput.full.tokensPerSecond.expected.value /
        near.throughput.full.tokensPerSecond.expected.value,
    ).toBeCloseTo(2, 1);
  });

  it('counts the GPUs of a load with those that read its prompts', async () => {
    const { fit } = await servingOf({ prefillGpus: 4, requestsPerSecond: 40, p95Seconds: 20 });
    expect(fit.load?.expected).toMatchObject({ met: true });
    // A unit has one server of each kind.
    const { expected } = fit.load ?? {};
    expect(expected?.met && expected.gpus.value % 2).toBe(0);
  });

  it.each<[RegExp, Partial<NamedFitOptions>]>([
    [/expected fewer than the 8 of/, { prefillGpus: 8 }],
    [/llama\.cpp does not have it/, { prefillGpus: 2, runtime: 'llama.cpp' }],
    [/those GPUs read the prompts/, { prefillGpus: 2, batching: 'whole' }],
    [/that decode, or read prompts/, { prefillGpus: 2, tensorParallel: 4 }],
  ])('is refused: %s', async (message, options) => {
    await expect(servingOf(options)).rejects.toThrow(message);
  });

  it('is written for programs that have it', async () => {
    const options = { gpu: 'dgx-h100', ...REQUESTS, prefillGpus: 2 } as const;
    const { serving, ...result } = fitOf(await llama(), options);
    if (serving === null) throw new Error('no server');
    const textOf = (name: 'vllm' | 'sglang' | 'llama-server') =>
      emitServing(name, { ...result, serving }, { name: 'meta/llama' }, []);
    expect(textOf('sglang').text).toContain('--disaggregation-mode decode');
    expect(textOf('sglang').text).toContain(
      'start 6 of these to decode, and 2 to read prompts with --disaggregation-mode prefill',
    );
    expect(textOf('vllm').text).toContain('"kv_role":"kv_consumer"');
    expect(textOf('llama-server').withoutCounterpart).toContain('2 GPUs that only read prompts');
  });
});
