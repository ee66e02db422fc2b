import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { describe, expect, it, vi } from 'vitest';
import { redirected } from '../../../src/input/hub/http-client.js';
import { HubClient, MAX_LISTING_BYTES, ReadAhead } from '../../../src/input/hub/hub-client.js';
import { hubSettings } from '../../../src/input/hub/hub-settings.js';
import { onTestEnd } from '../../cleanup.js';
import { COMMIT, mixtral, OTHER_COMMIT } from './hub-models.js';
import type { LoopbackHub } from './loopback-hub.js';
import { loopbackHub } from './loopback-hub.js';

// Pauses between attempts would take half of the time of this file; the time-outs are real.
vi.mock('node:timers/promises', async (original) => ({
  ...(await original<typeof import('node:timers/promises')>()),
  setTimeout: () => Promise.resolve(),
}));

const NAME = 'model.safetensors';
const FILE = { repository: 'org/mix', commit: COMMIT, name: NAME };

async function hubWith(files = mixtral()) {
  return loopbackHub({
    'org/mix': { commit: COMMIT, refs: { old: OTHER_COMMIT }, files },
    'org/gated': { commit: COMMIT, gatedBy: 'secret', files },
    'org/private': { commit: COMMIT, gatedBy: 'secret', isPrivate: true, files },
  });
}

function clientOf(hub: Pick<LoopbackHub, 'endpoint'>, env: Record<string, string> = {}) {
  const given = { HF_ENDPOINT: hub.endpoint, HF_HUB_DOWNLOAD_TIMEOUT: '0.3', ...env };
  const settings = hubSettings({}, given, '/nonexistent');
  const client = new HubClient({ ...settings, attempts: 3 });
  onTestEnd(() => client.close());
  return client;
}

const messageOf = (error: unknown) => {
  const { message, suggestion, code } = error as {
    message: string;
    suggestion?: string;
    code: string;
  };
  return `${code}: ${message} → ${suggestion}`;
};

const failure = async (act: Promise<unknown>) =>
  messageOf(
    await act.then(
      () => expect.unreachable(),
      (error: unknown) => error,
    ),
  );

describe('the listing of a revision', () => {
  it('has the commit and the files', async () => {
    const client = clientOf(await hubWith());
    expect(await client.listing('org/mix', 'main')).toEqual({
      commit: COMMIT,
      names: ['config.json', NAME],
      leftOut: 0,
    });
    expect((await client.listing('org/mix', 'old')).commit).toBe(OTHER_COMMIT);
  });

  it('leaves out names outside the folder, and reads 10,000 others', async () => {
    const hub = await hubWith();
    const listed = [
      ...['../x', '/etc/passwd', 'C:/x', 'c:x', 'a\\..\\b', 'a\0b', 'a/../../b', ''],
      ...Array.from({ length: 10_000 }, (_, at) => `checkpoints/${at}/model.safetensors`),
    ];
    hub.repositories.set('org/mix', { commit: COMMIT, files: mixtral(), listed });
    const { names, leftOut } = await clientOf(hub).listing('org/mix', 'main');
    expect([names.length, leftOut]).toEqual([10_002, 8]);
  });

  it.each([
    ['org/none', 'main', 'usage: 127.0.0.1', 'has no public model "org/none"'],
    ['org/private', 'main', 'usage: 127.0.0.1', 'for a private model log in with hf auth login'],
    ['org/mix', 'next', 'usage: ', 'org/mix has no revision "next" → leave the revision out'],
  ])('refuses %s at %s', async (repository, revision, ...texts) => {
    const text = await failure(clientOf(await hubWith()).listing(repository, revision));
    for (const each of texts) expect(text).toContain(each);
  });

  it.each([
    ['a body that is not JSON', '<html>', 'it is not JSON'],
    ['no commit', '{"siblings": []}', 'it states no commit'],
    ['a commit that is a path', '{"sha": "../../x", "siblings": []}', 'it states no commit'],
    ['no files', `{"sha": "${COMMIT}"}`, 'it lists no files'],
  ])('refuses an answer with %s', async (_, body, what) => {
    const hub = await hubWith();
    hub.faults.push((_asked, response) => !!response.end(body));
    expect(await failure(clientOf(hub).listing('org/mix', 'main'))).toContain(what);
  });

  it('refuses a longer answer than a listing has, before it is parsed', async () => {
    const hub = await hubWith();
    hub.faults.push((_asked, response) => !!response.end('['.repeat(MAX_LISTING_BYTES + 1)));
    const message = await failure(clientOf(hub).listing('org/mix', 'main'));
    expect(message).toContain('cannot read org/mix from the hub');
    expect(message).not.toContain('JSON');
  });
});

