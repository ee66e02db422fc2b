import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { surveyAdapters, webgpuAdapter } from '../../../src/engine/adapters/adapters.js';
import {
  ask,
  type SystemCalls,
  THIS_MACHINE,
} from '../../../src/engine/adapters/graphics-adapter.js';
import { machine } from './machines.js';

/** Answer of webgpu 0.6.2 for llvmpipe of Mesa 25.0.7: info, limits and list of adapters. */
const LLVMPIPE = {
  adapter: {
    vendor: 'mesa',
    device: 'llvmpipe-llvm-15-0-6-256-bits-',
    description: 'llvmpipe: Mesa 25.0.7-2~bpo12+1 (LLVM 15.0.6) 0.0.1',
    isFallbackAdapter: true,
    maxBufferSize: 4_294_967_295,
    maxStorageBufferBindingSize: 134_217_728,
    hasFloat16: true,
  },
  listed:
    "no suitable backends found\nAvailable adapters:\n * backend: 'vulkan', name: 'llvmpipe (LLVM 15.0.6, 256 bits)'",
};
const SOFTWARE = {
  name: 'llvmpipe (LLVM 15.0.6, 256 bits)',
  vendor: 'Mesa',
  isSoftware: true,
  memoryBytes: null,
  maxBufferBytes: 4_294_967_295,
  maxBindingBytes: 134_217_728,
  hasFloat16: true,
  source: 'webgpu',
};

const H200 = {
  adapter: {
    ...LLVMPIPE.adapter,
    vendor: 'nvidia',
    device: 'nvidia-h200',
    description: 'NVIDIA: 580.95.05 580.95.5.0',
    isFallbackAdapter: false,
    maxStorageBufferBindingSize: 2_147_483_644,
  },
  listed: [
    'no suitable backends found',
    'Available adapters:',
    " * backend: 'vulkan', name: 'llvmpipe (LLVM 15.0.6, 256 bits)'",
    " * backend: 'vulkan', name: 'NVIDIA H200'",
  ].join('\n'),
};

const answering = (webgpu: string, more: Record<string, string> = {}) =>
  machine({ webgpu: 'file:///webgpu/index.js', programs: { webgpu, ...more } });
const answeringJson = (value: unknown) => answering(`${JSON.stringify(value)}\n`);
const SMI = '00000000:0F:00.0, NVIDIA H200, 143771\n';
const NO_CARD = expect.objectContaining({ message: expect.stringMatching(/no graphics card/) });
const COMMAND = 'npm install --no-save webgpu@0.6.2';

describe('an answer of the package webgpu', () => {
  it('gives name and limits of a software adapter', async () => {
    expect(await webgpuAdapter(answeringJson(LLVMPIPE))).toEqual(SOFTWARE);
  });

  it('gives a card once, with the memory from the system', async () => {
    const both = answering(JSON.stringify(H200), { 'nvidia-smi': SMI });
    const expected = {
      name: 'NVIDIA H200',
      vendor: 'NVIDIA',
      isSoftware: false,
      memoryBytes: 143_771 * 2 ** 20,
      maxBufferBytes: 4_294_967_295,
      maxBindingBytes: 2_147_483_644,
      hasFloat16: true,
      source: 'webgpu, nvidia-smi',
    };
    expect(await webgpuAdapter(both)).toEqual(expected);
    expect((await surveyAdapters(both)).adapters).toEqual([expected]);
  });

  it('gives a software adapter next to a card that only CUDA can use', async () => {
    const both = answering(JSON.stringify(LLVMPIPE), { 'nvidia-smi': SMI });
    const { adapters, findings } = await surveyAdapters(both);
    expect(adapters.map(({ name }) => name)).toEqual([SOFTWARE.name, 'NVIDIA H200']);
    expect(findings.map(({ message }) => message)).toEqual([
      'NVIDIA H200 has no Vulkan driver here, which WebGPU needs',
    ]);
  });

  it('takes precedence when it has no adapter', async () => {
    const nothing = answering('{"adapter":null,"listed":""}\n', { 'nvidia-smi': SMI });
    expect(await webgpuAdapter(nothing)).toBeNull();
    const { findings } = await surveyAdapters(nothing);
    expect(findings.at(-1)).toEqual({ message: 'the package webgpu finds no adapter' });
  });

  it.each([
    ['an unknown vendor', { vendor: 'acme' }, { vendor: 'acme' }],
    ['no vendor', { vendor: '' }, { vendor: null }],
    ['an unlisted name', { device: 'gpu-7' }, { name: 'gpu-7' }],
    ['no name', { device: '' }, { name: LLVMPIPE.adapter.description }],
    ['unmarked software', { isFallbackAdapter: false }, { isSoftware: true }],
    ['a limit beyond exact numbers', { maxBufferSize: 2 ** 64 }, { maxBufferBytes: 2 ** 53 - 1 }],
    ['no limit', { maxBufferSize: null }, { maxBufferBytes: null }],
    ['a negative limit', { maxBufferSize: -1 }, { maxBufferBytes: null }],
    ['a text as limit', { maxBufferSize: 'much' }, { maxBufferBytes: null }],
    ['no value for float16', { hasFloat16: undefined }, { hasFloat16: null }],
    ['a name with control characters', { device: '\u001b[31mx\ny' }, { name: '[31mx y' }],
  ])('is accepted with %s', async (_, odd, expected) => {
    const odder = { ...LLVMPIPE, adapter: { ...LLVMPIPE.adapter, ...odd } };
    expect(await webgpuAdapter(answeringJson(odder))).toMatchObject(expected);
  });

  it('is found among the output of drivers', async () => {
    const noise = `MESA: warning\n${JSON.stringify(LLVMPIPE)}\nSegmentation fault\n`;
    expect(await webgpuAdapter(answering(noise))).toEqual(SOFTWARE);
  });

  it.each([
    '',
    'Segmentation fault\n',
    '{"adapter":',
    '{"adapter":5}',
    '{"adapter":{}}',
    '{"adapter":{"device":"x"}}',
    '{"adapter":{"device":["x"],"isFallbackAdapter":true}}',
    '{"adapter":{"device":"\\u0000","isFallbackAdapter":true}}',
    `{"adapter":${'['.repeat(100_000)}`,
  ])('is reported as missing when it is %.60j', async (answer) => {
    expect(await webgpuAdapter(answering(answer))).toBeNull();
    const { findings } = await surveyAdapters(answering(answer));
    const message = 'the package webgpu is installed but gives no answer';
    expect(findings).toEqual([NO_CARD, { message, suggestion: COMMAND }]);
  });

  it('is missing with a suggestion where the package is not installed', async () => {
    const { adapters, findings } = await surveyAdapters(machine());
    expect(adapters).toEqual([]);
    expect(findings).toEqual([NO_CARD, expect.objectContaining({ suggestion: COMMAND })]);
    expect(THIS_MACHINE.locate('webgpu-that-is-not-installed')).toBeNull();
  });

  it('is requested once, in a separate process', async () => {
    const asked = answeringJson(LLVMPIPE);
    await Promise.all([webgpuAdapter(asked), webgpuAdapter(asked), surveyAdapters(asked)]);
    const runs = asked.runs.filter(([program]) => program === process.execPath);
    expect(runs).toHaveLength(1);
    expect(runs[0]?.at(-1)).toBe('file:///webgpu/index.js');
  });
});

