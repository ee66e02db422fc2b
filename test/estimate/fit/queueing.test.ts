import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type LoadMet,
  replicasFor,
  type Server,
  waitChance,
  waitOf,
} from '../../../src/estimate/fit/serving/queueing.js';

describe('waiting', () => {
  it.each([
    // One place: the share of time it is taken. Two at a load of 1: 1/3. Ten at 8: 0.409 (Erlang's tables).
    [0.7, 1, 0.7],
    [1, 2, 1 / 3],
    [8, 10, 0.409],
  ])('at load %d with %i places has chance %f', (load, places, chance) => {
    expect(waitChance(load, places)).toBeCloseTo(chance, 3);
  });

  it('is infinite above the service rate, and zero at low load', () => {
    expect(waitOf({ service: 1, batch: 4, rate: 4 })).toBe(Number.POSITIVE_INFINITY);
    expect(waitOf({ service: 1, batch: 4, rate: 0.1 })).toBe(0);
    // M/M/1 at 0.8: ln(0.8 / 0.05) / (1 − 0.8).
    expect(waitOf({ service: 1, batch: 1, rate: 0.8 })).toBeCloseTo(Math.log(16) / 0.2, 9);
  });
});

/** A step reads 10 ms of weights, and half a millisecond for each sequence. */
const SERVER: Server = {
  prefill: 0.004,
  step: (batch) => 0.01 + 0.0005 * batch,
  output: 20,
  places: 256,
  gpus: 2,
};

describe('replicas', () => {
  it('miss a target that a single request misses, with its time', () => {
    const alone = 0.004 + 19 * 0.0105;
    const missed = replicasFor(SERVER, { requestsPerSecond: 1, p95Seconds: alone * 0.999 });
    expect(missed).toMatchObject({ met: false, reason: 'too slow' });
    expect(missed.met ? 0 : missed.best.value).toBeCloseTo(alone, 12);
    expect(replicasFor(SERVER, { requestsPerSecond: 1, p95Seconds: alone * 1.001 }).met).toBe(true);
    const crowded = { ...SERVER, places: 0 };
    expect(replicasFor(crowded, { requestsPerSecond: 1, p95Seconds: 9 })).toMatchObject({
      met: false,
      reason: 'no room',
    });
  });

  const gpus = (server: Server, requestsPerSecond: number, p95Seconds: number) => {
    const answer = replicasFor(server, { requestsPerSecond, p95Seconds });
    return answer.met ? answer.gpus.value : Number.POSITIVE_INFINITY;
  };

  const servers = fc
    .record({
      prefill: fc.double({ min: 1e-4, max: 0.1, noNaN: true }),
      weights: fc.double({ min: 1e-4, max: 0.1, noNaN: true }),
      cache: fc.double({ min: 1e-6, max: 1e-2, noNaN: true }),
      output: fc.integer({ min: 1, max: 100 }),
      places: fc.integer({ min: 1, max: 100 }),
    })
    .map(
      ({ prefill, weights, cache, output, places }): Server => ({
        prefill,
        step: (batch) => weights + batch * cache,
        output,
        places,
        gpus: 1,
      }),
    );
  const positive = (max: number) => fc.double({ min: 0.01, max, noNaN: true });

  it('never decrease with more requests, and never increase with a looser target', () => {
    fc.assert(
      fc.property(servers, positive(1000), positive(20), positive(3), (server, qps, p95, more) => {
        const base = gpus(server, qps, p95);
        expect(gpus(server, qps * (1 + more), p95)).toBeGreaterThanOrEqual(base);
        expect(gpus(server, qps, p95 * (1 + more))).toBeLessThanOrEqual(base);
      }),
      { numRuns: 200 },
    );
  });

  it('are minimal: with one replica less, no batch meets the target', () => {
    const target = { requestsPerSecond: 300, p95Seconds: 0.6 };
    const answer = replicasFor(SERVER, target) as LoadMet;
    expect(answer.p95Seconds.value).toBeLessThanOrEqual(0.6);
    const fewer = answer.replicas.value - 1;
    expect(fewer).toBeGreaterThan(0);
    for (let batch = 1; batch <= SERVER.places; batch++) {
      const step = SERVER.step(batch);
      const service = batch === 1 ? 0.004 + 19 * step : batch * 0.004 + 20 * step;
      expect(service + waitOf({ service, batch, rate: 300 / fewer })).toBeGreaterThan(0.6);
    }
  });
});

