/** Axes of serving, as a user asks for them: latencies, what they apply to, and what a server's command makes of them. */
import { describe, expect, it } from 'vitest';
import { runHere } from '../run-here.js';

/** The answer of a line that succeeds without a warning. */
async function answered(line: string) {
  const { code, stdout, stderr } = await runHere(['fit', ...line.split(' '), '--json']);
  expect({ code, stderr: /warning|error/.exec(stderr)?.[0] }, `${line}\n${stderr}`).toEqual({
    code: 0,
  });
  return JSON.parse(stdout);
}

const fitOf = (line: string) => runHere(['fit', ...line.split(' ')]);

it.each([
  'qwen3-8b --gpu dgx-h100 --gpus 8 --pipeline-parallel 8',
  'deepseek-v3 --gpu dgx-h200 --gpus 8 --dp-attention 8 --p95 10s',
])('a lone prompt is not divided: %s', async (line) => {
  const load = '--for serving --qps 0.01 --prompt-tokens 2000 --output-tokens 1 --json';
  const { stdout } = await fitOf(`${line} ${load}`);
  const { fit: found } = JSON.parse(stdout).serving;
  expect(found.load.expected.p95Seconds.value).toBeGreaterThanOrEqual(
    found.prefill.seconds.lower.value,
  );
});

it.each([
  ['qwen3-30b-a3b --gpu all --dp-attention 8', '--dp-attention requires hardware'],
  ['qwen3-30b-a3b --gpu all --expert-parallel 8', '--expert-parallel requires hardware'],
  ['qwen3-8b --gpu all --tensor-parallel 2', '--tensor-parallel requires hardware'],
  ['qwen3-8b --gpu all --pipeline-parallel 2', '--pipeline-parallel requires hardware'],
  ['qwen3-8b --gpu all --context-parallel 2', '--context-parallel requires hardware'],
  ...['vllm', 'sglang', 'tensorrt-llm', 'transformers'].map((name): [string, string] => [
    `qwen3-30b-a3b --gpu 4090 --ram 64GB --runtime ${name}`,
    `--runtime ${name} does not apply to weights in system memory`,
  ]),
  ['qwen3-8b --gpu 4090 --ram -5GB', '--ram: expected a size, found "-5GB"'],
  ['qwen3-8b --gpu 4090 --reserve -1GB', '--reserve: expected a size, found "-1GB"'],
  ['qwen3-8b --gpu dgx-h200 --gpus 8 --for serving --expert-parallel all', 'routed experts'],
  [
    'qwen3-30b-a3b --for serving --gpu 4090 --gpus 2 --ram 64GB --pipeline-parallel 2',
    '--pipeline-parallel needs the whole model on GPUs',
  ],
  [
    'qwen3-30b-a3b --for serving --gpu h100 --gpus 8 --runtime llama.cpp --dp-attention 8',
    'llama.cpp does not have it',
  ],
])('refuses axes that change nothing: %s', async (line, message) => {
  const { code, stderr } = await fitOf(line);
  expect(code).toBe(2);
  expect(stderr).toContain(message);
});

