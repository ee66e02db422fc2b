// `npm run bench` runs all benchmarks, `npm run bench -- start-up` one; `--save` keeps the results,
// `--nodes` measures the start-up with several versions of Node.
import { mkdirSync, writeFileSync } from 'node:fs';
import { circumstances } from './measure.js';

const BENCHMARKS = {
  'start-up': () => import('./start-up.js'),
  'compare-many': () => import('./compare-many.js'),
  explorer: () => import('./explorer.js'),
  'meta-device': () => import('./meta-device.js'),
  forward: () => import('./forward.js'),
  'forward-minimind': () => import('./forward-minimind.js'),
  'forward-hybrids': () => import('./forward-hybrids.js'),
  'long-contexts': () => import('./long-contexts.js'),
  decode: () => import('./decode.js'),
  'decode-llama-cpp': () => import('./decode-llama-cpp.js'),
  'forward-device': () => import('./forward-device.js'),
  'fit-this-machine': () => import('./fit-this-machine.js'),
  hash: () => import('./hash.js'),
  random: () => import('./random.js'),
  'index-safetensors': () => import('./index-safetensors.js'),
  'low-rank': () => import('./low-rank.js'),
  convert: () => import('./convert.js'),
  data: () => import('./data.js'),
};

const words = process.argv.slice(2);
const isSaved = words.includes('--save');
const nodes = words.includes('--nodes');
const wanted = words.filter((word) => !word.startsWith('-'));
const unknown = wanted.filter((name) => !Object.hasOwn(BENCHMARKS, name));
if (unknown.length > 0) {
  console.error(
    `no benchmark ${unknown.join(', ')}; there are: ${Object.keys(BENCHMARKS).join(', ')}`,
  );
  process.exit(2);
}

const time = (value) => (value < 10 ? value.toPrecision(3) : value.toFixed(0));
const ratio = (value) => (value < 1 ? value.toPrecision(3) : value.toFixed(2));

/** Of those results that have them. */
const speeds = (all) => {
  const { candidate, baseline } = all?.median ?? {};
  return all ? `; ${candidate.toFixed(0)} tokens/s, baseline ${baseline.toFixed(0)} tokens/s` : '';
};

for (const name of wanted.length > 0 ? wanted : Object.keys(BENCHMARKS)) {
  const { title, run } = await BENCHMARKS[name]();
  const around = circumstances();
  console.log(
    `${title}\n  Node ${around.node}, ${around.cores} × ${around.cpu}, load ${around.load.join(' ')}`,
  );
  const { skipped, variant, results = [], ...more } = await run({ nodes });
  if (skipped) {
    console.log(`  skipped: ${skipped}`);
    continue;
  }
  for (const { name: what, milliseconds, tokensPerSecond, ratios, aim, met } of results) {
    const figures = `${ratio(ratios.minimum)} × (minimum), ${ratio(ratios.median)} × (median)`;
    const verdict = aim === undefined ? '' : `, aim ${ratio(aim)} ×: ${met ? 'met' : 'missed'}`;
    const [median, baseline] = [milliseconds.median.candidate, milliseconds.median.baseline];
    console.log(
      `  ${what}: ${figures}${verdict}; median ${time(median)} ms, baseline ${time(baseline)} ms${speeds(tokensPerSecond)}`,
    );
  }
  for (const [what, value] of Object.entries(more))
    console.log(`  ${what}: ${JSON.stringify(value)}`);
  if (isSaved) {
    const folder = new URL('./results/', import.meta.url);
    mkdirSync(folder, { recursive: true });
    const file = new URL(
      `${around.date}-${[name, variant].filter(Boolean).join('-')}-node${nodes ? 's' : process.versions.node.split('.')[0]}.json`,
      folder,
    );
    writeFileSync(file, `${JSON.stringify({ title, ...around, ...more, results }, null, 2)}\n`);
  }
}
