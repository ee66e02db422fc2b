import fs from 'node:fs';
import http from 'node:http';
import https from 'node:https';
import net, { type AddressInfo } from 'node:net';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { onTestEnd } from '../cleanup.js';
import { inPackage } from '../fixtures.js';
import { COMMIT, llama70B, mixtral, OTHER_COMMIT } from '../input/hub/hub-models.js';
import type { HubContent, LoopbackHub } from '../input/hub/loopback-hub.js';
import { loopbackHub } from '../input/hub/loopback-hub.js';
import { hubUser, temporaryFolder } from '../input/hub/support.js';
import { LAYOUTS, filesOf as repositoryFiles } from '../input/repository/layouts.js';

async function start(files: Readonly<Record<string, HubContent>> = mixtral()) {
  const hub = await loopbackHub({
    'org/mix': { commit: COMMIT, refs: { old: OTHER_COMMIT }, files },
    'org/gated': { commit: COMMIT, gatedBy: 'secret', files },
  });
  return { hub, user: hubUser(hub) };
}

const LOCAL = 'fixtures/hf/mixtral-saved';

describe('models of the hub', () => {
  it('have the answers of the same local files', async () => {
    const { user } = await start();
    for (const [command, ...flags] of [
      ['profile'],
      ['fit', '--gpu', 'h100'],
      ['rope'],
      ['attention'],
      ['inspect', '--tensors'],
    ]) {
      const words = [command as string, ...flags, '--json'];
      const [own, there] = [
        await user.run([...words, LOCAL]),
        await user.run([...words, 'hf:org/mix']),
      ];
      const expected = own.stdout
        .replaceAll(LOCAL, 'hf:org/mix')
        .replaceAll('hf:org/mix/model.safetensors', 'hf:org/mix/model.safetensors');
      const { references, ...answer } = JSON.parse(there.stdout);
      expect(answer, command).toEqual(JSON.parse(expected));
      expect(references).toMatchObject([
        { reference: 'hf:org/mix', repository: 'org/mix', revision: 'main', commit: COMMIT },
      ]);
      expect(there.stderr).toContain(`hf:org/mix is commit ${COMMIT}`);
    }
  }, 60_000);

  it('are read from the cache by commit or branch', async () => {
    const { hub, user } = await start();
    const first = await user.runAlone(['profile', 'hf:org/mix']);
    const before = hub.requests.length;
    // Another process, which shares only files with the first one.
    const again = await user.run(['profile', `hf:org/mix@${COMMIT}`]);
    const offline = await user.run(['profile', 'hf:org/mix', '--offline']);
    const byVariable = await user.run(['profile', 'hf:org/mix'], { HF_HUB_OFFLINE: '1' });
    expect(hub.requests.length).toBe(before);
    const figures = (text: string) => text.split('\n').slice(0, 4).join('\n');
    expect(figures(again.stdout)).toContain('15.3K parameters');
    expect(byVariable.stdout).toBe(first.stdout);
    // The next command stays offline.
    const next = /^Next: minimind fit hf:org\/mix/m;
    expect(offline.stdout).toBe(first.stdout.replace(next, '$& --offline'));
    expect(offline.stdout).not.toBe(first.stdout);
    expect(offline.stderr).toContain('the last one that was read');
  });

  it('are compared in parts at the commit of the plan', async () => {
    const { hub, user } = await start();
    const plan = path.join(temporaryFolder(), 'sweep.json');
    const models = ['--set', 'model.num_hidden_layers=2,1,3'];
    const planned = await user.run([
      ...['compare', 'hf:org/mix', LOCAL, ...models, '--parts', '2', '--plan', plan],
    ]);
    expect(planned.code, planned.stderr).toBe(0);
    hub.repositories.set('org/mix', { commit: OTHER_COMMIT, files: {} });
    const job = await user.run(['compare', '--plan', plan, '--launch', 'slurm']);
    expect(job.stdout).toContain(`# Reads hf:org/mix@${COMMIT}: each task needs access to the hub`);
    for (const part of ['1', '2']) {
      const other = hubUser(hub);
      hub.repositories.set('org/mix', {
        ...{ commit: OTHER_COMMIT, refs: { [COMMIT]: COMMIT }, files: mixtral() },
      });
      const { code, stderr } = await other.run(['compare', '--plan', plan, '--part', part]);
      expect(code, stderr).toBe(0);
    }
    const single = await user.run(['compare', `hf:org/mix@${COMMIT}`, LOCAL, ...models, '--json']);
    const merged = await user.run(['compare', '--plan', plan, '--finish', '--json']);
    expect(merged).toEqual(single);
  });

  it('follow a branch to its new commit, and keep the old commit', async () => {
    const { hub, user } = await start();
    await user.run(['validate', 'hf:org/mix']);
    hub.repositories.set('org/mix', { commit: OTHER_COMMIT, files: mixtral() });
    expect((await user.run(['validate', 'hf:org/mix'])).stderr).toContain(
      `is commit ${OTHER_COMMIT}`,
    );
    const old = await user.run(['validate', `hf:org/mix@${COMMIT}`, '--offline']);
    expect([old.code, old.stderr]).toEqual([0, expect.stringContaining(COMMIT)]);
  });

  it('are read from the cache of huggingface_hub without requests and changes', async () => {
    const { hub, user } = await start();
    const repository = path.join(user.home, 'hf/hub/models--org--mix');
    const snapshot = path.join(repository, 'snapshots', OTHER_COMMIT);
    const blobs = path.join(repository, 'blobs');
    for (const folder of [snapshot, blobs, path.join(repository, 'refs')])
      fs.mkdirSync(folder, { recursive: true });
    fs.writeFileSync(path.join(repository, 'refs/main'), OTHER_COMMIT);
    for (const [at, name] of ['config.json', 'model.safetensors'].entries()) {
      fs.copyFileSync(inPackage(LOCAL, name), path.join(blobs, String(at)));
      fs.symlinkSync(path.join('../../blobs', String(at)), path.join(snapshot, name));
    }
    const before = fs.readdirSync(repository, { recursive: true });
    const stats = await user.run(['inspect', 'hf:org/mix', '--stats']);
    expect([stats.code, stats.stdout]).toEqual([
      0,
      expect.stringContaining('All values are finite'),
    ]);
    expect(stats.stderr).toContain(`is commit ${OTHER_COMMIT}, the one in your Hugging Face cache`);
    expect(hub.requests).toEqual([]);
    expect(fs.readdirSync(repository, { recursive: true })).toEqual(before);
    // A file that the cache lacks comes from the hub, at the same commit.
    fs.rmSync(path.join(snapshot, 'model.safetensors'));
    hub.repositories.set('org/mix', {
      commit: COMMIT,
      refs: { main: OTHER_COMMIT, x: OTHER_COMMIT },
      files: mixtral(),
    });
    expect((await user.run(['inspect', 'hf:org/mix'])).stderr).toContain(OTHER_COMMIT);
    expect(hub.requests.some(({ url }) => url.includes('config.json'))).toBe(false);
  }, 30_000);

  it('ignore a link in that cache to outside its folder', async () => {
    const { user } = await start();
    const snapshot = path.join(user.home, 'hf/hub/models--org--mix/snapshots', COMMIT);
    fs.mkdirSync(snapshot, { recursive: true });
    fs.symlinkSync(inPackage('package.json'), path.join(snapshot, 'config.json'));
    const { code, stdout } = await user.run(['validate', `hf:org/mix@${COMMIT}`]);
    expect([code, stdout]).toEqual([0, expect.stringContaining('mixtral')]);
  });

  it('are converted during the download, into the same bytes', async () => {
    const { hub, user } = await start();
    const folder = temporaryFolder();
    const [own, there] = ['own', 'there'].map((name) => path.join(folder, name)) as [
      string,
      string,
    ];
    expect((await user.run(['convert-checkpoint', LOCAL, own, '--dtype', 'bf16'])).code).toBe(0);
    const done = await user.run([
      'convert-checkpoint',
      'hf:org/mix',
      there,
      '--dtype',
      'bf16',
      '--check',
    ]);
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining(COMMIT)]);
    expect(fs.readdirSync(there)).toEqual(fs.readdirSync(own));
    const [a, b] = [own, there].map((each) =>
      fs.readFileSync(path.join(each, 'model.safetensors')),
    );
    expect(a && b && Buffer.compare(a, b)).toBe(0);
    expect(hub.requests.filter(({ server }) => server === 'store').length).toBeGreaterThan(0);
    const values = await user.run(['verify', 'hf:org/mix', '--values', LOCAL]);
    expect([values.code, values.stdout]).toEqual([0, expect.stringContaining('matches')]);
  }, 60_000);

  it('are read from PyTorch and GGUF files, without their values', async () => {
    const torch = fs.readFileSync(inPackage('fixtures/checkpoints/valid/zip_proto5.pt'));
    const gguf = fs.readFileSync(inPackage('fixtures/gguf/types.gguf'));
    const { user } = await start({
      'pytorch_model.bin': torch,
      'types.gguf': gguf,
      'README.md': 'x',
    });
    for (const [name, file] of [
      ['pytorch_model.bin', 'fixtures/checkpoints/valid/zip_proto5.pt'],
      ['types.gguf', 'fixtures/gguf/types.gguf'],
    ] as const) {
      const words = ['inspect', '--tensors', '--json', '--family', 'hybrid'].slice(0, 3);
      const own = JSON.parse((await user.run([...words, file])).stdout);
      const { references, ...there } = JSON.parse(
        (await user.run([...words, `hf:org/mix:${name}`])).stdout,
      );
      const named = JSON.stringify(there.tensors).replaceAll(`hf:org/mix:/${name}`, file);
      expect(JSON.parse(named), name).toEqual(own.tensors);
      expect(references).toHaveLength(1);
    }
  }, 30_000);

  it('of 70B parameters take less than 5 MB', async () => {
    const { hub, user } = await start(llama70B());
    const { stdout, stderr } = await user.run(['profile', 'hf:org/mix', '--json']);
    const answer = JSON.parse(stdout);
    expect(answer.parameters.total.value, stderr).toBe(70_553_706_496);
    expect(answer.checkpoint).toMatchObject({ matches: true, totals: { tensors: 723 } });
    expect(hub.sent.bytes).toBeLessThan(5e6);
    expect(answer.references[0].bytesFetched).toBe(hub.sent.bytes);
  }, 30_000);

  it('are compared with each other and with files', async () => {
    const { user } = await start();
    const { code, stdout } = await user.run([
      'compare',
      'hf:org/mix',
      'hf:org/mix@old',
      LOCAL,
      '--json',
    ]);
    const answer = JSON.parse(stdout);
    expect([code, answer.references.length, answer.rows.length]).toEqual([0, 2, 3]);
  });

  it.each([
    ['of no family', 'whisper: '],
    ['in components', 'Stable Diffusion XL: '],
    ['with modules', 'sentence-transformers '],
    ['in several files', 'files for ComfyUI'],
  ])('%s are counted from their headers', async (_, title) => {
    const layout = LAYOUTS.find((each) => each.title.startsWith(title));
    if (layout === undefined) throw new Error(`no layout ${title}`);
    const { hub, user } = await start(repositoryFiles(layout));
    const { stdout, stderr } = await user.run(['profile', 'hf:org/mix', '--json']);
    const answer = JSON.parse(stdout);
    const found = answer.components.map((each: { name: string; parameters: number }) => [
      each.name,
      each.parameters,
    ]);
    expect(Object.fromEntries(found), stderr).toEqual(layout.parameters);
    expect(answer.references[0].bytesFetched).toBe(hub.sent.bytes);
    const fit = await user.run(['fit', 'hf:org/mix', '--gpu', 'l4', '--offline']);
    expect([fit.code, fit.stdout], fit.stderr).toEqual([0, expect.stringContaining('fits on')]);
  });

  it('have random weights in quick-test', async () => {
    const { hub, user } = await start();
    const { code, stderr } = await user.run(['quick-test', 'hf:org/mix', '--only', 'forward']);
    expect([code, stderr]).toEqual([0, expect.stringContaining('the test uses random weights')]);
    expect(hub.requests.some(({ server }) => server === 'store')).toBe(false);
  }, 30_000);
});