describe('copies of the attention in the search', () => {
  it('serve users whom GPUs that share each layer have no room for', async () => {
    const line = 'kimi-k2 --users 5000 --gpu gb200-nvl72';
    const { serving } = await answered(`${line} --check --for serving`);
    expect(serving.fit.verdict).toBe('fits');
    const { tensorParallel, dataParallelAttention, expertParallel } = serving.setting;
    expect(dataParallelAttention).toBeGreaterThan(1);
    expect(expertParallel).toBe(tensorParallel * dataParallelAttention);
    const sharing = `--tensor-parallel ${tensorParallel * dataParallelAttention}`;
    const shared = JSON.parse((await fitOf(`${line} ${sharing} --for serving --json`)).stdout);
    expect(shared.serving.fit.verdict).toBe('does not fit');
    const axes = `--tensor-parallel ${tensorParallel} --dp-attention ${dataParallelAttention} --expert-parallel all`;
    const written = await answered(`${line} --for serving ${axes}`);
    expect(written.serving.fit).toEqual(serving.fit);
    const { stdout } = await fitOf(`${line} --for serving --emit vllm`);
    expect(stdout).toContain(`--data-parallel-size ${dataParallelAttention} `);
    expect(stdout).toContain('--enable-expert-parallel');
  });

  it('are not chosen where sharing alone fits', async () => {
    const { serving } = await answered('kimi-k2 --users 5000 --gpu gb300-nvl72 --for serving');
    expect(serving.setting).toMatchObject({ tensorParallel: 8 });
    expect(serving.setting.dataParallelAttention).toBeUndefined();
  });

  it('have one answer in the table, the detail and the proposal', async () => {
    const question = 'deepseek-v3 --users 3000 --dtype f8';
    const { rows } = await answered(`${question} --for serving`);
    const { cells, unit } = rows.find(({ name }: { name: string }) => name === 'dgx-h100');
    const [{ gpus }] = cells;
    expect(gpus).toBeGreaterThan(unit);
    const { serving } = await answered(`${question} --gpu dgx-h100 --for serving`);
    expect(serving.fit.verdict).toBe('does not fit');
    expect(serving.users.needed.gpus).toBe(gpus);
    const remedy = serving.remedies.find(({ flags }: { flags: { gpus?: number } }) => flags.gpus);
    expect(remedy.flags).toEqual({ gpus });
    const more = await answered(`${question} --gpu dgx-h100 --gpus ${gpus} --for serving --check`);
    expect(more.serving.fit.total.upper.value).toBe(remedy.total.upper.value);
    expect(more.serving.setting.dataParallelAttention).toBeGreaterThan(1);
  });

  it('are kept as the user wrote them, and proposed with more GPUs for each layer', async () => {
    const line = 'deepseek-v3 --users 5000 --context 8192 --gpu gb200-nvl72 --for serving';
    const { serving } = await answered(`${line} --dp-attention 4 --expert-parallel 4`);
    expect(serving.setting).toMatchObject({ tensorParallel: 1, dataParallelAttention: 4 });
    const { flags } = serving.remedies.find(
      (each: { flags: { tensorParallel?: number } }) => each.flags.tensorParallel,
    );
    expect(flags).toEqual({ tensorParallel: 2, expertParallel: 8 });
    const words = '--dp-attention 4 --tensor-parallel 2 --expert-parallel 8 --check';
    expect((await answered(`${line} ${words}`)).serving.fit.verdict).toBe('fits');
  });

  it.each(['--runtime llama.cpp', '--dtype q4_k_m'])(
    'are no axis of llama.cpp: %s',
    async (other) => {
      const { stdout } = await fitOf(
        `deepseek-v3 --users 5000 --gpu gb200-nvl72 --for serving ${other} --json`,
      );
      expect(JSON.parse(stdout).serving.setting.dataParallelAttention).toBeUndefined();
    },
  );
});

describe('proposals for serving', () => {
  it.each([
    'qwen3-30b-a3b --gpu 4090 --runtime vllm',
    'qwen3-30b-a3b --gpu 4090 --runtime sglang --users 4',
    'llama-3.1-70b --gpu 4090 --prefix-cache 0.5',
    'llama-3.1-70b --gpu 4090 --gpus 2 --pipeline-parallel 2',
    'deepseek-v3 --gpu dgx-h100 --users 500 --context 8k',
  ])('are accepted, fit, and have no warning: %s', { timeout: 60_000 }, async (line) => {
    const { serving } = JSON.parse((await fitOf(`${line} --for serving --json`)).stdout);
    expect(serving.fit.verdict).toBe('does not fit');
    expect(serving.remedies.length).toBeGreaterThan(0);
    for (const { flags, total } of serving.remedies) {
      // A GPU in a proposal replaces those of the line.
      const kept = flags.gpu === undefined ? line : line.replace(/ --gpu \S+/, '');
      const given = Object.entries(flags).map(
        ([name, value]) =>
          `--${name.replaceAll(/[A-Z]/g, (each) => `-${each.toLowerCase()}`)} ${value}`,
      );
      const own = given.reduce(
        (text, each) => text.replace(new RegExp(` ${each.split(' ')[0]} \\S+`), ''),
        kept,
      );
      const again = (await answered(`${own} ${given.join(' ')} --for serving --check`)).serving.fit;
      expect(again.total.upper.value, given.join(' ')).toBe(total.upper.value);
    }
  });

  it('leave system memory out for programs that lack it', async () => {
    const line = 'qwen3-30b-a3b --gpu 4090 --for serving';
    expect((await fitOf(`${line} --runtime vllm`)).stdout).not.toContain('--ram');
    expect((await fitOf(line)).stdout).toContain('--ram');
  });
});

it('counts the requests of SGLang for all groups', async () => {
  const line = 'deepseek-v3 --gpu 8xh200 --for serving --dp-attention 8 --users 13';
  expect((await fitOf(`${line} --emit sglang`)).stdout).toContain('--max-running-requests 16');
  // vLLM counts those of a group.
  expect((await fitOf(`${line} --emit vllm`)).stdout).toContain('--max-num-seqs 2');
});

it('takes longer for a lone prompt with copies of the attention or stages than with shared layers', async () => {
  const line = 'deepseek-v3 --gpu dgx-h200 --for serving';
  const aloneOf = async (axes: string) =>
    (await answered(`${line} ${axes}`)).serving.throughput.firstTokenAlone.value;
  const [copies, shared] = [
    await aloneOf('--dp-attention 8'),
    await aloneOf('--tensor-parallel 8'),
  ];
  // One GPU reads the prompt instead of eight.
  expect(copies).toBeGreaterThan(2 * shared);
  expect(await aloneOf('--pipeline-parallel 8')).toBeGreaterThan(2 * shared);
});
