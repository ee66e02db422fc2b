/**
 * Simulation of a server that batches requests: iteration-level scheduling (Orca, OSDI 2022) with prompts in chunks
 * (Sarathi-Serve, arXiv 2403.02310), whole prompts in passes of their own (vLLM, arXiv 2309.06180), or static batches.
 *
 * A step computes some prompt tokens, and one token of each decoding sequence. Nothing changes between two events
 * (arrival, end of a prompt, end of an answer) but the lengths of the contexts, so all steps between two events are
 * taken at once, at their mean context. Random numbers come from a seed: the same input gives the same output.
 */
import { MersenneTwister, uniform53 } from '../../../../base/random/distributions.js';
import { earliest, insert, type Timed, takeEarliest } from './finish-heap.js';
import { PrefillFleet, type PrefillServers } from './prefill-fleet.js';

/** How prompts and answers share the steps. */
export const BATCHINGS = ['chunked', 'whole', 'static'] as const;

/**
 * `chunked`: a step has all decoding sequences and a piece of a prompt; `whole`: prompts have steps of their own, in
 * one piece; `static`: a batch ends before the next one begins.
 */
export type Batching = (typeof BATCHINGS)[number];

/**
 * Seconds of a step.
 * @param prefill Prompt tokens of the fullest part of the step, for which the others wait.
 * @param decoding Sequences of all parts that get a token.
 * @param context Mean tokens of these sequences, including the new one.
 */
export type StepSeconds = (prefill: number, decoding: number, context: number) => number;

export interface Server {
  readonly stepSeconds: StepSeconds;
  readonly batching: Batching;
  /** Sequences in service at a time. */
  readonly places: number;
  /** Parts of a step that have prompts and sequences of their own, at the same time: groups of GPUs, stages. */
  readonly parts: number;
  /** Tokens of a part of a step at most: of prompts, and one for each decoding sequence. */
  readonly stepTokens: number;
  /** Tokens of a prompt, with those of a cached prefix. */
  readonly prompt: number;
  /** Tokens of a prompt that a prefix cache holds. */
  readonly cachedTokens: number;
  /** Output tokens of requests, in equal shares. */
  readonly outputs: readonly number[];
  /** Tokens that a sequence gets in a decoding step; more than 1 with a draft model. */
  readonly tokensPerStep: number;
  /** Tokens of a sequence that a decoding step computes; more than 1 with a draft model. */
  readonly computedPerStep: number;
  /** Servers that read the prompts; without them, the steps read prompts, too. */
  readonly prefill?: PrefillServers | undefined;
}

/** A number of users, each of whom sends the next request when the last one is answered. */
interface UsersDemand {
  readonly users: number;
}

/** Requests at random times: a Poisson process. */
interface ArrivingDemand {
  readonly requestsPerSecond: number;
  /** Requests to simulate. */
  readonly requests: number;
}

export type Demand = UsersDemand | ArrivingDemand;

/** Measurements of a simulation. */
export interface Simulated {
  /** Measured time. */
  readonly seconds: number;
  /** Answers in that time. */
  readonly answers: number;
  /** Output tokens in that time. */
  readonly outputTokens: number;
  /** Mean requests in service or waiting. */
  readonly meanRequests: number;
  /** Seconds from arrival to the first token, sorted. */
  readonly firstToken: readonly number[];
  /** Seconds from arrival to the last token, sorted. */
  readonly lastToken: readonly number[];
  /** Mean seconds between the tokens of an answer, sorted; empty if all answers have one token. */
  readonly perToken: readonly number[];
}

/** Share of simulated requests that fill the server before the measurement. */
const WARM_UP = 0.5;

/** Answers that are measured: at least so many, and for each user one, or more where lengths differ. */
const FEWEST_ANSWERS = 16;
const ANSWERS_OF_UNEQUAL = 8;

interface Request {
  readonly arrival: number;
  readonly output: number;
  /** Prompt tokens that are not computed yet. */
  left: number;
}

interface Decoding extends Timed {
  readonly arrival: number;
  /** Time of the first token. */
  readonly first: number;
  readonly output: number;
  /** Decoding steps before its first one. */
  readonly start: number;
}

/** @param seed Seed of arrivals, lengths, and of the progress of users at the start. */
export function simulate(server: Server, demand: Demand, seed: number): Simulated {
  return new Run(server, demand, new MersenneTwister(seed)).result();
}

class Run {
  private now = 0;
  /** Decoding steps so far. */
  private steps = 0;
  private readonly waiting: Request[] = [];
  private nextWaiting = 0;
  private readonly prefilling: Request[] = [];
  private nextPrefilling = 0;
  /** Requests whose prompts other servers read; undefined where this one does. */
  private readonly fleet: PrefillFleet<Request> | undefined;
  private readonly decoding: Decoding[] = [];
  private startsTotal = 0;
  /** Requests of the current static batch. */
  private batch = 0;
  private nextArrival = Number.POSITIVE_INFINITY;
  private ended = 0;
  private measuredFrom = 0;
  private isMeasuring = false;
  private outputTokens = 0;
  private requestSeconds = 0;
  private readonly firstToken: number[] = [];
  private readonly lastToken: number[] = [];
  private readonly perToken: number[] = [];

