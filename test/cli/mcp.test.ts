import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import * as z from 'zod';
import { READ_ROOT } from '../../src/base/files/confined-reads.js';
import { confinedModel } from '../../src/cli/mcp/confined-paths.js';
import { inToolWords } from '../../src/cli/mcp/tool-words.js';
import { possiblePaths, TOOLS } from '../../src/cli/mcp/tools.js';
import { inPackage } from '../fixtures.js';
import { runHere } from '../run-here.js';

let folder: string;
let root: string;
beforeAll(() => {
  folder = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-')));
  root = path.join(folder, 'models');
  fs.mkdirSync(root);
  fs.copyFileSync(inPackage('configs/hybrid/tiny.yaml'), path.join(root, 'own.yaml'));
  fs.writeFileSync(path.join(root, 'wrong.yaml'), 'model:\n  num_layer: 3\n');
  fs.writeFileSync(path.join(folder, 'secret.yaml'), 'secret: hidden\n');
  fs.symlinkSync('../secret.yaml', path.join(root, 'link.yaml'));
  fs.symlinkSync('link.yaml', path.join(root, 'chain.yaml'));
  fs.mkdirSync(path.join(folder, 'far/away'), { recursive: true });
  fs.copyFileSync(path.join(folder, 'secret.yaml'), path.join(folder, 'far/secret.yaml'));
  fs.copyFileSync(path.join(folder, 'secret.yaml'), path.join(folder, 'far/away/secret.yaml'));
  fs.symlinkSync('../far/away', path.join(root, 'way'));
  fs.mkdirSync(path.join(root, 'hf.co'));
  fs.copyFileSync(
    inPackage('fixtures/minigpt/tiny-gqa/model.safetensors'),
    path.join(root, 'own.safetensors'),
  );
});
afterAll(() => fs.rmSync(folder, { recursive: true }));

describe('a path', () => {
  it('can be below the root, a name, or of the hub', () => {
    for (const name of ['own.yaml', 'minimind2-small', 'hybrid/tiny', 'qwen3-8b', 'hf:a/b']) {
      expect(confinedModel(name, root)).toBe(name);
    }
    expect(confinedModel(path.join(root, 'own.yaml'), root)).toBe(path.join(root, 'own.yaml'));
  });

  it.each([
    ['../secret.yaml', 'is outside'],
    ['link.yaml', 'is outside'],
    ['nowhere/../../secret.yaml', 'is outside'],
    ['../nowhere.yaml', 'is outside'],
    ['/etc/passwd', 'is outside'],
    ['-', 'standard input is not a model'],
    ['--save', 'is not a model'],
  ])('cannot be %s', (name, message) => {
    expect(() => confinedModel(name, root)).toThrow(message);
  });
});

describe('the tools', () => {
  const commands = JSON.parse(fs.readFileSync(inPackage('oclif.manifest.json'), 'utf8')).commands;

  it('give words that their commands have', () => {
    const given = {
      ...{ model: 'm', models: ['m'], checkpoint: 'm', set: ['model.a=1', 'b=2'], context: 8 },
      ...{ batch: 2, dtype: 'int8', gpu: 'h100', for: 'lora', users: 3, columns: ['parameters'] },
      ...{ filter: '*.bias', details: true, strict: true },
    };
    for (const [name, { flags, input }] of Object.entries(TOOLS)) {
      const known = Object.fromEntries(Object.entries(given).filter(([key]) => key in input.shape));
      const words = flags(input.parse(known));
      expect(words.length).toBeGreaterThan(0);
      for (const word of words) {
        const flag = word.slice(2).split('=')[0] ?? '';
        expect(Object.keys(commands[name].flags), `${name} ${word}`).toContain(flag);
        expect(['save', 'output', 'force', 'plan']).not.toContain(flag);
      }
    }
  });

  it('take no change that is a flag', () => {
    for (const set of ['--save=x', '-o=x', '=3', 'a b=3', 'key']) {
      expect(TOOLS.profile?.input.safeParse({ model: 'm', set: [set] }).success).toBe(false);
    }
  });
});

