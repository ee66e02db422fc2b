/**
 * Replicas that a load needs. The assumptions make the answer err on the side of too many:
 *
 * - Requests arrive at random and independently (Poisson), each with the same prompt and output. They are assigned to
 *   replicas at random, so each replica sees a Poisson stream of its share.
 * - A replica serves up to `batch` requests at a time, first come, first served. It does one thing after the other: a
 *   prefill of one admitted request if there is one, else a decoding step with one token per request in service
 *   (continuous batching: Orca, OSDI 2022). The first token comes from the prefill.
 * - An admitted request waits for the current step, for prefills, and for output − 1 steps of at most the full batch.
 *   Each of the other places turns over at most once in that time: its next request needs output − 1 steps of its own
 *   before it leaves. The longest time in service is therefore
 *
 *       service = batch · prefill + output · step(batch),
 *
 *   or prefill + (output − 1) · step(1) for a single request.
 * - If every request takes that long, waits only grow: the replica is no worse than an M/D/c queue with c = batch
 *   places. The wait is taken from Erlang's C formula for M/M/c with the same mean, whose service times vary more. That
 *   this bound holds at the 95th percentile is not proven here, but checked by simulation (test/estimate/fit/queueing.test.ts):
 *   P(wait > t) = C · exp(−(c / service − rate) · t) (Erlang, 1917; Kleinrock, Queueing Systems I, 1975, section 3.5).
 *
 * Latency is the time from a request's arrival to its last token. Its mean is an estimate, not a bound: it uses the mean
 * number of requests in service instead of the batch. The simulation is within 15% of it.
 */
import { add, div, inputs, ln, max, min, mul, sub, v } from '../../../model/budget/expression.js';
import { type Quantity, quantity } from '../../../model/budget/figure.js';
import type { LoadRequest } from './serving-work.js';

/** Share of requests that may exceed the target. */
const LATE = 0.05;

/** Limit of the batch size in the search; vLLM's default is 256 to 1,024 (max_num_seqs). */
export const LARGEST_BATCH = 1024;

/** Limit of replicas in the search. */
const MOST_REPLICAS = 2 ** 40;

export interface Server {
  /** Seconds of the prefill of one request. */
  readonly prefill: number;
  /** Seconds of a decoding step at the longest context, by batch size. Must not fall with the batch. */
  readonly step: (batch: number) => number;
  /** Output tokens per request. */
  readonly output: number;
  /** Requests that fit in memory at once. */
  readonly places: number;
  /** GPUs per replica. */
  readonly gpus: number;
}

