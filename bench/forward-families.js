// Models of about 60 million parameters whose layers are recurrent or convolutions, and a mixture of 64 experts, beside
// transformers on as many threads: a forward pass of 1 × 512 tokens, and 32 tokens decoded after 512, given one by one.
//
// The shapes are those of small published models (Mamba-2 130M, Qwen 3.5 0.8B, LFM2 350M, Granite 4.0 H 350M, Qwen3
// MoE), with fewer layers and columns and a smaller vocabulary. Both sides have the same weights, and before anything is
// timed the same logits within LIMIT of the largest. Transformers computes recurrent layers in PyTorch: its kernels
// need CUDA.
//
// Besides times, there is the least processor time of a turn (user and system, of all threads, decoding with the
// prefill before it), which tells more where other processes take the cores. Memory is the peak of each process while
// a size is measured.
//
// PYTHON names a Python with PyTorch and transformers; MODELS=mamba2,lfm2 measures fewer; ROUNDS (12), THREADS (2) and
// STEPS (32) as elsewhere.
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { decodingTime, peakOf } from './decode.js';
import {
  compared,
  idsOf,
  openPyTorch,
  setting,
  source,
  THREADS,
  TOKENS,
  timeOf,
  writeWeights,
} from './forward-contenders.js';

export const title = `Recurrent, hybrid and mixture models beside transformers, threads: ${THREADS}`;

const STEPS = setting('STEPS', 32);
/** Largest difference of two logits, as a share of the largest. */
const LIMIT = 2e-5;
/** Largest ratios, of a forward pass and of decoding. */
const AIMS = {
  mamba2: { forward: 0.35, decoding: 0.33 },
  qwen3_5_text: { forward: 0.5, decoding: 0.33 },
  lfm2: { forward: 0.55, decoding: 0.33 },
  granitemoehybrid: { forward: 0.33, decoding: 0.33 },
  qwen3_moe: { forward: 0.5, decoding: 0.5 },
};
/** Milliseconds of a clock tick of Linux in /proc. */
const TICK = 10;

const SHARED = {
  vocab_size: 16384,
  max_position_embeddings: 4096,
  hidden_act: 'silu',
  tie_word_embeddings: true,
  pad_token_id: 0,
  bos_token_id: 1,
  eos_token_id: 2,
};

const repeated = (count, ...kinds) => Array.from({ length: count }, () => kinds).flat();

const MODELS = {
  /** Mamba-2 */
  mamba2: {
    ...SHARED,
    hidden_size: 768,
    num_hidden_layers: 12,
    num_heads: 24,
    head_dim: 64,
    expand: 2,
    state_size: 128,
    n_groups: 1,
    conv_kernel: 4,
    chunk_size: 256,
    layer_norm_epsilon: 1e-5,
  },
  /** Gated DeltaNet, with attention in every fourth layer. */
  qwen3_5_text: {
    ...SHARED,
    hidden_size: 512,
    intermediate_size: 1536,
    num_hidden_layers: 12,
    num_attention_heads: 4,
    num_key_value_heads: 1,
    head_dim: 128,
    linear_num_key_heads: 8,
    linear_num_value_heads: 8,
    linear_key_head_dim: 128,
    linear_value_head_dim: 128,
    linear_conv_kernel_dim: 4,
    layer_types: repeated(
      3,
      'linear_attention',
      'linear_attention',
      'linear_attention',
      'full_attention',
    ),
    rms_norm_eps: 1e-6,
    rope_parameters: { rope_type: 'default', rope_theta: 1e7, partial_rotary_factor: 0.25 },
  },
  /** Short convolutions, with attention in every third layer. */
  lfm2: {
    ...SHARED,
    hidden_size: 640,
    intermediate_size: 1536,
    block_auto_adjust_ff_dim: false,
    num_hidden_layers: 12,
    num_attention_heads: 10,
    num_key_value_heads: 5,
    conv_L_cache: 3,
    conv_bias: false,
    layer_types: repeated(4, 'conv', 'conv', 'full_attention'),
    norm_eps: 1e-5,
    rope_parameters: { rope_type: 'default', rope_theta: 1e6 },
  },
  /** Mamba-2 and one layer of attention, each with an MLP. */
  granitemoehybrid: {
    ...SHARED,
    hidden_size: 640,
    intermediate_size: 1664,
    shared_intermediate_size: 1664,
    num_hidden_layers: 9,
    num_attention_heads: 10,
    num_key_value_heads: 2,
    layer_types: [
      'mamba',
      'mamba',
      'mamba',
      'mamba',
      'mamba',
      'attention',
      'mamba',
      'mamba',
      'mamba',
    ],
    num_local_experts: 0,
    num_experts_per_tok: 0,
    mamba_n_heads: 40,
    mamba_d_head: 32,
    mamba_n_groups: 1,
    mamba_d_state: 128,
    mamba_d_conv: 4,
    mamba_expand: 2,
    attention_multiplier: 0.015625,
    embedding_multiplier: 12,
    logits_scaling: 3,
    residual_multiplier: 0.246,
    position_embedding_type: 'nope',
    rms_norm_eps: 1e-5,
  },
  /** 8 of 64 experts: 211 million parameters. */
  qwen3_moe: {
    ...SHARED,
    vocab_size: 8192,
    hidden_size: 512,
    intermediate_size: 1536,
    moe_intermediate_size: 256,
    num_hidden_layers: 8,
    num_attention_heads: 8,
    num_key_value_heads: 2,
    head_dim: 64,
    num_experts: 64,
    num_experts_per_tok: 8,
    norm_topk_prob: true,
    decoder_sparse_step: 1,
    mlp_only_layers: [],
    rms_norm_eps: 1e-6,
  },
};

