/** Throughput and latency of a server, from simulations: with as many requests as it serves, and at a speed for each. */
import { sumOf } from '../../../../base/values.js';
import type { LanguageModel } from '../../../../model/architecture/layer.js';
import { div, mul, v } from '../../../../model/budget/expression.js';
import type { Bounds, Quantity } from '../../../../model/budget/figure.js';
import { quantity } from '../../../../model/budget/figure.js';
import { byBound, largestCount } from '../../bounds.js';
import { type CacheTransfer, cacheTransfer, serverUnit } from '../disaggregation.js';
import { rateOf, stepSeconds } from '../roofline.js';
import { gpusOfReplica } from '../serving-axes.js';
import type { ServingFitSetting } from '../serving-work.js';
import { decodeWork, servedModel } from '../serving-work.js';
import type { Launching, RuntimeName } from './runtimes.js';
import { graphsName, RUNTIMES } from './runtimes.js';
import type { NoServer, ServerQuestion, Servers } from './server.js';
import { acceptedTokens, outputsOf, runtimeOf, serversOf, servingRates } from './server.js';
import { THROUGHPUT_SPREAD } from './server-shares.js';
import type { Batching, Server, Simulated } from './simulation.js';
import { simulate } from './simulation.js';

/** Seed of the simulations. */
export const SERVER_SEED = 1;

/** Tokens per second that a user of a server needs, unless stated otherwise. */
export const USUAL_SPEED = 10;

/** An estimate, the range in which nine of ten published runs lie, and the limit of the hardware. */
export interface ServerRate extends Bounds {
  /** All bytes and FLOPs at the peaks of the hardware. */
  readonly limit: Quantity;
}

/** Median and 95th percentile of a time. */
export interface Percentiles {
  /** Half of the requests take no longer. */
  readonly median: Quantity;
  /** 95 of 100 requests take no longer. */
  readonly p95: Quantity;
}

/** A server with a number of users, each of whom sends the next request when the last one is answered. */
export interface ServerLoad {
  /** Requests in service at a time, on all GPUs. @integer @minimum 1 */
  readonly users: number;
  /** Output tokens per second of all users. */
  readonly tokensPerSecond: ServerRate;
  /** Tokens per second of prompts and outputs. */
  readonly totalTokensPerSecond: Quantity;
  readonly requestsPerSecond: Quantity;
  /** Tokens per second of a user after the first token, at the median. */
  readonly userTokensPerSecond: Quantity;
  /** Seconds from a request to its first token. */
  readonly firstToken: Percentiles;
  /** Seconds per token after the first one. */
  readonly perToken: Percentiles;
  /** Cost of a million tokens; absent without a price. */
  readonly cost?: {
    readonly perMillionOutputTokens: Quantity;
    readonly perMillionTokens: Quantity;
  };
}

export interface ServerThroughput {
  /** Name of the program for `--runtime`. */
  readonly runtime: RuntimeName;
  /** Name of the program for people. */
  readonly runtimeTitle: string;
  /** Whether the user named the program. */
  readonly isRuntimeChosen: boolean;
  /** Defaults of the program, and their source. */
  readonly runtimeSource: string;
  /** How kernels are launched. */
  readonly launching: Launching;
  /** Tokens per second of a single user with each way to launch kernels; null for a measured time. */
  readonly oneUser: Readonly<Record<Launching, Quantity>> | null;
  /** How prompts and answers share the steps. */
  readonly batching: Batching;
  /** Share of the memory that the program uses. @real */
  readonly memoryShare: number;
  /** Defaults of the program. */
  readonly usual: {
    /** How prompts and answers share the steps. */
    readonly batching: Batching;
    /** Share of the memory. @real */
    readonly memoryShare: number;
  };
  /** Graphs of kernels that the program can use on these GPUs; null for none. */
  readonly graphs: string | null;
  /** Mean tokens of a step for a request: more than 1 with a draft. @real */
  readonly tokensPerStep: number;
  /** Output tokens of requests, in equal shares. @integer @minimum 1 */
  readonly outputs: readonly number[];
  /** Time to the first token of a request that is alone. */
  readonly firstTokenAlone: Quantity;
  /** Seed of the random numbers. @integer @minimum 0 */
  readonly seed: number;
  /** With one user on all GPUs. */
  readonly alone: ServerLoad;
  /** With as many requests as the server takes. */
  readonly full: ServerLoad;
  /** Servers that only read prompts, and those that decode; absent where the same ones do both. */
  readonly disaggregated?: {
    /** Servers that read prompts. @integer @minimum 1 */
    readonly prefill: number;
    /** Servers that decode. @integer @minimum 1 */
    readonly decoding: number;
    /** GPUs of a server. @integer @minimum 1 */
    readonly gpus: number;
    /** Move of the cache of a prompt. */
    readonly transfer: CacheTransfer;
    /** Servers that decide the throughput with as many requests as fit. */
    readonly limitedBy: 'prefill' | 'decoding';
  };
  /** Tokens per second that each user needs. @real */
  readonly minSpeed: number;
  /** With as many users as have that speed; null if not even one user has it. */
  readonly atSpeed: ServerLoad | null;
  /** Users at that speed at the ends of the range. */
  readonly usersAtSpeed: {
    /** Users if the server is as slow as few published runs. @integer @minimum 0 */
    readonly lower: number;
    /** Users if it is as fast as few published runs. @integer @minimum 0 */
    readonly upper: number;
  };
}

