/** Requests over HTTP: redirects, time-outs and retries. The token stays with the host that it is for. */

import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import tls from 'node:tls';
import { urlToHttpOptions } from 'node:url';
import { UserError, usageError } from '../../base/errors.js';
import { codeOf } from '../../base/files/file-system.js';
import { quote } from '../../config/quote.js';
import { type HubSettings, isLoopback, type ProxySettings } from './hub-settings.js';

/** An answer whose body has not been read. */
export interface HttpAnswer {
  readonly url: URL;
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  /** Headers of this answer and of the redirects before it; of each name the first. */
  readonly allHeaders: http.IncomingHttpHeaders;
  /**
   * The body.
   * @param most Bytes; a longer body is aborted.
   * @throws TransferError for a body that is longer, or shorter than announced.
   */
  body(most: number): Promise<Buffer>;
  /** Ends the connection without reading the body. */
  abort(): void;
}

/** A request that failed in transit, and may succeed when it is repeated. */
export class TransferError extends Error {
  /** Seconds after which the server accepts another request. */
  readonly retryAfter: number | undefined;
  /** Whether another attempt can help. */
  readonly isFinal: boolean;
  /** System code of a connection that could not be made. */
  readonly code: string | undefined;

  constructor(
    message: string,
    details: { retryAfter?: number | undefined; isFinal?: boolean; cause?: unknown } = {},
  ) {
    super(message, { cause: details.cause });
    this.name = 'TransferError';
    this.retryAfter = details.retryAfter;
    this.isFinal = details.isFinal ?? false;
    this.code = codeOf(details.cause);
  }
}

const MAX_REDIRECTS = 8;

const REDIRECTS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);

/** Requests at a time. */
export const MAX_PARALLEL = 8;

/** Longest wait that a server can ask for, seconds; longer ones are reported. */
const MAX_WAIT = 60;

const FIRST_PAUSE = 500;
const LONGEST_PAUSE = 8000;

/** Bytes per second below which an answer that never pauses counts as stalled. */
const SLOWEST = 10_000;

const USER_AGENT = 'minimind; https://huggingface.co/docs/hub';

const isSameOrigin = (a: URL, b: URL) =>
  a.protocol === b.protocol && a.hostname === b.hostname && a.port === b.port;