export async function run() {
  const names = process.env.MODELS?.split(',') ?? Object.keys(MODELS);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'minimind-bench-'));
  const [results, facts] = [[], {}];
  try {
    for (const name of names) {
      const measured = await measureModel(name, folder);
      if (measured.skipped) return measured;
      results.push(...measured.results);
      facts[name] = measured.facts;
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return { threads: THREADS, steps: STEPS, facts, results };
}

async function measureModel(name, folder) {
  const { parseDocument } = await source('config/document.ts');
  const { modelOf } = await source('input/model-input/model-file.ts');
  const { tensorsOf } = await source('model/architecture/walk.ts');
  const { openOnnx } = await source('engine/onnx/onnx-engine.ts');
  const { randomWeights } = await source('engine/weights/weights.ts');
  const settings = { model_type: name, ...MODELS[name] };
  const { model } = await modelOf(parseDocument(JSON.stringify(settings), 'config.json'));
  const weights = randomWeights(model, 0);
  const file = path.join(folder, 'model.safetensors');
  const parameters = tensorsOf(model).filter(({ role }) => role === 'parameter');
  await writeWeights(file, parameters, weights);
  const peer = await openPyTorch({
    script: 'transformers_peer.py',
    settings,
    threads: THREADS,
    weights: [file],
  });
  rmSync(file);
  if (peer.missing) return { skipped: peer.missing };
  const engine = await openOnnx({ threads: THREADS });
  const load = (more) => engine.load(model, weights, { blocks: false, ...more });
  const ids = idsOf(model, 1, TOKENS);
  const forward = await load();
  const difference = await differenceOf(forward, peer, ids, path.join(folder, 'logits'));
  if (!(difference <= LIMIT)) throw new Error(`${name}: logits differ by ${difference}`);
  const whole = await sideBySide(`${name}, 1 × ${TOKENS}`, peer, {
    aim: AIMS[name].forward,
    ours: () => timeOf(() => forward.run({ ids })),
    request: { tokens: TOKENS },
  });
  await forward.release();
  const decoding = await load({ decoding: { totalTokens: TOKENS + STEPS } });
  const steps = await sideBySide(`${name}, ${STEPS} tokens after ${TOKENS}`, peer, {
    aim: AIMS[name].decoding,
    ours: () => decodingTime(decoding, model, { before: TOKENS, steps: STEPS }),
    request: { tokens: TOKENS + STEPS, steps: STEPS },
  });
  await decoding.release();
  peer.close();
  const facts = {
    parameters: parameters.reduce((sum, { elements }) => sum + elements, 0),
    transformers: peer.facts,
    largestDifference: difference,
    forward: whole.facts,
    decoding: steps.facts,
  };
  return { results: [whole.result, steps.result], facts };
}

/** Compares one size of a model. @param request What the other program is asked for. */
async function sideBySide(name, peer, { ours, request, aim }) {
  const sides = {
    ours: { name, pid: process.pid, time: ours, spent: [] },
    transformers: {
      name: 'transformers',
      pid: peer.pid,
      time: () => peer.run({ batch: 1, ...request }),
      spent: [],
    },
  };
  const ofEach = (of) =>
    Object.fromEntries(Object.entries(sides).map(([side, each]) => [side, of(each)]));
  const contenders = ofEach((side) => ({
    name: side.name,
    async time() {
      const before = processorTime(side.pid);
      const milliseconds = await side.time();
      side.spent.push(processorTime(side.pid) - before);
      return milliseconds;
    },
    close() {},
  }));
  for (const { pid } of Object.values(sides)) forgetPeak(pid);
  const pair = { candidate: 'ours', baseline: 'transformers', aim };
  const [result] = await compared(contenders, [pair]);
  const facts = {
    processorMilliseconds: ofEach(({ spent }) => Math.min(...spent)),
    peakMegabytes: ofEach(({ pid }) => peakOf(pid)),
  };
  return { result, facts };
}

/** Largest difference of the logits of a forward pass, as a share of the largest. */
async function differenceOf(program, peer, ids, file) {
  const { output } = await program.run({ ids });
  await peer.run({ batch: ids.batch, tokens: ids.tokens, logits: file });
  const theirs = new Float32Array(readFileSync(file).buffer.slice(0));
  let [largest, difference] = [0, 0];
  for (const [at, value] of theirs.entries()) {
    largest = Math.max(largest, Math.abs(value));
    difference = Math.max(difference, Math.abs(value - output.data[at]));
  }
  return difference / largest;
}

/** Milliseconds of processor time that a process has taken, of all its threads, where the system tells it. */
function processorTime(pid) {
  const file = `/proc/${pid}/stat`;
  if (!existsSync(file)) return Number.NaN;
  const [user, system] = readFileSync(file, 'utf8')
    .replace(/^.*\) /, '')
    .split(' ')
    .slice(11, 13);
  return (Number(user) + Number(system)) * TICK;
}

/** Lets the peak of a process count from now on, where the system can. */
function forgetPeak(pid) {
  const file = `/proc/${pid}/clear_refs`;
  if (existsSync(file)) writeFileSync(file, '5');
}