/**
 * Throughput of all replicas on the GPUs; a text code where it cannot be computed.
 * @param price Of a GPU for an hour.
 */
export function serverThroughput(
  model: LanguageModel,
  question: ServerQuestion,
  price?: number | undefined,
): ServerThroughput | NoServer {
  const servers = serversOf(model, question);
  if (typeof servers === 'string') return servers;
  const { setting } = question;
  const runtime = runtimeOf(setting);
  const { title, source, batching, memoryShare } = RUNTIMES[runtime.name];
  const { cluster, minSpeed = USUAL_SPEED } = setting;
  const { units: replicas, prefill, decoding } = serverUnit(setting);
  const loadOf = (users: number) =>
    serverLoad(servers, { users, replicas, gpus: cluster.gpus, price });
  const alone = serverLoad(servers, { users: 1, replicas: 1, gpus: cluster.gpus, price });
  const full = loadOf(servers.expected.places);
  const transfer =
    prefill > 0 &&
    cacheTransfer(
      servedModel(model, setting),
      setting,
      servingRates(setting).efficiencies.expected,
    );
  const runs = new Map<number, Simulated>();
  const usersAt = (speed: number) => usersAtSpeed(servers.expected, speed, runs);
  const users = usersAt(minSpeed);
  return {
    runtime: runtime.name,
    runtimeTitle: title,
    isRuntimeChosen: runtime.isChosen,
    runtimeSource: source,
    launching: runtime.launching,
    oneUser: setting.measured?.tokenSeconds === undefined ? oneUserOf(model, setting) : null,
    batching: runtime.batching,
    memoryShare: servers.memoryShare,
    usual: { batching, memoryShare },
    graphs: graphsName(runtime.name, cluster.gpu),
    tokensPerStep: setting.draft ? acceptedTokens(setting.draft) : 1,
    outputs: outputsOf(setting),
    firstTokenAlone: alone.firstToken.median,
    seed: SERVER_SEED,
    alone,
    full,
    ...(transfer && {
      disaggregated: {
        prefill: replicas * prefill,
        decoding: replicas * decoding,
        gpus: gpusOfReplica(setting),
        transfer,
        limitedBy: isQueueing(servers.expected, full)
          ? ('prefill' as const)
          : ('decoding' as const),
      },
    }),
    minSpeed,
    atSpeed: users === 0 ? null : loadOf(users),
    usersAtSpeed: {
      lower: replicas * usersAt(minSpeed / THROUGHPUT_SPREAD.lower),
      upper: replicas * usersAt(minSpeed / THROUGHPUT_SPREAD.upper),
    },
  };
}

/** Whether requests queue before the servers that read prompts: they wait for longer than two full steps there. */
function isQueueing({ prefill }: Server, { firstToken }: ServerLoad): boolean {
  if (prefill === undefined) return false;
  const { parts, promptsOfStep, readSeconds, transferSeconds } = prefill;
  const step = readSeconds(promptsOfStep) + parts * promptsOfStep * transferSeconds;
  return firstToken.median.value > 2 * step;
}

/** Speed of decoding at the context, without a draft model. */
function oneUserOf(
  model: LanguageModel,
  setting: ServingFitSetting,
): Readonly<Record<Launching, Quantity>> {
  const work = decodeWork(servedModel(model, setting), setting.context);
  const at = (launching: Launching) => {
    const runtime = { ...runtimeOf(setting), launching };
    const { value } = stepSeconds(work, servingRates({ ...setting, runtime }), 1, 'expected');
    return rateOf(value, 1);
  };
  return { graphs: at('graphs'), eager: at('eager') };
}

/** Largest number of users of a replica who have a speed at the median; more users are never faster. */
function usersAtSpeed(server: Server, speed: number, runs: Map<number, Simulated>): number {
  const isFast = (users: number) => {
    const run = runs.get(users) ?? simulate(server, { users }, SERVER_SEED);
    runs.set(users, run);
    // A queue before the servers that read prompts does not slow the tokens after the first one.
    return decodingRate(run) >= speed && (!server.prefill || wholeSpeedOf(run, server) >= speed);
  };
  return isFast(server.places) ? server.places : largestCount(server.places, isFast);
}

/** Tokens per second of a user after the first token; of an answer of one token, its rate. */
function decodingRate({ perToken, lastToken }: Simulated): number {
  return 1 / (percentile(perToken, 0.5) ?? percentile(lastToken, 0.5) ?? Number.POSITIVE_INFINITY);
}

