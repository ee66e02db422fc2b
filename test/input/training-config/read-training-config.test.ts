import { mkdtempSync, readdirSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import {
  readTrainingConfig,
  trainingConfigIn,
} from '../../../src/input/training-config/read-training-config.js';
import { inPackage } from '../../fixtures.js';

const FOLDER = inPackage('fixtures', 'training-configs');
const read = (name: string) => readTrainingConfig(path.join(FOLDER, name));

/** A file with a text, in a folder of its own. */
function written(name: string, text: string): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'training-config-'));
  const file = path.join(folder, name);
  writeFileSync(file, text);
  return file;
}

describe('training configs of other programs', () => {
  it.each([
    [
      'axolotl.yaml',
      'axolotl',
      {
        model: 'Qwen/Qwen3-8B',
        kind: 'qlora',
        rank: 32,
        targets: ['q_proj', 'v_proj'],
        context: 4096,
        microBatch: 2,
        accumulation: 4,
        epochs: 3,
        optimizer: 'paged-adamw-8bit',
        warmupRatio: 0.03,
        division: 'fsdp2',
        offloadParameters: true,
        recompute: 'full',
      },
    ],
    [
      'llama-factory.yaml',
      'llama-factory',
      {
        model: 'Qwen/Qwen3-4B',
        kind: 'lora',
        rank: 16,
        steps: 300,
        recompute: 'full',
      },
    ],
    [
      'llama-factory-1.yaml',
      'llama-factory-1',
      { model: 'Qwen/Qwen3-0.6B', kind: 'lora', globalBatch: 32, division: 'fsdp2' },
    ],
    [
      'torchtitan.toml',
      'torchtitan',
      {
        model: 'meta-llama/Llama-3.1-8B',
        tensorParallel: 2,
        sequenceParallel: true,
        division: 'fsdp2',
        recompute: 'operations',
        globalBatch: 64,
        decayRatio: 0.1,
        beta2: 0.95,
      },
    ],
    [
      'nanotron.yaml',
      'nanotron',
      { dataParallel: 4, division: '1', float32Gradients: true, schedule: 'cosine_with_min_lr' },
    ],
    [
      'litgpt.yaml',
      'litgpt',
      {
        model: 'meta-llama/Llama-3.2-1B',
        kind: 'qlora',
        gpus: 2,
        division: 'fsdp2',
        targets: ['q_proj', 'v_proj', 'gate_proj', 'up_proj', 'down_proj'],
      },
    ],
    ['accelerate.yaml', 'accelerate', { gpus: 4, division: 'fsdp', recompute: 'full' }],
    ['ds-zero2.json', 'deepspeed', { division: '2', offloadOptimizer: true, accumulation: 8 }],
    [
      'training-arguments.json',
      'transformers',
      {
        warmupRatio: 0.1,
        division: 'fsdp',
        microBatch: 4,
        optimizer: 'adamw-fused',
      },
    ],
  ])('reads %s', async (file, name, settings) => {
    const config = await read(file);
    expect(config.name).toBe(name);
    expect(config.run).toMatchObject(settings);
    expect(config.problems.filter(({ severity }) => severity === 'error')).toEqual([]);
  });

  it('resolves the variables, arrays and conditions of a script of Megatron-LM', async () => {
    const { name, run, problems } = await read('megatron.sh');
    expect(name).toBe('megatron');
    // The other branch.
    expect(run.contextParallel).toBeUndefined();
    expect(run).toMatchObject({
      gpus: 16,
      globalBatch: 64,
      tensorParallel: 2,
      sequenceParallel: true,
      warmupRatio: 0.01,
      learningRate: 3e-4,
      sizes: {
        model_type: 'llama',
        num_hidden_layers: 16,
        intermediate_size: 8192,
        num_key_value_heads: 8,
        vocab_size: 128_256,
        tie_word_embeddings: false,
      },
    });
    // $MASTER_ADDR, $DATA_PATH and $(date) are of keys that nothing depends on.
    expect(problems).toEqual([]);
  });

  it('names a value that only a shell knows, with its line', async () => {
    const file = written(
      'run.sh',
      'torchrun pretrain_gpt.py --num-layers 4 \\\n  --micro-batch-size $MBS --seq-length 64\n',
    );
    const { problems, run } = await readTrainingConfig(file);
    expect(run.microBatch).toBeUndefined();
    expect(problems).toMatchObject([
      { line: 2, path: 'micro-batch-size', message: expect.stringContaining('$MBS') },
    ]);
  });

  it('finds the mistakes of a config, each with its line', async () => {
    const { problems } = await read('axolotl-mistakes.yaml');
    const lines = problems.map(({ line, severity, message }) => `${line} ${severity} ${message}`);
    expect(lines).toEqual([
      expect.stringContaining('3 error unknown key "sequnce_len"'),
      expect.stringContaining('7 error the warm-up of 500 steps is longer than the run of 100'),
      expect.stringContaining('9 error bf16 and fp16 are both on'),
      expect.stringMatching(/12 error accumulation is 4 here, and 8 in .*ds-zero2\.json:7/),
    ]);
    expect(problems[0]?.suggestion).toBe('did you mean "sequence_len"?');
  });

  it.each([
    [
      'batch.sh',
      'torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --micro-batch-size 3 --global-batch-size 32',
      'the global batch of 32 is not a multiple of micro-batch 3 × 8 replicas = 24',
    ],
    [
      'ds.json',
      '{"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 3}, "pipeline": {"stages": 4}}',
      'ZeRO-3 divides what pipeline parallelism of 4 keeps on each stage',
    ],
    [
      'ds.json',
      '{"train_batch_size": 10, "train_micro_batch_size_per_gpu": 4, "zero_optimization": {"stage": 3}}',
      'the global batch of 10 is not a multiple of 4',
    ],
    [
      'gpus.sh',
      'torchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 4 --micro-batch-size 1 --tensor-model-parallel-size 3',
      '8 GPUs cannot be divided into replicas of 3',
    ],
  ])('refuses an impossible batch or division in %s', async (name, text, message) => {
    const { problems } = await readTrainingConfig(written(name, text));
    expect(problems.map((each) => `${each.severity} ${each.message}`)).toContainEqual(
      expect.stringContaining(`error ${message}`),
    );
  });

  it('names what it does not count and what it ignores', async () => {
    const { uncounted, ignored } = await read('axolotl.yaml');
    expect(uncounted).toEqual([{ key: 'flash_attention', line: 23 }]);
    expect(ignored.map(({ key }) => key)).toEqual([
      'datasets',
      'output_dir',
      'lora_alpha',
      'wandb_project',
    ]);
  });

  it('warns of a value that has no meaning here', async () => {
    const file = written('a.yaml', 'base_model: x/y\nsequence_len: 10\noptimizer: came_pytorch\n');
    const { problems, run } = await readTrainingConfig(file);
    expect(problems).toMatchObject([
      { line: 3, path: 'optimizer', message: '"came_pytorch" is not counted' },
    ]);
    // Not the default: the file asks for another one.
    expect(run.model).toBe('x/y');
  });

  it('is none for the configs of models, and for files of other kinds', async () => {
    for (const name of readdirSync('configs/hybrid')) {
      expect(await trainingConfigIn(`configs/hybrid/${name}`)).toBeUndefined();
    }
    expect(
      await trainingConfigIn(
        written(
          'config.json',
          '{"model_type": "llama", "architectures": ["LlamaForCausalLM"], "lr_scheduler_type": "x"}',
        ),
      ),
    ).toBeUndefined();
    expect(await trainingConfigIn('package.json')).toBeUndefined();
    await expect(readTrainingConfig('package.json')).rejects.toThrow(
      'is not a training config of a known program',
    );
    await expect(readTrainingConfig('nothing.yaml')).rejects.toThrow('there is no file');
    await expect(readTrainingConfig('train.py')).rejects.toThrow('is Python, which is not run');
  });

  it('tells impossible values from those that are not counted', async () => {
    const values = [
      ['micro_batch_size', '-3', 'error', 'expected an integer of at least 1, found -3'],
      ['sequence_len', '2048.5', 'error', 'expected an integer of at least 1, found 2048.5'],
      ['max_steps', '"four"', 'error', 'expected an integer of at least 1, found "four"'],
      ['learning_rate', '-1e-4', 'error', 'expected a number of at least 0, found -0.0001'],
      ['world_size', '2000000', 'error', 'expected at most 1,000,000 GPUs, found 2,000,000'],
      [
        'world_size',
        '1e15',
        'error',
        'expected at most 1,000,000 GPUs, found 1,000,000,000,000,000',
      ],
      ['gradient_accumulation_steps', 'auto', 'warning', '"auto" is not counted'],
      ['optimizer', 'came_pytorch', 'warning', '"came_pytorch" is not counted'],
    ];
    for (const [key = '', value, severity, message] of values) {
      const file = written('a.yaml', `base_model: x/y\ndatasets: []\n${key}: ${value}\n`);
      const { problems } = await readTrainingConfig(file);
      expect(problems).toMatchObject([{ line: 3, path: key, severity, message }]);
    }
  });

  it('warns of methods whose memory is not counted, with the direction', async () => {
    const values = [
      ['a.yaml', 'base_model: x/y\ndatasets: []\n', 'rl: dpo', /^DPO .* more memory/],
      ['a.yaml', 'base_model: x/y\ndatasets: []\n', 'load_in_8bit: true', /less memory/],
      ['l.yaml', 'model_name_or_path: x/y\ntemplate: z\n', 'stage: dpo', /^DPO .* more memory/],
    ] as const;
    for (const [name, start, line, message] of values) {
      const { problems } = await readTrainingConfig(written(name, `${start}${line}\n`));
      expect(problems).toMatchObject([
        { severity: 'warning', line: 3, message: expect.stringMatching(message) },
      ]);
    }
    const counted = written('l.yaml', 'model_name_or_path: x/y\ntemplate: z\nstage: sft\n');
    expect((await readTrainingConfig(counted)).problems).toEqual([]);
    const cut = written('a.yaml', 'base_model: x/y\ndatasets: []\ncontext_parallel_size: 2\n');
    expect((await readTrainingConfig(cut)).problems).toEqual([]);
  });

  it('says which values of DeepSpeed are those of the trainer', async () => {
    const file = written(
      'ds.json',
      '{"zero_optimization": {"stage": 2},\n"gradient_accumulation_steps": "auto", "bf16": {"enabled": "auto"}}',
    );
    const { problems, ignored } = await readTrainingConfig(file);
    expect(problems).toEqual([]);
    expect(ignored).toEqual([
      { key: 'gradient_accumulation_steps ("auto": from the trainer)', line: 2 },
      { key: 'bf16.enabled ("auto": from the trainer)', line: 2 },
    ]);
  });

  it('blames the file of DeepSpeed for its own mistakes', async () => {
    const file = written('lf.yaml', 'base_model: a/b\nsequence_len: 8\ndeepspeed: dsb.json\n');
    writeFileSync(path.join(path.dirname(file), 'dsb.json'), '{"zero_optimization": {"stage": }');
    for (const reader of [readTrainingConfig, trainingConfigIn]) {
      await expect(reader(file)).rejects.toThrow(/dsb\.json is not valid/);
    }
  });

  describe('hostile files', () => {
    it('bounds scripts that double their variables, and endless nesting', async () => {
      const doubling = `A=--num-layers\n${'A="$A $A"\n'.repeat(40)}run $A\n`;
      await expect(readTrainingConfig(written('a.sh', doubling))).rejects.toThrow(
        'more words than a launch script',
      );
      const nested = `run --num-layers ${'${A:-'.repeat(2000)}1${'}'.repeat(2000)}\n`;
      await expect(readTrainingConfig(written('b.sh', nested))).rejects.toThrow(
        'more words than a launch script',
      );
      const words = `run --num-layers ${'1 '.repeat(30_000)}\n`;
      await expect(readTrainingConfig(written('c.sh', words))).rejects.toThrow(
        'more words than a launch script',
      );
    });

    it('reads scripts with unclosed quotes and brackets', async () => {
      for (const end of ['"', "'", '${', '$((', '$(', '`', 'A=(', '${A[@]', '\\']) {
        const text = `run --num-layers 4 --micro-batch-size 2 --seq-length 8 ${end}`;
        const { run } = await readTrainingConfig(written('a.sh', text));
        expect(run.microBatch, end).toBe(2);
      }
    });

    it('bounds TOML by values, by depth and by the length of keys', async () => {
      const many = `[training]\nlocal_batch_size = 1\nx = [${'1,'.repeat(200_000)}]\n`;
      await expect(readTrainingConfig(written('a.toml', many))).rejects.toThrow(
        'more than 150,000 values',
      );
      const deep = `x = ${'['.repeat(5000)}${']'.repeat(5000)}\n`;
      await expect(readTrainingConfig(written('b.toml', deep))).rejects.toThrow('not valid');
      const dotted = `${Array(20_000).fill('a').join('.')} = 1\n`;
      await expect(readTrainingConfig(written('c.toml', dotted))).rejects.toThrow(
        'more than 150,000 values',
      );
      await expect(
        readTrainingConfig(written('d.toml', `a = "${'x'.repeat(1_000_001)}"`)),
      ).rejects.toThrow('larger than 1 MB');
    });

    it('shows the line of a mistake in TOML', async () => {
      const file = written('a.toml', '[training]\nlocal_batch_size = = 2\n');
      await expect(readTrainingConfig(file)).rejects.toMatchObject({ problems: [{ line: 2 }] });
    });

    it('takes __proto__ for a name like any other', async () => {
      const toml = written(
        'a.toml',
        '[model]\nname = "llama3"\nflavor = "8B"\n[__proto__]\nx = 1\n',
      );
      expect((await readTrainingConfig(toml)).problems).toMatchObject([
        { path: expect.stringContaining('__proto__') },
      ]);
      const yaml = written(
        'a.yaml',
        'base_model: a/b\nsequence_len: 1\n__proto__:\n  micro_batch_size: 9\n',
      );
      expect((await readTrainingConfig(yaml)).run.microBatch).toBe(1);
    });

    it('does not follow the file of DeepSpeed to what is none', async () => {
      const file = written(
        'a.yaml',
        'base_model: a/b\nsequence_len: 1\ndeepspeed: /dev/zero.json\n',
      );
      const { problems } = await readTrainingConfig(file);
      expect(problems).toMatchObject([{ severity: 'warning', line: 3 }]);
    });
  });

  describe('with many unknown keys', () => {
    const HEAD = '[model]\nname = "llama3"\nflavor = "8B"\n[training]\n';
    const problemsOf = async (...keys: readonly string[]) => {
      const { problems } = await readTrainingConfig(written('many.toml', HEAD + keys.join('\n')));
      return problems.map(({ severity, line, message }) => `${line} ${severity} ${message}`);
    };
    const unknown = (count: number) => Array.from({ length: count }, (_, at) => `k${at} = 1`);

    it('lists the first and counts the others', async () => {
      const problems = await problemsOf(...unknown(120));
      expect(problems).toHaveLength(51);
      expect(problems.at(-1)).toBe('55 warning and 70 more unknown keys');
    });

    it('lists a misspelled one behind them', async () => {
      const problems = await problemsOf(...unknown(120), 'seq_lenn = 2048');
      expect(problems.filter((each) => each.includes('error'))).toEqual([
        expect.stringContaining('125 error unknown key "seq_lenn"'),
      ]);
    });

    it('is refused beyond a thousand of them', async () => {
      expect(await problemsOf(...unknown(20_000))).toContain(
        '1005 error 20,000 keys are none of torchtitan; at most 1,000 are looked at',
      );
    });
  });
});
