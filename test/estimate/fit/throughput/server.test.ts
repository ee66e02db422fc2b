/** A server of a model on GPUs: its steps, its throughput, its cost, and the GPUs that a load needs. */
import { describe, expect, it } from 'vitest';
import { LAUNCH } from '../../../../src/estimate/fit/efficiency.js';
import { decodeStep, stepSeconds } from '../../../../src/estimate/fit/serving/roofline.js';
import { fitServing } from '../../../../src/estimate/fit/serving/serving.js';
import type { ServingFitSetting } from '../../../../src/estimate/fit/serving/serving-work.js';
import { decodeWork, servedModel } from '../../../../src/estimate/fit/serving/serving-work.js';
import { replicasFor } from '../../../../src/estimate/fit/serving/throughput/arrivals.js';
import {
  EAGER_LAUNCH,
  runtimeSetting,
} from '../../../../src/estimate/fit/serving/throughput/runtimes.js';
import type { Servers } from '../../../../src/estimate/fit/serving/throughput/server.js';
import {
  acceptedTokens,
  serversOf,
  servingRates,
} from '../../../../src/estimate/fit/serving/throughput/server.js';
import type { Server } from '../../../../src/estimate/fit/serving/throughput/simulation.js';
import { expertBytesRead } from '../../../../src/estimate/fit/serving/throughput/step-seconds.js';
import type { ServerThroughput } from '../../../../src/estimate/fit/serving/throughput/throughput.js';
import { serverThroughput } from '../../../../src/estimate/fit/serving/throughput/throughput.js';
import { gpuNamed } from '../../../../src/estimate/hardware/gpus.js';
import { LLAMA_2_70B, LLAMA_3_70B, MINIGPT, setting } from '../serving-models.js';

const alone = (name: string) => ({ gpu: gpuNamed(name), gpus: 1, network: null });

const H100 = setting({ cluster: alone('h100-80gb'), batch: 1, prompt: 300, output: 212 });

const serversOn = (model: typeof MINIGPT, of: ServingFitSetting): Servers => {
  const servers = serversOf(model, { setting: of });
  if (typeof servers === 'string') throw new Error(servers);
  return servers;
};

const throughputOf = (
  model: typeof MINIGPT,
  of: ServingFitSetting,
  price?: number,
): ServerThroughput => {
  const found = serverThroughput(model, { setting: of }, price);
  if (typeof found === 'string') throw new Error(found);
  return found;
};

const fullRate = (of: ServingFitSetting, model = LLAMA_2_70B) =>
  throughputOf(model, of).full.tokensPerSecond.expected.value;

describe('step of a server', () => {
  it.each([1, 300, 500])(
    'is the decoding step of the roofline for one user, at %d tokens',
    (context) => {
      const of = { ...H100, prompt: context, output: 2 };
      const { expected, limit } = serversOn(MINIGPT, of);
      const work = decodeWork(servedModel(MINIGPT, of), context + 1);
      const step = decodeStep(work, servingRates(of), 1);
      expect(expected.stepSeconds(0, 1, context + 1)).toBeCloseTo(step.seconds.expected.value, 12);
      expect(limit.stepSeconds(0, 1, context + 1)).toBeCloseTo(step.seconds.lower.value, 12);
    },
  );

  it('reads each expert that a token selects, as the roofline does', () => {
    const work = { weightBytes: 10, expertGroups: [{ experts: 8, expertsPerToken: 2, bytes: 80 }] };
    expect(expertBytesRead(work, 1)).toBeCloseTo(20, 9);
    expect(expertBytesRead(work, 2)).toBeCloseTo(80 * (1 - 0.75 ** 2), 9);
    expect(expertBytesRead(work, 1e6)).toBeCloseTo(80, 9);
  });

  it('takes longer with eager launches, by the launches', () => {
    const runtime = runtimeSetting({ launching: 'eager' }, H100.cluster.gpu, 'bf16');
    const eager = { ...H100, runtime };
    const work = decodeWork(servedModel(MINIGPT, H100), 512);
    const at = (of: ServingFitSetting) => stepSeconds(work, servingRates(of), 1, 'expected').value;
    expect(at(eager) - at(H100)).toBeCloseTo(
      work.launches * (EAGER_LAUNCH.seconds - LAUNCH.seconds),
      12,
    );
  });
});

