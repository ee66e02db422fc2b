// Products of one token with 24 weights [2048, 2048], in float32 and with 8 and 4 bits:
//   npm run build && node bench/quantized.js [ROUNDS]
// Each round runs every contender once; the ratios are to float32 in the same round.
import os from 'node:os';
import * as esbuild from 'esbuild';

const rounds = Number(process.argv[2] ?? 12);
const SIZE = 2048;
const LAYERS = 24;
const FORMS = [
  undefined,
  ...[8, 4].flatMap((bits) => [32, 64, 128].map((group) => ({ bits, group }))),
];

/** The engine of this checkout, which the build does not export. */
const bundled = await esbuild.build({
  stdin: {
    contents: `
      export { openOnnx } from './src/engine/onnx/onnx-engine.ts';
      export { randomWeights } from './src/engine/weights/weights.ts';
      export { linear } from './src/model/architecture/constructors/basic-layers.ts';`,
    resolveDir: process.cwd(),
    loader: 'ts',
  },
  bundle: true,
  write: false,
  platform: 'node',
  format: 'cjs',
  define: { 'import.meta.url': JSON.stringify(import.meta.url) },
  external: ['onnxruntime-node', 'webgpu'],
  logLevel: 'error',
});
const module = { exports: {} };
const { createRequire } = await import('node:module');
new Function('module', 'exports', 'require', bundled.outputFiles[0].text)(
  module,
  module.exports,
  createRequire(import.meta.url),
);
const { openOnnx, randomWeights, linear } = module.exports;

const threads = Math.min(2, os.availableParallelism());
const engine = await openOnnx({ threads });
const layers = Array.from({ length: LAYERS }, (_, index) =>
  linear(`layers.${index}`, SIZE, SIZE, { bias: false }),
);
const stack = { kind: 'sequence', name: 'stack', layers };
const source = randomWeights(stack, 0);
const contenders = [];
for (const weightForm of FORMS) {
  const name = weightForm ? `int${weightForm.bits}-${weightForm.group}` : 'float32';
  const program = await engine.load(stack, source, { weightForm });
  contenders.push({ name, program, times: [] });
}
const inputs = [{ shape: [1, 1, SIZE], data: new Float32Array(SIZE).fill(0.1) }];
for (let round = -2; round < rounds; round++) {
  for (const { program, times } of contenders) {
    const start = performance.now();
    await program.run({ inputs });
    if (round >= 0) times.push(performance.now() - start);
  }
}
const sorted = (times) => times.toSorted((a, b) => a - b);
const middle = (times) => sorted(times)[times.length >> 1];
console.log(
  `ONNX Runtime ${engine.info.version}, ${threads} threads, ${os.cpus()[0]?.model}, load ${os.loadavg()[0]?.toFixed(2)}`,
);
const [plain] = contenders;
for (const { name, program, times } of contenders) {
  const ratios = times.map((time, index) => plain.times[index] / time);
  console.log(
    `${name.padEnd(9)} min ${sorted(times)[0].toFixed(2)} ms  median ${middle(times).toFixed(2)} ms  ` +
      `float32 takes ${middle(ratios).toFixed(2)} times as long  ${(program.weightBytes / 1e6).toFixed(1)} MB`,
  );
  await program.release();
}
await engine.close();
