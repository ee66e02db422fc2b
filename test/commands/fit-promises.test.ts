/** What an answer promises: memory of the program, models that draft, speeds that were asked for, and the question. */
import { describe, expect, it } from 'vitest';
import type { FitListResult } from '../../src/estimate/fit/fit-list.js';
import type { FitResult } from '../../src/estimate/fit/fits.js';
import { runHere } from '../run-here.js';

const answer = (line: string) => runHere(['fit', ...line.split(' ')]);

const figures = async (line: string): Promise<FitResult> =>
  JSON.parse((await answer(`${line} --json`)).stdout);

describe('the share of the memory that a program takes', () => {
  // By the estimate 23.3 GB of 25.3 GB, of which vLLM takes 22.8 GB by default.
  const LONG = 'qwen3-8b --gpu 4090 --context 40960';

  it('is named where its default is too little', async () => {
    const { stdout } = await answer(LONG);
    expect(stdout).toMatch(
      /runtime .*97% of memory \(--gpu-memory-utilization 0\.97, default 0\.9\)/,
    );
    const { code } = await answer(`${LONG} --gpu-memory-utilization 0.97 --check`);
    expect(code).toBe(0);
  });

  it('is named for users who wait for a place at its default', async () => {
    const { stdout } = await answer('qwen3-8b --gpu 4090 --users 20');
    const words = '90% of memory (all 20 users at a time: --gpu-memory-utilization 0.97)';
    expect(stdout).toContain(words);
    const more = await answer('qwen3-8b --gpu 4090 --users 20 --gpu-memory-utilization 0.97');
    expect(more.stdout).toMatch(/^ +20 .*\n +24 /m);
    const emitted = await answer('qwen3-8b --gpu 4090 --users 20 --emit vllm');
    expect(emitted.stdout).toContain('--gpu-memory-utilization 0.97');
  });

  it.each([
    ['vllm', '--gpu-memory-utilization 0.97'],
    // Weights and caches alone: 22.4 GB of 25.3 GB.
    ['sglang', '--mem-fraction-static 0.89'],
  ])('is emitted for %s', async (program, flag) => {
    expect((await answer(`${LONG} --emit ${program}`)).stdout).toContain(flag);
    expect((await answer(`qwen3-8b --gpu 4090 --emit ${program}`)).stdout).not.toContain(
      flag.split(' ', 1)[0],
    );
  });

  it.each([
    'qwen3-next-80b-a3b --gpu dgx-h100',
    'qwen3-8b --gpu 4090 --users 20',
    'qwen3-8b --gpu 4090',
    'qwen3-8b --gpu m4-max-128gb',
    'llama-3.1-8b --gpu h100 --runtime transformers',
  ])('holds the upper bound of what fits: %s', async (line) => {
    const { serving } = await figures(`${line} --for serving`);
    const { total, capacity, memoryShare, verdict } = serving?.fit ?? {};
    expect(verdict).toBe('fits');
    expect(total?.upper.value).toBeLessThanOrEqual((memoryShare ?? 0) * (capacity?.value ?? 0));
    expect(serving?.throughput?.memoryShare).toBeLessThanOrEqual(memoryShare ?? 0);
  });
});

describe('a draft model', () => {
  it('is part of the memory, and of the verdict', async () => {
    const line = 'qwen3-8b --gpu 4090 --draft qwen3-4b --acceptance 0.7';
    const { stdout, stderr, code } = await answer(`${line} --check`);
    expect(code).toBe(1);
    expect(stdout).toMatch(/^Does not fit/);
    expect(stdout).toMatch(/memory .*draft 8\.3/);
    expect(stderr).toContain('serving does not fit');
    const next = /Next: minimind fit (.*?) {4}/.exec(stdout)?.[1] ?? '';
    expect((await answer(`${next} --check`)).code).toBe(0);
  });

  it('changes room, speed and the screen', async () => {
    const alone = 'qwen3-8b --gpu h100 --for serving';
    const drafted = `${alone} --draft qwen3-0.6b --acceptance 0.7`;
    const [before, after] = [await figures(alone), await figures(drafted)];
    const { total, draft } = after.serving?.fit ?? {};
    expect((total?.expected.value ?? 0) - (before.serving?.fit.total.expected.value ?? 0)).toBe(
      Number(draft?.weights.value) + Number(draft?.cachePerSequence.value),
    );
    expect(after.serving?.users.total.expected.value).toBeLessThan(
      before.serving?.users.total.expected.value ?? 0,
    );
    const { stdout } = await answer(`${drafted} --prefix-cache 0.5 --batching static`);
    expect(stdout).toContain('static batches');
    expect(stdout).toMatch(
      /requests +50% of a prompt cached; qwen3-0\.6b drafts 5 tokens, 70% accepted: 2\.94 tokens a step/,
    );
    // A step of 126 tokens/s alone.
    expect(stdout).toMatch(/^ +1 +1[67]\d /m);
  });
});

