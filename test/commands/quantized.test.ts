import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import type { Shape, StoredDtype } from '../../src/base/tensor/dtype.js';
import type { StoredTensor } from '../../src/checkpoint/stored-tensor.js';
import { safetensorsFile } from '../checkpoint/reconcile/files.js';
import { Workshop } from '../checkpoint/reconcile/support.js';
import { readJson } from '../fixtures.js';
import { runHere } from '../run-here.js';

const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'minimind-'));
const workshop = new Workshop();
afterAll(() => {
  workshop.close();
  fs.rmSync(folder, { recursive: true });
});

const LLAMA = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 97,
  hidden_size: 64,
  intermediate_size: 160,
  num_hidden_layers: 1,
  num_attention_heads: 4,
  num_key_value_heads: 2,
  torch_dtype: 'bfloat16',
};
const EXPERTS = {
  ...LLAMA,
  architectures: ['MixtralForCausalLM'],
  model_type: 'mixtral',
  num_local_experts: 2,
};

/** Outputs and inputs of each linear layer in the block. */
const PRODUCTS: Readonly<Record<string, readonly [number, number]>> = {
  'self_attn.q_proj': [64, 64],
  'self_attn.k_proj': [32, 64],
  'self_attn.v_proj': [32, 64],
  'self_attn.o_proj': [64, 64],
  'mlp.gate_proj': [160, 64],
  'mlp.up_proj': [160, 64],
  'mlp.down_proj': [64, 160],
};

type Tensors = Readonly<Record<string, readonly [StoredDtype, Shape]>>;
type Parts = (outputs: number, inputs: number) => Tensors;

const OTHERS: Tensors = {
  'model.embed_tokens.weight': ['BF16', [97, 64]],
  'model.layers.0.input_layernorm.weight': ['BF16', [64]],
  'model.layers.0.post_attention_layernorm.weight': ['BF16', [64]],
  'model.norm.weight': ['BF16', [64]],
};
const HEAD: Tensors = { 'lm_head.weight': ['BF16', [97, 64]] };

/** Tensors of the small model. Its matching linear layers are replaced by `parts`. */
function file(parts: Parts, isQuantized = (_: string) => true): Tensors {
  const products = Object.entries(PRODUCTS).flatMap(([name, [outputs, inputs]]) => {
    const whole: Tensors = { weight: ['BF16', [outputs, inputs]] };
    const tensors = isQuantized(name) ? parts(outputs, inputs) : whole;
    return Object.entries(tensors).map(([leaf, tensor]) => [
      `model.layers.0.${name}.${leaf}`,
      tensor,
    ]);
  });
  return { ...OTHERS, ...HEAD, ...Object.fromEntries(products) };
}

const up = (value: number, step: number) => Math.ceil(value / step);

interface Case {
  readonly config?: object;
  /** Further keys of the whole config. */
  readonly keys?: object;
  readonly tensors: Tensors;
  readonly label: string;
  readonly of?: object;
}

const fp8: Parts = (o, i) => ({
  weight: ['F8_E4M3', [o, i]],
  weight_scale_inv: ['F32', [up(o, 128), up(i, 128)]],
});
const gptq: Parts = (o, i) => ({
  qweight: ['I32', [i / 8, o]],
  qzeros: ['I32', [i / 32, o / 8]],
  scales: ['F16', [i / 32, o]],
  g_idx: ['I32', [i]],
});
const awq: Parts = (o, i) => ({
  qweight: ['I32', [i, o / 8]],
  qzeros: ['I32', [i / 32, o / 8]],
  scales: ['F16', [i / 32, o]],
});

function mlx(bits: number, group: number): Parts {
  return (o, i) => ({
    weight: ['U32', [o, (i * bits) / 32]],
    scales: ['BF16', [o, i / group]],
    biases: ['BF16', [o, i / group]],
  });
}
const under = (module: string, parts: Tensors): Tensors =>
  Object.fromEntries(Object.entries(parts).map(([leaf, tensor]) => [`${module}.${leaf}`, tensor]));