/** Tokens per second of a user from the request on. */
function wholeSpeedOf({ lastToken }: Simulated, { outputs }: Server): number {
  const seconds = percentile(lastToken, 0.5) ?? Number.POSITIVE_INFINITY;
  return sumOf(outputs, Number) / outputs.length / seconds;
}

/** Value below which a share of sorted values lies; undefined without values. */
export const percentile = (sorted: readonly number[], share: number): number | undefined =>
  sorted[Math.max(0, Math.ceil(share * sorted.length) - 1)];

interface LoadQuestion {
  /** Users of one replica. */
  readonly users: number;
  readonly replicas: number;
  readonly gpus: number;
  readonly price: number | undefined;
}

/** Figures of all replicas with the same number of users each. */
export function serverLoad(
  { expected: server, limit }: Pick<Servers, 'expected' | 'limit'>,
  { users, replicas, gpus, price }: LoadQuestion,
): ServerLoad {
  const run = simulate(server, { users }, SERVER_SEED);
  const best = simulate(limit, { users }, SERVER_SEED);
  const tokensPerSecond = {
    ...byBound((bound) => outputRate(run, replicas, bound, outputRateOf(best))),
    limit: quantity({
      label: 'output tokens per second, limit',
      unit: 'tokens/s',
      formula: mul(
        v({ replicas }),
        div(v({ output_tokens: best.outputTokens }), v({ seconds: best.seconds })),
      ),
      source: 'the same simulation with all bytes and FLOPs at the peaks of the hardware',
    }),
  };
  const [answers, seconds] = [v({ answers: run.answers }), v({ seconds: run.seconds })];
  const requestsPerSecond = quantity({
    label: 'requests per second',
    unit: 'requests/s',
    formula: mul(v({ replicas }), div(answers, seconds)),
    source: SIMULATED,
  });
  const totalTokensPerSecond = quantity({
    label: 'tokens per second of prompts and outputs',
    unit: 'tokens/s',
    formula: mul(
      v({ replicas }),
      div(v({ tokens: run.outputTokens + run.answers * server.prompt }), seconds),
    ),
    source: SIMULATED,
  });
  return {
    users: users * replicas,
    tokensPerSecond,
    totalTokensPerSecond,
    requestsPerSecond,
    userTokensPerSecond: quantity({
      label: 'tokens per second of a user',
      unit: 'tokens/s',
      formula: v({ found: decodingRate(run) }),
      source: 'the median of the answers, after the first token',
    }),
    firstToken: percentilesOf('time to the first token', run.firstToken),
    perToken: percentilesOf('time per token', run.perToken),
    ...(price !== undefined && {
      cost: {
        perMillionOutputTokens: costOf('output tokens', price, gpus, tokensPerSecond.expected),
        perMillionTokens: costOf(
          'tokens of prompts and outputs',
          price,
          gpus,
          totalTokensPerSecond,
        ),
      },
    }),
  };
}

const SIMULATED = 'a simulation of one replica, times the replicas';

const outputRateOf = ({ outputTokens, seconds }: Simulated) => outputTokens / seconds;

/** Rate of all replicas, at the ends of the range no faster than the limit. */
function outputRate(
  run: Simulated,
  replicas: number,
  bound: keyof Bounds,
  limit: number,
): Quantity {
  const factor = bound === 'expected' ? 1 : THROUGHPUT_SPREAD[bound];
  const rate = outputRateOf(run);
  const reached = Math.max(rate, Math.min(limit, rate * factor));
  const spread = bound === 'lower' ? factor : reached / rate;
  const each = div(v({ output_tokens: run.outputTokens }), v({ seconds: run.seconds }));
  return quantity({
    label: 'output tokens per second',
    unit: 'tokens/s',
    formula:
      bound === 'expected' ? mul(v({ replicas }), each) : mul(v({ spread }), v({ replicas }), each),
    source:
      bound === 'expected'
        ? SIMULATED
        : `nine of ten published runs lie within ${THROUGHPUT_SPREAD.upper} times the estimate (${THROUGHPUT_SPREAD.runs} runs: ${THROUGHPUT_SPREAD.source})`,
  });
}

export function percentilesOf(label: string, sorted: readonly number[]): Percentiles {
  const at = (share: number, name: string) =>
    quantity({
      label: `${label}, ${name}`,
      unit: 'seconds',
      formula: v({ found: percentile(sorted, share) ?? 0 }),
      source: `of ${sorted.length} simulated answers`,
    });
  return { median: at(0.5, 'median'), p95: at(0.95, '95th percentile') };
}

const SECONDS_PER_HOUR = 3600;

function costOf(what: string, price: number, gpus: number, rate: Quantity): Quantity {
  return quantity({
    label: `cost per million ${what}`,
    unit: 'currency',
    formula: div(
      mul(v({ gpus }), v({ price }), 1e6),
      mul(v({ tokens_per_second: rate.value }), SECONDS_PER_HOUR),
    ),
    source: 'all GPUs, rented for the time, with that many requests in service',
  });
}
