import { describe, expect, it } from 'vitest';
import { UserError } from '../../src/base/errors.js';
import { originIn } from '../../src/check/checks/forward.js';
import type { CheckName } from '../../src/check/checks.js';
import { CHECK_NAMES } from '../../src/check/checks.js';
import { runCheck } from '../../src/check/run-quick-test.js';
import type { Engine, EngineName, ProgramOptions } from '../../src/engine/engine.js';
import { DeviceLostError } from '../../src/engine/engine.js';
import { onnxVersion } from '../../src/engine/onnx/library.js';
import { openOnnx } from '../../src/engine/onnx/onnx-engine.js';
import type { LanguageModel, Layer } from '../../src/model/architecture/layer.js';
import { modelOfConfig } from '../engine/fixture-models.js';
import { type Faults, referenceEngine } from '../engine/reference-engine.js';
import { checked, contextOf, scaled, TINY, withValue } from './test-contexts.js';

type Alter = NonNullable<Faults['alter']>;

const CONFIGS: Record<string, Record<string, unknown>> = {
  'tied, one SRTE of low rank': {},
  'a table for each layer, no tying': {
    srte_share_across_layers: false,
    srte_factorized_rank: 0,
    tie_word_embeddings: false,
  },
  'sines and cosines, no alignment': { srte_encoding: 'sincos', use_alignment: false },
  'all heads global': { global_heads: 2, batch: 3 },
};

describe.each(Object.entries(CONFIGS))('a correct model (%s) passes', (_, { batch, ...config }) => {
  it.each(CHECK_NAMES)('%s', async (name) => {
    const compute = name === 'float16' ? 'f16' : 'f32';
    const plain = referenceEngine({}, { compute });
    const weightForm = { bits: 8, group: 32 } as const;
    const engine = name === 'weights' ? { ...plain, info: { ...plain.info, weightForm } } : plain;
    const result = await checked(name, { config, engine, batch: Number(batch ?? 1) });
    expect(result.finding).not.toBe('');
    expect(result).toMatchObject({ check: name, verdict: 'passed' });
  });
});

describe('a check that does not apply is skipped:', () => {
  it.each([
    ['causality', 'one token: no earlier logits'],
    ['cache', 'one token: nothing to decode'],
  ] as const)('%s with one token', async (name, finding) => {
    expect(await checked(name, { tokens: 1 })).toMatchObject({ verdict: 'skipped', finding });
  });

  it('causality with a vocabulary of one token', async () => {
    expect(await checked('causality', { config: { vocab_size: 1 } })).toMatchObject({
      verdict: 'skipped',
      finding: 'the vocabulary has only one token',
    });
  });

  it('causality with a norm of two values that hides changes', async () => {
    const config = { hidden_size: 2, num_heads: 1 };
    // The norm does this when the two values keep their order.
    const alter: Alter = (path, { data }) => void (path === 'norm' && data.fill(1));
    expect(await checked('causality', { config, faults: { alter } })).toMatchObject({
      verdict: 'skipped',
      finding: expect.stringMatching(/changes no logit; possible with a hidden size of 2$/),
    });
  });

  it('srte with sines and cosines at one position', async () => {
    const config = { srte_encoding: 'sincos', max_position_embeddings: 1 };
    expect(await checked('srte', { config, tokens: 1 })).toMatchObject({
      verdict: 'skipped',
      finding: 'one token: its row does not depend on the frequencies',
    });
  });

  it('cross-check with a missing engine, with a suggestion', async () => {
    const openOther = async () => {
      throw new UserError('system', 'it is not installed', { suggestion: 'npm install it' });
    };
    expect(await checked('cross-check', { openOther })).toMatchObject({
      verdict: 'skipped',
      finding: 'no second engine: it is not installed',
      remarks: ['npm install it'],
    });
  });

  it('cross-check with an engine without memory, with a suggestion', async () => {
    const openOther = async () => failing('tfjs', 'no room', 'use --engine onnx');
    expect(await checked('cross-check', { openOther })).toMatchObject({
      verdict: 'skipped',
      finding: 'no second engine: TensorFlow.js (reference): no room',
      remarks: ['a smaller --batch or --context may help'],
    });
  });
});

/** An engine that cannot load a model. */
const failing = (name: EngineName, message: string, suggestion: string): Engine => ({
  ...referenceEngine({}, { name }),
  load: async () => {
    throw new UserError('system', message, { suggestion });
  },
});

