// What a forward pass is measured against: engines, a model's own matrix products, and implementations in PyTorch,
// all of it on 1 × TOKENS tokens unless a run says otherwise. `PYTHON` names another Python than `python3`, `ROUNDS` another number of rounds
// than 12, `THREADS` another number of threads than 2.
//
// A model's own products are, in one ONNX graph, each once: those of every linear layer, without bias, with a
// weight of its own; and those of attention as ONNX Runtime's MultiHeadAttention computes them, query by key and
// probability by value over the whole square of every head, local or global, masked or not. What a scan
// multiplies is no matrix product.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';
import { summary } from './measure.js';

export const root = fileURLToPath(new URL('..', import.meta.url));
export const source = (file) => import(`../src/${file}`);
export const setting = (name, otherwise) => Number(process.env[name] || otherwise);

register(); // What is measured is TypeScript.

export const TOKENS = 512;
export const THREADS = setting('THREADS', 2);
export const ROUNDS = setting('ROUNDS', 12);
/** Milliseconds between turns: the threads of a library spin for a while before they sleep. */
const REST = 100;

/**
 * Lets contenders take turns and closes them; those that are undefined are not there.
 * @param pairs Whom to compare with whom: `candidate` and `baseline` by their keys, and the `aim`.
 */
export async function compared(all, pairs) {
  const contenders = Object.fromEntries(Object.entries(all).filter(([, each]) => each));
  const results = await measured(contenders, pairs);
  for (const { close } of Object.values(contenders)) await close();
  return results;
}

/** Lets contenders, all of them there, take turns, and leaves them open. @param pairs As above. */
export async function measured(contenders, pairs) {
  const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  await oneRound(contenders);
  for (let round = 0; round < ROUNDS; round++) {
    for (const [name, milliseconds] of await oneRound(contenders)) times[name].push(milliseconds);
  }
  return pairs
    .filter(({ candidate, baseline }) => candidate in times && baseline in times)
    .map(({ candidate, baseline, aim }) =>
      summary({
        name: `${contenders[candidate].name} against ${contenders[baseline].name}`,
        times: { candidate: times[candidate], baseline: times[baseline] },
        aim,
      }),
    );
}

/** Each has its turn. Gives names and milliseconds. */
export async function oneRound(contenders) {
  const times = [];
  for (const [name, { time }] of Object.entries(contenders)) {
    await setTimeout(REST);
    times.push([name, await time()]);
  }
  return times;
}