const CASES: Readonly<Record<string, Case>> = {
  'fp8 in blocks': {
    config: { quant_method: 'fp8', weight_block_size: [128, 128] },
    tensors: file(fp8),
    label: 'fp8, blocks of 128×128',
  },
  'fp8 with a list of modules that stay, and scales of inputs': {
    config: {
      quant_method: 'fp8',
      weight_block_size: null,
      activation_scheme: 'static',
      modules_to_not_convert: ['lm_head', 'model.layers.0.self_attn', 'down_proj'],
    },
    tensors: file(
      (o, i) => ({
        weight: ['F8_E4M3', [o, i]],
        weight_scale_inv: ['F32', []],
        activation_scale: ['F32', []],
      }),
      (name) => /gate|up/.test(name),
    ),
    label: 'fp8, a scale for each tensor',
  },
  mxfp8: {
    config: { quant_method: 'mxfp8' },
    tensors: file((o, i) => ({
      weight: ['F8_E4M3', [o, i]],
      weight_scale_inv: ['U8', [o, i / 32]],
    })),
    label: 'mxfp8, blocks of 1×32',
  },
  fbgemm_fp8: {
    config: { quant_method: 'fbgemm_fp8', modules_to_not_convert: ['lm_head', '.*k_proj'] },
    tensors: file(
      (o, i) => ({ weight: ['F8_E4M3', [o, i]], weight_scale: ['F32', [o, 1]] }),
      (name) => !name.endsWith('k_proj'),
    ),
    label: 'fbgemm_fp8, a scale for each row',
  },
  'int8 of bitsandbytes': {
    config: { quant_method: 'bitsandbytes', load_in_8bit: true, llm_int8_skip_modules: null },
    tensors: file((o, i) => ({
      weight: ['I8', [o, i]],
      SCB: ['F32', [o]],
      weight_format: ['U8', []],
    })),
    label: 'bitsandbytes int8, a scale for each row',
  },
  'nf4 of bitsandbytes': {
    config: { load_in_4bit: true, bnb_4bit_quant_type: 'nf4' },
    tensors: file((o, i) => ({
      weight: ['U8', [(o * i) / 2, 1]],
      'weight.absmax': ['F32', [up(o * i, 64)]],
      'weight.quant_map': ['F32', [16]],
      'weight.quant_state.bitsandbytes__nf4': ['U8', [0]],
    })),
    label: 'bitsandbytes nf4, blocks of 64',
  },
  'nf4 with quantized scales': {
    config: {
      quant_method: 'bitsandbytes',
      load_in_4bit: true,
      bnb_4bit_quant_type: 'nf4',
      bnb_4bit_use_double_quant: true,
    },
    tensors: file((o, i) => ({
      weight: ['U8', [(o * i) / 2, 1]],
      'weight.absmax': ['U8', [up(o * i, 64)]],
      'weight.nested_absmax': ['F32', [up(up(o * i, 64), 256)]],
      'weight.nested_quant_map': ['F32', [256]],
      'weight.quant_map': ['F32', [16]],
    })),
    label: 'bitsandbytes nf4, blocks of 64, scales quantized',
  },
  gptq: {
    config: { quant_method: 'gptq', bits: 4, group_size: 32, desc_act: true },
    tensors: file(gptq),
    label: 'gptq, 4 bits, groups of 32',
  },
  'gptq of some modules': {
    config: { quant_method: 'gptq', bits: 4, group_size: 32, dynamic: { '-:.*\\.(q|k)_proj': {} } },
    tensors: file(gptq, (name) => !/[qk]_proj/.test(name)),
    label: 'gptq, 4 bits, groups of 32',
  },
  'gptq of whole rows': {
    config: { quant_method: 'gptq', bits: 8, group_size: -1 },
    tensors: file((o, i) => ({
      qweight: ['I32', [i / 4, o]],
      qzeros: ['I32', [1, o / 4]],
      scales: ['F16', [1, o]],
      g_idx: ['I32', [i]],
    })),
    label: 'gptq, 8 bits, a scale for each row',
  },
  'auto-round': {
    config: {
      quant_method: 'auto-round',
      bits: 4,
      group_size: 32,
      packing_format: 'auto_round:auto_awq',
    },
    tensors: file(awq),
    label: 'awq, 4 bits, groups of 32',
  },
  awq: {
    config: { quant_method: 'awq', bits: 4, group_size: 32, version: 'gemm', zero_point: true },
    tensors: file(awq),
    label: 'awq, 4 bits, groups of 32',
  },
  'compressed-tensors, packed': {
    config: compressed('pack-quantized', {
      num_bits: 4,
      type: 'int',
      strategy: 'group',
      group_size: 32,
      symmetric: false,
    }),
    tensors: file((o, i) => ({
      weight_packed: ['I32', [o, i / 8]],
      weight_scale: ['BF16', [o, i / 32]],
      weight_zero_point: ['I32', [o / 8, i / 32]],
      weight_shape: ['I64', [2]],
    })),
    label: 'compressed-tensors pack-quantized, 4 bits, groups of 32',
  },
  'compressed-tensors, 8-bit floating point': {
    config: compressed('float-quantized', { num_bits: 8, type: 'float', strategy: 'channel' }),
    tensors: file((o, i) => ({ weight: ['F8_E4M3', [o, i]], weight_scale: ['BF16', [o, 1]] })),
    label: 'compressed-tensors float-quantized, 8 bits',
  },
  'compressed-tensors, nvfp4': {
    config: compressed('nvfp4-pack-quantized', {
      num_bits: 4,
      type: 'float',
      strategy: 'tensor_group',
      group_size: 16,
    }),
    tensors: file((o, i) => ({
      weight_packed: ['U8', [o, i / 2]],
      weight_scale: ['F8_E4M3', [o, i / 16]],
      weight_global_scale: ['F32', [1]],
    })),
    label: 'compressed-tensors nvfp4-pack-quantized, 4 bits, groups of 16',
  },
  'MLX, with embeddings, a layer of 8 bits and one that stays': {
    keys: {
      quantization: {
        group_size: 32,
        bits: 4,
        'model.layers.0.mlp.up_proj': { group_size: 64, bits: 8 },
        'model.layers.0.mlp.down_proj': false,
      },
      quantization_config: { group_size: 32, bits: 4 },
    },
    tensors: {
      ...file(
        (o, i) => (o === 160 ? {} : mlx(4, 32)(o, i)),
        (name) => name !== 'mlp.down_proj',
      ),
      ...under('model.layers.0.mlp.gate_proj', mlx(4, 32)(160, 64)),
      ...under('model.layers.0.mlp.up_proj', mlx(8, 64)(160, 64)),
      ...under('model.embed_tokens', mlx(4, 32)(97, 64)),
      ...under('lm_head', mlx(4, 32)(97, 64)),
    },
    label: 'mlx, 4 bits, groups of 32',
  },
  'MLX in an MX format': {
    keys: { quantization: { mode: 'mxfp4', group_size: 32, bits: 4 } },
    tensors: {
      ...file((o, i) => ({ weight: ['U32', [o, i / 8]], scales: ['U8', [o, i / 32]] })),
      ...under('model.embed_tokens', { weight: ['U32', [97, 8]], scales: ['U8', [97, 2]] }),
      ...under('lm_head', { weight: ['U32', [97, 8]], scales: ['U8', [97, 2]] }),
    },
    label: 'mlx mxfp4, 4 bits, groups of 32',
  },
  mxfp4: {
    of: EXPERTS,
    config: { quant_method: 'mxfp4', modules_to_not_convert: ['model.layers.*.self_attn'] },
    tensors: {
      ...Object.fromEntries(
        Object.entries(
          file(
            () => ({}),
            (name) => name.startsWith('mlp'),
          ),
        ),
      ),
      'model.layers.0.block_sparse_moe.gate.weight': ['BF16', [2, 64]],
      'model.layers.0.block_sparse_moe.experts.gate_up_proj_blocks': ['U8', [2, 320, 2, 16]],
      'model.layers.0.block_sparse_moe.experts.gate_up_proj_scales': ['U8', [2, 320, 2]],
      'model.layers.0.block_sparse_moe.experts.down_proj_blocks': ['U8', [2, 64, 5, 16]],
      'model.layers.0.block_sparse_moe.experts.down_proj_scales': ['U8', [2, 64, 5]],
    },
    label: 'mxfp4, blocks of 32, experts only',
  },
};

