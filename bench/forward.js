// A forward pass of configs/hybrid/bench-60m.yaml, 1 × 512 tokens, on ONNX Runtime: against its own matrix
// products, which no implementation can do without, and against a plain implementation in PyTorch, on as many
// threads and on one: the small steps of a scan may well go faster so.
import {
  compared,
  root,
  source,
  THREADS,
  TOKENS,
  timedOnnx,
  timedProducts,
  timedPyTorch,
} from './forward-contenders.js';

const AIMS = { products: 1.35, pytorch: 0.5, pytorchOnOne: 0.35 };

export const title = `Forward pass of 60 million parameters, 1 × ${TOKENS} tokens, threads: ${THREADS}`;

export async function run() {
  const { loadModelFile } = await source('input/model-input/read-model-file.ts');
  const { model, document } = await loadModelFile(`${root}configs/hybrid/bench-60m.yaml`, {});
  const timedPlain = (threads) => timedPyTorch('forward_pytorch.py', document.model, threads);
  const engine = await timedOnnx(model);
  const products = await timedProducts(model);
  const pytorch = await timedPlain(THREADS);
  const pytorchOnOne = THREADS > 1 ? await timedPlain(1) : undefined;
  const pairs = Object.entries(AIMS).map(([baseline, aim]) => ({
    candidate: 'engine',
    baseline,
    aim,
  }));
  const results = await compared({ engine, products, pytorch, pytorchOnOne }, pairs);
  return {
    onnxruntime: engine.version,
    threads: THREADS,
    products: products.facts,
    pytorch: pytorch?.facts ?? 'not there',
    results,
  };
}
