import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { readRepository } from '../../../src/input/repository/repository.js';
import { folderOf } from '../../checkpoint/temp-folder.js';
import { runHere } from '../../run-here.js';
import { filesOf, LAYOUTS, type Layout } from './layouts.js';

const repositoryOf = (layout: Pick<Layout, 'files'>) => folderOf(filesOf(layout));

describe('a repository', () => {
  it.each(LAYOUTS)('is counted from its headers: $title', (layout) => {
    const found = readRepository(repositoryOf(layout));
    const { components, bytes, bufferValues, unknownTensors, copies } = found;
    const parameters = Object.fromEntries(components.map((each) => [each.name, each.parameters]));
    expect(parameters).toEqual(layout.parameters);
    expect({ bytes, bufferValues, unknownTensors }).toEqual({
      bytes: layout.bytes,
      bufferValues: layout.buffers ?? 0,
      unknownTensors: layout.unknown ?? 0,
    });
    const total = Object.values(layout.parameters).reduce((sum, each) => sum + each, 0);
    expect(found.parameters).toBe(total);
    if (layout.class) expect(found.class).toBe(layout.class);
    expect(copies.map(({ file }) => file).sort()).toEqual(layout.copies ?? []);
    expect(found.missing).toEqual(layout.missing ?? []);
  });

  it.each(LAYOUTS.filter((_, at) => at % 6 === 5))(
    'is answered by profile, fit, inspect and compare: $title',
    async (layout) => {
      const folder = repositoryOf(layout);
      const total = Object.values(layout.parameters).reduce((sum, each) => sum + each, 0);
      const profile = await runHere(['profile', folder, '--json']);
      expect(JSON.parse(profile.stdout)).toMatchObject({
        schema: 'minimind/weights@1',
        parameters: total,
      });
      const fit = await runHere(['fit', folder, '--gpu', 'l4', '--json']);
      expect(JSON.parse(fit.stdout)).toMatchObject({
        schema: 'minimind/weights-fit@1',
        parameters: total,
        rows: [{ inference: 'fits' }],
      });
      const compare = await runHere(['compare', folder, 'hybrid/tiny', '--json']);
      expect(JSON.parse(compare.stdout).rows.map((each: object) => Object.values(each)[3])).toEqual(
        [total, expect.any(Number)],
      );
      expect((await runHere(['inspect', folder])).code).toBe(0);
    },
  );

  it('is never read as another family', async () => {
    const layout = LAYOUTS.find(({ title }) => title.startsWith('bert:')) as Layout;
    const { stdout, stderr } = await runHere(['profile', repositoryOf(layout)]);
    expect(stdout + stderr).not.toContain('--family');
    expect(stdout).toContain('BertForMaskedLM, counted from headers');
  });

  it.each([
    ['use_bidirectional_attention', { model_type: 'gemma3_text' }, true],
    ['hidden_act', { model_type: 'llama' }, 'swishglu9'],
    ['rope_scaling', { model_type: 'llama' }, { rope_type: 'mystery', factor: 8 }],
    ['vocab_size', { model_type: 'qwen2' }, 'wide'],
  ])('is counted where a known kind has an unknown value of %s', async (key, kind, value) => {
    const heads = { num_attention_heads: 2, num_key_value_heads: 2, head_dim: 4 };
    const sizes = { num_hidden_layers: 2, hidden_size: 8, vocab_size: 9, ...heads };
    const files = {
      'config.json': JSON.stringify({ ...kind, ...sizes, [key]: value }),
      'model.safetensors': { 'w.weight': ['F32', 2, 2] as const },
    };
    const folder = repositoryOf({ files });
    for (const command of ['profile', 'fit', 'diff'] as const) {
      const { code, stderr } = await runHere([
        command,
        folder,
        ...(command === 'diff' ? [folder] : []),
      ]);
      expect([command, code, stderr]).toEqual([command, 0, expect.any(String)]);
    }
    const { stdout } = await runHere(['profile', folder, '--json']);
    const { parameters, reason } = JSON.parse(stdout);
    expect(parameters).toBe(4);
    expect(reason).toMatch(new RegExp(`^config\\.json: ${key}.* but is`));
    const alone = await runHere(['profile', `${folder}/config.json`]);
    expect([alone.code, alone.stderr]).toEqual([
      2,
      expect.stringContaining('is not valid: 1 error'),
    ]);
  });

  it.each([
    ['LlamaForSequenceClassification', 'score.weight'],
    ['Qwen2ForProcessRewardModel', 'score.0.weight'],
    ['LlamaForCausalLMWithValueHead', 'v_head.summary.weight'],
    ['LlamaForTokenClassification', 'score.weight'],
  ])('is counted where the class has another head: %s', async (name, tensor) => {
    const config = JSON.parse(fs.readFileSync('fixtures/hf/llama/config.json', 'utf8'));
    const files = {
      'config.json': JSON.stringify({ ...config, architectures: [name] }),
      'model.safetensors': { 'model.norm.weight': ['F32', 8], [tensor]: ['F32', 1, 8] } as const,
    };
    const folder = repositoryOf({ files });
    const { stdout } = await runHere(['profile', folder, '--json']);
    const { parameters, reason } = JSON.parse(stdout);
    expect([parameters, reason]).toEqual([16, expect.stringContaining(`${name} has another head`)]);
    const alone = await runHere(['profile', `${folder}/config.json`]);
    expect(alone.stderr).toContain('a checkpoint of that class is counted');
  });

  it.each([
    ['MistralModel', ''],
    ['LlamaModel', 'model.'],
  ])('has no head where neither its class nor its file has one: %s', async (name, prefix) => {
    const config = {
      ...{ model_type: 'llama', architectures: [name], hidden_size: 8, vocab_size: 9 },
      ...{ num_hidden_layers: 1, num_attention_heads: 2, intermediate_size: 4 },
    };
    const own = 'layers.0';
    const matrices = ['q_proj', 'k_proj', 'v_proj', 'o_proj'].map((each) => [
      `${prefix}${own}.self_attn.${each}.weight`,
      ['F32', 8, 8] as const,
    ]);
    const tensors = {
      ...Object.fromEntries(matrices),
      [`${prefix}embed_tokens.weight`]: ['F32', 9, 8],
      [`${prefix}norm.weight`]: ['F32', 8],
      [`${prefix}${own}.input_layernorm.weight`]: ['F32', 8],
      [`${prefix}${own}.post_attention_layernorm.weight`]: ['F32', 8],
      [`${prefix}${own}.mlp.gate_proj.weight`]: ['F32', 4, 8],
      [`${prefix}${own}.mlp.up_proj.weight`]: ['F32', 4, 8],
      [`${prefix}${own}.mlp.down_proj.weight`]: ['F32', 8, 4],
    };
    const files = { 'config.json': JSON.stringify(config), 'model.safetensors': tensors };
    const folder = repositoryOf({ files });
    const { stdout } = await runHere(['profile', folder, '--json']);
    const { parameters, checkpoint } = JSON.parse(stdout);
    expect([parameters.total.value, checkpoint.matches]).toEqual([72 + 24 + 256 + 96, true]);
    expect((await runHere(['verify', folder])).code).toBe(0);
  });

  it.each([
    ['_class_name', { _class_name: 'WanTransformer3DModel', num_layers: 30 }],
    ['_class_name', { _class_name: 'Other', num_layers: 2, num_attention_heads: 2 }],
    ['architecture', { architecture: 'vit_small', num_layers: 30, hidden_size: 8, window_size: 4 }],
  ])('is of the library that the key %s names: %j', async (_, config) => {
    const files = {
      'config.json': JSON.stringify(config),
      'model.safetensors': { 'w.weight': ['F32', 2, 2] as const },
    };
    const folder = repositoryOf({ files });
    const { stdout } = await runHere(['profile', folder, '--json']);
    expect(JSON.parse(stdout)).toMatchObject({ schema: 'minimind/weights@1', parameters: 4 });
    const { code, stderr } = await runHere(['profile', `${folder}/config.json`]);
    expect([code, stderr]).toEqual([2, expect.stringContaining('the config of another library')]);
  });

  it.each([
    ['sizes', { architectures: ['BertModel'] }, 'config.json: gives neither hidden_size'],
    [
      'a described class',
      { architectures: ['BertForNextTokens'], hidden_size: 4, num_hidden_layers: 2 },
      'config.json: architectures "BertForNextTokens" is not supported: the described classes are BertModel',
    ],
  ])('says why an encoder without %s is not described', async (_, keys, reason) => {
    const layout = LAYOUTS.find(({ title }) => title.startsWith('bert:')) as Layout;
    const config = JSON.stringify({ model_type: 'bert', ...keys });
    const folder = repositoryOf({ files: { ...layout.files, 'config.json': config } });
    const { stdout } = await runHere(['profile', folder, '--json']);
    const { parameters, reason: found } = JSON.parse(stdout);
    expect(parameters).toBe(Object.values(layout.parameters)[0]);
    expect(found).toContain(reason);
    // The config alone has no weights to count.
    const alone = folderOf({ 'config.json': config });
    expect(await runHere(['profile', `${alone}/config.json`])).toMatchObject({ code: 2 });
  });

  it.each([
    [
      'several files of a described model',
      {
        'config.json': fs.readFileSync('fixtures/hf/llama/config.json', 'utf8'),
        'a.safetensors': { w: ['F32', 2] },
        'b.safetensors': { w: ['F32', 2] },
      },
      /holds 2 possible checkpoints/,
    ],
  ] as const)('are not a repository of another kind: %s', async (_, files, message) => {
    const { code, stderr } = await runHere(['profile', repositoryOf({ files })]);
    expect(code).toBe(2);
    expect(stderr).toMatch(message);
  });

  it.each([
    ['a broken list of components', 'model_index.json', '{"unet": [', /is not valid JSON/],
    ['a list in place of an object', 'model_index.json', '[]', /is not an object/],
    ['an object in place of a list', 'modules.json', '{}', /is not a list/],
    [
      'a list of more than 1 MiB',
      'model_index.json',
      `"${'x'.repeat(2 ** 20)}"`,
      /more than 1 MiB/,
    ],
  ])('refuses %s', (_, name, text, message) => {
    const files = { [name]: text, 'unet/model.safetensors': { w: ['F32', 1] as const } };
    expect(() => readRepository(repositoryOf({ files }))).toThrow(message);
  });

  it('refuses more models than an answer has', () => {
    const names = Array.from({ length: 257 }, (_, at) => `m${at}/model.safetensors`);
    const tensors = { w: ['F32', 1] as const };
    const files = Object.fromEntries(names.map((name) => [name, tensors]));
    expect(() => readRepository(repositoryOf({ files }))).toThrow('holds 257 models');
  });

  it('are not several PyTorch files', async () => {
    const file = fs.readFileSync('fixtures/checkpoints/valid/zip_proto5.pt');
    const folder = folderOf({ 'a.pth': file, 'b.pth': file });
    const { code, stderr } = await runHere(['profile', folder]);
    expect(code).toBe(2);
    expect(stderr).toMatch(/holds 2 possible checkpoints/);
  });

  it('refuses a flag that requires a description', async () => {
    const [layout] = LAYOUTS as [Layout];
    const { code, stderr } = await runHere(['profile', repositoryOf(layout), '--context', '512']);
    expect(code).toBe(2);
    expect(stderr).toContain('--context does not apply to weights without a description');
  });

  it.each([
    ['more parameters than allowed', ['profile', '--max-params', '100'], 1],
    ['enough', ['profile', '--max-params', '1M'], 0],
    ['a card that is too small', ['fit', '--gpu', 'rtx-4090', '--reserve', '25GB', '--check'], 1],
  ])('checks limits: %s', async (_, [command = '', ...flags], code) => {
    const [layout] = LAYOUTS as [Layout];
    expect((await runHere([command, repositoryOf(layout), ...flags])).code).toBe(code);
  });

  it('is the model of an adapter in fit', async () => {
    const { code, stderr } = await runHere(['fit', 'fixtures/lora/llama-bf16', '--gpu', 'l4']);
    expect(code, stderr).toBe(0);
    expect(stderr).toContain(
      'fixtures/lora/llama-bf16 is a LoRA adapter: the answer is about its model,',
    );
  });

  it('is the model of an adapter in profile', async () => {
    const folder = repositoryOf({
      files: {
        'adapter/adapter_config.json': JSON.stringify({
          peft_type: 'LORA',
          r: 2,
          lora_alpha: 2,
          target_modules: ['query'],
          base_model_name_or_path: 'base',
        }),
        'adapter/adapter_model.safetensors': {
          'base_model.model.query.lora_A.weight': ['F32', 2, 4],
          'base_model.model.query.lora_B.weight': ['F32', 4, 2],
        },
        'adapter/base/config.json': '{"model_type": "unheard_of"}',
        'adapter/base/model.safetensors': { 'query.weight': ['F32', 4, 4] },
      },
    });
    const { stdout, stderr } = await runHere(['profile', path.join(folder, 'adapter')]);
    expect(stdout, stderr).toContain('no family describes "unheard_of"');
    expect(stderr).toContain('is a LoRA adapter: the answer is about its model,');
  });

  it('counts the bytes of quantized tensors as the file has them, and names the architecture', () => {
    const file = fs.readFileSync('fixtures/gguf/types.gguf');
    const { bytes, modelType, dtypes } = readRepository(folderOf({ 'model.gguf': file }));
    expect(bytes).toBe(dtypes.reduce((sum, each) => sum + each.bytes, 0));
    expect(bytes).toBeLessThan(file.length);
    expect(modelType).toBe('llama');
  });

  it('finds modules in nested folders', () => {
    const path = '2_Dense/inner';
    const files = {
      'modules.json': JSON.stringify([
        { idx: 0, path, type: 'sentence_transformers.models.Dense' },
      ]),
      [`${path}/model.safetensors`]: { 'linear.weight': ['F32', 4, 2] as const },
    };
    const { components, missing } = readRepository(repositoryOf({ files }));
    expect(components.map(({ name, parameters }) => [name, parameters])).toEqual([[path, 8]]);
    expect(missing).toEqual([]);
  });

  it('compares the components of two pipelines', async () => {
    const pipeline = (rows: number) =>
      repositoryOf({
        files: {
          'model_index.json': JSON.stringify({
            _class_name: 'P',
            unet: ['diffusers', 'U'],
            vae: ['diffusers', 'V'],
          }),
          'unet/diffusion_pytorch_model.safetensors': { w: ['F32', rows, 2] },
          'vae/diffusion_pytorch_model.safetensors': { w: ['F32', 3] },
        },
      });
    const [a, b] = [pipeline(2), pipeline(4)];
    const { stdout } = await runHere(['diff', a, b, '--json']);
    const { tensors, a: first, b: second } = JSON.parse(stdout);
    expect([first.values, second.values]).toEqual([7, 11]);
    expect(tensors.flatMap(({ names }: { names: string[] }) => names)).toEqual(['unet/w']);
    expect((await runHere(['diff', a, a, '--values', '--check'])).code).toBe(0);
  });

  it('reads no component through a link out of the repository, and none outside of it', () => {
    const outside = repositoryOf({ files: { 'model.safetensors': { a: ['F32', 99] } } });
    const folder = repositoryOf({
      files: {
        'model_index.json': JSON.stringify({
          _class_name: 'P',
          unet: ['diffusers', 'U'],
          '../other': ['diffusers', 'U'],
          linked: ['diffusers', 'U'],
        }),
        'unet/diffusion_pytorch_model.safetensors': { a: ['F32', 2] },
      },
    });
    fs.symlinkSync(outside, path.join(folder, 'linked'));
    const { components } = readRepository(folder);
    expect(components.map(({ name }) => name)).toEqual(['unet']);
  });
});