describe('throughput', () => {
  const on = (name: string, gpus: number, changes: Partial<ServingFitSetting> = {}) =>
    setting({
      ...{
        cluster: { ...alone(name), gpus },
        dtype: 'f8' as const,
        cacheDtype: 'f8_e4m3' as const,
      },
      ...{ prompt: 1000, output: 200, context: 1200, batch: 1 },
      ...changes,
    });

  it('is 11,000 to 20,000 tokens/s of Llama-2-70B in offline MLPerf on 4 H200, as published', () => {
    // 34,900 on eight (MLPerf Inference 5.1, closed, offline), mean prompt 294 and output 301.
    const { full } = throughputOf(
      LLAMA_2_70B,
      on('h200', 4, { prompt: 294, output: 301, context: 595 }),
    );
    const { lower, expected, upper, limit } = full.tokensPerSecond;
    expect(lower.value).toBeLessThan(34_900 / 2);
    expect(upper.value).toBeGreaterThan(34_900 / 2);
    expect(expected.value / (34_900 / 2)).toBeGreaterThan(0.8);
    expect(expected.value / (34_900 / 2)).toBeLessThan(1.25);
    expect(limit.value).toBeGreaterThan(expected.value);
  });

  it('does not fall with better hardware, more GPUs, shorter prompts or cached ones', () => {
    expect(fullRate(on('h200', 1))).toBeGreaterThan(
      fullRate(on('h100-80gb', 2, { tensorParallel: 2 })) / 2,
    );
    expect(fullRate(on('b200', 1))).toBeGreaterThan(fullRate(on('h200', 1)));
    expect(fullRate(on('h200', 4))).toBeCloseTo(4 * fullRate(on('h200', 1)), 6);
    expect(fullRate(on('h200', 1, { prompt: 200 }))).toBeGreaterThan(fullRate(on('h200', 1)));
    expect(fullRate(on('h200', 1, { prefixCache: 0.9 }))).toBeGreaterThan(
      1.5 * fullRate(on('h200', 1)),
    );
  });

  it.each(['bandwidth', 'memoryBytes'] as const)('grows with the %s of a GPU', (of) => {
    const { usable: _, ...gpu } = gpuNamed('h200');
    const rates = [1, 1.5, 2].map((factor) =>
      fullRate(
        on('h200', 1, { cluster: { ...alone('h200'), gpu: { ...gpu, [of]: factor * gpu[of] } } }),
      ),
    );
    expect(rates).toEqual(rates.toSorted((a, b) => a - b));
    expect(new Set(rates).size).toBeGreaterThan(1);
  });

  it('serves fewer users at a higher speed, who have it', () => {
    const of = on('h200', 1);
    const loads = [10, 20, 30].map((minSpeed) => throughputOf(LLAMA_2_70B, { ...of, minSpeed }));
    const users = loads.map(({ atSpeed }) => atSpeed?.users ?? 0);
    expect(users).toEqual(users.toSorted((a, b) => b - a));
    expect(users[2]).toBeLessThan(users[0] ?? 0);
    for (const { atSpeed, minSpeed, usersAtSpeed } of loads) {
      expect(atSpeed?.userTokensPerSecond.value).toBeGreaterThanOrEqual(minSpeed);
      expect(usersAtSpeed.lower).toBeLessThanOrEqual(atSpeed?.users ?? 0);
      expect(usersAtSpeed.upper).toBeGreaterThanOrEqual(atSpeed?.users ?? 0);
    }
    expect(throughputOf(LLAMA_2_70B, { ...of, minSpeed: 1e6 }).atSpeed).toBeNull();
  });

  it('costs the price of the GPUs per token', () => {
    const { full } = throughputOf(LLAMA_2_70B, on('h200', 2), 3);
    const expected = (2 * 3 * 1e6) / (3600 * full.tokensPerSecond.expected.value);
    expect(full.cost?.perMillionOutputTokens.value).toBeCloseTo(expected, 9);
    const total = full.totalTokensPerSecond.value / full.tokensPerSecond.expected.value;
    expect(total).toBeCloseTo(1200 / 200, 6);
  });

  it('is not computed without a peak, a link or room', () => {
    const without = (of: ServingFitSetting) => serverThroughput(LLAMA_2_70B, { setting: of });
    const { peakFlops: _, ...gpu } = gpuNamed('h200');
    expect(
      without(on('h200', 1, { cluster: { ...alone('h200'), gpu: { ...gpu, peakFlops: {} } } })),
    ).toBe('no peak');
    expect(without(on('l4', 1))).toBe('no room');
    expect(without(on('h200', 16, { tensorParallel: 16 }))).toBe('no link');
  });

  it('drafted tokens speed up a few users by the accepted ones, less the draft', () => {
    // (1 − 0.8^6) ÷ 0.2 (arXiv 2211.17192, equation 1).
    expect(acceptedTokens({ name: '', acceptance: 0.8, tokens: 5 })).toBeCloseTo(3.689, 3);
    expect(acceptedTokens({ name: '', acceptance: 1, tokens: 5 })).toBe(6);
    const of = on('h200', 1, { dtype: undefined } as Partial<ServingFitSetting>);
    const drafted = { ...of, draft: { name: 'minigpt', acceptance: 0.8, tokens: 5 } };
    const speed = (setting: ServingFitSetting, draft?: typeof MINIGPT) => {
      const servers = serversOf(LLAMA_2_70B, { setting, draft });
      if (typeof servers === 'string') throw new Error(servers);
      const { stepSeconds: seconds, tokensPerStep } = servers.expected;
      return tokensPerStep / seconds(0, 1, 1100);
    };
    const ratio = speed(drafted, MINIGPT) / speed(of);
    expect(ratio).toBeGreaterThan(2.5);
    expect(ratio).toBeLessThan(3.689);
  });
});