  constructor(
    private readonly server: Server,
    private readonly demand: Demand,
    private readonly random: MersenneTwister,
  ) {
    this.fleet = server.prefill && new PrefillFleet(server.prefill);
  }

  result(): Simulated {
    const { demand } = this;
    const isOpen = 'requestsPerSecond' in demand;
    if (isOpen) this.nextArrival = this.gap();
    else this.startUsers(demand.users);
    const each = this.server.outputs.length > 1 ? ANSWERS_OF_UNEQUAL : 1;
    const measured = isOpen ? demand.requests : each * Math.max(FEWEST_ANSWERS, demand.users);
    // Users start in the middle of their answers, so another round fills the queue of the servers that read prompts.
    const rounds = this.fleet ? 2 : 1;
    const unmeasured = isOpen ? Math.ceil(WARM_UP * demand.requests) : rounds * measured;
    if (unmeasured === 0) this.measure();
    while (this.ended < unmeasured + measured) {
      this.advance();
      if (!this.isMeasuring && this.ended >= unmeasured) this.measure();
    }
    const sorted = (values: readonly number[]) => values.toSorted((a, b) => a - b);
    const seconds = this.now - this.measuredFrom;
    return {
      seconds,
      answers: this.lastToken.length,
      outputTokens: this.outputTokens,
      meanRequests: this.requestSeconds / seconds,
      firstToken: sorted(this.firstToken),
      lastToken: sorted(this.lastToken),
      perToken: sorted(this.perToken),
    };
  }

  private measure(): void {
    this.isMeasuring = true;
    this.measuredFrom = this.now;
    this.outputTokens = 0;
    this.requestSeconds = 0;
  }

  /** Users in the middle of their answers, as in a server that runs for long. A static batch starts together. */
  private startUsers(users: number): void {
    const { places, batching } = this.server;
    const inService = batching === 'static' ? 0 : Math.min(users, places);
    for (let user = 0; user < inService; user++) {
      const output = this.drawOutputInService();
      const taken = Math.floor(uniform53(this.random) * this.stepsOf(output));
      this.decode({ arrival: 0, output, left: 0 }, -taken);
    }
    for (let user = inService; user < users; user++) this.arrive();
  }

  private advance(): void {
    this.takeArrivals();
    if (this.fleet) this.waiting.push(...this.fleet.arrivedBy(this.now));
    this.admit();
    const prompts = this.prefilling.length - this.nextPrefilling;
    if (prompts + this.decoding.length === 0) {
      this.pass(this.nextEvent() - this.now);
      return;
    }
    if (prompts === 0) this.decodeSteps(this.stepsToEvent());
    else this.promptStep();
  }

  /** Time of the next arrival, here or at the servers that read prompts; no earlier than now. */
  private nextEvent(): number {
    return Math.max(this.now, Math.min(this.nextArrival, this.fleet?.nextEvent() ?? Infinity));
  }

  /** Steps until the first answer ends, or a request arrives that has a place. */
  private stepsToEvent(): number {
    const { places, batching } = this.server;
    const toEnd = (earliest(this.decoding)?.finish ?? this.steps + 1) - this.steps;
    const isFull = this.decoding.length >= places || batching === 'static';
    const next = this.nextEvent();
    if (isFull || next === Number.POSITIVE_INFINITY) return toEnd;
    const each = this.decodingSeconds(1);
    return Math.max(1, Math.min(toEnd, Math.ceil((next - this.now) / each)));
  }

  /** Mean seconds of the next decoding steps. A static batch also computes the places of answers that ended. */
  private decodingSeconds(steps: number): number {
    const { batching, stepSeconds } = this.server;
    const count = batching === 'static' ? this.batch : this.decoding.length;
    return stepSeconds(0, count, this.meanContext((steps - 1) / 2));
  }

  private meanContext(later: number): number {
    const { prompt, tokensPerStep } = this.server;
    const count = this.decoding.length;
    if (count === 0) return prompt;
    return prompt + 1 + tokensPerStep * (this.steps + later - this.startsTotal / count);
  }

  private decodeSteps(steps: number): void {
    this.pass(steps * this.decodingSeconds(steps));
    this.steps += steps;
    this.endAnswers();
  }

  private promptStep(): void {
    const { batching, parts, stepTokens, stepSeconds, computedPerStep } = this.server;
    const isMixed = batching === 'chunked';
    const decoding = isMixed ? this.decoding.length : 0;
    const room = Math.max(0, stepTokens - Math.ceil(decoding / parts) * computedPerStep);
    const done = this.takePrompts(room, isMixed);
    this.pass(stepSeconds(done.fullest, decoding, this.meanContext(0)), done.requests.length);
    if (isMixed && decoding > 0) {
      this.steps++;
      this.endAnswers();
    }
    for (const request of done.requests) this.decode(request, this.steps);
    // An answer of one token ends with its prompt.
    this.endAnswers();
  }