function compressed(format: string, weights: object) {
  const group = { targets: ['Linear'], weights, input_activations: null };
  return {
    quant_method: 'compressed-tensors',
    format,
    config_groups: { group_0: group },
    ignore: ['lm_head', 're:.*norm.*'],
  };
}

let made = 0;

/** Folder with a config.json, and with tensors if given. */
async function modelFolder(config: object, tensors?: Tensors) {
  const modelPath = path.join(folder, `model-${made++}`);
  fs.mkdirSync(modelPath);
  fs.writeFileSync(path.join(modelPath, 'config.json'), JSON.stringify(config, null, 1));
  if (!tensors) return { modelPath, bytes: 0 };
  const stored = new Map<string, StoredTensor>(
    Object.entries(tensors).map(([name, [dtype, shape]]) => [
      name,
      workshop.tensor(shape, { dtype }),
    ]),
  );
  await safetensorsFile(path.join(modelPath, 'model.safetensors'), stored);
  const bytes = [...stored.values()].reduce((sum, tensor) => sum + tensor.bytes, 0);
  return { modelPath, bytes };
}

const profiled = async (config: object) => {
  const { modelPath } = await modelFolder(config);
  const { code, stdout, stderr } = await runHere([
    'profile',
    modelPath,
    '--context',
    '8',
    '--json',
  ]);
  expect(code).toBe(0);
  return { result: JSON.parse(stdout), stderr };
};

