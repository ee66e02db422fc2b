// `npm run bench` runs all benchmarks, `npm run bench -- start-up` one, and prints a table of what each finds beside its
// aim. `--save` keeps the results, `--nodes` measures the start-up with several versions of Node, `--compare REV` builds
// another revision and lets both take turns, `--pairs N` of them (3), and `--json` prints the rows alone.
import { mkdirSync, writeFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { compareRevisions } from './compare-revisions.js';
import { circumstances } from './measure.js';
import { tableOf } from './table.js';

const BENCHMARKS = {
  'start-up': () => import('./start-up.js'),
  'compare-many': () => import('./compare-many.js'),
  explorer: () => import('./explorer.js'),
  'meta-device': () => import('./meta-device.js'),
  forward: () => import('./forward.js'),
  'forward-minimind': () => import('./forward-minimind.js'),
  'forward-families': () => import('./forward-families.js'),
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
  parts: () => import('./parts.js'),
  data: () => import('./data.js'),
};

const { values: flags, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: {
    save: { type: 'boolean', default: false },
    nodes: { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
    compare: { type: 'string' },
    pairs: { type: 'string', default: '3' },
  },
});
const unknown = wanted.filter((name) => !Object.hasOwn(BENCHMARKS, name));
if (unknown.length > 0) {
  console.error(
    `no benchmark ${unknown.join(', ')}; there are: ${Object.keys(BENCHMARKS).join(', ')}`,
  );
  process.exit(2);
}
const names = wanted.length > 0 ? wanted : Object.keys(BENCHMARKS);

if (flags.compare === undefined) await runAll();
else compareRevisions({ revision: flags.compare, names, pairs: Number(flags.pairs) });

async function runAll() {
  const rows = [];
  for (const name of names) {
    const { title, run } = await BENCHMARKS[name]();
    const around = circumstances();
    if (!flags.json)
      console.log(
        `${title}\n  Node ${around.node}, ${around.cores} × ${around.cpu}, load ${around.load.join(' ')}`,
      );
    const { skipped, variant, results = [], ...facts } = await run({ nodes: flags.nodes });
    const own = results.map((row) => ({ benchmark: name, ...row }));
    rows.push(...own);
    if (flags.json) continue;
    if (skipped) {
      console.log(`  skipped: ${skipped}`);
      continue;
    }
    for (const [what, value] of Object.entries(facts))
      console.log(`  ${what}: ${JSON.stringify(value)}`);
    console.log(`${tableOf(own)}\n`);
    if (flags.save) save([name, variant], { title, ...around, ...facts, results });
  }
  if (flags.json) console.log(JSON.stringify(rows));
  else if (names.length > 1) console.log(tableOf(rows));
}

function save(parts, results) {
  const folder = new URL('./results/', import.meta.url);
  mkdirSync(folder, { recursive: true });
  const node = flags.nodes ? 'nodes' : `node${process.versions.node.split('.')[0]}`;
  const name = [results.date, ...parts, node].filter(Boolean).join('-');
  writeFileSync(new URL(`${name}.json`, folder), `${JSON.stringify(results, null, 2)}\n`);
}
