import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

const MIXTURE = ['fit', 'qwen3-30b-a3b', '--gpu', '4060', '--dtype', 'q4_k_m'];

describe('minimind fit with system memory', () => {
  it('proposes it for a card of a desktop, and the proposal fits', async () => {
    const { stdout } = await runHere(MIXTURE);
    expect(stdout).toMatch(
      /^ {2}with RAM {2}--ram 16GB, [\d.]+ tokens\/s \(estimate; 9 of 10 runs: \S+\): GPU layers all 49;/m,
    );
    const [, next = ''] = /^Next: minimind (\S.*?)(?: {2,}|$)/m.exec(stdout) ?? [];
    expect(next).toBe(`${MIXTURE.join(' ')} --ram 16GB`);
    const answer = await runHere([...next.split(' '), '--check']);
    expect(answer.code).toBe(0);
    expect(answer.stdout).toMatch(
      /^Fits on 1 × NVIDIA GeForce RTX 4060 and [\d.]+ GB of system memory/m,
    );
    expect(answer.stdout).toMatch(/^ {2}llama\.cpp {3}-ngl 49 --n-cpu-moe \d+ -c 2048 -np 1$/m);
  });

  it('proposes none for a data centre, nor for more memory than a desktop has', async () => {
    for (const line of [
      ['llama-3.1-405b', '--gpu', 'h100'],
      ['llama-3.1-405b', '--gpu', '4090'],
    ]) {
      expect((await runHere(['fit', ...line])).stdout).not.toContain('with RAM');
    }
  });

  it.each([
    ['--qps', '3'],
    ['--min-speed', '5'],
    ['--runtime', 'vllm'],
  ])('proposes none beside %s, which it excludes', async (...flags) => {
    const { stdout } = await runHere([...MIXTURE, ...flags]);
    expect(stdout).not.toMatch(/with RAM|--ram/);
  });

  it('does not fit into too little, and --check says so', async () => {
    const { stdout, code } = await runHere([...MIXTURE, '--ram', '8GB', '--check']);
    expect(stdout).toMatch(
      /^Does not fit on .* with 8\.0 GB of system memory: [\d.]+ GB too little$/m,
    );
    expect(code).toBe(1);
  });

  it('has the placement in JSON and in CSV', async () => {
    const line = [
      ...MIXTURE,
      '--gpu-layers',
      '30',
      '--cpu-experts',
      '40',
      '--ram-speed',
      '4xddr4-3200',
    ];
    const { places } = JSON.parse((await runHere([...line, '--json'])).stdout).serving;
    expect(places).toMatchObject({
      gpuLayers: 30,
      cpuExperts: 40,
      layers: 49,
      expertBlocks: 48,
      isAsked: true,
      memory: { bytes: null, bandwidth: 102.4e9, label: '4 channels of DDR4-3200' },
    });
    const csv = (await runHere([...line, '--format', 'csv'])).stdout;
    expect(csv).toContain('with system memory: decoding');
  });

  it.each([
    [['--ram', '64GB', '--qps', '3'], /--qps needs the whole model on GPUs/],
    [['--cpu-experts', '3', '--runtime', 'vllm'], /--runtime vllm does not apply/],
    [['--ram-speed', 'fast'], /expected the speed of a memory, found "fast"/],
    [['--gpu-layers', '-3'], /--gpu-layers: expected a positive whole number/],
  ])('refuses %j', async (flags, message) => {
    const { code, stderr } = await runHere([...MIXTURE, ...flags]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });

  it('refuses experts of a dense model, and memory without hardware', async () => {
    const dense = await runHere(['fit', 'qwen3-8b', '--gpu', '4060', '--cpu-experts', '3']);
    expect(dense.stderr).toContain('--cpu-experts requires a model with routed experts');
    const training = ['fit', 'qwen3-8b', '--gpu', '4060', '--ram', '64GB', '--for', 'training'];
    expect((await runHere(training)).stderr).toContain(
      'add --offload optimizer or --offload parameters',
    );
    const alone = await runHere(['fit', 'qwen3-8b', '--ram', '64GB']);
    expect(alone.stderr).toContain('--ram requires hardware');
  });

  it('answers for a machine without a GPU', async () => {
    const line = ['fit', 'qwen3-8b', '--gpu', 'cpu', '--dtype', 'q4_k_m'];
    const { stdout } = await runHere([...line, '--ram', '16GB', '--details']);
    expect(stdout).toMatch(/^Fits on a processor, 5\.3 GB of system memory: [\d.]+ tokens\/s/);
    expect(stdout).not.toMatch(/GPU|does not fit|LoRA/);
    expect((await runHere([...line, '--ram', '6GB', '--check'])).code).toBe(1);
    for (const [flags, message] of [
      [['--gpu-layers', '3'], '--gpu-layers and --cpu-experts require a GPU'],
      [['--gpus', '2'], '--gpus requires a GPU'],
      [['--qps', '2'], '--qps needs the whole model on GPUs'],
    ] as const) {
      expect((await runHere([...line, ...flags])).stderr).toContain(message);
    }
    const training = await runHere(['fit', 'qwen3-8b', '--gpu', 'cpu', '--for', 'lora']);
    expect(training.stderr).toContain('--gpu cpu applies to serving');
  });

  it('reads the memory of a processor by name', async () => {
    const line = ['fit', 'qwen3-8b', '--gpu', 'cpu', '--dtype', 'q4_k_m'];
    const desktop = await runHere([...line, '--cpu', 'i9-12900k']);
    expect(desktop.stdout).toMatch(/^ {2}RAM +2 channels of DDR5-4800, .*76\.8 GB\/s \(assumed/m);
    const server = await runHere([...line, '--cpu', 'epyc 9374f']);
    expect(server.stdout).toMatch(/12 channels of DDR5-4800/);
    expect((await runHere([...line, '--cpu', 'potato'])).stderr).toContain(
      'unknown processor "potato"',
    );
  });

  it('compares a processor with cards', async () => {
    const line = ['fit', 'qwen3-8b', '--gpu', 'cpu,4090', '--dtype', 'q4_k_m', '--json'];
    const { rows } = JSON.parse((await runHere(line)).stdout);
    expect(rows).toMatchObject([
      { gpu: 'cpu', verdict: 'fits', capacityBytes: null },
      { gpu: 'rtx-4090', verdict: 'fits' },
    ]);
    expect(rows[0].memoryBytes).toBeGreaterThan(4.5e9);
    expect(rows[0].tokensPerSecond).toBeLessThan(rows[1].tokensPerSecond);
  });

  it('says that memory is not needed where the GPU holds the model', async () => {
    const { stderr, stdout } = await runHere(['fit', 'qwen3-8b', '--gpu', '4090', '--ram', '64GB']);
    expect(stderr).toContain('system memory is not used: the GPUs hold the whole model');
    expect(stdout).toContain('serves');
  });
});

describe('minimind fit on GPUs of several kinds', () => {
  const LINE = ['fit', 'llama-3.3-70b', '--dtype', 'q4_k_m'];

  it('says what is on each', async () => {
    const { stdout } = await runHere([...LINE, '--gpu', '5090+3090', '--details']);
    expect(stdout).toMatch(
      /^Fits on 1 × NVIDIA GeForce RTX 5090 \+ 1 × NVIDIA GeForce RTX 3090: [\d.]+ tokens\/s/m,
    );
    expect(stdout).toMatch(/^ {2}GPU layers +all 81: \d+ on rtx-5090, \d+ on rtx-3090$/m);
    expect(stdout).toMatch(/^ {2}memory +rtx-5090 [\d.]+ GB of 33\.6 GB · rtx-3090 /m);
    expect(stdout).toMatch(/^ {2}llama\.cpp +-ngl 81 -ts \d+,\d+ -c 2048 -np 1$/m);
    expect(stdout).toMatch(/^rtx-3090, \d+ layers +/m);
    expect(stdout).not.toMatch(/^ {2}(?:RAM|GPU) {2,}/m);
    const csv = (await runHere([...LINE, '--gpu', '5090+3090', '--format', 'csv'])).stdout;
    expect(csv).toMatch(/GPU 2, rtx-3090: memory/);
  });

  it('joins the values of a repeated --gpu, and a list still compares', async () => {
    const json = async (...words: string[]) =>
      JSON.parse((await runHere([...LINE, ...words, '--json'])).stdout);
    const joined = await json('--gpu', '5090', '--gpu=3090');
    expect(joined.serving.places.cards).toEqual(
      (await json('--gpu', '5090+3090')).serving.places.cards,
    );
    expect((await json('--gpu', '3090', '--gpu', '3090')).cluster.gpus).toBe(2);
    const list = await json('--gpu', '5090,3090');
    expect(list.rows.map((row: { gpu: string }) => row.gpu)).toEqual(['rtx-5090', 'rtx-3090']);
  });

  it('proposes system memory for what they do not hold', async () => {
    const line = [...LINE, '--gpu', '4060+3060'];
    const { stdout } = await runHere(line);
    expect(stdout).toMatch(/^Does not fit on 1 × .* 4060 \+ 1 × /m);
    const [, next = ''] = /^Next: minimind (\S.*?)(?: {2,}|$)/m.exec(stdout) ?? [];
    expect(next).toContain('--ram');
    expect((await runHere([...next.split(' '), '--check'])).code).toBe(0);
  });

  it('lets the smallest decide a training, and says so', async () => {
    const { stdout, stderr } = await runHere([
      'fit',
      'qwen3-0.6b',
      '--gpu',
      '4090+3060',
      '--for',
      'lora',
      '--zero',
      '3',
      '--json',
    ]);
    expect(stderr).toContain('all 2 count as NVIDIA GeForce RTX 3060 12 GB');
    expect(JSON.parse(stdout).adapters.fit.capacity.value).toBeLessThan(13e9);
  });

  it.each([
    [['--gpu', '4090+3060', '--qps', '3'], /--qps needs GPUs of one kind, found several/],
    [['--gpu', '4090+3060', '--gpus', '3'], /expected one kind of GPU with --gpus 3/],
    [['--gpu', '4090+3060', '--tensor-split', '1'], /--tensor-split: expected 2 numbers/],
    [['--gpu', '4090+3060', '--runtime', 'vllm'], /does not apply to GPUs of several kinds/],
  ])('refuses %j', async (flags, message) => {
    const { code, stderr } = await runHere([...LINE, ...flags]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });
});

describe('the parts that --offload names, and names of hardware', () => {
  it('keeps the experts with their layer for --offload layers', async () => {
    const { stdout } = await runHere([...MIXTURE, '--offload', 'layers']);
    expect(stdout).toMatch(/^ {2}GPU layers +\d+ of 49, with the output$/m);
    expect(stdout).not.toContain('--n-cpu-moe');
  });

  it('has the range of published runs beside the speed with system memory', async () => {
    const { stdout } = await runHere(MIXTURE);
    expect(stdout).toMatch(
      /with RAM .* tokens\/s \(estimate; 9 of 10 runs: [\d.]+–[\d.]+\): GPU layers/,
    );
  });

  it('says that the time of a prompt on a processor is not known', async () => {
    const { stdout } = await runHere(['fit', 'qwen3-8b', '--gpu', 'cpu', '--dtype', 'q4_k_m']);
    expect(stdout).toMatch(/^ {2}prompt +no estimate: .* --this-machine measures yours$/m);
  });

  it('has a speed of decoding without a published peak', async () => {
    const { stdout } = await runHere([
      'fit',
      'qwen3-8b',
      '--gpu',
      'm3-max-36gb',
      '--dtype',
      'q4_k_m',
    ]);
    expect(stdout).toMatch(
      /^ {2}speed +decoding [\d.]+ tokens\/s \(estimate, by bandwidth alone; 9 of 10: /m,
    );
  });

  it.each(['strix-halo', 'strix-halo-128gb', 'trn3'])('knows %s', async (gpu) => {
    expect((await runHere(['fit', 'qwen3-8b', '--gpu', gpu, '--json'])).code).toBe(0);
  });

  it('names the flags for a processor in the place of a GPU', async () => {
    const { stderr, code } = await runHere(['fit', 'qwen3-8b', '--gpu', 'i9-14900k']);
    expect(code).toBe(2);
    expect(stderr).toContain('write --gpu cpu --cpu i9-14900k for it alone');
    const alone = ['fit', 'qwen3-8b', '--gpu', 'cpu', '--cpu', 'i9-14900k'];
    expect((await runHere(alone)).code).toBe(0);
  });
});
