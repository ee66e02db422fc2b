// Prefill and decoding of three models on ONNX Runtime, on a device, beside PyTorch in its eager mode on the same one.
//
//   npm run bench -- forward-device                  the graphics card; without one there is nothing to measure
//   DEVICE=webgpu npm run bench -- forward-device    another device: cuda, webgpu, directml, coreml or cpu
//
// It asks nothing and takes MINUTES (7) at most: what a round of shows not to fit in any more is left out, and said
// to be. PyTorch (2.4 or newer) is found by PYTHON (`python3`); where it cannot use the card it computes on the
// processor, which every result says. ROUNDS (12), THREADS (2), STEPS (16), `MODELS=minimind2` and
// `SIZES=1x512,8x512` measure otherwise, or less.
//
// Both sides have the same weights, and before anything is timed the same logits within LIMIT. The clock starts
// with token ids in the memory of the process and stops with all logits there, so that a card has been waited for.
// Prefill is one forward pass without a cache. Decoding gives the last STEPS tokens of a size one by one, with a
// cache of all before them, and tells the time of one such step: with eight sequences it is eight tokens. A second
// line has matrix products in float16, beside PyTorch's autocast, where the engine knows it. PyTorch's own
// rounding to TF32 is off, and ours is.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import {
  idsOf,
  measured,
  oneRound,
  openPyTorch,
  ROUNDS,
  root,
  setting,
  source,
  THREADS,
  timeOf,
  writeWeights,
} from './forward-contenders.js';

export const title = 'Prefill and decoding on a device, beside PyTorch on the same';

/** Largest difference of two float32 logits. */
const LIMIT = 2e-4;
/** Aims for the ratio of our time to PyTorch's. */
const AIMS = { prefill: 1 };
const STEPS = setting('STEPS', 16);
const MINUTES = setting('MINUTES', 7);
const DEVICE = process.env.DEVICE || 'gpu';
const MINIMIND = { script: 'forward_minimind_pytorch.py', settingsOf: miniMindSettings };
const MODELS = {
  'bench-60m': {
    config: 'hybrid/bench-60m.yaml',
    script: 'forward_pytorch.py',
    settingsOf: ({ document }) => ({ ...document.model, scan: 'chunked' }),
  },
  'minimind2-small': { config: 'minimind/minimind2-small.yaml', ...MINIMIND },
  minimind2: { config: 'minimind/minimind2.yaml', ...MINIMIND },
};
const SIZES = ['1x512', '8x512', '1x2048'];

/** The words of a variable, or all that there are. */
const chosen = (name, all) => process.env[name]?.split(',') ?? all;

const wantedModels = () =>
  chosen('MODELS', Object.keys(MODELS)).map((name) => {
    if (!Object.hasOwn(MODELS, name)) throw new Error(`MODELS has no ${name}`);
    return name;
  });

export async function run() {
  const engines = await openEngines();
  if (engines.skipped) return engines;
  const folder = mkdtempSync(path.join(os.tmpdir(), 'minimind-bench-'));
  const found = { results: [], differences: {}, leftOut: [...engines.leftOut], problems: [] };
  const end = performance.now() + 60_000 * MINUTES;
  const session = { ...engines, folder, found, end };
  try {
    for (const name of wantedModels()) {
      const { skipped } = await measureModel(name, session);
      if (skipped) return { skipped };
    }
  } finally {
    for (const { engine } of engines.opened) await engine.close();
    rmSync(folder, { recursive: true, force: true });
  }
  const [{ engine }] = engines.opened;
  return {
    variant: engine.info.deviceKind,
    limit: LIMIT,
    steps: STEPS,
    engine: engine.info,
    driver: nvidiaDriver(),
    loadAfter: os.loadavg().map((value) => Number(value.toFixed(2))),
    ...found,
  };
}

/** One for each way of computing matrix products that there is. */
async function openEngines() {
  const { chooseEngine } = await source('engine/select/devices.ts');
  const { UserError } = await source('errors.ts');
  const open = async (device, compute) => {
    const wish = { engine: 'onnx', device, compute, threads: THREADS };
    return { compute, engine: (await chooseEngine(wish)).engine };
  };
  try {
    const first = await open(DEVICE, 'f32');
    try {
      const half = await open(first.engine.info.deviceKind, 'f16');
      return { opened: [first, half], leftOut: [] };
    } catch (error) {
      if (!(error instanceof UserError)) throw error;
      return { opened: [first], leftOut: [`f16: ${error.message}`] };
    }
  } catch (error) {
    if (!(error instanceof UserError)) throw error;
    const { message, suggestion } = error;
    return { skipped: suggestion ? `${message} (${suggestion})` : message };
  }
}

