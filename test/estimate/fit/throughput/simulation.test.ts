/** A simulated server against results of queueing theory, and against itself. */
import { describe, expect, it } from 'vitest';
import type {
  Demand,
  Server,
  Simulated,
} from '../../../../src/estimate/fit/serving/throughput/simulation.js';
import { simulate } from '../../../../src/estimate/fit/serving/throughput/simulation.js';

const SEED = 7;

/** Steps of 1 ms whatever they compute, answers of 1,000 tokens, prompts in no time. */
const CONSTANT: Server = {
  stepSeconds: (prefill, decoding) => (prefill > 0 && decoding === 0 ? 0 : 1e-3),
  batching: 'chunked',
  places: 1,
  parts: 1,
  stepTokens: 8192,
  prompt: 1,
  cachedTokens: 0,
  outputs: [1001],
  tokensPerStep: 1,
  computedPerStep: 1,
};

/** Reading of 10 ms for a step, 0.05 ms for a sequence, 0.01 ms for a prompt token. */
const CONTINUOUS: Server = {
  ...CONSTANT,
  stepSeconds: (prefill, decoding, context) =>
    10e-3 + 0.05e-3 * decoding + 0.01e-3 * prefill + 1e-9 * decoding * context,
  places: 64,
  parts: 1,
  stepTokens: 2048,
  prompt: 500,
  outputs: [100],
};

const mean = (values: readonly number[]) =>
  values.reduce((sum, value) => sum + value, 0) / values.length;

const rateOf = ({ outputTokens, seconds }: Simulated) => outputTokens / seconds;

/** Erlang's C by the sum of its definition. */
function erlangC(load: number, places: number): number {
  let term = 1;
  let sum = 0;
  for (let k = 0; k < places; k++) {
    sum += term;
    term *= load / (k + 1);
  }
  const full = (term * places) / (places - load);
  return full / (sum + full);
}

/** Answers whose lengths are an exponential distribution with a mean of 1,000 tokens, in 2,000 equal shares. */
const EXPONENTIAL = Array.from({ length: 2000 }, (_, at) =>
  Math.max(1, Math.round(1 - 1000 * Math.log(1 - (at + 0.5) / 2000))),
);

describe('laws of queues', () => {
  const demands: readonly [string, Server, Demand][] = [
    ['users', CONTINUOUS, { users: 40 }],
    ['few users', CONTINUOUS, { users: 1 }],
    ['arrivals', CONTINUOUS, { requestsPerSecond: 20, requests: 4000 }],
    [
      'answers of one token',
      { ...CONTINUOUS, outputs: [1] },
      { requestsPerSecond: 1, requests: 4000 },
    ],
    [
      'whole prompts',
      { ...CONTINUOUS, batching: 'whole' },
      { requestsPerSecond: 15, requests: 4000 },
    ],
    [
      'static batches',
      { ...CONTINUOUS, batching: 'static' },
      { requestsPerSecond: 5, requests: 4000 },
    ],
  ];
  it.each(demands)("Little's law holds for %s", (_, server, demand) => {
    const run = simulate(server, demand, SEED);
    const inSystem = (run.answers / run.seconds) * mean(run.lastToken);
    expect(run.meanRequests / inSystem).toBeCloseTo(1, 1);
  });

  it.each([0.5, 0.8])('one place with equal requests waits as M/D/1 at a load of %d', (load) => {
    const run = simulate(CONSTANT, { requestsPerSecond: load, requests: 60_000 }, SEED);
    // Erlang (1909): mean wait of load × service ÷ 2 (1 − load).
    const expected = load / (2 * (1 - load));
    expect((mean(run.lastToken) - 1) / expected).toBeCloseTo(1, 1);
  });

  it.each([
    [4, 3],
    [16, 13],
  ])("%d places wait as Erlang's C says at a load of %d", (places, load) => {
    const server = { ...CONSTANT, places, outputs: EXPONENTIAL };
    const run = simulate(server, { requestsPerSecond: load, requests: 80_000 }, SEED);
    const service = mean(EXPONENTIAL.map((tokens) => (tokens - 1) * 1e-3));
    const expected = (erlangC(load * service, places) * service) / (places - load * service);
    expect((mean(run.lastToken) - service) / expected).toBeGreaterThan(0.85);
    expect((mean(run.lastToken) - service) / expected).toBeLessThan(1.15);
  });
});