describe('a request for a range', () => {
  it('is answered by the store; only the first one asks the hub', async () => {
    const hub = await hubWith();
    const client = clientOf(hub, { HF_TOKEN: 'secret' });
    const whole = mixtral()[NAME] as Buffer;
    const { bytes, size } = await client.range(FILE, 100, 50);
    expect([Buffer.compare(bytes, whole.subarray(100, 150)), size]).toEqual([0, whole.length]);
    await client.range(FILE, 0, 10);
    expect(hub.requests.map(({ server }) => server)).toEqual(['hub', 'store', 'store']);
  });

  it('sends the token to the hub, and to no other port or host', async () => {
    const hub = await hubWith();
    await clientOf(hub, { HF_TOKEN: 'secret' }).range({ ...FILE, repository: 'org/gated' }, 0, 10);
    expect(hub.requests.map(({ server, authorization }) => [server, authorization])).toEqual([
      ['hub', 'Bearer secret'],
      ['store', undefined],
    ]);
  });

  it('does not send the token again when the store leads back to the hub', async () => {
    const hub = await hubWith();
    let isBack = false;
    hub.faults.push((asked, response) => {
      if (!asked.url?.startsWith('/store/') || isBack) return false;
      isBack = true;
      const location = `${hub.endpoint}/org/mix/resolve/${COMMIT}/config.json`;
      return !!response.writeHead(302, { location }).end();
    });
    // The config is not the requested file, which shows only after the redirects.
    await failure(clientOf(hub, { HF_TOKEN: 'secret' }).range(FILE, 0, 10));
    expect(hub.requests.map(({ authorization }) => authorization)).toEqual([
      'Bearer secret',
      undefined,
      undefined,
    ]);
  });

  it('for a gated model without a token is refused with a suggestion', async () => {
    const hub = await hubWith();
    const gated = { ...FILE, repository: 'org/gated' };
    expect(await failure(clientOf(hub).range(gated, 0, 10))).toBe(
      `usage: org/gated is gated: its files need a token, found none → accept its conditions at ${hub.endpoint}/org/gated, then log in with hf auth login, or set HF_TOKEN`,
    );
    expect(await failure(clientOf(hub, { HF_TOKEN: 'other' }).range(gated, 0, 10))).toContain(
      'the token has no access to it',
    );
  });

  it('aborts an answer with the whole file instead of reading it', async () => {
    const hub = await hubWith({ [NAME]: { size: 2 ** 30, parts: [] } });
    let written = 0;
    hub.faults.push((asked, response) => {
      if (!asked.url?.startsWith('/store/')) return false;
      response.writeHead(200, { 'content-length': 2 ** 30 });
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(1 << 16))) written += 1 << 16;
      };
      response.on('drain', more);
      more();
      return true;
    });
    const text = await failure(clientOf(hub).range(FILE, 0, 1000));
    expect(text).toContain(
      'answers a request for a part with the whole file, for model.safetensors',
    );
    expect(text).toContain('hf download org/mix');
    // The buffers of both sides.
    expect(written).toBeLessThan(2 ** 24);
  });

  it.each([
    ['another range', { 'content-range': 'bytes 5-14/65824' }, 'instead of bytes 0-9'],
    ['no range', {}, 'answers with the range ""'],
    [
      'another size than the hub states',
      { 'content-range': 'bytes 0-9/999' },
      'states 65824 bytes for the file and serves 999',
    ],
    [
      'a size beyond all files',
      { 'content-range': 'bytes 0-9/999999999999999' },
      'instead of bytes',
    ],
  ])('refuses %s', async (_, headers, what) => {
    const hub = await hubWith();
    hub.faults.push((asked, response) => {
      if (!asked.url?.startsWith('/store/')) return false;
      return !!response.writeHead(206, { 'content-length': 10, ...headers }).end('0123456789');
    });
    expect(await failure(clientOf(hub).range(FILE, 0, 10))).toContain(what);
  });

  it('refuses a commit other than the requested one', async () => {
    const hub = await hubWith();
    hub.faults.push((_asked, response) => {
      return !!response.writeHead(206, { 'x-repo-commit': OTHER_COMMIT }).end();
    });
    expect(await failure(clientOf(hub).range(FILE, 0, 10))).toContain(
      `answers with commit "${OTHER_COMMIT}"`,
    );
  });

  it('refuses a file that changes between two requests', async () => {
    const hub = await hubWith();
    const client = clientOf(hub);
    await client.range(FILE, 0, 10);
    const files = { [NAME]: Buffer.alloc(65_824) };
    hub.repositories.set('org/mix', { commit: COMMIT, files });
    expect(await failure(client.range(FILE, 0, 10))).toContain(
      'serves another file than a moment ago',
    );
  });

  it.each([
    [
      'a body that ends early',
      (response) =>
        response
          .writeHead(206, { 'content-length': 10, 'content-range': 'bytes 0-9/65824' })
          .write('01234', () => response.destroy()),
      'ends after 5',
    ],
    [
      'a body that stalls',
      (response) =>
        response
          .writeHead(206, { 'content-length': 10, 'content-range': 'bytes 0-9/65824' })
          .write('01234'),
      'stalls after 5 bytes',
    ],
    ['no answer', () => true, 'does not answer within 0.3 s'],
    ['a closed connection', (response) => response.destroy(), 'cannot be reached'],
    ['an error of the server', (response) => response.writeHead(503).end(), 'answers: status 503'],
  ] as [string, (response: import('node:http').ServerResponse) => unknown, string][])(
    'tries again after %s, and reports it when it persists',
    async (_, answer, what) => {
      const hub = await hubWith();
      let left = 1;
      hub.faults.push((asked, response) => {
        if (!asked.url?.startsWith('/store/') || left-- <= 0) return false;
        answer(response);
        return true;
      });
      expect((await clientOf(hub).range(FILE, 0, 10)).bytes).toHaveLength(10);
      left = Number.POSITIVE_INFINITY;
      const text = await failure(clientOf(hub).range(FILE, 0, 10));
      expect(text).toContain(`system: cannot read org/mix from the hub`);
      expect(text).toContain(what);
    },
    20_000,
  );

  it('waits for Retry-After, and reports a wait that is too long', async () => {
    const hub = await hubWith();
    const waits = ['0', '3600'];
    hub.faults.push((asked, response) => {
      if (!asked.url?.includes('/resolve/')) return false;
      const wait = waits.shift();
      if (wait === undefined) return false;
      return !!response.writeHead(429, { 'retry-after': wait }).end();
    });
    const text = await failure(clientOf(hub).range(FILE, 0, 10));
    expect(text).toContain('answers: too many requests → try again in 3600 s');
    expect(waits).toEqual([]);
  });

  it.each([
    [
      'in a circle',
      (hub: LoopbackHub) => `${hub.storeEndpoint}/store/org/mix/${NAME}`,
      'redirects more than 8 times',
    ],
    ['to a file', () => 'file:///etc/passwd', 'an address of the kind "file:"'],
    [
      'to an address with a password',
      () => 'http://a:b@127.0.0.1:1/x',
      'an address with a password',
    ],
  ])('refuses a redirect %s', async (_, target, what) => {
    const hub = await hubWith();
    hub.faults.push(
      (_asked, response) => !!response.writeHead(302, { location: target(hub) }).end(),
    );
    expect(await failure(clientOf(hub).range(FILE, 0, 10))).toContain(what);
  });

  it('refuses a redirect from https to http', () => {
    const from = new URL('https://huggingface.co/org/mix');
    expect(() => redirected(from, 'http://huggingface.co/x')).toThrow(
      'without encryption, which is refused',
    );
    expect(redirected(from, '/x').href).toBe('https://huggingface.co/x');
  });

  it('reads from a mirror without ETag', async () => {
    const whole = mixtral()[NAME] as Buffer;
    const server = createServer((_asked, response) => {
      const range = `bytes 0-9/${whole.length}`;
      response.writeHead(206, { 'content-range': range, 'content-length': 10 });
      response.end(whole.subarray(0, 10));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestEnd(() => void server.close());
    const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    expect((await clientOf({ endpoint }).range(FILE, 0, 10)).size).toBe(whole.length);
  });

  it('reports a missing network', async () => {
    const text = await failure(clientOf({ endpoint: 'http://127.0.0.1:9' }).range(FILE, 0, 10));
    expect(text).toContain('127.0.0.1:9 cannot be reached');
    expect(text).toContain('check the network and HTTPS_PROXY');
  });
});

