// Decoding of MiniMind2-Small beside llama.cpp: float32, 8 bits (int8 in groups of 32 beside Q8_0) and 4 bits (int4 in
// groups of 32 beside Q4_0), token by token after so many others, and the prefill before it. Random weights, the same
// in all files; the files of llama.cpp are made by `convert-checkpoint`.
//
// Threads of llama.cpp that wait disturb each other where there are few processors: ours on THREADS is compared with the
// better of its THREADS and its one, and then one thread with one.
//
// NODE_LLAMA_CPP names a folder with node-llama-cpp (see llama-cpp.mjs); ROUNDS (12) and THREADS (2) as elsewhere.
import { execFileSync, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { peakOf } from './decode.js';
import {
  compared,
  root,
  setting,
  source,
  THREADS,
  timeOf,
  writeWeights,
} from './forward-contenders.js';

export const title = `Decoding beside llama.cpp, threads: ${THREADS} and 1`;

const STEPS = setting('STEPS', 32);
const PREFILL = 512;
const LENGTHS = [16, 512, 2000];
const TOTAL = 2048;

/** Largest ratios, decoding on THREADS and on one, and prefill on THREADS. */
const FORMS = [
  { name: 'float32', dtype: 'keep', aims: { decode: 0.7, onOne: 1, prefill: 0.44 } },
  {
    name: 'int8 against Q8_0',
    dtype: 'q8_0',
    form: { bits: 8, group: 32 },
    aims: { decode: 0.7, onOne: 1, prefill: 0.8 },
  },
  {
    name: 'int4 against Q4_0',
    dtype: 'q4_0',
    form: { bits: 4, group: 32 },
    aims: { decode: 0.7, onOne: 1.1, prefill: 0.9 },
  },
];

const CONFIG = {
  architectures: ['LlamaForCausalLM'],
  model_type: 'llama',
  vocab_size: 6400,
  hidden_size: 512,
  intermediate_size: 1408,
  num_hidden_layers: 8,
  num_attention_heads: 8,
  num_key_value_heads: 2,
  max_position_embeddings: TOTAL,
  rope_theta: 1e6,
  rms_norm_eps: 1e-5,
  tie_word_embeddings: true,
  bos_token_id: 1,
  eos_token_id: 2,
  torch_dtype: 'float32',
};

export async function run() {
  const library = process.env.NODE_LLAMA_CPP;
  if (!library) return { skipped: 'NODE_LLAMA_CPP names no folder with node-llama-cpp' };
  const place = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  const open = [];
  try {
    const folder = path.join(place, 'model');
    await writeModel(folder);
    const results = [];
    const peakMegabytes = {};
    for (const form of FORMS) {
      const file = path.join(place, `model.${form.dtype}.gguf`);
      convert(folder, file, form.dtype);
      const contender = async (threads) => ({
        ours: await openOurs(folder, form.form, threads),
        llamaCpp: await openPeer(library, file, threads),
      });
      const many = await contender(THREADS);
      const one = await contender(1);
      open.push(many.ours, many.llamaCpp, one.ours, one.llamaCpp);
      results.push(...(await measured(form, many, one)));
      peakMegabytes[form.name] = { llamaCpp: peakOf(many.llamaCpp.pid) };
      for (const each of open.splice(0)) await each.close();
    }
    return { threads: THREADS, steps: STEPS, peakMegabytes, results };
  } finally {
    for (const each of open) await each.close();
    rmSync(place, { recursive: true, force: true });
  }
}

/** @param many Both programs on THREADS. @param one Both on one thread. */
async function measured({ name, aims }, many, one) {
  const measure = async (what, before, steps, aim) => {
    const contender = (label, { time }) => ({
      name: label,
      time: () => time(before, steps),
      close() {},
    });
    const all = {
      ours: contender(`${name}, ${what}`, many.ours),
      llamaCpp: contender(`llama.cpp, threads: ${THREADS}`, many.llamaCpp),
      oursOnOne: contender(`${name}, ${what}, one thread`, one.ours),
      llamaCppOnOne: contender('llama.cpp on one thread', one.llamaCpp),
    };
    const [beside, besideOne, onOne] = await compared(all, [
      { candidate: 'ours', baseline: 'llamaCpp', aim: aim.many },
      { candidate: 'ours', baseline: 'llamaCppOnOne', aim: aim.many },
      { candidate: 'oursOnOne', baseline: 'llamaCppOnOne', aim: aim.one },
    ]);
    // The larger ratio is that to the better of the two.
    return [beside.ratios.median > besideOne.ratios.median ? beside : besideOne, onOne];
  };
  const results = [];
  for (const before of LENGTHS) {
    const aim = { many: aims.decode, one: aims.onOne };
    results.push(...(await measure(`${STEPS} tokens after ${before}`, before, STEPS, aim)));
  }
  results.push(...(await measure(`prefill of ${PREFILL}`, PREFILL, 0, { many: aims.prefill })));
  return results;
}

async function openOurs(folder, form, threads) {
  const { loadModelFile } = await source('input/model-input/read-model-file.ts');
  const { openOnnx } = await source('engine/onnx/onnx-engine.ts');
  const { randomWeights } = await source('engine/weights/weights.ts');
  const { Decoder } = await source('engine/decoder.ts');
  const { model } = await loadModelFile(path.join(folder, 'config.json'), {});
  const engine = await openOnnx({ threads });
  const program = await engine.load(model, randomWeights(model, 0), {
    blocks: false,
    weightForm: form,
    decoding: { totalTokens: TOTAL },
  });
  return {
    async time(before, steps) {
      const ids = Array.from({ length: before }, (_, at) => 3 + ((at * 7919) % 250));
      const decoder = new Decoder(program);
      if (steps === 0) return timeOf(() => decoder.append(ids));
      await decoder.append(ids);
      return timeOf(async () => {
        for (let step = 0; step < steps; step++) await decoder.append([3 + step]);
      });
    },
    close: () => program.release(),
  };
}

async function openPeer(library, file, threads) {
  const words = [`${root}bench/llama-cpp-peer.mjs`, library, file, threads, TOTAL];
  const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => {
    const { value } = await lines.next();
    if (value === undefined) throw new Error('llama.cpp ended');
    return JSON.parse(value);
  };
  await answer();
  return {
    pid: child.pid,
    async time(before, steps) {
      child.stdin.write(`${JSON.stringify({ before, steps })}\n`);
      return await answer();
    },
    close: () => child.stdin.end(),
  };
}

/** A folder with the random weights that `openOurs` computes with, and a tokenizer of bytes, which llama.cpp needs. */
async function writeModel(folder) {
  const { loadModelFile } = await source('input/model-input/read-model-file.ts');
  const { randomWeights } = await source('engine/weights/weights.ts');
  const { tensorsOf } = await source('model/architecture/walk.ts');
  mkdirSync(folder);
  writeFileSync(path.join(folder, 'config.json'), JSON.stringify(CONFIG));
  writeFileSync(path.join(folder, 'tokenizer.json'), JSON.stringify(byteTokenizer()));
  const { model } = await loadModelFile(path.join(folder, 'config.json'), {});
  await writeWeights(
    path.join(folder, 'model.safetensors'),
    tensorsOf(model),
    randomWeights(model, 0),
  );
}

/** Byte-level BPE without merges: the 256 characters that stand for bytes in GPT-2's alphabet. */
function byteTokenizer() {
  const printable = (byte) =>
    (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || byte >= 174;
  const vocab = { '<pad>': 0, '<s>': 1, '</s>': 2 };
  let other = 256;
  for (let byte = 0; byte < 256; byte++) {
    vocab[String.fromCodePoint(printable(byte) ? byte : other++)] = 3 + byte;
  }
  const special = ['<pad>', '<s>', '</s>'].map((content, id) => ({ id, content, special: true }));
  const byteLevel = { type: 'ByteLevel', add_prefix_space: false };
  return {
    added_tokens: special,
    pre_tokenizer: byteLevel,
    decoder: byteLevel,
    model: { type: 'BPE', vocab, merges: [] },
  };
}

function convert(folder, file, dtype) {
  const words = [`${root}bin/run.js`, 'convert-checkpoint', folder, file, '--dtype', dtype];
  execFileSync(process.execPath, words, { stdio: ['ignore', 'ignore', 'inherit'] });
}