export class HttpClient {
  readonly #settings: HubSettings;
  readonly #agents = {
    'http:': new http.Agent({ keepAlive: true, maxSockets: MAX_PARALLEL }),
    'https:': new https.Agent({ keepAlive: true, maxSockets: MAX_PARALLEL }),
  };

  constructor(settings: HubSettings) {
    this.#settings = settings;
  }

  /**
   * Requests `url` and follows redirects.
   * @param headers `range`, `accept`, and no credentials.
   * @throws UserError for a redirect that is not followed. TransferError for a failed connection.
   */
  async get(url: URL, headers: Readonly<Record<string, string>> = {}): Promise<HttpAnswer> {
    const { token, endpoint } = this.#settings;
    const home = new URL(endpoint);
    let credentials: Record<string, string> =
      token !== undefined && isSameOrigin(url, home) ? { authorization: `Bearer ${token}` } : {};
    let place = url;
    const seen: http.IncomingHttpHeaders = {};
    for (let redirects = 0; redirects <= MAX_REDIRECTS; redirects++) {
      const answer = await this.#send(place, { ...headers, ...credentials });
      const { status, headers: received } = answer;
      for (const [name, value] of Object.entries(received)) seen[name] ??= value;
      const { location } = received;
      if (!REDIRECTS.has(status) || location === undefined) return { ...answer, allHeaders: seen };
      await discard(answer);
      const next = redirected(place, location);
      // Once dropped, the token is not sent again, not even to the first host.
      if (!isSameOrigin(place, next)) credentials = {};
      place = next;
    }
    throw new TransferError(`${url.host} redirects more than ${MAX_REDIRECTS} times`, {
      isFinal: true,
    });
  }

  async #send(
    url: URL,
    headers: Readonly<Record<string, string>>,
  ): Promise<Omit<HttpAnswer, 'allHeaders'>> {
    const { timeout, proxies } = this.#settings;
    const abort = new AbortController();
    const watch = setTimeout(() => abort.abort(), timeout);
    try {
      const proxy = proxyFor(url, proxies);
      const way = proxy && (await throughProxy(url, proxy, abort.signal));
      const isSecure = (way?.protocol ?? url.protocol) === 'https:';
      const { request } = isSecure ? https : http;
      const answer = await new Promise<http.IncomingMessage>((resolve, reject) => {
        const options: https.RequestOptions = {
          ...urlToHttpOptions(url),
          agent: this.#agents[isSecure ? 'https:' : 'http:'],
          ...way,
          // A compressed body would hide how much there is to read.
          headers: {
            'user-agent': USER_AGENT,
            'accept-encoding': 'identity',
            ...headers,
            ...way?.headers,
          },
          signal: abort.signal,
        };
        const asked = request(options, resolve);
        asked.once('error', reject);
        asked.end();
      });
      return {
        url,
        status: answer.statusCode ?? 0,
        headers: answer.headers,
        body: (most) => bodyOf(answer, most, timeout),
        abort: () => answer.destroy(),
      };
    } catch (cause) {
      if (cause instanceof UserError) throw cause;
      const why = abort.signal.aborted
        ? `does not answer within ${timeout / 1000} s`
        : `cannot be reached: ${cause instanceof Error ? cause.message || String(cause) : cause}`;
      const failure = new TransferError(`${url.host} ${why}`, { cause: innerCause(cause) });
      throw isUntrusted(failure)
        ? new TransferError(failure.message, { cause: failure.cause, isFinal: true })
        : failure;
    } finally {
      clearTimeout(watch);
    }
  }

  /**
   * Repeats an action that fails with a `TransferError`, with growing pauses.
   * @throws the last error.
   */
  async repeated<T>(act: () => Promise<T>): Promise<T> {
    const { attempts } = this.#settings;
    for (let attempt = 1; ; attempt++) {
      try {
        return await act();
      } catch (error) {
        if (!(error instanceof TransferError) || error.isFinal || attempt >= attempts) throw error;
        if ((error.retryAfter ?? 0) > MAX_WAIT) throw error;
        // Without a network, more than a second attempt is a waste of the user's time.
        if (attempt > 1 && NO_NETWORK.has(error.code ?? '')) throw error;
        const pause = Math.min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (attempt - 1));
        const wait =
          error.retryAfter === undefined
            ? pause * (0.75 + Math.random() / 2)
            : 1000 * error.retryAfter;
        await sleep(wait);
      }
    }
  }

  close(): void {
    for (const agent of Object.values(this.#agents)) agent.destroy();
  }
}

/** System codes of connections that cannot be made without a network. */
export const NO_NETWORK: ReadonlySet<string> = new Set([
  'ENOTFOUND',
  'EAI_AGAIN',
  'ECONNREFUSED',
  'ENETUNREACH',
  'EHOSTUNREACH',
  'ENETDOWN',
]);

/** Codes of certificates that no known authority has signed. https://nodejs.org/api/tls.html#x509-certificate-error-codes */
const UNTRUSTED: ReadonlySet<string> = new Set([
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'CERT_UNTRUSTED',
]);

/** Whether a connection failed because its certificate is not trusted, as behind a proxy that decrypts. */
export const isUntrusted = ({ code }: TransferError): boolean => UNTRUSTED.has(code ?? '');

/** The first error of several, one for each address of a host. */
const innerCause = (cause: unknown): unknown =>
  cause instanceof AggregateError ? (cause.errors[0] ?? cause) : cause;

/** Target of a redirect. @throws TransferError when it is not followed. */
export function redirected(from: URL, location: string): URL {
  const next = URL.canParse(location, from.href) ? new URL(location, from) : undefined;
  const refused = (what: string) =>
    new TransferError(`${from.host} redirects to ${what}`, { isFinal: true });
  if (next === undefined) throw refused('no address');
  if (from.protocol === 'https:' && next.protocol === 'http:') {
    throw refused(`${next.host} without encryption, which is refused`);
  }
  if (next.protocol !== 'https:' && next.protocol !== 'http:') {
    throw refused(`an address of the kind ${JSON.stringify(next.protocol)}, which is refused`);
  }
  if (next.username !== '' || next.password !== '') {
    throw refused('an address with a password, which is refused');
  }
  return next;
}

/** Reads a short body, so that the connection can be used again; ends that of a longer one. */
async function discard({ body, abort }: Pick<HttpAnswer, 'body' | 'abort'>): Promise<void> {
  try {
    await body(16_384);
  } catch {
    abort();
  }
}

function bodyOf(answer: http.IncomingMessage, most: number, timeout: number): Promise<Buffer> {
  const announced = numberIn(answer.headers['content-length']);
  const encoding = answer.headers['content-encoding'];
  return new Promise((resolve, reject) => {
    const parts: Buffer[] = [];
    let size = 0;
    const start = performance.now();
    const fail = (error: TransferError) => {
      clearTimeout(watch);
      answer.destroy();
      reject(error);
    };
    const stalled = () => fail(new TransferError(`the answer stalls after ${size} bytes`));
    let watch = setTimeout(stalled, timeout);
    if (encoding !== undefined && encoding !== 'identity') {
      fail(
        new TransferError('the answer is compressed, which was not asked for', { isFinal: true }),
      );
      return;
    }
    if (announced !== undefined && announced > most) {
      fail(
        new TransferError(`the answer has ${announced} bytes; at most ${most} are read`, {
          isFinal: true,
        }),
      );
      return;
    }
    answer.on('data', (part: Buffer) => {
      size += part.length;
      parts.push(part);
      clearTimeout(watch);
      const seconds = (performance.now() - start) / 1000;
      if (size > most) {
        fail(new TransferError(`the answer has more than ${most} bytes`, { isFinal: true }));
      } else if (seconds > (2 * timeout) / 1000 + size / SLOWEST) {
        stalled();
      } else {
        watch = setTimeout(stalled, timeout);
      }
    });
    answer.once('error', (cause) =>
      fail(new TransferError(`the answer ends after ${size} bytes`, { cause })),
    );
    answer.once('close', () => {
      clearTimeout(watch);
      if (!answer.complete || (announced !== undefined && size < announced)) {
        fail(new TransferError(`the answer ends after ${size} of ${announced ?? 'more'} bytes`));
      }
    });
    answer.once('end', () => {
      clearTimeout(watch);
      if (answer.complete && (announced === undefined || size === announced)) {
        resolve(Buffer.concat(parts, size));
      }
    });
  });
}

/** A header that is a whole number. */
export const numberIn = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : undefined;

/** Seconds in `Retry-After`, or until its date. RFC 9110, section 10.2.3. */
export function retryAfter(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const seconds = numberIn(text.trim());
  if (seconds !== undefined) return seconds;
  const date = Date.parse(text);
  return Number.isNaN(date) ? undefined : Math.max(0, (date - Date.now()) / 1000);
}

// Connections through an HTTP proxy, by the variables that curl and Python read.

/**
 * The proxy for an address; undefined when it is reached directly, as this machine always is.
 * @throws UserError for a kind of proxy that is not supported.
 */
export function proxyFor(
  { protocol, hostname, port }: URL,
  { https: secure, http: plain, except }: ProxySettings,
): URL | undefined {
  const given = protocol === 'https:' ? secure : plain;
  if (given === undefined || isExcepted(hostname, port, except)) return undefined;
  const text = given.includes('://') ? given : `http://${given}`;
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === 'http:' || url?.protocol === 'https:') return url;
  // The address can hold a password.
  const found = url ? `one of the kind ${quote(url.protocol, 20)}` : 'no address';
  throw usageError(
    `HTTPS_PROXY: expected the address of an HTTP proxy, found ${found}`,
    'write it as in HTTPS_PROXY=http://proxy.example.com:3128',
  );
}

