import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parse } from 'smol-toml';
import { describe, expect, it } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { runHere } from '../run-here.js';

const folder = mkdtempSync(path.join(os.tmpdir(), 'emit-'));
const json = async (...args: string[]) => JSON.parse((await runHere([...args, '--json'])).stdout);

/** Words of a script's command, as a shell makes them. */
function wordsOf(text: string): string[] {
  const command = text.replace(/^#.*\n/gm, '').replace(/^\S+/, 'printf "%s\\n"');
  return execFileSync('sh', ['-c', command], { encoding: 'utf8' }).trimEnd().split('\n');
}

const LLAMA = ['fit', 'llama-3.1-8b', '--gpu', '8xh100'];

/** Plans, each with the program whose config says all of it. */
const PLANS = [
  [
    'axolotl',
    '.yaml',
    [
      '--for',
      'qlora',
      '--rank',
      '32',
      '--micro-batch',
      '2',
      '--context',
      '4096',
      '--accumulation',
      '4',
      '--zero',
      '2',
      '--recompute',
      'full',
    ],
  ],
  [
    'axolotl',
    '.yaml',
    [
      '--for',
      'training',
      '--micro-batch',
      '1',
      '--context',
      '8192',
      '--accumulation',
      '2',
      '--zero',
      'fsdp2',
      '--recompute',
      'full',
      '--optimizer',
      'adamw-8bit',
    ],
  ],
  [
    'axolotl',
    '.yaml',
    [
      '--for',
      'lora',
      '--targets',
      'q_proj,v_proj',
      '--precision',
      'bf16',
      '--context',
      '2048',
      '--zero',
      '0',
      '--recompute',
      'none',
      '--accumulation',
      '1',
    ],
  ],
  [
    'torchtitan',
    '.toml',
    [
      '--for',
      'training',
      '--micro-batch',
      '2',
      '--context',
      '8192',
      '--accumulation',
      '4',
      '--zero',
      'fsdp2',
      '--recompute',
      'operations',
      '--tensor-parallel',
      '2',
      '--sequence-parallel',
      '--train-tokens',
      '1073741824',
    ],
  ],
  [
    'torchtitan',
    '.toml',
    [
      '--for',
      'training',
      '--context',
      '4096',
      '--zero',
      '0',
      '--recompute',
      'full',
      '--optimizer',
      'adamw-fused',
      '--train-tokens',
      '33554432',
      '--accumulation',
      '1',
    ],
  ],
  [
    'megatron',
    '.sh',
    [
      '--for',
      'training',
      '--micro-batch',
      '2',
      '--context',
      '8192',
      '--accumulation',
      '4',
      '--zero',
      '1',
      '--tensor-parallel',
      '2',
      '--sequence-parallel',
      '--pipeline-parallel',
      '2',
      '--recompute',
      'full',
      '--convention',
      'megatron',
      '--optimizer',
      'adamw-fused',
      '--train-tokens',
      '1073741824',
    ],
  ],
  [
    'torchrun',
    '.sh',
    [
      '--for',
      'training',
      '--micro-batch',
      '2',
      '--context',
      '2048',
      '--accumulation',
      '4',
      '--zero',
      'fsdp',
      '--recompute',
      'full',
      '--train-tokens',
      '1073741824',
    ],
  ],
] as const;

describe('minimind fit --emit for trainers', () => {
  it.each(PLANS)(
    'writes a config of %s (%s) that is read back as the same plan: %j',
    async (program, ending, flags) => {
      const file = path.join(
        folder,
        `${program}-${flags.join('-').replaceAll(/\W+/g, '-')}${ending}`.slice(-80),
      );
      const target = path.join(folder, path.basename(file));
      const { code, stderr } = await runHere([
        ...LLAMA,
        ...flags,
        '--emit',
        program,
        '-o',
        target,
        '-q',
      ]);
      expect(stderr).toBe('');
      expect(code).toBe(0);
      const before = await json(...LLAMA, ...flags);
      // The flags of TrainingArguments are a line of another script, and their model is named.
      const back =
        program === 'torchrun'
          ? await json(
              'fit',
              'llama-3.1-8b',
              '--gpu',
              '8xh100',
              '--training-config',
              asJson(target),
            )
          : await json('fit', target, '--gpu', '8xh100');
      const settingOf = (each: typeof before) => (each.adapters ?? each.training).setting;
      const { cluster: _, ...own } = settingOf(before);
      // Without a number of steps, a config has its own: its length is no part of the plan then.
      const { cluster: __, ...read } = settingOf(back);
      if (own.trainTokens === undefined) delete read.trainTokens;
      if (own.targets === undefined) delete read.targets;
      // The usual rank is written.
      if (own.rank === undefined && read.rank === 16) delete read.rank;
      expect(read).toEqual(own);
      expect(back.parameters).toBe(before.parameters);
    },
  );

  /** The flags of a torchrun script as TrainingArguments in a file. */
  function asJson(script: string): string {
    const words = wordsOf(readFileSync(script, 'utf8'));
    const at = words.indexOf('train.py') + 1;
    const value: Record<string, unknown> = {};
    for (let index = at; index < words.length; index += 2) {
      const text = words[index + 1] ?? '';
      value[(words[index] ?? '').slice(2)] = /^[\d.e-]+$/.test(text)
        ? Number(text)
        : text === 'true'
          ? true
          : text;
    }
    const { max_length: context, ...others } = value;
    const file = `${script}.json`;
    execFileSync('sh', ['-c', `cat > "$0"`, file], {
      input: JSON.stringify({ ...others, max_length: context, output_dir: 'x' }),
    });
    return file;
  }

  it('writes the JSON of DeepSpeed and the YAML of accelerate', async () => {
    const target = path.join(folder, 'ds.json');
    const line = [
      ...LLAMA,
      '--for',
      'training',
      '--micro-batch',
      '2',
      '--accumulation',
      '4',
      '--zero',
      '3',
    ];
    await runHere([...line, '--emit', 'deepspeed', '-o', target]);
    expect(JSON.parse(readFileSync(target, 'utf8'))).toEqual({
      train_batch_size: 64,
      train_micro_batch_size_per_gpu: 2,
      gradient_accumulation_steps: 4,
      zero_optimization: { stage: 3 },
      bf16: { enabled: true },
      optimizer: { type: 'AdamW' },
    });
    const { stdout } = await runHere([...line, '--emit', 'accelerate', '-q']);
    expect(parseYaml(stdout)).toMatchObject({
      distributed_type: 'DEEPSPEED',
      num_processes: 8,
      mixed_precision: 'bf16',
      deepspeed_config: { zero_stage: 3, gradient_accumulation_steps: 4 },
    });
    expect(stdout).toContain(
      '# no counterpart: micro-batch 2: set it in the program that it starts',
    );
  });

  it('names what a program has no counterpart for', async () => {
    const { emitted } = await json(
      ...[
        ...LLAMA,
        '--for',
        'training',
        '--optimizer',
        'lion',
        '--zero',
        '2',
        '--pipeline-parallel',
        '2',
        '--emit',
        'megatron',
      ],
    );
    expect(emitted.withoutCounterpart).toEqual(
      expect.arrayContaining([
        expect.stringContaining('division of the state 2'),
        expect.stringContaining('optimizer lion'),
      ]),
    );
    for (const each of emitted.withoutCounterpart)
      expect(emitted.text).toContain(`# no counterpart: ${each}\n`);
  });

  it('writes the schedule of train-plan', async () => {
    const { stdout } = await runHere([
      ...[
        'train-plan',
        'llama-3.1-8b',
        '--gpu',
        '8xh100',
        '--steps',
        '1000',
        '--lr',
        '2e-5',
        '--warmup',
        '100',
      ],
      ...[
        '--min-lr',
        '2e-6',
        '--batch',
        '2',
        '--accumulation',
        '4',
        '--zero',
        'fsdp2',
        '--emit',
        'torchtitan',
        '-q',
      ],
    ]);
    expect(parse(stdout)).toMatchObject({
      optimizer: { lr: 2e-5 },
      lr_scheduler: {
        warmup_steps: 100,
        decay_ratio: 0.9,
        decay_type: 'cosine',
        min_lr_factor: 0.1,
      },
      training: { local_batch_size: 2, global_batch_size: 64, steps: 1000 },
    });
  });
});

describe('minimind fit --emit for servers', () => {
  const serve = async (...line: string[]) =>
    wordsOf((await runHere(['fit', ...line, '-q'])).stdout);

  it('writes layers, experts, context and cache of llama-server', async () => {
    const words = await serve(
      'qwen3-30b-a3b',
      '--gpu',
      '4060',
      '--dtype',
      'q4_k_m',
      '--ram',
      '64GB',
      '--context',
      '4096',
      '--batch',
      '2',
      '--cache-dtype',
      'f16',
      '--emit',
      'llama-server',
    );
    expect(words).toEqual([
      ...['--model', 'MODEL.gguf', '--gpu-layers', '49'],
      ...['--n-cpu-moe', expect.stringMatching(/^\d+$/)],
      ...['--ctx-size', '8192', '--parallel', '2', '--fit', 'off'],
    ]);
  });

  it('writes parallelism, utilization, sequences and types of vLLM and SGLang', async () => {
    const line = [
      'llama-3.1-70b',
      '--gpu',
      '4xh100',
      '--tensor-parallel',
      '4',
      '--users',
      '50',
      '--gpu-memory-utilization',
      '0.85',
      '--cache-dtype',
      'f8',
      '--dtype',
      'f8',
    ];
    expect(await serve(...line, '--emit', 'vllm')).toEqual([
      ...[
        'serve',
        'meta-llama/Llama-3.1-70B',
        '--tensor-parallel-size',
        '4',
        '--max-model-len',
        '2048',
      ],
      ...[
        '--max-num-seqs',
        '50',
        '--gpu-memory-utilization',
        '0.85',
        '--quantization',
        'fp8',
        '--kv-cache-dtype',
        'fp8_e4m3',
      ],
    ]);
    expect(await serve(...line, '--emit', 'sglang')).toEqual([
      ...[
        '-m',
        'sglang.launch_server',
        '--model-path',
        'meta-llama/Llama-3.1-70B',
        '--tp-size',
        '4',
      ],
      ...[
        '--context-length',
        '2048',
        '--max-running-requests',
        '50',
        '--mem-fraction-static',
        '0.85',
      ],
      ...['--quantization', 'fp8', '--kv-cache-dtype', 'fp8_e4m3'],
    ]);
  });

  it('refuses a program of another purpose, with those that suit', async () => {
    const { stderr, code } = await runHere([...LLAMA, '--emit', 'axolotl']);
    expect(code).toBe(2);
    expect(stderr).toContain('axolotl is for training, and this line asks about serving');
    expect(stderr).toContain('llama-server, vllm, sglang');
    const other = await runHere([...LLAMA, '--for', 'training', '--emit', 'vllm']);
    expect(other.stderr).toContain(
      'torchrun, accelerate, deepspeed, axolotl, torchtitan, megatron',
    );
    const plan = await runHere(['train-plan', 'llama-3.1-8b', '--emit', 'vllm']);
    expect(plan.code).toBe(2);
    const without = await runHere(['fit', 'llama-3.1-8b', '--emit', 'vllm']);
    expect(without.stderr).toContain('--emit requires hardware');
  });

  it('refuses a list', async () => {
    const { stderr, code } = await runHere([
      'fit',
      'llama-3.1-8b',
      '--gpu',
      'h100,a100',
      '--emit',
      'vllm',
    ]);
    expect(code).toBe(2);
    expect(stderr).toContain('--emit vllm writes one plan, and this line asks about a list');
  });

  it('refuses a file in another language', async () => {
    const { stderr } = await runHere([
      ...LLAMA,
      '--emit',
      'vllm',
      '-o',
      path.join(folder, 'x.toml'),
    ]);
    expect(stderr).toContain('--emit vllm writes a .sh file');
  });
});

describe('axes of large models', () => {
  const MIXTURE = ['fit', 'qwen3-30b-a3b', '--for', 'training', '--recompute', 'full'];
  const emitted = async (...args: string[]) => (await runHere(args)).stdout;

  it('are flags of Megatron-LM and keys of torchtitan', async () => {
    const spread = ['--gpu', 'dgx-h100', '--gpus', '16', '--context', '8192'];
    const axes = [...spread, '--expert-parallel', '8', '--context-parallel', '2'];
    const megatron = await emitted(...MIXTURE, ...axes, '--zero', '1', '--emit', 'megatron');
    expect(megatron).toMatch(/--context-parallel-size 2[\s\S]*--expert-model-parallel-size 8/);
    const titan = await emitted(...MIXTURE, ...axes, '--zero', '3', '--emit', 'torchtitan');
    expect(titan).toMatch(/context_parallel_degree = 2\nexpert_parallel_degree = 8/);
    expect(`${megatron}${titan}`).not.toMatch(/no counterpart: (?:context|expert)/);
  });

  it('are flags of vLLM and SGLang, whose tensor parallelism is over all GPUs of a stage', async () => {
    const serving = ['fit', 'deepseek-v3', '--gpu', 'dgx-h200', '--gpus', '16', '--emit'];
    const axes = ['--dp-attention', '16', '--expert-parallel', 'all'];
    const vllm = await emitted(...serving, 'vllm', ...axes);
    expect(vllm).toMatch(/--data-parallel-size 16[\s\S]*--enable-expert-parallel/);
    const sglang = await emitted(...serving, 'sglang', ...axes);
    expect(sglang).toMatch(
      /--tp-size 16[\s\S]*--dp-size 16[\s\S]*--enable-dp-attention[\s\S]*--ep-size 16/,
    );
  });

  it('start four processes on each host of an NVL72, and no FSDP2 beside stages', async () => {
    const rack = ['--gpu', 'gb200-nvl72', '--gpus', '16', '--zero', '1', '--emit', 'megatron'];
    expect(await emitted(...MIXTURE, ...rack)).toContain('--nnodes 4 --nproc-per-node 4');
    const staged = ['--gpu', 'dgx-h100', '--gpus', '16', '--pipeline-parallel', '2'];
    const text = await emitted(...MIXTURE, ...staged, '--zero', 'fsdp2', '--emit', 'megatron');
    expect(text).not.toContain('use-torch-fsdp2');
    expect(text).toContain('no counterpart: division of the state fsdp2');
  });
});
