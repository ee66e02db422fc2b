/** Conversions in parts of models of the hub. Each part reads one commit, and the files are those of a single run. */
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { convert, type Flags } from '../../convert/conversion/convert.js';
import { inPackage } from '../../fixtures.js';
import { COMMIT, OTHER_COMMIT } from '../../input/hub/hub-models.js';
import { type HubContent, type HubRepository, loopbackHub } from '../../input/hub/loopback-hub.js';
import { type HubUser, hubUser, temporaryFolder } from '../../input/hub/support.js';
import { sampled } from '../../sampled.js';
import { hashes } from './parts.js';

/** Values beyond the first range of a file, which includes the index. */
const ROWS = 96;
const COLUMNS = 256;
const TENSOR_BYTES = 4 * ROWS * COLUMNS;

/** Sharded checkpoint of two tensors of 96 KiB per shard. */
function sharded(shards = 4): Record<string, Buffer> {
  const weight_map: Record<string, string> = {};
  const files: Record<string, Buffer> = {};
  for (let shard = 0; shard < shards; shard++) {
    const name = `model-0000${shard + 1}-of-0000${shards}.safetensors`;
    const header: Record<string, object> = {};
    const values = new Float32Array(2 * ROWS * COLUMNS);
    for (const at of values.keys()) values[at] = Math.sin(at * (shard + 1)) * 3;
    for (const own of [0, 1]) {
      const tensor = `layers.${2 * shard + own}.weight`;
      const data_offsets = [own * TENSOR_BYTES, (own + 1) * TENSOR_BYTES];
      header[tensor] = { dtype: 'F32', shape: [ROWS, COLUMNS], data_offsets };
      weight_map[tensor] = name;
    }
    const text = Buffer.from(JSON.stringify(header).padEnd(200));
    const length = Buffer.alloc(8);
    length.writeBigUInt64LE(BigInt(text.length));
    files[name] = Buffer.concat([length, text, Buffer.from(values.buffer)]);
  }
  const index = JSON.stringify({ metadata: {}, weight_map });
  return { ...files, 'model.safetensors.index.json': Buffer.from(index) };
}

const FLAGS = ['--no-config', '--dtype', 'bf16', '--shard-size', '50KB'];
const SAME: Flags = { noConfig: true, dtype: 'BF16', shardSize: 50e3 };
const TOKEN = 'hf_onlyForTheTasks';

const FILES = sharded();

/** Hashes of the files of a single run with the same flags and input. */
let singleHashes: Record<string, string> | undefined;

/** @param isAlone Whether each command runs in its own process, so that several can run at once. */
async function start(more: Partial<HubRepository> = {}, { isAlone = false } = {}) {
  const hub = await loopbackHub({
    'org/big': { commit: COMMIT, refs: { kept: COMMIT }, files: FILES, ...more },
  });
  const folder = temporaryFolder();
  const at = (...names: string[]) => path.join(folder, ...names);
  for (const [name, content] of Object.entries(FILES)) {
    fs.mkdirSync(path.dirname(at('in', name)), { recursive: true });
    fs.writeFileSync(at('in', name), content);
  }
  const plan = ['--plan', at('plan.json')];
  // A command uses no data of earlier commands in its process, so all users share one process.
  const run = (user: HubUser, words: string[], env = {}) =>
    (isAlone ? user.runAlone : user.run)(['convert-checkpoint', ...words, '--json'], env);
  return {
    ...{ hub, at },
    /** Machine with empty caches. */
    machine: () => hubUser(hub),
    plan: (user: HubUser, parts: number, words: string[] = [], env = {}) =>
      run(
        user,
        ['hf:org/big', at('out'), ...FLAGS, '--parts', String(parts), ...plan, ...words],
        env,
      ),
    part: (user: HubUser, words: string[], env = {}) =>
      run(user, [...plan, '--part', ...words], env),
    step: (user: HubUser, words: string[], env = {}) => run(user, [...plan, ...words], env),
    steps: async (user: HubUser, commands: string[], env = {}) => {
      const runs = [];
      for (const words of commands) runs.push(await run(user, [...plan, ...words.split(' ')], env));
      return runs;
    },
    single: async () => {
      if (singleHashes === undefined) {
        await convert(at('in'), at('single'), SAME);
        singleHashes = hashes(at('single'));
      }
      return singleHashes;
    },
  };
}

