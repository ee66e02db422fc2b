// Compares `fit` with the published runs in fixtures/fit/published-runs.json, and rules of thumb on the same runs:
//   npm run fit:accuracy             writes docs/fit-accuracy.md and src/estimate/fit/accuracy-data.ts
//   npm run fit:accuracy -- PATTERN  prints the runs whose name or group matches, and writes nothing
// The page also has the answers of the npm package fitllm, which has to be there: npm install --no-save fitllm@2.18.0
import { spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const runs = JSON.parse(readFileSync(`${root}fixtures/fit/published-runs.json`, 'utf8'));
const pattern = process.argv[2] && new RegExp(process.argv[2], 'i');

/** Tokens that each request of the kind `request` generates. */
const GENERATED = 2048;

/** The answer of `fit --json`. */
function answerOf({ arguments: line }) {
  return new Promise((resolve) => {
    const args = [`${root}bin/run.js`, 'fit', ...line.split(' '), '--json'];
    const child = spawn(process.execPath, args, { cwd: root });
    let text = '';
    child.stdout.on('data', (part) => {
      text += part;
    });
    child.on('close', () => resolve(JSON.parse(text)));
  });
}

const memoryOf = ({ adapters, training, serving, purpose }) =>
  (purpose === 'lora' || purpose === 'qlora'
    ? adapters.fit
    : purpose === 'training'
      ? training.fit
      : serving.fit
  ).total;

const speed = (expected, range) => ({ expected, range });

/** Estimate and range of nine of ten runs by kind of run; speeds, or bytes. */
const ESTIMATES = {
  decoding: ({ serving: { fit } }) =>
    speed(fit.decode.tokensPerSecond.expected.value, fit.decode.published),
  step: ({ serving: { fit, setting } }) => ESTIMATES.decoding({ serving: { fit, setting } }),
  request: ({ serving: { fit } }) => {
    const seconds =
      fit.prefill.seconds.expected.value + GENERATED * fit.decode.seconds.expected.value;
    const { lower, upper } = fit.decode.published;
    const { value } = fit.decode.tokensPerSecond.expected;
    const rate = GENERATED / seconds;
    const range = { lower: (rate * lower) / value, upper: (rate * upper) / value };
    return speed(rate, range);
  },
  prefill: ({ serving: { fit } }) => ({
    expected: 1 / fit.prefill.seconds.expected.value,
    range: { lower: 1 / fit.prefill.published.upper, upper: 1 / fit.prefill.published.lower },
  }),
  training: ({ training: { fit } }) => speed(fit.step.tokensPerSecond.value, fit.step.published),
  server: ({ serving: { throughput } }) => {
    const { expected, lower, upper } = throughput.full.tokensPerSecond;
    return speed(expected.value, { lower: lower.value, upper: upper.value });
  },
  memory: (answer) => {
    const { lower, expected, upper } = memoryOf(answer);
    return {
      expected: Number(expected.value),
      range: { lower: Number(lower.value), upper: Number(upper.value) },
    };
  },
};

/** Published value in the unit of the estimate. */
function publishedValue({ kind, published: [value], unit }, answer) {
  if (kind === 'request') return GENERATED / value;
  if (kind === 'step') return (1000 / value) * answer.serving.setting.batch;
  if (unit === 'ms') return 1000 / value;
  if (unit === 'GiB') return value * 2 ** 30;
  return value;
}

/** Bytes of the weights and bandwidth of the run, for rules of thumb. */
function thumb({ kind }, answer) {
  const { parameters, cluster, serving, training, purpose } = answer;
  const weights = Number(serving?.fit.wholeWeights.value ?? 0);
  if (kind === 'decoding' || kind === 'request' || kind === 'step') {
    return (cluster.gpu.bandwidth * (serving.setting.tensorParallel ?? 1)) / weights;
  }
  if (kind !== 'memory') return null;
  if (purpose === 'training')
    return (16 * Number(parameters)) / (training.setting.zero === 3 ? cluster.gpus : 1);
  if (purpose === 'serving') return 1.2 * weights;
  return (purpose === 'lora' ? 2 : 0.5) * 1.2 * Number(parameters);
}

const fitllm = await import('fitllm').catch(() => null);
if (!fitllm && !pattern) throw new Error('run npm install --no-save fitllm@2.18.0 first');

/** Answer of fitllm to the same question: tokens per second, or bytes of serving. It has no other. */
function fitllmAnswer({ kind, arguments: line }, { parameters, cluster, serving }) {
  const isDecoding = kind === 'decoding' && serving?.setting.batch === 1;
  const isMemory = kind === 'memory' && /--for serving/.test(line);
  if ((!isDecoding && !isMemory) || cluster.gpus > 1) return null;
  const config = JSON.parse(readFileSync(root + line.split(' ')[0], 'utf8'));
  let model;
  try {
    // Refuses architectures that it does not model.
    model = fitllm.parseHfConfig(line, config, 2 * Number(parameters));
  } catch {
    return null;
  }
  model.totalParams = Number(parameters) / 1e9;
  const weightBpw = (8 * Number(serving.fit.wholeWeights.value)) / Number(parameters);
  const { memoryBytes, bandwidth, label } = cluster.gpu;
  const gpu = { name: label, vramGB: memoryBytes / 2 ** 30, bandwidthGBs: bandwidth / 1e9 };
  const device = fitllm.gpuDevice(gpu, 'linux-headless');
  if (isDecoding) return fitllm.estimateSpeed(model, device, weightBpw);
  const { used, reserve } = fitllm.simulate(model, device, serving.setting.context, {
    weightBpw,
    kvBits: 16,
  });
  return (used - reserve) * 2 ** 30;
}

/** Groups of the page: the first whose test holds. */
const GROUPS = [
  [
    'training, FP8 and mixtures',
    ({ kind, group, lacks = '' }) =>
      kind === 'training' && (/FP8|MoE|Blackwell/.test(group) || /expert|FP8/.test(lacks)),
  ],
  ['training, dense', ({ kind }) => kind === 'training'],
  ['prefill', ({ kind }) => kind === 'prefill'],
  ['server throughput', ({ kind }) => kind === 'server'],
  [
    'memory of serving',
    ({ kind, arguments: line }) => kind === 'memory' && /--for serving/.test(line),
  ],
  ['memory of LoRA', ({ kind, arguments: line }) => kind === 'memory' && /--for lora/.test(line)],
  ['memory of QLoRA', ({ kind, arguments: line }) => kind === 'memory' && /--for qlora/.test(line)],
  ['memory of training', ({ kind }) => kind === 'memory'],
  ['decoding, HBM', ({ answer }) => /hbm/i.test(memoryKind(answer))],
  ['decoding, GDDR', ({ answer }) => /gddr/i.test(memoryKind(answer))],
  ['decoding, shared memory', () => true],
];

const memoryKind = (answer) => answer.serving?.fit.decode?.published?.group ?? '';

/** Value below which a share of the others lies, interpolated. */
function quantile(values, share) {
  const sorted = [...values].sort((a, b) => a - b);
  const place = share * (sorted.length - 1);
  const below = Math.floor(place);
  const above = Math.min(below + 1, sorted.length - 1);
  return sorted[below] + (place - below) * (sorted[above] - sorted[below]);
}

const median = (values) => quantile(values, 0.5);

/** Runs that share a constant: one generation of cards, one type of the weights or products. */
const cellOf = ({ arguments: line }, { cluster }) =>
  `${cluster.gpu.architecture} ${/--(?:dtype|precision) (\S+)/.exec(line)?.[1] ?? 'stored'}`;

/** Half that a run belongs to, by its name alone. */
const halfOf = ({ name }) => createHash('sha256').update(name).digest()[0] % 2;

/**
 * Runs of a group, their constants from the other half: the estimates of each cell are scaled by its median there, or by
 * the median of the group where the other half has fewer than two runs of the cell. The range is the one that `fit` shows.
 */
function heldOut(group) {
  return group.map((row) => {
    const others = group.filter((other) => halfOf(other) !== halfOf(row));
    const same = others.filter(({ cell }) => cell === row.cell);
    const scale = median((same.length < 2 ? others : same).map(({ ratio }) => ratio));
    const ratio = row.ratio / scale;
    return { ratio, isInside: row.low <= 1 / ratio && 1 / ratio <= row.high };
  });
}

/** Runs of a group from which a half is worth a fit. */
const ENOUGH_FOR_HALVES = 16;

const comparable = runs.filter(
  ({ kind, name, group, parts }) =>
    // Parts of the memory are compared in test/estimate/fit/measurements.test.ts.
    kind in ESTIMATES && !parts && (!pattern || pattern.test(`${group} ${name}`)),
);
const rows = [];
const queue = [...comparable];
await Promise.all(
  Array.from({ length: Math.min(2, os.availableParallelism()) }, async () => {
    for (let run = queue.shift(); run; run = queue.shift()) {
      const answer = await answerOf(run);
      try {
        const { expected, range } = ESTIMATES[run.kind](answer);
        const published = publishedValue(run, answer);
        const [title] = GROUPS.find(([, isOf]) => isOf({ ...run, answer }));
        rows.push({
          name: run.name,
          group: title,
          cell: cellOf(run, answer),
          ratio: expected / published,
          inside: range.lower <= published && published <= range.upper,
          width: range.upper / range.lower,
          low: range.lower / expected,
          high: range.upper / expected,
          rule: (thumb(run, answer) ?? Number.NaN) / published,
          fitllm: ((fitllm && fitllmAnswer(run, answer)) ?? Number.NaN) / published,
        });
      } catch (error) {
        console.error(`${run.name}: ${answer.message ?? error.message}`);
      }
    }
  }),
);

const summaries = GROUPS.map(([group]) => rows.filter((row) => row.group === group))
  .filter((group) => group.length > 0)
  .map((group) => {
    const ratios = group.map(({ ratio }) => ratio);
    const medianWhereKnown = (values) => {
      const known = values.filter((value) => !Number.isNaN(value));
      return known.length > 0 ? median(known) : null;
    };
    const held = group.length < ENOUGH_FOR_HALVES ? [] : heldOut(group);
    return {
      group: group[0].group,
      runs: group.length,
      median: median(ratios),
      least: Math.min(...ratios),
      most: Math.max(...ratios),
      inside: group.filter(({ inside }) => inside).length / group.length,
      width: median(group.map(({ width }) => width)),
      heldOutMedian: held.length > 0 ? median(held.map(({ ratio }) => ratio)) : null,
      heldOutInside:
        held.length > 0 ? held.filter(({ isInside }) => isInside).length / held.length : null,
      rule: medianWhereKnown(group.map(({ rule }) => rule)),
      fitllm: medianWhereKnown(group.map((row) => row.fitllm)),
      fitllmRuns: group.filter((row) => !Number.isNaN(row.fitllm)).length,
    };
  });

const fixed = (value) => (value === null ? '–' : value.toFixed(2));
const percent = (value) => (value === null ? '–' : `${Math.round(100 * value)}%`);

if (pattern) {
  for (const { ratio, inside, group, name } of rows.sort((a, b) =>
    a.group.localeCompare(b.group),
  )) {
    console.log(
      `${fixed(ratio).padStart(6)} ${inside ? 'inside ' : 'OUTSIDE'} ${group.padEnd(28)} ${name}`,
    );
  }
  for (const row of summaries) console.log(JSON.stringify(row));
} else {
  const table = [
    '| group | runs | median | range | inside | width | held out, median | held out, inside | rule of thumb | fitllm |',
    '|---|---|---|---|---|---|---|---|---|---|',
    ...summaries.map(
      (row) =>
        `| ${row.group} | ${row.runs} | ${fixed(row.median)} | ${fixed(row.least)}–${fixed(row.most)} | ${percent(row.inside)} | ` +
        `${fixed(row.width)} | ${fixed(row.heldOutMedian)} | ${percent(row.heldOutInside)} | ${fixed(row.rule)} | ` +
        `${row.fitllm === null ? '–' : `${fixed(row.fitllm)} (${row.fitllmRuns})`} |`,
    ),
  ].join('\n');
  const page = `${root}docs/fit-accuracy.md`;
  const text = readFileSync(page, 'utf8');
  const [start, end] = ['<!-- accuracy: start -->', '<!-- accuracy: end -->'];
  const [before, rest] = text.split(start);
  writeFileSync(page, `${before}${start}\n${table}\n${end}${rest.split(end)[1]}`);
  const keys = [
    'runs',
    'median',
    'least',
    'most',
    'inside',
    'width',
    'heldOutMedian',
    'heldOutInside',
    'rule',
    'fitllm',
  ];
  const literal = (value) => (value === null ? 'null' : String(Math.round(value * 1e4) / 1e4));
  writeFileSync(
    `${root}src/estimate/fit/accuracy-data.ts`,
    `/** Estimates of fit compared with published runs. Written by \`npm run fit:accuracy\`; not edited by hand. */\n\n` +
      `export const ACCURACY = [\n${summaries
        .map(
          (row) =>
            `  {\n    group: '${row.group}',\n${keys.map((key) => `    ${key}: ${literal(row[key])},\n`).join('')}  },\n`,
        )
        .join('')}];\n`,
  );
  console.log(table);
}