export async function timeOf(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

export async function timedOnnx(model) {
  const { openOnnx } = await source('engine/onnx/onnx-engine.ts');
  return timedEngine('minimind', await openOnnx({ threads: THREADS }), model);
}

/** It has one thread, whatever is asked for. */
export async function timedWasm(model) {
  const { openTfjs } = await source('engine/tfjs/tfjs-engine.ts');
  const engine = await openTfjs({ threads: THREADS, backend: 'wasm' });
  return timedEngine('minimind on WebAssembly', engine, model);
}

async function timedEngine(name, engine, model) {
  const { randomWeights } = await source('engine/weights/weights.ts');
  const program = await engine.load(model, randomWeights(model, 0));
  const ids = idsOf(model, 1, TOKENS);
  return {
    name,
    version: engine.info.version,
    time: () => timeOf(() => program.run({ ids })),
    close: () => program.release(),
  };
}

/** The same as PyTorch's implementations take. */
export function idsOf(model, batch, tokens) {
  const vocabulary = model.embedding.weight.shape[0];
  const data = Int32Array.from({ length: batch * tokens }, (_, at) => (at * 7919) % vocabulary);
  return { batch, tokens, data };
}

/** The products of a model, [rows, inner] by [inner, columns], `times` over; `weight` says of which kind. */
async function productsOf(model) {
  const { walk } = await source('model/architecture/walk.ts');
  return walk(model).flatMap(({ layer }) => {
    if (layer.kind === 'linear') {
      const [columns, inner] = layer.weight.shape;
      return [{ rows: TOKENS, inner, columns, times: 1, weight: true }];
    }
    if (layer.kind !== 'attention') return [];
    const { heads: times, headDim } = layer;
    return [
      { rows: TOKENS, inner: headDim, columns: TOKENS, times, weight: false },
      { rows: TOKENS, inner: TOKENS, columns: headDim, times, weight: false },
    ];
  });
}

export async function timedProducts(model) {
  const { GraphBuilder } = await source('engine/onnx/graph.ts');
  const { encodeModel } = await source('engine/onnx/proto.ts');
  const { InferenceSession, Tensor } = createRequire(import.meta.url)('onnxruntime-node');
  const products = await productsOf(model);
  const graph = new GraphBuilder();
  const feeds = {};
  const input = (...shape) => {
    const name = shape.join('x');
    const elements = shape.reduce((product, size) => product * size, 1);
    feeds[name] ??= new Tensor('float32', new Float32Array(elements).fill(1 / 64), shape);
    return graph.input(name, 'f32', shape);
  };
  for (const [index, { rows, inner, columns, times, weight }] of products.entries()) {
    const output = weight
      ? graph.op('Gemm', [input(rows, inner), initializer(graph, index, [columns, inner])], {
          attributes: { transB: 1 },
        })
      : graph.op('MatMul', [input(times, rows, inner), input(times, inner, columns)]);
    // Only the last leaves the graph: the others are computed all the same, and nothing is copied.
    if (index === products.length - 1) graph.output(output);
  }
  const session = await InferenceSession.create(encodeModel(graph.build('products')), {
    executionProviders: ['cpu'],
    intraOpNumThreads: THREADS,
    graphOptimizationLevel: 'disabled', // It would compute equal products of equal inputs once.
    logSeverityLevel: 4,
  });
  const gigaflops = products.map(
    (each) => 2e-9 * each.rows * each.inner * each.columns * each.times,
  );
  return {
    name: 'its own matrix products',
    facts: {
      count: products.reduce((sum, { times }) => sum + times, 0),
      gigaflops: Math.round(10 * gigaflops.reduce((sum, each) => sum + each, 0)) / 10,
    },
    time: () => timeOf(() => session.run(feeds)),
    close: () => session.release(),
  };
}

function initializer(graph, index, shape) {
  const raw = new Uint8Array(new Float32Array(shape[0] * shape[1]).fill(1 / 64).buffer);
  return graph.initializer({ name: `weight.${index}`, type: 'f32', shape, bytes: { raw } });
}

/** The same products on the engine in WebAssembly, in its fast form: of two plain matrices, weights [in, out]. */
export async function timedWasmProducts(model) {
  const { openBackend } = await source('engine/tfjs/backends.ts');
  const { onBackend, scoped } = await source('engine/tfjs/packages.ts');
  const backend = await openBackend('wasm', THREADS);
  const { tf } = backend;
  const matrix = (rows, columns) => tf.keep(tf.fill([rows, columns], 1 / 64));
  const inputs = new Map();
  const input = (rows, columns) => {
    const key = `${rows} ${columns}`;
    if (!inputs.has(key)) inputs.set(key, matrix(rows, columns));
    return inputs.get(key);
  };
  const products = (await productsOf(model)).map(({ rows, inner, columns, times, weight }) => ({
    times,
    a: input(rows, inner),
    b: weight ? matrix(inner, columns) : input(inner, columns),
  }));
  const all = () => {
    let last;
    for (const { a, b, times } of products) {
      for (let i = 0; i < times; i++) last = tf.matMul(a, b);
    }
    return last.dataSync();
  };
  return {
    name: 'its own matrix products on WebAssembly',
    time: () => timeOf(() => onBackend(backend, () => scoped(tf, all))),
    close: () => {},
  };
}

/** Gives undefined where Python or PyTorch is not there. */
export async function timedPyTorch(script, settings, threads) {
  const peer = await openPyTorch({ script, settings, threads });
  if (peer.missing) return undefined;
  return {
    name: `a plain PyTorch implementation, threads: ${threads}`,
    facts: peer.facts,
    time: () => peer.run({ batch: 1, tokens: TOKENS }),
    close: peer.close,
  };
}

/**
 * An implementation in PyTorch, in a process of its own; see pytorch_peer.py.
 * @param wish `settings` of the model, the `device`, `cpu` or `card`, and a file of `weights`.
 * @returns `missing`, why Python or PyTorch is not there; or `facts` and `run`, which gives milliseconds.
 */
export async function openPyTorch({ script, settings, threads, device = 'cpu', weights = [] }) {
  const python = process.env.PYTHON || 'python3';
  const words = [`${root}bench/${script}`, JSON.stringify(settings), device, threads, ...weights];
  const child = spawn(python, words, { stdio: ['pipe', 'pipe', 'pipe'] });
  let told = '';
  child.stderr.on('data', (text) => {
    told = `${told}${text}`.slice(-2000);
  });
  child.on('error', ({ message }) => {
    told = message; // Then there are no lines.
  });
  child.stdin.on('error', () => {}); // It has ended, which its lines show.
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => {
    const { value } = await lines.next();
    return value === undefined
      ? { error: told.trim().split('\n').at(-1) || 'it ended' }
      : JSON.parse(value);
  };
  const facts = await answer();
  if (facts.error) return { missing: `${python}: ${facts.error}` };
  return {
    facts,
    pid: child.pid,
    async run({ batch, tokens, steps = 0, compute = 'f32', logits = null }) {
      child.stdin.write(`${JSON.stringify({ batch, tokens, steps, compute, logits })}\n`);
      const found = await answer();
      if (found.error) throw new Error(`PyTorch: ${found.error}`);
      return found;
    },
    close: () => child.stdin.end(),
  };
}

/** A file of weights for another implementation. @param tensors The model's parameters. */
export async function writeWeights(file, tensors, weights) {
  const { writeSafetensors } = await source('checkpoint/safetensors/write-safetensors.ts');
  const { writeWhole } = await source('base/files/write-whole.ts');
  const bytesOf = (tensor) => {
    const values = new Float32Array(tensor.elements);
    weights.read(tensor, 0, values);
    return [new Uint8Array(values.buffer)];
  };
  const written = tensors.map((tensor) => ({
    name: tensor.name,
    shape: tensor.shape,
    dtype: 'F32',
    chunks: () => bytesOf(tensor),
  }));
  await writeWhole(file, false, (sink) => writeSafetensors(sink, written));
}
