import { spawn } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { confinedModel } from '../../src/cli/mcp/confined-paths.js';
import { TOOLS } from '../../src/cli/mcp/tools.js';
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
  fs.writeFileSync(path.join(folder, 'secret.yaml'), 'secret: 1\n');
  fs.symlinkSync('../secret.yaml', path.join(root, 'link.yaml'));
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

describe('the server', () => {
  it('answers as the command line, refuses other paths, and ends with its input', async () => {
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
      const { content, isError } = await ask('tools/call', { name, arguments: input });
      return { text: (content as [{ text: string }])[0].text, isError };
    };
    const { serverInfo } = await ask('initialize', {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    });
    expect(serverInfo).toMatchObject({ name: 'minimind' });
    child.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
    const { tools } = await ask('tools/list', {});
    expect((tools as { name: string }[]).map(({ name }) => name)).toEqual(Object.keys(TOOLS));

    const [markdown, fields, wrong, outside, unknown] = await Promise.all([
      call('profile', { model: 'own.yaml', context: 128 }),
      call('profile', { model: 'hybrid/tiny', fields: ['parameters.total.value', 'file'] }),
      call('validate', { models: ['own.yaml', 'wrong.yaml'] }),
      call('inspect', { checkpoint: '../secret.yaml' }),
      call('profile', { model: 'own.yaml', modle: 'x' }),
    ]);
    const { stdout } = await runHere(
      ['profile', 'own.yaml', '--context', '128', '--format', 'markdown'],
      { cwd: root },
    );
    expect(markdown).toEqual({ text: stdout, isError: false });
    expect(JSON.parse(fields.text)).toMatchObject({ file: 'hybrid/tiny' });
    expect(wrong).toMatchObject({ isError: true, text: expect.stringContaining('num_layers') });
    expect(outside).toMatchObject({ isError: true, text: expect.stringContaining('is outside') });
    expect(unknown).toMatchObject({ isError: true, text: expect.stringContaining('modle') });

    child.stdin.end();
    expect(await once(child, 'close')).toEqual([0, null]);
  });
});
