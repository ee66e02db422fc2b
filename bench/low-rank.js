// The best approximation of rank 128 to a table of 32768 × 4096, read from a file in float64, beside
// numpy's exact route: the Gram matrix and eigh. `PYTHON` names another Python than `python3`.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { compare } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));
const python = process.env.PYTHON || 'python3';
const script = `${root}bench/low_rank_numpy.py`;

export const title = "Rank 128 of a table of 32768 × 4096 against numpy's Gram matrix and eigh";

const [ROWS, COLUMNS, RANK] = [32768, 4096, 128];
/** No slower than numpy; within 0.1 % of the least possible error; less memory than this. */
const AIM = { ratio: 1, excessError: 1e-3, peakMebibytes: 400 };

export async function run() {
  const known = spawnSync(python, [script], { encoding: 'utf8' });
  if (known.status !== 0) return { skipped: 'numpy is not there' };
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  try {
    return { ...JSON.parse(known.stdout), ...(await measured(folder)) };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measured(folder) {
  const table = path.join(folder, 'table.f64');
  const ours = path.join(folder, 'low-rank.mjs');
  await bundle(ours);
  // Where the engines are found.
  symlinkSync(path.join(root, 'node_modules'), path.join(folder, 'node_modules'));
  const call = (program, ...args) => {
    const { status, stdout, stderr } = spawnSync(program, args.map(String), { encoding: 'utf8' });
    if (status !== 0) throw new Error(`${program} ${args.join(' ')}: ${status}\n${stderr}`);
    return stdout && JSON.parse(stdout);
  };
  const sizes = [table, ROWS, COLUMNS, RANK];
  call(process.execPath, ours, 'write', ...sizes);
  const last = {};
  const factorise = (engine, ...more) => {
    last[engine] = call(process.execPath, ours, engine, ...sizes, ...more);
    return last[engine].milliseconds;
  };
  const exactly = () => {
    last.numpy = call(python, script, ...sizes);
    return last.numpy.milliseconds;
  };
  const results = [
    compare({
      name: 'ONNX Runtime',
      candidate: () => factorise('onnx'),
      baseline: exactly,
      aim: AIM.ratio,
      rounds: 2,
    }),
  ];
  for (const engine of ['onnx', 'tfjs']) factorise(engine, 'measure');
  const least = Math.sqrt(last.numpy.squaredLoss);
  const told = ({ milliseconds, passes, peakMebibytes, engine, error, singularValues }) => ({
    engine,
    milliseconds: Math.round(milliseconds),
    passes,
    peakMebibytes,
    // Of the product of the two factors, measured against the table.
    relativeError: error / Math.sqrt(last.numpy.squaredNorm),
    excessError: error / least - 1,
    singularValuesOff: Math.max(
      ...singularValues.map((value, at) => Math.abs(value / last.numpy.singularValues[at] - 1)),
    ),
  });
  return { aims: AIM, onnx: told(last.onnx), tfjs: told(last.tfjs), results };
}

/** `node FILE write|onnx|tfjs TABLE ROWS COLUMNS RANK [measure]`: the last also measures the error. */
function bundle(file) {
  return build({
    stdin: { contents: SCRIPT, resolveDir: root },
    outfile: file,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    logLevel: 'warning',
  });
}

const SCRIPT = `
import { closeSync, openSync, readSync, writeSync } from 'node:fs';
import { lowRank } from './src/base/linalg/low-rank.ts';
import { plainProduct } from './src/base/linalg/matrix.ts';
import { chooseProducts } from './src/engine/select/matmul-backends.ts';
import { fillNormal, keyOf } from './src/base/tensor/random.ts';

const [task, file, ...sizes] = process.argv.slice(2);
const [rows, columns, rank] = sizes.slice(0, 3).map(Number);
const isMeasured = sizes[3] === 'measure';

/** Random rows whose values have standard deviations 1 / (1 + j / 20) + 0.05 in directions of Hadamard's. */
function writeTable() {
  const descriptor = openSync(file, 'w');
  const deviations = Float64Array.from({ length: columns }, (_, j) => 1 / (1 + j / 20) + 0.05);
  const row = new Float64Array(columns);
  for (let index = 0; index < rows; index++) {
    fillNormal(keyOf(7, 'table'), index * columns, row, 1 / Math.sqrt(columns));
    for (let j = 0; j < columns; j++) row[j] *= deviations[j];
    turn(row);
    writeSync(descriptor, row);
  }
  closeSync(descriptor);
}

/** Hadamard's transform in place: columns is a power of two. */
function turn(row) {
  for (let half = 1; half < row.length; half *= 2) {
    for (let start = 0; start < row.length; start += 2 * half) {
      for (let j = start; j < start + half; j++) {
        const [a, b] = [row[j], row[j + half]];
        row[j] = a + b;
        row[j + half] = a - b;
      }
    }
  }
}

const blockRows = 512;

async function factorise() {
  const descriptor = openSync(file, 'r');
  const read = (first, count, target) => {
    const bytes = new Uint8Array(target.buffer, target.byteOffset, count * columns * 8);
    readSync(descriptor, bytes, 0, bytes.length, first * columns * 8);
  };
  const start = process.hrtime.bigint();
  const { engine, products } = await chooseProducts({ engine: task, threads: 2 });
  const found = await lowRank(
    { rows, columns, read },
    { want: { rank }, seed: 1, products, blockRows },
  );
  const left = new Float64Array(rows * rank);
  const block = { values: new Float64Array(blockRows * columns), rows: blockRows, columns };
  for (let row = 0; row < rows; row += blockRows) {
    read(row, blockRows, block.values);
    await found.left(block, left.subarray(row * rank));
  }
  const milliseconds = Number(process.hrtime.bigint() - start) / 1e6;
  const peakMebibytes = Math.round(process.resourceUsage().maxRSS / 1024);
  let squaredError = 0;
  const product = new Float64Array(blockRows * columns);
  for (let row = 0; isMeasured && row < rows; row += blockRows) {
    read(row, blockRows, block.values);
    const own = left.subarray(row * rank, (row + blockRows) * rank);
    await plainProduct({ values: own, rows: blockRows, columns: rank }, found.projection, product);
    for (let k = 0; k < product.length; k++) squaredError += (block.values[k] - product[k]) ** 2;
  }
  await products.close();
  closeSync(descriptor);
  const { passes, singularValues } = found;
  console.log(JSON.stringify({ engine, milliseconds, peakMebibytes, passes, error: Math.sqrt(squaredError), singularValues: [...singularValues] }));
}

if (task === 'write') writeTable();
else await factorise();
`;