describe('a check that cannot run', () => {
  it('fails with the reason and a suggestion', async () => {
    const context = contextOf({ engine: failing('onnx', 'no room', 'take less') });
    expect(await runCheck('forward', context)).toMatchObject({
      verdict: 'failed',
      finding: 'it could not run: no room',
      remarks: ['take less'],
    });
  });

  it('throws our bugs, interruptions and the loss of the device', async () => {
    for (const error of [
      new Error('a bug'),
      new UserError('interrupted', 'stopped'),
      new DeviceLostError('system', 'the graphics card went away'),
    ]) {
      const load = () => Promise.reject(error);
      const context = contextOf({ engine: { ...referenceEngine(), load } });
      await expect(runCheck('forward', context)).rejects.toBe(error);
    }
  });
});

describe('logits that are not numbers', () => {
  const weights = withValue('layers.1.attention.k_proj.weight', 0, Number.NaN);

  it.each(['causality', 'batch', 'srte', 'cache', 'cross-check'] as const)(
    'make %s fail',
    async (name) => {
      expect(await checked(name, { weights })).toMatchObject({
        verdict: 'failed',
        finding: expect.stringMatching(/^\d+ of 192 logits are not finite: nothing to compare$/),
      });
    },
  );

  it('pass repeat when they are identical twice', async () => {
    expect(await checked('repeat', { weights })).toMatchObject({ verdict: 'passed' });
  });
});

describe('an edge case passes:', () => {
  it.each([
    ['srte', 'sines and cosines at one token', { srte_encoding: 'sincos' }, 1],
    ['srte', 'a hidden size of 2', { hidden_size: 2, num_heads: 1 }, 16],
  ] as const)('%s: %s', async (name, _, config, tokens) => {
    expect(await checked(name, { config, tokens })).toMatchObject({ verdict: 'passed' });
  });

  it('srte: weights that saturate everything', async () => {
    const weights = scaled(1e4);
    expect(await checked('srte', { weights })).toMatchObject({ verdict: 'passed' });
  });
});

/** Adds a number to the first value of a layer's output. */
const shifted =
  (layer: string, by: number | (() => number)): Alter =>
  (path, { data }) => {
    if (path === layer) data[0] = (data[0] ?? 0) + (typeof by === 'number' ? by : by());
  };

/** Adds a small part of each row of the batch to the one before it. */
const leaking: Alter = (path, { shape, data }) => {
  const [batch = 1] = shape;
  const size = data.length / batch;
  if (path !== 'layers.1' || batch < 2) return;
  for (let i = 0; i < size; i++) data[i] = (data[i] ?? 0) + 1e-3 * (data[size + i] ?? 0);
};

/** Changes the output for a single row. */
const alone: Alter = (path, { shape, data }) => {
  if (path === 'norm' && shape[0] === 1) for (const at of data.keys()) data[at] = 0;
};

let runs = 0;