/** Files of a folder of the fixtures, including hidden ones. */
function filesOf(...folders: string[]): Record<string, Buffer> {
  const names = folders.flatMap((folder) =>
    fs
      .readdirSync(inPackage(folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => fs.statSync(inPackage(folder, name)).isFile())
      .map((name) => [name, fs.readFileSync(inPackage(folder, name))] as const),
  );
  return Object.fromEntries(names);
}

describe('other kinds of models of the hub', () => {
  const DCP = 'fixtures/distributed/world4-tp';
  const ZERO = 'fixtures/distributed/zero3-world2';
  const LORA = 'fixtures/lora/llama-bf16';
  const LLAMA = 'fixtures/hf/llama';

  async function startKinds() {
    const folders = { dcp: DCP, zero: ZERO, lora: LORA, llama: LLAMA, onnx: 'fixtures/onnx' };
    const hub = await loopbackHub(
      Object.fromEntries(
        Object.entries(folders).map(([name, folder]) => [
          `org/${name}`,
          { commit: COMMIT, files: filesOf(folder) },
        ]),
      ),
    );
    return { hub, user: hubUser(hub) };
  }

  it.each([
    ['inspect', 'hf:org/dcp', DCP],
    ['inspect', 'hf:org/zero', ZERO],
    ['inspect', 'hf:org/lora', LORA],
    ['inspect', 'hf:org/onnx:llama.onnx', 'fixtures/onnx/llama.onnx'],
  ])(
    'have the answer of local files: %s %s',
    async (command, reference, local) => {
      const { user } = await startKinds();
      const own = await user.run([command, local, '--tensors', '--json']);
      const there = await user.run([command, reference, '--tensors', '--json']);
      expect([there.code, own.code], there.stderr).toEqual([0, 0]);
      const { references, ...answer } = JSON.parse(there.stdout);
      const at = reference.replace(/:(?=[^:]*\.onnx)/, ':/');
      expect(JSON.parse(JSON.stringify(answer).replaceAll(at, local))).toEqual(
        JSON.parse(own.stdout),
      );
      expect(references).toHaveLength(1);
    },
    30_000,
  );

  it('are converted by convert-checkpoint, with and without an adapter', async () => {
    const { user } = await startKinds();
    const folder = temporaryFolder();
    for (const [name, words, local] of [
      ['dcp', ['hf:org/dcp'], [DCP]],
      ['zero', ['hf:org/zero'], [ZERO]],
      ['lora', ['hf:org/llama', '--merge-lora', 'hf:org/lora'], [LLAMA, '--merge-lora', LORA]],
    ] as const) {
      const [own, there] = [path.join(folder, `${name}-own`), path.join(folder, name)];
      for (const [out, [from, ...flags]] of [
        [own, local],
        [there, words],
      ] as const) {
        const run = await user.run([
          ...['convert-checkpoint', from, `${out}.safetensors`],
          ...[...flags, '--no-config', '--check', '--container', 'safetensors'],
        ]);
        expect(run.code, run.stderr).toBe(0);
      }
      const [a, b] = [own, there].map((each) => fs.readFileSync(`${each}.safetensors`));
      expect(a && b && Buffer.compare(a, b), name).toBe(0);
    }
  }, 60_000);

  it('include an adapter, which profile and verify read with its model', async () => {
    const { user } = await startKinds();
    const own = await user.run(['profile', LLAMA, '--adapter', LORA]);
    const there = await user.run(['profile', 'hf:org/llama', '--adapter', 'hf:org/lora']);
    const added = (text: string) => text.split('\n').filter((line) => /adapter/i.test(line));
    expect(added(there.stdout.replaceAll('hf:org/lora', LORA))).toEqual(added(own.stdout));
    expect(added(own.stdout)).not.toEqual([]);
    const checked = await user.run(['verify', 'hf:org/llama', 'hf:org/lora']);
    expect([checked.code, checked.stdout]).toEqual([0, expect.stringContaining('matches')]);
    // Its settings name a path that this machine lacks.
    const alone = await user.run(['verify', 'hf:org/lora']);
    expect([alone.code, alone.stderr]).toEqual([2, expect.stringContaining('is an adapter of')]);
  }, 30_000);

  it('are read by diff and train-plan', async () => {
    const { user } = await startKinds();
    const diff = await user.run(['diff', 'hf:org/llama', LLAMA, '--values', '--json']);
    expect([diff.code, JSON.parse(diff.stdout)], diff.stderr).toMatchObject([
      0,
      { equal: true, references: [{ reference: 'hf:org/llama' }] },
    ]);
    const plan = ['train-plan', 'hf:org/llama', '--tokens', '1M', '--json'];
    const planned = await user.run(plan);
    expect([planned.code, JSON.parse(planned.stdout)]).toMatchObject([
      0,
      { file: expect.stringContaining('hf:org/llama'), references: [{ commit: COMMIT }] },
    ]);
    const offline = await user.run([...plan, '--offline']);
    expect(JSON.parse(offline.stdout).size).toEqual(JSON.parse(planned.stdout).size);
  }, 30_000);
});

describe('files longer than the first range', () => {
  it.each(['pt', 'gguf'])(
    'are read: .%s',
    async (ending) => {
      const folder = temporaryFolder();
      const file = path.join(folder, `long.${ending}`);
      const { hub, user } = await start();
      const source = 'fixtures/hf/qwen2';
      const made = await user.run([
        ...['convert-checkpoint', source, file, '--dtype', 'f32'],
        ...(ending === 'pt' ? ['--container', 'pt'] : []),
      ]);
      expect(made.code, made.stderr).toBe(0);
      expect(fs.statSync(file).size).toBeGreaterThan(64 * 1024);
      hub.repositories.set('org/long', {
        commit: COMMIT,
        files: { [`long.${ending}`]: fs.readFileSync(file) },
      });
      const [own, there] = await Promise.all(
        [file, `hf:org/long:long.${ending}`].map((each) =>
          user.run(['inspect', each, '--tensors', '--hash', '--json']),
        ),
      );
      const { references, ...answer } = JSON.parse(there?.stdout ?? '');
      const text = JSON.stringify(answer).replaceAll(`hf:org/long:/long.${ending}`, file);
      expect(JSON.parse(text).tensors).toEqual(JSON.parse(own?.stdout ?? '').tensors);
    },
    60_000,
  );
});

describe('an HTTP proxy', () => {
  /** Proxy that answers absolute URLs from the hub, and refuses tunnels. */
  async function startProxy(endpoint: string) {
    const seen: string[] = [];
    const proxy = http.createServer((asked, answer) => {
      seen.push(`${asked.method} ${asked.url} ${asked.headers['proxy-authorization']}`);
      const { pathname, search } = new URL(asked.url ?? '');
      const headers = { ...asked.headers, host: new URL(endpoint).host };
      http.get(`${endpoint}${pathname}${search}`, { headers }, (from) => {
        answer.writeHead(from.statusCode ?? 500, from.headers);
        from.pipe(answer);
      });
    });
    proxy.on('connect', (asked, socket) => {
      seen.push(`CONNECT ${asked.url} ${asked.headers['proxy-authorization']}`);
      socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    });
    await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
    onTestEnd(() => void proxy.close());
    const { port } = proxy.address() as AddressInfo;
    return { seen, address: `http://user:pass@127.0.0.1:${port}` };
  }

  it('gets the absolute URL of an http endpoint', async () => {
    const { hub, user } = await start();
    const { seen, address } = await startProxy(hub.endpoint);
    const run = await user.run(['profile', 'hf:org/mix', '--json'], {
      HF_ENDPOINT: 'http://hub.example',
      http_proxy: address,
    });
    expect(run.code, run.stderr).toBe(0);
    const basic = `Basic ${Buffer.from('user:pass').toString('base64')}`;
    expect(seen[0]).toBe(`GET http://hub.example/api/models/org/mix/revision/main ${basic}`);
    // The store is on this machine, so its requests use no proxy.
    expect(seen.every((each) => each.startsWith('GET http://hub.example/'))).toBe(true);
    expect(hub.requests.some(({ server }) => server === 'store')).toBe(true);
  }, 30_000);

  it('gets a CONNECT request for an https endpoint', async () => {
    const { hub, user } = await start();
    const { seen, address } = await startProxy(hub.endpoint);
    const run = await user.run(['profile', 'hf:org/mix'], {
      HF_ENDPOINT: 'https://hub.example',
      HTTPS_PROXY: address,
    });
    expect([run.code, run.stderr.replaceAll(/\s+/g, ' ')]).toEqual([
      3,
      expect.stringContaining('answers 407 to a connection to hub.example:443'),
    ]);
    expect(run.stderr).not.toContain('user:pass');
    expect(seen[0]).toMatch(/^CONNECT hub\.example:443 Basic /);
    expect(hub.requests).toEqual([]);
  }, 30_000);
});

/** Hub at https://hub.example and store at https://store.example, reachable only by tunnels of a proxy. */
async function startTunnels(hub: LoopbackHub) {
  const [cert, key] = ['server.pem', 'server-key.pem'].map((name) =>
    fs.readFileSync(inPackage('fixtures/tls', name)),
  );
  const secure = https.createServer({ cert, key }, (asked, answer) => {
    const isHub = asked.headers.host === 'hub.example';
    const { hostname, port } = new URL(isHub ? hub.endpoint : hub.storeEndpoint);
    const { url: path, headers } = asked;
    http.get({ hostname, port, path, headers }, (from) => {
      const { location } = from.headers;
      const moved = location?.replace(/^http:\/\/[^/]+/, 'https://store.example');
      answer.writeHead(from.statusCode ?? 500, {
        ...from.headers,
        ...(moved && { location: moved }),
      });
      from.pipe(answer);
    });
  });
  const proxied: string[] = [];
  const proxy = http.createServer((_asked, answer) => answer.writeHead(400).end());
  proxy.on('connect', (asked, socket: net.Socket, head) => {
    proxied.push(`${asked.url} ${asked.headers['proxy-authorization']}`);
    const { port } = secure.address() as AddressInfo;
    const onward = net.connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      onward.write(head);
      onward.pipe(socket).pipe(onward);
    });
    for (const each of [socket, onward]) each.on('error', () => {});
  });
  for (const server of [secure, proxy]) {
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestEnd(() => {
      server.closeAllConnections();
      server.close();
    });
  }
  const { port } = proxy.address() as AddressInfo;
  const env = {
    HF_ENDPOINT: 'https://hub.example',
    HTTPS_PROXY: `http://me:pass@127.0.0.1:${port}`,
  };
  return { proxied, env };
}

