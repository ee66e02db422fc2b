import fs from 'node:fs';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { hybrid } from '../../../src/model/architecture/models/hybrid.js';
import { LimitError, MAX_LAYERS, MAX_TENSORS } from '../../../src/model/architecture/param.js';
import { presetDocument, presetsOf } from '../../../src/model/architecture/presets.js';
import { stateDictOf, tensorsOf } from '../../../src/model/architecture/walk.js';
import { countParameters } from '../../../src/model/budget/parameters.js';
import { hybridCases, inPackage, readJson } from '../../fixtures.js';

const build = (config: Record<string, unknown>) =>
  hybrid.build(hybrid.schema.parse({ model: config }));

const total = (config: Record<string, unknown>) => countParameters(build(config));

/** RoPE buffers, which the safetensors files of the cases leave out. */
const isRopeBuffer = (name: string) => name.includes('.attention.rope.');

describe('cases of the original implementation', () => {
  const cases = hybridCases();

  it('are 13', () => expect(cases).toHaveLength(13));

  it.each(cases)(
    'have the same parameters, names, shapes and aliases here: $name',
    ({ config, ...expected }) => {
      const model = build(config);
      const tensors = tensorsOf(model).filter(({ name }) => !isRopeBuffer(name));
      expect(countParameters(model).parameters).toBe(expected.parameters);
      // The file sorts its names, so the order is not compared.
      const layout = tensors.map(({ name, shape }) => [name, [...shape]] as const);
      expect(Object.fromEntries(layout)).toEqual(expected.layout);
      expect(layout).toHaveLength(Object.keys(expected.layout).length);
      // The aliases of a case are in the order of the state dict.
      const aliases = stateDictOf(model).filter(({ name, tensor }) => name !== tensor.name);
      expect(aliases.map(({ name, tensor }) => [name, tensor.name])).toEqual(
        Object.entries(expected.aliases),
      );
    },
  );
});

describe('the state dict of a real training checkpoint', () => {
  const folder = 'fixtures/old-checkpoint/trained-random-start';
  const { model } = parse(fs.readFileSync(inPackage(folder, 'config.yaml'), 'utf8'));

  it('has the described names and shapes in the described order, buffers included', () => {
    const ours = tensorsOf(build(model)).map(({ name, shape }) => [name, [...shape]]);
    expect(ours).toEqual(readJson(folder, 'state-dict.json'));
  });

  it('keeps the order if the SRTE is shared, which comes right after the embedding', () => {
    const names = tensorsOf(build({ ...model, srte_share_across_layers: true })).map((t) => t.name);
    const expected = readJson<[string, number[]][]>(folder, 'state-dict.json')
      .map(([name]) => name)
      .filter((name) => !name.includes('.srte.'));
    expected.splice(1, 0, 'shared_srte.freqs');
    expect(names).toEqual(expected);
  });
});

describe('published totals', () => {
  const shared = { srte_share_across_layers: true };
  const rows: [string, Record<string, unknown>, number, number][] = [
    ['not shared', { srte_share_across_layers: false }, 22_143_967_232, 8_589_934_592],
    ['shared', shared, 13_822_468_096, 268_435_456],
    ['rank 128', { ...shared, srte_factorized_rank: 128 }, 13_562_945_536, 8_912_896],
    ['rank 64', { ...shared, srte_factorized_rank: 64 }, 13_558_489_088, 4_456_448],
    ['sincos', { ...shared, srte_encoding: 'sincos' }, 13_554_032_640, 0],
    [
      '2048 wide, 24 layers',
      {
        hidden_size: 2048,
        num_layers: 24,
        num_heads: 16,
        gate_rank: 128,
        max_position_embeddings: 32768,
        srte_factorized_rank: 128,
        tie_word_embeddings: true,
      },
      2_581_909_504,
      (32768 + 2048) * 128,
    ],
  ];

  it.each(rows)('are counted: %s', (_, config, parameters, srte) => {
    const counted = total(config);
    expect(counted.parameters).toBe(parameters);
    expect(counted.byComponent.srte).toBe(srte);
  });

  it('include 410,652,672 for a block without its SRTE', () => {
    const one = total({ num_layers: 1, srte_encoding: 'sincos' }).parameters;
    const two = total({ num_layers: 2, srte_encoding: 'sincos' }).parameters;
    expect(two - one).toBe(410_652_672);
  });

  it.each([
    ['recommended', 13_352_181_760],
    ['aggressive', 2_592_264_192],
    ['memory', 13_347_463_168],
    ['performance', 13_365_288_960],
  ] as const)('are counted for the preset %s', (name, parameters) => {
    expect(total(presetDocument('hybrid', name).model).parameters).toBe(parameters);
  });

  it('are the sum of their components', () => {
    for (const { config } of hybridCases()) {
      const { parameters, byComponent } = total(config);
      const sum = Object.values(byComponent).reduce((a, b) => a + b, 0);
      expect(sum).toBe(parameters);
    }
  });
});