describe('a planted fault makes its check fail with the cause:', () => {
  const faults: [string, CheckName, Faults, RegExp][] = [
    [
      'a copy of a shared table in each layer',
      'created',
      { copyShared: true },
      /received 10,224 elements: 120 more than the 10,104 described/,
    ],
    ['a copy of a tied head', 'created', { copyTied: true }, /96 more than/],
    [
      'no mask',
      'causality',
      { noMask: true },
      /tokens see later ones: changing token 1 changes logits from token 0 on, by up to \d/,
    ],
    [
      'ignored tokens',
      'causality',
      { alter: (path, { data }) => void (path === 'embed_tokens' && data.fill(1)) },
      /changing token 1, 8, 15 changes no logit: the model does not see it/,
    ],
    [
      'rows that see each other',
      'batch',
      { alter: leaking },
      /sequence 0 changes by up to .* when sequence 1 changes: they see each other/,
    ],
    [
      'another result for a single row',
      'batch',
      { alter: alone },
      /a sequence alone differs from the same sequence in a batch by up to/,
    ],
    [
      'chance',
      'repeat',
      { alter: shifted('layers.0', () => ++runs / 100) },
      /two runs differ by up to/,
    ],
    [
      'a copy of a shared table',
      'srte',
      { copyShared: true },
      /changing shared_srte.lowrank changes layers.0; layers.1 should share it and does not change: a separate copy\?/,
    ],
    ['a restarted scan', 'cache', { forget: 'scan' }, /a state is lost between steps/],
    [
      'a restarted convolution',
      'cache',
      { forget: 'convolution' },
      /a state is lost between steps/,
    ],
    ['lost keys', 'cache', { forget: 'keys' }, /a state is lost between steps/],
    [
      'a restarted SRTE',
      'cache',
      { forget: 'rows' },
      /decoding with a cache differs from the full forward pass by up to \d.*: a state is lost between steps/,
    ],
    [
      'NaN',
      'forward',
      { alter: shifted('layers.1.mamba.conv1d', Number.NaN) },
      /of 192 logits are not finite/,
    ],
  ];
  it.each(faults)('%s: %s', async (_, check, planted, message) => {
    const result = await checked(check, { faults: planted });
    expect(result.finding).toMatch(message);
    expect(result.verdict).toBe('failed');
  });

  it('a copy is reported with the names of its tensors', async () => {
    expect(await checked('created', { faults: { copyShared: true } })).toMatchObject({
      remarks: [
        expect.stringMatching(
          /^the engine copied shared_srte.lowrank and shared_srte.proj.weight instead/,
        ),
      ],
    });
    expect(await checked('created', { faults: { copyTied: true } })).toMatchObject({
      remarks: [expect.stringMatching(/^the engine copied embed_tokens.weight instead of sharing/)],
    });
  });

  it('NaN is reported with the first layer that has it', async () => {
    const { remarks, details } = await checked('forward', {
      faults: { alter: shifted('layers.1.mamba.conv1d', Number.NaN) },
    });
    expect(details?.origin).toMatchObject({
      tensor: 'layers.1.mamba.conv1d',
      kind: 'value',
      shape: [1, 16, 16],
    });
    expect(remarks).toEqual([
      expect.stringMatching(
        /^first after layers.1.mamba.in_proj \(finite\) and at the latest in layers.1.mamba.conv1d: 1 NaN among 256 values \[1, 16, 16\], the first at \[0, \d+, \d+\]; the others range from/,
      ),
    ]);
  });

  it('NaN in a scan or sum is reported with the last finite layer before it', async () => {
    const { model, weights } = contextOf();
    const values = (...data: number[]) => ({ shape: [data.length], data: Float32Array.from(data) });
    const taps = new Map([
      ['layers.0.mamba.x_proj', values(1, 2)],
      ['layers.0.mamba.dt_proj', values(3, 4)],
      ['layers.0.mamba.out_proj', values(5, Number.NaN)],
      ['layers.0.mamba', values(Number.NaN, Number.NaN)],
    ]);
    const once = async () => ({ output: values(Number.NaN), blocks: new Map(), taps });
    const origin = await originIn({ weights, once }, model.blocks[0] ?? model, {});
    expect(origin).toMatchObject({
      tensor: 'layers.0.mamba.out_proj',
      after: 'layers.0.mamba.dt_proj',
    });
  });

  it('NaN of a weight is reported with its name', async () => {
    const { verdict, remarks, details } = await checked('forward', {
      weights: withValue('layers.1.mamba.D', 5, Number.POSITIVE_INFINITY),
    });
    expect(verdict).toBe('failed');
    expect(details?.origin).toMatchObject({ tensor: 'layers.1.mamba.D', kind: 'weight' });
    expect(remarks).toEqual([
      'the weight layers.1.mamba.D has 1 infinite among 16 values [16], the first at [5]; the others range from 1.00 to 1.00',
    ]);
  });

  it('logits of another shape', async () => {
    const alter: Alter = (path, value) => {
      if (path === 'lm_head') Object.assign(value, { shape: [16, 12] });
    };
    expect(await checked('forward', { faults: { alter } })).toMatchObject({
      verdict: 'failed',
      finding: 'the logits are [16, 12], not [1, 16, 12]',
    });
  });

  it('rows of an SRTE of another shape', async () => {
    const alter: Alter = (path, value) => {
      if (path === 'shared_srte') Object.assign(value, { shape: [16, 8] });
    };
    expect(await checked('srte', { faults: { alter } })).toMatchObject({
      verdict: 'failed',
      finding: 'the rows of shared_srte are [16, 8], not [1, 16, 8]',
    });
  });

  it('a description with separate tensors instead of shared ones', async () => {
    const apart = modelOfConfig({ ...TINY, srte_share_across_layers: false });
    const shared = modelOfConfig(TINY);
    const [first] = shared.blocks;
    const model = { ...shared, blocks: [first, apart.blocks[1]] } as LanguageModel;
    expect(await checked('srte', { model })).toMatchObject({
      verdict: 'failed',
      finding: expect.stringContaining('layers.1 should share it and does not change'),
      details: { sharing: { holders: ['layers.0', 'layers.1'], changed: ['layers.0'] } },
    });
  });

  it('shared tables instead of separate ones, only where described so', async () => {
    const config = { srte_share_across_layers: false };
    const model = modelOfConfig({ ...TINY, ...config });
    const [first, second] = model.blocks;
    if (first?.kind !== 'hybridBlock' || second?.kind !== 'hybridBlock') throw new Error('blocks');
    const wrong = { ...model, blocks: [{ ...first, srte: second.srte }, second] };
    // The description shares it, so this is correct …
    expect(await checked('srte', { model: wrong })).toMatchObject({ verdict: 'passed' });
    // … and without sharing, only the last layer has it.
    expect(await checked('srte', { model })).toMatchObject({
      verdict: 'passed',
      finding: expect.stringMatching(/layers.1.srte.lowrank changes layers.1, its only user$/),
    });
  });
});