  /**
   * Prompt tokens of the fullest part of a step, and the requests whose prompts end with it. A prompt is in one part, the
   * emptiest. All prompts have one length, so that they end in their order.
   * @param room Prompt tokens of a part.
   */
  private takePrompts(room: number, isCut: boolean) {
    const requests: Request[] = [];
    const parts = new Array<number>(this.server.parts).fill(0);
    for (let index = this.nextPrefilling; index < this.prefilling.length; index++) {
      const request = this.prefilling[index] as Request;
      const part = emptiest(parts);
      const tokens = parts[part] as number;
      const rest = room - tokens;
      const isWhole = request.left <= rest || (!isCut && tokens === 0);
      if (!isWhole && (!isCut || rest === 0)) break;
      const taken = isWhole ? request.left : rest;
      parts[part] = tokens + taken;
      request.left -= taken;
      if (request.left > 0) continue;
      requests.push(request);
      this.nextPrefilling++;
    }
    return { fullest: parts.reduce((most, each) => Math.max(most, each)), requests };
  }

  private decode(request: Request, start: number): void {
    const { arrival, output } = request;
    const finish = start + this.stepsOf(output);
    insert(this.decoding, { arrival, first: this.now, output, start, finish });
    this.startsTotal += start;
  }

  private endAnswers(): void {
    while ((earliest(this.decoding)?.finish ?? Number.POSITIVE_INFINITY) <= this.steps) {
      const { arrival, first, output, start } = takeEarliest(this.decoding);
      this.startsTotal -= start;
      this.ended++;
      if (this.isMeasuring) {
        this.outputTokens += output;
        this.firstToken.push(first - arrival);
        this.lastToken.push(this.now - arrival);
        if (output > 1) this.perToken.push((this.now - first) / (output - 1));
      }
      if ('users' in this.demand) this.arrive();
    }
  }

  private stepsOf(output: number): number {
    return Math.ceil((output - 1) / this.server.tokensPerStep);
  }

  private takeArrivals(): void {
    while (this.nextArrival <= this.now) {
      const at = this.nextArrival;
      this.arrive(at);
      // It waited since it arrived, in the middle of a step.
      this.requestSeconds += this.now - at;
      this.nextArrival = at + this.gap();
    }
  }

  private arrive(arrival = this.now): void {
    const { prompt, cachedTokens } = this.server;
    const left = this.fleet ? 0 : Math.max(1, prompt - cachedTokens);
    const request = { arrival, output: this.drawOutput(), left };
    if (this.fleet) this.fleet.add(request);
    else this.waiting.push(request);
  }

  private admit(): void {
    const { places, batching } = this.server;
    const inService = () => this.prefilling.length - this.nextPrefilling + this.decoding.length;
    if (batching === 'static' && inService() > 0) return;
    while (this.nextWaiting < this.waiting.length && inService() < places) {
      const request = this.waiting[this.nextWaiting++] as Request;
      if (this.fleet === undefined) {
        this.prefilling.push(request);
        continue;
      }
      // The server that read the prompt made the first token, which arrives with the cache.
      this.decode(request, this.steps);
      this.endAnswers();
    }
    this.batch = inService();
  }

  /** @param ending Requests whose prompts end with this step: they are read, and do not decode yet. */
  private pass(seconds: number, ending = 0): void {
    const inSystem =
      ending +
      (this.fleet?.size ?? 0) +
      this.waiting.length -
      this.nextWaiting +
      this.prefilling.length -
      this.nextPrefilling +
      this.decoding.length;
    this.requestSeconds += seconds * inSystem;
    this.now += seconds;
  }

  private drawOutput(): number {
    const { outputs } = this.server;
    const [first = 1] = outputs;
    if (outputs.length === 1) return first;
    return outputs[Math.floor(uniform53(this.random) * outputs.length)] ?? first;
  }

  /** Length of an answer in service: longer ones are there longer. */
  private drawOutputInService(): number {
    const { outputs } = this.server;
    if (outputs.length === 1) return this.drawOutput();
    const longest = Math.max(...outputs);
    for (;;) {
      const output = this.drawOutput();
      if (uniform53(this.random) * longest <= output) return output;
    }
  }

  private gap(): number {
    const rate = 'requestsPerSecond' in this.demand ? this.demand.requestsPerSecond : 0;
    return -Math.log(1 - uniform53(this.random)) / rate;
  }
}

/** Index of the smallest number. */
function emptiest(parts: readonly number[]): number {
  let at = 0;
  for (let index = 1; index < parts.length; index++) {
    if ((parts[index] as number) < (parts[at] as number)) at = index;
  }
  return at;
}