describe('the words of a tool', () => {
  const described = (tool: string, input: string): string => {
    const { properties = {} } = z.toJSONSchema(TOOLS[tool]?.input as z.ZodObject) as {
      properties?: Record<string, { description?: string }>;
    };
    return properties[input]?.description ?? '';
  };

  it.each(['profile', 'fit', 'compare'])('name only types that %s takes', async (tool) => {
    const [, types = ''] = described(tool, 'dtype').split(': ');
    expect(types.split(', ').length).toBeGreaterThan(3);
    for (const type of types.split(', ')) {
      const words = tool === 'fit' ? ['--gpu=h100'] : [];
      const { code, stderr } = await runHere([tool, 'hybrid/tiny', `--dtype=${type}`, ...words]);
      expect(code, `${tool} ${type}: ${stderr}`).toBe(0);
    }
  });

  it('say that inspect takes weights only', () => {
    expect(described('inspect', 'checkpoint')).toMatch(/weights.*not a config/);
    expect(described('inspect', 'checkpoint')).not.toContain('preset');
  });

  it.each([
    ['inspect', ['fixtures/hf/llama', '--filter=zzz'], 'filter: no tensor', '--'],
    ['fit', ['hybrid/tiny', '--gpu=h1000'], 'did you mean h100?', '--'],
    ['profile', ['hybrid/tiny', '--fields=zz'], 'fields: unknown field', '--'],
    ['profile', ['hybrid/tiny', '--dtype=zz'], 'write one of f64', '--'],
    ['profile', ['x.yaml'], 'a model of the hub is hf:ORG/NAME', 'minimind list'],
    ['inspect', ['hybrid/tiny'], 'call profile with hybrid/tiny', 'minimind'],
    ['profile', ['fixtures/minigpt/tiny-gqa', '--fields=zz'], 'has no config', '--config'],
    ['fit', ['hybrid/tiny', '--gpu=missing.yaml'], 'there is no file', '--list-gpus'],
    ['compare', ['hybrid/tiny', '--set=a=1'], 'set: a=1', '--'],
  ])('replace the flags of an error: %s %j', async (tool, words, has, lacks) => {
    const { code, stdout, stderr } = await runHere([tool, ...words]);
    expect(code).not.toBe(0);
    const text = inToolWords(stdout + stderr, tool);
    expect(text).toContain(has);
    expect(text).not.toContain(lacks);
  });
});

/** Every way that a test knows to name the secret file beside the root, or one of the system. */
const attacks = () => [
  '../secret.yaml',
  './../secret.yaml',
  'nowhere/../../secret.yaml',
  'own.yaml/../../secret.yaml',
  'way/secret.yaml',
  'way/../secret.yaml',
  'way',
  'link.yaml',
  'chain.yaml',
  path.join(folder, 'secret.yaml'),
  `/${folder}/secret.yaml`,
  `//localhost${folder}/secret.yaml`,
  `${root}/../secret.yaml`,
  '/dev/stdin',
  '/proc/self/cwd/../secret.yaml',
  '/etc/passwd',
  `file://${folder}/secret.yaml`,
  `FILE:${folder}/secret.yaml`,
  '~/secret.yaml',
  '~root/secret.yaml',
  String.raw`..\secret.yaml`,
  String.raw`\\localhost\share\secret.yaml`,
  'hf.co/../../secret.yaml',
  'hf:x/../../secret.yaml',
  'https://../../secret.yaml',
  'own.yaml,../secret.yaml',
];

