import fs from 'node:fs';
import path from 'node:path';
import { describe, expect, it } from 'vitest';
import { openAdapter } from '../../../src/checkpoint/adapter/adapter.js';
import { TIME_LIMIT } from '../../../src/checkpoint/adapter/adapter-modules.js';
import { mergedCheckpoint } from '../../../src/checkpoint/adapter/merge-adapter.js';
import { ruleOf } from '../../../src/checkpoint/checkpoint-rules.js';
import { readTensor } from '../../../src/checkpoint/view.js';
import { inPackage } from '../../fixtures.js';
import { sampled } from '../../sampled.js';
import { folderOf, opened } from '../temp-folder.js';

interface TensorSpec {
  readonly dtype: 'F32' | 'F16' | 'I32';
  readonly shape: readonly number[];
  readonly values?: readonly number[];
}

const BYTES = { F32: 4, F16: 2, I32: 4 } as const;

/** Safetensors file. For F16, values are the bits of a word. */
function file(tensors: Readonly<Record<string, TensorSpec>>): Buffer {
  let end = 0;
  const data: Buffer[] = [];
  const header = Object.fromEntries(
    Object.entries(tensors).map(([name, { dtype, shape, values = [] }]) => {
      const count = shape.reduce((product, size) => product * size, 1);
      const bytes = Buffer.alloc(count * BYTES[dtype]);
      for (const [index, value] of values.entries()) {
        if (dtype === 'F32') bytes.writeFloatLE(value, 4 * index);
        else if (dtype === 'F16') bytes.writeUInt16LE(value, 2 * index);
      }
      data.push(bytes);
      const begin = end;
      end += bytes.length;
      return [name, { dtype, shape, data_offsets: [begin, end] }];
    }),
  );
  const text = Buffer.from(JSON.stringify(header));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));
  return Buffer.concat([length, text, ...data]);
}

const f32 = (shape: readonly number[], values?: readonly number[]): TensorSpec => ({
  dtype: 'F32',
  shape,
  ...(values && { values }),
});

const SETTINGS = { peft_type: 'LORA', r: 2, lora_alpha: 4, target_modules: ['q'] };
const A = 'base_model.model.m.q.lora_A.weight';
const B = 'base_model.model.m.q.lora_B.weight';
const FACTORS = { [A]: f32([2, 3]), [B]: f32([4, 2]) };

const adapter = (
  settings: unknown = SETTINGS,
  tensors: Readonly<Record<string, TensorSpec>> = FACTORS,
): Record<string, string | Uint8Array> => ({
  'adapter_config.json': typeof settings === 'string' ? settings : JSON.stringify(settings),
  'adapter_model.safetensors': file(tensors),
});

const base = (tensors: Readonly<Record<string, TensorSpec>> = { 'm.q.weight': f32([4, 3]) }) =>
  folderOf({ 'model.safetensors': file(tensors) });

/** Rule that refuses to merge an adapter and to read all its values, if any. */
async function mergeRule(
  files: Record<string, string | Uint8Array>,
  model = base(),
): Promise<string | undefined> {
  try {
    const adapter = await openAdapter(folderOf(files));
    const merged = mergedCheckpoint(opened(model), adapter, (name) => [name]);
    for (const tensor of merged.tensors.values()) readTensor(tensor);
    merged.close();
  } catch (error) {
    return ruleOf(error) ?? String(error);
  }
  return undefined;
}

const withSettings = (changes: Record<string, unknown>) => adapter({ ...SETTINGS, ...changes });

