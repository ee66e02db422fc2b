/**
 * How many replicas a load needs. What is assumed, and why the answer errs on the side of too many:
 *
 * - Requests come at random and independently (Poisson), each with the same prompt and output; they are dealt to the
 *   replicas at random, so that each sees a Poisson stream of its share.
 * - A replica serves up to `batch` requests at a time, first come, first served. It does one thing after the other: a
 *   prefill of one request that got a place, whenever there is one, else a step of decoding, one token for each
 *   request in service (continuous batching: Orca, OSDI 2022). The first token comes from the prefill.
 * - So a request that got a place waits for the step in hand, for prefills, and for output − 1 steps of at most the
 *   full batch. Each of the other places turns over at most once in that time, as its next request needs output − 1
 *   steps of its own before it leaves. Hence no request is longer in service than
 *
 *       service = batch · prefill + output · step(batch),
 *
 *   or prefill + (output − 1) · step(1) where it is alone.
 * - If all take that long, waits only grow: the replica is no worse than a queue M/D/c with c = batch places. Of it we
 *   take the wait that Erlang's C formula gives for M/M/c with the same mean, whose times of service vary more. That
 *   this is no shorter at the 95th of 100 is not proven here, but held by simulation (test/fit/queueing.test.ts):
 *   P(wait > t) = C · exp(−(c / service − rate) · t) (Erlang, 1917; Kleinrock, Queueing Systems I, 1975, section 3.5).
 *
 * What is answered for is the time from a request's arrival to its last token.
 */
import { add, div, inputs, ln, max, mul, sub, v } from '../../budget/expression.js';
import { type Quantity, quantity } from '../../budget/quantity.js';
import type { LoadWish } from './serving-work.js';

/** Shares of requests that may be later than promised. */
const LATE = 0.05;

/** Requests in service at a time that are tried at most; vLLM's default is 256 to 1,024 (max_num_seqs). */
export const LARGEST_BATCH = 1024;

/** More replicas than this are not searched for. */
const MOST_REPLICAS = 2 ** 40;

export interface Server {
  /** Seconds of the prefill of one request. */
  readonly prefill: number;
  /** Seconds of a step of decoding with so many requests, at their longest. Must not fall with the batch. */
  readonly step: (batch: number) => number;
  /** Tokens that a request gets. */
  readonly output: number;
  /** Requests for which there is memory. */
  readonly places: number;
  /** GPUs of a replica. */
  readonly gpus: number;
}

/** So many replicas meet the target. */
export interface LoadMet {
  readonly met: true;
  readonly gpus: Quantity;
  readonly replicas: Quantity;
  /** Sequences that a replica serves at a time, at most. */
  readonly batch: Quantity;
  readonly p95Seconds: Quantity;
  /** Of it: the time in service with all places taken. */
  readonly service: Quantity;
  /** … and the time before it that 95 of 100 wait at most. */
  readonly waiting: Quantity;
  /** That a request finds all places taken. */
  readonly chance: Quantity;
  /** Share of the places that are taken. */
  readonly utilisation: Quantity;
}

/** No number of GPUs meets the target. */
export interface LoadMissed {
  readonly met: false;
  /** A request that is alone on its GPUs is too slow, or there is no memory for even one. */
  readonly reason: 'too slow' | 'no room';
  /** What such a request takes: the best that there is. */
  readonly best: Quantity;
}

export type LoadAnswer = LoadMet | LoadMissed;

export const LOAD_ASSUMPTION =
  'Poisson arrivals, all requests alike, dealt to replicas at random; continuous batching, prefills first and one at a ' +
  'time; the 95th percentile is of the time from arrival to last token: the longest time in service with all places ' +
  'taken, and the wait of an M/M/c queue (Erlang C)';

/**
 * The fewest replicas that keep 95 of 100 requests within the target, and of the batches that do the one with the
 * shortest time. More requests never need fewer replicas, and a looser target never more: both make what holds for
 * some replicas and batch hold no more, or still.
 */