describe('weights that increase rounding errors', () => {
  const weights = scaled(4);
  const config = { num_layers: 6, max_position_embeddings: 64 };
  const large = { weights, config, tokens: 48 };
  /** The effect of another order of summation. */
  const rounding: Alter = (path, { data }) => {
    if (!path.endsWith('alignment')) return;
    for (const [at, value] of data.entries()) data[at] = value * (1 + (at % 2 ? 1 : -1) * 2 ** -24);
  };
  const ROUNDS = /\d\.\de.*(\(rounding: \d\.\de|rounding alone moves the logits by \d\.\de)/;

  it('do not make another engine fail', async () => {
    const result = await checked('cross-check', { ...large, otherFaults: { alter: rounding } });
    expect(result.finding).toMatch(ROUNDS);
    expect(result.verdict).toBe('passed');
    // Above the usual limit: without regard to rounding it would fail.
    expect(result.measure?.value).toBeGreaterThan(1e-3);
  });

  it('do not make the cache fail', async () => {
    const alter: Alter = (path, value) => {
      if (value.shape[1] === 1) rounding(path, value);
    };
    const result = await checked('cache', { ...large, faults: { alter } });
    expect(result.finding).toMatch(ROUNDS);
    expect(result).toMatchObject({ verdict: 'passed', details: { decoding: [{}, {}] } });
  });

  it('do not make the batch fail', async () => {
    const alter: Alter = (path, value) => {
      if (value.shape[0] === 1) rounding(path, value);
    };
    const result = await checked('batch', { ...large, faults: { alter } });
    expect(result.finding).toMatch(ROUNDS);
    expect(result.verdict).toBe('passed');
  });

  it.each(['scan', 'convolution', 'keys', 'rows'] as const)(
    'do not hide that decoding forgets its %s',
    async (forget) => {
      const result = await checked('cache', { ...large, faults: { forget } });
      expect(result.finding).toMatch(
        /layers\.\d alone, with equal inputs, by \d.* \(rounding: \d.*\): a state is lost/,
      );
      expect(result.verdict).toBe('failed');
    },
  );

  it('do not hide a fault in a late layer of another engine', async () => {
    const otherFaults = { alter: shifted('layers.5.mamba', 20) };
    const result = await checked('cross-check', { ...large, otherFaults });
    expect(result.verdict).toBe('failed');
    expect(result.finding).toMatch(/layers\.5/);
  });
});

describe('the other engine', () => {
  it('passes when it agrees', async () => {
    expect(await checked('cross-check')).toMatchObject({
      verdict: 'passed',
      finding: expect.stringMatching(/^TensorFlow.js \(reference\) agrees; largest difference 0/),
    });
  });

  it('is reported with the first layer that differs', async () => {
    const otherFaults = { alter: shifted('layers.0.mamba', 1) };
    expect(await checked('cross-check', { otherFaults })).toMatchObject({
      verdict: 'failed',
      finding: expect.stringMatching(
        /^TensorFlow.js \(reference\) differs from layers.0 on, by up to \d/,
      ),
    });
  });
});

describe('the cache check tests decoding', () => {
  it('within and beyond the window', async () => {
    const { details } = await checked('cache');
    expect(details?.decoding).toMatchObject([
      { tokens: 6, prefill: 3, rule: 'everything' },
      { tokens: 16, prefill: 8, rule: 'sliding window' },
    ]);
  });

  it('over the requested tokens, with speed and FLOPs with and without a cache', async () => {
    const { details, remarks } = await checked('cache', { outputTokens: 15 });
    expect(details?.decoding?.at(-1)).toMatchObject({ tokens: 16, prefill: 1 });
    expect(remarks?.join('\n')).toMatch(
      /tokens\/s without \(\S+ ×, measured at 16 tokens\); counted for 15 tokens after 1: /,
    );
  });

  it('only within the window when there are no more tokens', async () => {
    const { details, remarks } = await checked('cache', { tokens: 5 });
    expect(details?.decoding).toMatchObject([{ tokens: 5, rule: 'everything' }]);
    expect(remarks?.at(-1)).toBe(
      'all tokens lie within the window of 6; a longer --context tests beyond it',
    );
  });

  it('where a cache works, and reports where it does not', async () => {
    const config = { max_position_embeddings: 4096, num_layers: 1, window_size: 1500 };
    const { verdict, details, remarks } = await checked('cache', { config, tokens: 2049 });
    expect(verdict).toBe('passed');
    expect(details?.decoding).toMatchObject([
      { tokens: 1500, rule: 'everything' },
      { tokens: 2048, rule: 'sliding window' },
    ]);
    expect(remarks?.at(-1)).toMatch(/^at 2,049 tokens .* moves its window block by block/);
  });

  it('at any length where all heads see everything', async () => {
    const config = { max_position_embeddings: 4096, num_layers: 1, global_heads: 2 };
    const { details } = await checked('cache', { config, tokens: 2049 });
    expect(details?.decoding).toMatchObject([{ tokens: 2049, rule: 'everything' }]);
  });
});

describe('float16', () => {
  /** An engine whose logits have this relative error. */
  const withRelativeError = (share: number) =>
    referenceEngine(
      {
        alter: (path, { data }) => {
          if (path !== 'lm_head') return;
          for (const [at, value] of data.entries()) data[at] = value * (1 + share);
        },
      },
      { compute: 'f16', deviceKind: 'webgpu' },
    );

  it('reports its distance from float32, its memory and its time', async () => {
    const closed: string[] = [];
    const openFloat32 = async () => ({
      ...referenceEngine(),
      close: async () => void closed.push('closed'),
    });
    const { verdict, finding, measure, remarks, details } = await checked('float16', {
      engine: withRelativeError(0.01),
      openFloat32,
    });
    expect(verdict).toBe('passed');
    expect(finding).toMatch(
      /^logits differ from float32 by up to \d\.\de-\d \(1\.0e-2 of their norm\), same top token at 100\.0% of the positions$/,
    );
    expect(measure).toMatchObject({ what: 'relative difference', limit: 0.03 });
    expect(measure?.value).toBeCloseTo(0.01, 6);
    expect(remarks).toEqual([]);
    expect(details?.float16?.logits).toMatchObject({ topAgreement: 1 });
    const seconds = expect.any(Number);
    expect(details?.float16).toMatchObject({
      f16: { weightBytes: 4 * 10_104, meanSeconds: seconds },
      f32: { weightBytes: 4 * 10_104, meanSeconds: seconds },
    });
    expect(closed).toEqual(['closed']);
  });

  it('fails when the difference is too large', async () => {
    expect(await checked('float16', { engine: withRelativeError(0.05) })).toMatchObject({
      verdict: 'failed',
      finding: expect.stringContaining('5.0e-2 of their norm'),
    });
  });

  it('is skipped for a model in float32', async () => {
    expect(await checked('float16')).toMatchObject({
      verdict: 'skipped',
      finding: 'no float16: it needs --compute f16',
    });
  });

  it('needs a float32 run to compare with', async () => {
    const openFloat32 = async (): Promise<Engine> => {
      throw new UserError('system', 'it is too large', { suggestion: 'ask for less' });
    };
    expect(await checked('float16', { engine: withRelativeError(0), openFloat32 })).toMatchObject({
      verdict: 'skipped',
      finding: 'no float32 run to compare with: it is too large',
      remarks: ['ask for less'],
    });
  });

  it('does not excuse a device that disappeared', async () => {
    const openFloat32 = async (): Promise<Engine> => {
      throw new DeviceLostError('system', 'the device went away');
    };
    await expect(checked('float16', { engine: withRelativeError(0), openFloat32 })).rejects.toThrow(
      'the device went away',
    );
  });

  it.skipIf(onnxVersion() === undefined)('reports the layer that overflows', async () => {
    const weights = withValue('layers.0.fusion_proj.weight', 3, 1e5);
    const engine = await openOnnx({ threads: 1, compute: 'f16' });
    expect(await checked('forward', { weights })).toMatchObject({ verdict: 'passed' });
    expect(await checked('forward', { weights, engine })).toMatchObject({
      verdict: 'failed',
      details: { origin: { kind: 'value', tensor: 'layers.0.fusion_proj' } },
      remarks: [
        expect.stringMatching(
          /^first after .* \(finite\) and at the latest in layers\.0\.fusion_proj/,
        ),
        expect.stringMatching(/^float16 overflows above 65,504/),
      ],
    });
  });
});

describe('timing', () => {
  it('measures the whole and each part', async () => {
    const { details, finding } = await checked('timing');
    const timing = details?.timing;
    expect(finding).toMatch(/^[\d,]+ tokens\/s$/);
    expect(timing).toMatchObject({ repeats: 2, warmUps: 1 });
    expect(timing?.parts.map(({ layer, component, times }) => [layer, component, times])).toEqual([
      ['embed_tokens', 'embedding', 1],
      ['layers.0.ln_input', 'norm', 2],
      ['shared_srte', 'srte', 1],
      ['layers.0.mamba', 'mamba', 2],
      ['layers.0.attention', 'attention', 2],
      ['layers.0.alignment', 'alignment', 2],
      ['layers.0.gate', 'gate', 2],
      ['layers.0.fusion_proj', 'fusion', 2],
      ['layers.0.small_mlp', 'mlp', 2],
      ['layers.0.ln_output', 'norm', 2],
      ['norm', 'norm', 1],
      ['lm_head', 'head', 1],
    ]);
    expect(timing?.parts.every(({ seconds }) => seconds > 0)).toBe(true);
    expect(timing?.minSeconds).toBeLessThanOrEqual(timing?.medianSeconds ?? 0);
    expect(timing?.deviationSeconds).toBeGreaterThanOrEqual(0);
  });

  it('counts the separate SRTE of each block, and has no deviation for one run', async () => {
    const config = { srte_share_across_layers: false };
    const timing = (await checked('timing', { config, repeats: 1 })).details?.timing;
    expect(timing?.parts).toContainEqual(
      expect.objectContaining({ layer: 'layers.0.srte', times: 2 }),
    );
    expect(timing).toMatchObject({ repeats: 1, deviationSeconds: null });
  });

  it.each([
    { deviceKind: 'cpu', whole: [{}] },
    { deviceKind: 'cuda', whole: [{}, { blocks: false }] },
  ] as const)(
    'loads no more programs than needed on $deviceKind',
    async ({ deviceKind, whole }) => {
      const { engine, loads } = watched(referenceEngine({}, { deviceKind }));
      const context = contextOf({ engine });
      await context.base();
      const { details } = await runCheck('timing', context);
      await context.unload();
      expect(details?.timing?.loadSeconds).toBeGreaterThan(0);
      const ofModel = loads.filter(({ layer }) => layer === context.model);
      expect(ofModel.map(({ options }) => options ?? {})).toEqual(whole);
      expect(ofModel.every(({ heldBefore }) => heldBefore === 0)).toBe(true);
    },
  );
});

/** An engine and its loads. `heldBefore` counts the programs of the same layer that are not yet released. */
function watched(engine: Engine) {
  const loads: { layer: Layer; options: ProgramOptions | undefined; heldBefore: number }[] = [];
  const held: Layer[] = [];
  const load: Engine['load'] = async (layer, weights, options) => {
    loads.push({ layer, options, heldBefore: held.filter((each) => each === layer).length });
    const program = await engine.load(layer, weights, options);
    held.push(layer);
    const release = async () => {
      held.splice(held.indexOf(layer), 1);
      await program.release();
    };
    return {
      elements: program.elements,
      weightBytes: program.weightBytes,
      run: (input) => program.run(input),
      release,
    };
  };
  return { engine: { ...engine, load }, loads };
}
