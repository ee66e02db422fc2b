/**
 * Servers that only read prompts, and send their caches to the servers that decode: disaggregated prefill (DistServe, arXiv
 * 2401.09670; Splitwise, arXiv 2311.18677). Requests are read first come, first served, several short prompts in a step.
 */
import { earliest, insert, type Timed, takeEarliest } from './finish-heap.js';

/** GPUs that only read prompts. */
export interface PrefillServers {
  /** Servers, each with a copy of the model. */
  readonly servers: number;
  /** Prompts that a server reads at the same time on GPUs of their own: groups, stages. */
  readonly parts: number;
  /** Prompts that a part reads in a step. */
  readonly promptsOfStep: number;
  /** Seconds of reading a number of prompts on a part. */
  readonly readSeconds: (prompts: number) => number;
  /** Seconds in which the cache of a prompt moves over the links of its server. */
  readonly transferSeconds: number;
  /** Whether a cache moves while its prompt is read, as at the physical limit; otherwise after it. */
  readonly isOverlapped: boolean;
}

interface Waiting {
  readonly arrival: number;
}

/** A request whose cache arrives at a time. */
interface Sent<Request> extends Timed {
  readonly request: Request;
}

/** Requests before they decode. The times are those of the caller, who asks for growing ones. */
export class PrefillFleet<Request extends Waiting> {
  private readonly waiting: Request[] = [];
  private next = 0;
  private readonly sent: Sent<Request>[] = [];
  /** Times at which each server is free, and its links. */
  private readonly free: number[];
  private readonly linkFree: number[];

  constructor(private readonly prefill: PrefillServers) {
    this.free = new Array<number>(prefill.servers).fill(0);
    this.linkFree = new Array<number>(prefill.servers).fill(0);
  }

  /** Requests that wait, are read, or whose cache moves. */
  get size(): number {
    return this.waiting.length - this.next + this.sent.length;
  }

  add(request: Request): void {
    this.waiting.push(request);
  }

  /** Requests whose caches have arrived by a time, in order. All arrivals by then must have been added. */
  arrivedBy(now: number): Request[] {
    for (let start = this.nextStart(); start <= now; start = this.nextStart()) this.read(start);
    const arrived: Request[] = [];
    while ((earliest(this.sent)?.finish ?? Number.POSITIVE_INFINITY) <= now) {
      arrived.push(takeEarliest(this.sent).request);
    }
    return arrived;
  }

  /** Next time at which a cache arrives or a step begins; infinite without requests. */
  nextEvent(): number {
    return Math.min(this.nextStart(), earliest(this.sent)?.finish ?? Number.POSITIVE_INFINITY);
  }

  private nextStart(): number {
    const first = this.waiting[this.next];
    if (first === undefined) return Number.POSITIVE_INFINITY;
    return Math.max(first.arrival, this.free[this.firstFree()] as number);
  }

  private firstFree(): number {
    return this.free.indexOf(Math.min(...this.free));
  }

  /** A step of the server that is free first, with the prompts that have arrived by its start. */
  private read(start: number): void {
    const { parts, promptsOfStep, readSeconds, transferSeconds, isOverlapped } = this.prefill;
    const server = this.firstFree();
    const from = this.next;
    const most = from + parts * promptsOfStep;
    while (this.next < most && (this.waiting[this.next]?.arrival ?? Infinity) <= start) this.next++;
    const requests = this.waiting.slice(from, this.next);
    const end = start + readSeconds(Math.ceil(requests.length / parts));
    this.free[server] = end;
    let link = Math.max(isOverlapped ? start : end, this.linkFree[server] as number);
    for (const request of requests) {
      link += transferSeconds;
      insert(this.sent, { request, finish: Math.max(end, link) });
    }
    this.linkFree[server] = link;
  }
}