/** One replica, event by event: prefills first and one at a time, else a step for all in service. */
function simulate(server: Server, batch: number, rate: number, requests: number, seed: number) {
  let state = seed;
  const random = () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
  const arrivals: number[] = [];
  for (let at = 0; arrivals.length < requests; ) {
    at -= Math.log(1 - random()) / rate;
    arrivals.push(at);
  }
  const latencies: number[] = [];
  let longestService = 0;
  let now = 0;
  let next = 0; // the first without a place
  let unread: { at: number; placed: number }[] = [];
  let decoding: { at: number; placed: number; left: number }[] = [];
  const finish = ({ at, placed }: { at: number; placed: number }) => {
    latencies.push(now - at);
    longestService = Math.max(longestService, now - placed);
  };
  /** Arrivals take a place when they come, or as soon as one is free. */
  const admit = (freeSince: number) => {
    while (next < requests && unread.length + decoding.length < batch) {
      const at = arrivals[next] ?? 0;
      if (at > now) break;
      unread.push({ at, placed: Math.max(at, freeSince) });
      next += 1;
    }
  };
  let freeSince = 0;
  while (latencies.length < requests) {
    admit(freeSince);
    const [first, ...others] = unread;
    if (first) {
      now += server.prefill;
      unread = others;
      if (server.output === 1) finish(first);
      else decoding.push({ ...first, left: server.output - 1 });
      if (server.output === 1) freeSince = now;
    } else if (decoding.length > 0) {
      const full = decoding.length === batch;
      now += server.step(decoding.length);
      decoding = decoding.map((each) => ({ ...each, left: each.left - 1 }));
      for (const each of decoding.filter(({ left }) => left === 0)) finish(each);
      decoding = decoding.filter(({ left }) => left > 0);
      // With free places, requests that came meanwhile took one on arrival; otherwise they take one now.
      if (full && decoding.length < batch) freeSince = now;
    } else {
      now = Math.max(now, arrivals[next] ?? now);
    }
  }
  latencies.sort((a, b) => a - b);
  const mean = latencies.reduce((sum, each) => sum + each, 0) / requests;
  return { p95: latencies[Math.ceil(0.95 * requests) - 1] ?? 0, mean, longestService };
}

describe('a simulation of continuous batching', () => {
  const heavyPrefill: Server = { ...SERVER, prefill: 0.05 };
  const longOutput: Server = { ...SERVER, output: 200, step: (batch) => 0.005 + 0.0001 * batch };
  const single: Server = { ...SERVER, places: 1 };
  const oneToken: Server = { ...SERVER, output: 1 };

  it.each<[string, Server, number, number, number]>([
    ['a light load', SERVER, 20, 0.5, 1],
    ['a heavy load', SERVER, 300, 0.6, 2],
    ['a loose target', SERVER, 300, 3, 3],
    ['long prompts', heavyPrefill, 50, 1.5, 4],
    ['long outputs', longOutput, 100, 3, 5],
    ['one at a time', single, 30, 1, 6],
    ['one token', oneToken, 400, 0.1, 7],
  ])(
    'has 95 % of requests in time, and none beyond the service time: %s',
    (_, server, qps, p95, seed) => {
      const answer = replicasFor(server, { requestsPerSecond: qps, p95Seconds: p95 }) as LoadMet;
      expect(answer.met).toBe(true);
      const rate = qps / answer.replicas.value;
      const seen = simulate(server, answer.batch.value, rate, 20_000, seed);
      expect(seen.p95).toBeLessThanOrEqual(answer.p95Seconds.value);
      expect(seen.longestService).toBeLessThanOrEqual(answer.service.value * (1 + 1e-9));
      // The bound is not far off.
      expect(seen.p95).toBeGreaterThan(0.2 * answer.p95Seconds.value);
      // The mean is an estimate.
      expect(seen.mean / answer.meanSeconds.value).toBeGreaterThan(0.85);
      expect(seen.mean / answer.meanSeconds.value).toBeLessThan(1.15);
    },
  );

  it('has late requests with too few replicas', () => {
    const target = { requestsPerSecond: 300, p95Seconds: 0.6 };
    const answer = replicasFor(SERVER, target) as LoadMet;
    const rate = 300 / answer.replicas.value;
    const seen = simulate(SERVER, answer.batch.value, 3 * rate, 20_000, 8);
    expect(seen.p95).toBeGreaterThan(0.6);
  });
});