/** A statement that never ends, and uses no processor that other tests could use. */
const HANG = 'Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);';

describe('the process that queries the package', () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-webgpu-'));
  afterAll(() => fs.rmSync(folder, { recursive: true }));

  let files = 0;
  /** A machine where the package is a module with this text. */
  function withModule(text: string, patience = 10_000): SystemCalls {
    const file = path.join(folder, `${files++}.mjs`);
    fs.writeFileSync(file, text);
    return {
      ...machine(),
      ask: (program, words) =>
        program === process.execPath ? ask(program, words, patience) : Promise.resolve(''),
      locate: () => pathToFileURL(file).href,
    };
  }

  /** A module with the used part of the package. */
  const MODULE = `
    const { adapter: { maxBufferSize, maxStorageBufferBindingSize, ...info }, listed } = ${JSON.stringify(LLVMPIPE)};
    const limits = { maxBufferSize, maxStorageBufferBindingSize };
    const adapter = { info, limits, features: new Set(['shader-f16']) };
    export const create = ([option]) => ({
      requestAdapter: async (wish) => {
        if (option) throw new Error(listed);
        return wish.powerPreference === 'high-performance' ? adapter : null;
      },
    });`;

  it('gives the answer of the package', async () => {
    expect(await webgpuAdapter(withModule(MODULE))).toEqual(SOFTWARE);
  });

  it('reports that there is no adapter', async () => {
    const none = withModule('export const create = () => ({ requestAdapter: async () => null });');
    const { findings } = await surveyAdapters(none);
    expect(findings.at(-1)).toEqual({ message: 'the package webgpu finds no adapter' });
  });

  // At once, because most of them wait for a time limit.
  it.concurrent.each([
    ['does not load', 'throw new Error("GLIBC_2.38 not found");'],
    ['lacks the used functions', 'export default 5;'],
    ['crashes', `process.kill(process.pid, 'SIGKILL'); ${HANG}`],
    ['never answers', HANG],
    ['never stops printing', 'for (;;) (await import("node:fs")).writeSync(1, "x".repeat(65536));'],
    [
      'never calls back',
      'export const create = () => ({ requestAdapter: () => new Promise(() => setInterval(() => {}, 9)) });',
    ],
  ])('gives up when it %s', async (_, text) => {
    const broken = withModule(text, 1000);
    expect(await webgpuAdapter(broken)).toBeNull();
    const { findings } = await surveyAdapters(broken);
    expect(findings.at(-1)?.message).toMatch(/gives no answer/);
  });

  it.concurrent('may print other lines, and may hang after its answer', async () => {
    const noisy = `import fs from 'node:fs';
      fs.writeSync(2, 'Warning: reduced\\n'); fs.writeSync(1, 'MESA: info\\n');
      process.on('exit', () => { ${HANG} });${MODULE}`;
    expect(await webgpuAdapter(withModule(noisy, 3000))).toEqual(SOFTWARE);
  });
});

describe('a queried program', () => {
  it.each([
    ['that is missing', 'no-such-program-on-any-machine', []],
    ['with an invalid name', 'no\u0000such', []],
  ])('%s gives an empty answer', async (_, program, words) => {
    expect(await ask(program, words)).toBe('');
  });

  it('is killed after the time limit', async () => {
    const words = ['-e', `require('node:fs').writeSync(1, String(process.pid)); ${HANG}`];
    const pid = Number(await ask(process.execPath, words, 2000));
    expect(pid).toBeGreaterThan(1);
    await vi.waitFor(() => expect(() => process.kill(pid, 0)).toThrow('ESRCH'), 5000);
  });

  it('gives its answer with any exit code', async () => {
    const words = ['-e', 'require("node:fs").writeSync(1, "answer"); process.exit(9)'];
    expect(await ask(process.execPath, words)).toBe('answer');
  });
});

it('the survey of adapters gives no error on any machine', async () => {
  const adapter = await webgpuAdapter();
  const { adapters } = await surveyAdapters();
  if (adapter) expect(adapters).toContainEqual(adapter);
});
