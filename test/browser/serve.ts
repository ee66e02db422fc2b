/** Files for a page of a test, served on a loopback port. */
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';

/**
 * Content of each path. A path that ends with `/` and has `{ folder }` serves the files of that folder. `/` with a text is
 * the page itself.
 */
export type Served = Readonly<Record<string, string | { readonly folder: string }>>;

const TYPES: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.json': 'application/json; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.css': 'text/css; charset=utf-8',
};

/** Starts a server on a free port of this machine only. */
export async function serve(
  served: Served,
): Promise<{ readonly url: string; readonly close: () => Promise<void> }> {
  const server = http.createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const content = contentOf(served, pathname);
    // Browsers ask for the icon of each page by themselves.
    const status = content === undefined ? (pathname === '/favicon.ico' ? 204 : 404) : 200;
    const type = TYPES[path.extname(pathname)] ?? TYPES['.html'];
    response.writeHead(status, { 'content-type': type }).end(content);
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('the server has no port');
  return {
    url: `http://127.0.0.1:${address.port}/`,
    close: () =>
      new Promise((closed, failed) => {
        server.close((error) => (error ? failed(error) : closed()));
        server.closeAllConnections();
      }),
  };
}

function contentOf(served: Served, pathname: string): string | Buffer | undefined {
  const exact = served[pathname];
  if (typeof exact === 'string') return exact;
  for (const [prefix, content] of Object.entries(served)) {
    if (typeof content === 'string' || !pathname.startsWith(prefix)) continue;
    const file = path.join(content.folder, decodeURIComponent(pathname.slice(prefix.length)));
    const isInside = file.startsWith(path.resolve(content.folder) + path.sep);
    if (isInside && fs.statSync(file, { throwIfNoEntry: false })?.isFile()) {
      return fs.readFileSync(file);
    }
  }
  return undefined;
}
