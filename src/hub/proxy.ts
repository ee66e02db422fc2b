/** Connections through an HTTP proxy, by the variables that curl and Python read. */
import http from 'node:http';
import https from 'node:https';
import net from 'node:net';
import tls from 'node:tls';
import { quote } from '../config/quote.js';
import { UserError } from '../errors.js';
import { isLoopback, type ProxySettings } from './hub-settings.js';

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
  throw new UserError(
    'usage',
    `HTTPS_PROXY: expected the address of an HTTP proxy, found ${found}`,
    {
      suggestion: 'write it as in HTTPS_PROXY=http://proxy.example.com:3128',
    },
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
export async function throughProxy(
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
    // Else the header Host has it.
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