describe('prompts that other servers read', () => {
  /** Prompts in 0.2 s, whose caches move in no time, beside decoding without prompts. */
  const APART: Server = {
    ...CONTINUOUS,
    prefill: {
      ...{ servers: 1, parts: 1, promptsOfStep: 1, readSeconds: (prompts) => 0.2 * prompts },
      ...{ transferSeconds: 0, isOverlapped: false },
    },
  };
  const apart = (changes: Partial<NonNullable<Server['prefill']>>): Server => ({
    ...APART,
    prefill: { ...(APART.prefill as NonNullable<Server['prefill']>), ...changes },
  });

  it.each<[string, Server, Demand]>([
    ['users', APART, { users: 40 }],
    ['slow links', apart({ servers: 2, transferSeconds: 0.15 }), { users: 40 }],
    ['arrivals', apart({ servers: 8 }), { requestsPerSecond: 20, requests: 4000 }],
    [
      'answers of one token',
      { ...apart({ servers: 4, promptsOfStep: 3, transferSeconds: 0.02 }), outputs: [1] },
      { requestsPerSecond: 15, requests: 4000 },
    ],
  ])("Little's law holds for %s", (_, server, demand) => {
    const run = simulate(server, demand, SEED);
    const inSystem = (run.answers / run.seconds) * mean(run.lastToken);
    expect(run.meanRequests / inSystem).toBeCloseTo(1, 1);
  });

  it('in no time and over endless links are those of a server whose prompts take no time', () => {
    const stepSeconds: Server['stepSeconds'] = (prefill, decoding, context) =>
      prefill > 0 && decoding === 0 ? 0 : CONTINUOUS.stepSeconds(0, decoding, context);
    const none = { ...CONTINUOUS, stepSeconds };
    const instant = { ...apart({ readSeconds: () => 0 }), stepSeconds };
    for (const users of [1, 8, 64]) {
      const [own, other] = [none, instant].map((each) => simulate(each, { users }, SEED));
      expect(other && own && rateOf(other) / rateOf(own)).toBeCloseTo(1, 1);
    }
  });

  it.each([0.5, 0.8])('wait as M/D/1 at a load of %d where answers have one token', (load) => {
    const server = { ...apart({ readSeconds: () => 1 }), outputs: [1] };
    const run = simulate(server, { requestsPerSecond: load, requests: 60_000 }, SEED);
    expect((mean(run.lastToken) - 1) / (load / (2 * (1 - load)))).toBeCloseTo(1, 1);
  });

  it('limit a server by the slowest of reading, links and decoding', () => {
    const rate = (server: Server, users = 64) => {
      const run = simulate(server, { users }, SEED);
      return run.answers / run.seconds;
    };
    expect(rate(APART)).toBeCloseTo(1 / 0.2, 1);
    expect(rate(apart({ servers: 2 }))).toBeCloseTo(2 / 0.2, 0);
    expect(rate(apart({ servers: 2, transferSeconds: 0.5 }))).toBeCloseTo(2 / 0.5, 1);
    // 64 sequences in steps of 13.2 ms, 99 for each answer.
    const decoding = 64 / (99 * (10e-3 + 64 * 0.05e-3));
    expect(rate(apart({ servers: 100 }), 200) / decoding).toBeCloseTo(1, 1);
  });

  it('delay a lone first token by reading and link, and no other one', () => {
    const alone = simulate(apart({ transferSeconds: 0.03 }), { users: 1 }, SEED);
    expect(alone.firstToken[0]).toBeCloseTo(0.23, 9);
    const best = simulate(apart({ transferSeconds: 0.03, isOverlapped: true }), { users: 1 }, SEED);
    expect(best.firstToken[0]).toBeCloseTo(0.2, 9);
    const [busy] = simulate(APART, { users: 8 }, SEED).perToken.slice(-1);
    expect(busy).toBeLessThan(CONTINUOUS.stepSeconds(0, 9, 700));
  });
});

