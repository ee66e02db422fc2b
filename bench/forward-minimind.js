// A forward pass of MiniMind2-Small, 1 × 512 tokens, on both engines: against its own matrix products, which no
// implementation can do without, on ONNX Runtime and, for the engine in WebAssembly, on its own backend's one
// thread; and against a plain implementation in PyTorch.
import {
  compared,
  source,
  THREADS,
  TOKENS,
  timedOnnx,
  timedProducts,
  timedPyTorch,
  timedWasm,
  timedWasmProducts,
} from './forward-contenders.js';

export const title = `Forward pass of MiniMind2-Small, 1 × ${TOKENS} tokens, threads: ${THREADS}`;

const PAIRS = [
  { candidate: 'engine', baseline: 'products', aim: 1.1 },
  { candidate: 'engine', baseline: 'pytorch', aim: 0.6 },
  { candidate: 'wasm', baseline: 'wasmProducts', aim: 1.1 },
];

export async function run() {
  const { loadFamily } = await source('model/architecture/families.ts');
  const family = await loadFamily('minimind');
  const { presetDocument } = await source('model/architecture/presets.ts');
  const document = presetDocument('minimind', 'minimind2-small');
  // What the family would derive, PyTorch's implementation has to be told.
  const derived = { intermediate_size: 1408, num_key_value_heads: 2 };
  const settings = family.schema.parse({ model: { ...document.model, ...derived } });
  const model = family.build(settings);
  const engine = await timedOnnx(model);
  const wasm = await timedWasm(model);
  const wasmProducts = await timedWasmProducts(model);
  const products = await timedProducts(model);
  const pytorch = await timedPyTorch('forward_minimind_pytorch.py', settings.model, THREADS);
  return {
    onnxruntime: engine.version,
    tensorflow: wasm.version,
    threads: THREADS,
    products: products.facts,
    pytorch: pytorch?.facts ?? 'not there',
    results: await compared({ engine, products, wasm, wasmProducts, pytorch }, PAIRS),
  };
}
