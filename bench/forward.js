// A forward pass of configs/hybrid/bench-60m.yaml, 1 × 512 tokens, on ONNX Runtime: against its own matrix
// products, which no implementation can do without, and against a plain implementation in PyTorch, on as many
// threads and on one: the small steps of a scan may well go faster so. All take turns. `PYTHON` names another Python than `python3`, `ROUNDS` another number of
// rounds than 12, `THREADS` another number of threads than 2.
//
// Its own products are, in one ONNX graph, each once: those of every linear layer, without bias, with a weight
// of its own; and those of attention as ONNX Runtime's MultiHeadAttention computes them, query by key and
// probability by value over the whole square of every head, local or global, masked or not. What the scan
// multiplies is no matrix product.
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { register } from 'tsx/esm/api';
import { summary } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const source = (file) => import(`../src/${file}`);
const setting = (name, otherwise) => Number(process.env[name] || otherwise);

register(); // What is measured is TypeScript.

const TOKENS = 512;
const ROUNDS = setting('ROUNDS', 12);
const THREADS = setting('THREADS', 2);
/** Milliseconds between turns: the threads of a library spin for a while before they sleep. */
const REST = 100;
const AIMS = { products: 1.5, pytorch: 1 / 2, pytorchOnOne: 1 / 2 };

export const title = `Forward pass of 60 million parameters, 1 × ${TOKENS} tokens, threads: ${THREADS}`;

export async function run() {
  const { loadModelFile } = await source('cli/model-file.ts');
  const { model, document } = await loadModelFile(`${root}configs/hybrid/bench-60m.yaml`, {});
  const engine = await timedEngine(model);
  const products = await timedProducts(model);
  const pytorch = await timedPyTorch(document.model, THREADS);
  const pytorchOnOne = THREADS > 1 ? await timedPyTorch(document.model, 1) : undefined;
  const all = Object.entries({ engine, products, pytorch, pytorchOnOne });
  const contenders = Object.fromEntries(all.filter(([, contender]) => contender));
  const times = await inTurns(contenders);
  for (const { close } of Object.values(contenders)) await close();
  const result = (baseline) =>
    summary({
      name: `minimind against ${contenders[baseline].name}`,
      times: { candidate: times.engine, baseline: times[baseline] },
      aim: AIMS[baseline],
    });
  return {
    onnxruntime: engine.version,
    threads: THREADS,
    products: products.facts,
    pytorch: pytorch?.facts ?? 'not there',
    results: Object.keys(AIMS)
      .filter((name) => name in times)
      .map(result),
  };
}

async function inTurns(contenders) {
  const times = Object.fromEntries(Object.keys(contenders).map((name) => [name, []]));
  for (let round = -1; round < ROUNDS; round++) {
    for (const [name, { time }] of Object.entries(contenders)) {
      await setTimeout(REST);
      const milliseconds = await time();
      if (round >= 0) times[name].push(milliseconds);
    }
  }
  return times;
}

async function timeOf(work) {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function timedEngine(model) {
  const { openOnnx } = await source('runtime/onnx/engine.ts');
  const { randomWeights } = await source('runtime/random-weights.ts');
  const engine = await openOnnx({ threads: THREADS });
  const program = await engine.load(model, randomWeights(model, 0));
  const vocabulary = model.embedding.weight.shape[0];
  const ids = {
    batch: 1,
    tokens: TOKENS,
    data: Int32Array.from({ length: TOKENS }, (_, at) => (at * 7919) % vocabulary),
  };
  return {
    version: engine.info.version,
    time: () => timeOf(() => program.run({ ids })),
    close: () => program.release(),
  };
}

/** The products of a model, [rows, inner] by [inner, columns], `times` over; `weight` says of which kind. */
async function productsOf(model) {
  const { walk } = await source('architecture/walk.ts');
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

async function timedProducts(model) {
  const { GraphBuilder } = await source('runtime/onnx/graph.ts');
  const { encodeModel } = await source('runtime/onnx/proto.ts');
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

/** undefined where Python or PyTorch is not there. */
async function timedPyTorch(settings, threads) {
  const python = process.env.PYTHON || 'python3';
  const words = [`${root}bench/forward_pytorch.py`, JSON.stringify(settings), TOKENS, threads];
  const child = spawn(python, words, { stdio: ['pipe', 'pipe', 'ignore'] });
  child.on('error', () => {}); // Then there are no lines.
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const { value: facts } = await lines.next();
  if (facts === undefined) return undefined;
  return {
    name: `a plain PyTorch implementation, threads: ${threads}`,
    facts: JSON.parse(facts),
    time: async () => {
      child.stdin.write('\n');
      return Number((await lines.next()).value);
    },
    close: () => child.stdin.end(),
  };
}