describe('programs', () => {
  const { gpu } = H100.cluster;
  it('are vLLM, and llama.cpp for types of GGUF files and Apple chips', () => {
    expect(runtimeSetting({}, gpu, 'bf16')).toMatchObject({ name: 'vllm', isChosen: false });
    expect(runtimeSetting({}, gpu, 'q4_k_m').name).toBe('llama.cpp');
    expect(runtimeSetting({}, gpuNamed('m4-max-36gb'), 'bf16').name).toBe('llama.cpp');
  });

  it('take a part of the memory, and as much as a sequence needs where that is more', () => {
    const places = (of: ServingFitSetting) => serversOn(LLAMA_3_70B, of);
    const of = setting({
      cluster: alone('h200'),
      dtype: 'bf16',
      context: 512,
      prompt: 300,
      output: 212,
    });
    // Weights of 141 GB are more than 90% of an H200.
    expect(places(of).memoryShare).toBe(0.96);
    expect(places(of).expected.places).toBeGreaterThan(0);
    const eight = setting({
      cluster: alone('h200'),
      dtype: 'f8',
      context: 512,
      prompt: 300,
      output: 212,
    });
    const runtime = (memoryShare: number) => runtimeSetting({ memoryShare }, gpu, 'f8');
    expect(places(eight).memoryShare).toBe(0.9);
    expect(places(eight).expected.places).toBeLessThan(
      places({ ...eight, runtime: runtime(1) }).expected.places,
    );
  });

  it('refuses chunks where batches are static', () => {
    const wish = { name: 'transformers', batching: 'chunked' } as const;
    expect(() => runtimeSetting(wish, gpu, 'bf16')).toThrow(/only static batches/);
  });
});

/** Steps of 10 ms of weights and half a millisecond for a sequence; prompts of 4 ms. */
const SERVER: Server = {
  stepSeconds: (prefill, decoding) =>
    (decoding > 0 ? 0.01 : 0) + 0.0005 * decoding + 0.0004 * prefill,
  batching: 'chunked',
  places: 64,
  parts: 1,
  stepTokens: 1000,
  prompt: 10,
  cachedTokens: 0,
  outputs: [20],
  tokensPerStep: 1,
  computedPerStep: 1,
};

describe('load', () => {
  const replicas = (requestsPerSecond: number, p95Seconds: number, server = SERVER) => {
    const answer = replicasFor(server, { requestsPerSecond, p95Seconds }, 2);
    return answer.met ? answer.replicas.value : Number.POSITIVE_INFINITY;
  };

  it('is missed by a target that a single request misses, with its time', () => {
    const one = 0.004 + 19 * 0.0105;
    const missed = replicasFor(SERVER, { requestsPerSecond: 1, p95Seconds: 0.999 * one }, 2);
    expect(missed).toMatchObject({ met: false, reason: 'too slow' });
    expect(missed.met ? 0 : missed.best.value).toBeCloseTo(one, 12);
  });

  it('needs more replicas for more requests, and no more for a looser target', () => {
    const byRate = [10, 50, 200, 800].map((rate) => replicas(rate, 0.5));
    expect(byRate).toEqual(byRate.toSorted((a, b) => a - b));
    expect(byRate.at(-1)).toBeGreaterThan(byRate[0] ?? 0);
    const byTarget = [0.25, 0.4, 0.8, 3].map((target) => replicas(400, target));
    expect(byTarget).toEqual(byTarget.toSorted((a, b) => b - a));
  });

  it('inverts the throughput: no fewer replicas than keep up with the requests', () => {
    const perReplica = 64 / (0.256 / 20 + 20 * (0.01 + 0.032));
    const needed = replicas(400, 30);
    expect(needed).toBeGreaterThanOrEqual(Math.ceil(400 / (1.3 * perReplica)));
    expect(needed).toBeLessThanOrEqual(Math.ceil((1.3 * 400) / perReplica));
  });

  it('counts the GPUs of all replicas, and the same again for the same seed', () => {
    const request = { requestsPerSecond: 200, p95Seconds: 0.5 };
    const answer = replicasFor(SERVER, request, 2);
    if (!answer.met) throw new Error('the load is not met');
    expect(answer.gpus.value).toBe(2 * answer.replicas.value);
    expect(answer.p95Seconds.value).toBeLessThanOrEqual(0.5);
    expect(JSON.stringify(replicasFor(SERVER, request, 2))).toBe(JSON.stringify(answer));
  });

  it('of a fit has the ends of the range', () => {
    const load = { requestsPerSecond: 40, p95Seconds: 20 };
    const of = setting({ ...H100, load });
    const { load: answers } = fitServing(MINIGPT, of);
    const gpus = (['lower', 'expected', 'upper'] as const).map((bound) => {
      const answer = answers?.[bound];
      return answer?.met ? answer.gpus.value : Number.NaN;
    });
    expect(gpus).toEqual(gpus.toSorted((a, b) => a - b));
  });
});