describe('simulation', () => {
  it('the same seed gives the same run, another seed another one', () => {
    const demand = { requestsPerSecond: 20, requests: 500 };
    const run = (seed: number) => simulate(CONTINUOUS, demand, seed);
    expect(run(1)).toEqual(run(1));
    expect(run(1).lastToken).not.toEqual(run(2).lastToken);
  });

  it('one user has a token per step', () => {
    const { perToken } = simulate({ ...CONTINUOUS, outputs: [11] }, { users: 1 }, SEED);
    const context = 500 + 1 + 4.5;
    expect(perToken[0]).toBeCloseTo(10e-3 + 0.05e-3 + 1e-9 * context, 12);
  });

  it('throughput grows with users, and the speed of each falls', () => {
    const runs = [1, 4, 16, 64].map((users) => simulate(CONTINUOUS, { users }, SEED));
    const rates = runs.map(rateOf);
    expect(rates).toEqual(rates.toSorted((a, b) => a - b));
    const times = runs.map(({ perToken }) => perToken.at(-1) ?? 0);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
  });

  it('a server at capacity has the work of its steps', () => {
    // In a step: 64 sequences without those in prefill, which are 1 in 101 steps. 100 tokens need 500 of the prompt.
    const run = simulate(CONTINUOUS, { users: 64 }, SEED);
    const perAnswer = run.seconds / run.answers;
    const ofPrompt = 500 * 0.01e-3;
    const ofSteps = (100 / 64) * (10e-3 + 64 * 0.05e-3);
    expect(perAnswer / (ofPrompt + ofSteps)).toBeGreaterThan(0.95);
    expect(perAnswer / (ofPrompt + ofSteps)).toBeLessThan(1.05);
  });

  it('prompts in chunks delay no token as long as whole prompts do', () => {
    const server = { ...CONTINUOUS, prompt: 8000, stepTokens: 512 };
    const demand = { requestsPerSecond: 4, requests: 1000 };
    const slowest = (batching: Server['batching']) =>
      simulate({ ...server, batching }, demand, SEED).perToken.at(-1) ?? 0;
    expect(slowest('chunked')).toBeLessThan(slowest('whole'));
  });

  it('static batches of unequal answers waste places', () => {
    const server = { ...CONTINUOUS, outputs: [100, 10] };
    const rate = (batching: Server['batching']) =>
      rateOf(simulate({ ...server, batching }, { users: 64 }, SEED));
    expect(rate('static')).toBeLessThan(0.75 * rate('chunked'));
  });

  it('a cached prefix saves the steps of its tokens', () => {
    const server = { ...CONTINUOUS, prompt: 4000 };
    const first = (cachedTokens: number) =>
      simulate({ ...server, cachedTokens }, { users: 1 }, SEED).firstToken[0] ?? 0;
    // Two steps for 4,000 tokens in steps of 2,048, one for 1,000.
    expect(first(0)).toBeCloseTo(2 * 10e-3 + 40e-3, 9);
    expect(first(3000)).toBeCloseTo(10e-3 + 10e-3, 9);
  });

  it('several tokens per step shorten answers', () => {
    const server = { ...CONTINUOUS, tokensPerStep: 2.5, computedPerStep: 4 };
    const { lastToken, firstToken } = simulate({ ...server, outputs: [101] }, { users: 1 }, SEED);
    const steps = 40;
    expect((lastToken[0] ?? 0) - (firstToken[0] ?? 0)).toBeCloseTo(steps * 10.05e-3, 3);
  });
});