/** NO_PROXY as curl reads it: `*`, hosts, and their subdomains with or without a leading dot. */
function isExcepted(hostname: string, port: string, except: readonly string[]): boolean {
  if (isLoopback(hostname)) return true;
  return except.some((each) => {
    if (each === '*') return true;
    const [, host = '', only] = /^\.?(.*?)(?::(\d+))?$/.exec(each.toLowerCase()) ?? [];
    const isHost = hostname === host || hostname.endsWith(`.${host}`);
    return host !== '' && isHost && (only === undefined || only === port);
  });
}

const credentialsOf = ({ username, password }: URL): Record<string, string> =>
  username === ''
    ? {}
    : {
        'proxy-authorization': `Basic ${Buffer.from(
          `${decodeURIComponent(username)}:${decodeURIComponent(password)}`,
        ).toString('base64')}`,
      };

/** Options of a request for `url` that goes through a proxy. */
async function throughProxy(
  url: URL,
  proxy: URL,
  signal: AbortSignal,
): Promise<https.RequestOptions> {
  if (url.protocol === 'http:') {
    return {
      protocol: proxy.protocol,
      // Node.js prefers it to `host`, so that it has to replace the one of the hub.
      hostname: proxy.hostname,
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      path: url.href,
      headers: { host: url.host, ...credentialsOf(proxy) },
    };
  }
  const socket = await tunnel(url, proxy, signal);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  return {
    // An agent would make a connection of its own, past the tunnel. TLS has names of hosts only, not addresses.
    agent: undefined,
    // Otherwise the header Host would contain the port.
    defaultPort: 443,
    createConnection: () => tls.connect({ socket, host, servername: net.isIP(host) ? '' : host }),
  };
}

/** RFC 9110, section 9.3.6: a connection to the host of `url` through the proxy. */
function tunnel(url: URL, proxy: URL, signal: AbortSignal): Promise<net.Socket> {
  const target = `${url.hostname}:${url.port || 443}`;
  const { request } = proxy.protocol === 'https:' ? https : http;
  return new Promise((resolve, reject) => {
    const asked = request({
      method: 'CONNECT',
      host: proxy.hostname,
      port: proxy.port || (proxy.protocol === 'https:' ? 443 : 80),
      path: target,
      headers: { host: target, ...credentialsOf(proxy) },
      agent: false,
      signal,
    });
    asked.once('connect', ({ statusCode }, socket) => {
      if (statusCode === 200) resolve(socket);
      else {
        socket.destroy();
        const message = `the proxy ${proxy.host} answers ${statusCode} to a connection to ${target}`;
        reject(
          new UserError('system', message, {
            suggestion: 'check HTTPS_PROXY, with user and password where it asks for them',
          }),
        );
      }
    });
    asked.once('error', reject);
    asked.end();
  });
}
