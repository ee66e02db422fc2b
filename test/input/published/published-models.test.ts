import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseDocument } from '../../../src/config/document.js';
import { modelOf } from '../../../src/input/model-input/model-file.js';
import {
  publishedDocument,
  publishedFile,
  publishedModels,
  publishedText,
} from '../../../src/input/published/published-file.js';
import {
  hubRepository,
  publishedModelNamed,
  publishedSizes,
} from '../../../src/input/published/published-models.js';
import { type FamilyName, loadFamily } from '../../../src/model/architecture/families.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { inPackage } from '../../fixtures.js';
import { temporaryFolder } from '../hub/support.js';

const FILE = inPackage('configs/published.yaml');

/** Parameters of the classes in transformers, by fixtures/published-models.py. */
const CLASSES: Readonly<Record<string, number>> = JSON.parse(
  fs.readFileSync(inPackage('fixtures/published-models.json'), 'utf8'),
);

/** Published figures that count more than the described model, with what they add to it. */
const ADDED: Readonly<Record<string, readonly [number, string]>> = {
  'deepseek_v3/deepseek-v3-671b': [13_504_981_648, 'a layer that predicts a further token, scales'],
  'deepseek_v3/deepseek-r1-671b': [13_504_981_648, 'a layer that predicts a further token, scales'],
  'qwen3_next/qwen3-next-80b-a3b': [1_650_471_424, 'a layer that predicts a further token'],
  'glm4_moe/glm-4.5-355b-a32b': [5_539_976_512, 'a layer that predicts a further token'],
  'glm4_moe/glm-4.7-355b-a32b': [5_539_976_512, 'a layer that predicts a further token'],
  'glm4_moe/glm-4.6-355b-a32b': [3_988_084_032, 'that layer without its own vocabulary'],
  'glm4_moe/glm-4.5-air': [3_616_579_328, 'a layer that predicts a further token'],
  'minimax_m2/minimax-m2-230b-a10b': [62 * 256, 'a bias of each expert, which is not trained'],
  'falcon/falcon-180b': [65_024 * 14_848, 'the head, although it is the embedding'],
};

const countOf = async (model: (typeof models)[number]) => {
  const { schema, build } = await loadFamily(model.family as FamilyName);
  return countParameters(build(schema.parse(publishedDocument(model)))).parameters;
};

const models = publishedModels();
const described = models.filter(({ row }) => row.preset === undefined);

describe('the file of published models', () => {
  it('is smaller than 60 kB and names the source of all sizes', () => {
    expect(fs.statSync(FILE).size).toBeLessThan(60_000);
    const { sources } = publishedFile();
    for (const { preset, row, of } of described) {
      expect(sources, preset).toHaveProperty(row.source ?? of.source ?? 'none');
    }
    for (const { preset, row } of models) {
      if (row.parameters !== undefined) expect(sources, preset).toHaveProperty(row.from ?? 'hub');
    }
  });

  it('has a model once: as a preset with a file, or here', () => {
    const names = models.map(({ preset }) => preset);
    expect(new Set(names).size).toBe(names.length);
    for (const { preset, row } of models) {
      expect(fs.existsSync(inPackage(`configs/${preset}.yaml`)), preset).toBe(
        row.preset !== undefined,
      );
    }
  });

  it.each(described)(
    '$preset has the parameters of its class, and the published figure',
    async (model) => {
      const { preset, row } = model;
      const parameters = await countOf(model);
      expect(parameters).toBe(CLASSES[preset]);
      if (typeof row.parameters === 'number') {
        const [added = 0] = ADDED[preset] ?? [];
        expect(parameters + added).toBe(row.parameters);
      } else if (row.parameters !== undefined) {
        const digits = /\d+(?:\.(\d+))?/.exec(row.parameters)?.[1]?.length ?? 0;
        expect(`${(parameters / 1e9).toFixed(digits)}B`).toBe(row.parameters);
      }
    },
  );

  it('is what the script writes from the config.json of models', () => {
    const folder = temporaryFolder();
    const configs = { 'Qwen/Qwen3-14B': 'qwen3-14b', 'zai-org/GLM-4.5-Air': 'glm-4.5-air' };
    const read = (name: string) =>
      fs.readFileSync(inPackage('fixtures/hf-configs', name, 'config.json'), 'utf8');
    const write = (repository: string, text: string) => {
      fs.mkdirSync(path.join(folder, repository), { recursive: true });
      fs.writeFileSync(path.join(folder, repository, 'config.json'), text);
    };
    const check = () => {
      const script = ['--import', 'tsx', inPackage('scripts/published.js'), folder, '--check'];
      const { status, stderr } = spawnSync(process.execPath, script, {
        cwd: inPackage(),
        encoding: 'utf8',
      });
      return { status, stderr };
    };
    for (const [repository, name] of Object.entries(configs)) write(repository, read(name));
    expect(check()).toEqual({ status: 0, stderr: '' });
    write('Qwen/Qwen3-14B', read('qwen3-14b').replace('17408', '17472'));
    expect(check().stderr).toBe(
      'configs/published.yaml is not up to date: run npm run published\n',
    );
  });

  it('gives a config with its figures, which is read as the model', async () => {
    const [model] = described.filter(({ preset }) => preset === 'deepseek_v3/deepseek-v3-671b');
    const text = model ? publishedText(model) : '';
    expect(text).toMatch(
      /^# deepseek-ai\/DeepSeek-V3\.\n# Published: 684,531,386,000 parameters \(/,
    );
    const file = await modelOf(parseDocument(text, 'v3.yaml'), { strict: true });
    expect(file.quantization?.method).toBe('fp8');
    expect(file.warnings).toEqual([]);
  });
});

