// `npm run bench` runs all benchmarks, `npm run bench -- start-up` one; `--save` keeps the results.
import { mkdirSync, writeFileSync } from 'node:fs';
import { circumstances } from './measure.js';

const BENCHMARKS = { 'start-up': () => import('./start-up.js') };

const words = process.argv.slice(2);
const wanted = words.filter((word) => !word.startsWith('-'));
const unknown = wanted.filter((name) => !Object.hasOwn(BENCHMARKS, name));
if (unknown.length > 0) {
  console.error(
    `no benchmark ${unknown.join(', ')}; there are: ${Object.keys(BENCHMARKS).join(', ')}`,
  );
  process.exit(2);
}

for (const name of wanted.length > 0 ? wanted : Object.keys(BENCHMARKS)) {
  const { title, run } = await BENCHMARKS[name]();
  const around = circumstances();
  console.log(
    `${title}\n  Node ${around.node}, ${around.cores} × ${around.cpu}, load ${around.load.join(' ')}`,
  );
  const results = await run();
  for (const { name: what, milliseconds, ratios, aim, met } of results) {
    const figures = `${ratios.minimum.toFixed(2)} × (minimum), ${ratios.median.toFixed(2)} × (median)`;
    const verdict = aim === undefined ? '' : `, aim ${aim} ×: ${met ? 'met' : 'missed'}`;
    const [median, baseline] = [milliseconds.median.candidate, milliseconds.median.baseline];
    console.log(
      `  ${what}: ${figures}${verdict}; median ${median.toFixed(0)} ms, baseline ${baseline.toFixed(0)} ms`,
    );
  }
  if (words.includes('--save')) {
    const folder = new URL('./results/', import.meta.url);
    mkdirSync(folder, { recursive: true });
    const file = new URL(
      `${around.date}-${name}-node${process.versions.node.split('.')[0]}.json`,
      folder,
    );
    writeFileSync(file, `${JSON.stringify({ title, ...around, results }, null, 2)}\n`);
  }
}