describe('speeds of users', () => {
  it('are those of one user where nobody has the usual one', async () => {
    const { stdout } = await answer('llama-3.1-70b --gpu m4-max-128gb --dtype int8 --for serving');
    expect(stdout).toMatch(/serves 1 user at 2,048 tokens, 5\.\d+ tokens\/s \(estimate\)$/m);
  });

  it.each(['qwen3-8b --gpu 4090 --context 40960', 'gemma-3-12b --gpu m4-pro-24gb --dtype q4_k_m'])(
    'have one row for a number of users: %s',
    async (line) => {
      const { stdout } = await answer(`${line} --for serving`);
      const counts = [...stdout.matchAll(/^ *([\d,]+) +[\d.,]+ +[\d.,]+ +\S+–\S+ /gm)].map(
        ([, count]) => count,
      );
      expect(counts.length).toBeGreaterThan(0);
      expect(new Set(counts).size).toBe(counts.length);
    },
  );

  it('say that prompts wait for the servers that read them', async () => {
    const line = 'llama-3.1-8b --gpu dgx-h100 --for serving --prefill-gpus';
    const [few, enough] = [
      await answer(`${line} 2`),
      await answer(`${line} 2 --prompt-tokens 128 --output-tokens 1024`),
    ];
    expect(few.stdout).toMatch(/prefill .*reading prompts is the limit: raise --prefill-gpus/);
    expect(few.stdout).toContain('total: with prompts and waits, of 1 user without');
    expect(enough.stdout).not.toContain('is the limit');
  });

  it.each([
    ['--users 20', /20 users: 1\d\.\d tokens\/s each \(estimate\), less than --min-speed 30/],
    ['--users 20 --prompt-tokens 1024', /less than --min-speed 30/],
  ])('are a requirement where one was named: %s', async (words, says) => {
    const line = `qwen3-8b --gpu 4090 --min-speed 30 --check ${words}`;
    const { stdout, stderr, code } = await answer(line);
    expect(code).toBe(1);
    expect(stderr).toMatch(says);
    expect(stdout).toMatch(/^Fits .*; less than --min-speed 30$/m);
  });

  it('that no user has are a doubt, in a list too', async () => {
    const { stderr, code } = await answer('qwen3-8b --gpu 4090 --min-speed 300 --check');
    expect(code).toBe(1);
    expect(stderr).toMatch(/1 user: [\d.]+ tokens\/s \(estimate\), less than --min-speed 300/);
    const list = await answer('qwen3-8b --gpu 4090,h200 --min-speed 100 --check --json');
    expect(list.code).toBe(1);
    const { rows }: FitListResult = JSON.parse(list.stdout);
    expect(rows.map(({ doubts }) => doubts.map(({ about }) => about))).toEqual([['speed'], []]);
  });

  it.each(['--min-speed 12 --users 4', '--min-speed 5', '--users 20'])(
    'that users have are none: %s',
    async (words) => {
      expect((await answer(`qwen3-8b --gpu 4090 --check ${words}`)).code).toBe(0);
    },
  );
});

