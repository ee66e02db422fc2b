import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const answerOf = async (line: string) => (await runHere(['fit', ...line.split(' '), '-q'])).stdout;

describe('minimind fit --emit llama-server', () => {
  it.each([
    ['llama-3.1-70b --gpu 5090+3090 --dtype q4_k_m', /--tensor-split 61,20 /],
    ['llama-3.1-8b --gpu 4xa100 --tensor-split 3,1,1,1 --dtype q4_k_m', /--tensor-split 17,5,6,5 /],
    ['qwen3-235b-a22b --gpu 4090+3090 --ram 192GB --dtype q4_k_m', /--tensor-split 80,15 /],
  ])('divides the layers as the answer of the same line: %s', async (line, split) => {
    const text = await answerOf(`${line} --emit llama-server`);
    expect(text).toMatch(split);
    expect(text).toContain('--split-mode layer');
    const [, flags] = /llama\.cpp +(.*)/.exec(await answerOf(line)) ?? [];
    const [, layers] = /-ts (\S+)/.exec(flags ?? '') ?? [];
    expect(text).toContain(`--tensor-split ${layers} `);
  });

  it('names all cards, and the system memory that it needs', async () => {
    expect(
      await answerOf('llama-3.1-70b --gpu 5090+3090 --dtype q4_k_m --emit llama-server'),
    ).toContain('# fits on 1 × NVIDIA GeForce RTX 5090 + 1 × NVIDIA GeForce RTX 3090: ');
    expect(await answerOf('llama-3.1-70b --gpu 4090 --dtype q4_k_m --emit llama-server')).toMatch(
      /^# fits on 1 × NVIDIA GeForce RTX 4090 and [\d.]+ GB of system memory: /m,
    );
  });

  it.each(['q8_0', 'q4_0'])('writes a cache in %s, which needs flash attention', async (type) => {
    const text = await answerOf(
      `llama-3.1-8b --gpu 4090 --cache-dtype ${type} --emit llama-server`,
    );
    expect(text).toContain(`--cache-type-k ${type}`);
    expect(text).toContain(`--cache-type-v ${type}`);
    expect(text).toContain('--flash-attn on');
    expect(text).not.toContain('no counterpart');
  });

  it.each([1, 4, 8])(
    'writes %d slots with the context of all, and reads them back',
    async (users) => {
      const line = `llama-3.1-8b --gpu 4090 --dtype q4_k_m --users ${users}`;
      const text = await answerOf(`${line} --emit llama-server`);
      expect(text).toContain(`--ctx-size ${2048 * users} `);
      expect(text).toContain(`--parallel ${users} `);
      const command = text
        .replaceAll(/^#.*$|\\\n/gm, '')
        .trim()
        .split(/\s+/);
      const { stderr } = await runHere([
        ...command.map((word) => (word === 'MODEL.gguf' ? 'llama-3.1-8b' : word)),
        ...['--gpu', '4090', '--dtype', 'q4_k_m'],
      ]);
      const [, meant = ''] = / write minimind (.+)$/m.exec(stderr) ?? [];
      expect(meant).toEqual(expect.stringMatching(new RegExp(`--context 2048.* --users ${users}`)));
      const again = meant.slice('fit '.length);
      const totalOf = async (each: string) =>
        JSON.parse(await answerOf(`${each} --json`)).serving.fit.total;
      const first = await totalOf(`${line} --context 2048`);
      expect(await totalOf(again)).toEqual(first);
    },
  );

  it('has as many requests in the simulation as slots', async () => {
    const line = 'llama-3.1-8b --gpu 4090 --dtype q4_k_m --users 8 --json';
    expect(JSON.parse(await answerOf(line)).serving.throughput.full.users).toBe(8);
  });

  it.each([[], ['--users', '2']])(
    'has the slots in the answer of a placement, too: %j',
    async (...more) => {
      const words = ['llama-3.1-70b --gpu 4090 --ram 64GB --dtype q4_k_m', ...more].join(' ');
      expect(await answerOf(words)).toMatch(new RegExp(`llama\\.cpp +-ngl .* -np ${more[1] ?? 1}`));
    },
  );

  it('leaves the cache of 16 bits to llama.cpp, and keeps it in system memory if asked', async () => {
    const line = 'llama-3.1-8b --gpu 4060 --dtype q4_k_m';
    expect(await answerOf(`${line} --emit llama-server`)).not.toMatch(
      /cache-type|flash-attn|kv-offload/,
    );
    expect(await answerOf(`${line} --offload cache --emit llama-server`)).toContain(
      '--no-kv-offload',
    );
  });
});

describe('minimind fit --emit vllm and sglang', () => {
  it.each(['vllm', 'sglang'])('%s: has no weights in system memory', async (name) => {
    for (const ram of ['', ' --ram 192GB']) {
      const text = await answerOf(`llama-3.1-70b --gpu 4090${ram} --emit ${name}`);
      expect(text).toContain('# does not fit on 1 × NVIDIA GeForce RTX 4090 (estimate)');
    }
  });
});

describe('servers of a plan', () => {
  it('are one for each replica', async () => {
    for (const name of ['llama-server', 'vllm', 'sglang']) {
      const text = await answerOf(`llama-3.1-8b --gpu 2x4090 --users 4 --emit ${name}`);
      expect(text).toContain('2 replicas: start one server on the GPUs of each');
    }
    const one = await answerOf('llama-3.1-8b --gpu 2x4090 --users 4 --emit llama-server');
    expect(one).toContain('--parallel 2 ');
    expect(one).not.toContain('tensor-split');
  });

  it("say what vLLM needs on Apple's chips", async () => {
    expect(await answerOf('llama-3.1-8b --gpu m3-max --emit vllm')).toContain(
      'only with its plugin vllm-metal',
    );
  });
});

it('shows invisible characters of a script in quotes', async () => {
  const { shellText } = await import('../../src/estimate/emit/emit-text.js');
  expect(shellText([], ['vllm', 'serve', 'e\u001b[31m'], [])).toBe(
    "#!/bin/bash\nvllm serve $'e\\x1b[31m'\n",
  );
  expect(shellText([], ['vllm', 'serve', "it's"], [])).toBe("#!/bin/sh\nvllm serve 'it'\\''s'\n");
});
