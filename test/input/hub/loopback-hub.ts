/**
 * A hub on this machine with the two routes that the program uses, redirects to a store on a second port, and faults on
 * request. `python -c "from huggingface_hub import snapshot_download; …"` with HF_ENDPOINT can download from it, too.
 */
import { createHash } from 'node:crypto';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { onTestEnd } from '../../cleanup.js';

/** Content of a file: its bytes, or a size and the only parts that are not zero. */
export type HubContent = Buffer | string | SparseContent;

export interface SparseContent {
  readonly size: number;
  readonly parts: readonly { readonly position: number; readonly bytes: Buffer }[];
}

export interface HubRepository {
  readonly commit: string;
  /** Branches and tags; `main` is the commit. */
  readonly refs?: Readonly<Record<string, string>>;
  readonly files: Readonly<Record<string, HubContent>>;
  /** Names that only the listing has. */
  readonly listed?: readonly string[];
  /** Token that the files need. */
  readonly gatedBy?: string;
  /** Whether even the listing needs the token. */
  readonly isPrivate?: boolean;
}

/** Answers a request instead of the hub, when it returns true. */
export type Fault = (request: http.IncomingMessage, response: http.ServerResponse) => boolean;

export interface SeenRequest {
  readonly server: 'hub' | 'store';
  readonly url: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
}

export interface LoopbackHub {
  readonly endpoint: string;
  readonly storeEndpoint: string;
  readonly requests: SeenRequest[];
  readonly repositories: Map<string, HubRepository>;
  /** Faults of the hub and of the store, tried in order. */
  readonly faults: Fault[];
  /** Bytes of all bodies that were sent. */
  readonly sent: { bytes: number };
  /** Connections that the client ended before the whole answer was sent. */
  readonly aborted: { count: number };
  close(): Promise<void>;
}

const etags = new WeakMap<object, string>();

/** The hash of a content, computed once. */
function etagOf(content: HubContent): string {
  const known = typeof content === 'object' ? etags.get(content) : undefined;
  if (known !== undefined) return known;
  const hashed = isSparse(content) ? JSON.stringify(content.size) : content;
  const etag = createHash('sha256').update(hashed).digest('hex');
  if (typeof content === 'object') etags.set(content, etag);
  return etag;
}

const isSparse = (content: HubContent): content is SparseContent =>
  typeof content === 'object' && 'parts' in content;

const sizeOf = (content: HubContent) =>
  isSparse(content) ? content.size : Buffer.byteLength(content);

function bytesOf(content: HubContent, from: number, to: number): Buffer {
  if (typeof content === 'string') return Buffer.from(content).subarray(from, to);
  if (!isSparse(content)) return content.subarray(from, to);
  const bytes = Buffer.alloc(to - from);
  for (const part of content.parts) {
    const start = Math.max(from, part.position);
    const end = Math.min(to, part.position + part.bytes.length);
    if (start < end)
      part.bytes.copy(bytes, start - from, start - part.position, end - part.position);
  }
  return bytes;
}

/** Whether the hub redirects requests for a file to the store, as it does for large ones. */
const isLarge = (name: string) => /\.(?:safetensors|bin|gguf|pt)$/.test(name);

const listen = async (server: http.Server): Promise<string> => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
};

/** Starts a hub, which is closed when the test ends. */
export async function loopbackHub(
  repositories: Readonly<Record<string, HubRepository>>,
): Promise<LoopbackHub> {
  const hub = await startHub(repositories);
  onTestEnd(() => hub.close());
  return hub;
}

