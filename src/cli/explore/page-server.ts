/** A server of one page on this machine only. */
import http from 'node:http';
import type { AddressInfo } from 'node:net';

const HEADERS = {
  'Content-Type': 'text/html; charset=utf-8',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "frame-ancestors 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
} as const;

const LOOPBACK = '127.0.0.1';

export interface PageServer {
  readonly url: string;
  /** Never resolved: the server ends with the program. */
  readonly ended: Promise<never>;
}

/**
 * Serves a page at a free port of the loopback address. Only GET of the page itself is answered, and only for the
 * server's own address as host: a page of another site, whose name leads here, is refused.
 */
export async function servePage(page: string): Promise<PageServer> {
  const bytes = Buffer.from(page);
  const server = http.createServer((request, response) => {
    const status = statusOf(request, (server.address() as AddressInfo).port);
    if (status !== 200) {
      response.writeHead(status, { 'Content-Type': 'text/plain', Connection: 'close' });
      response.end(`${status} ${http.STATUS_CODES[status] ?? ''}\n`);
      return;
    }
    response.writeHead(200, { ...HEADERS, 'Content-Length': bytes.length });
    response.end(bytes);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, LOOPBACK, resolve);
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://${LOOPBACK}:${port}/`, ended: new Promise<never>(() => {}) };
}

function statusOf({ method, url, headers: { host } }: http.IncomingMessage, port: number): number {
  if (host !== `${LOOPBACK}:${port}` && host !== `localhost:${port}`) return 403;
  if (method !== 'GET') return 405;
  return url === '/' ? 200 : 404;
}