describe('a tunnel through an HTTP proxy', () => {
  it('carries headers and values, with the certificates of the user', async () => {
    const { hub, user } = await start();
    const { proxied, env } = await startTunnels(hub);
    const out = path.join(temporaryFolder(), 'out');
    const trusting = { NODE_EXTRA_CA_CERTS: inPackage('fixtures/tls/ca.pem'), HF_TOKEN: 'secret' };
    const words = ['--dtype', 'f32', '--check', '--json'];
    const [gated, local] = await user.runAll(
      ['hf:org/gated', LOCAL].map((from, at) => [
        ...['convert-checkpoint', from, `${out}-${at}.safetensors`, ...words],
      ]),
      { ...env, ...trusting },
    );
    expect([gated?.code, local?.code], gated?.stderr).toEqual([0, 0]);
    const [there, own] = [0, 1].map((at) => fs.readFileSync(`${out}-${at}.safetensors`));
    expect(there && own && Buffer.compare(there, own)).toBe(0);
    const basic = `Basic ${Buffer.from('me:pass').toString('base64')}`;
    expect(new Set(proxied)).toEqual(
      new Set([`hub.example:443 ${basic}`, `store.example:443 ${basic}`]),
    );
    // Only the hub gets the token, inside the tunnel.
    expect(new Set(hub.requests.map((each) => `${each.server} ${each.authorization}`))).toEqual(
      new Set(['hub Bearer secret', 'store undefined']),
    );
  }, 30_000);

  it('fails without them, with the name of the variable', async () => {
    const { hub, user } = await start();
    const { env } = await startTunnels(hub);
    const { code, stderr } = await user.run(['profile', 'hf:org/mix'], env);
    const text = stderr.replaceAll(/\s+/g, ' ');
    expect([code, text]).toEqual([3, expect.stringContaining('hub.example cannot be reached')]);
    expect(text).toContain('NODE_EXTRA_CA_CERTS');
    expect(hub.requests).toEqual([]);
  }, 30_000);
});