/** Starts a hub that the caller closes. */
async function startHub(given: Readonly<Record<string, HubRepository>>): Promise<LoopbackHub> {
  const repositories = new Map(Object.entries(given));
  const requests: SeenRequest[] = [];
  const faults: Fault[] = [];
  const sent = { bytes: 0 };
  const aborted = { count: 0 };

  const watched =
    (
      server: 'hub' | 'store',
      answer: (url: URL, asked: http.IncomingMessage, response: http.ServerResponse) => void,
    ) =>
    (asked: http.IncomingMessage, response: http.ServerResponse) => {
      const { range, authorization } = asked.headers;
      requests.push({ server, url: asked.url ?? '', range, authorization });
      response.on('close', () => {
        if (!response.writableFinished) aborted.count++;
      });
      if (faults.some((fault) => fault(asked, response))) return;
      answer(new URL(asked.url ?? '/', 'http://host'), asked, response);
    };

  const refuse = (response: http.ServerResponse, status: number, code: string) => {
    response.writeHead(status, { 'x-error-code': code, 'x-error-message': code });
    response.end();
  };

  const permitted = (
    asked: http.IncomingMessage,
    response: http.ServerResponse,
    name: string,
    isFile: boolean,
  ) => {
    const repository = repositories.get(name);
    if (repository === undefined) {
      // The hub gives the same answer for unknown and private repositories.
      refuse(response, asked.headers.authorization ? 404 : 401, 'RepoNotFound');
      return undefined;
    }
    const { gatedBy, isPrivate } = repository;
    if (gatedBy !== undefined && asked.headers.authorization !== `Bearer ${gatedBy}`) {
      if (isPrivate) refuse(response, 401, 'RepoNotFound');
      else if (isFile) refuse(response, asked.headers.authorization ? 403 : 401, 'GatedRepo');
      if (isPrivate || isFile) return undefined;
    }
    return repository;
  };

  const commitOf = ({ commit, refs = {} }: HubRepository, revision: string) =>
    revision === 'main' || revision === commit
      ? commit
      : (refs[revision] ?? Object.values(refs).find((each) => each === revision));

  function sendFile(
    asked: http.IncomingMessage,
    response: http.ServerResponse,
    content: HubContent,
    headers: http.OutgoingHttpHeaders,
  ) {
    const size = sizeOf(content);
    const [, from, to] = /^bytes=(\d+)-(\d*)$/.exec(asked.headers.range ?? '') ?? [];
    if (from !== undefined && Number(from) >= size) {
      response.writeHead(416, { ...headers, 'content-range': `bytes */${size}` });
      response.end();
      return;
    }
    const start = Number(from ?? 0);
    const end = Math.min(size, to ? Number(to) + 1 : size);
    response.writeHead(from === undefined ? 200 : 206, {
      ...headers,
      'accept-ranges': 'bytes',
      'content-length': end - start,
      ...(from !== undefined && { 'content-range': `bytes ${start}-${end - 1}/${size}` }),
    });
    if (asked.method === 'HEAD') response.end();
    else {
      sent.bytes += end - start;
      response.end(bytesOf(content, start, end));
    }
  }

  const hub = http.createServer(
    watched('hub', ({ pathname }, asked, response) => {
      const [, treeName, treeRevision = ''] =
        /^\/api\/models\/(.+?)\/tree\/([^/]+)$/.exec(pathname) ?? [];
      if (treeName !== undefined) {
        // Only huggingface_hub uses this route.
        const repository = permitted(asked, response, treeName, false);
        if (repository === undefined) return;
        if (commitOf(repository, decodeURIComponent(treeRevision)) === undefined) {
          return refuse(response, 404, 'RevisionNotFound');
        }
        const entries = Object.entries(repository.files).map(([path, content]) => ({
          ...{ type: 'file', path, size: sizeOf(content), oid: etagOf(content).slice(0, 40) },
        }));
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(entries));
        return;
      }
      const [, listedName, listedRevision] =
        /^\/api\/models\/(.+?)(?:\/revision\/([^/]+))?$/.exec(pathname) ?? [];
      if (listedName !== undefined) {
        const repository = permitted(asked, response, listedName, false);
        if (repository === undefined) return;
        const commit = commitOf(repository, decodeURIComponent(listedRevision ?? 'main'));
        if (commit === undefined) return refuse(response, 404, 'RevisionNotFound');
        const names = [...Object.keys(repository.files), ...(repository.listed ?? [])];
        const body = JSON.stringify({
          _id: '0',
          id: listedName,
          modelId: listedName,
          private: repository.isPrivate ?? false,
          gated: repository.gatedBy === undefined ? false : 'manual',
          sha: commit,
          tags: [],
          siblings: names.map((rfilename) => ({ rfilename })),
        });
        response.writeHead(200, { 'content-type': 'application/json', 'x-repo-commit': commit });
        sent.bytes += Buffer.byteLength(body);
        response.end(body);
        return;
      }
      const [, name = '', revision = '', file = ''] =
        /^\/(.+?)\/resolve\/([^/]+)\/(.+)$/.exec(pathname) ?? [];
      const repository = permitted(asked, response, name, true);
      if (repository === undefined) return;
      const commit = commitOf(repository, decodeURIComponent(revision));
      if (commit === undefined) return refuse(response, 404, 'RevisionNotFound');
      const content = repository.files[decodeURIComponent(file)];
      if (content === undefined) return refuse(response, 404, 'EntryNotFound');
      const etag = `"${etagOf(content)}"`;
      if (!isLarge(file)) {
        sendFile(asked, response, content, { etag, 'x-repo-commit': commit });
        return;
      }
      response.writeHead(302, {
        location: `${storeEndpoint.replace('127.0.0.1', 'localhost')}/store/${name}/${file}?signature=1`,
        'x-repo-commit': commit,
        'x-linked-etag': etag,
        'x-linked-size': sizeOf(content),
        'content-length': 0,
      });
      response.end();
    }),
  );

  const store = http.createServer(
    watched('store', ({ pathname }, asked, response) => {
      const [, name = '', file = ''] = /^\/store\/([^/]+(?:\/[^/]+)?)\/(.+)$/.exec(pathname) ?? [];
      const content = repositories.get(name)?.files[decodeURIComponent(file)];
      if (content === undefined) return refuse(response, 404, 'EntryNotFound');
      sendFile(asked, response, content, { etag: `"store-${etagOf(content).slice(0, 8)}"` });
    }),
  );

  const [endpoint, storeEndpoint] = await Promise.all([listen(hub), listen(store)]);
  return {
    ...{ endpoint, storeEndpoint, requests, repositories, faults, sent, aborted },
    close: async () => {
      for (const server of [hub, store]) {
        server.closeAllConnections();
        await new Promise((resolve) => server.close(resolve));
      }
    },
  };
}
