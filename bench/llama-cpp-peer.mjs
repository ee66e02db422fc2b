/**
 * llama.cpp in a process of its own, for decode-llama-cpp.js: node-llama-cpp is no dependency (see llama-cpp.mjs).
 *
 * node bench/llama-cpp-peer.mjs FOLDER MODEL.gguf THREADS CONTEXT
 *
 * It prints `{"ready": true}`. Each line on standard input is then a request: `before`, the number of tokens that are
 * read first, and `steps`, the tokens decoded after them and timed, or 0 to time the reading. It answers with
 * milliseconds.
 */
import { createRequire } from 'node:module';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';

const [folder, modelPath, threads, contextSize] = process.argv.slice(2);
const { resolve } = createRequire(path.join(path.resolve(folder), 'x.js'));
const { getLlama } = await import(pathToFileURL(resolve('node-llama-cpp')).href);

const maxThreads = Number(threads);
const llama = await getLlama({ gpu: false, build: 'never', logLevel: 'error', maxThreads });
const model = await llama.loadModel({ modelPath });
const context = await model.createContext({
  contextSize: Number(contextSize),
  batchSize: 512,
  threads: maxThreads,
});
const sequence = context.getSequence();

async function answer({ before, steps }) {
  await sequence.clearHistory();
  const ids = Array.from({ length: before }, (_, at) => 3 + ((at * 7919) % 250));
  let start = performance.now();
  await sequence.evaluateWithoutGeneratingNewTokens(ids);
  if (steps === 0) return performance.now() - start;
  start = performance.now();
  let left = steps;
  // The token after the last is sampled as well: an argmax, small beside the rest.
  const greedy = { temperature: 0, yieldEogToken: true };
  for await (const _ of sequence.evaluate([3], greedy)) {
    left -= 1;
    if (left === 0) break;
  }
  return performance.now() - start;
}

console.log(JSON.stringify({ ready: true }));
for await (const line of createInterface({ input: process.stdin })) {
  console.log(JSON.stringify(await answer(JSON.parse(line))));
}
process.exit(0);