/** Smallest deployment that meets the target. */
export interface LoadMet {
  /** Whether some number of GPUs meets the load. */
  readonly met: true;
  readonly gpus: Quantity;
  readonly replicas: Quantity;
  /** Sequences per replica at a time, at most. */
  readonly batch: Quantity;
  readonly p95Seconds: Quantity;
  /** Mean latency. */
  readonly meanSeconds: Quantity;
  /** Part of the mean: time in service at the mean number of requests. */
  readonly meanService: Quantity;
  /** Part of the 95th percentile: time in service with all places taken. */
  readonly service: Quantity;
  /** Part of the 95th percentile: waiting time before service. */
  readonly waiting: Quantity;
  /** Probability that a request finds all places taken. */
  readonly chance: Quantity;
  /** Share of the places that are taken. */
  readonly utilisation: Quantity;
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

export const LOAD_ASSUMPTION =
  'Poisson arrivals, all requests alike, dealt to replicas at random; continuous batching, prefills first and one at a ' +
  'time; the 95th percentile is of the time from arrival to last token: the longest time in service with all places ' +
  'taken, and the wait of an M/M/c queue (Erlang C); the mean is an estimate with the mean number of requests in service';

/**
 * Fewest replicas that keep 95% of requests within the target; among batch sizes with that number, the fastest. The
 * search relies on monotonicity: more requests never need fewer replicas, and a looser target never needs more.
 */
export function replicasFor(
  server: Server,
  { requestsPerSecond, p95Seconds }: LoadRequest,
): LoadAnswer {
  const alone = serviceOf(server, 1);
  if (server.places < 1) return { met: false, reason: 'no room', best: alone };
  const tooSlow = { met: false, reason: 'too slow', best: alone } as const;
  if (alone.value > p95Seconds) return tooSlow;
  let best: LoadMet | undefined;
  for (let batch = 1; batch <= Math.min(server.places, LARGEST_BATCH); batch++) {
    const service = serviceOf(server, batch);
    // Larger batches are at least as slow.
    if (service.value > p95Seconds) break;
    const most = best?.replicas.value ?? MOST_REPLICAS;
    const replicas = fewest(most, (count) => {
      const place = { service: service.value, batch, rate: requestsPerSecond / count };
      return service.value + waitOf(place) <= p95Seconds;
    });
    if (replicas === undefined) continue;
    // A batch is no better if its time in service alone is as long as the best p95.
    if (replicas === best?.replicas.value && service.value >= best.p95Seconds.value) continue;
    const wait = waitIn(service, batch, replicas, requestsPerSecond);
    const better =
      best === undefined ||
      replicas < best.replicas.value ||
      wait.p95Seconds.value < best.p95Seconds.value;
    // The mean takes a search of its own.
    if (better) best = metBy(server, wait, requestsPerSecond);
  }
  return best ?? tooSlow;
}

/** Smallest number up to `most` for which `holds` is true; `holds` stays true for all larger numbers. */
function fewest(most: number, holds: (count: number) => boolean): number | undefined {
  if (!holds(most)) return undefined;
  // Neighbouring batch sizes usually need the same number, so test that first.
  if (most > 1 && !holds(most - 1)) return most;
  let [fails, held] = [0, most];
  while (held - fails > 1) {
    const middle = fails + Math.floor((held - fails) / 2);
    if (holds(middle)) held = middle;
    else fails = middle;
  }
  return held;
}

/** Longest time of a request in service. */
function serviceOf({ prefill, step, output }: Server, batch: number): Quantity {
  const once = inputs({ prefill, output, step: step(batch) });
  return quantity({
    label: batch === 1 ? 'time of a request that is alone' : 'time in service, all places taken',
    unit: 'seconds',
    formula:
      batch === 1
        ? add(once.prefill, mul(sub(once.output, 1), once.step))
        : add(mul(v({ batch }), once.prefill), mul(once.output, once.step)),
    source:
      batch === 1
        ? 'its prefill gives the first token, each step one more'
        : 'each place is prefilled once, one step may be running, and each further token takes one',
  });
}

/**
 * Mean time of a request in service. With others in service it also takes the rest of their step, and each of their
 * prefills meanwhile. The step is that of the mean number of requests, which follows from this time (Little's law).
 */
function meanServiceOf(server: Server, batch: number, rate: number, longest: number): Quantity {
  const { prefill, step, output } = server;
  const shared = batch === 1 ? 0 : 1;
  const steps = output === 1 ? 0 : output - 1 + shared / 2;
  const secondsAt = (inService: number) =>
    (prefill + steps * step(inService)) / (1 - shared * rate * prefill);
  const occupied = (seconds: number) => Math.min(batch, Math.max(1, rate * seconds));
  let seconds = secondsAt(1);
  for (let round = 0; round < MOST_ROUNDS; round++) {
    const next = secondsAt(occupied(seconds));
    if (next - seconds <= CONVERGED * seconds) break;
    seconds = next;
  }
  const once = inputs({ prefill, steps, step: step(occupied(seconds)), longest });
  return quantity({
    label: 'mean time in service',
    unit: 'seconds',
    formula: min(
      once.longest,
      div(
        add(once.prefill, mul(once.steps, once.step)),
        sub(1, mul(v({ rate: shared * rate }), once.prefill)),
      ),
    ),
    source:
      'the steps after the prefill, and half of one for the rest of the current step, at the mean number of requests; ' +
      'prefills of others in between',
  });
}

/** Rounds of the search for the mean number of requests, and the relative change that ends it. */
const MOST_ROUNDS = 1000;
const CONVERGED = 1e-9;

/** Places of one replica, their service time in seconds, and requests per second. */
interface Places {
  readonly service: number;
  readonly batch: number;
  readonly rate: number;
}

/** 95th percentile of the wait for a place, in seconds; infinite if requests arrive faster than they are served. */
export function waitOf({ service, batch, rate }: Places): number {
  const load = rate * service;
  if (load >= batch) return Number.POSITIVE_INFINITY;
  const chance = waitChance(load, batch);
  return chance <= LATE ? 0 : Math.log(chance / LATE) / (batch / service - rate);
}

/** Erlang C: probability that all places are taken. `load` is in places, and less than `places`. */
export function waitChance(load: number, slots: number): number {
  const blocked = blockChance(load, slots);
  return blocked / (1 - (load / slots) * (1 - blocked));
}

/** Erlang B by recursion, which neither overflows nor underflows. */
function blockChance(load: number, slots: number): number {
  let blocked = 1;
  for (let place = 1; place <= slots; place++) {
    blocked = (load * blocked) / (place + load * blocked);
  }
  return blocked;
}

/** Wait for a place at a number of replicas, and the places. */
interface Wait
  extends Pick<LoadMet, 'service' | 'waiting' | 'chance' | 'utilisation' | 'p95Seconds'> {
  readonly batch: number;
  readonly replicas: number;
}

const arrivingAt = (requestsPerSecond: number, replicas: number) =>
  div(v({ requests_per_second: requestsPerSecond }), v({ replicas }));

function waitIn(
  service: Quantity,
  batch: number,
  replicas: number,
  requestsPerSecond: number,
): Wait {
  const rate = requestsPerSecond / replicas;
  const arriving = arrivingAt(requestsPerSecond, replicas);
  const inService = v({ service: service.value });
  const slots = v({ batch });
  const blocked = v({ blocked: blockChance(rate * service.value, batch) });
  const utilisation = quantity({
    label: 'places taken',
    unit: 'ratio',
    formula: div(mul(arriving, inService), slots),
    source: "Little's law",
  });
  const chance = quantity({
    label: 'chance to wait',
    unit: 'ratio',
    formula: div(blocked, sub(1, mul(v({ utilisation: utilisation.value }), sub(1, blocked)))),
    source: "Erlang's C from Erlang's B, `blocked`, by its recursion over the places",
  });
  const waiting = quantity({
    label: 'wait of 95 of 100 at most',
    unit: 'seconds',
    formula: div(
      max(0, ln(div(max(v({ chance: chance.value }), LATE), LATE))),
      sub(div(slots, inService), arriving),
    ),
    source: 'where P(wait > t) = chance · exp(−(batch / service − rate) · t) is 5% (M/M/c)',
  });
  const p95Seconds = quantity({
    label: '95th percentile of the time to the last token',
    unit: 'seconds',
    formula: add(inService, v({ waiting: waiting.value })),
    source: LOAD_ASSUMPTION,
  });
  return { batch, replicas, service, waiting, chance, utilisation, p95Seconds };
}

/** All figures of a met target, each with its formula. */
function metBy(
  server: Server,
  { batch, replicas, ...wait }: Wait,
  requestsPerSecond: number,
): LoadMet {
  const { service, waiting, chance, utilisation, p95Seconds } = wait;
  const rate = requestsPerSecond / replicas;
  const arriving = arrivingAt(requestsPerSecond, replicas);
  const slots = v({ batch });
  const meanService = meanServiceOf(server, batch, rate, service.value);
  const meanLoad = rate * meanService.value;
  const meanChance = v({ chance: waitChance(meanLoad, batch) });
  const meanSeconds = quantity({
    label: 'mean time to the last token',
    unit: 'seconds',
    formula: add(
      v({ service: meanService.value }),
      div(meanChance, mul(2, sub(div(slots, v({ service: meanService.value })), arriving))),
    ),
    source:
      'the mean time in service, and half the mean wait of an M/M/c queue with it (Erlang C), as in M/D/c with equal ' +
      'times in service (exact for one place)',
  });
  const one = (label: string, unit: Quantity['unit'], value: number, source: string) =>
    quantity({ label, unit, formula: v({ found: value }), source });
  return {
    met: true,
    gpus: quantity({
      label: 'GPUs',
      unit: 'GPUs',
      formula: mul(v({ replicas }), v({ gpus_of_a_replica: server.gpus })),
      source: 'each replica holds the whole model',
    }),
    replicas: one('replicas', 'replicas', replicas, 'the fewest that meet the target at any batch'),
    batch: one('requests in service at a time', 'requests', batch, 'the one with the least time'),
    p95Seconds,
    meanSeconds,
    meanService,
    service,
    waiting,
    chance,
    utilisation,
  };
}