/** A server in the root, until the test ends its input. */
async function startServer() {
  const child = spawn(process.execPath, [inPackage('bin/run.js'), 'mcp', '--root', root], {
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const answers = new Map<number, (answer: Record<string, unknown>) => void>();
  createInterface({ input: child.stdout }).on('line', (line) => {
    const { id, result, error } = JSON.parse(line);
    answers.get(id)?.(result ?? { error });
  });
  let id = 0;
  const ask = (method: string, params: object) => {
    id++;
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    return new Promise<Record<string, unknown>>((resolve) => answers.set(id, resolve));
  };
  const call = async (name: string, input: object) => {
    const { content, isError, error } = await ask('tools/call', { name, arguments: input });
    const text = error ? JSON.stringify(error) : (content as [{ text: string }])[0].text;
    return { text, isError: error ? true : isError };
  };
  const { serverInfo } = await ask('initialize', {
    protocolVersion: '2025-06-18',
    capabilities: {},
    clientInfo: { name: 'test', version: '1' },
  });
  child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
  const end = async () => {
    child.stdin.end();
    expect(await once(child, 'close')).toEqual([0, null]);
  };
  return { serverInfo, ask, call, end };
}

/** Inputs of a tool that take texts, each with whether it takes a list of them. */
const textInputs = (tool: string): [string, boolean][] => {
  const { properties = {} } = z.toJSONSchema(TOOLS[tool]?.input as z.ZodObject) as {
    properties?: Record<string, { type?: string; enum?: unknown }>;
  };
  return Object.entries(properties)
    .filter(([, { type, enum: choices }]) => /^(?:string|array)$/.test(type ?? '') && !choices)
    .map(([key, { type }]) => [key, type === 'array']);
};

/** The least that each tool requires. */
const REQUIRED: Readonly<Record<string, object>> = {
  validate: { models: ['own.yaml'] },
  profile: { model: 'own.yaml' },
  fit: { model: 'own.yaml' },
  compare: { models: ['own.yaml'] },
  inspect: { checkpoint: 'own.safetensors' },
};

describe('no text of any tool', () => {
  it('is read as a path out of the root by the server', () => {
    for (const [tool, required] of Object.entries(REQUIRED)) {
      for (const [key, isList] of textInputs(tool)) {
        if (key === 'filter') continue;
        for (const attack of attacks()) {
          const text = key === 'set' ? `model.x=${attack}` : attack;
          const found = possiblePaths({ ...required, [key]: isList ? ['a=1', text] : text });
          expect(found, `${tool} ${key}`).toContain(attack);
        }
      }
    }
  });

  it('is read as one by the process that answers, even if the server let it pass', async () => {
    for (const attack of attacks()) {
      for (const words of [
        ['profile', attack],
        ['validate', 'own.yaml', attack],
        ['inspect', attack],
        ['fit', 'own.yaml', `--gpu=${attack}`],
      ]) {
        const { code, stdout, stderr } = await answered(words);
        const answer = `${words.join(' ')}: ${stdout}${stderr}`;
        expect(code, answer).not.toBe(0);
        expect(answer).not.toMatch(/hidden|root:x/);
      }
    }
  });
});

/** What the process says that answers a tool. */
async function answered(words: readonly string[]) {
  vi.stubEnv(READ_ROOT, root);
  try {
    return await runHere([...words, '--offline'], { cwd: root });
  } finally {
    vi.unstubAllEnvs();
  }
}

describe('a link below the root', () => {
  const put = (name: string, target: string) => {
    fs.mkdirSync(path.dirname(path.join(root, name)), { recursive: true });
    fs.symlinkSync(target, path.join(root, name));
  };

  it('leads no tool out of it, whatever file of a model it replaces', async () => {
    const weights = inPackage('fixtures/minigpt/tiny-gqa/model.safetensors');
    fs.copyFileSync(weights, path.join(folder, 'hidden.safetensors'));
    fs.mkdirSync(path.join(folder, 'hidden'));
    fs.copyFileSync(weights, path.join(folder, 'hidden/model.safetensors'));
    put('weights/model.safetensors', '../../hidden.safetensors');
    put('absolute/model.safetensors', path.join(folder, 'hidden.safetensors'));
    put('chain/model.safetensors', '../weights/model.safetensors');
    put('sharded/model-00001-of-00001.safetensors', '../../hidden.safetensors');
    fs.writeFileSync(
      path.join(root, 'sharded/model.safetensors.index.json'),
      JSON.stringify({ weight_map: { a: 'model-00001-of-00001.safetensors' } }),
    );
    put('index/model.safetensors.index.json', '../../secret.yaml');
    put('config/config.json', '../../secret.yaml');
    put('named/weights.gguf', '../../hidden.safetensors');
    put('plain/weights', '../../hidden.safetensors');
    put('adapter/adapter_config.json', '../../secret.yaml');
    put('deep/a/b', '../../../hidden');
    put('ckpt/.metadata', '../../secret.yaml');
    fs.copyFileSync(weights, path.join(root, 'inside.safetensors'));
    put('allowed/model.safetensors', '../inside.safetensors');

    const linked = [
      ...[
        'weights',
        'weights/model.safetensors',
        'absolute',
        'chain',
        'sharded',
        'index',
        'config',
      ],
      ...['named', 'named/weights.gguf', 'plain/weights', 'adapter', 'deep/a/b', 'ckpt'],
      'sharded/model.safetensors.index.json',
    ];
    for (const model of linked) {
      for (const command of ['inspect', 'profile', 'validate', 'compare']) {
        const { code, stdout, stderr } = await answered([command, model]);
        const answer = `${command} ${model}: ${stdout}${stderr}`;
        expect(code, answer).not.toBe(0);
        expect(answer).not.toMatch(/secret: hidden|token_embedding/);
      }
    }
    expect(await answered(['inspect', 'allowed'])).toMatchObject({ code: 0 });
  });

  it('is allowed in a snapshot of the cache of the hub, to its own blobs only', () => {
    const home = path.join(folder, 'models--a--b');
    const snapshot = path.join(home, 'snapshots/0');
    fs.mkdirSync(snapshot, { recursive: true });
    fs.mkdirSync(path.join(home, 'blobs'));
    fs.writeFileSync(path.join(home, 'blobs/1'), '{}');
    fs.symlinkSync('../../blobs/1', path.join(snapshot, 'config.json'));
    fs.symlinkSync('../../../secret.yaml', path.join(snapshot, 'other.yaml'));
    fs.symlinkSync(folder, path.join(home, 'blobs/2'));
    fs.symlinkSync('../../blobs/2', path.join(snapshot, 'sub'));
    expect(confinedModel('config.json', snapshot)).toBe('config.json');
    for (const name of ['other.yaml', 'sub/secret.yaml', '../../blobs/2/secret.yaml']) {
      expect(() => confinedModel(name, snapshot)).toThrow('is outside');
    }
  });
});

describe('the server', () => {
  it('answers as the command line, refuses other paths, and ends with its input', async () => {
    const { serverInfo, ask, call, end } = await startServer();
    expect(serverInfo).toMatchObject({ name: 'minimind' });
    const { tools } = await ask('tools/list', {});
    expect((tools as { name: string }[]).map(({ name }) => name)).toEqual(Object.keys(TOOLS));

    const [markdown, fields, wrong, outside, unknown, gpu, linked] = await Promise.all([
      call('profile', { model: 'own.yaml', context: 128 }),
      call('profile', { model: 'hybrid/tiny', fields: ['parameters.total.value', 'file'] }),
      call('validate', { models: ['own.yaml', 'wrong.yaml'] }),
      call('inspect', { checkpoint: '../secret.yaml' }),
      call('profile', { model: 'own.yaml', modle: 'x' }),
      call('fit', { model: 'own.yaml', gpu: '../secret.yaml' }),
      call('inspect', { checkpoint: 'weights' }),
    ]);
    const { stdout } = await runHere(
      ['profile', 'own.yaml', '--context', '128', '--format', 'markdown'],
      { cwd: root },
    );
    expect(markdown).toEqual({ text: stdout, isError: false });
    expect(JSON.parse(fields.text)).toMatchObject({ file: 'hybrid/tiny' });
    expect(wrong).toMatchObject({ isError: true, text: expect.stringContaining('num_layers') });
    expect(outside).toMatchObject({ isError: true, text: expect.stringContaining('is outside') });
    expect(gpu).toMatchObject({ isError: true, text: expect.stringContaining('is outside') });
    expect(linked).toMatchObject({ isError: true, text: expect.stringContaining('is outside') });
    expect(unknown).toMatchObject({ isError: true, text: expect.stringContaining('modle') });

    await end();
  });
});