describe('the question', () => {
  it('is not answered with another one where axes are wrong', async () => {
    const line = 'llama-3.1-70b --gpu dgx-h100 --context-parallel 2';
    const { code, stderr } = await answer(line);
    expect(code).toBe(2);
    expect(stderr).toMatch(/larger --tensor-parallel, or write --for training$/m);
    expect((await answer(`${line} --for training --zero 3`)).code).toBe(0);
    // The training accepts them, and is asked for: serving is left out.
    const other = await answer(`${line} --zero 3`);
    expect(other.code).toBe(0);
    expect(other.stderr).toContain('serving is not answered with these axes');
  });

  it.each([
    ['--rank 64', 'LoRA'],
    ['--targets q_proj,v_proj', 'LoRA'],
    ['--base-dtype int4', 'LoRA'],
    ['--micro-batch 2', 'Training'],
  ])('follows from %s, and has one sum of memory', async (words, title) => {
    const { stdout } = await answer(`qwen3-4b --gpu h200 ${words}`);
    expect(stdout).toMatch(new RegExp(`^${title} fits`));
    expect(stdout.match(/^ {2}memory /gm)).toHaveLength(1);
    expect(stdout.match(/^ {2}free /gm)).toHaveLength(1);
  });

  it.each([
    ['--lora', '--for lora', /^LoRA /],
    ['--qlora', '--for qlora', /^QLoRA /],
    ['--finetune', '--for lora', /^LoRA /],
    ['--load-in-4bit', '--dtype int4', /int4 weights/],
    ['-ngl 20', '--gpu-layers 20', /-ngl 20/],
  ])('in the words of other tools is read: %s', async (words, own, says) => {
    const { stdout, stderr, code } = await answer(`qwen3-4b --gpu h200 ${words}`);
    expect(code).toBe(0);
    expect(stderr).toContain(`reading this as: minimind fit qwen3-4b --gpu h200 ${own}`);
    expect(stdout).toMatch(says);
  });

  it('is the first that --explain derives', async () => {
    const { stdout } = await answer('qwen3-0.6b --gpu 4090 --explain');
    expect(stdout.match(/^How the figures are computed: (\w+)/m)?.[1]).toBe('serving');
  });
});

describe('a training', () => {
  it('that fits on more GPUs with another optimizer is proposed', async () => {
    const { stdout } = await answer('qwen3-8b --gpu 4090 --for training');
    expect(stdout).not.toContain('larger GPUs are needed');
    const next = /Next: minimind fit (.*?) {4}/.exec(stdout)?.[1] ?? '';
    expect(next).toContain('--gpus 8');
    const { code, stderr } = await answer(`${next} --check`);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
  });

  it('is limited by what its estimate is, whatever the lower bound is', async () => {
    const speeds = [];
    for (const zero of ['3', 'hsdp']) {
      const line = `llama-3.1-70b --gpu dgx-h100 --gpus 64 --for training --zero ${zero}`;
      const { stdout } = await answer(`${line} --recompute full`);
      speeds.push(/^ {2}speed +([\d,]+) tokens.*limited by (\w+)$/m.exec(stdout)?.slice(1));
    }
    const [[speed, limit] = [], other] = speeds;
    if (other?.[0] === speed) expect(other?.[1]).toBe(limit);
  });

  it('names the ranges of its time', async () => {
    const wanted = /time +5\.97 h \(9 of 10: 4\.8\d h–7\.65 h; limit 2\.61 h\)/;
    const fit = await answer('minimind2 --train-tokens 2B --gpu 4090 --for training');
    expect(fit.stdout).toMatch(wanted);
    const plan = await runHere('train-plan minimind2 --tokens 2B --gpu 4090'.split(' '));
    expect(plan.stdout).toMatch(wanted);
    const own = await answer('minimind2 --train-tokens 2B --gpu 4090 --for training --mfu 0.4');
    expect(own.stdout).toMatch(/time +[\d.]+ h \(bounds [\d.]+ h–[\d.]+ h\)/);
  });
});

describe('the default program', () => {
  it.each([
    ['gtx-1080', 'llama.cpp (default), CUDA graphs'],
    ['p40', 'llama.cpp (default), CUDA graphs'],
    ['ryzen-ai-max-395-128gb', 'llama.cpp (default)\n'],
    ['780m', 'llama.cpp (default)\n'],
    ['m4-pro-24gb', 'llama.cpp (default)\n'],
    ['mi300x', 'vLLM (default), 90% of memory, HIP graphs (eager'],
    ['h100-80gb', 'vLLM (default), 90% of memory, CUDA graphs (eager'],
  ])('runs on %s, with the graphs that it has there', async (gpu, says) => {
    expect((await answer(`qwen3-0.6b --gpu ${gpu} --for serving`)).stdout).toContain(says);
  });
});