describe('an adapter', () => {
  it('is merged if it follows all rules', async () => {
    expect(await mergeRule(adapter())).toBeUndefined();
  });

  it.each<[rule: string, what: string, files: Record<string, string | Uint8Array>]>([
    ['adapter-object', 'a list for settings', adapter('[]')],
    ['adapter-json', 'invalid JSON', adapter('{"r": 08}')],
    ['adapter-depth', 'deep settings', adapter(`{"a": ${'['.repeat(40)}${']'.repeat(40)}}`)],
    [
      'adapter-keys',
      'too many keys',
      adapter(`{"a": {${Array.from({ length: 100_001 }, (_, at) => `"${at}":0`).join()}}}`),
    ],
    [
      'adapter-type',
      'the most keys',
      adapter(`{"a": {${Array.from({ length: 99_999 }, (_, at) => `"${at}":0`).join()}}}`),
    ],
    ['adapter-key-twice', 'a key twice', adapter('{"peft_type": "LORA", "r": 2, "r": 4}')],
    ['adapter-type', 'another kind of adapter', withSettings({ peft_type: 'IA3' })],
    ['adapter-number', 'a rank of 0', withSettings({ r: 0 })],
    ['adapter-number', 'an alpha that is text', withSettings({ alpha_pattern: { q: '8' } })],
    ['adapter-flag', 'a flag that is text', withSettings({ use_rslora: 'no' })],
    ['adapter-names', 'one name instead of a list', withSettings({ modules_to_save: 'head' })],
    ['adapter-pattern', 'a list of ranks', withSettings({ rank_pattern: [2] })],
    ['adapter-expression', 'a wrong pattern', withSettings({ rank_pattern: { '[': 2 } })],
    ['adapter-weights', 'no weights', { 'adapter_config.json': JSON.stringify(SETTINGS) }],
    [
      'adapter-tensor',
      'magnitudes',
      adapter(SETTINGS, { ...FACTORS, 'm.q.lora_magnitude_vector': f32([4]) }),
    ],
    ['adapter-factors', 'one factor', adapter(SETTINGS, { [A]: f32([2, 3]) })],
    ['adapter-factors', 'another rank', withSettings({ r: 3 })],
    ['adapter-target', 'a module outside target_modules', withSettings({ target_modules: ['v'] })],
    ['adapter-target', 'a module outside a pattern', withSettings({ target_modules: 'm\\.v' })],
    ['adapter-target', 'a module in modules_to_save', withSettings({ modules_to_save: ['m'] })],
    ['adapter-target', 'an excluded module', withSettings({ exclude_modules: ['q'] })],
    [
      'adapter-target',
      'a module that a pattern excludes',
      withSettings({ exclude_modules: '.*q' }),
    ],
    ['adapter-target', 'a module of no layer', withSettings({ layers_to_transform: 3 })],
    ['adapter-layers', 'a layer that is text', withSettings({ layers_to_transform: ['3'] })],
    ['adapter-setting', 'DoRA', withSettings({ use_dora: true })],
    ['adapter-setting', 'PiSSA', withSettings({ init_lora_weights: 'pissa_niter_4' })],
    ['adapter-setting', 'target parameters', withSettings({ target_parameters: ['experts.up'] })],
    ['adapter-setting', 'an unknown setting', withSettings({ use_newer: { way: 1 } })],
  ])('is refused by %s: %s', async (rule, _, files) => {
    expect(await mergeRule(files)).toBe(rule);
  });

  it.each<
    [
      rule: string,
      what: string,
      model: Record<string, TensorSpec>,
      values?: Record<string, TensorSpec>,
    ]
  >([
    ['adapter-fits', 'a model without the module', { 'm.v.weight': f32([4, 3]) }],
    ['adapter-fits', 'a model of another width', { 'm.q.weight': f32([4, 5]) }],
    ['adapter-fits', 'integers', { 'm.q.weight': { dtype: 'I32', shape: [4, 3] } }],
    [
      'adapter-range',
      'a sum beyond float16',
      { 'm.q.weight': { dtype: 'F16', shape: [4, 3], values: [0x7bff] } },
      { [A]: f32([2, 3], [300]), [B]: f32([4, 2], [300]) },
    ],
  ])('is refused by %s, with %s', async (rule, _, model, values) => {
    expect(await mergeRule(adapter(SETTINGS, values), base(model))).toBe(rule);
  });

  const module = 'model.layers.1.mlp.experts.0.q';
  const factors = {
    [`${module}.lora_A.weight`]: f32([2, 3]),
    [`${module}.lora_B.weight`]: f32([4, 2]),
  };

  it.each<[isRefused: boolean, settings: Record<string, unknown>]>([
    [false, { target_modules: '.*\\.(q|v)' }],
    [true, { target_modules: 'q' }],
    [false, { layers_to_transform: [1] }],
    [true, { layers_to_transform: [0] }],
    [false, { layers_to_transform: [0], layers_pattern: 'experts' }],
    [true, { layers_to_transform: [1], layers_pattern: ['h'] }],
    // PEFT ignores the layer if the whole path is given.
    [false, { layers_to_transform: [0], target_modules: [module] }],
    [false, { target_modules: 'all-linear' }],
    [true, { target_modules: '(?i:Q)|(a|b)*q' }],
    [false, { target_modules: '(?i:.*Q)|(a|b)*q' }],
    [false, { target_modules: '(?!.*visual).*q' }],
    [true, { target_modules: '(?!.*mlp).*q' }],
    [false, { rank_pattern: { 'layers.2': 3, '(?=m)m.*\\.q': 2 } }],
    [false, { rank_pattern: { 'layers_1.mlp.experts.0.q': 3 } }],
    [false, { rank_pattern: { 'experts.0.q': 2, q: 3 }, r: 4 }],
  ])('is refused by adapter-target: %s for a layer with %j', async (isRefused, settings) => {
    const files = adapter({ ...SETTINGS, ...settings }, factors);
    const rule = await mergeRule(files, base({ [`${module}.weight`]: f32([4, 3]) }));
    expect(rule).toBe(isRefused ? 'adapter-target' : undefined);
  });

  it.each<[what: string, settings: Record<string, unknown>, rule: string | undefined]>([
    ['polynomial', { rank_pattern: { [`${'.*'.repeat(200)}x`]: 1 } }, undefined],
    ['exponential', { rank_pattern: { '(a+)+(m|.)*(.|l)*x': 1 } }, undefined],
    ['polynomial targets', { target_modules: `${'.*'.repeat(200)}x` }, 'adapter-target'],
    ['exponential exclusions', { exclude_modules: '((.*)*)*x' }, undefined],
    [
      'polynomial layers',
      { layers_to_transform: [1], layers_pattern: [`${'.*'.repeat(200)}x`] },
      'adapter-target',
    ],
    ['nested repeats', { rank_pattern: { '((((.{99}){99}){99}){99})x': 1 } }, undefined],
    ['backtracking', { target_modules: `(?=.)${'(.*)*'.repeat(20)}x` }, 'adapter-expression'],
    [
      'many names',
      {
        rank_pattern: Object.fromEntries(Array.from({ length: 90_000 }, (_, at) => [`a${at}`, 1])),
      },
      undefined,
    ],
  ])('is read in bounded time: %s', async (_, settings, rule) => {
    const files = adapter({ ...SETTINGS, ...settings }, factors);
    expect(await mergeRule(files, base({ [`${module}.weight`]: f32([4, 3]) }))).toBe(rule);
  });

  it('is refused for its length: a pattern that would take much memory', async () => {
    const settings = { ...SETTINGS, target_modules: '(?:)'.repeat(9000) };
    expect(await mergeRule(adapter(settings, factors))).toBe('adapter-expression');
  });

  it('is read or refused in bounded time: many patterns', async () => {
    const patterns = Array.from({ length: 60_000 }, (_, at) => [`a${at}.*`, 1]);
    const settings = { ...SETTINGS, rank_pattern: Object.fromEntries(patterns) };
    const rule = await mergeRule(
      adapter(settings, factors),
      base({ [`${module}.weight`]: f32([4, 3]) }),
    );
    // The limit is a time, so the machine decides which of the two it is.
    expect([undefined, 'adapter-expression']).toContain(rule);
  });

  const PLACES: Readonly<Record<string, (pattern: string) => Record<string, unknown>>> = {
    rank_pattern: (pattern) => ({ rank_pattern: { [pattern]: 1 } }),
    alpha_pattern: (pattern) => ({ alpha_pattern: { [pattern]: 1 } }),
    target_modules: (pattern) => ({ target_modules: pattern }),
    exclude_modules: (pattern) => ({ exclude_modules: pattern }),
  };
  const SLOW: Readonly<Record<string, string>> = {
    'powers of the length': `${'.*'.repeat(200)}x`,
    'nested repetitions': '(((a|.)*)*)*x',
    'counted repetitions': '((((.{99}){99}){99}){99})x',
    'possessive repetitions': `${'(?:.{0,30}){0,30}'.repeat(20)}x`,
    'many alternatives': Array.from({ length: 20_000 }, (_, at) => `.*a${at}`).join('|'),
    'alternatives that overlap': `(?:${'m|mo|mod|'.repeat(2000)}.)*x`,
    'nested groups': `${'('.repeat(900)}.${')*'.repeat(900)}x`,
    'letters of Unicode': `${'[\\p{L}\\p{N}._]{0,900}'.repeat(30)}x`,
    'letters of any case': `(?i:${'[a-zéßſ]*.*'.repeat(200)})x`,
    lookaheads: `(?=(.*)*x)${'(?!(.*)*y).*'.repeat(20)}`,
    lookbehinds: `.*(?<=(.*)*x)${'(.*)*'.repeat(20)}z`,
    references: `${'(.*)'.repeat(9)}${'\\1\\2\\3\\4'.repeat(20)}x`,
  };
  const CASES = Object.entries(SLOW).flatMap(([name, pattern]) =>
    Object.entries(PLACES).map(([place, settings]) => [name, place, settings(pattern)] as const),
  );

  it.each(sampled(CASES, 17))(
    'is read or refused in bounded time: %s in %s',
    async (_, __, settings) => {
      const files = adapter({ ...SETTINGS, ...settings }, factors);
      const before = process.cpuUsage();
      const rule = await mergeRule(files, base({ [`${module}.weight`]: f32([4, 3]) }));
      const { user } = process.cpuUsage(before);
      expect([undefined, 'adapter-expression', 'adapter-factors', 'adapter-target']).toContain(
        rule,
      );
      // On a busy machine, a match that got too little time is repeated with more.
      expect(user / 1e6).toBeLessThan(4 * (TIME_LIMIT / 1000));
    },
  );

  it('is refused in bounded time: many patterns and many modules', async () => {
    const modules = Array.from({ length: 2000 }, (_, at) => `model.layers.${at}.q`);
    const many = modules.flatMap((name) => [
      [`${name}.lora_A.weight`, f32([2, 3])] as const,
      [`${name}.lora_B.weight`, f32([4, 2])] as const,
    ]);
    const patterns = Array.from({ length: 40_000 }, (_, at) => [`.*[a-z]+${at}`, 1]);
    const settings = { ...SETTINGS, alpha_pattern: Object.fromEntries(patterns) };
    const files = adapter(settings, Object.fromEntries(many));
    expect(await mergeRule(files)).toBe('adapter-expression');
  });

  it('has warnings for missing tensors, and for patterns that cannot be checked', async () => {
    const warningsOf = async (settings: Record<string, unknown>) => {
      const { checkpoint } = await openAdapter(
        folderOf(adapter({ ...SETTINGS, ...settings }, factors)),
      );
      checkpoint.close();
      return checkpoint.warnings.map((each) => each.replace(/^.*?: /, ''));
    };
    expect(await warningsOf({ target_modules: ['q', 'v'], layers_to_transform: [1, 7] })).toEqual([
      'target_modules names "v", for which there are no tensors',
      'layers_to_transform names layers "7", for which there are no tensors',
    ]);
    expect(await warningsOf({ target_modules: '(?>a)q' })).toEqual([
      expect.stringContaining('could not be checked'),
    ]);
    expect(await warningsOf({})).toEqual([]);
  });

  it('is refused by adapter-tied: a module of modules_to_save that the model shares', async () => {
    const tensors = { 'base_model.model.head.weight': f32([4, 3]) };
    const settings = { ...SETTINGS, modules_to_save: ['head'] };
    const model = opened(base({ 'embed.weight': f32([4, 3]), 'head.weight': f32([4, 3]) }));
    const merge = async (namesOf: (name: string) => readonly string[]) =>
      mergedCheckpoint(model, await openAdapter(folderOf(adapter(settings, tensors))), namesOf);
    let error: unknown;
    try {
      await merge((name) => (name === 'head.weight' ? ['embed.weight', name] : [name]));
    } catch (thrown) {
      error = thrown;
    }
    expect(ruleOf(error)).toBe('adapter-tied');
    expect((await merge((name) => [name])).tensors.size).toBe(2);
  });

  it('is refused by adapter-floats: weights in packed integers', async () => {
    const packed = inPackage('fixtures/quantized');
    const name = fs.readdirSync(packed).find((each) => each.endsWith('.packed.safetensors')) ?? '';
    const model = path.join(packed, name);
    const checkpoint = opened(model);
    const [weight = ''] = checkpoint.packed?.weights ?? [];
    const [rows = 0, columns = 0] = checkpoint.tensors.get(weight)?.shape ?? [];
    const module = weight.replace(/\.weight$/, '');
    const files = adapter(
      { ...SETTINGS, target_modules: null },
      {
        [`${module}.lora_A.weight`]: f32([2, columns]),
        [`${module}.lora_B.weight`]: f32([rows, 2]),
      },
    );
    expect(await mergeRule(files, model)).toBe('adapter-floats');
  });
});