describe('ReadAhead', () => {
  const whole = Buffer.from(Array.from({ length: 40 << 20 }, (_, at) => (at * 7) & 255));
  const fetched: [number, number][] = [];
  const reader = () => {
    fetched.length = 0;
    return new ReadAhead(async (_file, position, length) => {
      fetched.push([position, length]);
      return { bytes: whole.subarray(position, position + length), size: whole.length };
    });
  };

  it('gives the bytes of the file in any order of reads', async () => {
    const reads = reader();
    let seed = 1;
    let at = 0;
    for (let count = 0; count < 300; count++) {
      seed = (seed * 48_271) % 2_147_483_647;
      if (seed % 5 === 0) at = seed % (30 << 20);
      const length = 1 + (seed % 300_000);
      const bytes = await reads.read(FILE, whole.length, at, Math.min(length, whole.length - at));
      expect(Buffer.compare(bytes, whole.subarray(at, at + bytes.length))).toBe(0);
      at += bytes.length;
      if (at === whole.length) at = 0;
    }
  });

  it('fetches every byte once for reads in order, and nothing more for single reads', async () => {
    const reads = reader();
    for (let at = 0; at < whole.length; at += 1 << 20)
      await reads.read(FILE, whole.length, at, 1 << 20);
    expect(fetched.reduce((sum, [, length]) => sum + length, 0)).toBe(whole.length);
    expect(fetched.length).toBeLessThan(20);
    const jumps = reader();
    for (const at of [5e6, 1e6, 9e6, 3e6]) await jumps.read(FILE, whole.length, at, 1000);
    expect(fetched.reduce((sum, [, length]) => sum + length, 0)).toBe(4000);
  });
});