/** Sizes that the family derives and PyTorch's implementation needs. */
function miniMindSettings({ document: { model: settings } }, tensors) {
  const rowsOf = (end) => tensors.find(({ name }) => name.endsWith(end)).shape[0];
  const width = settings.hidden_size / settings.num_attention_heads;
  return {
    ...settings,
    intermediate_size: rowsOf('.mlp.gate_proj.weight'),
    num_key_value_heads: rowsOf('.k_proj.weight') / width,
  };
}

async function measureModel(name, session) {
  const { loadModelFile } = await source('input/model-input/read-model-file.ts');
  const { tensorsOf } = await source('model/architecture/walk.ts');
  const { randomWeights } = await source('engine/weights/weights.ts');
  const { config, script, settingsOf } = MODELS[name];
  const loaded = await loadModelFile(`${root}configs/${config}`, {});
  const { model } = loaded;
  const tensors = tensorsOf(model).filter(({ role }) => role === 'parameter');
  const weights = randomWeights(model, 0);
  const file = path.join(session.folder, `${name}.safetensors`);
  await writeWeights(file, tensors, weights);
  const { info } = session.opened[0].engine;
  const peer = await openPyTorch({
    script,
    settings: settingsOf(loaded, tensors),
    threads: THREADS,
    device: info.deviceKind === 'cpu' || info.isSoftware ? 'cpu' : 'card',
    weights: [file],
  });
  if (peer.missing) return { skipped: peer.missing };
  session.found.pytorch = { ...session.found.pytorch, [name]: peer.facts };
  for (const size of chosen('SIZES', SIZES)) {
    const [batch, tokens] = size.split('x').map(Number);
    const what = `${name}, ${batch} × ${tokens}`;
    console.error(`  ${what} …`);
    try {
      await measureSize({ what, model, weights, ids: idsOf(model, batch, tokens), peer }, session);
    } catch (error) {
      session.found.problems.push(`${what}: ${error.message}`);
    }
  }
  peer.close();
  rmSync(file);
  return {};
}

async function measureSize({ what, model, weights, ids, peer }, { opened, folder, found, end }) {
  const leaveOut = (why) => found.leftOut.push(`${what}: ${why}`);
  if (performance.now() > end) return leaveOut(`${MINUTES} minutes are over`);
  const programs = [];
  try {
    const plan = { what, model, weights, ids, peer, logits: path.join(folder, 'logits') };
    const pairs = [];
    const exact = {};
    for (const { compute, engine } of opened) {
      for (const part of Object.values(PARTS)) {
        const devices = { ours: engine.info.deviceKind, peer: peer.facts.device };
        const pair = { ...(await part({ ...plan, compute, engine, programs })), devices };
        const told = await checked(pair, exact);
        found.differences[pair.name] = told.differences;
        if (told.problem) found.problems.push(`${pair.name}: ${told.problem}`);
        else pairs.push(pair);
      }
    }
    const contenders = Object.fromEntries(pairs.flatMap(contendersOf));
    const milliseconds = (await oneRound(contenders)).reduce((sum, [, each]) => sum + each, 0);
    const needed = ROUNDS * milliseconds;
    if (performance.now() + needed > end) {
      return leaveOut(`${ROUNDS} rounds of ${(milliseconds / 1000).toFixed(1)} s take too long`);
    }
    const results = await measured(contenders, pairs.map(comparisonOf));
    found.results.push(...results.map((each, index) => withSpeed(each, pairs[index])));
  } finally {
    for (const program of programs) await program.release();
  }
}

