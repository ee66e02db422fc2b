// Decoding on ONNX Runtime, token by token with a cache, and the prefill before it.
//
// MiniMind2-Small is measured beside transformers, which most people would use, and a plain implementation in PyTorch
// with a cache of fixed size; bench-60m, which has recurrent layers, beside its plain implementation. A time is that of
// STEPS tokens (32), given one by one after so many others, until their logits are in the memory of the process.
// All weights have to be read for each token, which bounds what can be met.
//
// PYTHON names a Python with PyTorch, and transformers for the first; ROUNDS (12) and THREADS (2) as elsewhere.
import { existsSync, readFileSync } from 'node:fs';
import {
  compared,
  idsOf,
  openPyTorch,
  root,
  setting,
  source,
  THREADS,
  timeOf,
} from './forward-contenders.js';

export const title = `Decoding with a cache, threads: ${THREADS}`;

const STEPS = setting('STEPS', 32);
const PREFILL = 512;

/** Largest ratios to transformers and to PyTorch, by the number of tokens before, and of the prefill. */
const MODELS = [
  {
    name: 'MiniMind2-Small',
    config: 'minimind/minimind2-small.yaml',
    peers: {
      transformers: { script: 'transformers_peer.py', settingsOf: asLlama },
      pytorch: { script: 'forward_minimind_pytorch.py', settingsOf: withSizes },
    },
    lengths: [16, 512, 2000],
    aims: { transformers: { 16: 0.33, 512: 0.3, 2000: 0.3 }, pytorch: { prefill: 0.6 } },
  },
  {
    name: 'bench-60m',
    config: 'hybrid/bench-60m.yaml',
    peers: {
      pytorch: {
        script: 'forward_pytorch.py',
        settingsOf: ({ model }) => ({ ...model, scan: 'chunked' }),
      },
    },
    lengths: [16, 512],
    aims: { pytorch: { prefill: 0.5 } },
  },
];

/** Model with the sizes that the family derives and the other programs need. */
function withSizes({ model }) {
  return { ...model, intermediate_size: 1408, num_key_value_heads: 2 };
}

/** MiniMind 2 is Llama with other sizes. */
export function asLlama(document) {
  const { vocab_size, hidden_size, intermediate_size, ...more } = withSizes(document);
  const { num_hidden_layers, num_attention_heads, num_key_value_heads } = more;
  return {
    model_type: 'llama',
    ...{ vocab_size, hidden_size, intermediate_size },
    ...{ num_hidden_layers, num_attention_heads, num_key_value_heads },
    rms_norm_eps: 1e-5,
    tie_word_embeddings: true,
  };
}

export async function run() {
  const results = [];
  const facts = {};
  for (const wanted of MODELS) {
    const measured = await measureModel(wanted);
    results.push(...measured.results);
    facts[wanted.name] = measured.facts;
  }
  return { threads: THREADS, steps: STEPS, facts, results };
}

async function measureModel({ name, config, peers, lengths, aims }) {
  const { loadModelFile } = await source('input/model-input/read-model-file.ts');
  const { openOnnx } = await source('engine/onnx/onnx-engine.ts');
  const { randomWeights } = await source('engine/weights/weights.ts');
  const { model, document } = await loadModelFile(`${root}configs/${config}`, {});
  const engine = await openOnnx({ threads: THREADS });
  const program = await engine.load(model, randomWeights(model, 0), {
    blocks: false,
    decoding: { totalTokens: Math.max(PREFILL, ...lengths) + STEPS },
  });
  const opened = await openPeers(peers, document);
  const contenders = {};
  const pairs = [];
  const measure = (what, aimOf, ours, request) => {
    const label = `${name}, ${what}`;
    contenders[`ours ${what}`] = { name: label, time: ours, close: () => {} };
    for (const [peer, { run }] of Object.entries(opened.running)) {
      const key = `${peer} ${what}`;
      contenders[key] = { name: peer, time: () => run(request), close: () => {} };
      pairs.push({ candidate: `ours ${what}`, baseline: key, aim: aimOf(peer) });
    }
  };
  for (const before of lengths) {
    measure(
      `${STEPS} tokens after ${before}`,
      (peer) => aims[peer]?.[before],
      () => decodingTime(program, model, { before, steps: STEPS }),
      { batch: 1, tokens: before + STEPS, steps: STEPS },
    );
  }
  measure(
    `prefill of ${PREFILL}`,
    (peer) => aims[peer]?.prefill,
    () => prefillTime(program, model),
    { batch: 1, tokens: PREFILL },
  );
  const results = await compared(contenders, pairs);
  const peakMegabytes = {
    ours: peakOf(process.pid),
    ...Object.fromEntries(
      Object.entries(opened.running).map(([peer, { pid }]) => [peer, peakOf(pid)]),
    ),
  };
  for (const { close } of Object.values(opened.running)) close();
  await program.release();
  return { results, facts: { peers: opened.facts, peakMegabytes } };
}

async function openPeers(peers, document) {
  const running = {};
  const facts = {};
  for (const [name, { script, settingsOf }] of Object.entries(peers)) {
    const settings = settingsOf(document);
    const peer = await openPyTorch({ script, settings, threads: THREADS });
    facts[name] = peer.missing ?? peer.facts;
    if (!peer.missing) running[name] = peer;
  }
  return { running, facts };
}

/** Milliseconds of so many tokens after others, given one by one. */
export async function decodingTime(program, model, { before, steps }) {
  const { Decoder } = await source('engine/decoder.ts');
  const tokens = [...idsOf(model, 1, before + steps).data];
  const decoder = new Decoder(program);
  await decoder.append(tokens.slice(0, before));
  return timeOf(async () => {
    for (const token of tokens.slice(before)) await decoder.append([token]);
  });
}

/** With the logits of all tokens, as the others compute them. */
async function prefillTime(program, model) {
  const { Decoder } = await source('engine/decoder.ts');
  const tokens = [...idsOf(model, 1, PREFILL).data];
  return timeOf(() => new Decoder(program).append(tokens, PREFILL));
}

/** Most memory of a process in megabytes, where the system tells it. */
export function peakOf(pid) {
  const file = `/proc/${pid}/status`;
  const [, kilobytes] = existsSync(file)
    ? (/VmHWM:\s+(\d+)/.exec(readFileSync(file, 'utf8')) ?? [])
    : [];
  return kilobytes ? Math.round(kilobytes / 1024) : 'not known';
}
