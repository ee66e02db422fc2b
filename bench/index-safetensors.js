// The index of a safetensors file of 100,000 tensors, with every rule of the format checked, against
// JSON.parse of the same header, which checks none. Both read the header from the file.
import { spawnSync } from 'node:child_process';
import { closeSync, ftruncateSync, mkdtempSync, openSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { build } from 'esbuild';
import { compare } from './measure.js';

const root = fileURLToPath(new URL('..', import.meta.url));

export const title = 'Index of 100,000 tensors: reading a safetensors header against JSON.parse';

const TENSORS = 100_000;
const TENSOR_BYTES = 1024;
const AIM = 1.15;

export async function run() {
  const folder = mkdtempSync(path.join(tmpdir(), 'minimind-bench-'));
  try {
    const model = path.join(folder, 'model.safetensors');
    writeModel(model);
    const script = path.join(folder, 'time.mjs');
    await bundle(script);
    const { time } = await import(pathToFileURL(script).href);
    const results = [
      compare({
        name: 'first index of a process',
        candidate: () => timeInProcess(script, 'index', model),
        baseline: () => timeInProcess(script, 'parse', model),
        aim: AIM,
      }),
      compare({
        name: 'index again and again',
        candidate: () => time('index', model),
        baseline: () => time('parse', model),
        aim: AIM,
      }),
    ];
    return { results };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A script that times one of the two, for import and for `node SCRIPT index|parse MODEL`. */
function bundle(script) {
  return build({
    stdin: { contents: SCRIPT, resolveDir: root },
    outfile: script,
    bundle: true,
    format: 'esm',
    platform: 'node',
    target: 'node20.19',
    logLevel: 'warning',
  });
}

const SCRIPT = `
import { closeSync, openSync, readSync } from 'node:fs';
import { ByteFile } from './src/checkpoint/byte-file.ts';
import { readSafetensors } from './src/checkpoint/safetensors/read-safetensors.ts';

const CONTENDERS = {
  index(model) {
    const file = ByteFile.open(model);
    const { tensors } = readSafetensors(file);
    file.close();
    return tensors.size;
  },
  parse(model) {
    const file = openSync(model);
    const length = Buffer.alloc(8);
    readSync(file, length, 0, 8, 0);
    const header = Buffer.allocUnsafeSlow(Number(length.readBigUInt64LE()));
    readSync(file, header, 0, header.length, 8);
    closeSync(file);
    return Object.keys(JSON.parse(header.toString())).length;
  },
};

/** In milliseconds. */
export function time(contender, model) {
  const start = process.hrtime.bigint();
  const found = CONTENDERS[contender](model);
  const elapsed = Number(process.hrtime.bigint() - start) / 1e6;
  if (found !== ${TENSORS}) throw new Error(contender + ' found ' + found + ' tensors');
  return elapsed;
}

if (process.argv[1] === import.meta.filename) {
  console.log(time(process.argv[2], process.argv[3]));
}
`;

function timeInProcess(script, contender, model) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, contender, model], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`${contender}: ${status}\n${stderr}`);
  return Number(stdout);
}

/** The data are a hole in the file: nobody reads them. */
function writeModel(file) {
  const members = Array.from({ length: TENSORS }, (_, index) => {
    const name = `model.layers.${Math.floor(index / 10)}.block_${index % 10}.proj.weight`;
    const begin = index * TENSOR_BYTES;
    return `"${name}":{"dtype":"BF16","shape":[32,16],"data_offsets":[${begin},${begin + TENSOR_BYTES}]}`;
  });
  const header = Buffer.from(`{${members.join()}}`);
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  const descriptor = openSync(file, 'wx');
  writeSync(descriptor, length);
  writeSync(descriptor, header);
  ftruncateSync(descriptor, length.length + header.length + TENSORS * TENSOR_BYTES);
  closeSync(descriptor);
}
