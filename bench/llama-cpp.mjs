/**
 * Greedy tokens of llama.cpp for a GGUF file, as JSON. node-llama-cpp is no dependency: install it in a folder of its own
 * with `NODE_LLAMA_CPP_SKIP_DOWNLOAD=true npm i node-llama-cpp@3.22.1 --ignore-scripts`, and name that folder.
 *
 * node bench/llama-cpp.mjs FOLDER MODEL.gguf '[1,2,3]' 16
 */
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [folder, modelPath, prompt, count] = process.argv.slice(2);
const { resolve } = createRequire(path.join(path.resolve(folder), 'x.js'));
const { getLlama } = await import(pathToFileURL(resolve('node-llama-cpp')).href);

const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error', maxThreads: 1 });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({ contextSize: 256, batchSize: 128, threads: 1 });
const sequence = context.getSequence();
const tokens = [];
for await (const token of sequence.evaluate(JSON.parse(prompt), {
  temperature: 0,
  yieldEogToken: true,
})) {
  tokens.push(token);
  if (tokens.length >= Number(count)) break;
}
console.log(JSON.stringify(tokens));
await context.dispose();
await model.dispose();
process.exit(0);