describe('names of published models', () => {
  it.each(models)(
    '$preset is found by all of its names',
    ({ preset, name, hub, of, row, size }) => {
      const found = (text: string) => publishedModelNamed(text)?.model.preset;
      const [own = ''] = hub;
      expect(found(own)).toBe(preset);
      expect(found(`https://huggingface.co/${own}`)).toBe(preset);
      expect(found(preset)).toBe(preset);
      expect(found(name.toUpperCase())).toBe(preset);
      for (const stem of of.names) {
        for (const each of [size, ...(row.also ?? [])]) {
          expect(found(`${stem}:${each}`), `${stem}:${each}`).toBe(preset);
          expect(found(`${stem} ${each}`)).toBe(preset);
          expect(found(`${stem.replaceAll(/-(?=\D)|(?<=\D)-/g, '')}_${each}`)).toBe(preset);
        }
      }
    },
  );

  it.each([
    ['qwen3:8b', 'qwen3/qwen3-8b'],
    ['qwen3 8b', 'qwen3/qwen3-8b'],
    ['Qwen3-8B-Base', 'qwen3/qwen3-8b'],
    ['library/qwen3:8b', 'qwen3/qwen3-8b'],
    ['qwen3:30b', 'qwen3_moe/qwen3-30b-a3b'],
    ['Qwen/Qwen3-30B-A3B-Thinking-2507', 'qwen3_moe/qwen3-30b-a3b-2507'],
    ['llama3.1 8b', 'llama/llama-3.1-8b'],
    ['Meta-Llama-3.1-8B-Instruct', 'llama/llama-3.1-8b'],
    ['llama-3-1-8b', 'llama/llama-3.1-8b'],
    ['llama3', 'llama/llama-3-8b'],
    ['mistral', 'mistral/mistral-7b-v0.3'],
    ['Mistral-7B-Instruct-v0.1', 'mistral/mistral-7b-v0.1'],
    ['phi-4', 'phi3/phi-4-14b'],
    ['phi4-mini', 'phi3/phi-4-mini-3.8b'],
    ['microsoft/phi-1_5', 'phi/phi-1.5-1.3b'],
    ['deepseek-r1', 'deepseek_v3/deepseek-r1-671b'],
    ['deepseek-r1:70b', 'llama/deepseek-r1-distill-llama-70b'],
    ['gemma-2-2b-it', 'gemma2/gemma-2-2b'],
    ['google/gemma-3-4b-it', 'gemma3_text/gemma-3-4b'],
    ['llama-2-7b-chat-hf', 'llama/llama-2-7b'],
    ['gpt2-xl', 'gpt2/gpt2-xl'],
    ['gpt-oss', 'gpt_oss/gpt-oss-20b'],
    ['bert', 'bert/bert-base-uncased'],
    ['bert large', 'bert/bert-large-uncased'],
    ['minilm', 'bert/all-minilm-l6-v2'],
    ['all-minilm:33m', 'bert/all-minilm-l12-v2'],
    ['bge-m3', 'xlm-roberta/bge-m3'],
    ['bge-base', 'bert/bge-base-en-v1.5'],
    ['multilingual-e5-large', 'xlm-roberta/multilingual-e5-large'],
    ['whisper', 'whisper-seq2seq/whisper-large-v3'],
    ['whisper base', 'whisper-seq2seq/whisper-base'],
    ['whisper large', 'whisper-seq2seq/whisper-large-v3'],
    ['whisper-turbo', 'whisper-seq2seq/whisper-large-v3-turbo'],
    ['openai/clip-vit-large-patch14', 'clip/clip-vit-large-patch14'],
    ['flan-t5-base', 't5/flan-t5-base'],
    ['deepseek-ai/DeepSeek-V3.2-Exp', 'deepseek_v32/deepseek-v3.2-671b'],
    ['deepseek-v4 pro', 'deepseek_v4/deepseek-v4-pro'],
    ['glm-5', 'glm_moe_dsa/glm-5-744b'],
    ['kimi-k2.5', 'deepseek_v3/kimi-k2.5-1t'],
    ['command-r', 'cohere/command-r-35b'],
  ])('%s is %s', (name, preset) => {
    expect(publishedModelNamed(name)?.model.preset).toBe(preset);
  });

  it.each([
    // Close by letters, and other models.
    ...['mamba2-8b', 'mamba2:8b', 'qwen3.8b', 'glm-4.9b', 'kimi-k2-thinking', 'gpt2-thinking'],
    ...['moonshotai/Kimi-K2-Thinking', 'codellama/CodeLlama-7b-Python-hf'],
    ...['phi-5', 'pythia-14b', 'gemma-34b', 'qwen3:7b', 'qwen-8b', 'llama-3.3-8b', 'llama3.18b'],
    ...['mistral-8b', 'gpt-4', 'smollm-360', 'qwen38b', 'someone/qwen3-8b', 'meta-llama/Qwen3-8B'],
    // Other sizes than those of their series that are here.
    ...[
      'bart-base',
      'facebook/bart-base',
      'e5-large',
      't5-3b',
      'bert-base-chinese',
      'whisper-large-v2',
    ],
    ...[
      'distilbert-base-cased',
      'electra-base-generator',
      'command-r-plus',
      'glm-5.3',
      'deepseek-v5',
    ],
    ...['', '-', 'qwen', 'llama', 'deepseek', 'minimind2-small', 'tiny'],
  ])('%j is none', (name) => {
    expect(publishedModelNamed(name)).toBeUndefined();
  });

  it('a name without a size means the usual one, and the others are known', () => {
    expect(publishedModelNamed('qwen2.5')).toMatchObject({
      model: { preset: 'qwen2/qwen2.5-7b' },
      others: ['0.5b', '1.5b', '3b', '14b', '32b', '72b'],
    });
    expect(publishedModelNamed('qwen2.5:3b')?.others).toEqual([]);
    // `codellama` and `code-llama` are one name.
    expect(publishedModelNamed('codellama')?.others).toEqual(['13b', '34b', '70b']);
  });

  it('a series without a usual size has no model, but sizes', () => {
    expect(publishedModelNamed('pythia')).toBeUndefined();
    expect(publishedSizes('Pythia')).toContain('gpt_neox/pythia-1.4b');
    expect(publishedSizes('pythium')).toEqual([]);
  });

  it.each([
    ['kimi-k2', 'moonshotai/Kimi-K2-Instruct'],
    ['yi 34b', '01-ai/Yi-34B'],
    ['vicuna:7b', 'lmsys/vicuna-7b-v1.5'],
    ['qwen3:8b', 'Qwen/Qwen3-8B'],
    ['qwen3-4b-thinking-2507', 'Qwen/Qwen3-4B-Thinking-2507'],
    ['Meta-Llama-3.1-8B', 'meta-llama/Meta-Llama-3.1-8B'],
    ['bart-base', 'facebook/bart-base'],
    ['nomic-embed-text', 'nomic-ai/nomic-embed-text-v1.5'],
    ['mxbai-embed-large', 'mixedbread-ai/mxbai-embed-large-v1'],
    ['mistral-small3.2', 'mistralai/Mistral-Small-3.2-24B-Instruct-2506'],
    ['devstral-small-2505', 'mistralai/Devstral-Small-2505'],
    ['whisper-large-v2', 'openai/whisper-large-v2'],
    ['bge-base', 'BAAI/bge-base-en-v1.5'],
    ['a/b', 'a/b'],
    ['nothing', undefined],
  ])('the repository of %s is %s', (name, repository) => {
    expect(hubRepository(name)).toBe(repository);
  });
});