/** Measured parts, ours and PyTorch's. Each has `name`, `run` and `peer`, which can say their logits, and more. */
const PARTS = {
  async prefill({ what, model, weights, ids, peer, logits, compute, engine, programs }) {
    const program = await engine.load(model, weights, { blocks: false });
    programs.push(program);
    const request = { batch: ids.batch, tokens: ids.tokens, compute };
    let output;
    return {
      name: `${what}, prefill, ${compute}`,
      part: 'prefill',
      compute,
      tokens: ids.batch * ids.tokens,
      runs: 1,
      time: () =>
        timeOf(async () => {
          ({ output } = await program.run({ ids }));
        }),
      logits: () => output.data,
      peerTime: () => peer.run(request),
      peerLogits: () => writtenLogits(peer, request, logits),
    };
  },

  async decode({ what, model, weights, ids, peer, logits, compute, engine, programs }) {
    const { span } = await source('quicktest/ids.ts');
    const { batch, tokens } = ids;
    const steps = Math.min(STEPS, tokens - 1);
    const program = await engine.load(model, weights, {
      blocks: false,
      decoding: { totalTokens: tokens },
    });
    programs.push(program);
    const prompt = span(ids, 0, tokens - steps);
    const rest = Array.from({ length: steps }, (_, at) => span(ids, tokens - steps + at, 1));
    const request = { batch, tokens, steps, compute };
    let outputs = [];
    return {
      name: `${what}, decoding, ${compute}`,
      part: 'decode',
      compute,
      tokens: batch,
      runs: steps,
      async time() {
        let { state } = await program.run({ ids: prompt });
        outputs = [];
        return timeOf(async () => {
          for (const each of rest) {
            const step = await program.run({ ids: each, state });
            ({ state } = step);
            outputs.push(step.output.data);
          }
        });
      },
      logits: () => inSequence(outputs, batch),
      peerTime: () => peer.run(request),
      peerLogits: () => writtenLogits(peer, request, logits),
    };
  },
};

async function writtenLogits(peer, request, file) {
  rmSync(file, { force: true });
  await peer.run({ ...request, logits: file });
  const { buffer, byteOffset, byteLength } = readFileSync(file);
  return new Float32Array(buffer, byteOffset, byteLength / 4);
}

/** Logits of steps, [B, V] each, as [B, steps, V]. */
function inSequence(steps, batch) {
  const size = steps[0].length / batch;
  const all = new Float32Array(steps.length * steps[0].length);
  for (const [step, data] of steps.entries()) {
    for (let row = 0; row < batch; row++) {
      const values = data.subarray(row * size, (row + 1) * size);
      all.set(values, (row * steps.length + step) * size);
    }
  }
  return all;
}

/**
 * Runs both once and compares their logits: in float32 with each other, and those of float16 with those.
 * @param exact Logits in float32, by the part; they are put there.
 */
async function checked(pair, exact) {
  const { largestDifference } = await source('engine/compare/differences.ts');
  await pair.time();
  const [ours, theirs] = [pair.logits(), await pair.peerLogits()];
  if (ours.length !== theirs.length) throw new Error(`${ours.length} logits, not ${theirs.length}`);
  if (pair.compute === 'f32') {
    exact[pair.part] = ours;
    const difference = largestDifference(ours, theirs);
    const isSame = difference <= LIMIT;
    const problem = isSame ? undefined : `the logits differ by ${difference}, so it is not timed`;
    return { differences: { logits: difference }, problem };
  }
  const off = (logits) => largestDifference(logits, exact[pair.part]);
  const differences = { fromFloat32: { minimind: off(ours), pytorch: off(theirs) } };
  const isHalf = differences.fromFloat32.minimind > 0;
  const problem = isHalf ? undefined : 'the logits are those of float32, so it is not timed';
  return { differences, problem };
}

const contendersOf = ({ name, devices, time, peerTime }) => [
  [`${name} ours`, { name: `${name}: minimind (${devices.ours})`, time }],
  [`${name} peer`, { name: `PyTorch (${devices.peer})`, time: peerTime }],
];

const comparisonOf = ({ name, part }) => ({
  candidate: `${name} ours`,
  baseline: `${name} peer`,
  aim: AIMS[part],
});

/** A result with milliseconds of one run, and tokens per second. */
function withSpeed({ milliseconds, ...result }, { tokens, runs }) {
  const ofEach = (of) =>
    Object.fromEntries(
      Object.entries(milliseconds).map(([which, { candidate, baseline }]) => [
        which,
        { candidate: of(candidate / runs), baseline: of(baseline / runs) },
      ]),
    );
  const one = {
    milliseconds: ofEach((each) => each),
    tokensPerSecond: ofEach((each) => (1000 * tokens) / each),
  };
  const { candidate, baseline } = one.milliseconds.median;
  console.error(
    `    ${result.name}: ${candidate.toPrecision(3)} and ${baseline.toPrecision(3)} ms`,
  );
  return { ...result, ...one };
}

/** Tool that NVIDIA's driver installs. */
const DRIVER_TOOL = 'nvidia-smi';

/** Null without it. */
function nvidiaDriver() {
  const query = ['--query-gpu=name,driver_version,memory.total', '--format=csv,noheader'];
  const { status, stdout } = spawnSync(DRIVER_TOOL, query, { encoding: 'utf8' });
  return status === 0 ? stdout.trim().split('\n') : null;
}
