// Compares `fit` with the published runs in fixtures/fit/published-runs.json, and rules of thumb on the same runs:
//   npm run fit:accuracy             writes docs/fit-accuracy.md and src/estimate/fit/accuracy-data.ts
//   npm run fit:accuracy -- PATTERN  prints the runs whose name or group matches, and writes nothing
import { spawn } from 'node:child_process';
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
          ratio: expected / published,
          inside: range.lower <= published && published <= range.upper,
          width: range.upper / range.lower,
          rule: (thumb(run, answer) ?? Number.NaN) / published,
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
    const rules = group.map(({ rule }) => rule).filter((rule) => !Number.isNaN(rule));
    return {
      group: group[0].group,
      runs: group.length,
      median: median(ratios),
      least: Math.min(...ratios),
      most: Math.max(...ratios),
      inside: group.filter(({ inside }) => inside).length / group.length,
      width: median(group.map(({ width }) => width)),
      // Ends between which nine of ten published figures lie, as shares of the estimate.
      low: quantile(ratios, 0.95) ** -1,
      high: quantile(ratios, 0.05) ** -1,
      rule: rules.length > 0 ? median(rules) : null,
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
    '| group | runs | median | range | inside | width | rule of thumb, median |',
    '|---|---|---|---|---|---|---|',
    ...summaries.map(
      (row) =>
        `| ${row.group} | ${row.runs} | ${fixed(row.median)} | ${fixed(row.least)}–${fixed(row.most)} | ${percent(row.inside)} | ` +
        `${fixed(row.width)} | ${fixed(row.rule)} |`,
    ),
  ].join('\n');
  const page = `${root}docs/fit-accuracy.md`;
  const text = readFileSync(page, 'utf8');
  const [start, end] = ['<!-- accuracy: start -->', '<!-- accuracy: end -->'];
  const [before, rest] = text.split(start);
  writeFileSync(page, `${before}${start}\n${table}\n${end}${rest.split(end)[1]}`);
  const keys = ['runs', 'median', 'least', 'most', 'inside', 'width', 'rule'];
  const literal = (value) => (value === null ? 'null' : String(Math.round(value * 1000) / 1000));
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