export function replicasFor(
  server: Server,
  { requestsPerSecond, p95Seconds }: LoadWish,
): LoadAnswer {
  const alone = serviceOf(server, 1);
  if (server.places < 1) return { met: false, reason: 'no room', best: alone };
  const tooSlow = { met: false, reason: 'too slow', best: alone } as const;
  if (alone.value > p95Seconds) return tooSlow;
  let best: LoadMet | undefined;
  for (let batch = 1; batch <= Math.min(server.places, LARGEST_BATCH); batch++) {
    const service = serviceOf(server, batch);
    // A larger batch is served no faster.
    if (service.value > p95Seconds) break;
    const most = best?.replicas.value ?? MOST_REPLICAS;
    const replicas = fewest(most, (count) => {
      const place = { service: service.value, batch, rate: requestsPerSecond / count };
      return service.value + waitOf(place) <= p95Seconds;
    });
    if (replicas === undefined) continue;
    const met = metBy(server, service, batch, replicas, requestsPerSecond);
    const better =
      best === undefined ||
      replicas < best.replicas.value ||
      met.p95Seconds.value < best.p95Seconds.value;
    if (better) best = met;
  }
  return best ?? tooSlow;
}

/** The smallest number up to `most` for which something holds that holds for all larger ones. */
function fewest(most: number, holds: (count: number) => boolean): number | undefined {
  if (!holds(most)) return undefined;
  // Neighbouring batches mostly need as many, which is soon seen.
  if (most > 1 && !holds(most - 1)) return most;
  let [fails, held] = [0, most];
  while (held - fails > 1) {
    const middle = fails + Math.floor((held - fails) / 2);
    if (holds(middle)) held = middle;
    else fails = middle;
  }
  return held;
}

/** The longest that a request is in service. */
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
        : 'each place is prefilled once, one step may be in hand, and each further token takes one',
  });
}

/** One replica: so many places, each taken for so long, and requests per second. */
interface Places {
  readonly service: number;
  readonly batch: number;
  readonly rate: number;
}

/** Seconds that 95 of 100 requests wait at most for a place; infinite where more come than are served. */
export function waitOf({ service, batch, rate }: Places): number {
  const load = rate * service;
  if (load >= batch) return Number.POSITIVE_INFINITY;
  const chance = waitChance(load, batch);
  return chance <= LATE ? 0 : Math.log(chance / LATE) / (batch / service - rate);
}

/** Erlang's C: the chance that a request finds all places taken. @param load In places, less than there are. */
export function waitChance(load: number, places: number): number {
  const blocked = blockChance(load, places);
  return blocked / (1 - (load / places) * (1 - blocked));
}

/** Erlang's B by its recursion, which neither over- nor underflows. */
function blockChance(load: number, places: number): number {
  let blocked = 1;
  for (let place = 1; place <= places; place++) {
    blocked = (load * blocked) / (place + load * blocked);
  }
  return blocked;
}

/** All figures of an answer, each with its formula. */
function metBy(
  server: Server,
  service: Quantity,
  batch: number,
  replicas: number,
  requestsPerSecond: number,
): LoadMet {
  const rate = requestsPerSecond / replicas;
  const arriving = div(v({ requests_per_second: requestsPerSecond }), v({ replicas }));
  const inService = v({ service: service.value });
  const places = v({ batch });
  const blocked = v({ blocked: blockChance(rate * service.value, batch) });
  const utilisation = quantity({
    label: 'places taken',
    unit: 'ratio',
    formula: div(mul(arriving, inService), places),
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
      sub(div(places, inService), arriving),
    ),
    source: 'where P(wait > t) = chance · exp(−(batch / service − rate) · t) is 5 % (M/M/c)',
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
    p95Seconds: quantity({
      label: '95th percentile of the time to the last token',
      unit: 'seconds',
      formula: add(inService, v({ waiting: waiting.value })),
      source: LOAD_ASSUMPTION,
    }),
    service,
    waiting,
    chance,
    utilisation,
  };
}
