/**
 * Replicas that a load needs: the simulation with requests at random times (Poisson), dealt to the replicas at random,
 * so that each sees a Poisson stream of its share.
 */
import { div, mul, v } from '../../../../model/budget/expression.js';
import type { Bounds, ByBound, Quantity } from '../../../../model/budget/figure.js';
import { quantity } from '../../../../model/budget/figure.js';
import { byBound } from '../../bounds.js';
import type { LoadRequest } from '../serving-work.js';
import { THROUGHPUT_SPREAD } from './server-shares.js';
import type { Server, Simulated } from './simulation.js';
import { simulate } from './simulation.js';
import type { Percentiles } from './throughput.js';
import { percentile, percentilesOf, SERVER_SEED } from './throughput.js';

/** Smallest deployment that meets the target. */
export interface LoadMet {
  /** Whether some number of GPUs meets the load. */
  readonly met: true;
  readonly gpus: Quantity;
  readonly replicas: Quantity;
  /** Requests per replica at a time, at most. */
  readonly batch: Quantity;
  /** Mean requests per replica in service or waiting. */
  readonly meanRequests: Quantity;
  /** Time from arrival to the last token that 95% of the requests keep. */
  readonly p95Seconds: Quantity;
  /** Mean time from arrival to the last token. */
  readonly meanSeconds: Quantity;
  /** Seconds from arrival to the first token. */
  readonly firstToken: Percentiles;
  /** Seconds per token after the first one. */
  readonly perToken: Percentiles;
}

/** No number of GPUs meets the target. */
export interface LoadMissed {
  /** Whether some number of GPUs meets the load. */
  readonly met: false;
  /** Reason: a single request is too slow, or memory is too small for one. */
  readonly reason: 'too slow' | 'no room';
  /** Time of a single request, the best possible. */
  readonly best: Quantity;
}

export type LoadAnswer = LoadMet | LoadMissed;

/** GPUs that a load needs; `lower` for a server as fast as few published runs, `upper` for one as slow as few. */
export interface ServingLoad extends ByBound<LoadAnswer> {
  /** Assumption about the arrivals. */
  readonly assumption: string;
}

const LOAD_ASSUMPTION =
  'Poisson arrivals, dealt to replicas at random; each replica is simulated with continuous batching, first come, first ' +
  'served; the ends are servers 1.5 times as fast and as slow, as nine of ten published runs are';

/** GPUs at the speed of each bound. Times of a measured server have no range. */
export function servingLoad(
  server: Server,
  request: LoadRequest,
  { gpus, isMeasured }: { readonly gpus: number; readonly isMeasured: boolean },
): ServingLoad {
  const expected = replicasFor(server, request, gpus);
  const at = (bound: keyof Bounds) =>
    bound === 'expected' || isMeasured
      ? expected
      : replicasFor(scaled(server, 1 / THROUGHPUT_SPREAD[OTHER_END[bound]]), request, gpus);
  return { ...byBound(at), assumption: LOAD_ASSUMPTION };
}

/** The lower bound of a time is the upper one of a speed. */
const OTHER_END = { lower: 'upper', upper: 'lower' } as const;

const scaled = ({ stepSeconds, prefill, ...server }: Server, factor: number): Server => ({
  ...server,
  stepSeconds: (...load) => factor * stepSeconds(...load),
  ...(prefill && {
    prefill: { ...prefill, readSeconds: (prompts) => factor * prefill.readSeconds(prompts) },
  }),
});

/** Limit of replicas in the search. */
const MOST_REPLICAS = 2 ** 40;

/** Simulated requests at least, and for each place. */
const FEWEST_REQUESTS = 1000;
const REQUESTS_PER_PLACE = 3;

/** Fewest replicas that meet the target. The search relies on more replicas being no slower. */
export function replicasFor(server: Server, request: LoadRequest, gpus: number): LoadAnswer {
  const { requestsPerSecond, p95Seconds } = request;
  const alone = aloneSeconds(server);
  if (server.places < 1) return { met: false, reason: 'no room', best: alone };
  if (alone.value > p95Seconds) return { met: false, reason: 'too slow', best: alone };
  const runAt = (replicas: number) =>
    simulate(
      server,
      {
        requestsPerSecond: requestsPerSecond / replicas,
        requests: Math.max(
          FEWEST_REQUESTS,
          REQUESTS_PER_PLACE * Math.min(server.places, MOST_BUSY),
        ),
      },
      SERVER_SEED,
    );
  const isMet = (run: Simulated) =>
    (percentile(run.lastToken, 0.95) ?? Number.POSITIVE_INFINITY) <= p95Seconds;
  const most = answersPerSecond(server);
  // Fewer cannot keep up with the arrivals.
  const least = Math.max(1, Math.ceil(requestsPerSecond / most));
  let [fails, holds] = [least - 1, least];
  while (holds < MOST_REPLICAS && !isMet(runAt(holds))) [fails, holds] = [holds, 2 * holds];
  if (holds >= MOST_REPLICAS) return { met: false, reason: 'too slow', best: alone };
  while (holds - fails > 1) {
    const middle = fails + Math.floor((holds - fails) / 2);
    if (isMet(runAt(middle))) holds = middle;
    else fails = middle;
  }
  return metBy(runAt(holds), holds, server, gpus);
}

/** Places for which the requests of a simulation are counted. */
const MOST_BUSY = 1024;

/** Requests per second of a server with all places taken. */
function answersPerSecond(server: Server): number {
  const { answers, seconds } = simulate(server, { users: server.places }, SERVER_SEED);
  return answers / seconds;
}

/** Time of a single request. */
function aloneSeconds(server: Server): Quantity {
  const one = { ...server, places: 1 };
  const { lastToken } = simulate(one, { users: 1 }, SERVER_SEED);
  return quantity({
    label: 'time of a request that is alone',
    unit: 'seconds',
    formula: v({ found: percentile(lastToken, 0.5) ?? 0 }),
    source: 'a simulation with one user',
  });
}

function metBy(run: Simulated, replicas: number, server: Server, gpus: number): LoadMet {
  const one = (label: string, unit: Quantity['unit'], found: number, source: string) =>
    quantity({ label, unit, formula: v({ found }), source });
  const source = `a simulation of one replica with ${run.answers} requests`;
  const total = run.lastToken.reduce((sum, seconds) => sum + seconds, 0);
  return {
    met: true,
    gpus: quantity({
      label: 'GPUs',
      unit: 'GPUs',
      formula: mul(v({ replicas }), v({ gpus_of_a_replica: gpus })),
      source: 'each replica holds the whole model',
    }),
    replicas: one('replicas', 'replicas', replicas, 'the fewest that meet the target'),
    batch: one('requests in service at a time', 'requests', server.places, 'as many as fit'),
    meanRequests: one('mean requests in service or waiting', 'requests', run.meanRequests, source),
    p95Seconds: one(
      '95th percentile of the time to the last token',
      'seconds',
      percentile(run.lastToken, 0.95) ?? 0,
      source,
    ),
    meanSeconds: quantity({
      label: 'mean time to the last token',
      unit: 'seconds',
      formula: div(v({ seconds: total }), v({ answers: run.answers })),
      source,
    }),
    firstToken: percentilesOf('time to the first token', run.firstToken),
    perToken: percentilesOf('time per token', run.perToken),
  };
}