describe.each(Object.entries(CASES))(
  'a model quantized as %s',
  (_, { config, keys, tensors, label, of = LLAMA }) => {
    const whole = { ...of, ...keys, ...(config && { quantization_config: config }) };

    it('has the bytes of its tensors', async () => {
      const { bytes } = await modelFolder(whole, tensors);
      const { result, stderr } = await profiled(whole);
      expect(stderr).toBe('');
      expect(result.stored).toMatchObject({ label, total: { value: bytes } });
      const { result: plain } = await profiled(of);
      expect(plain.stored).toBe(undefined);
      expect(result.parameters).toEqual(plain.parameters);
    });

    it('has a hint at each extra tensor in verify', async () => {
      const { modelPath } = await modelFolder(whole, tensors);
      const { stdout } = await runHere(['verify', `${modelPath}/config.json`, modelPath, '--json']);
      const { faults } = JSON.parse(stdout) as { faults: { kind: string; hint: string | null }[] };
      const extra = faults.filter(({ kind }) => kind === 'extra');
      expect(extra.length).toBeGreaterThan(0);
      for (const { hint } of extra) expect(hint).toMatch(/: the file is quantized$/);
    });
  },
);

describe('an unknown quantization', () => {
  it.each([
    [{ quant_method: 'hqq' }, 'quant_method "hqq" is not known here'],
    [{ quant_method: 'torchao' }, 'quant_method "torchao" is not known here'],
    [{ quant_method: 'constructor' }, 'quant_method "constructor" is not known here'],
    [{}, 'it has no quant_method'],
    [{ quant_method: 'gptq', bits: 5 }, 'gptq: bits are not one of 2, 3, 4, 8'],
    [
      { quant_method: 'fp8', weight_block_size: [0, 1] },
      'fp8: weight_block_size is not [rows, columns]',
    ],
    [
      { quant_method: 'bitsandbytes' },
      'bitsandbytes: neither load_in_8bit nor load_in_4bit is true',
    ],
  ])('is reported: %j', async (config, message) => {
    const { result, stderr } = await profiled({ ...LLAMA, quantization_config: config });
    expect(stderr).toContain(
      `quantization_config: ${message}: the size of the stored weights is not`,
    );
    expect(stderr).toContain('methods whose sizes are counted: fp8, ');
    expect(result.stored).toBe(undefined);
  });

  it('of some modules is reported', async () => {
    const list = ['lm_head', '(?<!q)_proj'];
    const config = { quant_method: 'fp8', modules_to_not_convert: list };
    const { result, stderr } = await profiled({ ...LLAMA, quantization_config: config });
    expect(stderr).toContain(
      'fp8: the pattern "(?<!q)_proj" is not understood: the size of the stored weights is an estimate',
    );
    expect(result.stored).toBeTruthy();
  });
});