describe('the file of a preset', () => {
  it('states the number of its parameters', () => {
    for (const { name, document } of presetsOf('hybrid')) {
      const text = fs.readFileSync(inPackage('configs/hybrid', `${name}.yaml`), 'utf8');
      const stated = text.match(/([\d,]+) parameters/)?.[1];
      if (name === 'tiny') continue;
      expect(stated).toBe(total(document.model).parameters.toLocaleString('en-US'));
    }
  });
});

describe('windows', () => {
  const windows = (config: Record<string, unknown>) =>
    build(config).blocks.map((block) =>
      block.kind === 'hybridBlock' ? block.attention.spans : [],
    );

  it('leave the whole past to the last heads', () => {
    expect(windows({ num_layers: 1 })).toEqual([
      [
        { heads: 30, window: { rule: 'local', tokens: 1024 } },
        { heads: 2, window: undefined },
      ],
    ]);
  });

  it('are absent if there are more global heads than heads', () => {
    expect(windows({ num_layers: 1, num_heads: 4, global_heads: 9 })).toEqual([
      [{ heads: 4, window: undefined }],
    ]);
  });

  it('are truncated towards zero in a pyramid', () => {
    // 512 + (14 − 512) · i / 5 = 512, 412.4, 312.8, 213.2, 113.6, 14
    const pyramid = {
      attention_type: 'pyramidal',
      window_size: 14,
      num_layers: 6,
      global_heads: 0,
    };
    expect(windows(pyramid).map(([span]) => span?.window?.tokens)).toEqual([
      512, 412, 312, 213, 113, 14,
    ]);
  });

  it('have full length in a pyramid of one layer', () => {
    const pyramid = {
      attention_type: 'pyramidal',
      window_size: 14,
      num_layers: 1,
      global_heads: 0,
    };
    expect(windows(pyramid).map(([span]) => span?.window?.tokens)).toEqual([512]);
  });
});

describe('limits', () => {
  it('allow models up to the maximum number of layers or names', () => {
    const blocks = { hidden_size: 2, num_heads: 1, vocab_size: 2, max_position_embeddings: 2 };
    const config = { ...blocks, use_alignment: false, srte_share_across_layers: false };
    const names = (layers: number) => stateDictOf(build({ ...config, num_layers: layers })).length;
    // Embedding, norm (2) and head are outside the layers.
    const perLayer = names(2) - names(1);
    // With the maximum number of layers, all names are below their own limit.
    const most = Math.min(MAX_LAYERS, Math.floor((MAX_TENSORS - 4) / perLayer));
    expect(names(1)).toBe(perLayer + 4);
    expect(() => build({ ...config, num_layers: most })).not.toThrow();
    expect(() => build({ ...config, num_layers: most + 1 })).toThrow(LimitError);
  });

  it.each([MAX_LAYERS + 1, 1e9, Number.MAX_SAFE_INTEGER])(
    'refuse %d layers before building one',
    (layers) => {
      try {
        build({ num_layers: layers });
        expect.unreachable();
      } catch (error) {
        expect(error).toBeInstanceOf(LimitError);
        expect((error as LimitError).path).toBe('model.num_layers');
      }
    },
  );

  it('refuse a tensor, and a sum, beyond 2^53 − 1', () => {
    expect(() => build({ vocab_size: 2 ** 42 })).toThrow(/embed_tokens.weight of shape/);
    // Each table fits; both together do not.
    expect(() => build({ num_layers: 1, vocab_size: 2 ** 40 + 2 ** 39 })).toThrow(/2\^53 − 1/);
  });
});