const succeeded = (run: { code: number | null; stderr: string; stdout: string }) => {
  expect(run.code, run.stderr + run.stdout).toBe(0);
  return JSON.parse(run.stdout);
};

/** All text of an error on one line. */
const errorOf = ({ code, stdout }: { code: number | null; stdout: string }) => {
  const { message, problems = [], suggestion } = JSON.parse(stdout);
  return `${code}: ${message} ${JSON.stringify(problems)} ${suggestion ?? ''}`;
};

describe('parts of a model of the hub', () => {
  it.each(sampled([3, 1, 8], 3))(
    'write the files of a single run from a local copy: %d',
    async (parts) => {
      const { hub, at, machine, plan, part, step, single } = await start(
        {},
        { isAlone: parts === 8 },
      );
      const planned = succeeded(await plan(machine(), parts));
      expect(planned).toMatchObject({
        input: { path: `hf:org/big@${COMMIT}`, files: 4 },
        references: [{ reference: 'hf:org/big', revision: 'main', commit: COMMIT }],
      });
      // Later commands do not ask for the branch, which has moved.
      const [repository] = hub.repositories.values();
      hub.repositories.set('org/big', {
        ...(repository ?? expect.unreachable()),
        commit: OTHER_COMMIT,
      });
      if (parts === 8) {
        const runs = ['0', '1'].map((index) =>
          part(machine(), ['auto', '--tasks', '2'], { JOB_COMPLETION_INDEX: index }),
        );
        for (const run of await Promise.all(runs)) succeeded(run);
      } else {
        const order = [3, 1, 2].filter((number) => number <= parts);
        for (const number of order) succeeded(await part(machine(), [String(number)]));
      }
      expect(succeeded(await step(machine(), ['--finish', '--check']))).toMatchObject({
        schema: 'minimind/convert-checkpoint@1',
        run: { checked: true, readBytes: 8 * TENSOR_BYTES },
      });
      expect(hashes(at('out'))).toEqual(await single());
      const urls = hub.requests.filter(({ server }) => server === 'hub').map(({ url }) => url);
      expect(urls.filter((url) => /main/.test(url))).toHaveLength(1);
    },
    60_000,
  );

  it('read only the ranges that they need', async () => {
    const { hub, machine, plan, part } = await start();
    const user = machine();
    succeeded(await plan(user, 4));
    const before = hub.sent.bytes;
    // The plan has read only the first range of each file, and the index.
    expect(before).toBeLessThan(4 * 66_000 + 5_000);
    succeeded(await part(user, ['2']));
    // Two of eight tensors; the headers are in the cache of this machine.
    expect(hub.sent.bytes - before).toBeLessThanOrEqual(2 * TENSOR_BYTES);
    expect(hub.sent.bytes - before).toBeGreaterThan(2 * TENSOR_BYTES - 70_000);
  }, 30_000);

  it('continue after truncated and stalled answers, status 429 and a failed run', async () => {
    const { hub, at, machine, plan, part, step, single } = await start();
    succeeded(await plan(machine(), 2));
    const answers = [
      (response: import('node:http').ServerResponse) =>
        response.writeHead(429, { 'retry-after': '0' }).end(),
      (response: import('node:http').ServerResponse) =>
        response
          .writeHead(206, {
            'content-length': 98_304,
            'content-range': `bytes 208-98511/${208 + 2 * TENSOR_BYTES}`,
          })
          .write('cut', () => response.destroy()),
      (response: import('node:http').ServerResponse) => response.writeHead(503).end(),
      () => {},
    ];
    let isDown = false;
    hub.faults.push((asked, response) => {
      const isValue = asked.url?.startsWith('/store/') && asked.headers.range !== 'bytes=0-65535';
      if (!isValue) return false;
      if (isDown) return !!response.writeHead(429, { 'retry-after': '3600' }).end();
      const answer = answers.shift();
      answer?.(response);
      return answer !== undefined;
    });
    const env = { HF_HUB_DOWNLOAD_TIMEOUT: '0.5' };
    succeeded(await part(machine(), ['1'], env));
    expect(answers).toEqual([]);
    isDown = true;
    const failed = await part(machine(), ['2'], env);
    expect(errorOf(failed)).toMatch(/^3: .*too many requests.*try again in 3600 s/);
    expect(succeeded(await step(machine(), ['--status']))).toMatchObject({ array: '2' });
    isDown = false;
    succeeded(await part(machine(), ['2'], env));
    succeeded(await step(machine(), ['--finish']));
    expect(hashes(at('out'))).toEqual(await single());
  }, 60_000);

  it('use the token of each task, and do not store it', async () => {
    const { at, machine, plan, part, step, steps, single } = await start({ gatedBy: TOKEN });
    succeeded(await plan(machine(), 2, [], { HF_TOKEN: TOKEN }));
    const refused = await part(machine(), ['1']);
    expect(errorOf(refused)).toMatch(/^2: org\/big is gated: its files need a token, found none.*/);
    expect(errorOf(refused)).toContain('set HF_TOKEN');
    const commands = [
      ...['--part 2', '--part 1', '--launch slurm', '--launch parallel'],
      '--launch kubernetes --image i --claim c',
    ];
    const runs = await steps(machine(), commands, { HF_TOKEN: TOKEN });
    const jobs = runs.map(succeeded).flatMap(({ job }): string[] => (job ? [job.text] : []));
    expect(jobs).toHaveLength(3);
    for (const job of jobs) {
      expect(job).toContain(`Reads hf:org/big@${COMMIT}: each task needs access to the hub`);
    }
    const kept = fs
      .readdirSync(at(), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile() && !/safetensors$/.test(entry.name))
      .map((entry) => fs.readFileSync(path.join(entry.parentPath, entry.name), 'utf8'));
    expect(kept.length).toBeGreaterThan(3);
    expect([...kept, ...jobs].filter((text) => text.includes(TOKEN))).toEqual([]);
    succeeded(await step(machine(), ['--finish'], { HF_TOKEN: TOKEN }));
    expect(hashes(at('out'))).toEqual(await single());
  }, 60_000);

  it('refuse a missing commit, and a changed file', async () => {
    const { hub, machine, plan, part, step } = await start();
    const user = machine();
    succeeded(await plan(user, 2));
    const repository = hub.repositories.get('org/big') ?? expect.unreachable();
    hub.repositories.set('org/big', { ...repository, commit: OTHER_COMMIT, refs: {} });
    // Once with cached headers, once without.
    for (const each of [user, machine()]) {
      expect(errorOf(await part(each, ['1']))).toMatch(/^2: org\/big has no commit 1234567890abc/);
    }
    const files = Object.fromEntries(
      Object.entries(repository.files).map(([name, content]): [string, HubContent] => {
        const bytes = Buffer.from(content as Buffer);
        // A file of the same size and index with another value.
        if (/safetensors$/.test(name)) bytes.writeUInt8(bytes.readUInt8(100_000) ^ 1, 100_000);
        return [name, bytes];
      }),
    );
    hub.repositories.set('org/big', { ...repository, files });
    expect(errorOf(await part(machine(), ['1']))).toMatch(
      /^2: hf:org\/big@\w{40}\/model-00001-of-00004.safetensors has other content than when it was planned/,
    );
    expect(errorOf(await part(user, ['1']))).toMatch(
      /^3: 127.0.0.1:\d+ serves other content than when this commit was first read, for model-0000/,
    );
    expect(succeeded(await step(user, ['--status']))).toMatchObject({ array: '1,2' });
  }, 60_000);

  it('read only caches with --offline', async () => {
    const { hub, at, machine, plan, part, steps, single } = await start();
    const user = machine();
    expect(errorOf(await plan(user, 2, ['--offline']))).toMatch(
      /^3: offline, and no cache of this machine has org\/big/,
    );
    succeeded(await user.run(['inspect', 'hf:org/big', '--json']));
    const before = hub.requests.length;
    succeeded(await plan(user, 2, ['--offline']));
    expect(errorOf(await part(user, ['1', '--offline']))).toMatch(
      /^3: offline, and no cache of this machine has the values in model-0000\d-of-00004.safetensors of org\/big.*hf download org\/big/,
    );
    // The cache of hf download on another machine.
    const other = machine();
    const repository = path.join(other.home, 'hf/hub/models--org--big');
    const snapshot = path.join(repository, 'snapshots', COMMIT);
    fs.mkdirSync(path.join(repository, 'blobs'), { recursive: true });
    fs.mkdirSync(snapshot, { recursive: true });
    for (const name of fs.readdirSync(at('in'))) {
      const blob = hashes(at('in'))[name] ?? '';
      fs.copyFileSync(at('in', name), path.join(repository, 'blobs', blob));
      fs.symlinkSync(path.join('../../blobs', blob), path.join(snapshot, name));
    }
    const commands = ['--part 2', '--part 1', '--launch slurm', '--finish'];
    const offline = commands.map((words) => `${words} --offline`);
    const [, , launched] = (await steps(other, offline)).map(succeeded);
    expect(launched.job.text).toMatch(/--part auto --offline'/);
    expect(hub.requests).toHaveLength(before);
    expect(hashes(at('out'))).toEqual(await single());
    // A blob with another name is refused, because the name is the hash.
    const [first = ''] = fs.readdirSync(snapshot);
    fs.rmSync(path.join(snapshot, first));
    fs.writeFileSync(path.join(repository, 'blobs/f00'), fs.readFileSync(at('in', first)));
    fs.symlinkSync('../../blobs/f00', path.join(snapshot, first));
    fs.rmSync(at('out'), { recursive: true });
    for (const name of fs.readdirSync(at()).filter((each) => /^\.out/.test(each))) {
      fs.rmSync(at(name), { recursive: true });
    }
    expect(errorOf(await part(other, ['1', '--offline']))).toContain('has other content than when');
  }, 60_000);
});

/** Files of a folder of the fixtures, including hidden ones. */
const filesOf = (folder: string): Record<string, Buffer> =>
  Object.fromEntries(
    fs
      .readdirSync(inPackage(folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => fs.statSync(inPackage(folder, name)).isFile())
      .map((name) => [name, fs.readFileSync(inPackage(folder, name))]),
  );

describe('a reference to the hub', () => {
  const LLAMA = 'fixtures/hf/llama';
  const LORA = 'fixtures/lora/llama-bf16';
  const DCP = 'fixtures/distributed/world4-tp';
  const ZERO = 'fixtures/distributed/zero3-world2';

  const cases: [string, string, string, string[], 'lora' | undefined][] = [
    ['a model with its tokenizer', 'llama', LLAMA, ['--shard-size', '15KB'], undefined],
    ['an adapter', 'llama', LLAMA, ['--shard-size', '15KB'], 'lora'],
    ['a distributed checkpoint', 'dcp', DCP, ['--no-config', '--shard-size', '300B'], undefined],
    ['a ZeRO checkpoint', 'zero', ZERO, ['--no-config', '--shard-size', '300B'], undefined],
  ];
  it.each(sampled(cases, 3))(
    'is converted in parts: %s',
    async (_, name, local, words, adapter) => {
      const folders = { llama: LLAMA, lora: LORA, dcp: DCP, zero: ZERO };
      const repositories = Object.entries(folders).map(
        ([each, folder]) => [`org/${each}`, { commit: COMMIT, files: filesOf(folder) }] as const,
      );
      const hub = await loopbackHub(Object.fromEntries(repositories));
      const folder = temporaryFolder();
      const at = (each: string) => path.join(folder, each);
      const merged = (from: string) => (adapter === undefined ? [] : ['--merge-lora', from]);
      const plan = ['--plan', at('plan.json')];
      const flags = [...words, ...merged('hf:org/lora')];
      const commands = [
        [local, at('single'), ...words, ...merged(LORA)],
        [`hf:org/${name}`, at('out'), ...flags, '--parts', '3', ...plan],
        ...['2', '3', '1'].map((part) => [...plan, '--part', part]),
        [...plan, '--finish', '--check'],
      ];
      const lines = commands.map((each) => ['convert-checkpoint', ...each, '--json']);
      const user = hubUser(hub);
      for (const line of lines) succeeded(await user.run(line));
      expect(hashes(at('out'))).toEqual(hashes(at('single')));
    },
    60_000,
  );
});