describe('the report', () => {
  const quantization_config = { quant_method: 'fp8' };

  it('of profile has the weights as stored and in one dtype', async () => {
    const { modelPath } = await modelFolder({ ...LLAMA, quantization_config });
    const { stdout } = await runHere([
      'profile',
      modelPath,
      '--context',
      '8',
      '--explain',
      '--details',
    ]);
    expect(stdout).toMatch(/^as stored +68,264 +68\.3 kB +66\.7 KiB$/m);
    expect(stdout).toContain(
      'Weights as stored: 68.3 kB (fp8, blocks of 128×128): 43.0 kB quantized values, 40 B scales, 25.2 kB unquantized in bf16.',
    );
    expect(stdout).toContain('How the figures are computed: weights as stored');
  });

  it.each([
    [{ quant_method: 'fp8' }, { dtype: 'f8', groupSize: 'row' }],
    [
      { quant_method: 'gptq', group_size: 32 },
      { dtype: 'int4', groupSize: 32 },
    ],
    [{ quant_method: 'bitsandbytes', load_in_8bit: true }, { dtype: 'int8' }],
    [{ quant_method: 'hqq' }, { dtype: 'bf16' }],
  ])('of fit uses the dtype of %j, or the requested one', async (config, weights) => {
    const { modelPath } = await modelFolder({ ...LLAMA, quantization_config: config });
    const weightsOf = async (...flags: string[]) => {
      const run = await runHere([
        'fit',
        modelPath,
        '--gpu',
        'l4',
        '--context',
        '64',
        ...flags,
        '--json',
      ]);
      return JSON.parse(run.stdout).serving.setting.weights;
    };
    expect(await weightsOf()).toMatchObject(weights);
    expect(await weightsOf('--dtype', 'f16')).toMatchObject({ dtype: 'f16' });
  });
});

describe('a published checkpoint', () => {
  it('has its size: DeepSeek-V3', async () => {
    const config = readJson<object>('fixtures/hf-configs/deepseek-v3-main/config.json');
    // The prediction layer is like the last one, with its own embedding, head, projection and norms.
    const { result } = await profiled({ ...config, num_hidden_layers: 62 });
    const further = 2 * (2 * 129_280 * 7168 + 2 * 7168 * 7168 + 3 * 7168);
    const corrections = 59 * 256 * 4;
    // All files of huggingface.co/deepseek-ai/DeepSeek-V3, with their headers.
    const files = 688_586_727_753;
    const headers = files - (result.stored.total.value + further + corrections);
    expect(headers).toBeGreaterThan(0);
    expect(headers / files).toBeLessThan(2e-5);
  });
});

it('whose packing is unknown shows the bytes of its file', async () => {
  const config = { ...LLAMA, quantization_config: { quant_method: 'exl2', bits: 4.1 } };
  const tensors = file((o, i) => ({
    q_weight: ['I32', [i / 8, o]],
    q_invperm: ['I32', [i]],
    q_scale: ['I32', [1, o / 8]],
    q_scale_max: ['F16', [1]],
    q_groups: ['I16', [2]],
  }));
  const { modelPath } = await modelFolder(config, tensors);
  const { stdout } = await runHere(['profile', modelPath]);
  expect(stdout).toMatch(/weights +\d+\.\d kB as stored · \d+\.\d kB bf16/);
  const json = await runHere(['profile', modelPath, '--json']);
  expect(JSON.parse(json.stdout).checkpoint.isPacked).toBe(true);
});