describe('an error with the hub', () => {
  it.each([
    [['profile', 'hf:org/none'], 2, 'has no public model "org/none"'],
    [['profile', 'hf:org/mix@next'], 2, 'org/mix has no revision "next"'],
    [['inspect', 'hf:org/mix:model.safetensor'], 2, 'did you mean hf:org/mix:model.safetensors?'],
    [['inspect', 'hf:org/gated'], 2, 'org/gated is gated: its files need a token, found none'],
    [
      ['profile', 'hf:org/mix', '--offline'],
      3,
      'offline, and no cache of this machine has org/mix at "main"',
    ],
    [['generate', 'hf:org/mix', 'x'], 2, 'hf download org/mix --local-dir mix'],
    [['evaluate', 'hf:org/mix', '--text', 'README.md'], 2, 'needs local files, and downloads none'],
    [['export', 'hf:org/mix', '--save', 'x.onnx'], 2, 'needs local files, and downloads none'],
    [
      ['quick-test', 'hf:org/mix:model.safetensors'],
      2,
      'expected a config, found hf:org/mix:model.safetensors',
    ],
    [['profile', 'hf:org'], 2, 'has no public model "org"'],
    [['profile', 'hf:../x'], 2, 'expected hf:ORG/NAME[@REVISION][:FILE], found "hf:../x"'],
    [['profile', 'Qwen/Qwen1.5-7B'], 2, 'write minimind profile hf:Qwen/Qwen1.5-7B'],
    [
      ['fit', 'Qwen/Qwen3-30B-A3B-FP8', '--gpu', '4090'],
      2,
      'hf:Qwen/Qwen3-30B-A3B-FP8 --gpu 4090, or without a network minimind fit Qwen/Qwen3-30B-A3B --dtype fp8 --gpu 4090',
    ],
    [
      ['profile', 'unsloth/Qwen3-14B-unsloth-bnb-4bit'],
      2,
      'or without a network minimind profile Qwen3-14B --dtype int4',
    ],
    [
      ['profile', 'hf:nvidia/DeepSeek-R1-FP4', '--offline'],
      3,
      'where its sizes are enough, write deepseek_v3/deepseek-r1-671b with --dtype nvfp4: they are built in',
    ],
    [
      ['inspect', 'Qwen/Qwen1.5-7B'],
      2,
      'write hf:Qwen/Qwen1.5-7B, or download it: hf download Qwen/Qwen1.5-7B --local-dir Qwen1.5-7B',
    ],
    [['verify', 'Qwen/Qwen3-8B'], 2, 'write minimind verify hf:Qwen/Qwen3-8B'],
    [
      ['profile', 'https://huggingface.co/Qwen/Qwen3-8B/blob/main/config.json'],
      2,
      'write minimind profile hf:Qwen/Qwen3-8B@main:config.json',
    ],
  ] as [string[], number, string][])('is reported: %j', async (args, code, text) => {
    const { user } = await start();
    const run = await user.run(args);
    expect(run.stderr.replaceAll(/\s+/g, ' ')).toContain(text);
    expect([run.code, run.stdout]).toEqual([code, '']);
  });

  it('does not occur for a prompt that looks like a reference', async () => {
    const { hub, user } = await start();
    await user.run(['generate', 'minimind2-small', 'hf:org/mix']);
    expect(hub.requests).toEqual([]);
  });

  it('is reported for hostile names in an index, without requests for them', async () => {
    const index = { metadata: {}, weight_map: { a: '../../x.safetensors' } };
    const { hub, user } = await start({
      ...mixtral(),
      'model.safetensors': '',
      'model.safetensors.index.json': JSON.stringify(index),
    });
    const run = await user.run(['inspect', 'hf:org/mix:model.safetensors.index.json']);
    expect([run.code, run.stderr]).toEqual([2, expect.stringContaining('../../x.safetensors')]);
    expect(hub.requests.some(({ url }) => url.includes('x.safetensors'))).toBe(false);
  });

  it('is reported for a too long header', async () => {
    const length = Buffer.alloc(16);
    length.writeBigUInt64LE(2n ** 33n);
    length.write('{"a":', 8);
    const size = 2 ** 34;
    const { hub, user } = await start({
      ...mixtral(),
      'model.safetensors': { size, parts: [{ position: 0, bytes: length }] },
    });
    const run = await user.run(['inspect', 'hf:org/mix']);
    expect([run.code, run.stdout]).toEqual([2, '']);
    expect(hub.sent.bytes).toBeLessThan(200_000);
  });

  it('does not occur for a damaged cache, which is fetched again', async () => {
    const { user } = await start();
    const first = await user.run(['profile', 'hf:org/mix']);
    const cache = path.join(user.home, 'cache');
    for (const name of fs.readdirSync(cache, { recursive: true, encoding: 'utf8' })) {
      const file = path.join(cache, name);
      if (fs.statSync(file).isFile()) fs.truncateSync(file, Math.floor(fs.statSync(file).size / 2));
    }
    expect((await user.run(['profile', 'hf:org/mix'])).stdout).toBe(first.stdout);
  });

  it('does not occur without a writable cache', async () => {
    const { user } = await start();
    const file = path.join(user.home, 'cache');
    fs.writeFileSync(file, '');
    expect((await user.run(['profile', 'hf:org/mix'])).code).toBe(0);
  });
});
