/** A training config is a file of somebody else: it names a model and settings, and nothing more. */
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { trainingWordsOf } from '../../src/cli/training-config/training-words.js';
import Fit from '../../src/commands/fit.js';
import TrainPlan from '../../src/commands/train-plan.js';
import { TRAINING_PROGRAMS } from '../../src/input/training-config/programs/index.js';
import { readTrainingConfig } from '../../src/input/training-config/read-training-config.js';
import { runHere } from '../run-here.js';
import { isWhole } from '../sampled.js';

const newFolder = () => mkdtempSync(path.join(os.tmpdir(), 'training-config-'));

/** A config of axolotl with a model, in a folder of its own. */
function axolotl(model: string, more = ''): { file: string; folder: string } {
  const folder = path.join(newFolder(), 'configs');
  mkdirSync(folder);
  const file = path.join(folder, 'a.yaml');
  writeFileSync(
    file,
    `base_model: ${JSON.stringify(model)}\nmicro_batch_size: 1\nsequence_len: 64\n${more}`,
  );
  return { file, folder };
}

const answered = async (file: string) => {
  const { stdout, stderr, code } = await runHere(['fit', file, '--gpu', '4090']);
  return { text: stdout + stderr, code };
};

describe('a hostile training config', () => {
  it('gives no flag instead of a model', async () => {
    const target = path.join(newFolder(), 'x.html');
    for (const model of [`--output=${target}`, `-o${target}`, '--', '-', '--help']) {
      const { file } = axolotl(model);
      const { text, code } = await answered(file);
      expect(code, model).toBe(2);
      expect(text).toContain(`a.yaml:1:13: base_model: expected a model, found "${model}"`);
      expect(existsSync(target)).toBe(false);
      const checked = await runHere(['validate', file]);
      expect(checked.code).toBe(1);
      expect(checked.stdout + checked.stderr).toContain('expected a model');
    }
  });

  it('names a folder that is read as any folder of a model: one config of at most 1 MB, no pipe', async () => {
    const folder = newFolder();
    const config = path.join(folder, 'config.json');
    const { file } = axolotl(folder);
    writeFileSync(config, ' '.repeat(2_000_000));
    expect((await answered(file)).text).toContain('config.json is larger than 1 MB');
    rmSync(config);
    execFileSync('mkfifo', [config]);
    expect((await answered(file)).text).toContain('expected a regular file at');
  });

  it('opens no file outside of its folder and the working folder, and shows none', async () => {
    const { file, folder } = axolotl('../secret');
    writeFileSync(path.join(folder, '..', 'secret'), 'password: 1234 {\n');
    for (const { text, code } of [
      await answered(file),
      await answered(axolotl('/etc/passwd').file),
    ]) {
      expect(code).toBe(2);
      expect(text).toContain('base_model: expected a model in the folder of the config');
      expect(text).not.toMatch(/1234|root:/);
    }
  });

  it.skipIf(process.platform === 'win32')('waits for no pipe and no device', async () => {
    const { file, folder } = axolotl('pipe');
    execFileSync('mkfifo', [path.join(folder, 'pipe')]);
    for (const { text, code } of [
      await answered(file),
      await answered(axolotl('/dev/zero').file),
    ]) {
      expect(code).toBe(2);
      expect(text).toContain('base_model: expected a regular file');
    }
  });

  it('reads a model beside the config', async () => {
    const { file, folder } = axolotl('model.json');
    const sizes = { model_type: 'llama', hidden_size: 64, num_hidden_layers: 2, vocab_size: 256 };
    const heads = { num_attention_heads: 4, num_key_value_heads: 4, intermediate_size: 128 };
    writeFileSync(path.join(folder, 'model.json'), JSON.stringify({ ...sizes, ...heads }));
    expect((await answered(file)).code).toBe(0);
  });

  it('fails validate by a value that no training has', async () => {
    const { file } = axolotl('llama-3.2-1b', 'gradient_accumulation_steps: four\n');
    const { stdout, stderr, code } = await runHere(['validate', file]);
    expect(code).toBe(1);
    expect(stdout + stderr).toContain('expected an integer of at least 1, found "four"');
  });

  it('has a value in the place of a section, or no GPU, which is not counted', async () => {
    const folder = newFolder();
    const zero = path.join(folder, 'ds.json');
    writeFileSync(zero, '{"zero_optimization": [], "train_micro_batch_size_per_gpu": 1}');
    const first = await runHere([
      'fit',
      'llama-3.2-1b',
      '--training-config',
      zero,
      '--gpu',
      'h100',
    ]);
    expect(first.stderr).toContain(
      'expected a section with keys of DeepSpeed, found another value',
    );
    expect(first.stderr).not.toMatch(/unknown key|did you mean/);
    const litgpt = path.join(folder, 'litgpt.yaml');
    const lines = [
      'checkpoint_dir: llama-3.2-1b',
      'precision: bf16-true',
      'lora_r: 8',
      'devices: 0',
    ];
    writeFileSync(litgpt, `${lines.join('\n')}\ntrain: {micro_batch_size: 1}\n`);
    const second = await answered(litgpt);
    expect(second.code).toBe(0);
    expect(second.text).toContain('devices: 0 is not counted');
  });

  it('is no answer about adapters for a method beside them', async () => {
    const file = path.join(newFolder(), 'lf.yaml');
    const text = 'model_name_or_path: llama-3.2-1b\nstage: sft\nfinetuning_type: freeze\n';
    writeFileSync(file, text);
    const { text: answer, code } = await answered(file);
    expect(code).toBe(2);
    expect(answer).toContain('lf.yaml:3 finetuning_type: "freeze" trains neither');
    expect((await runHere(['validate', file])).code).toBe(0);
  });

  it('gives only flags with their values, whatever its keys hold', async () => {
    const values = [
      ...['--output=x.html', '-', '--', ' --json', 'a --output=x', '\n--output=x', '=', 'a,--json'],
      ...[['--output=x', '-o', 'x'], { name: '--output=x' }, -1, 1e30, true, '$(touch x)', '`x`'],
    ];
    const starts = {
      axolotl: { base_model: 'a/b', sequence_len: 64 },
      'llama-factory': { model_name_or_path: 'a/b', stage: 'sft', template: 'x' },
      deepspeed: { train_micro_batch_size_per_gpu: 1, zero_optimization: { stage: 2 } },
      transformers: { per_device_train_batch_size: 1, output_dir: 'x' },
      accelerate: { distributed_type: 'FSDP', num_processes: 2 },
    };
    const folder = newFolder();
    let at = 0;
    for (const [name, start] of Object.entries(starts)) {
      const { rows } = TRAINING_PROGRAMS[name as keyof typeof starts];
      for (const [row, { key }] of rows.entries()) {
        // Each key has a third of the values, and each value a third of the keys; the sweeps have all pairs.
        for (const value of values.filter((_, index) => isWhole || (row + index) % 3 === 0)) {
          const nested = key
            .split('.')
            .reduceRight<unknown>((inner, each) => ({ [each]: inner }), value);
          const file = path.join(folder, `${at++}.json`);
          writeFileSync(file, JSON.stringify({ ...start, ...(nested as object) }));
          const config = await readTrainingConfig(file).catch(() => undefined);
          if (config === undefined) continue;
          for (const [command, { flags }] of [
            ['fit', Fit],
            ['train-plan', TrainPlan],
          ] as const) {
            const line = { given: new Set<string>(), hasHardware: true, gpus: 8 };
            for (const word of trainingWordsOf(command, config, {
              ...line,
              textOf: () => undefined,
            })) {
              const declared = (flags as Record<string, { type: string }>)[word.flag];
              expect(declared, `${name} ${key}`).toBeDefined();
              // A value is in the word of its flag; a switch takes none.
              expect(declared?.type === 'boolean').toBe(word.value === undefined);
              expect(['output', 'json', 'format']).not.toContain(word.flag);
            }
          }
        }
      }
    }
  });
});
